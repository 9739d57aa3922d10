/* libm_reference.c: see libm_reference.h. */
#include "libm_reference.h"

#include <mpfr.h>

double fd_libm_exact_error(bool is_log, float x, double y, double unit)
{
    mpfr_t exact, difference;
    mpfr_inits2(256, exact, difference, (mpfr_ptr)NULL);
    mpfr_set_flt(exact, x, MPFR_RNDN);
    (is_log ? mpfr_log : mpfr_exp)(exact, exact, MPFR_RNDN);
    mpfr_d_sub(difference, y, exact, MPFR_RNDN);
    mpfr_abs(difference, difference, MPFR_RNDN);
    if (unit > 0.0) {
        mpfr_div_d(difference, difference, unit, MPFR_RNDU);
    } else if (!mpfr_zero_p(difference)) {
        mpfr_abs(exact, exact, MPFR_RNDN);
        mpfr_div(difference, difference, exact, MPFR_RNDU);
    }
    const double error = mpfr_get_d(difference, MPFR_RNDU);
    mpfr_clears(exact, difference, (mpfr_ptr)NULL);
    return error;
}
