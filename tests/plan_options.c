/* plan_options.c: see plan_options.h. */
#include "plan_options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"

const char *const fd_split_kind_names[3] = {"none", "chunk", "fill"};

static const char usage[] = "usage: flashdecode plan [options]\n\n"
                            "Where would a split-KV kernel cut the cache, and how does its grid fill the\n"
                            "machine? No GPU is asked.\n\n"
                            "  --batch N           sequences (1)\n"
                            "  --heads Q:KV        query heads and KV heads (32:8)\n"
                            "  --per-query-head    a thread block serves one query head (default: one KV\n"
                            "                      head, that is, its whole group)\n"
                            "  --kv-len A,B,...    keys a sequence (512,2048,8192,65536,131072)\n"
                            "  --sms N             streaming multiprocessors (132)\n"
                            "  --blocks-per-sm N   blocks that are resident on one at once (1)\n"
                            "  --policy P          none: one split; chunk: splits of a fixed size; fill: as\n"
                            "                      many as keep the machine busy (default: all three)\n"
                            "  --tile N            keys a tile: splits begin at tiles (128)\n"
                            "  --chunk N           keys a split of policy chunk (1024)\n"
                            "  --min-keys N        keys a split of policy fill, at least (128)\n"
                            "  --no-split-below N  leave shorter caches whole (512)\n"
                            "  --csv FILE          write the table there as well; - is standard output\n"
                            "  --help              this text\n\n"
                            "Exit status: 0; 2 bad usage or unwritable FILE.\n";

static bool bad(const char *what, const char *got, const char *expected)
{
    fprintf(stderr, "flashdecode plan: %s %s; %s\n", what, got, expected);
    return false;
}

/* One number, 1 .. most, up to the character `until`; at is left behind it. */
static bool parse_number(const char **at, char until, int64_t most, int64_t *number)
{
    char *end;
    errno = 0;
    *number = isdigit((unsigned char)**at) ? strtoll(*at, &end, 10) : 0;
    if (*number < 1 || *number > most || errno != 0 || *end != until) {
        return false;
    }
    *at = until == '\0' ? end : end + 1;
    return true;
}

static bool parse_size(const char *option, const char *text, int32_t most, int32_t *size)
{
    int64_t number;
    if (!parse_number(&text, '\0', most, &number)) {
        char expected[48];
        snprintf(expected, sizeof expected, "give a number from 1 to %" PRId32, most);
        return bad(option, text, expected);
    }
    *size = (int32_t)number;
    return true;
}

static bool parse_list(const char *text, fd_plan_options *o)
{
    const char *at = text;
    for (o->num_kv_lens = 0; o->num_kv_lens < FD_PLAN_LIST_MAX; o->num_kv_lens++) {
        const char until = strchr(at, ',') != NULL ? ',' : '\0';
        if (!parse_number(&at, until, INT32_MAX, &o->kv_lens[o->num_kv_lens])) {
            break;
        }
        if (until == '\0') {
            o->num_kv_lens++;
            return true;
        }
    }
    return bad("--kv-len", text, "give up to 64 numbers from 1 to 2147483647, with commas between them");
}

static bool parse_heads(const char *text, fd_plan_options *o)
{
    const char *at = text;
    int64_t heads_q, heads_kv;
    if (!parse_number(&at, ':', 65536, &heads_q) || !parse_number(&at, '\0', 65536, &heads_kv) ||
        heads_q % heads_kv != 0) {
        return bad("--heads", text, "give Q:KV, such as 32:8: Q at most 65536, and a multiple of KV");
    }
    o->heads_q = (int32_t)heads_q;
    o->heads_kv = (int32_t)heads_kv;
    return true;
}

static bool parse_policy(const char *text, int32_t *policy)
{
    for (int32_t kind = FD_SPLIT_NONE; kind <= FD_SPLIT_FILL; kind++) {
        if (strcmp(text, fd_split_kind_names[kind]) == 0) {
            *policy = kind;
            return true;
        }
    }
    return bad("--policy", text, "give none, chunk or fill");
}

int fd_plan_parse(int argc, char **argv, fd_plan_options *o)
{
    static const struct option options[] = {
        {"batch", required_argument, NULL, 'b'},
        {"heads", required_argument, NULL, 'H'},
        {"per-query-head", no_argument, NULL, 'q'},
        {"kv-len", required_argument, NULL, 'n'},
        {"sms", required_argument, NULL, 's'},
        {"blocks-per-sm", required_argument, NULL, 'r'},
        {"policy", required_argument, NULL, 'p'},
        {"tile", required_argument, NULL, 't'},
        {"chunk", required_argument, NULL, 'k'},
        {"min-keys", required_argument, NULL, 'm'},
        {"no-split-below", required_argument, NULL, 'd'},
        {"csv", required_argument, NULL, 'c'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    *o = (fd_plan_options){.batch = 1,
                           .heads_q = 32,
                           .heads_kv = 8,
                           .kv_lens = {512, 2048, 8192, 65536, 131072},
                           .num_kv_lens = 5,
                           .sms = 132,
                           .blocks_per_sm = 1,
                           .policy = -1,
                           .tile = 128,
                           .chunk = 1024,
                           .split_size_min = 128,
                           .threshold = 512};
    bool good = true;
    optind = 1;
    opterr = 0;
    for (int option; good && (option = getopt_long(argc, argv, ":", options, NULL)) != -1;) {
        switch (option) {
        case 'b':
            good = parse_size("--batch", optarg, 1 << 20, &o->batch);
            break;
        case 'H':
            good = parse_heads(optarg, o);
            break;
        case 'q':
            o->per_query_head = true;
            break;
        case 'n':
            good = parse_list(optarg, o);
            break;
        case 's':
            good = parse_size("--sms", optarg, 1 << 20, &o->sms);
            break;
        case 'r':
            good = parse_size("--blocks-per-sm", optarg, 32, &o->blocks_per_sm);
            break;
        case 'p':
            good = parse_policy(optarg, &o->policy);
            break;
        case 't':
            good = parse_size("--tile", optarg, 1 << 20, &o->tile);
            break;
        case 'k':
            good = parse_size("--chunk", optarg, INT32_MAX, &o->chunk);
            break;
        case 'm':
            good = parse_size("--min-keys", optarg, INT32_MAX, &o->split_size_min);
            break;
        case 'd':
            good = parse_size("--no-split-below", optarg, INT32_MAX, &o->threshold);
            break;
        case 'c':
            o->csv = optarg;
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
    return good ? -1 : FD_EXIT_USAGE;
}
