/* bench_options.c: see bench_options.h. */
#include "bench_options.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "ladder.h"

#define THREADS_MAX 1024

static const char usage[] = "usage: flashdecode bench [options]\n\n"
                            "Times the rungs of the ladder on this processor, in turns. Each run is followed\n"
                            "by one plain read of the same K and V bytes, with as many threads: \"x floor\"\n"
                            "says how many such reads a kernel takes.\n\n"
                            "  --rung N           only this rung; may be repeated (default: all)\n"
                            "  --kv-len A,B,...   numbers of keys (default: by --size)\n"
                            "  --size SIZE        small: 256 to 16384 keys; class: to 65536; full: to 262144\n"
                            "  --batch N          sequences (1)\n"
                            "  --heads-q N        query heads (8)\n"
                            "  --heads-kv N       KV heads (8)\n"
                            "  --head-dim N       (128)\n"
                            "  --dtype XYZ        of q, of k and v, of o: f fp32, h fp16, b bf16 (fff)\n"
                            "  --threads A,B,...  for rungs that run on several, and for the read (1, and as\n"
                            "                     many as there are cores)\n"
                            "  --repeats N        runs a point (default: as many as take 0.15 s, 0.5 s at\n"
                            "                     class, 1 s at full; at least 5, at most 1001)\n"
                            "  --csv FILE         write the results there; - is standard output\n"
                            "  --gpu              the CUDA rungs on this GPU instead, K and V out of its\n"
                            "                     cache; FILE is continued: what it has is not timed again\n"
                            "                     (programs of make gpu)\n"
                            "  --help             this text\n\n"
                            "Exit status: 0 timed; 1 a rung failed; 2 bad usage, no memory or unwritable\n"
                            "FILE; 77 nothing could be timed.\n";

static bool bad(const char *what, const char *got, const char *expected)
{
    fprintf(stderr, "flashdecode bench: %s %s; %s\n", what, got, expected);
    return false;
}

/* Appends the comma-separated numbers of text, each 1 .. INT32_MAX, to list. */
static bool parse_list(const char *option, const char *text, int64_t *list, int *count, int capacity)
{
    for (const char *at = text;; at++) {
        char *end;
        errno = 0;
        const long long number = strtoll(at, &end, 10);
        if (end == at || *at == '-' || *at == '+' || *at == ' ' || (*end != '\0' && *end != ',') || errno != 0 ||
            number < 1 || number > INT32_MAX || *count >= capacity) {
            return bad(option, text, "give a number from 1 to 2147483647 (where a list is taken, up to 64 of them)");
        }
        list[(*count)++] = number;
        if (*end == '\0') {
            return true;
        }
        at = end;
    }
}

static bool parse_number(const char *option, const char *text, int32_t most, int32_t *number)
{
    int64_t value;
    int count = 0;
    if (!parse_list(option, text, &value, &count, 1)) {
        return false;
    }
    if (value > most) {
        char expected[48];
        snprintf(expected, sizeof expected, "the largest is %" PRId32, most);
        return bad(option, text, expected);
    }
    *number = (int32_t)value;
    return true;
}

static bool parse_dtypes(const char *text, fd_bench_shape *shape)
{
    static const char letters[] = "fhb"; /* in the order of fd_dtype */
    int32_t *const dtypes[3] = {&shape->dtype_q, &shape->dtype_kv, &shape->dtype_o};
    if (strlen(text) != 3 || strspn(text, letters) != 3) {
        return bad("--dtype", text, "give three letters of f, h, b, such as fff or bbf");
    }
    for (int i = 0; i < 3; i++) {
        *dtypes[i] = (int32_t)(strchr(letters, text[i]) - letters);
    }
    return true;
}

static bool parse_rung(const char *text, fd_bench_options *a)
{
    if (!parse_list("--rung", text, a->rungs, &a->num_rungs, FD_BENCH_LIST_MAX)) {
        return false;
    }
    for (int i = 0; i < a->num_rungs; i++) {
        if (fd_ladder_find((int32_t)a->rungs[i]) == NULL) {
            return bad("--rung", text, "there is no such rung; flashdecode ladder lists them");
        }
    }
    return true;
}

static bool parse_threads(const char *text, fd_bench_options *a)
{
    bool good = parse_list("--threads", text, a->threads, &a->num_threads, FD_BENCH_LIST_MAX);
    for (int i = 0; i < a->num_threads && good; i++) {
        good = a->threads[i] <= THREADS_MAX || bad("--threads", text, "the largest is 1024");
    }
    return good;
}

static bool parse_size(const char *text, int *size)
{
    *size = fd_size_named(text);
    return *size >= 0 || bad("--size", text, "give small, class or full");
}

int fd_bench_parse(int argc, char **argv, fd_bench_options *a)
{
    static const struct option options[] = {
        {"rung", required_argument, NULL, 'r'},     {"kv-len", required_argument, NULL, 'n'},
        {"size", required_argument, NULL, 's'},     {"batch", required_argument, NULL, 'b'},
        {"heads-q", required_argument, NULL, 'q'},  {"heads-kv", required_argument, NULL, 'k'},
        {"head-dim", required_argument, NULL, 'd'}, {"dtype", required_argument, NULL, 't'},
        {"threads", required_argument, NULL, 'T'},  {"repeats", required_argument, NULL, 'R'},
        {"csv", required_argument, NULL, 'c'},      {"gpu", no_argument, NULL, 'g'},
        {"help", no_argument, NULL, 'h'},           {NULL, 0, NULL, 0},
    };
    *a = (fd_bench_options){
        .shape = {FD_F32, FD_F32, FD_F32, .batch = 1, .heads_q = 8, .heads_kv = 8, .head_dim = 128},
    };
    fd_bench_shape *shape = &a->shape;
    bool good = true;
    optind = 1;
    opterr = 0;
    for (int option; good && (option = getopt_long(argc, argv, ":", options, NULL)) != -1;) {
        switch (option) {
        case 'r':
            good = parse_rung(optarg, a);
            break;
        case 'n':
            good = parse_list("--kv-len", optarg, a->kv_lens, &a->num_kv_lens, FD_BENCH_LIST_MAX);
            break;
        case 's':
            good = parse_size(optarg, &a->size);
            break;
        case 'b':
            good = parse_number("--batch", optarg, INT32_MAX, &shape->batch);
            break;
        case 'q':
            good = parse_number("--heads-q", optarg, INT32_MAX, &shape->heads_q);
            break;
        case 'k':
            good = parse_number("--heads-kv", optarg, INT32_MAX, &shape->heads_kv);
            break;
        case 'd':
            good = parse_number("--head-dim", optarg, INT32_MAX, &shape->head_dim);
            break;
        case 't':
            good = parse_dtypes(optarg, shape);
            break;
        case 'T':
            good = parse_threads(optarg, a);
            break;
        case 'R':
            good = parse_number("--repeats", optarg, 1001, &a->repeats);
            break;
        case 'c':
            a->csv = optarg;
            break;
        case 'g':
            a->gpu = true;
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
    for (int i = 0; a->num_kv_lens == 0 && i <= 3 + a->size; i++) {
        a->kv_lens[i] = (int64_t)256 << 2 * i;
    }
    a->num_kv_lens = a->num_kv_lens > 0 ? a->num_kv_lens : 4 + a->size;
    return good ? -1 : FD_EXIT_USAGE;
}
