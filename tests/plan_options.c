/* plan_options.c: see plan_options.h. */
#include "plan_options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"

const char *const fd_split_kind_names[3] = {"none", "chunk", "fill"};

static const char me[] = "plan";
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

static bool parse_policy(const char *text, int32_t *policy)
{
    for (int32_t kind = FD_SPLIT_NONE; kind <= FD_SPLIT_FILL; kind++) {
        if (strcmp(text, fd_split_kind_names[kind]) == 0) {
            *policy = kind;
            return true;
        }
    }
    return fd_bad_option(me, "--policy", text, "give none, chunk or fill");
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
    int given;
    optind = 1;
    opterr = 0;
    for (int option; good && (option = getopt_long(argc, argv, ":", options, NULL)) != -1;) {
        switch (option) {
        case 'b':
            good = fd_parse_number(me, "--batch", optarg, 1, 1 << 20, &o->batch);
            break;
        case 'H':
            good = fd_parse_heads(me, optarg, &o->heads_q, &o->heads_kv);
            break;
        case 'q':
            o->per_query_head = true;
            break;
        case 'n':
            given = 0;
            good = fd_parse_list(me, "--kv-len", optarg, 1, INT32_MAX, o->kv_lens, &given);
            o->num_kv_lens = given;
            break;
        case 's':
            good = fd_parse_number(me, "--sms", optarg, 1, 1 << 20, &o->sms);
            break;
        case 'r':
            good = fd_parse_number(me, "--blocks-per-sm", optarg, 1, 32, &o->blocks_per_sm);
            break;
        case 'p':
            good = parse_policy(optarg, &o->policy);
            break;
        case 't':
            good = fd_parse_number(me, "--tile", optarg, 1, 1 << 20, &o->tile);
            break;
        case 'k':
            good = fd_parse_number(me, "--chunk", optarg, 1, INT32_MAX, &o->chunk);
            break;
        case 'm':
            good = fd_parse_number(me, "--min-keys", optarg, 1, INT32_MAX, &o->split_size_min);
            break;
        case 'd':
            good = fd_parse_number(me, "--no-split-below", optarg, 1, INT32_MAX, &o->threshold);
            break;
        case 'c':
            o->csv = optarg;
            break;
        case 'h':
            fputs(usage, stdout);
            return FD_EXIT_PASS;
        default:
            good = fd_bad_word(me, argc, argv, option);
        }
    }
    return good && fd_bad_word(me, argc, argv, -1) ? -1 : FD_EXIT_USAGE;
}
