/* decode_options.c: see decode_options.h. */
#include "decode_options.h"

#include <getopt.h>
#include <stdio.h>

#include "commands.h"

static const char me[] = "decode";
static const char usage[] = "usage: flashdecode decode [options]\n\n"
                            "Decodes with each rung: append a key and a value, attend, take the next token.\n"
                            "What comes next is a hash of every bit of o and lse. The plan is made once, for\n"
                            "the longest cache. At sampled steps o and lse are compared, bit for bit, with a\n"
                            "cache built at once, planned alike and planned anew, and one head is held\n"
                            "against the oracle. Times on this processor, none for emulated rungs.\n\n"
                            "  --steps N          tokens to say (128)\n"
                            "  --append N         tokens to read in at each step: 1 is plain decode (1)\n"
                            "  --prompt N         tokens in the cache before the first step (0)\n"
                            "  --rung N,...       these rungs; may be repeated (default: all CPU rungs)\n"
                            "  --heads Q:KV       query heads and KV heads (8:8)\n"
                            "  --head-dim N       (128)\n"
                            "  --dtype XYZ        of q, of k and v, of o: f fp32, h fp16, b bf16 (fff)\n"
                            "  --threads N        for rungs that run on several (as many as cores)\n"
                            "  --checks N         steps to check, the last among them (4)\n"
                            "  --csv FILE         a row a rung and section; - is standard output\n"
                            "  --help             this text\n\n"
                            "Exit status: 0 the bits are right; 1 they are not, or an error is above its\n"
                            "bound; 2 bad usage, no memory or unwritable FILE; 77 nothing could run.\n";

int fd_decode_parse(int argc, char **argv, fd_decode_options *o)
{
    static const struct option longs[] = {
        {"steps", required_argument, NULL, 's'},  {"append", required_argument, NULL, 'a'},
        {"prompt", required_argument, NULL, 'p'}, {"rung", required_argument, NULL, 'r'},
        {"heads", required_argument, NULL, 'q'},  {"head-dim", required_argument, NULL, 'd'},
        {"dtype", required_argument, NULL, 't'},  {"threads", required_argument, NULL, 'T'},
        {"checks", required_argument, NULL, 'k'}, {"csv", required_argument, NULL, 'c'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    *o = (fd_decode_options){.shape = {8, 8, 128, FD_F32, FD_F32, FD_F32, 0}, .steps = 128, .append = 1, .checks = 4};
    fd_decode_shape *x = &o->shape;
    bool good = true;
    optind = 1;
    opterr = 0;
    for (int option; good && (option = getopt_long(argc, argv, ":", longs, NULL)) != -1;) {
        switch (option) {
        case 's':
            good = fd_parse_number(me, "--steps", optarg, 1, 1 << 24, &o->steps);
            break;
        case 'a':
            good = fd_parse_number(me, "--append", optarg, 1, 1 << 24, &o->append);
            break;
        case 'p':
            good = fd_parse_number(me, "--prompt", optarg, 0, 1 << 30, &o->prompt);
            break;
        case 'r':
            good = fd_parse_rungs(me, optarg, o->rungs, &o->num_rungs);
            break;
        case 'q':
            good = fd_parse_heads(me, optarg, &x->heads_q, &x->heads_kv);
            break;
        case 'd':
            good = fd_parse_number(me, "--head-dim", optarg, 1, 1024, &x->head_dim);
            break;
        case 't':
            good = fd_parse_dtypes(me, optarg, &x->dtype_q, &x->dtype_kv, &x->dtype_o);
            break;
        case 'T':
            good = fd_parse_number(me, "--threads", optarg, 1, 1024, &o->threads);
            break;
        case 'k':
            good = fd_parse_number(me, "--checks", optarg, 0, 1 << 24, &o->checks);
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
    good = good && fd_bad_word(me, argc, argv, -1);
    x->kv_capacity = o->prompt + (int64_t)o->steps * o->append;
    return good ? -1 : FD_EXIT_USAGE;
}
