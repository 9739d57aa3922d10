/* plan_options.c: see plan_options.h. */
#include "plan_options.h"

const char *const fd_split_kind_names[4] = {"none", "chunk", "fill", NULL};

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

int fd_plan_parse(int argc, char **argv, fd_plan_options *o)
{
    *o = (fd_plan_options){.batch = 1,
                           .heads_q = 32,
                           .heads_kv = 8,
                           .sms = 132,
                           .blocks_per_sm = 1,
                           .policy = -1,
                           .tile = 128,
                           .chunk = 1024,
                           .split_size_min = 128,
                           .threshold = 512};
    const fd_option table[] = {
        fd_opt_number("batch", &o->batch, 1, 1 << 20),
        fd_opt_heads(&o->heads_q, &o->heads_kv),
        fd_opt_flag("per-query-head", &o->per_query_head),
        fd_opt_list("kv-len", o->kv_lens, &o->num_kv_lens, 1, INT32_MAX),
        fd_opt_number("sms", &o->sms, 1, 1 << 20),
        fd_opt_number("blocks-per-sm", &o->blocks_per_sm, 1, 32),
        fd_opt_word("policy", &o->policy, fd_split_kind_names),
        fd_opt_number("tile", &o->tile, 1, 1 << 20),
        fd_opt_number("chunk", &o->chunk, 1, INT32_MAX),
        fd_opt_number("min-keys", &o->split_size_min, 1, INT32_MAX),
        fd_opt_number("no-split-below", &o->threshold, 1, INT32_MAX),
        fd_opt_text("csv", &o->csv),
        {.name = NULL},
    };
    static const int64_t usual[] = {512, 2048, 8192, 65536, 131072};
    const int parsed = fd_options_parse(argc, argv, usage, table);
    for (int i = 0; i < 5 && o->num_kv_lens <= i; i++) {
        o->kv_lens[o->num_kv_lens++] = usual[i];
    }
    return parsed;
}
