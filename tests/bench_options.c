/* bench_options.c: see bench_options.h. */
#include "bench_options.h"

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

int fd_bench_parse(int argc, char **argv, fd_bench_options *a)
{
    *a = (fd_bench_options){
        .shape = {FD_F32, FD_F32, FD_F32, .batch = 1, .heads_q = 8, .heads_kv = 8, .head_dim = 128},
    };
    fd_bench_shape *shape = &a->shape;
    const fd_option table[] = {
        fd_opt_rungs(a->rungs, &a->num_rungs),
        fd_opt_list("kv-len", a->kv_lens, &a->num_kv_lens, 1, INT32_MAX),
        fd_opt_size(&a->size),
        fd_opt_number("batch", &shape->batch, 1, INT32_MAX),
        fd_opt_number("heads-q", &shape->heads_q, 1, INT32_MAX),
        fd_opt_number("heads-kv", &shape->heads_kv, 1, INT32_MAX),
        fd_opt_number("head-dim", &shape->head_dim, 1, INT32_MAX),
        fd_opt_dtypes(&shape->dtype_q, &shape->dtype_kv, &shape->dtype_o),
        fd_opt_list("threads", a->threads, &a->num_threads, 1, THREADS_MAX),
        fd_opt_number("repeats", &a->repeats, 1, FD_BENCH_REPEATS_MAX),
        fd_opt_text("csv", &a->csv),
        fd_opt_flag("gpu", &a->gpu),
        {.name = NULL},
    };
    const int parsed = fd_options_parse(argc, argv, usage, table);
    for (int i = 0; a->num_kv_lens == 0 && i <= 3 + a->size; i++) {
        a->kv_lens[i] = (int64_t)256 << 2 * i;
    }
    a->num_kv_lens = a->num_kv_lens > 0 ? a->num_kv_lens : 4 + a->size;
    return parsed;
}
