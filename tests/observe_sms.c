/* observe_sms.c: how many multiprocessors does a read take? A block that asks for all shared memory of a multiprocessor
 * has it to itself, so a grid of N blocks is a read by N multiprocessors, and by waves of them where N is more. */
#include "observe.h"

const char fd_observe_sms_head[] = "where,heads_kv,head_dim,kv_len,threads,loads,blocks,in_flight_bytes,sms,ns_median,"
                                   "ns_p25,ns_p75,repeats,bytes,floor_ns,launch_ns,commit,machine_id";

#ifdef FD_GPU

#include <inttypes.h>
#include <stdio.h>

#include "gpu/measure.h"
#include "point_gpu.h"

#define SECONDS 0.04

typedef struct reading {
    fd_point *point;
    int loads, blocks;
} reading;

static fd_status call(void *data, int call, void *stream)
{
    const reading *r = (const reading *)data;
    const fd_point *x = r->point;
    const int64_t at = call % x->sets * x->kv_bytes;
    return fd_gpu_read_alone(x->k + at, x->v + at, (size_t)x->kv_bytes, r->loads, r->blocks, stream);
}

/* 1 to 3 waves: by eighths of a wave, powers of two, and the steps around a full wave. */
static int default_blocks(int32_t sms, int64_t *blocks)
{
    int count = 0;
    for (int64_t b = 1; b < sms / 8; b *= 2) {
        blocks[count++] = b;
    }
    for (int32_t eighth = 1; eighth <= 24; eighth++) {
        const int64_t b = (int64_t)sms * eighth / 8;
        blocks[count++] = b;
        if (eighth % 8 == 0 && eighth < 24) {
            blocks[count++] = b + 1;
        }
    }
    blocks[count++] = 32; /* rung 21's at batch 1 */
    return count;
}

static fd_status one(fd_observation *s, reading *r, char *why, size_t n)
{
    const fd_bench_shape *c = &s->options->shape;
    fd_timing t;
    char key[160], row[512];
    snprintf(key, sizeof key, "gpu,%" PRId32 ",%" PRId32 ",%" PRId64 ",%d,%d,%d,", c->heads_kv, c->head_dim,
             r->point->problem.kv_capacity, FD_GPU_READ_THREADS, r->loads, r->blocks);
    if (fd_observe_has(s, key)) {
        return FD_OK;
    }
    const int64_t bytes = 2 * r->point->kv_bytes;
    fd_status status = fd_point_time(call, r, r->point->calls, -1, SECONDS, &t, NULL, why, n);
    if (status != FD_OK) {
        return status;
    }
    s->done++;
    printf("%2d loads, %4d blocks %10.2f us %6.0f GB/s %5.1f %% of the fastest read\n", r->loads, r->blocks,
           t.median * 1e-3, (double)bytes / t.median, 100.0 * s->floor_ns / t.median);
    fflush(stdout);
    const int32_t units = s->gpu->machine.num_units;
    snprintf(row, sizeof row, "%s%d,%d,%.1f,%.1f,%.1f,%d,%" PRId64 ",%.1f,%.1f,%s,%s", key,
             16 * r->loads * FD_GPU_READ_THREADS, r->blocks < units ? r->blocks : units, t.median, t.p25, t.p75,
             t.replays, bytes, s->floor_ns, s->launch_ns, s->machine.commit, s->machine.machine_id);
    return fd_observe_add(s, row, why, n);
}

static fd_status some_blocks(fd_observation *s, fd_point *x, void *data, char *why, size_t n)
{
    const fd_observe_options *o = s->options;
    int64_t blocks[FD_LIST_MAX];
    int count = o->num_blocks;
    (void)data;
    memcpy(blocks, o->blocks, sizeof blocks);
    if (count == 0) {
        count = default_blocks(s->gpu->machine.num_units, blocks);
    }
    fd_status status = FD_OK;
    for (int loads = 1; loads <= 8 && status == FD_OK; loads *= 2) {
        for (int b = 0; b < count && status == FD_OK; b++) {
            reading r = {x, loads, (int)blocks[b]};
            status = one(s, &r, why, n);
        }
    }
    return status;
}

fd_status fd_observe_sms(fd_observation *s, char *why, size_t n)
{
    return fd_observe_lengths(s, some_blocks, NULL, why, n);
}

#endif
