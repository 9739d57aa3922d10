/* huge_far.c: a rung on a problem that is spread far (huge_slices.h), and what came of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "execute.h"
#include "gen.h"
#include "huge_slices.h"

static fd_status write_slices(const fd_far *f, char *why, size_t n)
{
    fd_status status = FD_OK;
    for (int k = 0; k < FD_FAR_PARTS; k++) {
        const fd_far_part *t = &f->parts[k];
        memset(t->image, 0xff, (size_t)t->slice_bytes);
        for (int64_t i = 0; i < t->slices && t->step > 0 && status == FD_OK; i++) {
            int64_t cut[FD_FAR_CUTS];
            fd_far_cuts(t, i, cut);
            for (int x = 0; x < FD_FAR_CUTS && status == FD_OK; x++) {
                if (!fd_far_is_slice(t, cut[x])) {
                    status =
                        fd_stretch_write(&f->memory, fd_far_at(t, cut[x]), t->image, (size_t)t->slice_bytes, why, n);
                }
            }
        }
        for (int64_t i = 0; i < t->slices && status == FD_OK; i++) {
            fd_far_draw(t, i);
            status = fd_stretch_write(&f->memory, fd_far_at(t, i * t->step), t->image, (size_t)t->slice_bytes, why, n);
        }
    }
    return status;
}

/* ---- Afterwards -------------------------------------------------------------------------------- */

typedef struct answers { /* of the run in compact memory, and how the far ones differ */
    const fd_instance *x;
    const float *o, *lse;
    bool exact; /* compared with the family's own answer, too */
    fd_huge_outcome *out;
} answers;

static void fail(fd_huge_outcome *out, const char *reason)
{
    if (out->verdict == FD_PASS) {
        out->verdict = FD_FAIL;
        snprintf(out->reason, sizeof out->reason, "%s", reason);
    }
}

/* Takes the element out of the image, which must then be all ones. */
static void compare(void *data, const fd_far_part *t, const int64_t index[4], int64_t compact, int64_t within)
{
    (void)compact;
    answers *a = (answers *)data;
    const fd_problem *p = &a->x->problem;
    const fd_tensor one = {.data = t->image + within, .dtype = t->from->dtype};
    const int32_t b = (int32_t)index[0], row = (int32_t)index[1], h = (int32_t)index[2];
    const int64_t r = fd_row_index(p, b, row, h);
    const bool is_lse = t->from == &p->lse;
    const float got = fd_load(&one, 0), want = is_lse ? a->lse[r] : a->o[r * p->head_dim_v + index[3]];
    if (fd_bits_from_float(got) != fd_bits_from_float(want)) {
        char reason[200];
        snprintf(reason, sizeof reason,
                 "%s of b=%d t=%d h=%d i=%d is %a, and %a with the same numbers in compact memory",
                 is_lse ? "lse" : "o", b, row, h, (int)index[3], (double)got, (double)want);
        fail(a->out, reason);
    }
    memset(t->image + within, 0xff, (size_t)t->element);
}

static bool all_ones(const unsigned char *x, int64_t bytes)
{
    int64_t i = 0;
    while (i < bytes && x[i] == 0xff) {
        i++;
    }
    return i == bytes;
}

/* Reads every slice back, compares it, and leaves all ones where it was. */
static fd_status read_slices(const fd_far *f, answers *a, char *why, size_t n)
{
    fd_status status = FD_OK;
    for (int k = 0; k < FD_FAR_PARTS && status == FD_OK; k++) {
        const fd_far_part *t = &f->parts[k];
        unsigned char *sent = (unsigned char *)malloc((size_t)t->slice_bytes);
        if (sent == NULL) {
            snprintf(why, n, "no memory for a slice of %lld bytes", (long long)t->slice_bytes);
            return FD_NO_MEMORY;
        }
        for (int64_t i = 0; i < t->slices && status == FD_OK; i++) {
            fd_far_draw(t, i);
            memcpy(sent, t->image, (size_t)t->slice_bytes);
            status = fd_stretch_read(&f->memory, fd_far_at(t, i * t->step), t->image, (size_t)t->slice_bytes, why, n);
            if (status == FD_OK && t->output) {
                fd_far_visit(t, i, compare, a);
            }
            if (status == FD_OK && memcmp(t->image, sent, (size_t)t->slice_bytes) != 0) {
                fail(a->out, t->output ? "wrote between the rows of o or lse" : "wrote to its inputs");
            }
            memset(t->image, 0xff, (size_t)t->slice_bytes);
            status = status == FD_OK ? fd_stretch_write(&f->memory, fd_far_at(t, i * t->step), t->image,
                                                        (size_t)t->slice_bytes, why, n)
                                     : status;
        }
        for (int64_t i = 0; i < t->slices && t->output && t->step > 0 && status == FD_OK; i++) {
            int64_t cut[FD_FAR_CUTS];
            fd_far_cuts(t, i, cut);
            for (int x = 0; x < FD_FAR_CUTS && status == FD_OK; x++) {
                if (!fd_far_is_slice(t, cut[x])) {
                    status =
                        fd_stretch_read(&f->memory, fd_far_at(t, cut[x]), t->image, (size_t)t->slice_bytes, why, n);
                    if (status == FD_OK && !all_ones(t->image, t->slice_bytes)) {
                        fail(a->out, "wrote o or lse where an offset cut to 32 bits leads");
                    }
                }
            }
        }
        free(sent);
    }
    return status;
}

/* What a family's own answer says, on top. */
static void compare_exact(answers *a, const fd_case *c)
{
    const fd_problem *p = &a->x->problem;
    float *want = (float *)malloc((size_t)p->head_dim_v * sizeof *want);
    for (int64_t r = 0; r < fd_row_count(p) && want != NULL; r++) {
        int32_t b, t, h;
        fd_row_of_index(p, r, &b, &t, &h);
        if (fd_gen_exact(c, p, b, t, h, want) &&
            memcmp(want, a->o + r * p->head_dim_v, (size_t)p->head_dim_v * sizeof *want) != 0) {
            fail(a->out, "o is not the exact answer, in compact memory either");
        }
    }
    free(want);
}

/* ---- The whole --------------------------------------------------------------------------------- */

static fd_status run_far(const fd_rung *rung, const fd_device *device, const fd_plan *plan, fd_far *f, answers *a,
                         char *why, size_t n)
{
    fd_status status = fd_stretch_take(&f->memory, device, (size_t)(FD_FAR_ROOM + f->behind), why, n);
    if (status != FD_OK) {
        a->out->verdict = FD_SKIP;
        snprintf(a->out->reason, sizeof a->out->reason, "%.200s", why);
        return status == FD_NO_MEMORY ? FD_OK : status;
    }
    for (int k = 0; k < FD_FAR_PARTS; k++) {
        fd_far_part *t = &f->parts[k];
        t->to->data = f->memory.base + fd_far_at(t, 0);
        t->to->space = device != NULL ? FD_DEVICE : FD_HOST;
    }
    f->problem.features = fd_features(&f->problem);
    status = fd_supports(rung, &f->problem, why, n);
    if (status != FD_OK) {
        a->out->verdict = FD_SKIP;
        snprintf(a->out->reason, sizeof a->out->reason, "%.200s", why);
        return status == FD_UNSUPPORTED ? FD_OK : status;
    }
    status = write_slices(f, why, n);
    if (status != FD_OK) {
        return status;
    }
    if (fd_huge_run(rung, device, &f->problem, plan, NULL, why, n) != FD_OK) {
        fail(a->out, why);
        return FD_OK;
    }
    status = read_slices(f, a, why, n);
    if (status == FD_OK) {
        status = fd_stretch_untouched(&f->memory, why, n);
    }
    if (status == FD_INVALID) {
        fail(a->out, why);
        status = FD_OK;
    }
    return status;
}

fd_status fd_huge_far(const fd_rung *rung, const fd_case *c, enum fd_huge_axis axis, fd_huge_outcome *out, char *why,
                      size_t n)
{
    fd_instance x;
    fd_far f = {.behind = 0};
    fd_plan *plan = NULL;
    float *o = NULL, *lse = NULL;
    *out = (fd_huge_outcome){.verdict = FD_PASS};
    const fd_device *device = fd_device_for(rung, why, n);
    fd_status status = fd_instance_create(&x, c, why, n);
    if (status != FD_OK) {
        return status;
    }
    status = fd_supports_here(rung, &x.problem, why, n);
    if (status != FD_OK) {
        out->verdict = FD_SKIP;
        snprintf(out->reason, sizeof out->reason, "%.200s", why);
        status = status == FD_UNSUPPORTED || status == FD_NO_DEVICE ? FD_OK : status;
        goto done;
    }
    const size_t rows = (size_t)fd_row_count(&x.problem);
    o = (float *)calloc(rows * (size_t)x.problem.head_dim_v, sizeof *o);
    lse = (float *)calloc(rows, sizeof *lse);
    if (o == NULL || lse == NULL) {
        snprintf(why, n, "no memory for %zu rows", rows);
        status = FD_NO_MEMORY;
        goto done;
    }
    status = fd_plan_for(rung, &x.problem, &plan, why, n);
    if (status == FD_OK && fd_execute(rung, plan, &x, true, FD_POISON_NAN, o, lse, why, n) != FD_OK) {
        fail(out, why);
        goto done;
    }
    f.problem = x.problem;
    fd_far_name(&f, &x, axis);
    status = status == FD_OK ? fd_far_place(&f, x.c.kv_len, why, n) : status;
    if (status != FD_OK) {
        goto done;
    }
    for (int k = 0; k < FD_FAR_PARTS; k++) {
        const fd_far_part *t = &f.parts[k];
        const int64_t last = ((t->slices - 1) * t->step + t->slice_bytes) / t->element - 1;
        out->elements = last > out->elements ? last : out->elements;
    }
    out->bytes = FD_FAR_ROOM + f.behind;
    answers a = {.x = &x, .o = o, .lse = lse, .out = out};
    compare_exact(&a, c);
    status = run_far(rung, device, plan, &f, &a, why, n);
done:
    for (int k = 0; k < FD_FAR_PARTS; k++) {
        free(f.parts[k].image);
    }
    fd_stretch_free(&f.memory);
    free(plan);
    free(o);
    free(lse);
    fd_instance_free(&x);
    return status;
}
