/* bound_text.c: the claims in words, for the hypotheses of a verdict. */
#include <stdarg.h>
#include <stdio.h>

#include "bound.h"
#include "gpu_math.h"

typedef struct line {
    char *text;
    size_t n, used;
} line;

static void say(line *out, const char *format, ...)
{
    va_list arguments;
    if (out->used < out->n) {
        va_start(arguments, format);
        const int more = vsnprintf(out->text + out->used, out->n - out->used, format, arguments);
        va_end(arguments);
        out->used += more > 0 ? (size_t)more : 0;
    }
}

static void say_rounded(line *out, const fd_arith *arith)
{
    if (arith->dtype_p != FD_F32 || arith->dtype_partial != FD_F32) {
        say(out, "; weights ");
        if (arith->p_parts > 1) {
            say(out, "%d x ", arith->p_parts);
        }
        say(out, "%s%s, partials %s", fd_dtype_name(arith->dtype_p),
            arith->dtype_p == FD_F32 ? ""
            : arith->p_in_l          ? " in l, too"
                                     : ", not in l",
            fd_dtype_name(arith->dtype_partial));
    }
}

void fd_claims_text(const fd_arith *arith, char *text, size_t n)
{
    static const char *const merges[] = {
        "?",          "added",           "with a running maximum",      "rescaled once",
        "normalised", "(o, lse) merged", "(o, lse) merged, no division"};
    static const char *const accumulators[] = {"in fp32", "in fp16", "on tensor cores"};
    const bool known = (uint32_t)arith->accumulator <= FD_ACC_TENSOR_CORE;
    line out = {text, n, 0};
    say(&out, "sums %s", known ? accumulators[arith->accumulator] : "in ?");
    if (arith->accumulator == FD_ACC_TENSOR_CORE) {
        const int32_t keys = arith->mma_keys > 0 ? arith->mma_keys : 16;
        if (arith->mma_rel > 0.0f) {
            say(&out, ", %d keys within %.3g of |addends|", keys, (double)arith->mma_rel);
        } else {
            say(&out, ", %d keys as %d additions", keys, keys);
        }
    }
    say(&out, "%s, shift %s", arith->flushes ? ", subnormals flushed" : "",
        arith->shift == FD_SHIFT_NONE ? "none" : "maximum");
    say_rounded(&out, arith);
    if (arith->math != FD_MATH_LIBM) {
        say(&out, "; exp within %.3g + %.3g, log %.3g, %s", (double)arith->exp_rel, (double)arith->exp_abs,
            (double)arith->log_rel, fd_gpu_math_whose(arith));
    }
    if (arith->num_levels == 0) {
        say(&out, "; order unknown: any merge tree");
    }
    for (int32_t i = 0; i < arith->num_levels && i < FD_MAX_LEVELS; i++) {
        const fd_level *level = &arith->level[i];
        const bool named = level->merge >= FD_MERGE_ADD && level->merge <= FD_MERGE_LSE_NO_DIV;
        say(&out, "; %s %s %s", i == 0 ? "keys" : "parts", merges[named ? level->merge : 0],
            level->order == FD_TREE ? "in a tree" : "in sequence");
    }
}
