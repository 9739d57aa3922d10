/* decode_options.c: see decode_options.h. */
#include "decode_options.h"

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
    *o = (fd_decode_options){.shape = {8, 8, 128, FD_F32, FD_F32, FD_F32, 0}, .steps = 128, .append = 1, .checks = 4};
    fd_decode_shape *x = &o->shape;
    const fd_option table[] = {
        fd_opt_number("steps", &o->steps, 1, 1 << 24),
        fd_opt_number("append", &o->append, 1, 1 << 24),
        fd_opt_number("prompt", &o->prompt, 0, 1 << 30),
        fd_opt_rungs(o->rungs, &o->num_rungs),
        fd_opt_heads(&x->heads_q, &x->heads_kv),
        fd_opt_number("head-dim", &x->head_dim, 1, 1024),
        fd_opt_dtypes(&x->dtype_q, &x->dtype_kv, &x->dtype_o),
        fd_opt_number("threads", &o->threads, 1, 1024),
        fd_opt_number("checks", &o->checks, 0, 1 << 24),
        fd_opt_text("csv", &o->csv),
        {.name = NULL},
    };
    const int parsed = fd_options_parse(argc, argv, usage, table);
    x->kv_capacity = o->prompt + (int64_t)o->steps * o->append;
    return parsed;
}
