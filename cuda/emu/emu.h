/* emu.h: CUDA's own names and the wrappers of fd_cuda.h, for the host compiler. Included by fd_cuda.h only. */
#ifndef FD_EMU_H
#define FD_EMU_H

/* ---- Functions, kernels, launches ---- */

#define FD_DEVICE_INLINE static inline __attribute__((unused, always_inline))
#define FD_UNROLL
#define FD_ROLLED
#define FD_RUNG(symbol)                                                                                                \
    extern const fd_rung symbol;                                                                                       \
    const fd_rung symbol
#define FD_OTHER_RUNG(symbol) extern const fd_rung symbol

/* What the Makefile says of the .cu file being compiled. */
#ifndef FD_EMU_HOOKED
#define FD_EMU_HOOKED 0 /* 1: this file's loads and stores are observed (observe.h) */
#endif
#ifndef FD_EMU_FILE
#define FD_EMU_FILE unnamed /* an identifier of its own: where its shared arrays are */
#endif
#define FD_EMU_PASTE_(a, b) a##b
#define FD_EMU_PASTE(a, b) FD_EMU_PASTE_(a, b)
#define FD_EMU_STRING_(a) #a
#define FD_EMU_STRING(a) FD_EMU_STRING_(a)

/* Set by the linker around the file's shared arrays; NULL if it has none. */
extern unsigned char FD_EMU_PASTE(__start_fd_shared_, FD_EMU_FILE)[] __attribute__((weak));
extern unsigned char FD_EMU_PASTE(__stop_fd_shared_, FD_EMU_FILE)[] __attribute__((weak));

typedef struct fd_emu_file {
    int hooked;
    unsigned char *shared, *shared_end;
} fd_emu_file;

static const fd_emu_file fd_emu_this_file __attribute__((unused)) = {
    FD_EMU_HOOKED, FD_EMU_PASTE(__start_fd_shared_, FD_EMU_FILE), FD_EMU_PASTE(__stop_fd_shared_, FD_EMU_FILE)};

/* Tells a plug-in for the emulator from one for a GPU (tests/worker_child.c). */
extern const int fd_emulated;
__attribute__((weak, visibility("default"))) const int fd_emulated = 1;

#define FD_KERNEL(name, args_t, max_threads)                                                                           \
    static void name(const args_t args);                                                                               \
    enum { name##_max_threads = (max_threads) };                                                                       \
    static void name##_enter(const void *args)                                                                         \
    {                                                                                                                  \
        name(*(const args_t *)args);                                                                                   \
    }                                                                                                                  \
    static void name(const args_t args)

#define FD_LAUNCH(name, launch, args)                                                                                  \
    fd_emu_launch(#name, name##_enter, name##_max_threads, &fd_emu_this_file, &(launch), &(args), sizeof(args))

fd_status fd_emu_launch(const char *name, void (*enter)(const void *args), int max_threads, const fd_emu_file *file,
                        const fd_launch *launch, const void *args, size_t args_bytes);

/* ---- Who am I ---- */

/* What a kernel sees of itself; the first member of the emulator's own record of the thread. */
typedef struct fd_emu_identity {
    fd_dim thread_idx, block_idx, block_dim, grid_dim;
} fd_emu_identity;

extern fd_emu_identity *fd_emu_self; /* of the thread that runs */

#define threadIdx (fd_emu_self->thread_idx)
#define blockIdx (fd_emu_self->block_idx)
#define blockDim (fd_emu_self->block_dim)
#define gridDim (fd_emu_self->grid_dim)

/* ---- Shared memory ---- */

/* One block runs at a time, so shared arrays are static ones; in a section of their own, the emulator knows where they
 * are. Under AddressSanitizer they stay where it guards them. */
#if defined(__SANITIZE_ADDRESS__)
#define FD_EMU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FD_EMU_ASAN 1
#endif
#endif
#ifdef FD_EMU_ASAN
#define __shared__ static
#else
#define __shared__ static __attribute__((section("fd_shared_" FD_EMU_STRING(FD_EMU_FILE))))
#endif

#define FD_SMEM_DYN(type, name) type *const name = (type *)fd_emu_dynamic_shared()
void *fd_emu_dynamic_shared(void);

/* ---- Rendezvous. Each names its line, so that a report can. ---- */

#define FD_EMU_HERE __FILE__, __LINE__

#define __syncthreads() fd_emu_syncthreads(FD_EMU_HERE)
#define __syncwarp(mask) fd_emu_syncwarp(mask, FD_EMU_HERE)
void fd_emu_syncthreads(const char *file, int line);
void fd_emu_syncwarp(uint32_t mask, const char *file, int line);

enum fd_emu_exchange {
    FD_EMU_SHFL = 1,
    FD_EMU_SHFL_XOR,
    FD_EMU_SHFL_UP,
    FD_EMU_SHFL_DOWN,
    FD_EMU_BALLOT,
    FD_EMU_ANY,
    FD_EMU_ALL,
    FD_EMU_LDMATRIX, /* from here on values are addresses */
    FD_EMU_LDMATRIX_TRANS,
    FD_EMU_MMA_F16,
    FD_EMU_MMA_BF16,
};

#define __shfl_sync(mask, value, lane) FD_EMU_SHUFFLE(FD_EMU_SHFL, mask, value, lane)
#define __shfl_xor_sync(mask, value, x) FD_EMU_SHUFFLE(FD_EMU_SHFL_XOR, mask, value, x)
#define __shfl_up_sync(mask, value, delta) FD_EMU_SHUFFLE(FD_EMU_SHFL_UP, mask, value, delta)
#define __shfl_down_sync(mask, value, delta) FD_EMU_SHUFFLE(FD_EMU_SHFL_DOWN, mask, value, delta)
#define __ballot_sync(mask, predicate)                                                                                 \
    ((uint32_t)fd_emu_exchange(FD_EMU_BALLOT, mask, (predicate) != 0, 0, FD_EMU_HERE))
#define __any_sync(mask, predicate) ((int)fd_emu_exchange(FD_EMU_ANY, mask, (predicate) != 0, 0, FD_EMU_HERE))
#define __all_sync(mask, predicate) ((int)fd_emu_exchange(FD_EMU_ALL, mask, (predicate) != 0, 0, FD_EMU_HERE))

/* The lanes of mask meet; each gets what the operation makes of their values. */
uint64_t fd_emu_exchange(int operation, uint32_t mask, uint64_t value, int argument, const char *file, int line);

#define FD_EMU_SHUFFLE(operation, mask, value, argument)                                                               \
    _Generic((value), float                                                                                            \
             : fd_emu_shuffle_f32, int32_t                                                                             \
             : fd_emu_shuffle_i32, uint32_t                                                                            \
             : fd_emu_shuffle_u32, int64_t                                                                             \
             : fd_emu_shuffle_i64, uint64_t                                                                            \
             : fd_emu_shuffle_u64)(operation, mask, value, argument, FD_EMU_HERE)

#define FD_EMU_DEFINE_SHUFFLE(suffix, type, to_bits, from_bits)                                                        \
    static inline type fd_emu_shuffle_##suffix(int operation, uint32_t mask, type value, int argument,                 \
                                               const char *file, int line)                                             \
    {                                                                                                                  \
        return from_bits(fd_emu_exchange(operation, mask, to_bits(value), argument, file, line));                      \
    }
#define FD_EMU_F32(bits) fd_float_from_bits((uint32_t)(bits))
FD_EMU_DEFINE_SHUFFLE(f32, float, fd_bits_from_float, FD_EMU_F32)
FD_EMU_DEFINE_SHUFFLE(i32, int32_t, (uint64_t)(uint32_t), (int32_t)(uint32_t))
FD_EMU_DEFINE_SHUFFLE(u32, uint32_t, (uint64_t), (uint32_t))
FD_EMU_DEFINE_SHUFFLE(i64, int64_t, (uint64_t), (int64_t))
FD_EMU_DEFINE_SHUFFLE(u64, uint64_t, (uint64_t), (uint64_t))
#undef FD_EMU_DEFINE_SHUFFLE

/* ---- Memory ---- */

#define __threadfence() fd_emu_fence()
void fd_emu_fence(void);
void fd_emu_spin(const char *file, int line);
#define fd_spin() fd_emu_spin(FD_EMU_HERE)

fd_vec16 fd_emu_load16(const void *at, const char *file, int line);
void fd_emu_store16(void *at, fd_vec16 value, const char *file, int line);
#define fd_ld16(at) fd_emu_load16(at, FD_EMU_HERE)
#define fd_ld16_stream(at) fd_emu_load16(at, FD_EMU_HERE)
#define fd_st16(at, value) fd_emu_store16(at, value, FD_EMU_HERE)

uint32_t fd_emu_atomic_add(uint32_t *at, uint32_t value, const char *file, int line);
uint32_t fd_emu_load_acquire(const uint32_t *at, const char *file, int line);
void fd_emu_store_release(uint32_t *at, uint32_t value, const char *file, int line);
#define fd_atomic_add_acqrel(at, value) fd_emu_atomic_add(at, value, FD_EMU_HERE)
#define fd_load_acquire(at) fd_emu_load_acquire(at, FD_EMU_HERE)
#define fd_store_release(at, value) fd_emu_store_release(at, value, FD_EMU_HERE)

/* ---- Asynchronous copies (async.c, mbar.c) ---- */

#define fd_cp_async16(shared, global, bytes) fd_emu_cp_async(shared, global, bytes, FD_EMU_HERE)
#define fd_cp_commit() fd_emu_cp_commit()
#define fd_cp_wait(n) /* n must be a constant, as on a GPU */                                                          \
    do {                                                                                                               \
        enum { fd_cp_pending = (n) };                                                                                  \
        fd_emu_cp_wait(fd_cp_pending);                                                                                 \
    } while (0)
void fd_emu_cp_async(void *shared, const void *global, uint32_t bytes, const char *file, int line);
void fd_emu_cp_commit(void);
void fd_emu_cp_wait(uint32_t pending);

#define fd_mbar_init(bar, arrivals) fd_emu_mbar_init(bar, arrivals, FD_EMU_HERE)
#define fd_mbar_expect(bar, bytes) fd_emu_mbar_expect(bar, bytes, FD_EMU_HERE)
#define fd_mbar_arrive(bar) fd_emu_mbar_arrive(bar, FD_EMU_HERE)
#define fd_mbar_wait(bar, parity) fd_emu_mbar_wait(bar, parity, FD_EMU_HERE)
#define fd_bulk_load(shared, global, bytes, bar) fd_emu_bulk_load(shared, global, bytes, bar, FD_EMU_HERE)
#define fd_fence_async() fd_emu_fence_async()
void fd_emu_mbar_init(uint64_t *bar, uint32_t arrivals, const char *file, int line);
void fd_emu_mbar_expect(uint64_t *bar, uint32_t bytes, const char *file, int line);
void fd_emu_mbar_arrive(uint64_t *bar, const char *file, int line);
void fd_emu_mbar_wait(uint64_t *bar, uint32_t parity, const char *file, int line);
void fd_emu_bulk_load(void *shared, const void *global, uint32_t bytes, uint64_t *bar, const char *file, int line);
void fd_emu_fence_async(void);

/* ---- Matrices (mma.c) ---- */

#define fd_ldmatrix_x4(r, row) fd_emu_ldmatrix(FD_EMU_LDMATRIX, r, row, FD_EMU_HERE)
#define fd_ldmatrix_x4_trans(r, row) fd_emu_ldmatrix(FD_EMU_LDMATRIX_TRANS, r, row, FD_EMU_HERE)
#define fd_mma_f16(d, a, b) fd_emu_mma(FD_EMU_MMA_F16, d, a, b, FD_EMU_HERE)
#define fd_mma_bf16(d, a, b) fd_emu_mma(FD_EMU_MMA_BF16, d, a, b, FD_EMU_HERE)
void fd_emu_ldmatrix(int operation, uint32_t r[4], const void *row, const char *file, int line);
void fd_emu_mma(int operation, float d[4], const uint32_t a[4], const uint32_t b[2], const char *file, int line);

/* ---- Clusters and overlapping launches (cluster.c, stream.c) ---- */

uint32_t fd_cluster_rank(void);
uint32_t fd_cluster_size(void);
#define fd_cluster_sync() fd_emu_cluster_sync(FD_EMU_HERE)
#define fd_cluster_map(shared, rank) fd_emu_cluster_map(shared, rank, FD_EMU_HERE)
void fd_emu_cluster_sync(const char *file, int line);
void *fd_emu_cluster_map(void *shared, uint32_t rank, const char *file, int line);

#define fd_overlap_wait() fd_emu_overlap_wait(FD_EMU_HERE)
void fd_emu_overlap_wait(const char *file, int line);
void fd_overlap_trigger(void);

/* ---- Arithmetic ---- */

FD_DEVICE_INLINE float fd_f16(uint16_t x)
{
    return fd_float_from_f16(x);
}

FD_DEVICE_INLINE float fd_bf16(uint16_t x)
{
    return fd_float_from_bf16(x);
}

FD_DEVICE_INLINE uint16_t fd_to_f16(float x)
{
    return fd_f16_from_float(x);
}

FD_DEVICE_INLINE uint16_t fd_to_bf16(float x)
{
    return fd_bf16_from_float(x);
}

/* The C library's fmaxf, without a call: NaN is nobody's maximum. */
FD_DEVICE_INLINE float fd_emu_fmaxf(float x, float y)
{
    return x > y || y != y ? x : y;
}
#define fmaxf(x, y) fd_emu_fmaxf(x, y)

FD_DEVICE_INLINE float fd_exp2(float x)
{
    return exp2f(x);
}

float fd_exp2_approx(float x); /* correctly rounded, then off by up to fd_emu_options.exp2_ulps */

/* ---- Diagnostics ---- */

uint32_t fd_smid(void);
uint64_t fd_clock(void); /* counts rendezvous: no time is told here */

#endif /* FD_EMU_H */
