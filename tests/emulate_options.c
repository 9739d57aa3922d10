#include "emulate_options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"

static const char me[] = "emulate";
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

static bool parse_rungs(const char *text, fd_emulate_options *a)
{
    if (!fd_parse_list(me, "--rung", text, 1, INT32_MAX, a->rungs, &a->num_rungs)) {
        return false;
    }
    for (int i = 0; i < a->num_rungs; i++) {
        if (fd_hooked_find((int32_t)a->rungs[i]) == NULL) {
            return fd_bad_option(me, "--rung", text, "only CUDA rungs are emulated; flashdecode ladder lists them");
        }
    }
    return true;
}

static bool parse_schedule(const char *text, fd_emu_options *o)
{
    static const char *const names[FD_EMU_NUM_SCHEDULES] = {"sequential", "reversed", "shuffled"};
    for (int32_t i = 0; i < FD_EMU_NUM_SCHEDULES; i++) {
        if (strcmp(text, names[i]) == 0) {
            o->schedule = i;
            return true;
        }
    }
    return fd_bad_option(me, "--schedule", text, "give sequential, reversed or shuffled");
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
    return found || fd_bad_option(me, "--case", name, "there is no such case; flashdecode oracle --list names them");
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

int fd_emulate_parse(int argc, char **argv, fd_emulate_options *a)
{
    static const struct option options[] = {
        {"rung", required_argument, NULL, 'r'},
        {"case", required_argument, NULL, 'C'},
        {"heads", required_argument, NULL, 'q'},
        {"head-dim", required_argument, NULL, 'd'},
        {"kv-len", required_argument, NULL, 'n'},
        {"batch", required_argument, NULL, 'b'},
        {"dtype", required_argument, NULL, 't'},
        {"split-size", required_argument, NULL, 's'},
        {"padded", no_argument, NULL, 'p'},
        {"sms", required_argument, NULL, 'm'},
        {"schedule", required_argument, NULL, 'S'},
        {"seed", required_argument, NULL, 'x'},
        {"csv", required_argument, NULL, 'c'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    *a = (fd_emulate_options){
        .c = {.batch = 1, .heads_q = 4, .heads_kv = 1, .head_dim = 64, .kv_len = 257, .seed = 1},
        .emulator = *fd_emu_current(),
    };
    a->emulator.seed = 1;
    const char *name = NULL;
    bool good = true, shaped = false;
    int32_t seed = 1;
    optind = 1;
    opterr = 0;
    for (int option; good && (option = getopt_long(argc, argv, ":", options, NULL)) != -1;) {
        shaped |= strchr("qdnbts", option) != NULL;
        switch (option) {
        case 'r':
            good = parse_rungs(optarg, a);
            break;
        case 'C':
            name = optarg;
            break;
        case 'q':
            good = fd_parse_heads(me, optarg, &a->c.heads_q, &a->c.heads_kv);
            break;
        case 'd':
            good = fd_parse_number(me, "--head-dim", optarg, 1, 4096, &a->c.head_dim);
            break;
        case 'n':
            good = fd_parse_number(me, "--kv-len", optarg, 0, 1 << 24, &a->c.kv_len);
            break;
        case 'b':
            good = fd_parse_number(me, "--batch", optarg, 1, FD_CASE_BATCH_MAX, &a->c.batch);
            break;
        case 't':
            good = fd_parse_dtypes(me, optarg, &a->c.dtype_q, &a->c.dtype_kv, &a->c.dtype_o);
            break;
        case 's':
            good = fd_parse_number(me, "--split-size", optarg, 0, INT32_MAX, &a->c.split_size);
            break;
        case 'p':
            a->padded = true;
            break;
        case 'm':
            good = fd_parse_number(me, "--sms", optarg, 1, 1 << 20, &a->emulator.num_units);
            break;
        case 'S':
            good = parse_schedule(optarg, &a->emulator);
            break;
        case 'x':
            good = fd_parse_number(me, "--seed", optarg, 0, INT32_MAX, &seed);
            a->emulator.seed = (uint64_t)seed;
            break;
        case 'c':
            a->csv = optarg;
            break;
        case 'h':
            fputs(usage, stdout);
            return FD_EXIT_PASS;
        default:
            good = fd_bad_word(me, argc, argv, option);
        }
    }
    good = good && fd_bad_word(me, argc, argv, -1);
    if (good && name != NULL && shaped) {
        good = fd_bad_option(me, "--case", name, "has a shape of its own: leave the other options out");
    }
    if (good && name != NULL) {
        good = find_case(name, &a->c);
    } else if (good) {
        complete(&a->c);
    }
    return good ? -1 : FD_EXIT_USAGE;
}
