/* cmd_bench.c: `flashdecode bench`, a table on the terminal and a CSV file for the plots. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
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
    FILE *table, *csv; /* csv NULL: none */
    double *medians;   /* [fd_ladder_count] at the kv_len at hand; 0: not timed */
    int64_t timed, skipped, failed;
} session;

static const char csv_head[] =
    "rung,where,dtype_q,dtype_kv,dtype_o,batch,heads_q,heads_kv,head_dim,q_len,kv_len,threads,num_splits,cache,"
    "ns_median,ns_p25,ns_p75,repeats,bytes,floor_ns,err_max,err_p50,commit,machine_id,name,parent,workspace_bytes\n";

static bool wanted(const fd_bench_options *o, const fd_rung *rung)
{
    bool found = o->num_rungs == 0;
    for (int i = 0; i < o->num_rungs; i++) {
        found |= o->rungs[i] == rung->number;
    }
    return found;
}

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
            p->heads_q, p->heads_kv, p->head_dim, p->q_len, p->kv_capacity, s->options.threads);
    fprintf(f, "%" PRId32 ",%s,%.0f,%.0f,%.0f,%" PRId32 ",%" PRId64 ",%.0f,,,", x->num_splits, cache_of(s, data),
            x->ns_median, x->ns_p25, x->ns_p75, x->repeats, data->bytes, x->floor_ns);
    fd_csv_field(f, s->machine.commit);
    fprintf(f, ",%s,", s->machine.machine_id);
    fd_csv_field(f, x->rung->name);
    fprintf(f, ",%" PRId32 ",%zu\n", x->rung->parent, x->workspace_bytes);
}

static void print_speedup(const session *s, int32_t over, const fd_bench_point *x)
{
    double before = 0.0;
    for (int i = 0; i < fd_ladder_cpu_count; i++) {
        before = fd_ladder[i]->number == over ? s->medians[i] : before;
    }
    if (before > 0.0) {
        fprintf(s->table, " %8.2fx", before / x->ns_median);
    } else {
        fprintf(s->table, " %9s", "-");
    }
}

static void table_row(const session *s, const fd_bench_point *x, const fd_bench_data *data)
{
    const bool micro = x->ns_median < 1e6;
    fprintf(s->table, "%02" PRId32 " %-14.14s %8" PRId64 " %8.2f %s %7.2f %8.2f", x->rung->number, x->rung->name,
            data->problem.kv_capacity, x->ns_median / (micro ? 1e3 : 1e6), micro ? "us" : "ms",
            (double)data->bytes / x->ns_median, x->ns_median / x->floor_ns);
    print_speedup(s, fd_ladder[0]->number, x);
    print_speedup(s, x->rung->parent, x);
    fprintf(s->table, " %s\n", cache_of(s, data));
    fflush(s->table);
}

/* All wanted rungs at one kv_len. FD_OK, or why the problem could not be made. */
static fd_status bench_kv_len(session *s, int64_t kv_len, int point, char *why, size_t n)
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
    memset(s->medians, 0, (size_t)fd_ladder_cpu_count * sizeof *s->medians);
    for (int i = 0; i < fd_ladder_cpu_count; i++) {
        if (!wanted(o, fd_ladder[i])) {
            continue;
        }
        fd_progress("bench", point * fd_ladder_cpu_count + i, (int64_t)o->num_kv_lens * fd_ladder_cpu_count);
        const fd_bench_point x = fd_bench_run(&data, fd_ladder[i], o->threads, o->repeats, seconds[o->size]);
        fd_progress("bench", 1, 1);
        if (x.status != FD_OK) {
            s->failed += x.failed;
            s->skipped += !x.failed;
            fprintf(s->table, "%02" PRId32 " %-14.14s %8" PRId64 " %s: %s\n", x.rung->number, x.rung->name, kv_len,
                    x.failed ? "FAILED" : "skipped", x.why);
            continue;
        }
        s->timed++;
        s->medians[i] = x.ns_median;
        table_row(s, &x, &data);
        if (s->csv != NULL) {
            csv_row(s, &x, &data);
        }
    }
    fd_bench_free(&data);
    return FD_OK;
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
    fprintf(s->table, "%s, machine %s, %" PRId32 " thread%s of %" PRId32 "\n", s->machine.processor,
            s->machine.machine_id, s->options.threads, s->options.threads > 1 ? "s" : "", s->machine.cores);
    fprintf(s->table, "batch %" PRId32 ", heads_q %" PRId32 ", heads_kv %" PRId32 ", head_dim %" PRId32, shape->batch,
            shape->heads_q, shape->heads_kv, shape->head_dim);
    fprintf(s->table, ", q %s, k and v %s, o %s\n", fd_dtype_name(shape->dtype_q), fd_dtype_name(shape->dtype_kv),
            fd_dtype_name(shape->dtype_o));
    fprintf(s->table, "%-17s %8s %11s %7s %8s %9s %9s %s\n", "rung", "kv_len", "median time", "GB/s", "x floor",
            "over 01", "over par.", "K, V");
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
    s.medians = calloc((size_t)fd_ladder_cpu_count, sizeof *s.medians);
    if (s.medians == NULL) {
        snprintf(why, sizeof why, "no memory for a table of %d numbers", fd_ladder_cpu_count);
        goto done;
    }
    if (check_all(o, why, sizeof why) != FD_OK ||
        (o->csv != NULL && fd_csv_open(&csv, o->csv, why, sizeof why) != FD_OK)) {
        goto done;
    }
    fd_machine_record_read(&s.machine, "flashdecode", argc, argv);
    s.csv = csv.file;
    s.table = csv.file != NULL && strcmp(o->csv, "-") == 0 ? stderr : stdout;
    if (s.csv != NULL) {
        fd_machine_record_write(&s.machine, s.csv, "# ");
        fputs(csv_head, s.csv);
    }
    print_head(&s);
    for (int i = 0; i < o->num_kv_lens; i++) {
        if (bench_kv_len(&s, o->kv_lens[i], i, why, sizeof why) != FD_OK) {
            goto done;
        }
    }
    fprintf(s.table, "GB/s: q, k, v, o once each over the time. x floor: over one plain read of K and V, in turns.\n");
    fprintf(s.table, "hot: K and V fit the level-3 cache. %" PRId64 " timed, %" PRId64 " skipped, %" PRId64 " failed\n",
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
    free(s.medians);
    return code;
}
