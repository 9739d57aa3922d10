/* oracle_logits.c: exact dot products, by taking the leading bits of all products off, level by level, until nothing is
 * left. (Zielke and Drygalla; Rump, Ogita and Oishi, Accurate floating-point summation, part I, 2008, section 3.)
 *
 * A product of two floats has 48 bits and lies in 2^-298 .. 2^256: exact in double. Level l has a grid g = grid[l], a power
 * of two. For |x| <= 2^(b-1) g, b <= 51, and sigma = 1.5 2^52 g, the sum x + sigma lies between 2^52 g and 2^53 g, where
 * doubles are the multiples of g. So high = fl(fl(x + sigma) - sigma) is the multiple of g nearest to x, x - high is exact, and at most
 * g / 2 = 2^(b-1) grid[l+1] with grid[l+1] = 2^-b g: fit for the next level. The multiples of g of head_dim products add up to
 * at most head_dim 2^(b-1) g <= 2^51 g if b = 52 - ceil(log2 head_dim): in any order, no addition rounds.
 *
 * What is left is a sum of sizes, 0 only if all is: that, and no analysis of exponents, says that the chunks are s_j. It
 * happens at the latest where g <= 2^-298, after (257 + 298) / b + 2 <= 29 levels.
 *
 * Differences. The chunks of two keys have the same grids: d_l is exact, at most 2^52 g. From the lowest level up, the part
 * of d_l that is a multiple of the next coarser grid moves there, exactly as above; below the top |d_l| <= 2^(b-1) g then, and
 * all levels below l together are at most 0.51 g. So the first d_l that is not 0, at least g, decides the sign, and in the
 * sum from the lowest level up, x is at most 0.51 |d_l| whenever d_l is not 0. Each step errs by 2^-104 of its sum, which is
 * at least 0.49 |d_l|: the last one by 2^-104, the one before by 2^-104 0.51 / 0.49 of the result, the rest by nothing to
 * speak of (2^-b of it). */
#include "oracle_logits.h"

#include <stdlib.h>
#include <string.h>

static double sigma(double grid)
{
    return 0x1.8p52 * grid;
}

bool fd_logits_init(fd_logits *logits, int64_t keys, int32_t head_dim, double largest)
{
    *logits = (fd_logits){.keys = keys, .padded = fd_padded(head_dim)};
    int bits = 52, exponent;
    while ((int64_t)1 << (52 - bits) < head_dim) {
        bits--;
    }
    frexp(largest, &exponent); /* largest < 2^exponent */
    for (int l = 0; l < FD_LOGIT_LEVELS; l++) {
        logits->grid[l] = ldexp(1.0, exponent - (bits - 1) - l * bits);
    }
    logits->rest = malloc((size_t)logits->padded * sizeof *logits->rest);
    return logits->rest != NULL;
}

void fd_logits_free(fd_logits *logits)
{
    free(logits->chunk);
    free(logits->rest);
}

static bool add_level(fd_logits *logits)
{
    const size_t level = (size_t)logits->keys * sizeof(double);
    double *chunk = realloc(logits->chunk, (size_t)(logits->levels + 1) * level);
    if (chunk == NULL) {
        return false;
    }
    memset(chunk + logits->levels * logits->keys, 0, level);
    logits->chunk = chunk;
    logits->levels++;
    return true;
}

static double sum_of(const double x[FD_LANES])
{
    return (x[0] + x[1]) + (x[2] + x[3]);
}

/* Takes the multiples of grid off x and returns their sum; *left receives the sum of the sizes of the rest. */
static double take(double *x, int32_t n, double grid, double *left)
{
    const double s = sigma(grid);
    double sum[FD_LANES] = {0.0}, rests[FD_LANES] = {0.0};
    for (int32_t i = 0; i < n; i += FD_LANES) {
        for (int32_t c = 0; c < FD_LANES; c++) {
            const double high = (x[i + c] + s) - s, rest = x[i + c] - high;
            sum[c] += high;
            rests[c] += fabs(rest);
            x[i + c] = rest;
        }
    }
    *left = sum_of(rests);
    return sum_of(sum);
}

bool fd_logits_set(fd_logits *logits, int64_t j, const double *q, const float *k, double *a)
{
    double *x = logits->rest, sizes[FD_LANES] = {0.0};
    for (int32_t i = 0; i < logits->padded; i += FD_LANES) {
        for (int32_t c = 0; c < FD_LANES; c++) {
            x[i + c] = q[i + c] * (double)k[i + c];
            sizes[c] += fabs(x[i + c]);
        }
    }
    *a = sum_of(sizes);
    double left = *a;
    for (int l = 0; left > 0.0; l++) {
        if (l == logits->levels && !add_level(logits)) {
            return false;
        }
        logits->chunk[l * logits->keys + j] = take(x, logits->padded, logits->grid[l], &left);
    }
    return true;
}

void fd_logits_get(const fd_logits *logits, int64_t j, double x[FD_LOGIT_LEVELS])
{
    for (int l = 0; l < FD_LOGIT_LEVELS; l++) {
        x[l] = l < logits->levels ? logits->chunk[l * logits->keys + j] : 0.0;
    }
}

fd_dd fd_logits_minus(const fd_logits *logits, const double x[FD_LOGIT_LEVELS], int64_t j)
{
    const int levels = logits->levels;
    double d[FD_LOGIT_LEVELS];
    for (int l = 0; l < levels; l++) {
        d[l] = x[l] - logits->chunk[l * logits->keys + j];
    }
    for (int l = levels - 1; l > 0; l--) {
        const double s = sigma(logits->grid[l - 1]), high = (d[l] + s) - s;
        d[l] -= high;
        d[l - 1] += high;
    }
    fd_dd sum = {0.0, 0.0};
    for (int l = levels - 1; l >= 0; l--) {
        sum = fd_dd_above(d[l], sum);
    }
    return sum;
}
