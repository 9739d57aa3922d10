/* trial_dump.c: the verdict on tensors. An answer that was computed elsewhere is judged like a rung: one whose run() copies
 * it. So the bound, the exact answers and the diagnosis are those of every rung; what cannot be asked is whether it
 * would come out again, or with other memory around it. */
#define _POSIX_C_SOURCE 200809L

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../cuda/gpu/math_error.h"
#include "case_file.h"
#include "commands.h"
#include "diagnose.h"
#include "dump.h"
#include "ladder.h"
#include "lse_base.h"
#include "row.h"
#include "trial.h"

/* Multiply-adds of a run; the diagnosis runs every mutant twice. */
#define DIAGNOSED_MAX ((int64_t)1 << 27)
#define DIAGNOSED_CASES 32 /* further failures are counted, not asked */

/* ---- The rung ---------------------------------------------------------------------------------- */

static struct {
    const float *o, *lse; /* in the order of fd_row_index() */
    fd_arith claims;
} given;

static fd_status run(const fd_problem *p, const fd_context *context)
{
    (void)context;
    for (int64_t row = 0; row < fd_row_count(p); row++) {
        int32_t b, t, h;
        fd_row_of_index(p, row, &b, &t, &h);
        fd_store_row(p, b, t, h, given.o + row * p->head_dim_v, given.lse[row]);
    }
    return FD_OK;
}

static void arith(const fd_problem *problem, const fd_plan *plan, int64_t kv_len, fd_arith *a)
{
    (void)problem;
    (void)plan;
    (void)kv_len;
    *a = given.claims;
}

static const fd_rung tensors = {.size = sizeof(fd_rung),
                                .abi = FD_ABI,
                                .name = "tensors",
                                .idea = "an answer from a file",
                                .caps = &fd_readable_caps,
                                .run = run,
                                .arith = arith};

/* Of somebody who says nothing: any order of sums in fp32, with an exp as good as a GPU's library has. */
static fd_arith claims_of(const fd_trial_options *o)
{
    return o->declared ? o->claims
                       : (fd_arith){.size = sizeof(fd_arith),
                                    .math = FD_MATH_CLAIMED,
                                    .exp_rel = FD_GPU_EXP_REL,
                                    .exp_abs = FD_GPU_EXP_ABS,
                                    .log_rel = FD_GPU_LOG_REL};
}

/* ---- One answer -------------------------------------------------------------------------------- */

typedef struct court {
    fd_trial *trial;
    fd_rounding rounding;
    enum fd_tier highest;
    fd_suspects suspects; /* over all failures */
    int32_t diagnosed;
    char *why;
    size_t n;
} court;

/* An answer, as floats in the order of fd_row_index(). */
typedef struct answer {
    float *o, *lse;
    bool has_lse;
} answer;

static void add_note(fd_trial_line *line, const char *note)
{
    const size_t used = strlen(line->notes);
    snprintf(line->notes + used, sizeof line->notes - used, "%s%s", used > 0 ? "; " : "", note);
}

static void describe(const fd_outcome *out, const int32_t *sequences, const fd_lse_found *found, char *text, size_t n)
{
    const fd_witness *w = &out->worst;
    const int32_t b = sequences != NULL ? sequences[w->b] : w->b;
    const double got = (double)w->got;
    text[0] = '\0';
    if (w->b != 0 || w->h != 0 || w->t != 0 || w->i != -1 || w->bound > 0.0) {
        const int used = snprintf(text, n, "b=%d t=%d h=%d ", b, w->t, w->h);
        char element[24] = "lse";
        if (w->i >= 0) {
            snprintf(element, sizeof element, "i=%d", w->i);
        }
        snprintf(text + used, n - (size_t)used, "%s: got %a, want %a (|difference| %.3g, pass line %.3g)%s", element,
                 got, w->want, w->want > got ? w->want - got : got - w->want, w->bound,
                 w->i < 0 && found->base_2 ? ", in natural units" : "");
    }
}

static void diagnose(court *c, fd_instance *x, const fd_outcome *out, fd_trial_line *line)
{
    const fd_problem *p = &x->problem;
    const double work = (double)fd_row_count(p) * (double)p->kv_capacity * (p->head_dim + p->head_dim_v);
    if (work > (double)DIAGNOSED_MAX) {
        snprintf(line->looks_like, sizeof line->looks_like,
                 "looks like: not asked, %.0f million multiply-adds are above %.0f; dump fewer heads", work * 1e-6,
                 (double)DIAGNOSED_MAX * 1e-6);
    } else if (c->diagnosed < DIAGNOSED_CASES) {
        const fd_suspects here = fd_diagnose(x, out, FD_ALL_SUSPECTS);
        fd_diagnosis_text(here, line->looks_like, sizeof line->looks_like);
        c->suspects = fd_suspects_both(c->suspects, here);
        c->diagnosed++;
    }
}

/* line: its name, replay and notes are the caller's. sequences: their numbers in the file; NULL: 0, 1, .. */
static fd_status judge(court *c, fd_instance *x, answer *a, const int32_t *sequences, fd_trial_line *line)
{
    const fd_rung *rung = &tensors;
    fd_lse_found found = {.base_2 = false};
    fd_outcome out;
    fd_status status = a->has_lse ? fd_lse_recognise(x, a->lse, &found) : FD_OK;
    x->given_once = true;
    x->lse_absent = !a->has_lse;
    x->lse_roundings = found.base_2 ? FD_LSE_BASE_2_ROUNDINGS : 0;
    given.o = a->o;
    given.lse = a->lse;
    snprintf(c->why, c->n, "%s: no memory for its rows", line->name);
    if (status != FD_OK) {
        return status;
    }
    status = fd_judge_tiers(x, &rung, 1, &c->rounding, c->highest, &out, c->why, c->n);
    if (status == FD_OK) {
        fd_trial_line judged;
        char detail[256];
        fd_trial_line_of(&out, &judged);
        snprintf(judged.name, sizeof judged.name, "%s", line->name);
        snprintf(judged.replay, sizeof judged.replay, "%s", line->replay);
        snprintf(judged.notes, sizeof judged.notes, "%s", line->notes);
        snprintf(judged.group, sizeof judged.group, "tensors");
        if (!a->has_lse) {
            add_note(&judged, "lse was not judged, there is none");
        }
        if (found.base_2) {
            add_note(&judged, "lse is in base 2");
        }
        if (found.plus_infinity) {
            add_note(&judged, "lse of a row without a key is +infinity");
        }
        describe(&out, sequences, &found, detail, sizeof detail);
        if (out.verdict == FD_FAIL) {
            diagnose(c, x, &out, &judged);
        }
        if (found.mixed) { /* whatever else is wrong */
            judged.verdict = FD_FAIL;
            judged.tier = judged.tier == FD_TIER_NONE ? FD_TIER_PROVED : judged.tier;
            snprintf(judged.reason, sizeof judged.reason, "%s", found.mix);
        }
        status = fd_trial_add(c->trial, &judged, detail);
    }
    fd_outcomes_free(&out, 1);
    return status;
}

static fd_status answer_new(answer *a, int64_t rows, int32_t head_dim_v)
{
    *a = (answer){.o = malloc((size_t)rows * (size_t)head_dim_v * sizeof(float) + 1),
                  .lse = malloc((size_t)rows * sizeof(float) + 1)};
    return a->o != NULL && a->lse != NULL ? FD_OK : FD_NO_MEMORY;
}

/* The type to judge o by. Who works where there is no bf16 stores it as F32, exactly: if every value is a number of the
 * narrow type that is expected, it is that type. Any other F32 is judged as fp32. */
static int32_t judged_type(const answer *a, int64_t values, int32_t stored, int32_t expected, fd_trial_line *line)
{
    float x;
    const fd_tensor one = {.data = &x, .dtype = expected};
    bool narrow = stored == FD_F32 && (expected == FD_F16 || expected == FD_BF16);
    for (int64_t i = 0; i < values && narrow; i++) {
        fd_store(&one, 0, a->o[i]);
        narrow = fd_load(&one, 0) == a->o[i] || a->o[i] != a->o[i];
    }
    if (narrow) {
        char note[80];
        snprintf(note, sizeof note, "o is stored as F32, with values of %s: judged as that", fd_dtype_name(expected));
        add_note(line, note);
    }
    return narrow ? expected : stored;
}

static void answer_free(answer *a)
{
    free(a->o);
    free(a->lse);
    *a = (answer){.o = NULL};
}

/* ---- Files ------------------------------------------------------------------------------------- */

/* The input file and the file of answers beside it; either may be missing. */
typedef struct pair {
    char path[4200], answer_path[4200];
    fd_safetensors file, answers;
    bool has_file, has_answers;
} pair;

static fd_status open_one(const char *path, fd_safetensors *file, bool *there, char *why, size_t n)
{
    *there = access(path, F_OK) == 0;
    return *there ? fd_safetensors_open(path, file, why, n) : FD_OK;
}

static fd_status open_pair(pair *p, const char *path, char *why, size_t n)
{
    *p = (pair){.has_file = false};
    snprintf(p->path, sizeof p->path, "%s", path);
    fd_case_answer_name(path, p->answer_path, sizeof p->answer_path);
    const fd_status status = open_one(p->path, &p->file, &p->has_file, why, n);
    return status == FD_OK && p->answer_path[0] != '\0' ? open_one(p->answer_path, &p->answers, &p->has_answers, why, n)
                                                        : status;
}

static void close_pair(pair *p)
{
    if (p->has_file) {
        fd_safetensors_close(&p->file);
    }
    if (p->has_answers) {
        fd_safetensors_close(&p->answers);
    }
}

/* o and lse, from whichever of the two files has o. */
static fd_status find_answer(const pair *p, const fd_rows *rows, fd_dumped *dumped, bool *found, char *why, size_t n)
{
    fd_dumped other = {.rows = NULL};
    bool beside = false;
    fd_status status = FD_OK;
    *found = false;
    if (p->has_answers) {
        status = fd_dumped_read(&p->answers, p->answer_path, rows, dumped, &beside, why, n);
    }
    if (status == FD_OK && p->has_answers && !beside) {
        return fd_safetensors_refuse(p->answer_path, why, n, "there is no tensor o; add it");
    }
    if (status == FD_OK && p->has_file) {
        status = fd_dumped_read(&p->file, p->path, rows, &other, found, why, n);
    }
    if (status == FD_OK && beside && *found) {
        return fd_safetensors_refuse(p->path, why, n, "o is here and in %s; remove one", p->answer_path);
    }
    if (!beside) {
        *dumped = other;
    }
    *found = *found || beside;
    return status;
}

/* ---- A case ------------------------------------------------------------------------------------ */

static fd_status skip(court *c, const fd_trial_line *line, const char *reason)
{
    fd_trial_line skipped = *line;
    skipped.verdict = FD_SKIP;
    skipped.seconds = -1.0;
    snprintf(skipped.group, sizeof skipped.group, "tensors");
    snprintf(skipped.reason, sizeof skipped.reason, "%s", reason);
    return fd_trial_add(c->trial, &skipped, NULL);
}

static fd_status judge_case(court *c, const fd_case *found_case, const pair *files, fd_trial_line *line)
{
    fd_case the_case = *found_case;
    const int32_t q_len = the_case.q_len > 0 ? the_case.q_len : 1;
    int32_t q_lens[FD_CASE_BATCH_MAX], sequences[FD_CASE_BATCH_MAX];
    const fd_rows rows = {.batch = the_case.batch,
                          .heads_q = the_case.heads_q,
                          .head_dim_v = the_case.head_dim_v,
                          .q_len = q_len,
                          .q_lens = q_lens};
    fd_dumped dumped;
    bool found = false;
    answer a = {.o = NULL};
    fd_instance x;
    for (int32_t b = 0; b < the_case.batch; b++) {
        q_lens[b] = q_len;
        sequences[b] = b;
    }
    fd_status status = find_answer(files, &rows, &dumped, &found, c->why, c->n);
    if (status != FD_OK || !found) {
        return status == FD_OK ? skip(c, line, "no o: not answered") : status;
    }
    const int64_t row_count = (int64_t)the_case.batch * q_len * the_case.heads_q;
    status = answer_new(&a, row_count, the_case.head_dim_v);
    snprintf(c->why, c->n, "%s: no memory for o", line->name);
    if (status == FD_OK) {
        fd_dumped_gather(&dumped, sequences, the_case.batch, q_len, a.o, a.lse);
        a.has_lse = dumped.lse.data != NULL;
        /* What an implementation stores is its own business. */
        the_case.dtype_o = judged_type(&a, row_count * the_case.head_dim_v, dumped.o.dtype, the_case.dtype_o, line);
        status = fd_instance_create(&x, &the_case, c->why, c->n);
    }
    if (status != FD_OK) {
        answer_free(&a);
        return status;
    }
    if (files->has_file) {
        status = fd_case_file_compare(&files->file, files->path, &x, c->why, c->n);
    }
    if (status == FD_OK && files->has_answers) {
        status = fd_case_file_compare(&files->answers, files->answer_path, &x, c->why, c->n);
    }
    if (status == FD_OK) {
        status = judge(c, &x, &a, NULL, line);
    }
    answer_free(&a);
    fd_instance_free(&x);
    return status;
}

static const fd_case *case_named(const fd_case_table *table, const char *name)
{
    for (int32_t i = 0; i < table->count; i++) {
        if (strcmp(table->cases[i].name, name) == 0) {
            return &table->cases[i];
        }
    }
    return NULL;
}

static fd_status judge_folder(court *c, const fd_case_table *table)
{
    const fd_trial_options *o = &c->trial->options;
    fd_case_index index;
    int32_t chosen = 0;
    fd_status status = fd_case_index_read(o->target, &index, c->why, c->n);
    for (int32_t i = 0; i < index.count && status == FD_OK; i++) {
        const fd_case_entry *e = &index.entries[i];
        const fd_case *x = case_named(table, e->name);
        if (x == NULL) {
            status = fd_safetensors_refuse(o->target, c->why, c->n,
                                           "index.csv names case '%.95s', which is not in this "
                                           "table; write the folder anew",
                                           e->name);
            continue;
        }
        if ((o->case_name != NULL && strcmp(o->case_name, x->name) != 0) ||
            (o->family != NULL && strcmp(o->family, x->family) != 0)) {
            continue;
        }
        char path[4200];
        pair files;
        fd_trial_line line = {.verdict = FD_SKIP};
        chosen++;
        fd_progress("check", i, index.count);
        snprintf(line.name, sizeof line.name, "%s", x->name);
        snprintf(line.replay, sizeof line.replay, "flashdecode check %.100s --case '%s'", o->target, x->name);
        snprintf(path, sizeof path, "%s/%s", o->target, e->file);
        status = open_pair(&files, path, c->why, c->n);
        if (status == FD_OK) {
            status = files.has_file || files.has_answers ? judge_case(c, x, &files, &line)
                                                         : skip(c, &line, "its file is not there");
        }
        close_pair(&files);
    }
    if (status == FD_OK && chosen == 0) {
        status =
            fd_safetensors_refuse(o->target, c->why, c->n, "no case in its index.csv matches; drop --case or --family");
    }
    fd_case_index_free(&index);
    return status;
}

/* ---- A problem of somebody's own --------------------------------------------------------------- */

static fd_status judge_part(court *c, const fd_dump *d, const fd_dumped *dumped, const int32_t *sequences,
                            int32_t count, int32_t q_len, bool only)
{
    const fd_dump_part part = {d, sequences, count, q_len};
    fd_trial_line line = {.verdict = FD_SKIP};
    answer a = {.o = NULL};
    fd_instance x;
    snprintf(line.name, sizeof line.name, "%.80s", d->path);
    if (!only) {
        snprintf(line.name, sizeof line.name, "%.80s, sequences of q_len %d", d->path, q_len);
    }
    snprintf(line.replay, sizeof line.replay, "flashdecode check %.200s", d->path);
    if (!d->scale_given) {
        snprintf(line.notes, sizeof line.notes, "sm_scale is not given: 1/sqrt(head_dim), %a",
                 (double)d->problem.sm_scale);
    }
    const int64_t row_count = (int64_t)count * q_len * d->problem.heads_q;
    fd_status status = answer_new(&a, row_count, d->problem.head_dim_v);
    snprintf(c->why, c->n, "%s: no memory for o", line.name);
    if (status == FD_OK) {
        fd_dumped_gather(dumped, sequences, count, q_len, a.o, a.lse);
        a.has_lse = dumped->lse.data != NULL;
        const int32_t dtype_o =
            judged_type(&a, row_count * d->problem.head_dim_v, dumped->o.dtype, d->problem.q.dtype, &line);
        status = fd_dump_instance(&part, line.name, dtype_o, &x, c->why, c->n);
    }
    if (status == FD_OK) {
        status = judge(c, &x, &a, sequences, &line);
        fd_instance_free(&x);
    }
    answer_free(&a);
    return status;
}

/* Sequences of one q_len at a time: a problem of fd.h has one. Those of no row have nothing to judge. */
static fd_status judge_own(court *c, const pair *files)
{
    fd_dump d;
    fd_dumped dumped;
    bool found = false;
    fd_status status = fd_dump_read(&files->file, files->path, &d, c->why, c->n);
    if (status != FD_OK) {
        return status;
    }
    int32_t *sequences = calloc((size_t)d.problem.batch + 1, sizeof *sequences);
    status = find_answer(files, &d.rows, &dumped, &found, c->why, c->n);
    if (status == FD_OK && !found) {
        status = fd_safetensors_refuse(files->path, c->why, c->n, "there is no tensor o to judge; add it");
    }
    if (status == FD_OK && sequences == NULL) {
        snprintf(c->why, c->n, "no memory for a list of sequences");
        status = FD_NO_MEMORY;
    }
    for (int32_t q_len = 1; q_len <= d.problem.q_len && status == FD_OK; q_len++) {
        int32_t count = 0, rest = 0;
        for (int32_t b = 0; b < d.problem.batch; b++) {
            if (d.q_lens[b] == q_len) {
                sequences[count++] = b;
            } else {
                rest += d.q_lens[b] > 0;
            }
        }
        if (count > 0) {
            status = judge_part(c, &d, &dumped, sequences, count, q_len, rest == 0);
        }
    }
    free(sequences);
    fd_dump_free(&d);
    return status;
}

static fd_status judge_file(court *c, const fd_case_table *table)
{
    const fd_trial_options *o = &c->trial->options;
    pair files;
    fd_status status = open_pair(&files, o->target, c->why, c->n);
    if (status == FD_OK && !files.has_file) {
        return fd_safetensors_refuse(o->target, c->why, c->n, "no such file; check the path");
    }
    const char *name = status == FD_OK ? fd_safetensors_metadata(&files.file, "case") : NULL;
    if (status == FD_OK && (o->case_name != NULL || o->family != NULL)) {
        status =
            fd_safetensors_refuse(o->target, c->why, c->n, "--case and --family choose from a folder, not in a file");
    }
    if (status == FD_OK && name == NULL) {
        status = judge_own(c, &files);
    } else if (status == FD_OK) {
        const fd_case *x = case_named(table, name);
        fd_trial_line line = {.verdict = FD_SKIP};
        if (x == NULL) {
            status = fd_safetensors_refuse(o->target, c->why, c->n,
                                           "metadata case '%.95s' is not in this table; drop it, or "
                                           "write the file anew",
                                           name);
        } else {
            snprintf(line.name, sizeof line.name, "%s", x->name);
            snprintf(line.replay, sizeof line.replay, "flashdecode check %.200s", o->target);
            status = judge_case(c, x, &files, &line);
        }
    }
    close_pair(&files);
    return status;
}

fd_status fd_trial_dump(fd_trial *trial, char *why, size_t n)
{
    const fd_trial_options *o = &trial->options;
    const fd_libm_error libm = fd_libm_error_get(NULL);
    court c = {.trial = trial,
               .rounding = fd_host_rounding(&libm),
               .highest = o->highest < FD_TIER_STATISTICAL ? o->highest : FD_TIER_STATISTICAL,
               .suspects = FD_ALL_SUSPECTS,
               .why = why,
               .n = n};
    char path[512];
    struct stat is;
    fd_case_table table = {0};
    if (o->lowest == FD_TIER_METAMORPHIC) {
        snprintf(why, n, "%s: --level metamorphic needs a plug-in, which can be run again", o->target);
        return FD_INVALID;
    }
    if (stat(o->target, &is) != 0) {
        return fd_safetensors_refuse(o->target, why, n, "no such file or folder; check the path");
    }
    snprintf(trial->implementation, sizeof trial->implementation, "%s", o->target);
    snprintf(trial->place, sizeof trial->place, "file");
    given.claims = claims_of(o);
    fd_print_hypotheses(&libm);
    fd_status status = fd_cases_read(fd_data_path("cases.csv", path, sizeof path), &table, why, n);
    if (status == FD_OK) {
        status = S_ISDIR(is.st_mode) ? judge_folder(&c, &table) : judge_file(&c, &table);
    }
    if (status == FD_OK && c.diagnosed > 1) {
        fd_diagnosis_text(c.suspects, trial->over_all, sizeof trial->over_all);
    }
    fd_cases_free(&table);
    return status;
}
