#include "curves.h"

#include <math.h>
#include <stdio.h>

#include "commands.h"
#include "gen.h"
#include "sigma.h"

/* ---- Inputs ------------------------------------------------------------------------------------ */

/* Each family at one length; a key is left out of caches of 2^4 keys and more. attained stands for one head of one number. */
const fd_curve_input fd_curve_inputs[FD_CURVE_INPUTS] = {
    {"gaussian", "gaussian", "", 4, 2, 64, 4096, 1024, 16, false, false},
    {"peaky:8", "peaky", "8", 4, 2, 64, 1024, 256, 12, true, false},
    {"ragged-spike", "ragged-spike", "", 4, 2, 64, 1031, 256, 12, true, false},
    {"sink", "sink", "", 4, 2, 64, 1025, 256, 12, true, false},
    {"flat-integer", "flat-integer", "", 4, 2, 64, 1024, 256, 12, true, false},
    {"attained", "attained", "", 1, 1, 1, 1024, 1024, 12, true, true},
};

static fd_case case_of(const fd_curve_input *x, int32_t dtype, int32_t kv_len)
{
    fd_case c = {.dtype_q = dtype,
                 .dtype_kv = dtype,
                 .dtype_o = dtype,
                 .batch = 1,
                 .heads_q = x->heads_q,
                 .heads_kv = x->heads_kv,
                 .head_dim = x->head_dim,
                 .head_dim_v = x->head_dim,
                 .kv_lens = {kv_len},
                 .kv_len = kv_len,
                 .split_size = x->split_size,
                 .seed = 2026};
    snprintf(c.name, sizeof c.name, "curves %s %s n%d", x->name, fd_dtype_name(dtype), kv_len);
    snprintf(c.family, sizeof c.family, "%s", x->family);
    snprintf(c.argument, sizeof c.argument, "%s", x->argument);
    return c;
}

/* ---- One curve ---------------------------------------------------------------------------------- */

static void record(fd_point *x, const fd_instance *instance, const fd_outcome *out)
{
    const bool failed = out->verdict == FD_FAIL;
    *x = (fd_point){.asked = true, .ulp = out->ulp_p50};
    x->judged[0] = out->exact > 0;
    x->detected[0] = failed && out->tier == FD_TIER_EXACT;
    x->margin[0] = x->detected[0] ? HUGE_VAL : 0.0;
    /* Tier 2 also sees what tier 1 saw first, and so does tier 3. */
    x->judged[1] = true;
    x->margin[1] = fmax(out->ratio, out->lse_ratio);
    x->detected[1] = (failed && out->tier == FD_TIER_PROVED) || x->margin[1] > 1.0;
    x->judged[2] = fd_gen_random_family(&instance->c);
    x->margin[2] = fmax(out->z_max, out->z_lse) / FD_SIGMA_LIMIT;
    x->detected[2] = x->judged[2] && !(x->margin[2] <= 1.0);
}

int32_t fd_curve_detected_to(const fd_curve *c, int tier)
{
    int32_t last = c->least - 1;
    for (int32_t level = c->least; level <= c->most; level++) {
        const fd_point *x = &c->at[level];
        if (x->asked && !x->detected[tier]) {
            break;
        }
        last = x->asked ? level : last;
    }
    return last;
}

bool fd_curve_judged(const fd_curve *c, int tier)
{
    return c->at[c->least].judged[tier];
}

bool fd_curve_monotone(const fd_curve *c, int tier)
{
    const int32_t last = fd_curve_detected_to(c, tier);
    for (int32_t level = last + 1; level <= c->most; level++) {
        if (c->at[level].asked && c->at[level].detected[tier]) {
            return false;
        }
    }
    return true;
}

static void ask(const fd_curve *c, int32_t level, bool *wanted)
{
    wanted[level] = wanted[level] || (level >= c->least && level <= c->most && !c->at[level].asked);
}

/* Bisection: both ends, then the middle between the last level detected and the first missed, then their neighbours,
 * which tell whether the order that a bisection takes for granted is there. */
static void ask_next(const fd_curve *c, bool wanted[FD_CURVE_LEVELS])
{
    if (!c->at[c->least].asked) {
        ask(c, c->least, wanted);
        ask(c, c->most, wanted);
        return;
    }
    for (int tier = 0; tier < FD_CURVE_TIERS; tier++) {
        const int32_t last = fd_curve_detected_to(c, tier);
        int32_t missed = last + 1;
        while (missed <= c->most && !c->at[missed].asked) {
            missed++;
        }
        if (!fd_curve_judged(c, tier)) {
            continue;
        }
        if (missed - last > 1) {
            ask(c, last + (missed - last) / 2, wanted);
        } else {
            ask(c, last > c->least ? last - 1 : c->least, wanted);
            ask(c, missed < c->most ? missed + 1 : c->most, wanted);
        }
    }
}

/* ---- Judging ------------------------------------------------------------------------------------- */

typedef struct wanted_list {
    int count;
    fd_point *to[FD_PARAMETRIC_SLOTS];
    const fd_rung *rungs[FD_PARAMETRIC_SLOTS];
} wanted_list;

static fd_status judge_list(fd_instance *instance, const wanted_list *list, const fd_rounding *rounding, char *why,
                            size_t n)
{
    fd_outcome outcomes[FD_PARAMETRIC_SLOTS];
    const fd_status status = fd_judge(instance, list->rungs, list->count, rounding, outcomes, why, n);
    for (int k = 0; k < list->count && status == FD_OK; k++) {
        record(list->to[k], instance, &outcomes[k]);
    }
    fd_outcomes_free(outcomes, list->count);
    return status;
}

/* All kinds but the key left out, on one instance, a round of every bisection at a time: the oracle is the dear part. */
static fd_status search(const fd_curve_input *x, int32_t dtype, const fd_rounding *rounding,
                        fd_curve curves[FD_NUM_FAULTS], char *why, size_t n)
{
    const fd_case c = case_of(x, dtype, x->kv_len);
    fd_instance instance;
    fd_status status = fd_instance_create(&instance, &c, why, n);
    if (status != FD_OK) {
        return status;
    }
    for (bool more = true; more && status == FD_OK;) {
        wanted_list list = {.count = 0};
        for (int32_t fault = 0; fault < FD_NUM_FAULTS; fault++) {
            bool wanted[FD_CURVE_LEVELS] = {false};
            if (fault != FD_FAULT_KEY) {
                ask_next(&curves[fault], wanted);
            }
            for (int32_t level = 0; level < FD_CURVE_LEVELS && list.count < FD_PARAMETRIC_SLOTS; level++) {
                if (wanted[level]) {
                    list.to[list.count] = &curves[fault].at[level];
                    list.rungs[list.count] = fd_parametric(list.count, fault, level);
                    list.count++;
                }
            }
        }
        more = list.count > 0;
        status = more ? judge_list(&instance, &list, rounding, why, n) : FD_OK;
    }
    fd_instance_free(&instance);
    return status;
}

/* A key left out of 2^level: every level has a cache of its own, and one KV head, since long ones are dear. What a key
 * weighs depends on the cache, and hardly so on Gaussian inputs only: elsewhere there is no order to bisect. */
static fd_status search_keys(const fd_curve_input *x, int32_t dtype, const fd_rounding *rounding, fd_curve *c,
                             char *why, size_t n)
{
    fd_status status = FD_OK;
    for (bool more = true; more && status == FD_OK;) {
        bool wanted[FD_CURVE_LEVELS] = {false};
        more = false;
        for (int32_t level = c->least; x->directed && level <= c->most; level++) {
            ask(c, level, wanted);
        }
        if (!x->directed) {
            ask_next(c, wanted);
        }
        for (int32_t level = 0; level < FD_CURVE_LEVELS && status == FD_OK; level++) {
            if (!wanted[level]) {
                continue;
            }
            fd_case keys = case_of(x, dtype, (int32_t)1 << level);
            keys.heads_q = x->heads_q / x->heads_kv;
            keys.heads_kv = 1;
            const wanted_list list = {1, {&c->at[level]}, {fd_parametric(0, FD_FAULT_KEY, level)}};
            fd_instance instance;
            more = true;
            status = fd_instance_create(&instance, &keys, why, n);
            if (status == FD_OK) {
                status = judge_list(&instance, &list, rounding, why, n);
                fd_instance_free(&instance);
            }
        }
    }
    return status;
}

fd_status fd_curves_search(const fd_rounding *rounding, fd_curves *all, char *why, size_t n)
{
    fd_status status = FD_OK;
    for (int x = 0; x < FD_CURVE_INPUTS; x++) {
        for (int32_t dtype = 0; dtype < (fd_curve_inputs[x].fp32_only ? 1 : FD_CURVE_DTYPES) && status == FD_OK;
             dtype++) {
            fd_curve *curves = (*all)[x][dtype];
            fd_progress("curves", x * FD_CURVE_DTYPES + dtype, FD_CURVE_INPUTS * FD_CURVE_DTYPES);
            for (int32_t fault = 0; fault < FD_NUM_FAULTS; fault++) {
                const bool bits = fault != FD_FAULT_SCALE && fault != FD_FAULT_WEIGHTS;
                curves[fault].least = fault == FD_FAULT_KEY ? 4 : 1;
                curves[fault].most = fault == FD_FAULT_KEY ? fd_curve_inputs[x].most_keys : FD_FAULT_BITS - bits;
            }
            status = search(&fd_curve_inputs[x], dtype, rounding, curves, why, n);
            status = status == FD_OK ? search_keys(&fd_curve_inputs[x], dtype, rounding, &curves[FD_FAULT_KEY], why, n)
                                     : status;
        }
    }
    fd_progress("curves", 1, 1);
    return status;
}
