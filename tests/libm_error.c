/* libm_error.c: the measurement; see libm_error.h. */
#define _POSIX_C_SOURCE 200809L

#include "libm_error.h"

#include <math.h>
#include <time.h>

#include "libm_reference.h"

#define CHUNK ((uint32_t)1 << 20)    /* arguments a task */
#define REFERENCE_SLACK 0x1p-50      /* assumed relative error of the double exp and log */
#define SUBNORMAL_SLACK 0x1p-27      /* the same at exp x = 2^-126, in units of 2^-149 */
#define REFERENCE_SAMPLES 4096       /* a range, checked with MPFR */
#define EXP_LOWEST 104.0f            /* -x */
#define EXP_TAIL 103.98f             /* -x; exp is below 2^-150 from 103.9721 on */
#define EXP_TAIL_SPARSE 1024.0f      /* -x; from here on one float in 61: results of 0 are slow */
#define EXP_HIGHEST 88.73f           /* exp rounds to infinity from 88.7228 on */
#define EXP_OVERFLOW 0x1.ffffffp+127 /* halfway from FLT_MAX to 2^128 */
#define FLOAT_INFINITY_BITS 0x7f800000u
#define EXPONENTS 255 /* of finite floats */
#define FRACTIONS ((uint32_t)1 << 23)

const fd_libm fd_libm_host = {expf, logf};

/* What one task finds; merged in any order to the same report. */
typedef struct tally {
    fd_libm_range range[FD_LIBM_RANGES];
    uint64_t decreases;
    bool above_one, tail_not_zero, log_negative;
} tally;

static void merge_range(fd_libm_range *a, const fd_libm_range *b)
{
    a->tested += b->tested;
    a->misrounded += b->misrounded;
    if (b->error > a->error || (b->error == a->error && b->error > 0.0 && b->at < a->at)) {
        a->error = b->error;
        a->at = b->at;
    }
}

static void merge(tally *a, const tally *b)
{
    for (int r = 0; r < FD_LIBM_RANGES; r++) {
        merge_range(&a->range[r], &b->range[r]);
    }
    a->decreases += b->decreases;
    a->above_one |= b->above_one;
    a->tail_not_zero |= b->tail_not_zero;
    a->log_negative |= b->log_negative;
}

/* Counts result y at x; its error is |y - reference| / unit. */
static inline void count(fd_libm_range *range, float x, float y, double reference, double unit)
{
    const double error = fabs((double)y - reference);
    range->tested++;
    range->misrounded += y != (float)reference;
    if (error != 0.0 && !(error <= range->error * unit)) {
        range->error = isnan(error) ? (double)INFINITY : error / unit;
        range->at = x;
    }
}

/* Tests expf at sign * the floats with bits begin, begin + stride, ... below end. Tiny arguments with the result 1
 * need no reference: their error is |x|, so only the last of them can be the largest. */
static void scan_exp(const fd_libm *libm, float sign, uint64_t begin, uint64_t end, uint32_t stride, tally *t)
{
    fd_libm_range normal = {.tested = 0}, subnormal = {.tested = 0};
    float before = begin > 0 ? libm->exp(sign * fd_float_from_bits((uint32_t)begin - 1)) : 1.0f;
    for (uint64_t bits = begin; bits < end; bits += stride) {
        const float x = sign * fd_float_from_bits((uint32_t)bits), y = libm->exp(x);
        t->decreases += sign > 0.0f ? y < before : y > before;
        before = y;
        if (y == 1.0f && bits < FD_EXP_TINY_BITS && bits + stride < end) {
            normal.tested++;
            continue;
        }
        t->above_one |= !(y >= 0.0f && y <= 1.0f);
        const double reference = fd_exp_reference(x);
        if (reference < 0x1p-126) {
            count(&subnormal, x, y, reference, 0x1p-149);
        } else if (!(reference >= EXP_OVERFLOW && isinf(y) && y > 0.0f)) { /* else infinity is right */
            count(&normal, x, y, reference, reference);
        }
    }
    merge_range(&t->range[sign > 0.0f ? FD_LIBM_EXP_POSITIVE : FD_LIBM_EXP_NORMAL], &normal);
    merge_range(&t->range[FD_LIBM_EXP_SUBNORMAL], &subnormal);
}

static void scan_exp_negative(const fd_libm *libm, uint64_t begin, uint64_t end, uint32_t stride, tally *t)
{
    scan_exp(libm, -1.0f, begin, end, stride, t);
}

static void scan_exp_positive(const fd_libm *libm, uint64_t begin, uint64_t end, uint32_t stride, tally *t)
{
    scan_exp(libm, 1.0f, begin, end, stride, t);
    t->above_one = false; /* that is asked of x <= 0 only */
}

static void scan_exp_tail(const fd_libm *libm, uint64_t begin, uint64_t end, uint32_t stride, tally *t)
{
    fd_libm_range tail = {.tested = 0};
    for (uint64_t bits = begin; bits < end; bits += stride) {
        const float x = -fd_float_from_bits((uint32_t)bits), y = libm->exp(x);
        if (y == 0.0f) {
            tail.tested++;
            continue;
        }
        count(&tail, x, y, 0.0, 0x1p-149);
        t->tail_not_zero = true;
        t->above_one |= !(y >= 0.0f && y <= 1.0f);
    }
    merge_range(&t->range[FD_LIBM_EXP_TAIL], &tail);
}

/* Tests logf on all positive finite floats with the fraction bits begin, begin + stride, ... One fraction with all
 * exponents at a time: a branch-free pass, which becomes vector code, tells whether any error is the largest so far. */
static void scan_log(const fd_libm *libm, uint64_t begin, uint64_t end, uint32_t stride, tally *t)
{
    fd_libm_range sum = {.tested = 0}, other = {.tested = 0};
    for (uint64_t fraction = begin; fraction < end; fraction += stride) {
        float y[EXPONENTS];
        double reference[EXPONENTS];
        y[0] = fraction == 0 ? -INFINITY : libm->log(fd_float_from_bits((uint32_t)fraction));
        for (uint32_t e = 1; e < EXPONENTS; e++) {
            y[e] = libm->log(fd_float_from_bits(e << 23 | (uint32_t)fraction));
        }
        const double log_f = log(1.0 + (double)fraction * 0x1p-23), worst = fmin(sum.error, other.error);
        for (int e = 0; e < EXPONENTS; e++) {
            reference[e] = fd_log_scaled(log_f, e - 127);
        }
        reference[0] = fraction == 0 ? (double)-INFINITY : fd_log_reference(fd_float_from_bits((uint32_t)fraction));
        reference[126] = fd_log_reference(fd_float_from_bits(126u << 23 | (uint32_t)fraction));

        int interesting = 0;
#ifdef _OPENMP
#pragma omp simd reduction(+ : interesting)
#endif
        for (int e = 0; e < EXPONENTS; e++) {
            const bool fine = fabs((double)y[e] - reference[e]) <= worst * fabs(reference[e]);
            interesting += !fine | (y[e] != (float)reference[e]);
        }
        const int first = fraction == 0, sum_end = fraction == 0 ? 148 : 147; /* exponents 127 .. sum_end - 1: sums */
        if (interesting == 0) {
            sum.tested += (uint64_t)(sum_end - 127);
            other.tested += (uint64_t)(EXPONENTS - first - (sum_end - 127));
            continue;
        }
        for (int e = first; e < EXPONENTS; e++) {
            const bool is_sum = e >= 127 && e < sum_end;
            const float x = fd_float_from_bits((uint32_t)e << 23 | (uint32_t)fraction);
            count(is_sum ? &sum : &other, x, y[e], reference[e], fabs(reference[e]));
            t->log_negative |= is_sum && !(y[e] >= 0.0f);
        }
    }
    merge_range(&t->range[FD_LIBM_LOG_SUM], &sum);
    merge_range(&t->range[FD_LIBM_LOG_OTHER], &other);
}

typedef void scan_function(const fd_libm *, uint64_t, uint64_t, uint32_t, tally *);

/* Runs scan over [begin, end) in parallel, `chunk` arguments a task; the last element is always among those tested. */
static void scan_all(scan_function *scan, const fd_libm *libm, uint64_t begin, uint64_t end, uint32_t stride,
                     uint64_t chunk, fd_libm_progress *progress, double part_begin, double part_end, tally *all)
{
    chunk *= stride;
    const int64_t chunks = (int64_t)((end - begin + chunk - 1) / chunk);
    int64_t done = 0;
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic)
#endif
    for (int64_t c = 0; c < chunks; c++) {
        tally part = {.decreases = 0};
        const uint64_t from = begin + (uint64_t)c * chunk, to = from + chunk < end ? from + chunk : end;
        scan(libm, from, to, stride, &part);
#ifdef _OPENMP
#pragma omp critical
#endif
        {
            merge(all, &part);
            done++;
            if (progress != NULL) {
                progress(part_begin + (part_end - part_begin) * (double)done / (double)chunks);
            }
        }
    }
    if ((end - 1 - begin) % stride != 0) {
        tally part = {.decreases = 0};
        scan(libm, end - 1, end, stride, &part);
        merge(all, &part);
    }
}

static void check_reference(const fd_libm *libm, fd_libm_report *report)
{
    report->reference_good = true;
    for (int r = 0; r < FD_LIBM_RANGES; r++) {
        fd_libm_range *range = &report->range[r];
        const bool is_log = r >= FD_LIBM_LOG_SUM;
        const double unit = r == FD_LIBM_EXP_SUBNORMAL ? 0x1p-149 : 0.0;
        if (r == FD_LIBM_EXP_TAIL || isinf(range->error) || range->error == 0.0) {
            range->error_exact = range->error;
            continue;
        }
        const float y = is_log ? libm->log(range->at) : libm->exp(range->at);
        range->error_exact = fd_libm_exact_error(is_log, range->at, (double)y, unit);
        const double slack = unit > 0.0 ? SUBNORMAL_SLACK : REFERENCE_SLACK;
        report->reference_good &= fabs(range->error_exact - range->error) <= slack * (1.0 + range->error);
    }
    uint64_t random = 1;
    for (int i = 0; i < 3 * REFERENCE_SAMPLES; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX generator */
        const float uniform = (float)(random >> 40) * 0x1p-24f;
        const uint32_t bits = (uint32_t)(random >> 33) % (FLOAT_INFINITY_BITS - 1) + 1;
        float x = i % 3 == 0 ? -EXP_LOWEST * uniform : EXP_HIGHEST * uniform;
        double y = fd_exp_reference(x);
        if (i % 3 == 2) {
            x = fd_float_from_bits(bits);
            y = fd_log_reference(x);
        }
        const double error = fd_libm_exact_error(i % 3 == 2, x, y, 0.0);
        report->reference_error = !(error <= report->reference_error) ? error : report->reference_error;
    }
    report->reference_good &= report->reference_error <= REFERENCE_SLACK;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void fd_libm_measure(const fd_libm *libm, uint32_t stride, fd_libm_progress *progress, fd_libm_report *report)
{
    const double start = now();
    const uint64_t lowest = fd_bits_from_float(EXP_LOWEST), tail = fd_bits_from_float(EXP_TAIL);
    const uint64_t highest = fd_bits_from_float(EXP_HIGHEST), sparse = fd_bits_from_float(EXP_TAIL_SPARSE);
    tally all = {.decreases = 0};
    scan_all(scan_exp_negative, libm, 0, lowest + 1, stride, CHUNK, progress, 0.0, 0.35, &all);
    scan_all(scan_exp_tail, libm, tail + 1, sparse, stride, CHUNK, progress, 0.35, 0.36, &all);
    scan_all(scan_exp_tail, libm, sparse, FLOAT_INFINITY_BITS + 1, stride * 61, CHUNK, progress, 0.36, 0.38, &all);
    scan_all(scan_exp_positive, libm, 1, highest + 1, stride, CHUNK, progress, 0.38, 0.68, &all);
    scan_all(scan_log, libm, 0, FRACTIONS, stride, CHUNK / 256, progress, 0.68, 1.0, &all);

    *report = (fd_libm_report){.decreases = all.decreases};
    memcpy(report->range, all.range, sizeof report->range);
    report->exp_zero_exact = libm->exp(0.0f) == 1.0f && libm->exp(-0.0f) == 1.0f;
    report->exp_at_most_one = !all.above_one;
    report->exp_minus_inf_zero = libm->exp(-INFINITY) == 0.0f;
    report->exp_tail_zero = !all.tail_not_zero;
    report->log_one_exact = libm->log(1.0f) == 0.0f;
    report->log_non_negative = !all.log_negative;
    check_reference(libm, report);
    report->seconds = now() - start;
}

/* An upper bound of the error against the exact function, from one against the reference. `slack` is what the
 * reference may be off, in the error's unit; 2^-48 covers the roundings of the measurement itself. */
static double safe(double error, double slack)
{
    return nextafter(error * (1.0 + 0x1p-48) + slack, (double)INFINITY);
}

fd_libm_error fd_libm_error_from(const fd_libm_report *report)
{
    const fd_libm_range *range = report->range;
    const double subnormal = fmax(range[FD_LIBM_EXP_SUBNORMAL].error, 0.5); /* 0 in place of up to 2^-150 */
    const double log_rel = safe(range[FD_LIBM_LOG_SUM].error, REFERENCE_SLACK);
    return (fd_libm_error){
        .exp_rel = safe(range[FD_LIBM_EXP_NORMAL].error, REFERENCE_SLACK),
        .exp_abs = 0x1p-149 * safe(subnormal + range[FD_LIBM_EXP_TAIL].error, SUBNORMAL_SLACK),
        .exp_rel_positive = safe(range[FD_LIBM_EXP_POSITIVE].error, REFERENCE_SLACK),
        .log_rel = log_rel,
        .log_rel_anywhere = fmax(log_rel, safe(range[FD_LIBM_LOG_OTHER].error, REFERENCE_SLACK)),
        .measured = true,
        .exp_zero_exact = report->exp_zero_exact,
        .exp_at_most_one = report->exp_at_most_one,
        .exp_minus_inf_zero = report->exp_minus_inf_zero,
        .exp_tail_zero = report->exp_tail_zero,
        .exp_monotone = report->decreases == 0,
        .log_one_exact = report->log_one_exact,
        .log_non_negative = report->log_non_negative,
    };
}
