/* given.c: see given.h. */
#include "given.h"

#include <math.h>
#include <stdlib.h>

#include "commands.h"
#include "gpu/math_error.h"
#include "ladder.h"
#include "lse_base.h"
#include "row.h"

/* Multiply-adds of a run; the diagnosis runs every mutant. */
#define DIAGNOSED_MAX ((int64_t)1 << 27)
#define DIAGNOSED_CASES 32 /* further failures are counted, not asked */

static struct {
    const float *o, *lse; /* in the order of fd_row_index() */
    fd_arith claims;
} given;

static fd_status run(const fd_problem *p, const fd_context *context)
{
    (void)context;
    for (int64_t row = 0; row < fd_row_count(p); row++) {
        int32_t b, t, h;
        fd_row_of_index(p, row, &b, &t, &h);
        fd_store_row(p, b, t, h, given.o + row * p->head_dim_v, given.lse[row]);
    }
    return FD_OK;
}

static void arith(const fd_problem *problem, const fd_plan *plan, int64_t kv_len, fd_arith *a)
{
    (void)problem;
    (void)plan;
    (void)kv_len;
    *a = given.claims;
}

static const fd_rung tensors = {.size = sizeof(fd_rung),
                                .abi = FD_ABI,
                                .name = "tensors",
                                .idea = "an answer from a file",
                                .caps = &fd_readable_caps,
                                .run = run,
                                .arith = arith};

void fd_given_math(fd_arith *claims)
{
    if (claims->math != FD_MATH_CLAIMED) {
        claims->math = FD_MATH_CLAIMED;
        claims->exp_rel = FD_GPU_EXP_REL;
        claims->exp_abs = FD_GPU_EXP_ABS;
        claims->log_rel = FD_GPU_LOG_REL;
    }
}

/* ---- One answer -------------------------------------------------------------------------------- */

static void add_note(fd_trial_line *line, const char *note)
{
    const size_t used = strlen(line->notes);
    snprintf(line->notes + used, sizeof line->notes - used, "%s%s", used > 0 ? "; " : "", note);
}

static void describe(const fd_outcome *out, const int32_t *sequences, const fd_lse_found *found, char *text, size_t n)
{
    const fd_witness *w = &out->worst;
    const int32_t b = sequences != NULL ? sequences[w->b] : w->b;
    text[0] = '\0';
    if (w->b != 0 || w->h != 0 || w->t != 0 || w->i != -1 || w->bound > 0.0) {
        const int used = snprintf(text, n, "b=%d t=%d h=%d ", b, w->t, w->h);
        char element[24] = "lse", numbers[200];
        if (w->i >= 0) {
            snprintf(element, sizeof element, "i=%d", w->i);
        }
        fd_witness_text(w, numbers, sizeof numbers);
        snprintf(text + used, n - (size_t)used, "%s: %s%s", element, numbers,
                 w->i < 0 && found->base_2 ? ", in natural units" : "");
    }
}

/* raw: lse as the file has it. An implementation that confuses the bases may end in either: mutants are asked about both. */
static void diagnose(fd_given_court *c, fd_instance *x, fd_outcome *out, const float *raw, fd_trial_line *line)
{
    const fd_problem *p = &x->problem;
    const double work = (double)fd_row_count(p) * (double)p->kv_capacity * (p->head_dim + p->head_dim_v);
    if (work > (double)DIAGNOSED_MAX) {
        snprintf(line->looks_like, sizeof line->looks_like,
                 "looks like: not asked, %.0f million multiply-adds are above %.0f; dump fewer heads", work * 1e-6,
                 (double)DIAGNOSED_MAX * 1e-6);
    } else if (c->diagnosed < DIAGNOSED_CASES) {
        fd_suspects here = fd_diagnose(x, out, FD_ALL_SUSPECTS);
        if (here.bits[0] == 0 && here.bits[1] == 0 && out->lse != NULL) {
            memcpy(out->lse, raw, (size_t)fd_row_count(p) * sizeof *raw);
            here = fd_diagnose(x, out, FD_ALL_SUSPECTS);
        }
        fd_diagnosis_text(here, line->looks_like, sizeof line->looks_like);
        c->suspects = fd_suspects_both(c->suspects, here);
        fd_votes_add(&c->votes, here);
        c->diagnosed++;
    }
}

fd_status fd_given_judge(fd_given_court *c, fd_instance *x, fd_given *a, const int32_t *sequences,
                         const fd_trial_line *line)
{
    const fd_rung *rung = &tensors;
    fd_lse_found found = {.base_2 = false};
    fd_outcome out;
    const size_t lse_bytes = (size_t)fd_row_count(&x->problem) * sizeof(float);
    float *raw = malloc(lse_bytes + 1);
    fd_status status = raw != NULL ? FD_OK : FD_NO_MEMORY;
    if (status == FD_OK) {
        memcpy(raw, a->lse, lse_bytes);
        status = a->has_lse ? fd_lse_recognise(x, sequences, a->lse, &found) : FD_OK;
    }
    x->given_once = true;
    x->lse_absent = !a->has_lse;
    x->lse_roundings = found.base_2 ? FD_LSE_BASE_2_ROUNDINGS : 0;
    given.claims = c->claims;
    given.o = a->o;
    given.lse = a->lse;
    snprintf(c->why, c->n, "%s: no memory for its rows", line->name);
    if (status != FD_OK) {
        free(raw);
        return status;
    }
    status = fd_judge_tiers(x, &rung, 1, &c->rounding, c->highest, &out, c->why, c->n);
    if (status == FD_OK) {
        fd_trial_line judged;
        char detail[256];
        fd_trial_line_of(&out, &judged);
        snprintf(judged.name, sizeof judged.name, "%s", line->name);
        snprintf(judged.replay, sizeof judged.replay, "%s", line->replay);
        snprintf(judged.notes, sizeof judged.notes, "%s", line->notes);
        snprintf(judged.group, sizeof judged.group, "tensors");
        if (!a->has_lse) {
            add_note(&judged, "lse was not judged, there is none");
        }
        if (found.base_2) {
            add_note(&judged, "lse is in base 2");
        }
        if (found.plus_infinity) {
            add_note(&judged, "lse of a row without a key is +infinity");
        }
        if (sequences != NULL && c->claims.num_levels == 0 && isfinite(out.bound)) { /* a problem of somebody's own */
            char note[80];
            snprintf(note, sizeof note, "order unknown: the line for o is at least %.2g sum p|v|", out.bound * 0x1p-24);
            add_note(&judged, note);
        }
        describe(&out, sequences, &found, detail, sizeof detail);
        if (out.verdict == FD_FAIL) {
            diagnose(c, x, &out, raw, &judged);
        }
        if (found.mixed && c->highest >= FD_TIER_PROVED) { /* whatever else is wrong */
            judged.verdict = FD_FAIL;
            judged.tier = judged.tier == FD_TIER_NONE ? FD_TIER_PROVED : judged.tier;
            snprintf(judged.reason, sizeof judged.reason, "%s", found.mix);
        }
        status = fd_trial_add(c->trial, &judged, detail);
    }
    fd_outcomes_free(&out, 1);
    free(raw);
    return status;
}

fd_status fd_given_new(fd_given *a, int64_t rows, int32_t head_dim_v)
{
    *a = (fd_given){.o = malloc((size_t)rows * (size_t)head_dim_v * sizeof(float) + 1),
                    .lse = malloc((size_t)rows * sizeof(float) + 1)};
    return a->o != NULL && a->lse != NULL ? FD_OK : FD_NO_MEMORY;
}

int32_t fd_given_type(const fd_given *a, int64_t values, int32_t stored, int32_t expected, fd_trial_line *line)
{
    float x;
    const fd_tensor one = {.data = &x, .dtype = expected};
    bool narrow = stored == FD_F32 && (expected == FD_F16 || expected == FD_BF16);
    for (int64_t i = 0; i < values && narrow; i++) {
        fd_store(&one, 0, a->o[i]);
        narrow = fd_load(&one, 0) == a->o[i] || a->o[i] != a->o[i];
    }
    if (narrow) {
        char note[80];
        snprintf(note, sizeof note, "o is stored as F32, with values of %s: judged as that", fd_dtype_name(expected));
        add_note(line, note);
    }
    return narrow ? expected : stored;
}

void fd_given_free(fd_given *a)
{
    free(a->o);
    free(a->lse);
    *a = (fd_given){.o = NULL};
}
