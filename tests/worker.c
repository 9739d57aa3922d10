/* worker.c: the descriptor that stands for a plug-in. Its functions ask the worker (worker_ask.c, worker_run.c). */
#include "worker_parts.h"
#ifdef __linux__
#include <stdio.h>
#include <stdlib.h>

#include "execute.h"
#include "given.h"

#define PLAN_BYTES_MOST ((uint64_t)64 << 20)
#define WORKSPACE_MEGABYTES 16384 /* if memory is not limited */
#define WORKSPACE_SHARE 4         /* of --megabytes: the judge holds copies */

/* ---- The descriptor's functions ---------------------------------------------------------------- */

static fd_machine machine_for(const fd_machine *machine)
{
    return fd_worker.loaded.machine.size > 0 ? fd_worker.loaded.machine : *machine;
}

static fd_status supports(const fd_problem *problem, char *why, size_t n)
{
    const double work = (double)problem->batch * problem->heads_q * problem->q_len * (double)problem->kv_capacity *
                        (problem->head_dim + problem->head_dim_v);
    if (strcmp(fd_worker.loaded.where, "emu") == 0 && !fd_worker.options.any_length && work > (double)FD_EMULATED_MAX) {
        snprintf(why, n,
                 "so long a problem, on the emulator: %.0f million multiply-adds, at most %.0f; --case NAME runs it",
                 work * 1e-6, (double)FD_EMULATED_MAX * 1e-6);
        return FD_UNSUPPORTED;
    }
    if (!fd_worker.loaded.has_supports) {
        return FD_OK;
    }
    fd_arena l;
    fd_status status = FD_INVALID;
    pthread_mutex_lock(&fd_worker_lock);
    fd_worker_begin_question(&l, problem, NULL);
    if (fd_worker_lay_out(&l) && fd_worker_ask(FD_ASK_SUPPORTS)) {
        status = fd_worker_known(fd_worker.process.shared->status, "supports()");
        fd_worker_take_text(why, n, fd_worker.process.shared->text, FD_WORKER_TEXT);
    } else {
        snprintf(why, n, "%s", fd_worker.incident.text);
    }
    pthread_mutex_unlock(&fd_worker_lock);
    return status;
}

static size_t plan_bytes(const fd_problem *problem, const fd_machine *machine)
{
    fd_arena l;
    uint64_t bytes = 0;
    pthread_mutex_lock(&fd_worker_lock);
    fd_worker_begin_question(&l, problem, NULL);
    fd_worker.process.shared->machine = machine_for(machine);
    if (fd_worker_lay_out(&l) && fd_worker_ask(FD_ASK_PLAN_BYTES)) {
        bytes = fd_worker.process.shared->bytes;
        if (bytes > PLAN_BYTES_MOST || (bytes > 0 && bytes < sizeof(fd_plan))) {
            fd_worker_blame("plan_bytes() returned %llu; a plan has %zu bytes at least, and 64 MiB at most",
                            (unsigned long long)bytes, sizeof(fd_plan));
            bytes = 0;
        }
    }
    pthread_mutex_unlock(&fd_worker_lock);
    return (size_t)bytes;
}

static fd_status plan(const fd_problem *problem, const fd_machine *machine, fd_plan *to)
{
    const size_t bytes = plan_bytes(problem, machine);
    fd_status status = FD_INVALID;
    fd_arena l;
    pthread_mutex_lock(&fd_worker_lock);
    fd_worker_begin_question(&l, problem, NULL);
    fd_worker.process.shared->machine = machine_for(machine);
    const int32_t segment = fd_arena_place(&l, "the plan", bytes, FD_TENSOR_ALIGNMENT, true, NULL);
    fd_worker.process.shared->plan_segment = segment;
    fd_worker.process.shared->plan_bytes = bytes;
    if (bytes > 0 && fd_worker_lay_out(&l)) {
        unsigned char *pages = fd_worker.process.memory + l.segments[segment].at;
        int64_t at;
        memset(pages + l.segments[segment].offset, 0, bytes);
        if (fd_worker_ask(FD_ASK_PLAN)) {
            status = fd_worker_known(fd_worker.process.shared->status, "plan()");
            memcpy(to, pages + l.segments[segment].offset, bytes);
            if (status == FD_NO_MEMORY) {
                fd_worker_blame("plan() returned FD_NO_MEMORY");
                status = FD_INVALID;
            } else if (!fd_slack_intact(&l.segments[segment], pages, &at)) {
                fd_worker_blame("plan() wrote outside its %zu bytes, at byte %lld", bytes, (long long)at);
                status = FD_INVALID;
            } else if (status == FD_OK && to->size != bytes) {
                fd_worker_blame("plan() set .size = %u, but plan_bytes() said %zu", to->size, bytes);
            }
        }
    }
    pthread_mutex_unlock(&fd_worker_lock);
    return status;
}

static size_t workspace(const fd_problem *problem, const fd_plan *made)
{
    const int64_t megabytes =
        fd_worker.options.megabytes > 0 ? fd_worker.options.megabytes / WORKSPACE_SHARE : WORKSPACE_MEGABYTES;
    const uint64_t most = (uint64_t)megabytes << 20;
    fd_arena l;
    uint64_t bytes = 0;
    pthread_mutex_lock(&fd_worker_lock);
    fd_worker_begin_question(&l, problem, made);
    if (fd_worker_lay_out(&l) && fd_worker_ask(FD_ASK_WORKSPACE)) {
        bytes = fd_worker.process.shared->bytes;
        if (bytes > most) {
            fd_worker_blame("workspace() asks for %llu bytes, more than the %lld MiB that --megabytes allows it",
                            (unsigned long long)bytes, (long long)megabytes);
            bytes = 0;
        }
    }
    pthread_mutex_unlock(&fd_worker_lock);
    return (size_t)bytes;
}

static void ask_arith(const fd_problem *problem, const fd_plan *made, int64_t kv_len, fd_arith *claims)
{
    fd_arena l;
    pthread_mutex_lock(&fd_worker_lock);
    fd_worker_begin_question(&l, problem, made);
    fd_worker.process.shared->kv_len = kv_len;
    fd_worker.process.shared->arith = *claims;
    if (fd_worker_lay_out(&l) && fd_worker_ask(FD_ASK_ARITH)) {
        *claims = fd_worker.process.shared->arith;
    }
    pthread_mutex_unlock(&fd_worker_lock);
}

static void arith(const fd_problem *problem, const fd_plan *made, int64_t kv_len, fd_arith *claims)
{
    if (fd_worker.options.claims != NULL) {
        *claims = *fd_worker.options.claims;
    } else if (fd_worker.loaded.has_arith) {
        ask_arith(problem, made, kv_len, claims);
    }
    if (fd_worker_on_gpu()) { /* the host's expf and logf are not there */
        fd_given_math(claims);
    }
}

static fd_status run_in_place(const fd_problem *problem, const fd_context *context)
{
    (void)problem, (void)context;
    return FD_INVALID; /* never called: fd_execute() calls the runner */
}

/* ---- Opening ----------------------------------------------------------------------------------- */

static fd_status start(char *why, size_t n)
{
    fd_status status = fd_process_start(&fd_worker.process, &fd_worker.options, why, n);
    if (status != FD_OK) {
        return status;
    }
    if (!fd_worker_ask(FD_ASK_LOAD)) {
        snprintf(why, n, "%s", fd_worker.incident.text);
        return FD_DEVICE_ERROR;
    }
    const fd_shared *s = fd_worker.process.shared;
    fd_loaded *x = &fd_worker.loaded;
    *x = s->loaded;
    fd_worker_take_text(x->name, sizeof x->name, s->loaded.name, sizeof x->name);
    fd_worker_take_text(x->idea, sizeof x->idea, s->loaded.idea, sizeof x->idea);
    fd_worker_take_text(x->where, sizeof x->where, s->loaded.where, sizeof x->where);
    fd_worker_take_text(x->device, sizeof x->device, s->loaded.device, sizeof x->device);
    fd_worker.loaded.caps.spaces |= 1u << FD_HOST; /* the judge hands over host memory; the worker moves it */
    fd_worker.gives_lse = (fd_worker.loaded.caps.features & FD_LSE) != 0;
    fd_worker.loaded.caps.features |= FD_LSE;
    fd_worker_take_text(why, n, s->text, sizeof s->text);
    return s->refused == 0 ? FD_OK : s->refused == 2 ? FD_NO_DEVICE : FD_INVALID;
}

fd_status fd_worker_open(const fd_worker_options *options, char *why, size_t n)
{
    memset(&fd_worker, 0, sizeof fd_worker);
    fd_worker.options = *options;
    const fd_status status = start(why, n);
    if (status != FD_OK) {
        return status;
    }
    const fd_loaded *x = &fd_worker.loaded;
    fd_worker.rung = (fd_rung){.size = sizeof(fd_rung),
                               .abi = FD_ABI,
                               .name = fd_worker.loaded.name,
                               .idea = fd_worker.loaded.idea,
                               .caps = &fd_worker.loaded.caps,
                               .supports = supports,
                               .plan_bytes = x->has_plan ? plan_bytes : NULL,
                               .plan = x->has_plan ? plan : NULL,
                               .workspace = x->has_workspace ? workspace : NULL,
                               .run = run_in_place,
                               .arith = x->has_arith || options->claims != NULL || fd_worker_on_gpu() ? arith : NULL};
    fd_use_runner(&fd_worker.rung, fd_worker_run, fd_worker.gives_lse);
    return FD_OK;
}

bool fd_worker_finish(void)
{
    fd_worker.incident = (fd_incident){.happened = false};
    return fd_process_end(&fd_worker.process, &fd_worker.options, &fd_worker.incident);
}

void fd_worker_close(void)
{
    fd_use_runner(NULL, NULL, true);
    fd_process_free(&fd_worker.process);
}

const fd_rung *fd_worker_rung(void)
{
    return &fd_worker.rung;
}

const fd_loaded *fd_worker_loaded(void)
{
    return &fd_worker.loaded;
}

bool fd_worker_begin(char *why, size_t n)
{
    fd_worker.incident = (fd_incident){.happened = false};
    fd_worker.conduct = 0;
    fd_worker.at_start = false;
    if (fd_worker.process.pid > 0) {
        return true;
    }
    return start(why, n) == FD_OK;
}

const fd_incident *fd_worker_incident(void)
{
    return &fd_worker.incident;
}

void fd_worker_time(int32_t repeats)
{
    fd_worker.repeats = repeats < FD_WORKER_TIMES ? repeats : FD_WORKER_TIMES;
}

const double *fd_worker_run_ns(void)
{
    return fd_worker.process.shared->run_ns;
}

const double *fd_worker_floor_ns(void)
{
    return fd_worker.process.shared->floor_ns;
}

uint32_t fd_worker_conduct(char text[FD_NUM_CONDUCTS][160])
{
    memcpy(text, fd_worker.conduct_text, sizeof fd_worker.conduct_text);
    return fd_worker.conduct;
}
#endif
