/* claims_options.c: see claims_options.h. */
#include "claims_options.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "bound.h"

const char *const fd_claims_option_names[] = {"accumulate", "mma-keys", "mma-error", "weights", "l",
                                              "partials",   "exp-ulp",  "log-ulp",   "order",   NULL};

fd_arith fd_claims_none(void)
{
    return (fd_arith){.size = sizeof(fd_arith)};
}

static fd_status no_such(const char *name, const char *value, const char *cure, char *why, size_t n)
{
    snprintf(why, n, "--%s %s: %s", name, value, cure);
    return FD_INVALID;
}

/* ---- One option each --------------------------------------------------------------------------- */

static fd_status take_accumulate(const char *value, fd_arith *a, char *why, size_t n)
{
    static const struct {
        const char *name;
        int32_t accumulator, dtype_p;
    } ways[] = {{"fp32", FD_ACC_F32, -1},
                {"fp16", FD_ACC_F16, -1},
                {"tensor-core", FD_ACC_TENSOR_CORE, -1},
                {"bf16-p", FD_ACC_TENSOR_CORE, FD_BF16},
                {"fp16-p", FD_ACC_TENSOR_CORE, FD_F16}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (strcmp(value, ways[i].name) == 0) {
            a->accumulator = ways[i].accumulator;
            if (ways[i].dtype_p >= 0) {
                a->dtype_p = ways[i].dtype_p;
                a->p_parts = 0;
            }
            return FD_OK;
        }
    }
    return no_such("accumulate", value, "say fp32, fp16, tensor-core, bf16-p or fp16-p", why, n);
}

static bool type_named(const char *value, int32_t *dtype)
{
    static const int32_t types[] = {FD_F32, FD_F16, FD_BF16};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(value, fd_dtype_name(types[i])) == 0) {
            *dtype = types[i];
            return true;
        }
    }
    return false;
}

static fd_status take_weights(const char *value, fd_arith *a, char *why, size_t n)
{
    const size_t length = strlen(value);
    char type[8] = "";
    a->p_parts = length > 2 && length < sizeof type + 2 && strcmp(value + length - 2, "x2") == 0 ? 2 : 0;
    snprintf(type, sizeof type, "%.*s", (int)(a->p_parts > 0 ? length - 2 : length), value);
    if (!type_named(type, &a->dtype_p) || (a->p_parts > 0 && a->dtype_p == FD_F32)) {
        return no_such("weights", value, "say fp32, bf16, fp16, bf16x2 or fp16x2", why, n);
    }
    return FD_OK;
}

static fd_status take_l(const char *value, fd_arith *a, char *why, size_t n)
{
    a->p_in_l = strcmp(value, "rounded") == 0;
    return a->p_in_l || strcmp(value, "unrounded") == 0 ? FD_OK
                                                        : no_such("l", value, "say unrounded or rounded", why, n);
}

static fd_status take_partials(const char *value, fd_arith *a, char *why, size_t n)
{
    return type_named(value, &a->dtype_partial) ? FD_OK : no_such("partials", value, "say fp32, bf16 or fp16", why, n);
}

/* Rounded up. */
static float at_least(double x)
{
    const float nearest = (float)x;
    return (double)nearest < x ? nextafterf(nearest, HUGE_VALF) : nearest;
}

/* A number in (0, most). */
static bool take_real(const char *value, double most, double *x)
{
    char *end;
    errno = 0;
    *x = strtod(value, &end);
    return end != value && *end == '\0' && errno == 0 && *x > 0.0 && *x < most;
}

static bool take_size(const char *value, int64_t most, const char **behind, int64_t *x)
{
    char *end;
    errno = 0;
    const long long number = strtoll(value, &end, 10);
    *x = (int64_t)number;
    *behind = end;
    return value[0] >= '0' && value[0] <= '9' && errno == 0 && number >= 1 && number <= most;
}

static fd_status take_mma_keys(const char *value, fd_arith *a, char *why, size_t n)
{
    const char *behind;
    int64_t keys;
    if (!take_size(value, 1 << 20, &behind, &keys) || *behind != '\0') {
        return no_such("mma-keys", value, "give a whole number from 1 to 1048576", why, n);
    }
    a->mma_keys = (int32_t)keys;
    return FD_OK;
}

static fd_status take_mma_error(const char *value, fd_arith *a, char *why, size_t n)
{
    double error;
    if (!take_real(value, 1.0, &error)) {
        return no_such("mma-error", value, "give a number above 0 and below 1, such as 1.2e-6", why, n);
    }
    a->mma_rel = at_least(error);
    return FD_OK;
}

/* An ulp is at most 2^-23 of the number, and 2^-149 where it is subnormal. The first of the two options speaks for both
 * functions, the second for its own. */
static fd_status take_ulps(const char *name, bool is_exp, const char *value, fd_arith *a, char *why, size_t n)
{
    double ulps;
    if (!take_real(value, 0x1p20, &ulps)) {
        return no_such(name, value, "give a number above 0, such as 2", why, n);
    }
    const bool both = a->math != FD_MATH_CLAIMED;
    a->math = FD_MATH_CLAIMED;
    if (is_exp || both) {
        a->exp_rel = at_least(ulps * 0x1p-23);
        a->exp_abs = at_least(ulps * 0x1p-149);
    }
    if (!is_exp || both) {
        a->log_rel = at_least(ulps * 0x1p-23);
    }
    return FD_OK;
}

/* ---- The tree ---------------------------------------------------------------------------------- */

static const char *const tree_cure = "say any, sequential, online or split:N, and then online, lse or rescale, tree";

static bool next_word(const char **at, char word[12])
{
    if (**at == '\0') {
        return false;
    }
    const size_t length = strcspn(*at, ",");
    snprintf(word, 12, "%.*s", (int)(length < 11 ? length : 11), *at);
    *at += length + ((*at)[length] == ',');
    return true;
}

static fd_status take_order(const char *value, fd_arith *a, char *why, size_t n)
{
    fd_level keys = {INT64_MAX, FD_MERGE_ADD, FD_SEQUENTIAL, 1, 0};
    fd_level parts = {INT64_MAX, FD_MERGE_NORMALISED, FD_SEQUENTIAL, 1, 0};
    const char *at = value;
    char word[12];
    if (strcmp(value, "any") == 0 || strcmp(value, "sequential") == 0 || strcmp(value, "online") == 0) {
        keys.merge = value[0] == 'o' ? FD_MERGE_RUNNING : FD_MERGE_ADD;
        a->num_levels = value[0] == 'a' ? 0 : 1;
        a->level[0] = keys;
        return FD_OK;
    }
    if (strncmp(value, "split:", 6) != 0 || !take_size(value + 6, INT32_MAX, &at, &keys.ways) ||
        (*at != '\0' && *at != ',') || value[strlen(value) - 1] == ',') {
        return no_such("order", value, tree_cure, why, n);
    }
    at += *at == ',';
    while (next_word(&at, word)) {
        if (strcmp(word, "online") == 0) {
            keys.merge = FD_MERGE_RUNNING;
        } else if (strcmp(word, "lse") == 0) {
            parts.merge = FD_MERGE_LSE;
        } else if (strcmp(word, "rescale") == 0) {
            parts.merge = FD_MERGE_RESCALE;
        } else if (strcmp(word, "tree") == 0) {
            parts.order = FD_TREE;
        } else {
            return no_such("order", value, tree_cure, why, n);
        }
    }
    a->num_levels = 2;
    a->level[0] = keys;
    a->level[1] = parts;
    return FD_OK;
}

/* ---- All of them ------------------------------------------------------------------------------- */

fd_status fd_claims_option(const char *name, const char *value, fd_arith *a, char *why, size_t n)
{
    static const struct {
        const char *name;
        fd_status (*take)(const char *value, fd_arith *a, char *why, size_t n);
    } options[] = {{"accumulate", take_accumulate},
                   {"mma-keys", take_mma_keys},
                   {"mma-error", take_mma_error},
                   {"weights", take_weights},
                   {"l", take_l},
                   {"partials", take_partials},
                   {"order", take_order}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (strcmp(name, options[i].name) == 0) {
            return options[i].take(value, a, why, n);
        }
    }
    if (strcmp(name, "exp-ulp") == 0 || strcmp(name, "log-ulp") == 0) {
        return take_ulps(name, name[0] == 'e', value, a, why, n);
    }
    snprintf(why, n, "no option --%s", name);
    return FD_UNSUPPORTED;
}

fd_status fd_claims_options_check(const fd_arith *a, char *why, size_t n)
{
    const char *wrong = NULL;
    if (a->accumulator != FD_ACC_TENSOR_CORE && (a->mma_keys > 0 || a->mma_rel > 0.0f)) {
        wrong = "--mma-keys and --mma-error speak of --accumulate tensor-core";
    } else if (a->p_in_l != 0 && a->dtype_p == FD_F32) {
        wrong = "--l rounded: weights are not rounded; say to which type: --weights bf16";
    } else if (a->p_in_l != 0 && a->p_parts > 1) {
        wrong = "--l rounded: no bound is known where weights have two parts";
    } else if (a->dtype_partial != FD_F32 && a->num_levels == 1) {
        wrong = "--partials: an order without splits has none; say --order split:N";
    } else if (!fd_claims_make_sense(a)) {
        wrong = "these claims make no sense together";
    }
    snprintf(why, n, "%s", wrong != NULL ? wrong : "");
    return wrong == NULL ? FD_OK : FD_INVALID;
}
