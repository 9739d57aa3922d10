/* worker.c: the descriptor that stands for a plug-in. Its functions lay the tensors out in the arena and ask the worker. */
#define _GNU_SOURCE
#include "worker.h"
#ifdef __linux__
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "execute.h"
#include "given.h"
#include "text.h"
#include "worker_arena.h"

#define PLAN_BYTES_MOST ((uint64_t)64 << 20)
#define WORKSPACE_MEGABYTES 16384 /* if memory is not limited */
#define WORKSPACE_SHARE 4         /* of --megabytes: the judge holds copies */

static struct {
    fd_worker_options options;
    fd_process process;
    fd_loaded loaded;
    fd_rung rung;
    fd_incident incident;
    uint32_t conduct;
    char conduct_text[FD_NUM_CONDUCTS][160];
    bool gives_lse;
    int32_t repeats;   /* timed after each run */
    int32_t num_parts; /* > 0: run() is merge(), of these */
    const fd_tensor *part_o, *part_lse;
    bool at_start; /* tensors begin with their pages, instead of ending with them: two runs of four */
    uint32_t runs;
} worker;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the judge asks arith() from many threads */

/* ---- Asking ------------------------------------------------------------------------------------ */

/* What no status can say, and no death. */
static void blame(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void blame(const char *format, ...)
{
    if (!worker.incident.happened) {
        va_list arguments;
        va_start(arguments, format);
        worker.incident = (fd_incident){.happened = true};
        vsnprintf(worker.incident.text, sizeof worker.incident.text, format, arguments);
        va_end(arguments);
        fd_text_clean(worker.incident.text);
    }
}

/* A text that the worker left; its process may have written anything there. */
static void take_text(char *to, size_t n, const char *from, size_t bytes)
{
    snprintf(to, n, "%.*s", (int)bytes - 1, from);
    fd_text_clean(to);
}

static bool ask(enum fd_request request)
{
    fd_shared *s = worker.process.shared;
    const bool answered = fd_process_ask(&worker.process, &worker.options, request, &worker.incident);
    for (int kind = 0; kind < FD_NUM_CONDUCTS; kind++) {
        if ((s->conduct & ~worker.conduct) >> kind & 1u) {
            snprintf(worker.conduct_text[kind], sizeof worker.conduct_text[kind], "%.120s, in %s",
                     s->conduct_text[kind], fd_doing_text(s->conduct_doing[kind]));
            fd_text_clean(worker.conduct_text[kind]);
        }
    }
    worker.conduct |= s->conduct;
    s->conduct = 0;
    return answered;
}

/* ---- The question ------------------------------------------------------------------------------ */

static bool lay_out(const fd_arena *l)
{
    if (!fd_arena_fill(l, &worker.process)) {
        blame("no memory for the tensors of this case, %.1f MiB", (double)l->bytes / 0x1p20);
        return false;
    }
    return true;
}

/* The question's common part: the problem without its tensors, and what is readable without them. */
static void begin_question(fd_arena *l, const fd_problem *problem, const fd_plan *plan)
{
    fd_shared *s = worker.process.shared;
    fd_tensor *tensors[FD_NUM_TENSORS];
    *l = (fd_arena){.at_start = worker.at_start};
    s->problem = *problem;
    s->problem.kv_lens_host = NULL;
    if (!worker.gives_lse) {
        s->problem.lse.data = NULL;
        s->problem.features &= ~(uint32_t)FD_LSE;
    }
    fd_problem_tensors(&s->problem, tensors);
    for (int t = 0; t < FD_NUM_TENSORS; t++) {
        tensors[t]->data = tensors[t]->data != NULL ? (void *)(uintptr_t)1 : NULL;
        s->tensor_segment[t] = -1;
    }
    s->workspace_segment = s->plan_segment = s->kv_lens_host_segment = -1;
    if (problem->kv_lens_host != NULL) {
        s->kv_lens_host_segment = fd_arena_place(l, "kv_lens_host", (uint64_t)problem->batch * sizeof(int32_t),
                                                 sizeof(int32_t), false, problem->kv_lens_host);
    }
    if (plan != NULL) {
        s->plan_segment = fd_arena_place(l, "the plan", plan->size, FD_TENSOR_ALIGNMENT, false, plan);
    }
}

/* ---- The descriptor's functions ---------------------------------------------------------------- */

static fd_status known(int32_t status, const char *function)
{
    if (status < FD_OK || status > FD_DEVICE_ERROR) {
        blame("%s returned %d, which is no fd_status", function, status);
        return FD_INVALID;
    }
    return (fd_status)status;
}

static fd_machine machine_for(const fd_machine *machine)
{
    return worker.loaded.machine.size > 0 ? worker.loaded.machine : *machine;
}

static fd_status supports(const fd_problem *problem, char *why, size_t n)
{
    const double work = (double)problem->batch * problem->heads_q * problem->q_len * (double)problem->kv_capacity *
                        (problem->head_dim + problem->head_dim_v);
    if (strcmp(worker.loaded.where, "emu") == 0 && !worker.options.any_length && work > (double)FD_EMULATED_MAX) {
        snprintf(why, n,
                 "so long a problem, on the emulator: %.0f million multiply-adds, at most %.0f; --case NAME runs it",
                 work * 1e-6, (double)FD_EMULATED_MAX * 1e-6);
        return FD_UNSUPPORTED;
    }
    if (!worker.loaded.has_supports) {
        return FD_OK;
    }
    fd_arena l;
    fd_status status = FD_INVALID;
    pthread_mutex_lock(&lock);
    begin_question(&l, problem, NULL);
    if (lay_out(&l) && ask(FD_ASK_SUPPORTS)) {
        status = known(worker.process.shared->status, "supports()");
        take_text(why, n, worker.process.shared->text, FD_WORKER_TEXT);
    } else {
        snprintf(why, n, "%s", worker.incident.text);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static size_t plan_bytes(const fd_problem *problem, const fd_machine *machine)
{
    fd_arena l;
    uint64_t bytes = 0;
    pthread_mutex_lock(&lock);
    begin_question(&l, problem, NULL);
    worker.process.shared->machine = machine_for(machine);
    if (lay_out(&l) && ask(FD_ASK_PLAN_BYTES)) {
        bytes = worker.process.shared->bytes;
        if (bytes > PLAN_BYTES_MOST || (bytes > 0 && bytes < sizeof(fd_plan))) {
            blame("plan_bytes() returned %llu; a plan has %zu bytes at least, and 64 MiB at most",
                  (unsigned long long)bytes, sizeof(fd_plan));
            bytes = 0;
        }
    }
    pthread_mutex_unlock(&lock);
    return (size_t)bytes;
}

static fd_status plan(const fd_problem *problem, const fd_machine *machine, fd_plan *to)
{
    const size_t bytes = plan_bytes(problem, machine);
    fd_status status = FD_INVALID;
    fd_arena l;
    pthread_mutex_lock(&lock);
    begin_question(&l, problem, NULL);
    worker.process.shared->machine = machine_for(machine);
    const int32_t segment = fd_arena_place(&l, "the plan", bytes, FD_TENSOR_ALIGNMENT, true, NULL);
    worker.process.shared->plan_segment = segment;
    worker.process.shared->plan_bytes = bytes;
    if (bytes > 0 && lay_out(&l)) {
        unsigned char *pages = worker.process.memory + l.segments[segment].at;
        int64_t at;
        memset(pages + l.segments[segment].offset, 0, bytes);
        if (ask(FD_ASK_PLAN)) {
            status = known(worker.process.shared->status, "plan()");
            memcpy(to, pages + l.segments[segment].offset, bytes);
            if (status == FD_NO_MEMORY) {
                blame("plan() returned FD_NO_MEMORY");
                status = FD_INVALID;
            } else if (!fd_slack_intact(&l.segments[segment], pages, &at)) {
                blame("plan() wrote outside its %zu bytes, at byte %lld", bytes, (long long)at);
                status = FD_INVALID;
            } else if (status == FD_OK && to->size != bytes) {
                blame("plan() set .size = %u, but plan_bytes() said %zu", to->size, bytes);
            }
        }
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static size_t workspace(const fd_problem *problem, const fd_plan *made)
{
    const int64_t megabytes =
        worker.options.megabytes > 0 ? worker.options.megabytes / WORKSPACE_SHARE : WORKSPACE_MEGABYTES;
    const uint64_t most = (uint64_t)megabytes << 20;
    fd_arena l;
    uint64_t bytes = 0;
    pthread_mutex_lock(&lock);
    begin_question(&l, problem, made);
    if (lay_out(&l) && ask(FD_ASK_WORKSPACE)) {
        bytes = worker.process.shared->bytes;
        if (bytes > most) {
            blame("workspace() asks for %llu bytes, more than the %lld MiB that --megabytes allows it",
                  (unsigned long long)bytes, (long long)megabytes);
            bytes = 0;
        }
    }
    pthread_mutex_unlock(&lock);
    return (size_t)bytes;
}

static bool on_gpu(void)
{
    return strcmp(worker.loaded.where, "gpu") == 0;
}

static void ask_arith(const fd_problem *problem, const fd_plan *made, int64_t kv_len, fd_arith *claims)
{
    fd_arena l;
    pthread_mutex_lock(&lock);
    begin_question(&l, problem, made);
    worker.process.shared->kv_len = kv_len;
    worker.process.shared->arith = *claims;
    if (lay_out(&l) && ask(FD_ASK_ARITH)) {
        *claims = worker.process.shared->arith;
    }
    pthread_mutex_unlock(&lock);
}

static void arith(const fd_problem *problem, const fd_plan *made, int64_t kv_len, fd_arith *claims)
{
    if (worker.options.claims != NULL) {
        *claims = *worker.options.claims;
    } else if (worker.loaded.has_arith) {
        ask_arith(problem, made, kv_len, claims);
    }
    if (on_gpu()) { /* the host's expf and logf are not there */
        fd_given_math(claims);
    }
}

static fd_status run_in_place(const fd_problem *problem, const fd_context *context)
{
    (void)problem, (void)context;
    return FD_INVALID; /* never called: fd_execute() calls the runner */
}

/* After FD_OK: what a page's end did not stop. */
static fd_status outputs_intact(const fd_arena *l, const char *function)
{
    for (int32_t i = 0; i < l->count; i++) {
        const fd_segment *x = &l->segments[i];
        int64_t at;
        if (x->writable && !fd_slack_intact(x, worker.process.memory + x->at, &at)) {
            blame("wrote %s %s, at byte %lld of %llu, in %s", at < 0 ? "before the start of" : "past the end of",
                  x->name, (long long)at, (unsigned long long)x->bytes, function);
            return FD_INVALID;
        }
    }
    return FD_OK;
}

/* Of q, k, v and o, two begin 16 bytes past a multiple of 32, as is all they are promised, and the other two end
 * where their pages do, so that the first byte behind is forbidden. Which of them it is depends on the shape, and
 * is the same in every run. */
static int odd_ones(const fd_problem *p)
{
    return (p->heads_q ^ p->head_dim >> 3) & 1;
}

/* The results that merge() is given: as q and lse are handed out. */
static void place_parts(fd_arena *l, const fd_problem *problem)
{
    fd_shared *s = worker.process.shared;
    s->num_parts = worker.num_parts;
    for (int32_t part = 0; part < worker.num_parts; part++) {
        const fd_tensor *o = &worker.part_o[part], *lse = &worker.part_lse[part];
        s->part_o[part] = *o;
        s->part_lse[part] = *lse;
        s->part_segment[0][part] =
            fd_arena_place(l, "partial_o", fd_view_bytes(problem, 3, o), FD_TENSOR_ALIGNMENT, false, o->data);
        if (part % 2 == 0) {
            fd_arena_no_more_than_16(l);
        }
        s->part_segment[1][part] =
            fd_arena_place(l, "partial_lse", fd_view_bytes(problem, 4, lse), sizeof(float), false, lse->data);
    }
}

static fd_status runner(const fd_problem *problem, const fd_plan *made, const fd_buffer *scratch, char *why, size_t n)
{
    const bool merges = worker.num_parts > 0;
    const char *function = merges ? "merge()" : "run()";
    fd_problem p = *problem;
    fd_tensor *tensors[FD_NUM_TENSORS];
    int32_t segment[FD_NUM_TENSORS]; /* what the worker shares may have been written over */
    fd_status status = FD_INVALID;
    fd_arena l;
    fd_problem_tensors(&p, tensors);
    if (!worker.gives_lse && p.lse.data != NULL) {
        fd_tensor zeros = p.lse; /* the gaps between its elements stay what they are */
        for (int64_t row = 0; row < fd_row_count(problem); row++) {
            int32_t b, t, h;
            fd_row_of_index(problem, row, &b, &t, &h);
            fd_store(&zeros, fd_row_at(&zeros, b, t, h), 0.0f);
        }
        p.lse.data = NULL;
    }
    pthread_mutex_lock(&lock);
    fd_shared *s = worker.process.shared;
    worker.at_start = worker.runs++ % 4 < 2; /* two in a row: who takes an address for its contents is found out */
    begin_question(&l, problem, made);
    for (int t = 0; t < FD_NUM_TENSORS; t++) {
        const bool written = t == 3 || t == 4; /* o and lse */
        const bool small = t >= 4;             /* read by the element */
        segment[t] = -1;
        if (tensors[t]->data != NULL) {
            segment[t] = s->tensor_segment[t] =
                fd_arena_place(&l, fd_tensor_names[t], fd_view_bytes(problem, t, tensors[t]),
                               small ? sizeof(float) : FD_TENSOR_ALIGNMENT, written, tensors[t]->data);
            if (!small && t % 2 == odd_ones(problem)) {
                fd_arena_no_more_than_16(&l);
            }
        }
    }
    place_parts(&l, problem);
    s->workspace_segment = fd_arena_place(&l, "the workspace", scratch->bytes, 256, true, scratch->data);
    s->repeats = worker.repeats;
#ifdef _OPENMP
    s->threads = omp_get_max_threads();
#endif
    if (!worker.incident.happened && lay_out(&l) && ask(merges ? FD_ASK_MERGE : FD_ASK_RUN)) {
        status = known(s->status, function);
        if (status == FD_NO_MEMORY) { /* to the judge that would mean its own */
            status = FD_INVALID;
            blame("%s returned FD_NO_MEMORY: it allocates, and reached its limit (--megabytes)", function);
        } else if (status != FD_OK && s->text[0] == '\0') {
            blame("%s returned %s", function, fd_status_name(status));
        } else if (status != FD_OK) {
            blame("%.300s", s->text);
        } else {
            status = outputs_intact(&l, function);
        }
        if (status == FD_DEVICE_ERROR && on_gpu()) { /* CUDA refuses all else then */
            worker.incident.death = true;
            fd_process_stop(&worker.process);
        }
        for (int t = 3; t <= 4 && status == FD_OK; t++) {
            if (segment[t] >= 0) {
                const fd_segment *x = &l.segments[segment[t]];
                memcpy(tensors[t]->data, worker.process.memory + x->at + x->offset, x->bytes);
            }
        }
    }
    snprintf(why, n, "%s", worker.incident.text);
    pthread_mutex_unlock(&lock);
    return status;
}

fd_status fd_worker_merge(const fd_problem *problem, const fd_plan *plan, const fd_buffer *scratch, int32_t num_parts,
                          const fd_tensor *part_o, const fd_tensor *part_lse, char *why, size_t n)
{
    worker.num_parts = num_parts;
    worker.part_o = part_o;
    worker.part_lse = part_lse;
    const fd_status status = runner(problem, plan, scratch, why, n);
    worker.num_parts = 0;
    return status;
}

/* ---- Opening ----------------------------------------------------------------------------------- */

static fd_status start(char *why, size_t n)
{
    fd_status status = fd_process_start(&worker.process, &worker.options, why, n);
    if (status != FD_OK) {
        return status;
    }
    if (!ask(FD_ASK_LOAD)) {
        snprintf(why, n, "%s", worker.incident.text);
        return FD_DEVICE_ERROR;
    }
    const fd_shared *s = worker.process.shared;
    fd_loaded *x = &worker.loaded;
    *x = s->loaded;
    take_text(x->name, sizeof x->name, s->loaded.name, sizeof x->name);
    take_text(x->idea, sizeof x->idea, s->loaded.idea, sizeof x->idea);
    take_text(x->where, sizeof x->where, s->loaded.where, sizeof x->where);
    take_text(x->device, sizeof x->device, s->loaded.device, sizeof x->device);
    worker.loaded.caps.spaces |= 1u << FD_HOST; /* the judge hands over host memory; the worker moves it */
    worker.gives_lse = (worker.loaded.caps.features & FD_LSE) != 0;
    worker.loaded.caps.features |= FD_LSE;
    take_text(why, n, s->text, sizeof s->text);
    return s->refused == 0 ? FD_OK : s->refused == 2 ? FD_NO_DEVICE : FD_INVALID;
}

fd_status fd_worker_open(const fd_worker_options *options, char *why, size_t n)
{
    memset(&worker, 0, sizeof worker);
    worker.options = *options;
    const fd_status status = start(why, n);
    if (status != FD_OK) {
        return status;
    }
    const fd_loaded *x = &worker.loaded;
    worker.rung = (fd_rung){.size = sizeof(fd_rung),
                            .abi = FD_ABI,
                            .name = worker.loaded.name,
                            .idea = worker.loaded.idea,
                            .caps = &worker.loaded.caps,
                            .supports = supports,
                            .plan_bytes = x->has_plan ? plan_bytes : NULL,
                            .plan = x->has_plan ? plan : NULL,
                            .workspace = x->has_workspace ? workspace : NULL,
                            .run = run_in_place,
                            .arith = x->has_arith || options->claims != NULL || on_gpu() ? arith : NULL};
    fd_use_runner(&worker.rung, runner, worker.gives_lse);
    return FD_OK;
}

bool fd_worker_finish(void)
{
    worker.incident = (fd_incident){.happened = false};
    return fd_process_end(&worker.process, &worker.options, &worker.incident);
}

void fd_worker_close(void)
{
    fd_use_runner(NULL, NULL, true);
    fd_process_free(&worker.process);
}

const fd_rung *fd_worker_rung(void)
{
    return &worker.rung;
}

const fd_loaded *fd_worker_loaded(void)
{
    return &worker.loaded;
}

bool fd_worker_begin(char *why, size_t n)
{
    worker.incident = (fd_incident){.happened = false};
    worker.conduct = 0;
    worker.at_start = false;
    if (worker.process.pid > 0) {
        return true;
    }
    return start(why, n) == FD_OK;
}

const fd_incident *fd_worker_incident(void)
{
    return &worker.incident;
}

void fd_worker_time(int32_t repeats)
{
    worker.repeats = repeats < FD_WORKER_TIMES ? repeats : FD_WORKER_TIMES;
}

const double *fd_worker_run_ns(void)
{
    return worker.process.shared->run_ns;
}

const double *fd_worker_floor_ns(void)
{
    return worker.process.shared->floor_ns;
}

uint32_t fd_worker_conduct(char text[FD_NUM_CONDUCTS][160])
{
    memcpy(text, worker.conduct_text, sizeof worker.conduct_text);
    return worker.conduct;
}
#endif
