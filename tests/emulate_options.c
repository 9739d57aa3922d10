#include "emulate_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
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

static bool bad(const char *what, const char *got, const char *expected)
{
    fprintf(stderr, "flashdecode emulate: %s %s; %s\n", what, got, expected);
    return false;
}

/* A number from least to most, up to the character `end`; what follows it is in *rest. */
static bool number(const char *option, const char *text, int64_t least, int64_t most, char end, int64_t *value,
                   const char **rest)
{
    char expected[80], *stop;
    errno = 0;
    const long long x = strtoll(text, &stop, 10);
    if (stop == text || *text == '+' || *text == ' ' || errno != 0 || x < least || x > most ||
        (*stop != '\0' && *stop != end)) {
        snprintf(expected, sizeof expected, "give a number from %lld to %lld", (long long)least, (long long)most);
        return bad(option, text, expected);
    }
    *value = x;
    *rest = *stop == '\0' ? NULL : stop + 1;
    return true;
}

static bool plain_number(const char *option, const char *text, int64_t least, int64_t most, int32_t *value)
{
    const char *rest;
    int64_t x = 0;
    const bool good = number(option, text, least, most, '\0', &x, &rest);
    *value = (int32_t)x;
    return good;
}

static bool parse_rungs(const char *text, fd_emulate_options *a)
{
    for (const char *rest = text; rest != NULL;) {
        if (a->num_rungs == FD_EMULATE_RUNGS_MAX) {
            return bad("--rung", text, "that is too many");
        }
        int64_t *rung = &a->rungs[a->num_rungs++];
        if (!number("--rung", rest, 1, 99, ',', rung, &rest)) {
            return false;
        }
        if (fd_hooked_find((int32_t)*rung) == NULL) {
            return bad("--rung", text, "only CUDA rungs are emulated; flashdecode ladder lists them");
        }
    }
    return true;
}

static bool parse_heads(const char *text, fd_case *c)
{
    const char *rest;
    int64_t q = 0, kv = 0;
    if (!number("--heads", text, 1, 4096, ':', &q, &rest)) {
        return false;
    }
    if (rest == NULL || !number("--heads", rest, 1, 4096, '\0', &kv, &rest) || q % kv != 0) {
        return bad("--heads", text, "give query heads and KV heads, such as 8:2, the first a multiple of the second");
    }
    c->heads_q = (int32_t)q;
    c->heads_kv = (int32_t)kv;
    return true;
}

static bool parse_dtypes(const char *text, fd_case *c)
{
    static const char letters[] = "fhb"; /* in the order of fd_dtype */
    int32_t *const dtypes[3] = {&c->dtype_q, &c->dtype_kv, &c->dtype_o};
    if (strlen(text) != 3 || strspn(text, letters) != 3) {
        return bad("--dtype", text, "give three letters of f, h, b, such as fff or bbf");
    }
    for (int i = 0; i < 3; i++) {
        *dtypes[i] = (int32_t)(strchr(letters, text[i]) - letters);
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
    return bad("--schedule", text, "give sequential, reversed or shuffled");
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
    return found || bad("--case", name, "there is no such case; flashdecode oracle --list names them");
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
    const char *name = NULL, *rest;
    bool good = true, shaped = false;
    int64_t seed = 1;
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
            good = parse_heads(optarg, &a->c);
            break;
        case 'd':
            good = plain_number("--head-dim", optarg, 1, 4096, &a->c.head_dim);
            break;
        case 'n':
            good = plain_number("--kv-len", optarg, 0, 1 << 24, &a->c.kv_len);
            break;
        case 'b':
            good = plain_number("--batch", optarg, 1, FD_CASE_BATCH_MAX, &a->c.batch);
            break;
        case 't':
            good = parse_dtypes(optarg, &a->c);
            break;
        case 's':
            good = plain_number("--split-size", optarg, 0, INT32_MAX, &a->c.split_size);
            break;
        case 'p':
            a->padded = true;
            break;
        case 'm':
            good = plain_number("--sms", optarg, 1, 1 << 20, &a->emulator.num_units);
            break;
        case 'S':
            good = parse_schedule(optarg, &a->emulator);
            break;
        case 'x':
            good = number("--seed", optarg, 0, INT64_MAX, '\0', &seed, &rest);
            a->emulator.seed = (uint64_t)seed;
            break;
        case 'c':
            a->csv = optarg;
            break;
        case 'h':
            fputs(usage, stdout);
            return FD_EXIT_PASS;
        default:
            good = bad(argv[optind - 1], option == ':' ? "needs a value" : "is no option", "--help lists them");
        }
    }
    if (good && optind < argc) {
        good = bad(argv[optind], "is not expected", "--help lists the options");
    }
    if (good && name != NULL && shaped) {
        good = bad("--case", name, "has a shape of its own: leave the other options out");
    }
    if (good && name != NULL) {
        good = find_case(name, &a->c);
    } else if (good) {
        complete(&a->c);
    }
    return good ? -1 : FD_EXIT_USAGE;
}
