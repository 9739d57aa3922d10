/* test_dtype.c: conversion of fp16 and bf16 (fd.h, section 6): every value, every rounding boundary, and floats in
 * between against rounding in double arithmetic. */
#include <criterion/criterion.h>
#include <math.h>

#include "fd.h"

typedef struct format {
    const char *name;
    float (*decode)(uint16_t);
    uint16_t (*encode)(float);
    uint16_t infinity;
    int significant;  /* bits of a normal number */
    int lowest;       /* exponent of the least subnormal */
    double overflows; /* from here on the result is infinite: halfway from the largest number to the next power of 2 */
} format;

static const format formats[] = {{"fp16", fd_float_from_f16, fd_f16_from_float, 0x7c00, 11, -24, 65520.0},
                                 {"bf16", fd_float_from_bf16, fd_bf16_from_float, 0x7f80, 8, -133, 0x1.ffp+127}};
#define EACH_FORMAT(f) for (const format *f = formats; f < formats + sizeof formats / sizeof *formats; f++)

static double decode_by_hand(const format *f, uint16_t code) /* positive and finite */
{
    const int fraction_bits = f->significant - 1;
    const int exponent = code >> fraction_bits, fraction = code & ((1 << fraction_bits) - 1);
    return exponent == 0 ? ldexp(fraction, f->lowest)
                         : ldexp(fraction + (1 << fraction_bits), f->lowest + exponent - 1);
}

Test(dtype, every_value_is_what_its_bits_say)
{
    EACH_FORMAT(f)
    {
        for (uint32_t code = 0; code < f->infinity; code++) {
            const double want = decode_by_hand(f, (uint16_t)code);
            const float positive = f->decode((uint16_t)code), negative = f->decode((uint16_t)(code | 0x8000u));
            cr_assert((double)positive == want && !signbit(positive), "%s %04x", f->name, code);
            cr_assert((double)negative == -want && signbit(negative), "%s %04x", f->name, code | 0x8000u);
        }
        cr_assert(isinf(f->decode(f->infinity)) && f->decode(f->infinity) > 0.0f, "%s", f->name);
        cr_assert(f->decode((uint16_t)(f->infinity | 0x8000u)) == -INFINITY, "%s", f->name);
    }
}

Test(dtype, every_value_survives_a_round_trip)
{
    EACH_FORMAT(f)
    {
        for (uint32_t code = 0; code < 65536; code++) {
            const uint16_t back = f->encode(f->decode((uint16_t)code));
            if ((code & 0x7fffu) > f->infinity) {
                cr_assert((back & 0x7fffu) > f->infinity, "%s NaN %04x became %04x", f->name, code, back);
                cr_assert((back & 0x8000u) == (code & 0x8000u), "%s NaN %04x changed its sign", f->name, code);
            } else {
                cr_assert(back == code, "%s %04x became %04x", f->name, code, back);
            }
        }
    }
}

static void expect_code(const format *f, float x, uint32_t want)
{
    cr_assert(f->encode(x) == want, "%s of %a: %04x, not %04x", f->name, (double)x, f->encode(x), want);
    cr_assert(f->encode(-x) == (want | 0x8000u), "%s of %a: %04x", f->name, -(double)x, f->encode(-x));
}

/* Between two neighbours rounding is monotone, so the points next to the midpoint decide it everywhere. */
Test(dtype, every_rounding_boundary_is_nearest_even)
{
    EACH_FORMAT(f)
    {
        for (uint32_t code = 0; code < f->infinity; code++) {
            const double low = decode_by_hand(f, (uint16_t)code);
            const double high =
                code + 1u < f->infinity ? decode_by_hand(f, (uint16_t)(code + 1u)) : 2.0 * f->overflows - low;
            const float middle = (float)(low + 0.5 * (high - low)); /* exact: one bit more than the format */
            cr_assert((double)middle == low + 0.5 * (high - low));
            expect_code(f, nextafterf((float)low, INFINITY), code);
            expect_code(f, nextafterf(middle, 0.0f), code);
            expect_code(f, middle, code + (code & 1u));
            expect_code(f, nextafterf(middle, INFINITY), code + 1u);
        }
    }
}

Test(dtype, floats_in_between_agree_with_double_arithmetic)
{
    EACH_FORMAT(f)
    {
        for (uint32_t bits = 0; bits < 0x7f800000u; bits += 4099u) {
            const float x = fd_float_from_bits(bits);
            int exponent;
            frexp((double)x, &exponent);
            exponent = exponent - f->significant > f->lowest ? exponent - f->significant : f->lowest;
            const double rounded = ldexp(nearbyint(ldexp((double)x, -exponent)), exponent);
            const double want = (double)x >= f->overflows ? (double)INFINITY : rounded;
            cr_assert((double)f->decode(f->encode(x)) == want, "%s of %a", f->name, (double)x);
        }
    }
}

Test(dtype, overflow_and_nan)
{
    EACH_FORMAT(f)
    {
        expect_code(f, (float)f->overflows, f->infinity);
        expect_code(f, nextafterf((float)f->overflows, 0.0f), f->infinity - 1u);
        expect_code(f, INFINITY, f->infinity);
        expect_code(f, 0.0f, 0);
        /* A NaN whose payload sits in the bits that are cut off stays a NaN. */
        cr_assert((f->encode(fd_float_from_bits(0x7f800001u)) & 0x7fffu) > f->infinity, "%s", f->name);
        cr_assert((f->encode(fd_float_from_bits(0xffffffffu)) & 0x7fffu) > f->infinity, "%s", f->name);
    }
}

Test(dtype, load_and_store_use_the_tensor_s_dtype)
{
    const int32_t dtypes[] = {FD_F32, FD_F16, FD_BF16};
    const float want[] = {0x1.234568p+0f, 0x1.234p+0f, 0x1.24p+0f};
    for (int d = 0; d < 3; d++) {
        uint32_t words[4] = {0, 0, 0, 0};
        const fd_tensor x = {.data = words, .stride = {0, 0, 0, 1}, .dtype = dtypes[d]};
        fd_store(&x, 2, 0x1.234568p+0f);
        cr_assert(fd_load(&x, 2) == want[d], "dtype %d: %a", dtypes[d], (double)fd_load(&x, 2));
        cr_assert(fd_load(&x, 1) == 0.0f && fd_load(&x, 3) == 0.0f, "dtype %d: a neighbour changed", dtypes[d]);
    }
}
