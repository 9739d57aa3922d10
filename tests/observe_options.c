/* observe_options.c: see observe.h. */
#include <getopt.h>
#include <stdio.h>

#include "commands.h"
#include "observe.h"

const char *const fd_observe_names[3] = {"sms", "splits", "blocks"};

static const char me[] = "observe";
static const char usage[] = "usage: flashdecode observe sms|splits|blocks [options]\n\n"
                            "On a GPU: why a step takes as long as it does.\n\n"
                            "  sms      reads K and V with so many blocks, each alone on a multiprocessor\n"
                            "  splits   times each rung with so many splits; the split kernel and the\n"
                            "           combine alone, too, where those are its two kernels\n"
                            "  blocks   when and on which multiprocessor each block ran: needs kernels that\n"
                            "           note it, make gpu OBSERVE=1\n\n"
                            "  --rung N,...       these rungs; may be repeated (default: all CUDA rungs)\n"
                            "  --kv-len A,B,...   numbers of keys (65536)\n"
                            "  --splits A,B,...   num_splits; 0: what the rung chooses (0)\n"
                            "  --blocks A,B,...   of sms (1 to 3 waves, finer about a full one)\n"
                            "  --heads Q:KV       query heads and KV heads (32:8)\n"
                            "  --head-dim N       (128)\n"
                            "  --dtype XYZ        of q, of k and v, of o: f fp32, h fp16, b bf16 (bbb)\n"
                            "  --csv FILE         rows are added there; what it has is not done again\n"
                            "  --help             this text\n\n"
                            "Exit status: 0 done; 1 a rung failed; 2 bad usage, no memory or unwritable\n"
                            "FILE; 77 no GPU, or a program that has no code for one.\n";

static bool parse_what(const char *word, int *what)
{
    for (int i = 0; i < 3; i++) {
        if (strcmp(word, fd_observe_names[i]) == 0) {
            *what = i;
            return true;
        }
    }
    return fd_bad_option(me, "nothing to observe is called", word, "sms, splits or blocks are");
}

int fd_observe_parse(int argc, char **argv, fd_observe_options *o)
{
    static const struct option longs[] = {
        {"rung", required_argument, NULL, 'r'},   {"kv-len", required_argument, NULL, 'n'},
        {"splits", required_argument, NULL, 's'}, {"blocks", required_argument, NULL, 'b'},
        {"heads", required_argument, NULL, 'q'},  {"head-dim", required_argument, NULL, 'd'},
        {"dtype", required_argument, NULL, 't'},  {"csv", required_argument, NULL, 'c'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    *o = (fd_observe_options){
        .what = -1, .shape = {FD_BF16, FD_BF16, FD_BF16, .batch = 1, .heads_q = 32, .heads_kv = 8, .head_dim = 128}};
    fd_bench_shape *x = &o->shape;
    bool good = true;
    optind = 1;
    opterr = 0;
    for (int option; good && (option = getopt_long(argc, argv, ":", longs, NULL)) != -1;) {
        switch (option) {
        case 'r':
            good = fd_parse_rungs(me, optarg, o->rungs, &o->num_rungs);
            break;
        case 'n':
            good = fd_parse_list(me, "--kv-len", optarg, 1, INT32_MAX, o->kv_lens, &o->num_kv_lens);
            break;
        case 's':
            good = fd_parse_list(me, "--splits", optarg, 0, 1 << 20, o->splits, &o->num_splits);
            break;
        case 'b':
            good = fd_parse_list(me, "--blocks", optarg, 1, 1 << 20, o->blocks, &o->num_blocks);
            break;
        case 'q':
            good = fd_parse_heads(me, optarg, &x->heads_q, &x->heads_kv);
            break;
        case 'd':
            good = fd_parse_number(me, "--head-dim", optarg, 1, INT32_MAX, &x->head_dim);
            break;
        case 't':
            good = fd_parse_dtypes(me, optarg, &x->dtype_q, &x->dtype_kv, &x->dtype_o);
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
    if (good && optind < argc) {
        good = parse_what(argv[optind++], &o->what);
    }
    good = good && fd_bad_word(me, argc, argv, -1);
    if (good && o->what < 0) {
        good = fd_bad_option(me, "nothing to observe is", "named", "sms, splits or blocks is the first word");
    }
    if (o->num_kv_lens == 0) {
        o->kv_lens[o->num_kv_lens++] = 65536;
    }
    if (o->num_splits == 0) {
        o->splits[o->num_splits++] = 0;
    }
    return good ? -1 : FD_EXIT_USAGE;
}
