/* trial_plugin.c: plug-ins. The judge stays here; the plug-in's code runs in the worker (worker.h). */
#define _GNU_SOURCE /* realpath */
#include "trial.h"

#ifdef __linux__
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "commands.h"
#include "diagnose.h"
#include "execute.h"
#include "metamorph.h"
#include "mutants.h"
#include "text.h"
#include "trial_cases.h"
#include "worker.h"

#define DEATHS_MOST 5 /* after so many the rest is not run: it would say the same */
#define HANGS_MOST 3
#define DIAGNOSED_MOST 8                   /* failures that are compared with the wrong kernels */
#define SUSPECTS_FEW 8                     /* wrong kernels that are compared with every further case */
#define DIAGNOSED_WORK ((double)(1 << 26)) /* multiply-adds of such a case: every wrong kernel runs on it */
#define SMOKE_SECONDS 6.0                  /* of --smoke, after which no further case is begun */
#define SMOKE_RELATIONS 2                  /* cases */

typedef struct session {
    fd_trial *trial;
    const fd_rounding *rounding;
    int deaths, hangs, diagnosed;
    double begun;     /* seconds */
    uint32_t conduct; /* kinds that are reported */
    fd_suspects suspects;
    fd_votes votes;
} session;

static double now_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Where the worst element is, got and want; "" if the failure is of no element. */
static void where_text(const fd_witness *w, char *text, size_t n)
{
    char element[24] = "lse", numbers[200];
    text[0] = '\0';
    if (w->i >= 0) {
        snprintf(element, sizeof element, "i=%d", w->i);
    }
    if (w->b != 0 || w->t != 0 || w->h != 0 || w->i != -1 || w->bound > 0.0) {
        fd_witness_text(w, numbers, sizeof numbers);
        snprintf(text, n, "b=%d t=%d h=%d %s: %s", w->b, w->t, w->h, element, numbers);
    }
}

/* A verdict that no answer gave: crash, hang, or what the process was left like. */
static fd_status add_incident(session *s, const fd_case *c, const char *group, const char *level, const char *reason,
                              const char *said, double seconds)
{
    fd_trial_line line = {.verdict = FD_FAIL, .tier = FD_TIER_EXACT, .seconds = seconds};
    char detail[240] = "";
    snprintf(line.name, sizeof line.name, "%s", c != NULL ? c->name : "the library");
    snprintf(line.group, sizeof line.group, "%s", group);
    snprintf(line.reason, sizeof line.reason, "%.300s", reason);
    if (said[0] != '\0') {
        snprintf(detail, sizeof detail, "it said: %s", said);
    }
    if (c != NULL) {
        fd_trial_replay(line.replay, sizeof line.replay, s->trial->options.target, level, c->name);
    }
    return fd_trial_add(s->trial, &line, detail);
}

/* Each kind once, with the case that showed it first. */
static fd_status add_conduct(session *s, const fd_case *c, const char *level)
{
    char text[FD_NUM_CONDUCTS][160];
    const uint32_t seen = fd_worker_conduct(text) & ~s->conduct;
    fd_status status = FD_OK;
    s->conduct |= seen;
    for (int kind = 0; kind < FD_NUM_CONDUCTS && status == FD_OK; kind++) {
        if (seen >> kind & 1u) {
            status = add_incident(s, c, "conduct", level, text[kind], "", 0.0);
        }
    }
    return status;
}

/* Counts the incident; after too many the rest is not worth running. */
static void count_incident(session *s)
{
    const fd_incident *incident = fd_worker_incident();
    s->deaths += incident->death;
    s->hangs += incident->hang;
    if (s->deaths >= DEATHS_MOST || s->hangs >= HANGS_MOST) {
        snprintf(s->trial->not_run_why, sizeof s->trial->not_run_why,
                 s->hangs >= HANGS_MOST ? "it hung %d times" : "its process ended %d times",
                 s->hangs >= HANGS_MOST ? s->hangs : s->deaths);
    }
}

/* ---- Tiers 1 to 3 ------------------------------------------------------------------------------ */

/* Several wrong kernels explain the first failures: which of them explains this case, too, and is right where the plug-in
 * is? What leaves none is left alone: a kernel of other arithmetic need not be theirs bit for bit. */
static void narrow(session *s, const fd_case *c, fd_instance *instance, const fd_outcome *outcome)
{
    int left = 0;
    for (int k = 0; k < fd_mutants_count; k++) {
        left += fd_suspected(s->suspects, k);
    }
    if (s->diagnosed > 0 && left > 1 && left <= SUSPECTS_FEW && fd_case_work(c) <= DIAGNOSED_WORK) {
        const fd_suspects here = fd_diagnose(instance, outcome, s->suspects);
        s->suspects = here.bits[0] != 0 || here.bits[1] != 0 ? here : s->suspects;
    }
}

static void diagnose(session *s, const fd_case *c, fd_instance *instance, const fd_outcome *outcome,
                     fd_trial_line *line)
{
    const bool one = s->trial->options.case_name != NULL;
    if (!one && (s->diagnosed >= DIAGNOSED_MOST || fd_case_work(c) > DIAGNOSED_WORK)) {
        narrow(s, c, instance, outcome);
        return;
    }
    const fd_suspects here = fd_diagnose(instance, outcome, FD_ALL_SUSPECTS);
    s->suspects = fd_suspects_both(s->suspects, here);
    fd_votes_add(&s->votes, here);
    s->diagnosed++;
    fd_diagnosis_text(here, line->looks_like, sizeof line->looks_like);
}

static fd_status judge_case(session *s, const fd_case *c, char *why, size_t n)
{
    const fd_rung *rung = fd_worker_rung();
    const fd_trial_options *o = &s->trial->options;
    const enum fd_tier highest = o->highest > FD_TIER_STATISTICAL ? FD_TIER_STATISTICAL : o->highest;
    const double begun = now_seconds();
    fd_instance instance;
    fd_outcome outcome;
    fd_trial_line line;
    char detail[320] = "";
    fd_status status = fd_instance_create(&instance, c, why, n);
    if (status != FD_OK) {
        return status;
    }
    instance.lse_absent = !fd_gives_lse(rung);
    status = fd_judge_tiers(&instance, &rung, 1, s->rounding, highest, &outcome, why, n);
    if (status == FD_OK) {
        const fd_incident *incident = fd_worker_incident();
        if (incident->happened) {
            status = add_incident(s, c, "tiers", "", incident->text, incident->stderr_line, now_seconds() - begun);
        } else {
            fd_trial_line_of(&outcome, &line);
            snprintf(line.name, sizeof line.name, "%s", c->name);
            snprintf(line.group, sizeof line.group, "tiers");
            if (instance.lse_absent) {
                snprintf(line.notes, sizeof line.notes, "it gives no lse: o alone is judged");
            }
            if (outcome.verdict == FD_FAIL) {
                fd_trial_replay(line.replay, sizeof line.replay, s->trial->options.target, "", c->name);
                where_text(&outcome.worst, detail, sizeof detail);
                diagnose(s, c, &instance, &outcome, &line);
            } else if (outcome.verdict == FD_PASS) {
                narrow(s, c, &instance, &outcome);
            }
            line.seconds = now_seconds() - begun;
            status = fd_trial_add(s->trial, &line, detail);
        }
        fd_outcomes_free(&outcome, 1);
    }
    fd_instance_free(&instance);
    return status == FD_OK ? add_conduct(s, c, "") : status;
}

/* ---- Tier 4 ------------------------------------------------------------------------------------ */

static fd_status relate_case(session *s, const fd_case *c, char *why, size_t n)
{
    const fd_rung *rung = fd_worker_rung();
    const double begun = now_seconds();
    fd_relation_outcome outcomes[32];
    fd_status status = fd_metamorph(&rung, 1, c, s->rounding, outcomes, why, n);
    const fd_incident *incident = fd_worker_incident();
    if (status == FD_OK && incident->happened) {
        char reason[sizeof incident->text + 160];
        int at = 0; /* the relation whose second instance it was; the first instance may fail them all */
        while (at + 1 < fd_relation_count && outcomes[at].verdict != FD_FAIL) {
            at++;
        }
        snprintf(reason, sizeof reason, "%s%s%s%s", incident->text, at > 0 ? " (" : "",
                 at > 0 ? fd_relations[at].promise : "", at > 0 ? ")" : "");
        status = add_incident(s, c, "relations", "--level metamorphic", reason, incident->stderr_line,
                              now_seconds() - begun);
    } else {
        for (int k = 0; k < fd_relation_count && status == FD_OK; k++) {
            const fd_relation_outcome *out = &outcomes[k];
            fd_trial_line line = {.verdict = out->verdict, .tier = out->tier, .ratio = 0.0, .seconds = -1.0};
            char detail[320] = "";
            if (!out->applies) {
                continue;
            }
            snprintf(line.name, sizeof line.name, "%s: %.90s", fd_relations[k].name, c->name);
            snprintf(line.group, sizeof line.group, "relations");
            snprintf(line.reason, sizeof line.reason, "%s", out->reason);
            if (out->verdict == FD_FAIL) {
                snprintf(line.reason, sizeof line.reason, "%.160s (%s)", out->reason, fd_relations[k].promise);
                fd_trial_replay(line.replay, sizeof line.replay, s->trial->options.target, "--level metamorphic",
                                c->name);
                where_text(&out->worst, detail, sizeof detail);
            }
            status = fd_trial_add(s->trial, &line, detail);
        }
    }
    return status == FD_OK ? add_conduct(s, c, "--level metamorphic") : status;
}

/* ---- All of them ------------------------------------------------------------------------------- */

typedef fd_status judge_one(session *s, const fd_case *c, char *why, size_t n);

/* Does the plug-in take the case? Asked before anything is generated. */
static bool takes(const fd_case *c, char *why, size_t n)
{
    fd_instance outline;
    const bool taken = fd_instance_outline(&outline, c, why, n) == FD_OK &&
                       fd_supports_here(fd_worker_rung(), &outline.problem, why, n) == FD_OK;
    fd_instance_free(&outline);
    return taken;
}

static fd_status add_refusal(session *s, const fd_case *c, const char *group, const char *reason)
{
    fd_trial_line line = {.verdict = FD_SKIP, .seconds = -1.0};
    snprintf(line.name, sizeof line.name, "%s", c->name);
    snprintf(line.group, sizeof line.group, "%s", group);
    snprintf(line.reason, sizeof line.reason, "%.300s", reason);
    return fd_trial_add(s->trial, &line, NULL);
}

/* Judges the first case that is taken of each group. most: cases after which the rest is left out; 0: all. */
static fd_status go_through(session *s, const fd_choice *choices, int32_t count, int32_t most, const char *group,
                            judge_one *judge, char *why, size_t n)
{
    int32_t settled = -1, judged = 0;
    for (int32_t i = 0; i < count && (most == 0 || judged < most); i++) {
        const fd_case *c = choices[i].c;
        char refused[320] = "";
        fd_status status = FD_OK;
        if (choices[i].group == settled) {
            continue;
        }
        if (s->trial->not_run_why[0] != '\0') {
            s->trial->not_run++;
            settled = choices[i].group;
            continue;
        }
        if (s->trial->options.smoke && now_seconds() - s->begun > SMOKE_SECONDS) {
            snprintf(s->trial->not_run_why, sizeof s->trial->not_run_why, "--smoke begins no case after %.0f s",
                     SMOKE_SECONDS);
            s->trial->not_run++;
            settled = choices[i].group;
            continue;
        }
        fd_progress("check", i, count);
        if (!fd_worker_begin(why, n)) {
            snprintf(s->trial->not_run_why, sizeof s->trial->not_run_why, "started again, it does not load: %.120s",
                     why);
            s->trial->not_run++;
            continue;
        }
        const bool taken = takes(c, refused, sizeof refused),
                   last = i + 1 == count || choices[i + 1].group != choices[i].group;
        if (taken) {
            status = judge(s, c, why, n);
            judged++;
            settled = choices[i].group;
        } else if (fd_worker_incident()->happened) {
            status = add_incident(s, c, group, "", fd_worker_incident()->text, fd_worker_incident()->stderr_line, -1.0);
            settled = choices[i].group;
        } else if (last) {
            status = add_refusal(s, c, group, refused);
        }
        if (status != FD_OK) {
            return status;
        }
        count_incident(s);
    }
    fd_progress("", 1, 1);
    return FD_OK;
}

/* merge(), if anything is left of the plug-in, and if it returns what merge() needs. */
static fd_status merge_all(session *s, char *why, size_t n)
{
    fd_trial_line line = {.verdict = FD_SKIP, .seconds = -1.0};
    if (s->trial->not_run_why[0] == '\0' && fd_gives_lse(fd_worker_rung())) {
        return fd_trial_merge(s->trial, s->rounding, why, n);
    }
    snprintf(line.name, sizeof line.name, "merge()");
    snprintf(line.group, sizeof line.group, "merge");
    snprintf(line.reason, sizeof line.reason, "merge() is offered, and not judged: %.200s",
             s->trial->not_run_why[0] != '\0' ? s->trial->not_run_why : "the plug-in gives no lse");
    return fd_trial_add(s->trial, &line, NULL);
}

/* What caps promise beyond the case table. FD_STRIDED_DIM is asked by a relation. */
static void note_unasked(fd_trial *trial)
{
    static const uint32_t unasked[] = {FD_PAGED, FD_SOFTCAP, FD_SINKS, FD_SCALES, FD_SHARD};
    size_t used = 0;
    for (size_t i = 0; i < sizeof unasked / sizeof *unasked && used < sizeof trial->unasked; i++) {
        if ((fd_worker_loaded()->caps.features & unasked[i]) != 0) {
            used += (size_t)snprintf(trial->unasked + used, sizeof trial->unasked - used, "%s%s", used > 0 ? ", " : "",
                                     fd_feature_name(unasked[i]));
        }
    }
}

static fd_status judge_all(fd_trial *trial, char *why, size_t n)
{
    const fd_trial_options *o = &trial->options;
    const fd_libm_error libm = fd_libm_error_get(NULL);
    const fd_rounding rounding = fd_host_rounding(&libm);
    session s = {.trial = trial, .rounding = &rounding, .begun = now_seconds(), .suspects = FD_ALL_SUSPECTS};
    char path[512];
    fd_case_table table = {0};
    fd_status status = fd_cases_read(fd_data_path("cases.csv", path, sizeof path), &table, why, n);
    fd_choice *choices = status == FD_OK ? calloc((size_t)table.count + 1, sizeof *choices) : NULL;
    if (choices == NULL) {
        fd_cases_free(&table);
        return status == FD_OK ? FD_NO_MEMORY : status;
    }
    fd_trial_options all = *o;
    all.size = o->case_name != NULL ? FD_FULL : o->size;
    int32_t count = fd_choose_cases(&table, &all, choices);
    note_unasked(trial);
    fd_print_hypotheses(&libm);
    printf("%s (%s): %s\n", trial->implementation, trial->place, fd_worker_rung()->idea);
    if (count == 0) {
        snprintf(why, n, "no case matches; flashdecode oracle --list names them");
        status = FD_INVALID;
    }
    if (status == FD_OK && o->lowest <= FD_TIER_STATISTICAL) {
        status = add_conduct(&s, NULL, "");
        status = status == FD_OK ? go_through(&s, choices, count, 0, "tiers", judge_case, why, n) : status;
    }
    if (status == FD_OK && o->highest >= FD_TIER_METAMORPHIC) {
        count = fd_choose_relations(&table, &all, choices);
        status = go_through(&s, choices, count, o->smoke ? SMOKE_RELATIONS : 0, "relations", relate_case, why, n);
    }
    if (status == FD_OK && fd_worker_loaded()->has_merge && o->case_name == NULL && o->family == NULL &&
        o->highest >= FD_TIER_METAMORPHIC) {
        status = merge_all(&s, why, n);
    }
    if (s.diagnosed > 1) {
        s.suspects = fd_trial_acquit(trial, &table, &rounding, s.suspects);
        fd_votes_text(&s.votes, s.suspects, trial->over_all, sizeof trial->over_all);
    }
    free(choices);
    fd_cases_free(&table);
    return status;
}

fd_status fd_trial_plugin(fd_trial *trial, char *why, size_t n)
{
    const fd_trial_options *o = &trial->options;
    struct stat file;
    char *path = realpath(o->target, NULL), reason[FD_WORKER_TEXT + 160] = "";
    if (path == NULL || stat(path, &file) != 0 || !S_ISREG(file.st_mode)) {
        snprintf(why, n, "%.200s: %s; name the shared object that exports fd_plugin()", o->target,
                 path != NULL ? "is no file" : strerror(errno));
        free(path);
        return FD_INVALID;
    }
    const fd_worker_options options = {.path = path,
                                       .seconds = o->seconds,
                                       .megabytes = o->megabytes,
                                       .any_length = o->case_name != NULL,
                                       .claims = o->declared ? &o->claims : NULL};
    fd_status status = fd_worker_open(&options, reason, sizeof reason);
    snprintf(trial->implementation, sizeof trial->implementation, "%s",
             status == FD_OK ? fd_worker_rung()->name : o->target);
    fd_text_clean(trial->implementation);
    snprintf(trial->place, sizeof trial->place, "%s", status == FD_OK ? fd_worker_loaded()->where : "-");
    if (status == FD_OK && strcmp(trial->place, "gpu") == 0) {
        snprintf(trial->device, sizeof trial->device, "%s", fd_worker_loaded()->device);
    }
    fd_baseline_device(trial->baseline, trial->device);
    if (status == FD_DEVICE_ERROR) {
        session s = {.trial = trial};
        status =
            add_incident(&s, NULL, "load", "", fd_worker_incident()->text, fd_worker_incident()->stderr_line, -1.0);
    } else if (status != FD_OK) {
        snprintf(why, n, "%.120s: %.380s", o->target, reason);
    } else if (o->sanitize && strcmp(trial->place, "gpu") != 0) {
        snprintf(why, n, "%.120s: --sanitize is for plug-ins that run on a GPU, and this one runs on %s", o->target,
                 trial->place);
        status = FD_INVALID;
    } else {
        status = judge_all(trial, why, n);
        status = status == FD_OK && o->time ? fd_trial_times(trial, why, n) : status;
        if (status == FD_OK && !fd_worker_finish()) {
            session s = {.trial = trial};
            status =
                add_incident(&s, NULL, "load", "", fd_worker_incident()->text, fd_worker_incident()->stderr_line, -1.0);
        }
        if (status == FD_OK && o->sanitize) {
            status = fd_trial_sanitize(trial, why, n);
        }
    }
    fd_worker_close();
    free(path);
    return status;
}
#else
fd_status fd_trial_plugin(fd_trial *trial, char *why, size_t n)
{
    snprintf(why, n, "%s: plug-ins are judged on Linux only; `flashdecode cases` and tensors work everywhere",
             trial->options.target);
    return FD_UNSUPPORTED;
}
#endif
