/* rules.c: each rule as its project writes it, NaN included. Read from the sources named in the table below; a rule
 * that ignores lse, or a NaN, does so there too. */
#include "rules.h"

#include <math.h>

/* ---- Pieces ------------------------------------------------------------------------------------ */

/* An error against its allowance; NaN is above everything. 0 / 0 is 0. */
static double over(double err, double allowed)
{
    return isnan(err) ? HUGE_VAL : err == 0.0 ? 0.0 : err / allowed;
}

/* Largest |x - y|; NaN if there is one, as torch.max has it. Two infinities of one sign differ by NaN there too. */
static double max_error(const float *x, const double *y, const float *y_stored, int64_t n)
{
    double largest = 0.0;
    for (int64_t i = 0; i < n; i++) {
        const double err = fabs((double)x[i] - (y != NULL ? y[i] : (double)y_stored[i]));
        if (!(err <= largest)) {
            largest = err;
        }
        if (isnan(err)) {
            return err;
        }
    }
    return largest;
}

static double mean_error(const float *x, const double *y, const float *y_stored, int64_t n)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sum += fabs((double)x[i] - (y != NULL ? y[i] : (double)y_stored[i]));
    }
    return n > 0 ? sum / (double)n : 0.0;
}

/* torch.testing.assert_close: |x - y| <= atol + rtol |y| for every element; equal infinities are close, NaN never. */
static fd_rule_verdict assert_close(const float *x, const float *y, int64_t n, double atol, double rtol)
{
    fd_rule_verdict v = {false, 0.0};
    for (int64_t i = 0; i < n; i++) {
        const double err = x[i] == y[i] ? 0.0 : fabs((double)x[i] - (double)y[i]);
        const double allowed = atol + rtol * fabs((double)y[i]);
        v.caught = v.caught || !(err <= allowed);
        v.margin = fmax(v.margin, isinf(y[i]) && err > 0.0 ? HUGE_VAL : over(err, allowed));
    }
    return v;
}

static fd_rule_verdict close_o(const fd_rule_input *x, double atol, double rtol)
{
    return assert_close(x->o, x->against->o_stored, x->against->elements, atol, rtol);
}

/* ---- FlashAttention ---------------------------------------------------------------------------- */

/* max|out - ref| <= times max|pt - ref| + 1e-5: ref computed in fp32 and returned in the inputs' type, pt computed in
 * that type with operations re-ordered. A Python comparison with NaN is false: the assertion fails. lse is ignored. */
static fd_rule_verdict flash_attention(const fd_rule_input *x, double times)
{
    const fd_rule_references *r = x->against;
    const double err = max_error(x->o, NULL, r->o_stored, r->elements);
    const double allowed = times * max_error(r->o_low, NULL, r->o_stored, r->elements) + 1e-5;
    return (fd_rule_verdict){!(err <= allowed), over(err, allowed)};
}

static fd_rule_verdict fa2_varlen(const fd_rule_input *x)
{
    return flash_attention(x, 2.0);
}

static fd_rule_verdict fa2_kvcache(const fd_rule_input *x)
{
    return flash_attention(x, 3.0);
}

/* The 2x rule, and besides mean|out - ref| <= 1.5 mean|pt - ref|, without an absolute term. */
static fd_rule_verdict fa3_kvcache(const fd_rule_input *x)
{
    const fd_rule_references *r = x->against;
    const fd_rule_verdict largest = flash_attention(x, 2.0);
    const double err = mean_error(x->o, NULL, r->o_stored, r->elements);
    const double allowed = 1.5 * mean_error(r->o_low, NULL, r->o_stored, r->elements);
    return (fd_rule_verdict){largest.caught || !(err <= allowed), fmax(largest.margin, over(err, allowed))};
}

/* ---- Fixed tolerances -------------------------------------------------------------------------- */

static fd_rule_verdict flashinfer_fine(const fd_rule_input *x)
{
    return close_o(x, 1e-3, 1e-3);
}

static fd_rule_verdict flashinfer_coarse(const fd_rule_input *x)
{
    return close_o(x, 1e-2, 1e-2);
}

static fd_rule_verdict vllm_flash(const fd_rule_input *x)
{
    return close_o(x, 1.5e-2, 1e-2);
}

static fd_rule_verdict vllm_paged(const fd_rule_input *x)
{
    return close_o(x, 1e-3, 1e-5);
}

/* assert max|o - ref| < 1e-4 in fp32. */
static fd_rule_verdict guide(const fd_rule_input *x)
{
    const double err = max_error(x->o, x->against->o, NULL, x->against->elements);
    return (fd_rule_verdict){!(err < 1e-4), over(err, 1e-4)};
}

/* ---- llama.cpp --------------------------------------------------------------------------------- */

/* sum (a - b)^2 / sum a^2 > 5e-4 over the whole tensor fails, a being the result under test. NaN fails; an infinity, and
 * FLT_MAX counts as one, must meet one of its sign. All zeros on both sides gives 0 / 0, which is not above the limit. */
static fd_rule_verdict llama(const fd_rule_input *x)
{
    double squares = 0.0, sum = 0.0;
    bool broken = false;
    for (int64_t i = 0; i < x->against->elements; i++) {
        const double a = (double)x->o[i], b = x->against->o[i];
        const bool a_huge = !(fabs(a) < 0x1.fffffep127), b_huge = !(fabs(b) < 0x1.fffffep127);
        broken = broken || isnan(a) || a_huge != b_huge || (a_huge && signbit(a) != signbit(b));
        squares += (a - b) * (a - b);
        sum += a * a;
    }
    const double nmse = squares / sum;
    return (fd_rule_verdict){broken || nmse > 5e-4, broken ? HUGE_VAL : squares == 0.0 ? 0.0 : nmse / 5e-4};
}

/* ---- PyTorch ----------------------------------------------------------------------------------- */

/* max|golden - out| <= max(1e-5, 3 max|golden - lp|): golden in the next wider type, lp by the math backend, which takes
 * 16-bit inputs, computes in fp32 and rounds its output. 3 is the smallest of the factors in the file (4 for its other
 * kernels, 6 on ROCm). NaN fails only if lp has none; a comparison with NaN passes. */
static fd_rule_verdict torch_sdpa(const fd_rule_input *x)
{
    const fd_rule_references *r = x->against;
    const double err = max_error(x->o, r->o, NULL, r->elements), low = max_error(r->o_math, r->o, NULL, r->elements);
    const double allowed = fmax(1e-5, 3.0 * low);
    const bool broken = isnan(err) && !isnan(low);
    return (fd_rule_verdict){broken || err > allowed, broken || !isnan(err) ? over(err, allowed) : 0.0};
}

/* Mean error at most 1.1 times that of ordinary attention (10 times in fp32); but if the latter is below 1e-4 of the
 * mean size of golden, assert_close with 0.2 and 0.2 instead. NaN fails only if the ordinary one has none. */
static fd_rule_verdict flex(const float *x, const double *golden, const float *stored, const float *low, int64_t n,
                            int32_t dtype)
{
    double size = 0.0;
    for (int64_t i = 0; i < n; i++) {
        size += fabs(golden[i]) / (double)n;
    }
    const double err = mean_error(x, golden, NULL, n), ordinary = mean_error(low, golden, NULL, n);
    if (isnan(err) && !isnan(ordinary)) {
        return (fd_rule_verdict){true, HUGE_VAL};
    }
    if (ordinary < 1e-4 * size) {
        return assert_close(x, stored, n, 0.2, 0.2);
    }
    const double allowed = (dtype == FD_F32 ? 10.0 : 1.1) * ordinary;
    return (fd_rule_verdict){err > allowed, isnan(err) ? 0.0 : over(err, allowed)};
}

/* Applied to o and to lse. */
static fd_rule_verdict torch_flex(const fd_rule_input *x)
{
    const fd_rule_references *r = x->against;
    const fd_rule_verdict o = flex(x->o, r->o, r->o_stored, r->o_low, r->elements, x->dtype_o);
    const fd_rule_verdict lse = flex(x->lse, r->lse, r->lse_stored, r->lse_low, r->rows, x->dtype_o);
    return (fd_rule_verdict){o.caught || lse.caught, fmax(o.margin, lse.margin)};
}

/* ---- FlashMLA ---------------------------------------------------------------------------------- */

/* Every element within abs_tol or, of |ref| + 1e-6, within rel_tol; and 1 - 2 sum xy / sum (x^2 + y^2) at most cosine
 * in size, 0 where sum y^2 < 1e-12. NaN and infinities must stand in the same places, and then count as 0. */
static fd_rule_verdict flash_mla(const float *x, const float *y, int64_t n, double abs_tol, double rel_tol,
                                 double cosine)
{
    fd_rule_verdict v = {false, 0.0};
    double xy = 0.0, xx = 0.0, yy = 0.0;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(x[i]) || !isfinite(y[i])) {
            const bool same = x[i] == y[i] || (isnan(x[i]) && isnan(y[i]));
            v.caught = v.caught || !same;
            v.margin = same ? v.margin : HUGE_VAL;
            continue;
        }
        const double a = (double)x[i], b = (double)y[i], err = fabs(a - b), relative = err / (fabs(b) + 1e-6);
        v.caught = v.caught || !(err < abs_tol || relative < rel_tol);
        v.margin = fmax(v.margin, fmin(err / abs_tol, relative / rel_tol));
        xy += a * b;
        xx += a * a;
        yy += b * b;
    }
    const double distance = yy < 1e-12 ? 0.0 : fabs(1.0 - 2.0 * xy / (xx + yy));
    return (fd_rule_verdict){v.caught || distance > cosine, fmax(v.margin, distance / cosine)};
}

static fd_rule_verdict flash_mla_dense(const fd_rule_input *x)
{
    const fd_rule_references *r = x->against;
    const fd_rule_verdict o = flash_mla(x->o, r->o_stored, r->elements, 8e-4, 2.01 / 128.0, 5e-6);
    const fd_rule_verdict lse = flash_mla(x->lse, r->lse_stored, r->rows, 1e-6, 8.01 / 65536.0, 1e-7);
    return (fd_rule_verdict){o.caught || lse.caught, fmax(o.margin, lse.margin)};
}

/* ---- The table --------------------------------------------------------------------------------- */

#define F32 (1u << FD_F32)
#define F16 (1u << FD_F16)
#define BF16 (1u << FD_BF16)
#define ALL (F32 | F16 | BF16)

#define FLASH_ATTENTION "Dao-AILab/flash-attention 0251105a "
#define FLASHINFER "flashinfer-ai/flashinfer fb28d7242 "

/* Rules whose projects test 16 bit only are applied in fp32 as well, where they are sharpest; but not
 * FlashAttention-3, whose mean has no absolute term: in fp32 it rejects every right rung. */
const fd_rule fd_rules[] = {
    {"FlashAttention-2, 2x",
     {"FA2", "2x"},
     "max error <= 2x that of ordinary attention in the inputs' type, + 1e-5",
     FLASH_ATTENTION "tests/test_flash_attn.py",
     ALL,
     fa2_varlen},
    {"FlashAttention-2, 3x",
     {"FA2", "3x"},
     "the same with 3x: its KV-cache test",
     FLASH_ATTENTION "tests/test_flash_attn.py",
     ALL,
     fa2_kvcache},
    {"FlashAttention-3",
     {"FA3", "1.5x"},
     "max error <= 2x + 1e-5, and mean error <= 1.5x (16 bit only): its KV-cache test",
     FLASH_ATTENTION "hopper/test_flash_attn.py",
     F16 | BF16,
     fa3_kvcache},
    {"FlashInfer, 1e-3",
     {"FI", "1e-3"},
     "assert_close, rtol = atol = 1e-3 (fp16; not applied in bf16)",
     FLASHINFER "tests/attention/test_batch_decode_kernels.py",
     F32 | F16,
     flashinfer_fine},
    {"FlashInfer, 1e-2",
     {"FI", "1e-2"},
     "assert_close, rtol = atol = 1e-2",
     FLASHINFER "tests/attention/test_cudnn_decode.py",
     ALL,
     flashinfer_coarse},
    {"vLLM, flash",
     {"vLLM", "fa"},
     "assert_close, atol 1.5e-2, rtol 1e-2",
     "vllm-project/vllm 0001b995f tests/kernels/attention/test_flash_attn.py",
     ALL,
     vllm_flash},
    {"vLLM, paged",
     {"vLLM", "page"},
     "assert_close, atol 1e-3, rtol 1e-5",
     "vllm-project/vllm 00df0753b tests/kernels/attention/test_attention.py",
     ALL,
     vllm_paged},
    {"llama.cpp",
     {"lcpp", "NMSE"},
     "sum of squared errors <= 5e-4 of the sum of squares",
     "ggml-org/ggml d99724f2 tests/test-backend-ops.cpp",
     ALL,
     llama},
    {"PyTorch SDPA",
     {"SDPA", "3x"},
     "max error <= max(1e-5, 3x that of fp32 attention, output rounded)",
     "pytorch/pytorch test/test_transformers.py, aten/src/ATen/native/transformers/attention.cpp (pull requests "
     "131743, 128922)",
     ALL,
     torch_sdpa},
    {"FlexAttention",
     {"Flex", "1.1x"},
     "mean error of o and of lse <= 1.1x (fp32: 10x; 0.2 where that is tiny)",
     "pytorch/pytorch 00d79d5b9 test/inductor/test_flex_decoding.py",
     ALL,
     torch_flex},
    {"FlashMLA",
     {"FMLA", "cos"},
     "o: 8e-4 or 2.01/128, cosine 5e-6; lse: 1e-6 or 8.01/65536, cosine 1e-7",
     "deepseek-ai/FlashMLA 9241ae3 tests/test_flash_mla_dense_decoding.py",
     ALL,
     flash_mla_dense},
    {"the guide",
     {"max", "1e-4"},
     "max error < 1e-4 (fp32 only)",
     "the guide that this project began with",
     F32,
     guide},
};
const int fd_rules_count = sizeof fd_rules / sizeof *fd_rules;
