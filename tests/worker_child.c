/* worker_child.c: `flashdecode worker`, the process in which a plug-in is loaded and run. The parent starts it, and asks;
 * it answers until it dies or the parent does. Nothing here decides what is right. */
#define _GNU_SOURCE
#include "worker_protocol.h"
#ifdef __linux__
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "execute.h"
#include "read_floor.h"

static fd_shared *shared;
static const fd_rung *rung;
static const fd_device *device; /* NULL: host */
static unsigned char *nothing;  /* a page without access for each tensor: where only run() may read */

/* ---- Memory ------------------------------------------------------------------------------------ */

static unsigned char *region;
static size_t region_bytes;
static int32_t mapped_layout;

static void cannot(const char *what)
{
    snprintf(shared->text, sizeof shared->text, "the worker cannot %s", what);
    _exit(FD_WORKER_CANNOT);
}

/* Address space beyond what is mapped now; the plug-in's own libraries and the tensors are not counted. */
static void limit_memory(void)
{
    struct rlimit limit;
    const bool unlimited = shared->megabytes == 0 || (device != NULL && strcmp(device->where, "gpu") == 0);
    if (getrlimit(RLIMIT_AS, &limit) == 0) {
        const rlim_t wanted = (rlim_t)(fd_watch_memory() + ((uint64_t)shared->megabytes << 20));
        limit.rlim_cur = unlimited || wanted > limit.rlim_max ? limit.rlim_max : wanted;
        (void)setrlimit(RLIMIT_AS, &limit);
    }
}

/* Lays the segments out with forbidden memory around each. */
static void map_segments(void)
{
    if (mapped_layout == shared->layout) {
        return;
    }
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_AS, &limit);
    }
    if (region != NULL) {
        munmap(region, region_bytes);
    }
    region_bytes = FD_WORKER_GUARD;
    for (int32_t s = 0; s < shared->num_segments; s++) {
        region_bytes += (size_t)shared->segments[s].span + FD_WORKER_GUARD;
    }
    region = (unsigned char *)mmap(NULL, region_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED) {
        region = NULL;
        cannot("map the tensors");
    }
    unsigned char *at = region + FD_WORKER_GUARD;
    for (int32_t s = 0; s < shared->num_segments; s++) {
        fd_segment *segment = &shared->segments[s];
        const int protection = segment->writable || device != NULL ? PROT_READ | PROT_WRITE : PROT_READ;
        if (segment->span > 0 && mmap(at, (size_t)segment->span, protection, MAP_SHARED | MAP_FIXED, FD_WORKER_ARENA,
                                      (off_t)segment->at) == MAP_FAILED) {
            cannot("map a tensor");
        }
        segment->address = (uint64_t)(uintptr_t)(at + segment->offset);
        at += segment->span + FD_WORKER_GUARD;
    }
    mapped_layout = shared->layout;
    limit_memory();
}

static void *data_of(int32_t segment)
{
    return segment < 0 ? NULL : (void *)(uintptr_t)shared->segments[segment].address;
}

/* The problem with its tensors where run() finds them, or, for a function that may read none, where nobody can. */
static fd_problem problem_here(bool readable)
{
    fd_problem p = shared->problem;
    fd_tensor *tensors[FD_NUM_TENSORS];
    fd_problem_tensors(&p, tensors);
    for (int t = 0; t < FD_NUM_TENSORS; t++) {
        if (tensors[t]->data != NULL) {
            tensors[t]->data = readable ? data_of(shared->tensor_segment[t]) : nothing + 4096 * (size_t)t;
        }
        tensors[t]->space = device != NULL ? FD_DEVICE : tensors[t]->space;
    }
    p.kv_lens_host = (const int32_t *)data_of(shared->kv_lens_host_segment);
    return p;
}

/* ---- Running ----------------------------------------------------------------------------------- */

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* k and v once, by one thread: a yardstick that a busy machine disturbs least. */
static void read_inputs(void)
{
    volatile uint64_t sink = 0;
    for (int t = 1; t <= 2; t++) {
        const int32_t segment = shared->tensor_segment[t];
        sink += fd_read_sum(data_of(segment), (size_t)shared->segments[segment].bytes, 1);
    }
    (void)sink;
}

static fd_status run_on_host(void)
{
    const fd_problem p = problem_here(true);
    const fd_plan *plan = (const fd_plan *)data_of(shared->plan_segment);
    const fd_context context = {
        .size = sizeof context, .plan = plan, .plan_device = plan, .workspace = data_of(shared->workspace_segment)};
    shared->doing = FD_DOING_RUN;
    fd_status status = rung->run(&p, &context);
    for (int32_t r = 0; r < shared->repeats && r < FD_WORKER_TIMES && status == FD_OK; r++) {
        const double begun = now_ns();
        status = rung->run(&p, &context);
        const double ended = now_ns();
        read_inputs();
        shared->run_ns[r] = ended - begun;
        shared->floor_ns[r] = now_ns() - ended;
    }
    return status;
}

static fd_status merge_on_host(void)
{
    const fd_problem p = problem_here(true);
    const fd_plan *plan = (const fd_plan *)data_of(shared->plan_segment);
    const fd_context context = {
        .size = sizeof context, .plan = plan, .plan_device = plan, .workspace = data_of(shared->workspace_segment)};
    fd_tensor o[FD_WORKER_PARTS + 1],
        lse[FD_WORKER_PARTS + 1]; /* the last is absent: who reads it falls into nothing */
    memset(o, 0, sizeof o);
    memset(lse, 0, sizeof lse);
    for (int32_t part = 0; part < shared->num_parts; part++) {
        o[part] = shared->part_o[part];
        lse[part] = shared->part_lse[part];
        o[part].data = data_of(shared->part_segment[0][part]);
        lse[part].data = data_of(shared->part_segment[1][part]);
    }
    shared->doing = FD_DOING_MERGE;
    return rung->merge(&p, shared->num_parts, o, lse, &context);
}

static void serve(void)
{
    map_segments();
    shared->text[0] = '\0';
    shared->status = FD_OK;
    const fd_problem p = problem_here(false);
    fd_plan *plan = (fd_plan *)data_of(shared->plan_segment);
#ifdef _OPENMP
    if (shared->threads > 0 && shared->request == FD_ASK_RUN && shared->threads != omp_get_max_threads()) {
        omp_set_num_threads(shared->threads);
    }
#endif
    switch (shared->request) {
    case FD_ASK_SUPPORTS: {
        char why[FD_WORKER_TEXT] = "";
        shared->doing = FD_DOING_SUPPORTS;
        shared->status = (int32_t)rung->supports(&p, why, sizeof why / 2);
        why[sizeof why - 1] = '\0';
        fd_copy_text(shared->text, sizeof shared->text, why);
        break;
    }
    case FD_ASK_PLAN_BYTES:
        shared->doing = FD_DOING_PLAN_BYTES;
        shared->bytes = rung->plan_bytes(&p, &shared->machine);
        break;
    case FD_ASK_PLAN:
        shared->doing = FD_DOING_PLAN;
        shared->status = (int32_t)rung->plan(&p, &shared->machine, plan);
        break;
    case FD_ASK_WORKSPACE:
        shared->doing = FD_DOING_WORKSPACE;
        shared->bytes = rung->workspace(&p, plan);
        break;
    case FD_ASK_ARITH:
        shared->doing = FD_DOING_ARITH;
        rung->arith(&p, plan, shared->kv_len, &shared->arith);
        break;
    case FD_ASK_RUN:
        shared->status =
            (int32_t)(device != NULL ? fd_worker_run_there(shared, device, rung, problem_here(true)) : run_on_host());
        break;
    case FD_ASK_MERGE:
        shared->status =
            (int32_t)(device != NULL ? fd_worker_run_there(shared, device, rung, problem_here(true)) : merge_on_host());
        break;
    default:
        break;
    }
    fd_watch_end(shared, shared->request == FD_ASK_RUN);
    shared->doing = FD_DOING_NOTHING;
}

/* ---- Main -------------------------------------------------------------------------------------- */

int fd_cmd_worker(int argc, char **argv)
{
    struct stat control;
    (void)argc, (void)argv;
    if (fstat(FD_WORKER_CONTROL, &control) != 0 || control.st_size != (off_t)sizeof *shared) {
        fprintf(stderr, "worker: started by `flashdecode check` only\n");
        return 2;
    }
    shared = (fd_shared *)mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, FD_WORKER_CONTROL, 0);
    nothing = (unsigned char *)mmap(NULL, 4096 * FD_NUM_TENSORS, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || nothing == MAP_FAILED) {
        return FD_WORKER_CANNOT;
    }
    shared->nothing = (uint64_t)(uintptr_t)nothing;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != (pid_t)shared->parent) { /* it died before that */
        return FD_WORKER_CANNOT;
    }
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    const struct rlimit no_core = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &no_core);
    setvbuf(stdout, NULL, _IOFBF, 1 << 12);
    fd_watch_signals(shared);
    fd_watch_begin(shared);
    for (uint32_t seen = 0;;) {
        const uint32_t asked = atomic_load(&shared->asked);
        if (asked == seen) {
            (void)syscall(SYS_futex, &shared->asked, FUTEX_WAIT, seen, NULL, NULL, 0);
            continue;
        }
        seen = asked;
        if (shared->request == FD_ASK_LOAD) {
            fd_load_plugin(shared, &rung, &device);
            if (shared->refused == 0) {
                limit_memory();
            }
        } else if (shared->request == FD_ASK_END) {
            shared->doing = FD_DOING_EXIT;
            exit(0);
        } else {
            serve();
        }
        atomic_store(&shared->answered, asked);
        (void)syscall(SYS_futex, &shared->answered, FUTEX_WAKE, 1, NULL, NULL, 0);
    }
}
#else
#include <stdio.h>

int fd_cmd_worker(int argc, char **argv)
{
    (void)argc, (void)argv;
    fprintf(stderr, "worker: plug-ins are judged on Linux only\n");
    return 2;
}
#endif
