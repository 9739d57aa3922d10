/* oracle_cache.c. The hash is XXH3, 128 bits: two questions among 2^40 share one with a chance of 2^-49. It does not
 * withstand somebody who makes a collision on purpose; who can write the folder can forge an answer anyway.
 *
 * A file: the question's hash, kv_len, head_dim_v, the row's scalars and arrays in the order of pack(), and the hash of
 * all that. In this machine's byte order: elsewhere its checksum does not match, and it counts as absent. */
#define _POSIX_C_SOURCE 200809L
#define XXH_INLINE_ALL /* header only: nothing to link, nothing to carry to another machine */

#include "oracle_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "oracle_cache_trim.h"
#include "oracle_fast.h"
#include "row.h"

#define FORMAT "1"      /* of the files and of the question */
#define LEAST_WORK 2048 /* products of a row; below, computing it takes about as long as opening a file */

/* What the question covers. fd_oracle() may learn features before this does. */
#define FEATURES ((uint32_t)(FD_LSE | FD_RAGGED | FD_HEAD_DIM_V | FD_STRIDED_DIM | FD_MULTI_QUERY | FD_WINDOW))
#define DTYPES (1u << FD_F32 | 1u << FD_F16 | 1u << FD_BF16)

static const fd_caps caps = {.size = sizeof(fd_caps),
                             .features = FEATURES,
                             .dtypes_q = DTYPES,
                             .dtypes_kv = DTYPES,
                             .dtypes_o = UINT32_MAX,
                             .spaces = 1u << FD_HOST,
                             .head_dim_max = FD_HEAD_DIM_MAX};
static const fd_rung covered = {
    .size = sizeof(fd_rung), .abi = FD_ABI, .name = "the cache", .caps = &caps, .supports = fd_readable_supports};

/* ---- The question ------------------------------------------------------------------------------ */

static bool is_for_the_cache(const fd_problem *p, int32_t b, int32_t t, int32_t h, const fd_oracle_row *row)
{
    char why[160];
    if (fd_supports(&covered, p, why, sizeof why) != FD_OK || b < 0 || b >= p->batch || t < 0 || t >= p->q_len ||
        h < 0 || h >= p->heads_q) {
        return false;
    }
    const int64_t kv_len = fd_visible_end(p, b, t);
    return p->head_dim_v <= FD_HEAD_DIM_MAX && row->head_dim_v == p->head_dim_v && kv_len <= row->kv_capacity &&
           kv_len * ((int64_t)p->head_dim + p->head_dim_v) >= LEAST_WORK;
}

static XXH128_canonical_t hash_of(const fd_problem *p, int32_t b, int32_t t, int32_t h)
{
    const int64_t kv_len = fd_visible_end(p, b, t);
    const int32_t h_kv = h / fd_group(p);
    float x[FD_HEAD_DIM_MAX];
    char head[256];
    XXH3_state_t state;
    XXH128_canonical_t hash;

    /* FD_ORACLE_SOURCE, from the Makefile, is a checksum of the oracle's source. */
    const int length =
        snprintf(head, sizeof head,
                 "oracle cache " FORMAT ", " FD_ORACLE_SOURCE ", %d bits, MPFR %s, %s %s %s, "
                 "kv_len %lld, head_dim %d %d, sm_scale %a",
                 (int)FD_ORACLE_BITS, mpfr_get_version(), fd_dtype_name(p->q.dtype), fd_dtype_name(p->k.dtype),
                 fd_dtype_name(p->v.dtype), (long long)kv_len, p->head_dim, p->head_dim_v, (double)p->sm_scale);
    XXH3_128bits_reset(&state);
    XXH3_128bits_update(&state, head, (size_t)length + 1);
    fd_load_q(p, b, t, h, x);
    XXH3_128bits_update(&state, x, (size_t)p->head_dim * sizeof *x);
    for (int64_t j = 0; j < kv_len; j++) {
        fd_load_k(p, b, j, h_kv, x);
        XXH3_128bits_update(&state, x, (size_t)p->head_dim * sizeof *x);
        fd_load_v(p, b, j, h_kv, x);
        XXH3_128bits_update(&state, x, (size_t)p->head_dim_v * sizeof *x);
    }
    XXH128_canonicalFromHash(&hash, XXH3_128bits_digest(&state));
    return hash;
}

static void spell(const XXH128_canonical_t *hash, char name[33])
{
    for (size_t i = 0; i < sizeof hash->digest; i++) {
        snprintf(name + 2 * i, 3, "%02x", hash->digest[i]);
    }
}

bool fd_oracle_cache_name(const fd_problem *p, int32_t b, int32_t t, int32_t h, const fd_oracle_row *row, char name[33])
{
    if (!is_for_the_cache(p, b, t, h, row)) {
        return false;
    }
    const XXH128_canonical_t hash = hash_of(p, b, t, h);
    spell(&hash, name);
    return true;
}

/* ---- The answer -------------------------------------------------------------------------------- */

typedef struct head {
    XXH128_canonical_t question;
    int64_t kv_len, head_dim_v;
    double lse, lse_lo, lse_radius, s_max, a_max, gap_max;
} head;

static size_t file_bytes(int64_t kv_len, int32_t head_dim_v)
{
    return sizeof(head) + (3 * (size_t)kv_len + 8 * (size_t)head_dim_v) * sizeof(double) + sizeof(XXH128_canonical_t);
}

/* A row's arrays one after another, to or from at; o .. v_max are one block in the row, too. */
static unsigned char *copy_arrays(const fd_oracle_row *row, int64_t kv_len, unsigned char *at, bool out)
{
    double *const arrays[] = {row->gap, row->a, row->p, row->o};
    const size_t keys = (size_t)kv_len * sizeof(double);
    const size_t bytes[] = {keys, keys, keys, 8 * (size_t)row->head_dim_v * sizeof(double)};
    for (int i = 0; i < 4; at += bytes[i++]) {
        memcpy(out ? (void *)at : arrays[i], out ? (const void *)arrays[i] : at, bytes[i]);
    }
    return at;
}

static XXH128_canonical_t checksum(const unsigned char *bytes, size_t n)
{
    XXH128_canonical_t sum;
    XXH128_canonicalFromHash(&sum, XXH3_128bits(bytes, n));
    return sum;
}

static void pack(const fd_oracle_row *row, const XXH128_canonical_t *question, unsigned char *bytes)
{
    const head h = {*question,       row->kv_len, row->head_dim_v, row->lse,    row->lse_lo,
                    row->lse_radius, row->s_max,  row->a_max,      row->gap_max};
    memcpy(bytes, &h, sizeof h);
    unsigned char *end = copy_arrays(row, row->kv_len, bytes + sizeof h, true);
    const XXH128_canonical_t sum = checksum(bytes, (size_t)(end - bytes));
    memcpy(end, &sum, sizeof sum);
}

/* False, with the row as it was, if bytes are not the answer to the question. */
static bool unpack(const unsigned char *bytes, size_t n, int64_t kv_len, const XXH128_canonical_t *question,
                   fd_oracle_row *row)
{
    head h;
    const XXH128_canonical_t sum = checksum(bytes, n - sizeof sum);
    memcpy(&h, bytes, sizeof h);
    if (memcmp(&sum, bytes + n - sizeof sum, sizeof sum) != 0 || memcmp(&h.question, question, sizeof *question) != 0 ||
        h.kv_len != kv_len || h.head_dim_v != row->head_dim_v) {
        return false;
    }
    row->kv_len = kv_len;
    row->lse = h.lse;
    row->lse_lo = h.lse_lo;
    row->lse_radius = h.lse_radius;
    row->s_max = h.s_max;
    row->a_max = h.a_max;
    row->gap_max = h.gap_max;
    copy_arrays(row, kv_len, (unsigned char *)bytes + sizeof h, false);
    return true;
}

/* ---- Files ------------------------------------------------------------------------------------- */

/* Moves n bytes, through short counts and interrupted calls; false at an error or the end of the file. */
static bool transfer(int file, unsigned char *bytes, size_t n, bool out)
{
    while (n > 0) {
        const ssize_t moved = out ? write(file, bytes, n) : read(file, bytes, n);
        if (moved < 0 && errno == EINTR) {
            continue;
        }
        if (moved <= 0) {
            return false;
        }
        bytes += moved;
        n -= (size_t)moved;
    }
    return true;
}

static bool recall(const char *path, int64_t kv_len, const XXH128_canonical_t *question, unsigned char *bytes, size_t n,
                   fd_oracle_row *row)
{
    struct stat status;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return false;
    }
    const bool whole = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && (uint64_t)status.st_size == n &&
                       transfer(file, bytes, n, false) && unpack(bytes, n, kv_len, question, row);
    if (whole) {
        futimens(file, NULL); /* used now */
    }
    close(file);
    return whole;
}

static bool store(const fd_oracle_cache *cache, const char *path, unsigned char *bytes, size_t n)
{
    char temporary[sizeof cache->folder + 32];
    snprintf(temporary, sizeof temporary, "%s/" FD_ORACLE_CACHE_TEMPORARY "XXXXXX", cache->folder);
    int file = mkstemp(temporary);
    if (file < 0 && errno == ENOENT && (mkdir(cache->folder, 0777) == 0 || errno == EEXIST)) {
        snprintf(temporary, sizeof temporary, "%s/" FD_ORACLE_CACHE_TEMPORARY "XXXXXX", cache->folder);
        file = mkstemp(temporary);
    }
    if (file < 0) {
        return false;
    }
    const bool written = transfer(file, bytes, n, true);
    int error = errno;
    const bool closed = close(file) == 0; /* where a full disk may show */
    if (written && closed && rename(temporary, path) == 0) {
        return true;
    }
    error = written ? errno : error;
    unlink(temporary);
    errno = error;
    return false;
}

/* Stores, keeps the folder within its limit, and gives up at the first error. */
static void remember(fd_oracle_cache *cache, const char *path, unsigned char *bytes, size_t n)
{
    bool measure = false, give_up = false;
    const bool stored = store(cache, path, bytes, n);
    const int error = errno;
#pragma omp critical(fd_oracle_cache)
    {
        if (stored) {
            measure = cache->unmeasured < 0 || cache->unmeasured + (int64_t)n > cache->limit / 16;
            cache->unmeasured = measure ? 0 : cache->unmeasured + (int64_t)n;
        } else {
            give_up = !cache->gave_up;
            cache->gave_up = true;
        }
    }
    if (measure) {
        fd_oracle_cache_trim(cache->folder, cache->limit);
    }
    if (give_up && !cache->silent) {
        fprintf(stderr, "note: the oracle's rows cannot be kept in %s: %s; they are computed each time\n",
                cache->folder, strerror(error));
    }
}

/* ---- The two together -------------------------------------------------------------------------- */

void fd_oracle_cache_open(fd_oracle_cache *cache, const char *folder, int64_t limit)
{
    *cache = (fd_oracle_cache){.limit = limit, .unmeasured = -1};
    if (strlen(folder) < sizeof cache->folder) {
        strcpy(cache->folder, folder);
    }
}

fd_oracle_cache *fd_oracle_cache_usual(void)
{
    static fd_oracle_cache usual;
    static bool opened;
#pragma omp critical(fd_oracle_cache)
    if (!opened) {
        const char *folder = getenv("FD_ORACLE_CACHE");
        const bool named = folder != NULL && *folder != '\0';
        fd_oracle_cache_open(&usual,
                             !named                       ? "build/oracle_cache"
                             : strcmp(folder, "off") == 0 ? ""
                                                          : folder,
                             FD_ORACLE_CACHE_BYTES);
        usual.silent = !named && access("build", F_OK) != 0; /* nobody asked for a cache */
        opened = true;
    }
    return &usual;
}

fd_status fd_oracle_cached(fd_oracle_cache *cache, const fd_problem *p, int32_t b, int32_t t, int32_t h,
                           fd_oracle_row *row, char *why, size_t n)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    if (cache->folder[0] != '\0' && is_for_the_cache(p, b, t, h, row)) {
        size = file_bytes(fd_visible_end(p, b, t), p->head_dim_v);
        bytes = malloc(size);
    }
    if (bytes == NULL) {
        return fd_oracle_fast(p, b, t, h, row, why, n);
    }
    char name[33], path[sizeof cache->folder + sizeof name + 1];
    const XXH128_canonical_t question = hash_of(p, b, t, h);
    spell(&question, name);
    snprintf(path, sizeof path, "%s/%s", cache->folder, name);

    const bool found = recall(path, fd_visible_end(p, b, t), &question, bytes, size, row);
    bool keep = false;
#pragma omp critical(fd_oracle_cache)
    {
        cache->asked++;
        cache->found += found;
        keep = !found && !cache->gave_up;
    }
    fd_status status = FD_OK;
    if (!found) {
        status = fd_oracle_fast(p, b, t, h, row, why, n);
    }
    if (keep && status == FD_OK) {
        pack(row, &question, bytes);
        remember(cache, path, bytes, size);
    }
    free(bytes);
    return status;
}
