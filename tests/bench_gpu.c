/* bench_gpu.c: see bench_gpu.h.
 *
 * A CUDA graph holds calls that go round enough sets of K and V to hold several times the L2 cache, so that every call
 * finds its own set in memory, "cold", as the next layer of a model would. The read floor and the launch floor are
 * measured in the same way. Host work is not timed. */
#include "bench_gpu.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"

#ifdef FD_GPU

#include "execute.h"
#include "gpu/launch.h"
#include "gpu/measure.h"
#include "ladder.h"
#include "machine.h"
#include "mirror.h"
#include "resume.h"

#define L2_MULTIPLE 6              /* the sets hold so many L2 caches */
#define CALLS_MIN 8                /* of a graph: its ends weigh little */
#define KV_MAX ((int64_t)32 << 30) /* bytes of K and V of a point; two sets of them must fit */
#define REPLAYS 101
#define SECONDS 0.2 /* of replays a point and rung */

static const char csv_head[] =
    "rung,where,dtype_q,dtype_kv,dtype_o,batch,heads_q,heads_kv,head_dim,q_len,kv_len,threads,num_splits,cache,"
    "ns_median,ns_p25,ns_p75,repeats,bytes,floor_ns,err_max,err_p50,commit,machine_id,name,parent,workspace_bytes,"
    "launch_ns";

typedef struct timing { /* nanoseconds a call */
    double median, p25, p75;
    int replays;
} timing;

/* One point: so many sets of tensors in device memory. */
typedef struct point {
    fd_problem problem; /* of set 0 */
    int sets, calls;
    int64_t kv_bytes, q_bytes, o_bytes, bytes; /* of k or v, q, o of a set; that a perfect kernel moves */
    unsigned char *k, *v, *q, *o, *lse;
    fd_context context;
    const fd_rung *rung;
    int way; /* of reading */
} point;

typedef struct session {
    const fd_bench_options *options;
    const fd_device *gpu;
    fd_machine_record machine;
    fd_resume csv; /* .file NULL: none */
    double launch_ns;
    int64_t timed, skipped, failed;
} session;

/* ---- What is timed ----------------------------------------------------------------------------- */

static fd_problem problem_of(const point *x, int set)
{
    fd_problem p = x->problem;
    p.k.data = x->k + set * x->kv_bytes;
    p.v.data = x->v + set * x->kv_bytes;
    p.q.data = x->q + set * x->q_bytes;
    p.o.data = x->o + set * x->o_bytes;
    return p;
}

static fd_status call_rung(void *data, int call, void *stream)
{
    point *x = (point *)data;
    const fd_problem p = problem_of(x, call % x->sets);
    x->context.stream = stream;
    return x->rung->run(&p, &x->context);
}

static fd_status call_read(void *data, int call, void *stream)
{
    const point *x = (const point *)data;
    const fd_problem p = problem_of(x, call % x->sets);
    return fd_gpu_read(p.k.data, p.v.data, (size_t)x->kv_bytes, x->way, stream);
}

static fd_status call_nothing(void *data, int call, void *stream)
{
    (void)data, (void)call;
    return fd_gpu_nothing(stream);
}

static fd_status time_work(fd_gpu_work *work, void *data, int calls, timing *t, char *why, size_t n)
{
    double ns[REPLAYS];
    const fd_status status = fd_gpu_time(work, data, calls, SECONDS, ns, REPLAYS, &t->replays, why, n);
    if (status == FD_OK) {
        fd_sort(ns, t->replays);
        t->median = fd_quantile(ns, t->replays, 0.5);
        t->p25 = fd_quantile(ns, t->replays, 0.25);
        t->p75 = fd_quantile(ns, t->replays, 0.75);
    }
    return status;
}

/* ---- A point ----------------------------------------------------------------------------------- */

static void free_point(const session *s, point *x)
{
    unsigned char *const blocks[] = {x->k, x->v, x->q, x->o, x->lse};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        s->gpu->release(blocks[i]);
    }
    *x = (point){.sets = 0};
}

static fd_status take(const session *s, unsigned char **block, int64_t bytes, char *why, size_t n)
{
    void *data = NULL;
    const fd_status status = s->gpu->alloc(&data, (size_t)bytes, why, n);
    *block = (unsigned char *)data;
    return status;
}

static int64_t aligned(int64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static fd_status make_point(const session *s, const fd_bench_shape *shape, point *x, char *why, size_t n)
{
    const int64_t d = shape->head_dim, q_rows = (int64_t)shape->batch * shape->heads_q;
    const int64_t l2 = s->gpu->machine.l2_bytes;
    const int64_t kv = fd_bench_kv_bytes(shape) / 2; /* checked by the caller */
    const int64_t kv_elements = kv / (int64_t)fd_dtype_bytes(shape->dtype_kv);
    *x = (point){.kv_bytes = aligned(kv)};
    x->q_bytes = aligned(q_rows * d * (int64_t)fd_dtype_bytes(shape->dtype_q));
    x->o_bytes = aligned(q_rows * d * (int64_t)fd_dtype_bytes(shape->dtype_o));
    x->bytes = 2 * kv + q_rows * (d * (int64_t)(fd_dtype_bytes(shape->dtype_q) + fd_dtype_bytes(shape->dtype_o)) + 4);
    x->sets = (int)((L2_MULTIPLE * l2 + 2 * kv - 1) / (2 * kv));
    x->sets = x->sets < 2 ? 2 : x->sets;
    x->calls = (CALLS_MIN + x->sets - 1) / x->sets * x->sets;
    x->problem = (fd_problem){
        .size = sizeof(fd_problem),
        .batch = shape->batch,
        .heads_q = shape->heads_q,
        .heads_kv = shape->heads_kv,
        .q_len = 1,
        .head_dim = shape->head_dim,
        .head_dim_v = shape->head_dim,
        .kv_capacity = shape->kv_len,
        .q = {NULL, {shape->heads_q * d, shape->heads_q * d, d, 1}, shape->dtype_q, FD_DEVICE},
        .k = {NULL, {shape->heads_kv * shape->kv_len * d, d, shape->kv_len * d, 1}, shape->dtype_kv, FD_DEVICE},
        .v = {NULL, {shape->heads_kv * shape->kv_len * d, d, shape->kv_len * d, 1}, shape->dtype_kv, FD_DEVICE},
        .o = {NULL, {shape->heads_q * d, shape->heads_q * d, d, 1}, shape->dtype_o, FD_DEVICE},
        .lse = {NULL, {shape->heads_q, shape->heads_q, 1, 0}, FD_F32, FD_DEVICE},
        .sm_scale = 1.0f / sqrtf((float)shape->head_dim),
        .window_left = -1,
        .window_right = -1,
    };
    fd_status status = take(s, &x->k, x->sets * x->kv_bytes, why, n);
    status = status == FD_OK ? take(s, &x->v, x->sets * x->kv_bytes, why, n) : status;
    status = status == FD_OK ? take(s, &x->q, x->sets * x->q_bytes, why, n) : status;
    status = status == FD_OK ? take(s, &x->o, x->sets * x->o_bytes, why, n) : status;
    status = status == FD_OK ? take(s, &x->lse, q_rows * 4, why, n) : status;
    for (int set = 0; set < x->sets && status == FD_OK; set++) {
        const fd_problem p = problem_of(x, set);
        status = fd_gpu_fill(&p.q, q_rows * d, (uint64_t)(3 * set + 1), why, n);
        status = status == FD_OK ? fd_gpu_fill(&p.k, kv_elements, (uint64_t)(3 * set + 2), why, n) : status;
        status = status == FD_OK ? fd_gpu_fill(&p.v, kv_elements, (uint64_t)(3 * set + 3), why, n) : status;
    }
    x->problem = problem_of(x, 0);
    x->problem.lse.data = x->lse;
    x->problem.features = fd_features(&x->problem);
    if (status != FD_OK) {
        free_point(s, x);
    }
    return status;
}

/* The fastest of the ways; the first call allocates, which a graph cannot. */
static fd_status read_floor(point *x, double *floor_ns, char *why, size_t n)
{
    fd_status status = fd_gpu_read(x->k, x->v, (size_t)x->kv_bytes, 0, NULL);
    *floor_ns = HUGE_VAL;
    for (x->way = 0; x->way < FD_GPU_READ_WAYS && status == FD_OK; x->way++) {
        timing t;
        status = time_work(call_read, x, x->calls, &t, why, n);
        *floor_ns = status == FD_OK ? fmin(*floor_ns, t.median) : *floor_ns;
    }
    return status;
}

/* ---- A rung at a point ------------------------------------------------------------------------- */

/* Is every element of the first o a number? It was NaN before. Right or wrong is for verify to say. */
static fd_status all_written(const session *s, const point *x, char *why, size_t n)
{
    const size_t elements = (size_t)x->problem.batch * (size_t)x->problem.heads_q * (size_t)x->problem.head_dim_v;
    const size_t bytes = elements * fd_dtype_bytes(x->problem.o.dtype);
    fd_tensor o = x->problem.o;
    o.data = malloc(bytes);
    fd_status status = o.data != NULL ? s->gpu->read(o.data, x->o, bytes, why, n) : FD_NO_MEMORY;
    for (size_t i = 0; i < elements && status == FD_OK; i++) {
        if (!isfinite(fd_load(&o, (int64_t)i))) {
            snprintf(why, n, "o is no number, or was not written");
            status = FD_INVALID;
        }
    }
    free(o.data);
    return status;
}

static fd_status poison_o(const session *s, const point *x, char *why, size_t n)
{
    void *poison = malloc((size_t)x->o_bytes);
    if (poison == NULL) {
        snprintf(why, n, "no memory");
        return FD_NO_MEMORY;
    }
    memset(poison, 0xff, (size_t)x->o_bytes);
    const fd_status status = s->gpu->write(x->o, poison, (size_t)x->o_bytes, why, n);
    free(poison);
    return status;
}

static fd_status time_rung(const session *s, point *x, const fd_rung *rung, timing *t, int32_t *num_splits,
                           size_t *workspace_bytes, char *why, size_t n)
{
    fd_plan *plan = NULL;
    void *plan_device = NULL, *workspace = NULL;
    *num_splits = 0;
    fd_status status = fd_supports(rung, &x->problem, why, n);
    if (status != FD_OK) {
        return FD_UNSUPPORTED;
    }
    status = fd_plan_for(rung, &x->problem, &plan, why, n);
    if (status == FD_OK && plan != NULL) {
        *num_splits = plan->num_splits;
        status = s->gpu->alloc(&plan_device, plan->size, why, n);
        status = status == FD_OK ? s->gpu->write(plan_device, plan, plan->size, why, n) : status;
    }
    *workspace_bytes = status == FD_OK ? fd_workspace_bytes(rung, &x->problem, plan) : 0;
    status = status == FD_OK ? s->gpu->alloc(&workspace, *workspace_bytes, why, n) : status;
    status = status == FD_OK ? poison_o(s, x, why, n) : status;
    if (status == FD_OK) {
        x->rung = rung;
        x->context = (fd_context){.size = sizeof x->context,
                                  .plan = plan,
                                  .plan_device = (const fd_plan *)plan_device,
                                  .workspace = workspace};
        status = time_work(call_rung, x, x->calls, t, why, n);
    }
    status = status == FD_OK ? all_written(s, x, why, n) : status;
    s->gpu->release(workspace);
    s->gpu->release(plan_device);
    free(plan);
    return status;
}

/* ---- The table and the file -------------------------------------------------------------------- */

/* The columns that say which point this is. */
static void key_of(const fd_bench_shape *c, const fd_rung *rung, char *key, size_t n)
{
    snprintf(key, n, "%" PRId32 ",gpu,%s,%s,%s,%" PRId32 ",%" PRId32 ",%" PRId32 ",%" PRId32 ",1,%" PRId64 ",",
             rung->number, fd_dtype_name(c->dtype_q), fd_dtype_name(c->dtype_kv), fd_dtype_name(c->dtype_o), c->batch,
             c->heads_q, c->heads_kv, c->head_dim, c->kv_len);
}

static fd_status report(session *s, const fd_bench_shape *shape, const point *x, const fd_rung *rung, const timing *t,
                        int32_t num_splits, size_t workspace_bytes, double floor_ns, char *why, size_t n)
{
    char key[160], row[512];
    printf("%02" PRId32 " %-16.16s %4" PRId32 " %3" PRId32 ":%-3" PRId32 " %8" PRId64 " %6" PRId32
           " %11.2f us %7.0f GB/s %7.2f\n",
           rung->number, rung->name, shape->batch, shape->heads_q, shape->heads_kv, shape->kv_len, num_splits,
           t->median * 1e-3, (double)x->bytes / t->median, t->median / floor_ns);
    fflush(stdout);
    if (s->csv.file == NULL) {
        return FD_OK;
    }
    key_of(shape, rung, key, sizeof key);
    snprintf(row, sizeof row, "%s0,%" PRId32 ",cold,%.1f,%.1f,%.1f,%d,%" PRId64 ",%.1f,,,%s,%s,%s,%" PRId32 ",%zu,%.1f",
             key, num_splits, t->median, t->p25, t->p75, t->replays, x->bytes, floor_ns, s->machine.commit,
             s->machine.machine_id, rung->name, rung->parent, workspace_bytes, s->launch_ns);
    return fd_resume_add(&s->csv, row, why, n);
}

/* ---- A sweep ----------------------------------------------------------------------------------- */

static bool wanted(const session *s, const fd_bench_shape *shape, const fd_rung *rung)
{
    const fd_bench_options *o = s->options;
    bool found = o->num_rungs == 0;
    char key[160];
    for (int i = 0; i < o->num_rungs; i++) {
        found |= o->rungs[i] == rung->number;
    }
    key_of(shape, rung, key, sizeof key);
    return found && !fd_runs_on_host(rung) && !(s->csv.file != NULL && fd_resume_has(&s->csv, key));
}

static fd_status bench_point(session *s, const fd_bench_shape *shape, char *why, size_t n)
{
    point x;
    double floor_ns;
    bool any = false;
    for (int k = 0; k < fd_ladder_count; k++) {
        any = any || wanted(s, shape, fd_ladder[k]);
    }
    const int64_t bytes = fd_bench_kv_bytes(shape);
    if (!any || bytes < 0 || bytes > KV_MAX) {
        s->skipped += any;
        return FD_OK;
    }
    fd_status status = make_point(s, shape, &x, why, n);
    if (status != FD_OK) {
        return status;
    }
    status = read_floor(&x, &floor_ns, why, n);
    for (int k = 0; k < fd_ladder_count && status == FD_OK; k++) {
        timing t;
        int32_t num_splits;
        size_t workspace_bytes;
        if (!wanted(s, shape, fd_ladder[k])) {
            continue;
        }
        const fd_status timed = time_rung(s, &x, fd_ladder[k], &t, &num_splits, &workspace_bytes, why, n);
        if (timed == FD_OK) {
            s->timed++;
            status = report(s, shape, &x, fd_ladder[k], &t, num_splits, workspace_bytes, floor_ns, why, n);
        } else {
            s->failed += timed != FD_UNSUPPORTED;
            s->skipped += timed == FD_UNSUPPORTED;
            printf("%02" PRId32 " %s, kv_len %" PRId64 ": %s: %s\n", fd_ladder[k]->number, fd_ladder[k]->name,
                   shape->kv_len, timed == FD_UNSUPPORTED ? "skipped" : "FAILED", why);
        }
    }
    free_point(s, &x);
    return status;
}

static void read_machine(session *s, int argc, char **argv)
{
    fd_machine_record *m = &s->machine;
    fd_machine_record_read(m, "flashdecode", argc, argv);
    snprintf(m->compiler + strlen(m->compiler), sizeof m->compiler - strlen(m->compiler), "; %s", fd_gpu_toolkit());
    snprintf(m->processor, sizeof m->processor, "%.60s, %d SMs, compute capability %d.%d", s->gpu->name,
             s->gpu->machine.num_units, s->gpu->machine.compute_capability / 10,
             s->gpu->machine.compute_capability % 10);
    fd_machine_identify(m);
}

int fd_bench_gpu(const fd_bench_options *o, int argc, char **argv)
{
    session s = {.options = o};
    char why[1280] = "";
    timing nothing;
    int code = FD_EXIT_USAGE;
    s.gpu = fd_device_gpu(why, sizeof why);
    if (s.gpu == NULL) {
        fprintf(stderr, "flashdecode bench: %s\n", why);
        return FD_EXIT_NOTHING;
    }
    fd_bench_shape shape = o->shape;
    for (int i = 0; i < o->num_kv_lens; i++) {
        shape.kv_len = o->kv_lens[i];
        if (shape.heads_q % shape.heads_kv != 0 || fd_bench_kv_bytes(&shape) < 0) {
            snprintf(why, sizeof why, "heads_q must be a multiple of heads_kv, and K and V must fit 2^63 bytes");
            goto done;
        }
    }
    read_machine(&s, argc, argv);
    if (o->csv != NULL && fd_resume_open(&s.csv, o->csv, csv_head, why, sizeof why) != FD_OK) {
        goto done;
    }
    snprintf(why, sizeof why, "# machine_id: %s\n", s.machine.machine_id);
    if (s.csv.file != NULL && !fd_resume_has(&s.csv, why)) {
        fd_machine_record_write(&s.machine, s.csv.file, "# ");
    }
    if (time_work(call_nothing, NULL, 256, &nothing, why, sizeof why) != FD_OK) {
        goto done;
    }
    s.launch_ns = nothing.median;
    printf("%s, machine %s; an empty kernel takes %.2f us\n", s.machine.processor, s.machine.machine_id,
           s.launch_ns * 1e-3);
    for (int i = 0; i < o->num_kv_lens; i++) {
        shape.kv_len = o->kv_lens[i];
        if (bench_point(&s, &shape, why, sizeof why) != FD_OK) {
            goto done;
        }
    }
    printf("last column: times one read of K and V. %" PRId64 " timed, %" PRId64 " skipped, %" PRId64 " failed\n",
           s.timed, s.skipped, s.failed);
    code = s.timed + s.failed == 0 && s.skipped == 0 ? FD_EXIT_PASS : fd_exit_code(s.timed, s.failed);
done:
    if (code == FD_EXIT_USAGE) {
        fprintf(stderr, "flashdecode bench: %s\n", why);
    }
    fd_resume_close(&s.csv);
    return code;
}

#else

int fd_bench_gpu(const fd_bench_options *options, int argc, char **argv)
{
    (void)options, (void)argc, (void)argv;
    fprintf(stderr, "flashdecode bench: no GPU code in this program; make gpu builds build/gpu/flashdecode\n");
    return FD_EXIT_NOTHING;
}

#endif
