#include "emulate_options.h"

#include <stdio.h>
#include <string.h>

#include "commands.h"

static const char usage[] = "usage: flashdecode emulate [options]\n"
                            "\n"
                            "Runs CUDA rungs on this processor, compiled so that every load and store is\n"
                            "seen. Reports races, uninitialised shared memory, accesses out of bounds,\n"
                            "misused barriers and shuffles, each with kernel, block, thread and source line;\n"
                            "counts what a GPU's memory would be asked for; compares o and lse of three\n"
                            "schedules, bit for bit. Slow: give it small problems.\n"
                            "\n"
                            "  --rung N,N,...     these rungs (default: all CUDA rungs)\n"
                            "  --case NAME        a case of the table; flashdecode oracle --list names them\n"
                            "  --heads Q:KV       query heads and KV heads (4:1)\n"
                            "  --head-dim D       (64)\n"
                            "  --kv-len N         (257)\n"
                            "  --batch B          sequences, all of that length (1)\n"
                            "  --dtype XYZ        of q, of k and v, of o: f fp32, h fp16, b bf16 (fff)\n"
                            "  --split-size S     keys a split (0: the rung's choice)\n"
                            "  --padded           rows padded and caches longer, as in verify; else\n"
                            "                     dense: reads just outside a row are found\n"
                            "  --sms N            multiprocessors that splits are planned for (16)\n"
                            "  --schedule NAME    whose counts are shown: sequential, reversed or shuffled\n"
                            "  --seed N           of the shuffled schedule (1)\n"
                            "  --csv FILE         one row a kernel; - is standard output\n"
                            "  --help             this text\n"
                            "\n"
                            "Exit status: 0 no fault and the same bits; 1 a fault, or other bits; 2 bad\n"
                            "usage; 77 nothing could run.\n";

static bool are_emulated(const fd_emulate_options *a)
{
    for (int i = 0; i < a->num_rungs; i++) {
        if (fd_hooked_find((int32_t)a->rungs[i]) == NULL) {
            fprintf(stderr, "flashdecode emulate: --rung %lld is no CUDA rung; flashdecode ladder lists them\n",
                    (long long)a->rungs[i]);
            return false;
        }
    }
    return true;
}

static bool find_case(const char *name, fd_case *c)
{
    char why[256], path[512];
    fd_case_table table;
    bool found = false;
    if (fd_cases_read(fd_data_path("cases.csv", path, sizeof path), &table, why, sizeof why) != FD_OK) {
        fprintf(stderr, "flashdecode emulate: %s\n", why);
        return false;
    }
    for (int32_t i = 0; i < table.count && !found; i++) {
        if (strcmp(table.cases[i].name, name) == 0) {
            *c = table.cases[i];
            found = true;
        }
    }
    fd_cases_free(&table);
    if (!found) {
        fprintf(stderr, "flashdecode emulate: there is no case %s; flashdecode oracle --list names them\n", name);
    }
    return found;
}

/* The case that the shape options describe; all sequences are of the same length. */
static void complete(fd_case *c)
{
    char letters[4];
    c->head_dim_v = c->head_dim;
    for (int32_t b = 0; b < c->batch; b++) {
        c->kv_lens[b] = c->kv_len;
    }
    snprintf(c->family, sizeof c->family, "gaussian");
    snprintf(c->name, sizeof c->name, "gaussian/%s/h%d:%d/d%d/n%d", fd_dtype_letters(c, letters), c->heads_q,
             c->heads_kv, c->head_dim, c->kv_len);
}

static bool same_shape(const fd_case *x, const fd_case *y)
{
    return x->heads_q == y->heads_q && x->heads_kv == y->heads_kv && x->head_dim == y->head_dim &&
           x->kv_len == y->kv_len && x->batch == y->batch && x->split_size == y->split_size &&
           x->dtype_q == y->dtype_q && x->dtype_kv == y->dtype_kv && x->dtype_o == y->dtype_o;
}

int fd_emulate_parse(int argc, char **argv, fd_emulate_options *a)
{
    *a = (fd_emulate_options){
        .c = {.batch = 1, .heads_q = 4, .heads_kv = 1, .head_dim = 64, .kv_len = 257, .seed = 1},
        .emulator = *fd_emu_current(),
    };
    a->emulator.seed = 1;
    static const char *const schedules[FD_EMU_NUM_SCHEDULES + 1] = {"sequential", "reversed", "shuffled", NULL};
    const fd_case usual = a->c;
    const char *name = NULL;
    int64_t seed = 1;
    const fd_option table[] = {
        fd_opt_rungs(a->rungs, &a->num_rungs),
        fd_opt_text("case", &name),
        fd_opt_heads(&a->c.heads_q, &a->c.heads_kv),
        fd_opt_number("head-dim", &a->c.head_dim, 1, 4096),
        fd_opt_number("kv-len", &a->c.kv_len, 0, 1 << 24),
        fd_opt_number("batch", &a->c.batch, 1, FD_CASE_BATCH_MAX),
        fd_opt_dtypes(&a->c.dtype_q, &a->c.dtype_kv, &a->c.dtype_o),
        fd_opt_number("split-size", &a->c.split_size, 0, INT32_MAX),
        fd_opt_flag("padded", &a->padded),
        fd_opt_number("sms", &a->emulator.num_units, 1, 1 << 20),
        fd_opt_word("schedule", &a->emulator.schedule, schedules),
        fd_opt_long("seed", &seed, 0, INT32_MAX),
        fd_opt_text("csv", &a->csv),
        {.name = NULL},
    };
    const int parsed = fd_options_parse(argc, argv, usage, table);
    a->emulator.seed = (uint64_t)seed;
    if (parsed >= 0) {
        return parsed;
    }
    if (!are_emulated(a)) {
        return FD_EXIT_USAGE;
    }
    if (name == NULL) {
        complete(&a->c);
        return -1;
    }
    if (!same_shape(&a->c, &usual)) {
        return fd_bad_usage("emulate", "--case has a shape of its own", "leave the other options out");
    }
    return find_case(name, &a->c) ? -1 : FD_EXIT_USAGE;
}
