/* cmd_decode.c: `flashdecode decode`: time per token against position, rung by rung, and are the bits those of a cache that
 * never grew. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "commands.h"
#include "csv.h"
#include "decode_options.h"
#include "execute.h"
#include "ladder.h"
#include "machine.h"
#include "read_floor.h"

#define SECTIONS 32    /* of the positions, each with its median */
#define SHOWN 4        /* of these in the table: an eighth, a quarter, a half and all of the way */
#define FIRST_TOKEN 10 /* any number: what is said follows from it */

/* Steps at neighbouring positions. Times are 0 on a device. */
typedef struct section {
    int64_t kv_len; /* of the step in the middle */
    int64_t bytes;
    int32_t steps, checked, differ;
    double ns_median, ns_p25, ns_p75, floor_ns, ratio;
} section;

typedef struct session {
    fd_decode_options o;
    fd_machine_record machine;
    fd_rounding rounding;
    FILE *table, *csv; /* csv NULL: none */
    section sections[SECTIONS];
    int count;
    int64_t passed, failed, skipped;
} session;

/* ---- The loop ---------------------------------------------------------------------------------- */

static double read_once(const fd_decode *d, int32_t threads)
{
    const size_t half = (size_t)fd_decode_bytes(d) / 2;
    volatile uint64_t sink;
    const double start = fd_now_ns();
    sink = fd_read_sum(d->k.data, half, threads);
    sink = fd_read_sum(d->v.data, half, threads);
    (void)sink;
    return fd_now_ns() - start;
}

static void summarise(section *x, double *ns, double *floor, bool timed)
{
    fd_sort(ns, x->steps);
    fd_sort(floor, x->steps);
    if (timed) {
        x->ns_median = fd_quantile(ns, x->steps, 0.5);
        x->ns_p25 = fd_quantile(ns, x->steps, 0.25);
        x->ns_p75 = fd_quantile(ns, x->steps, 0.75);
        x->floor_ns = fd_quantile(floor, x->steps, 0.5);
    }
}

/* Is this one of `wanted` of `all` steps, evenly spread, the last among them? */
static bool sampled(int64_t step, int64_t wanted, int64_t all)
{
    return wanted >= all || (step + 1) * wanted / all != step * wanted / all;
}

static fd_status check_step(session *s, const fd_decode *d, int64_t step, int32_t threads, section *x, char *why,
                            size_t n)
{
    fd_decode_check check;
    const int32_t h = (int32_t)(step % d->problem.heads_q);
    const fd_status status = fd_decode_recheck(d, threads, h, &s->rounding, &check, why, n);
    if (status != FD_OK) {
        return status;
    }
    const bool wrong = !check.same || (check.claimed && !check.same_planned) || !(check.ratio <= 1.0);
    x->checked++;
    x->differ += wrong;
    x->ratio = check.ratio > x->ratio ? check.ratio : x->ratio;
    if (wrong) {
        fprintf(s->table, "FAIL %02d %s, %" PRId64 " keys: %s; head %d has %.3g of its bound\n", d->rung->number,
                d->rung->name, d->kv_len,
                !check.same                            ? "other bits than a cache built at once"
                : check.claimed && !check.same_planned ? "other bits with a plan for this length"
                                                       : "bits as they should be",
                h, check.ratio);
    }
    return FD_OK;
}

/* One rung from the first token to the last. The last token said is in *last. */
static fd_status decode(session *s, fd_decode *d, int32_t threads, bool timed, uint64_t *last, char *why, size_t n)
{
    const fd_decode_options *o = &s->o;
    double *ns = malloc(2 * (size_t)o->steps * sizeof *ns), *floor = ns + o->steps, warm_up;
    fd_status status = ns != NULL ? FD_OK : FD_NO_MEMORY;
    snprintf(why, n, "no memory for %d times", o->steps);
    uint64_t token = FIRST_TOKEN;
    for (int32_t i = 0; i < o->prompt; i++) {
        fd_decode_append(d, fd_decode_text(token, i));
    }
    s->count = o->steps < SECTIONS ? o->steps : SECTIONS;
    for (int64_t step = 0, in_section = 0, i = 0; step < o->steps && status == FD_OK; step++) {
        section *x = &s->sections[i];
        if (in_section == 0) {
            *x = (section){.ratio = 0.0};
        }
        for (int32_t k = 1; k < o->append; k++) {
            fd_decode_append(d, fd_decode_text(token, k));
        }
        fd_decode_append(d, token);
        if (step == 0) {
            status = fd_decode_attend(d, &warm_up, why, n);
        }
        if (status == FD_OK) {
            status = fd_decode_attend(d, &ns[in_section], why, n);
        }
        floor[in_section++] = timed ? read_once(d, threads) : 0.0;
        token = fd_decode_next(d);
        if (status == FD_OK && sampled(step, o->checks, o->steps)) {
            status = check_step(s, d, step, threads, x, why, n);
        }
        if (sampled(step, s->count, o->steps)) {
            x->steps = (int32_t)in_section;
            x->kv_len = d->kv_len - (in_section - 1) / 2 * o->append;
            x->bytes = fd_decode_bytes(d) / d->kv_len * x->kv_len;
            summarise(x, ns, floor, timed);
            in_section = 0;
            i++;
        }
    }
    *last = token;
    free(ns);
    return status;
}

/* ---- Printing ---------------------------------------------------------------------------------- */

static const char csv_head[] =
    "rung,where,dtype_q,dtype_kv,dtype_o,batch,heads_q,heads_kv,head_dim,q_len,kv_len,threads,num_splits,append,steps,"
    "ns_median,ns_p25,ns_p75,bytes,floor_ns,checked,differ,ratio,commit,machine_id,name,parent\n";

static void csv_rows(const session *s, const fd_decode *d, int32_t threads)
{
    const fd_problem *p = &d->problem;
    for (int i = 0; i < s->count; i++) {
        const section *x = &s->sections[i];
        fprintf(s->csv, "%d,%s,%s,%s,%s,1,%d,%d,%d,1,%" PRId64 ",%d,%d,%d,%d,", d->rung->number, fd_where(d->rung),
                fd_dtype_name(p->q.dtype), fd_dtype_name(p->k.dtype), fd_dtype_name(p->o.dtype), p->heads_q,
                p->heads_kv, p->head_dim, x->kv_len, threads, d->plan != NULL ? d->plan->num_splits : 0, s->o.append,
                x->steps);
        if (x->ns_median > 0.0) {
            fprintf(s->csv, "%.0f,%.0f,%.0f,%" PRId64 ",%.0f,", x->ns_median, x->ns_p25, x->ns_p75, x->bytes,
                    x->floor_ns);
        } else {
            fprintf(s->csv, ",,,%" PRId64 ",,", x->bytes);
        }
        fprintf(s->csv, "%d,%d,%.4g,", x->checked, x->differ, x->ratio);
        fd_csv_field(s->csv, s->machine.commit);
        fprintf(s->csv, ",%s,", s->machine.machine_id);
        fd_csv_field(s->csv, d->rung->name);
        fprintf(s->csv, ",%d\n", d->rung->parent);
    }
}

/* The section that the k-th column shows: its end is at 1, 1/2, 1/4, 1/8 of the way. */
static const section *shown(const session *s, int k)
{
    const int at = (s->count >> (SHOWN - 1 - k)) - 1;
    return &s->sections[at < 0 ? 0 : at];
}

/* The median time of the sections between two positions; 0: there is none. */
static double time_between(const session *s, double from, double to)
{
    double ns[SECTIONS];
    int32_t n = 0;
    for (int i = 0; i < s->count; i++) {
        const double at = (double)s->sections[i].kv_len;
        if (at > from && at <= to) {
            ns[n++] = s->sections[i].ns_median;
        }
    }
    fd_sort(ns, n);
    return n > 0 ? fd_quantile(ns, n, 0.5) : 0.0;
}

static void print_time(FILE *f, double ns)
{
    char text[16];
    snprintf(text, sizeof text, ns >= 1e6 ? "%.2f ms" : "%.1f us", ns / (ns >= 1e6 ? 1e6 : 1e3));
    fprintf(f, " %8s", ns > 0.0 ? text : "-");
}

static void print_rung(const session *s, const fd_decode *d, int32_t threads, uint64_t last)
{
    int32_t checked = 0, differ = 0;
    double ratio = 0.0;
    for (int i = 0; i < s->count; i++) {
        checked += s->sections[i].checked;
        differ += s->sections[i].differ;
        ratio = s->sections[i].ratio > ratio ? s->sections[i].ratio : ratio;
    }
    const section *whole = shown(s, SHOWN - 1);
    const double far = (double)whole->kv_len;
    const double late = time_between(s, 0.75 * far, far), early = time_between(s, 0.375 * far, 0.5 * far);
    fprintf(s->table, "%02d %-15.15s %3d", d->rung->number, d->rung->name, threads);
    for (int k = 0; k < SHOWN; k++) {
        print_time(s->table, shown(s, k)->ns_median);
    }
    if (early > 0.0) {
        fprintf(s->table, " %5.2f %6.2f", late / early, whole->ns_median / whole->floor_ns);
    } else {
        fprintf(s->table, " %5s %6s", "-", "-");
    }
    fprintf(s->table, " %d/%d\n", checked - differ, checked);
    fprintf(s->table, "   %.3g of its bound, last token %016" PRIx64 "\n", ratio, last);
}

static void print_head(const session *s)
{
    const fd_decode_shape *x = &s->o.shape;
    const int64_t end = x->kv_capacity;
    fprintf(s->table, "%s, machine %s, %d cores\n", s->machine.processor, s->machine.machine_id, s->machine.cores);
    fprintf(s->table, "heads_q %d, heads_kv %d, head_dim %d, q %s, k and v %s, o %s; %d steps of %d token%s\n",
            x->heads_q, x->heads_kv, x->head_dim, fd_dtype_name(x->dtype_q), fd_dtype_name(x->dtype_kv),
            fd_dtype_name(x->dtype_o), s->o.steps, s->o.append, s->o.append == 1 ? "" : "s");
    fprintf(s->table, "\n%-18s %3s  time of a token when the cache holds about\n", "", "");
    fprintf(s->table, "%-18s %3s", "rung", "thr");
    for (int k = 0; k < SHOWN; k++) {
        fprintf(s->table, " %8" PRId64, s->o.prompt + ((end - s->o.prompt) >> (SHOWN - 1 - k)));
    }
    fprintf(s->table, " twice floors bits\n");
}

static const char legend[] = "twice: times of the last quarter of the way over those of half as many keys, by\n"
                             "their medians; 1 is flat, 2 is linear.\n"
                             "floors: over one plain read of the same K and V with as many threads. bits:\n"
                             "steps whose o and lse have the bits of a cache built at once, of those checked.\n";

/* ---- All rungs --------------------------------------------------------------------------------- */

static bool wanted(const fd_decode_options *o, const fd_rung *rung)
{
    return o->num_rungs > 0 ? fd_in_list(o->rungs, o->num_rungs, rung->number) : fd_runs_on_host(rung);
}

static fd_status run_rung(session *s, const fd_rung *rung, char *why, size_t n)
{
    fd_decode d;
    uint64_t last = 0;
    fd_status status = fd_decode_create(&d, &s->o.shape, why, n);
    if (status != FD_OK) {
        return status;
    }
    const bool timed = fd_runs_on_host(rung);
    const int32_t threads = timed && fd_bench_threaded(&d.problem, rung) ? s->o.threads : 1;
    status = fd_decode_use(&d, rung, threads, s->o.shape.kv_capacity, why, n);
    if (status == FD_UNSUPPORTED || status == FD_NO_DEVICE) {
        fprintf(s->table, "%02d %-15.15s skipped: %s\n", rung->number, rung->name, why);
        s->skipped++;
        status = FD_OK;
    } else if (status == FD_OK) {
        status = decode(s, &d, threads, timed, &last, why, n);
        if (status == FD_OK) {
            fd_progress("", 1, 1);
            print_rung(s, &d, threads, last);
            if (s->csv != NULL) {
                csv_rows(s, &d, threads);
            }
            int32_t differ = 0;
            for (int i = 0; i < s->count; i++) {
                differ += s->sections[i].differ;
            }
            s->failed += differ > 0;
            s->passed += differ == 0;
        }
    }
    fd_decode_free(&d);
    return status;
}

int fd_cmd_decode(int argc, char **argv)
{
    session s = {.count = 0};
    fd_csv csv = {.file = NULL};
    char why[1280];
    int code = fd_decode_parse(argc, argv, &s.o);
    if (code >= 0) {
        return code;
    }
    fd_machine_record_read(&s.machine, "flashdecode", argc, argv);
    const fd_libm_error libm = fd_libm_error_get(NULL);
    s.rounding = fd_host_rounding(&libm);
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
    print_head(&s);
    for (int i = 0; i < fd_ladder_count; i++) {
        if (!wanted(&s.o, fd_ladder[i])) {
            continue;
        }
        fd_progress("decode", i, fd_ladder_count);
        if (run_rung(&s, fd_ladder[i], why, sizeof why) != FD_OK) {
            goto done;
        }
    }
    fputs(legend, s.table);
    fprintf(s.table, "%" PRId64 " passed, %" PRId64 " failed, %" PRId64 " skipped\n", s.passed, s.failed, s.skipped);
    if (s.csv == NULL || fd_csv_commit(&csv, why, sizeof why) == FD_OK) {
        code = fd_exit_code(s.passed, s.failed);
    }
done:
    if (code < 0) {
        fd_progress("", 1, 1);
        fprintf(stderr, "flashdecode decode: %s\n", why);
        code = FD_EXIT_USAGE;
    }
    fd_csv_discard(&csv);
    return code;
}
