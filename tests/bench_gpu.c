/* bench_gpu.c: see bench_gpu.h.
 *
 * A CUDA graph holds calls that go round enough sets of K and V to hold several times the L2 cache, so that every call
 * finds its own set in memory, "cold", as the next layer of a model would. The read floor and the launch floor are
 * measured in the same way. Host work is not timed. */
#include "bench_gpu.h"

#include <inttypes.h>
#include <stdio.h>

#include "commands.h"

#ifdef FD_GPU

#include "gpu/launch.h"
#include "gpu/measure.h"
#include "ladder.h"
#include "point_gpu.h"
#include "resume.h"

#define KV_MAX ((int64_t)32 << 30) /* bytes of K and V of a point; two sets of them must fit */
#define SECONDS 0.2                /* of replays a point and rung */

static const char csv_head[] =
    "rung,where,dtype_q,dtype_kv,dtype_o,batch,heads_q,heads_kv,head_dim,q_len,kv_len,threads,num_splits,cache,"
    "ns_median,ns_p25,ns_p75,repeats,bytes,floor_ns,err_max,err_p50,commit,machine_id,name,parent,workspace_bytes,"
    "launch_ns";

typedef struct session {
    const fd_bench_options *options;
    const fd_device *gpu;
    fd_machine_record machine;
    fd_resume csv; /* .file NULL: none */
    double launch_ns;
    int64_t timed, skipped, failed;
} session;

static fd_status time_rung(fd_point *x, const fd_rung *rung, fd_timing *t, char *why, size_t n)
{
    fd_status status = fd_point_begin(x, rung, 0, why, n);
    if (status != FD_OK) {
        return status;
    }
    status = fd_point_poison(x, why, n);
    status = status == FD_OK ? fd_point_time(fd_point_call, x, x->calls, -1, SECONDS, t, NULL, why, n) : status;
    return status == FD_OK ? fd_point_written(x, why, n) : status;
}

/* ---- The table and the file -------------------------------------------------------------------- */

/* The columns that say which point this is. */
static void key_of(const fd_bench_shape *c, const fd_rung *rung, char *key, size_t n)
{
    snprintf(key, n, "%" PRId32 ",gpu,%s,%s,%s,%" PRId32 ",%" PRId32 ",%" PRId32 ",%" PRId32 ",1,%" PRId64 ",",
             rung->number, fd_dtype_name(c->dtype_q), fd_dtype_name(c->dtype_kv), fd_dtype_name(c->dtype_o), c->batch,
             c->heads_q, c->heads_kv, c->head_dim, c->kv_len);
}

static fd_status report(session *s, const fd_bench_shape *shape, const fd_point *x, const fd_timing *t, double floor_ns,
                        char *why, size_t n)
{
    const fd_rung *rung = x->rung;
    char key[160], row[512];
    printf("%02" PRId32 " %-16.16s %4" PRId32 " %3" PRId32 ":%-3" PRId32 " %8" PRId64 " %6" PRId32
           " %11.2f us %7.0f GB/s %7.2f\n",
           rung->number, rung->name, shape->batch, shape->heads_q, shape->heads_kv, shape->kv_len, x->num_splits,
           t->median * 1e-3, (double)x->bytes / t->median, t->median / floor_ns);
    fflush(stdout);
    if (s->csv.file == NULL) {
        return FD_OK;
    }
    key_of(shape, rung, key, sizeof key);
    snprintf(row, sizeof row, "%s0,%" PRId32 ",cold,%.1f,%.1f,%.1f,%d,%" PRId64 ",%.1f,,,%s,%s,%s,%" PRId32 ",%zu,%.1f",
             key, x->num_splits, t->median, t->p25, t->p75, t->replays, x->bytes, floor_ns, s->machine.commit,
             s->machine.machine_id, rung->name, rung->parent, x->workspace_bytes, s->launch_ns);
    return fd_resume_add(&s->csv, row, why, n);
}

/* ---- A sweep ----------------------------------------------------------------------------------- */

static bool wanted(const session *s, const fd_bench_shape *shape, const fd_rung *rung)
{
    const fd_bench_options *o = s->options;
    char key[160];
    key_of(shape, rung, key, sizeof key);
    return fd_in_list(o->rungs, o->num_rungs, rung->number) && !fd_runs_on_host(rung) &&
           !(s->csv.file != NULL && fd_resume_has(&s->csv, key));
}

static fd_status bench_point(session *s, const fd_bench_shape *shape, char *why, size_t n)
{
    fd_point x;
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
    fd_status status = fd_point_make(s->gpu, shape, &x, why, n);
    if (status != FD_OK) {
        return status;
    }
    status = fd_point_floor(&x, SECONDS, &floor_ns, why, n);
    for (int k = 0; k < fd_ladder_count && status == FD_OK; k++) {
        fd_timing t;
        if (!wanted(s, shape, fd_ladder[k])) {
            continue;
        }
        const fd_status timed = time_rung(&x, fd_ladder[k], &t, why, n);
        if (timed == FD_OK) {
            s->timed++;
            status = report(s, shape, &x, &t, floor_ns, why, n);
        } else {
            s->failed += timed != FD_UNSUPPORTED;
            s->skipped += timed == FD_UNSUPPORTED;
            printf("%02" PRId32 " %s, kv_len %" PRId64 ": %s: %s\n", fd_ladder[k]->number, fd_ladder[k]->name,
                   shape->kv_len, timed == FD_UNSUPPORTED ? "skipped" : "FAILED", why);
        }
        fd_point_end(&x);
    }
    fd_point_free(&x);
    return status;
}

int fd_bench_gpu(const fd_bench_options *o, int argc, char **argv)
{
    session s = {.options = o};
    char why[1280] = "";
    int code = FD_EXIT_USAGE;
    s.gpu = fd_device_gpu(why, sizeof why);
    if (s.gpu == NULL) {
        fprintf(stderr, "flashdecode bench: %s\n", why);
        return FD_EXIT_NOTHING;
    }
    if (!fd_some_cuda_rung("bench", o->rungs, o->num_rungs)) {
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
    fd_point_machine(s.gpu, &s.machine, argc, argv);
    if (o->csv != NULL && fd_resume_open(&s.csv, o->csv, csv_head, why, sizeof why) != FD_OK) {
        goto done;
    }
    snprintf(why, sizeof why, "# machine_id: %s\n", s.machine.machine_id);
    if (s.csv.file != NULL && !fd_resume_has(&s.csv, why)) {
        fd_machine_record_write(&s.machine, s.csv.file, "# ");
    }
    if (fd_point_launch(SECONDS, &s.launch_ns, why, sizeof why) != FD_OK) {
        goto done;
    }
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
