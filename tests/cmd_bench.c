/* cmd_bench.c: `flashdecode bench`, a table on the terminal and a CSV file for the plots. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "bench_gpu.h"
#include "bench_options.h"
#include "commands.h"
#include "csv.h"
#include "ladder.h"
#include "machine.h"

#define L3_ASSUMED ((int64_t)8 << 20) /* where the system does not tell */

/* One run of the command. */
typedef struct session {
    fd_bench_options options;
    fd_machine_record machine;
    FILE *table, *csv;      /* csv NULL: none */
    fd_bench_point *points; /* of the kv_len at hand, room for a point of each rung and number of threads */
    int count;
    int64_t timed, skipped, failed;
} session;

static const char csv_head[] =
    "rung,where,dtype_q,dtype_kv,dtype_o,batch,heads_q,heads_kv,head_dim,q_len,kv_len,threads,num_splits,cache,"
    "ns_median,ns_p25,ns_p75,repeats,bytes,floor_ns,err_max,err_p50,commit,machine_id,name,parent,workspace_bytes\n";

/* Are K and V, after one pass over them, still in the last-level cache? */
static const char *cache_of(const session *s, const fd_bench_data *data)
{
    const int64_t l3 = s->machine.l3_bytes > 0 ? s->machine.l3_bytes : L3_ASSUMED;
    return data->kv_bytes <= (uint64_t)l3 / 2 ? "hot" : "cold";
}

static void csv_row(const session *s, const fd_bench_point *x, const fd_bench_data *data)
{
    const fd_problem *p = &data->problem;
    FILE *f = s->csv;
    fprintf(f, "%" PRId32 ",cpu,%s,%s,%s,", x->rung->number, fd_dtype_name(p->q.dtype), fd_dtype_name(p->k.dtype),
            fd_dtype_name(p->o.dtype));
    fprintf(f, "%" PRId32 ",%" PRId32 ",%" PRId32 ",%" PRId32 ",%" PRId32 ",%" PRId64 ",%" PRId32 ",", p->batch,
            p->heads_q, p->heads_kv, p->head_dim, p->q_len, p->kv_capacity, x->threads);
    fprintf(f, "%" PRId32 ",%s,%.0f,%.0f,%.0f,%" PRId32 ",%" PRId64 ",%.0f,,,", x->num_splits, cache_of(s, data),
            x->ns_median, x->ns_p25, x->ns_p75, x->repeats, data->bytes, x->floor_ns);
    fd_csv_field(f, s->machine.commit);
    fprintf(f, ",%s,", s->machine.machine_id);
    fd_csv_field(f, x->rung->name);
    fprintf(f, ",%" PRId32 ",%zu\n", x->rung->parent, x->workspace_bytes);
}

/* The point of a rung with as many threads, or the one that it has; NULL: it was not timed. */
static const fd_bench_point *other_point(const session *s, int32_t number, int32_t threads)
{
    const fd_bench_point *found = NULL;
    for (int i = 0; i < s->count; i++) {
        const fd_bench_point *x = &s->points[i];
        if (x->rung->number == number && x->status == FD_OK && (found == NULL || x->threads == threads)) {
            found = x;
        }
    }
    return found;
}

/* No change is claimed that could be noise: where the middle halves of the times overlap, two rungs are level. */
static void print_speedup(const session *s, int32_t over, const fd_bench_point *x)
{
    const fd_bench_point *before = other_point(s, over, x->threads);
    if (before == NULL) {
        fprintf(s->table, " %8s", "-");
    } else if (before != x && before->ns_p25 <= x->ns_p75 && x->ns_p25 <= before->ns_p75) {
        fprintf(s->table, " %8s", "level");
    } else {
        fprintf(s->table, " %7.2fx", before->ns_median / x->ns_median);
    }
}

static void table_row(const session *s, const fd_bench_point *x, const fd_bench_data *data)
{
    const bool micro = x->ns_median < 1e6;
    fprintf(s->table, "%02" PRId32 " %-14.14s %3" PRId32 " %8" PRId64 " %8.2f %s %6.2f %7.2f", x->rung->number,
            x->rung->name, x->threads, data->problem.kv_capacity, x->ns_median / (micro ? 1e3 : 1e6),
            micro ? "us" : "ms", (double)data->bytes / x->ns_median, x->ns_median / x->floor_ns);
    print_speedup(s, fd_ladder[0]->number, x);
    print_speedup(s, x->rung->parent, x);
    fprintf(s->table, " %s\n", cache_of(s, data));
}

/* The points of one kv_len: every wanted rung with one thread, or with each wanted number if it runs on several. */
static void choose_points(session *s, const fd_problem *problem)
{
    s->count = 0;
    for (int i = 0; i < fd_ladder_cpu_count; i++) {
        if (!fd_in_list(s->options.rungs, s->options.num_rungs, fd_ladder[i]->number)) {
            continue;
        }
        const bool threaded = fd_bench_threaded(problem, fd_ladder[i]);
        for (int t = 0; t < (threaded ? s->options.num_threads : 1); t++) {
            s->points[s->count++] =
                (fd_bench_point){.rung = fd_ladder[i], .threads = threaded ? (int32_t)s->options.threads[t] : 1};
        }
    }
}

/* All wanted rungs at one kv_len. FD_OK, or why the problem could not be made. */
static fd_status bench_kv_len(session *s, int64_t kv_len, char *why, size_t n)
{
    static const double seconds[] = {[FD_SMALL] = 0.15, [FD_CLASS] = 0.5, [FD_FULL] = 1.0};
    const fd_bench_options *o = &s->options;
    fd_bench_shape shape = o->shape;
    fd_bench_data data;
    shape.kv_len = kv_len;
    const fd_status status = fd_bench_create(&data, &shape, why, n);
    if (status != FD_OK) {
        return status;
    }
    choose_points(s, &data.problem);
    fd_bench_run(&data, s->points, s->count, o->repeats, seconds[o->size]);
    fd_progress("bench", 1, 1);
    for (int i = 0; i < s->count; i++) {
        const fd_bench_point *x = &s->points[i];
        if (x->status != FD_OK) {
            s->failed += x->failed;
            s->skipped += !x->failed;
            fprintf(s->table, "%02" PRId32 " %-14.14s %3" PRId32 " %8" PRId64 " %s: %s\n", x->rung->number,
                    x->rung->name, x->threads, kv_len, x->failed ? "FAILED" : "skipped", x->why);
            continue;
        }
        s->timed++;
        table_row(s, x, &data);
        if (s->csv != NULL) {
            csv_row(s, x, &data);
        }
    }
    fflush(s->table);
    fd_bench_free(&data);
    return FD_OK;
}

static void default_threads(fd_bench_options *o, int32_t cores)
{
    if (o->num_threads == 0) {
        o->threads[0] = 1;
        o->threads[1] = cores;
        o->num_threads = cores > 1 ? 2 : 1;
    }
}

/* Before the first minute is spent: is there memory for the largest problem? */
static fd_status check_all(const fd_bench_options *o, char *why, size_t n)
{
    fd_status status = FD_OK;
    for (int i = 0; i < o->num_kv_lens && status == FD_OK; i++) {
        fd_bench_shape shape = o->shape;
        shape.kv_len = o->kv_lens[i];
        status = fd_bench_check(&shape, why, n);
    }
    return status;
}

static void print_head(const session *s)
{
    const fd_bench_shape *shape = &s->options.shape;
    fprintf(s->table, "%s, machine %s, %" PRId32 " cores\n", s->machine.processor, s->machine.machine_id,
            s->machine.cores);
    fprintf(s->table, "batch %" PRId32 ", heads_q %" PRId32 ", heads_kv %" PRId32 ", head_dim %" PRId32, shape->batch,
            shape->heads_q, shape->heads_kv, shape->head_dim);
    fprintf(s->table, ", q %s, k and v %s, o %s\n", fd_dtype_name(shape->dtype_q), fd_dtype_name(shape->dtype_kv),
            fd_dtype_name(shape->dtype_o));
    fprintf(s->table, "%-17s %3s %8s %11s %6s %7s %8s %8s %s\n", "rung", "thr", "kv_len", "median time", "GB/s",
            "x floor", "over 01", "over par", "K, V");
}

int fd_cmd_bench(int argc, char **argv)
{
    session s = {.timed = 0};
    fd_csv csv = {.file = NULL};
    char why[1280];
    int code = fd_bench_parse(argc, argv, &s.options);
    if (code >= 0) {
        return code;
    }
    const fd_bench_options *o = &s.options;
    if (o->gpu) {
        return fd_bench_gpu(o, argc, argv);
    }
    fd_machine_record_read(&s.machine, "flashdecode", argc, argv);
    default_threads(&s.options, s.machine.cores);
    s.points = calloc((size_t)fd_ladder_cpu_count * (size_t)s.options.num_threads, sizeof *s.points);
    if (s.points == NULL) {
        snprintf(why, sizeof why, "no memory for a table of %d rungs", fd_ladder_cpu_count);
        goto done;
    }
    if (check_all(o, why, sizeof why) != FD_OK ||
        (o->csv != NULL && fd_csv_open(&csv, o->csv, why, sizeof why) != FD_OK)) {
        goto done;
    }
    s.csv = csv.file;
    s.table = csv.file != NULL && strcmp(o->csv, "-") == 0 ? stderr : stdout;
    if (s.csv != NULL) {
        fd_machine_record_write(&s.machine, s.csv, "# ");
        fputs(csv_head, s.csv);
    }
    print_head(&s);
    for (int i = 0; i < o->num_kv_lens; i++) {
        fd_progress("bench", i, o->num_kv_lens);
        if (bench_kv_len(&s, o->kv_lens[i], why, sizeof why) != FD_OK) {
            goto done;
        }
    }
    fprintf(s.table,
            "GB/s: q, k, v, o once each over the time. x floor: over one plain read of K and\n"
            "V with as many threads, in turns. level: the middle halves of the times overlap.\n"
            "hot: K and V fit the level-3 cache. %" PRId64 " timed, %" PRId64 " skipped, %" PRId64 " failed\n",
            s.timed, s.skipped, s.failed);
    if (s.csv == NULL || fd_csv_commit(&csv, why, sizeof why) == FD_OK) {
        code = fd_exit_code(s.timed, s.failed);
    }

done:
    if (code < 0) {
        fprintf(stderr, "flashdecode bench: %s\n", why);
        code = FD_EXIT_USAGE;
    }
    fd_csv_discard(&csv);
    free(s.points);
    return code;
}
