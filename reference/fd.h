/* fd.h: the vocabulary and the contract of FlashDecoding, verified.
 *
 * One header, C11 and C++20, no dependency and no CUDA type: everything a rung, a wrong rung (mutant) or
 * somebody else's library (plug-in) needs. Read it in this order:
 *
 *   1  types       dtype, space, status, tensor
 *   2  problem     one decode-attention call: shapes, strides, masks
 *   3  semantics   what every implementation must return, empty caches included
 *   4  claims      what an implementation takes (fd_caps), and how it rounds (fd_arith)
 *   5  rung        the descriptor: supports, plan, workspace, run, merge
 *   6  helpers     addresses and element conversion, shared by host and device
 *
 * For batch row b, query row t, query head h, with kv_len visible keys j of KV head h / group (fd_visible_end()):
 *
 *   s_j = sm_scale * sum_i q_i k_ji        m = max_j s_j        l = sum_j exp(s_j - m)
 *   o_i = sum_j exp(s_j - m) v_ji / l      lse = m + ln l       (natural logarithm, always)
 *
 * Compatibility. Structs that grow begin with `size`, the sizeof() their writer was compiled with; fields
 * are only ever appended, and a reader takes a field beyond `size` as zero. fd_tensor and fd_level are
 * embedded in other structs and are frozen. Enumerators are stored as int32_t and never renumbered. */
#ifndef FD_H
#define FD_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FD_ABI 1u /* of this header; changes only if an old plug-in could no longer be called */

#ifdef __CUDACC__
#define FD_INLINE static __inline__ __host__ __device__ /* helpers run on both sides */
#else
#define FD_INLINE static inline
#endif

/* ---- 1. Types ---------------------------------------------------------------------------------- */

typedef enum fd_status {
    FD_OK = 0,
    FD_INVALID,     /* the problem contradicts itself: a shape, stride or pointer */
    FD_UNSUPPORTED, /* a right problem that this rung does not take */
    FD_NO_MEMORY,
    FD_NO_DEVICE,
    FD_DEVICE_ERROR
} fd_status;

enum fd_dtype { FD_F32 = 0, FD_F16, FD_BF16, FD_F8E4M3, FD_F8E5M2, FD_I8, FD_I32 };
enum fd_space { FD_HOST = 0, FD_DEVICE }; /* device: readable by the current device, not by the host */

/* An n-dimensional view. Extents come from fd_problem; strides are in elements, are not negative, and 0 repeats one
 * element (inputs only). data == NULL: the tensor is absent. Inputs are never written.
 *
 * Alignment: data of q, k, v and o, and a plan, lie at a multiple of FD_TENSOR_ALIGNMENT bytes, data of every
 * other tensor at a multiple of its element's size; no more is promised. A row lies where the strides put it: it
 * is as aligned as data and the strides in bytes are. */
#define FD_TENSOR_ALIGNMENT 16 /* bytes: one vector load of a GPU's thread */

typedef struct fd_tensor {
    void *data;
    int64_t stride[4];
    int32_t dtype, space;
} fd_tensor;

/* ---- 2. Problem -------------------------------------------------------------------------------- */

/* What a problem asks for beyond one query row on a dense cache. A rung lists the bits it takes and is
 * refused, by name, on any other; fd_features() derives the bits from the fields. */
enum fd_feature {
    FD_LSE = 1 << 0,         /* lse is wanted */
    FD_RAGGED = 1 << 1,      /* kv_lens is given */
    FD_HEAD_DIM_V = 1 << 2,  /* head_dim_v differs from head_dim (MLA: v is a prefix of k) */
    FD_STRIDED_DIM = 1 << 3, /* an innermost stride is not 1 */
    FD_MULTI_QUERY = 1 << 4, /* q_len > 1 */
    FD_PAGED = 1 << 5,       /* page_size > 0 */
    FD_WINDOW = 1 << 6,      /* window_left >= 0, or window_right >= 0 (0: causal) */
    FD_SOFTCAP = 1 << 7,     /* softcap > 0 */
    FD_SINKS = 1 << 8,       /* sinks is given */
    FD_SCALES = 1 << 9,      /* k_scale or v_scale is given */
    FD_SHARD = 1 << 10       /* kv_start > 0 or kv_total_lens is given */
};

/* One decode call. Shapes in brackets, in the order of the strides. */
typedef struct fd_problem {
    uint32_t size;     /* sizeof(fd_problem) */
    uint32_t features; /* == fd_features(this): an older rung sees bits it does not know and refuses */

    int32_t batch, heads_q, heads_kv; /* heads_q is a multiple of heads_kv; group = heads_q / heads_kv */
    int32_t q_len;                    /* query rows a sequence; 1 is plain decode */
    int32_t head_dim, head_dim_v;     /* of q and k; of v and o */
    int32_t page_size, num_pages;     /* slots a page; pages in the pool. 0, 0: not paged */
    int64_t kv_capacity;              /* slots a sequence can have; kv_lens never exceeds it */
    int64_t kv_start;                 /* position of slot 0 in the whole sequence; > 0 for a shard */

    fd_tensor q;          /* [batch, q_len, heads_q, head_dim] */
    fd_tensor k;          /* [batch, kv_capacity, heads_kv, head_dim];   paged: [num_pages, page_size, ...] */
    fd_tensor v;          /* [batch, kv_capacity, heads_kv, head_dim_v]; paged: [num_pages, page_size, ...] */
    fd_tensor o;          /* [batch, q_len, heads_q, head_dim_v], written */
    fd_tensor lse;        /* [batch, q_len, heads_q] fp32, written; absent: not wanted, and o has the same bits */
    fd_tensor kv_lens;    /* [batch] int32, read by run(), 0 allowed; absent: kv_capacity */
    fd_tensor page_table; /* [batch, ceil(kv_capacity / page_size)] int32 page numbers */
    fd_tensor sinks;      /* [heads_q] fp32 logits that enter l once, and o not at all */
    fd_tensor k_scale;    /* [batch or page, slot, heads_kv] fp32: the key is k * k_scale */
    fd_tensor v_scale;    /* [batch or page, slot, heads_kv] fp32 */
    const int32_t *kv_lens_host; /* [batch] upper bounds of kv_lens for plan(), in host memory; NULL: kv_capacity */

    float sm_scale;                    /* multiplies q.k; this very float, also in the oracle */
    float softcap;                     /* > 0: s becomes softcap * tanh(s / softcap), before any mask */
    int32_t window_left, window_right; /* visible: positions y - left .. y + right of query position y; -1: no limit */
    int32_t num_splits_request;        /* 0: plan() chooses */
    int64_t split_size_request;        /* keys a split; 0: plan() chooses. At most one of the two is set */

    /* A shard knows its own end, kv_start + kv_lens, but windows count from the query, which sits at the end of
     * the whole sequence: query row t is at position total - q_len + t, total = kv_total_lens[b]. */
    fd_tensor kv_total_lens; /* [batch] int32; absent: kv_start + kv_lens */
} fd_problem;

/* ---- 3. Semantics, for everyone ----------------------------------------------------------------
 *
 * - No visible key: o = 0 and lse = -INFINITY. merge() with an empty partial returns the other, bit for bit.
 * - Memory that is not a visible token never influences a result, whatever it holds: tails, unused pages, old
 *   workspace, old outputs. A row that is NaN or overflows leaves every other row's bits alone.
 * - Inputs are exact: an fp16 or bf16 element is the number it denotes. Quantisation is nobody's error.
 * - Accumulation and partials are fp32 unless the rung says otherwise in fd_arith.
 * - Same input, plan and machine: same bits. A plan stays valid for any kv_lens up to those planned with.
 * - Numeric promises hold where visible inputs are finite and the exact logits, and the exact sums before the
 *   division by l, fit the accumulator. These preconditions speak of the problem: a rung that overflows inside
 *   on an admissible problem has failed. */

/* ---- 4. Claims --------------------------------------------------------------------------------- */

/* What a rung takes. Everything outside is refused by name, before plan(). */
typedef struct fd_caps {
    uint32_t size;
    uint32_t features;                      /* the FD_ feature bits it takes */
    uint32_t dtypes_q, dtypes_kv, dtypes_o; /* bit 1 << dtype each; supports() may refuse combinations */
    uint32_t spaces;                        /* bit 1 << space, of all tensors */
    int32_t head_dim_max, head_dim_multiple;
    int32_t group_max, q_len_max; /* 0: no limit */
} fd_caps;

/* How partial results are merged on one level of a rung's merge tree. The order of sums and the number of
 * roundings on a key's way to the root follow from it: proofs/README.md counts them. */
enum fd_merge_kind {
    FD_MERGE_ADD = 1,    /* a common shift is known beforehand: additions only */
    FD_MERGE_RUNNING,    /* running maximum: the sums so far are rescaled whenever the next part raises it */
    FD_MERGE_RESCALE,    /* each part rescaled once to the common maximum, then added (o, m, l) */
    FD_MERGE_NORMALISED, /* the same, for parts whose o was divided by their own l */
    FD_MERGE_LSE,        /* parts (o, lse), weights exp(lse_c - max), divided by their sum */
    FD_MERGE_LSE_NO_DIV  /* parts (o, lse), weights exp(lse_c - lse), no division */
};
/* A kernel that adds the keys of a tile straight into the running sums has one level of RUNNING keys, not two. */
enum fd_order { FD_SEQUENTIAL = 1, FD_TREE }; /* ways - 1 additions on the longest chain; ceil(log2 ways) */

typedef struct fd_level { /* frozen */
    int64_t ways;         /* at most so many parts that hold a key are merged into one; INT64_MAX: all, if full */
    int32_t merge, order;
    int32_t in_order; /* 1: parts are runs of consecutive keys, all full but the row's last, merged first to last */
    int32_t reserved;
} fd_level;

enum fd_shift { FD_SHIFT_MAX = 0, FD_SHIFT_NONE }; /* none: exp of raw logits */
enum fd_math { FD_MATH_LIBM = 0, FD_MATH_CLAIMED };
/* F16: every result on the way, logits and exponentials included, may be rounded to fp16. TENSOR_CORE: q.k, and the
 * sums of p v over the keys, are added up by instructions that take mma_keys exact products at a time into an fp32
 * accumulator; whatever else there is, l and rescaling included, is fp32. */
enum fd_accumulator { FD_ACC_F32 = 0, FD_ACC_F16, FD_ACC_TENSOR_CORE };
enum fd_invariance { FD_INV_SPLITS = 1, FD_INV_BATCH = 2, FD_INV_THREADS = 4 }; /* bits do not depend on ... */

#define FD_MAX_LEVELS 8

/* What a rung says about its own arithmetic, for one problem, plan and number of visible keys. The judge derives the
 * proved bound from this and nothing else, prints it with each verdict, and tests every invariance claimed here. */
typedef struct fd_arith {
    uint32_t size;
    int32_t accumulator;   /* fd_accumulator */
    int32_t dtype_p;       /* type the weights are rounded to before they meet v (FD_F32: not rounded); see p_in_l */
    int32_t dtype_partial; /* type partial_o is stored in, to nearest; m, l and lse of a part stay fp32 */
    int32_t shift;         /* fd_shift */
    int32_t num_levels; /* 0: order unknown; any merge tree with at most one rescale and addition per key and split */
    fd_level level[FD_MAX_LEVELS]; /* from the keys up to the whole row */
    int32_t math; /* FD_MATH_LIBM: the host's expf and logf, whose errors are measured. Else the next three: */
    /* |fl(exp x) - exp x| <= exp_rel exp x + exp_abs, fl(exp x) <= 1 for x <= 0, fl(exp 0) = 1; log relative. */
    float exp_rel, exp_abs, log_rel;
    int32_t flushes;      /* 1: subnormal results become 0 */
    uint32_t invariances; /* fd_invariance bits */
    /* Only with FD_SHIFT_NONE: where the rung says that it fails. A row whose lse is above, or whose largest logit
     * is below, must come out wrong; the judge counts it as passed only then. It believes this only where a sum of
     * fp32 exponentials must overflow or vanish, and leaves rows in between, where it may, undecided. */
    float fails_above, fails_below;

    int32_t p_parts;  /* a weight is the sum of so many numbers of dtype_p, each the rounding of what is left; 0: one */
    int32_t p_in_l;   /* 1: l sums the rounded weights, too; 0: l sums the weights before they are rounded */
    int32_t mma_keys; /* products that one instruction of a tensor core adds, full but for a row's last; 0: 16 */
    float mma_rel;    /* its error over the sum of |addends|; 0: (1 + 2^-24)^mma_keys - 1, that of fp32 additions */
} fd_arith;

/* ---- 5. Rung ----------------------------------------------------------------------------------- */

/* The machine a plan is made for. */
typedef struct fd_machine {
    uint32_t size;
    int32_t space;              /* where run() executes: FD_HOST or FD_DEVICE */
    int32_t num_units;          /* CPU threads, or streaming multiprocessors */
    int32_t blocks_per_unit;    /* resident thread blocks; 1 on a CPU, 0 unknown */
    int32_t compute_capability; /* 90 for 9.0; 0 on a CPU */
    int64_t shared_bytes, l2_bytes;
} fd_machine;

/* A plan is plain data without pointers: a rung may append what it needs behind this prefix, and memcpy moves it
 * to a device. The judge reads the prefix. */
typedef struct fd_plan {
    uint32_t size;      /* bytes, the rung's own part included */
    int32_t num_splits; /* most splits of any sequence, empty ones included */
    int64_t split_size; /* keys a split: split s of any sequence holds keys [s * split_size, (s + 1) * split_size) */
    int32_t tile;       /* keys a tile; 0: not tiled */
    int32_t reserved;
} fd_plan;

/* What run() and merge() are called with besides the problem. */
typedef struct fd_context {
    uint32_t size;
    const fd_plan *plan;        /* host memory; NULL if the rung has no plan */
    const fd_plan *plan_device; /* the same bytes where run() executes; == plan on a CPU */
    void *workspace;            /* fd_workspace_bytes(), 256-byte aligned, contents arbitrary before every run */
    void *stream;               /* cudaStream_t on a device, else NULL */
} fd_context;

/* A rung, a mutant or a plug-in. Function pointers may be NULL where noted. */
typedef struct fd_rung {
    uint32_t size, abi;      /* sizeof(fd_rung), FD_ABI */
    int32_t number, parent;  /* of the ladder; parent 0: none. Plug-ins: 0, 0 */
    const char *name, *idea; /* one word or two; one line */
    const fd_caps *caps;

    /* The rung's own refusals beyond caps. NULL: none. why receives what it does not take, at most n bytes;
     * fd_supports() puts the rung's name in front. */
    fd_status (*supports)(const fd_problem *problem, char *why, size_t n);

    /* Bytes of the plan, and the plan: pure host functions that read no tensor. NULL, NULL: no plan. */
    size_t (*plan_bytes)(const fd_problem *problem, const fd_machine *machine);
    fd_status (*plan)(const fd_problem *problem, const fd_machine *machine, fd_plan *plan);

    /* Bytes of scratch that run() needs where it executes. NULL: none. */
    size_t (*workspace)(const fd_problem *problem, const fd_plan *plan);

    /* Writes o, and lse if present. Allocates nothing, synchronises nothing, reads device data on the device only. */
    fd_status (*run)(const fd_problem *problem, const fd_context *context);

    /* Fills what the rung claims about its arithmetic on a sequence of kv_len keys. NULL: nothing is claimed. */
    void (*arith)(const fd_problem *problem, const fd_plan *plan, int64_t kv_len, fd_arith *arith);

    /* Merges n >= 1 results (partial_o[c], partial_lse[c]), shaped and typed like o and lse, over disjoint sets of
     * keys, into the problem's o and lse. Reads nothing else of the problem; the context is that of a run of it.
     * For shards, cascades and tests. NULL: not offered. */
    fd_status (*merge)(const fd_problem *problem, int32_t n, const fd_tensor *partial_o, const fd_tensor *partial_lse,
                       const fd_context *context);
} fd_rung;

/* The one symbol a plug-in exports. NULL: it cannot serve a host of this ABI. */
const fd_rung *fd_plugin(uint32_t host_abi);

/* ---- Host functions (reference/fd.c) ----------------------------------------------------------- */

const char *fd_status_name(fd_status status);
const char *fd_dtype_name(int32_t dtype);
const char *fd_feature_name(uint32_t bit);

/* The feature bits that the fields of a problem imply. */
uint32_t fd_features(const fd_problem *problem);

/* Is the problem one: sizes in range, no product of extents and strides above INT64_MAX bytes, strides as
 * promised, needed pointers there? FD_OK, or FD_INVALID with one line in why. Reads no tensor element. */
fd_status fd_check_problem(const fd_problem *problem, char *why, size_t n);

/* fd_check_problem, then caps, then rung->supports. */
fd_status fd_supports(const fd_rung *rung, const fd_problem *problem, char *why, size_t n);

/* The optional functions, with their defaults: 0 bytes, no plan, nothing claimed. */
size_t fd_plan_bytes(const fd_rung *rung, const fd_problem *problem, const fd_machine *machine);
fd_status fd_make_plan(const fd_rung *rung, const fd_problem *problem, const fd_machine *machine, fd_plan *plan);
size_t fd_workspace_bytes(const fd_rung *rung, const fd_problem *problem, const fd_plan *plan);
void fd_claims(const fd_rung *rung, const fd_problem *problem, const fd_plan *plan, int64_t kv_len, fd_arith *arith);

/* ---- 6. Helpers, host and device --------------------------------------------------------------- */

FD_INLINE int32_t fd_group(const fd_problem *p)
{
    return p->heads_q / p->heads_kv; /* query heads that share one KV head */
}

/* Keys of sequence b; reads kv_lens, so call it where run() executes. */
FD_INLINE int64_t fd_kv_len(const fd_problem *p, int32_t b)
{
    return p->kv_lens.data ? ((const int32_t *)p->kv_lens.data)[b * p->kv_lens.stride[0]] : p->kv_capacity;
}

/* One past the last key that query row t of sequence b sees. Without window_left the first is key 0. */
FD_INLINE int64_t fd_visible_end(const fd_problem *p, int32_t b, int32_t t)
{
    const int64_t kv_len = fd_kv_len(p, b);
    if (p->window_right < 0) {
        return kv_len;
    }
    const int32_t *total = (const int32_t *)p->kv_total_lens.data; /* of a shard: where the query sits */
    const int64_t slots = total != NULL ? total[b * p->kv_total_lens.stride[0]] - p->kv_start : kv_len;
    const int64_t end = slots - p->q_len + t + 1 + p->window_right;
    return end < 0 ? 0 : end < kv_len ? end : kv_len;
}

/* Element offset of row [b, t, h] of q or o, and of element [b, t, h] of lse. */
FD_INLINE int64_t fd_row_at(const fd_tensor *x, int32_t b, int32_t t, int32_t h)
{
    return b * x->stride[0] + t * x->stride[1] + h * x->stride[2];
}

/* Element offset of key j's row in k or v: the one place that knows about pages. */
FD_INLINE int64_t fd_kv_at(const fd_problem *p, const fd_tensor *x, int32_t b, int64_t j, int32_t h_kv)
{
    int64_t block = b, slot = j;
    if (p->page_size > 0) {
        const int32_t *table = (const int32_t *)p->page_table.data;
        block = table[b * p->page_table.stride[0] + j / p->page_size * p->page_table.stride[1]];
        slot = j % p->page_size;
    }
    return block * x->stride[0] + slot * x->stride[1] + h_kv * x->stride[2];
}

FD_INLINE float fd_float_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

FD_INLINE uint32_t fd_bits_from_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* fp16 (1 sign, 5 exponent, 10 fraction bits) to float, exact. */
FD_INLINE float fd_float_from_f16(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, magnitude = h & 0x7fffu;
    if (magnitude >= 0x7c00u) { /* infinity, NaN */
        return fd_float_from_bits(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    }
    if (magnitude < 0x0400u) { /* subnormal: magnitude * 2^-24 */
        const float x = (float)magnitude * 0x1p-24f;
        return sign ? -x : x;
    }
    return fd_float_from_bits(sign | ((magnitude << 13) + (112u << 23)));
}

FD_INLINE float fd_float_from_bf16(uint16_t h)
{
    return fd_float_from_bits((uint32_t)h << 16);
}

/* Round to nearest, ties to even; NaN stays NaN, too large becomes infinity. */
FD_INLINE uint16_t fd_bf16_from_float(float x)
{
    const uint32_t bits = fd_bits_from_float(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return (uint16_t)(bits >> 16 | 0x0040u);
    }
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

FD_INLINE uint16_t fd_f16_from_float(float x)
{
    const uint32_t bits = fd_bits_from_float(x), magnitude = bits & 0x7fffffffu;
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    if (magnitude > 0x7f800000u) {
        return (uint16_t)(sign | 0x7e00u);
    }
    if (magnitude >= 0x477ff000u) { /* 65520, halfway to 2^16, and above */
        return (uint16_t)(sign | 0x7c00u);
    }
    if (magnitude < 0x38800000u) { /* below 2^-14: adding 0.5 leaves the fraction, rounded at 2^-24, in the low bits */
        const float shifted = fd_float_from_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (fd_bits_from_float(shifted) - 0x3f000000u));
    }
    return (uint16_t)(sign | ((magnitude - (112u << 23) + 0x0fffu + (magnitude >> 13 & 1u)) >> 13));
}

/* Element i of a tensor's storage, as the float it denotes. FD_F32, FD_F16 and FD_BF16. */
FD_INLINE float fd_load(const fd_tensor *x, int64_t i)
{
    switch (x->dtype) {
    case FD_F16:
        return fd_float_from_f16(((const uint16_t *)x->data)[i]);
    case FD_BF16:
        return fd_float_from_bf16(((const uint16_t *)x->data)[i]);
    default:
        return ((const float *)x->data)[i];
    }
}

FD_INLINE void fd_store(const fd_tensor *x, int64_t i, float value)
{
    switch (x->dtype) {
    case FD_F16:
        ((uint16_t *)x->data)[i] = fd_f16_from_float(value);
        break;
    case FD_BF16:
        ((uint16_t *)x->data)[i] = fd_bf16_from_float(value);
        break;
    default:
        ((float *)x->data)[i] = value;
        break;
    }
}

FD_INLINE size_t fd_dtype_bytes(int32_t dtype)
{
    switch (dtype) {
    case FD_F32:
    case FD_I32:
        return 4;
    case FD_F16:
    case FD_BF16:
        return 2;
    default:
        return 1;
    }
}

#ifdef __cplusplus
}
#endif

#endif /* FD_H */
