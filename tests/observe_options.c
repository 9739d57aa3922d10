/* observe_options.c: see observe.h. */
#include "observe.h"

const char *const fd_observe_names[4] = {"sms", "splits", "blocks", NULL};

static const char usage[] = "usage: flashdecode observe WHAT [options]\n\n"
                            "On a GPU: why a step takes as long as it does. WHAT is one of\n\n"
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

int fd_observe_parse(int argc, char **argv, fd_observe_options *o)
{
    *o = (fd_observe_options){
        .shape = {FD_BF16, FD_BF16, FD_BF16, .batch = 1, .heads_q = 32, .heads_kv = 8, .head_dim = 128}};
    fd_bench_shape *x = &o->shape;
    const fd_option table[] = {
        fd_operand(fd_opt_word("WHAT", &o->what, fd_observe_names)),
        fd_opt_rungs(o->rungs, &o->num_rungs),
        fd_opt_list("kv-len", o->kv_lens, &o->num_kv_lens, 1, INT32_MAX),
        fd_opt_list("splits", o->splits, &o->num_splits, 0, 1 << 20),
        fd_opt_list("blocks", o->blocks, &o->num_blocks, 1, 1 << 20),
        fd_opt_heads(&x->heads_q, &x->heads_kv),
        fd_opt_number("head-dim", &x->head_dim, 1, INT32_MAX),
        fd_opt_dtypes(&x->dtype_q, &x->dtype_kv, &x->dtype_o),
        fd_opt_text("csv", &o->csv),
        {.name = NULL},
    };
    const int parsed = fd_options_parse(argc, argv, usage, table);
    if (o->num_kv_lens == 0) {
        o->kv_lens[o->num_kv_lens++] = 65536;
    }
    if (o->num_splits == 0) {
        o->splits[o->num_splits++] = 0;
    }
    return parsed;
}
