/* bench_options.c: see bench_options.h. */
#include "bench_options.h"

#include <getopt.h>
#include <stdio.h>

#include "commands.h"

#define THREADS_MAX 1024

static const char me[] = "bench";
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
            good = fd_parse_rungs(me, optarg, a->rungs, &a->num_rungs);
            break;
        case 'n':
            good = fd_parse_list(me, "--kv-len", optarg, 1, INT32_MAX, a->kv_lens, &a->num_kv_lens);
            break;
        case 's':
            good = fd_parse_size(me, optarg, &a->size);
            break;
        case 'b':
            good = fd_parse_number(me, "--batch", optarg, 1, INT32_MAX, &shape->batch);
            break;
        case 'q':
            good = fd_parse_number(me, "--heads-q", optarg, 1, INT32_MAX, &shape->heads_q);
            break;
        case 'k':
            good = fd_parse_number(me, "--heads-kv", optarg, 1, INT32_MAX, &shape->heads_kv);
            break;
        case 'd':
            good = fd_parse_number(me, "--head-dim", optarg, 1, INT32_MAX, &shape->head_dim);
            break;
        case 't':
            good = fd_parse_dtypes(me, optarg, &shape->dtype_q, &shape->dtype_kv, &shape->dtype_o);
            break;
        case 'T':
            good = fd_parse_list(me, "--threads", optarg, 1, THREADS_MAX, a->threads, &a->num_threads);
            break;
        case 'R':
            good = fd_parse_number(me, "--repeats", optarg, 1, FD_BENCH_REPEATS_MAX, &a->repeats);
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
            good = fd_bad_word(me, argc, argv, option);
        }
    }
    good = good && fd_bad_word(me, argc, argv, -1);
    for (int i = 0; a->num_kv_lens == 0 && i <= 3 + a->size; i++) {
        a->kv_lens[i] = (int64_t)256 << 2 * i;
    }
    a->num_kv_lens = a->num_kv_lens > 0 ? a->num_kv_lens : 4 + a->size;
    return good ? -1 : FD_EXIT_USAGE;
}
