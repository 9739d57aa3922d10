/* cmd_splits.c: `flashdecode splits`: error and time of the rungs that split, against the number of splits. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "commands.h"
#include "csv.h"
#include "execute.h"
#include "ladder.h"
#include "machine.h"
#include "options.h"
#include "splits.h"

#define SECONDS 0.05  /* a point, when it is timed */
#define KEYS_LEAST 32 /* a split, of the usual numbers of splits */

typedef struct options {
    int64_t rungs[FD_LIST_MAX], splits[FD_LIST_MAX];
    int num_rungs, num_splits; /* no rungs: all CPU rungs that split. No splits: powers of two */
    int32_t kv_len, head_dim, seeds, threads;
    const char *csv;
} options;

typedef struct session {
    options o;
    fd_machine_record machine;
    FILE *table, *csv; /* csv NULL: none */
    const fd_rung *rungs[FD_LIST_MAX];
    int num_rungs;
    fd_split_point *errors; /* [num_rungs, num_splits] */
    fd_bench_point *times;  /* the same */
    int64_t bytes;
} session;

static const char usage[] = "usage: flashdecode splits [options]\n\n"
                            "What the number of splits does to a rung: the error over many random inputs,\n"
                            "against the oracle, and the time of a call. One sequence, one head.\n\n"
                            "  --splits A,B,...   numbers of splits (1, 2, 4 and so on, to kv_len / 32)\n"
                            "  --rung N,...       these rungs; may be repeated (default: all CPU rungs that\n"
                            "                     split; CUDA rungs are not timed)\n"
                            "  --kv-len N         keys (65536)\n"
                            "  --head-dim N       (32)\n"
                            "  --seeds N          random inputs (8)\n"
                            "  --threads N        for rungs that run on several (as many as cores)\n"
                            "  --csv FILE         a row a rung and number of splits; - is standard output\n"
                            "  --help             this text\n\n"
                            "Exit status: 0 measured; 1 an error is above its bound; 2 bad usage, no memory\n"
                            "or unwritable FILE; 77 nothing could run.\n";

static int parse(int argc, char **argv, options *o)
{
    *o = (options){.kv_len = 65536, .head_dim = 32, .seeds = 8};
    const fd_option table[] = {
        fd_opt_list("splits", o->splits, &o->num_splits, 1, INT32_MAX),
        fd_opt_rungs(o->rungs, &o->num_rungs),
        fd_opt_number("kv-len", &o->kv_len, 1, 1 << 24),
        fd_opt_number("head-dim", &o->head_dim, 1, 512),
        fd_opt_number("seeds", &o->seeds, 1, 1 << 16),
        fd_opt_number("threads", &o->threads, 1, 1024),
        fd_opt_text("csv", &o->csv),
        {.name = NULL},
    };
    const int parsed = fd_options_parse(argc, argv, usage, table);
    const int given = o->num_splits;
    for (int64_t k = 1; given == 0 && (k == 1 || k <= o->kv_len / KEYS_LEAST); k *= 2) {
        o->splits[o->num_splits++] = k;
    }
    return parsed;
}

/* ---- Measuring --------------------------------------------------------------------------------- */

/* The shape of both parts: one sequence, one head. */
static fd_case case_of(const options *o)
{
    fd_case c = {.family = "gaussian",
                 .batch = 1,
                 .heads_q = 1,
                 .heads_kv = 1,
                 .head_dim = o->head_dim,
                 .head_dim_v = o->head_dim,
                 .kv_lens = {o->kv_len},
                 .kv_len = o->kv_len,
                 .seed = 1};
    snprintf(c.name, sizeof c.name, "gaussian/fff/h1:1/d%d/n%d", c.head_dim, c.kv_len);
    return c;
}

/* The wanted rungs that cut the cache as they are asked to. */
static void choose_rungs(session *s, const fd_problem *problem)
{
    for (int i = 0; i < fd_ladder_count; i++) {
        const fd_rung *rung = fd_ladder[i];
        const bool wanted =
            s->o.num_rungs > 0 ? fd_in_list(s->o.rungs, s->o.num_rungs, rung->number) : fd_runs_on_host(rung);
        if (wanted && s->num_rungs < FD_LIST_MAX && fd_splits_on_request(rung, problem)) {
            s->rungs[s->num_rungs++] = rung;
        }
    }
}

static fd_status measure_errors(session *s, int count, char *why, size_t n)
{
    const fd_libm_error libm = fd_libm_error_get(NULL);
    const fd_rounding rounding = fd_host_rounding(&libm);
    const fd_case c = case_of(&s->o);
    for (int i = 0; i < count; i++) {
        s->errors[i] = (fd_split_point){.rung = s->rungs[i / s->o.num_splits],
                                        .num_splits_request = (int32_t)s->o.splits[i % s->o.num_splits]};
    }
    return fd_splits_measure(&c, s->o.seeds, &rounding, s->errors, count, why, n);
}

/* CUDA rungs are left out: the emulator tells no time. */
static void measure_times(session *s, const fd_bench_data *data, int count)
{
    int timed = 0;
    for (int i = 0; i < count; i++) {
        const fd_rung *rung = s->errors[i].rung;
        if (fd_runs_on_host(rung)) {
            s->times[timed++] = (fd_bench_point){.rung = rung,
                                                 .threads = fd_bench_threaded(&data->problem, rung) ? s->o.threads : 1,
                                                 .num_splits_request = s->errors[i].num_splits_request};
        }
    }
    s->bytes = data->bytes;
    fd_bench_run(data, s->times, timed, 0, SECONDS);
}

/* ---- Printing ---------------------------------------------------------------------------------- */

static const char csv_head[] =
    "rung,where,dtype_q,dtype_kv,dtype_o,batch,heads_q,heads_kv,head_dim,q_len,kv_len,threads,num_splits,split_size,"
    "seeds,err_p50,err_p90,err_max,bound,ratio,roundings,ns_median,ns_p25,ns_p75,repeats,bytes,floor_ns,"
    "workspace_bytes,commit,machine_id,name,parent\n";

static void csv_row(const session *s, const fd_split_point *e, const fd_bench_point *t)
{
    fprintf(s->csv, "%d,%s,fp32,fp32,fp32,1,1,1,%d,1,%d,", e->rung->number, fd_where(e->rung), s->o.head_dim,
            s->o.kv_len);
    fprintf(s->csv, "%d,%d,%" PRId64 ",%d,%.5g,%.5g,%.5g,%.6g,%.4g,%" PRId64 ",", t->threads, e->num_splits,
            e->split_size, s->o.seeds, e->err_p50, e->err_p90, e->err_max, e->bound, e->ratio, e->roundings);
    if (t->repeats > 0) {
        fprintf(s->csv, "%.0f,%.0f,%.0f,%d,%" PRId64 ",%.0f,%zu,", t->ns_median, t->ns_p25, t->ns_p75, t->repeats,
                s->bytes, t->floor_ns, t->workspace_bytes);
    } else {
        fputs(",,,,,,,", s->csv);
    }
    fd_csv_field(s->csv, s->machine.commit);
    fprintf(s->csv, ",%s,", s->machine.machine_id);
    fd_csv_field(s->csv, e->rung->name);
    fprintf(s->csv, ",%d\n", e->rung->parent);
}

static void print_row(const session *s, const fd_split_point *e, const fd_bench_point *t)
{
    char time[16] = "-";
    if (t->repeats > 0) {
        snprintf(time, sizeof time, "%.2f ms", t->ns_median * 1e-6);
    }
    fprintf(s->table, "%02d %-13.13s %6d %7" PRId64 " %7.3f %7.3f %7.2f %8.0f %7" PRId64 " %9s\n", e->rung->number,
            e->rung->name, e->num_splits, e->split_size, e->err_p50, e->err_p90, e->err_max, e->bound, e->roundings,
            time);
}

static const char legend[] = "median, 90 %, worst: scaled error, in units of u = 2^-24 of sum p|v|, over all seeds.\n"
                             "bound: the smallest proved bound of an element. h: h_N + h_D + 1, the roundings of\n"
                             "sums and merges that it charges for; the rest are those of the dot products.\n";

/* Both parts, and what they say. Counts passed, failed and skipped points. */
static fd_status run(session *s, int64_t counts[3], char *why, size_t n)
{
    const fd_bench_shape shape = {FD_F32, FD_F32, FD_F32, 1, 1, 1, s->o.head_dim, s->o.kv_len};
    fd_bench_data data;
    fd_status status = fd_bench_create(&data, &shape, why, n);
    if (status != FD_OK) {
        return status;
    }
    choose_rungs(s, &data.problem);
    const int count = s->num_rungs * s->o.num_splits;
    s->errors = calloc((size_t)count + 1, sizeof *s->errors);
    s->times = calloc((size_t)count + 1, sizeof *s->times);
    status = s->errors != NULL && s->times != NULL ? measure_errors(s, count, why, n) : FD_NO_MEMORY;
    if (status == FD_OK) {
        measure_times(s, &data, count);
    }
    for (int i = 0, t = 0; i < count && status == FD_OK; i++) {
        const fd_split_point *e = &s->errors[i];
        const fd_bench_point none = {.rung = e->rung, .threads = 1};
        const fd_bench_point *time = fd_runs_on_host(e->rung) ? &s->times[t++] : &none;
        const bool right = e->ratio <= 1.0;
        counts[e->status != FD_OK ? 2 : right ? 0 : 1]++;
        if (e->status != FD_OK) {
            fprintf(s->table, "%02d %-13.13s %6d skipped: %s\n", e->rung->number, e->rung->name, e->num_splits_request,
                    e->why);
            continue;
        }
        print_row(s, e, time);
        if (!right) {
            fprintf(s->table, "FAIL %02d %s: an error is %.3g of its bound\n", e->rung->number, e->rung->name,
                    e->ratio);
        }
        if (s->csv != NULL) {
            csv_row(s, e, time);
        }
    }
    fd_bench_free(&data);
    return status;
}

int fd_cmd_splits(int argc, char **argv)
{
    session s = {.num_rungs = 0};
    fd_csv csv = {.file = NULL};
    int64_t counts[3] = {0};
    char why[1280] = "no memory for the results";
    int code = parse(argc, argv, &s.o);
    if (code >= 0) {
        return code;
    }
    fd_machine_record_read(&s.machine, "flashdecode", argc, argv);
    s.o.threads = s.o.threads > 0 ? s.o.threads : s.machine.cores;
    if (s.o.csv != NULL && fd_csv_open(&csv, s.o.csv, why, sizeof why) != FD_OK) {
        goto done;
    }
    s.csv = csv.file;
    s.table = csv.file != NULL && strcmp(s.o.csv, "-") == 0 ? stderr : stdout;
    if (s.csv != NULL) {
        fd_machine_record_write(&s.machine, s.csv, "# ");
        fputs(csv_head, s.csv);
    }
    fprintf(s.table, "%s, machine %s, %d cores\none head, head_dim %d, %d keys, %d random inputs\n",
            s.machine.processor, s.machine.machine_id, s.machine.cores, s.o.head_dim, s.o.kv_len, s.o.seeds);
    fprintf(s.table, "%-16s %6s %7s %7s %7s %7s %8s %7s %9s\n", "rung", "splits", "keys", "median", "90 %", "worst",
            "bound", "h", "time");
    if (run(&s, counts, why, sizeof why) != FD_OK) {
        goto done;
    }
    fputs(legend, s.table);
    fprintf(s.table, "%" PRId64 " passed, %" PRId64 " failed, %" PRId64 " skipped\n", counts[0], counts[1], counts[2]);
    if (s.csv == NULL || fd_csv_commit(&csv, why, sizeof why) == FD_OK) {
        code = fd_exit_code(counts[0], counts[1]);
    }
done:
    if (code < 0) {
        fprintf(stderr, "flashdecode splits: %s\n", why);
        code = FD_EXIT_USAGE;
    }
    fd_csv_discard(&csv);
    free(s.errors);
    free(s.times);
    return code;
}
