/* `flashdecode plan`: the cut that each policy makes, and how its grid fills a machine. */
#include <inttypes.h>
#include <stdio.h>

#include "commands.h"
#include "csv.h"
#include "plan_options.h"

/* One line of the table. The grid is what is launched: batch * heads * num_splits blocks. */
typedef struct plan_row {
    fd_plan plan;
    int64_t kv_len, blocks, waves;
    double last_wave; /* share of the slots that it takes, in (0, 1] */
    double x_even;    /* waves * split_size over the keys of a slot if all slots had as many */
} plan_row;

static fd_status make_row(const fd_plan_options *o, int32_t kind, int64_t kv_len, plan_row *row, char *why, size_t n)
{
    const fd_split_policy policy = {.kind = kind,
                                    .tile = o->tile,
                                    .heads = o->per_query_head ? o->heads_q : o->heads_kv,
                                    .num_splits_max = FD_GRID_YZ_MAX,
                                    .chunk = o->chunk,
                                    .split_size_min = o->split_size_min,
                                    .no_split_below = o->threshold};
    const fd_problem problem = {.size = sizeof problem, .batch = o->batch, .kv_capacity = kv_len};
    const fd_machine machine = {
        .size = sizeof machine, .space = FD_DEVICE, .num_units = o->sms, .blocks_per_unit = o->blocks_per_sm};
    *row = (plan_row){.kv_len = kv_len};
    const fd_status status = fd_plan_splits(&policy, &problem, &machine, &row->plan, why, n);
    const int64_t rows = (int64_t)o->batch * policy.heads, slots = (int64_t)o->sms * o->blocks_per_sm;
    row->blocks = rows * row->plan.num_splits;
    row->waves = (row->blocks + slots - 1) / slots;
    row->last_wave = (double)(row->blocks - (row->waves - 1) * slots) / (double)slots;
    row->x_even = (double)row->waves * (double)row->plan.split_size * (double)slots / ((double)rows * (double)kv_len);
    return status;
}

static void print_head(const fd_plan_options *o)
{
    const int32_t heads = o->per_query_head ? o->heads_q : o->heads_kv;
    printf("A split is %" PRId64 " blocks: batch %d x %d %s heads. A wave is %" PRId64 " blocks: %d SMs x %d.\n\n"
           "  kv_len  policy  splits  split_size    blocks   waves  last wave  x even\n",
           (int64_t)o->batch * heads, o->batch, heads, o->per_query_head ? "query" : "KV",
           (int64_t)o->sms * o->blocks_per_sm, o->sms, o->blocks_per_sm);
}

static const char legend[] = "\nlast wave: share of the machine that it fills. x even: waves * split_size, over\n"
                             "the keys of a block if all keys were spread evenly over one wave; 1 is the best.\n"
                             "Counts, not times: few blocks may draw all the bandwidth there is, and every\n"
                             "split makes the combine dearer.\n";

int fd_cmd_plan(int argc, char **argv)
{
    fd_plan_options o;
    const int exit_early = fd_plan_parse(argc, argv, &o);
    if (exit_early >= 0) {
        return exit_early;
    }
    char why[256];
    fd_csv csv = {0};
    fd_status status = o.csv != NULL ? fd_csv_open(&csv, o.csv, why, sizeof why) : FD_OK;
    if (status != FD_OK) {
        goto done;
    }
    if (o.csv != NULL) {
        fputs("policy,batch,heads_q,heads_kv,kv_len,sms,blocks_per_sm,tile,num_splits,split_size,blocks,waves,"
              "last_wave,x_even\n",
              csv.file);
    }
    print_head(&o);
    for (int i = 0; i < o.num_kv_lens; i++) {
        for (int32_t kind = FD_SPLIT_NONE; kind <= FD_SPLIT_FILL; kind++) {
            plan_row r;
            if (o.policy >= 0 && o.policy != kind) {
                continue;
            }
            status = make_row(&o, kind, o.kv_lens[i], &r, why, sizeof why);
            if (status != FD_OK) {
                goto done;
            }
            printf("%8" PRId64 "  %-6s  %6d  %10" PRId64 "  %8" PRId64 "  %6" PRId64 "  %8.1f%%  %6.2f\n", r.kv_len,
                   fd_split_kind_names[kind], r.plan.num_splits, r.plan.split_size, r.blocks, r.waves,
                   100.0 * r.last_wave, r.x_even);
            if (o.csv != NULL) {
                fprintf(csv.file, "%s,%d,%d,%d,%" PRId64 ",%d,%d,%d,%d,%" PRId64 ",%" PRId64 ",%" PRId64 ",%.6g,%.6g\n",
                        fd_split_kind_names[kind], o.batch, o.heads_q, o.heads_kv, r.kv_len, o.sms, o.blocks_per_sm,
                        o.tile, r.plan.num_splits, r.plan.split_size, r.blocks, r.waves, r.last_wave, r.x_even);
            }
        }
    }
    fputs(legend, stdout);
    status = o.csv != NULL ? fd_csv_commit(&csv, why, sizeof why) : FD_OK;
done:
    if (status != FD_OK) {
        fprintf(stderr, "plan: %s\n", why);
    }
    fd_csv_discard(&csv);
    return status == FD_OK ? FD_EXIT_PASS : FD_EXIT_USAGE;
}
