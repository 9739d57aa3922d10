/* huge_far.c: a small problem, spread over more than 2^32 elements.
 *
 * Along the far axis a tensor falls into slices, compact in themselves. Slice i begins i steps behind slice 0, a step being
 * so large that the last one lies past 2^32 elements. All steps are multiples of one record, and every tensor has a place
 * of its own within a record: so slices of different tensors never meet, and neither do those places to which an offset
 * that was cut to 32 bits would lead. Those are filled with NaN and looked at afterwards: a row read there is no number, one
 * written there is found. Negative ones lie in the room before slice 0. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "execute.h"
#include "gen.h"
#include "huge.h"
#include "mirror.h"

#define RECORD ((int64_t)1 << 21)
#define PLACE ((int64_t)4096) /* multiple at which a tensor's slices begin within a record; also the gap behind them */
#define ROOM ((int64_t)1 << 33) /* bytes before slice 0: 2^31 elements of 4 bytes */
#define NUM_PARTS 6
#define NUM_CUTS 4

const char *const fd_huge_axis_names[FD_HUGE_AXES] = {"batch", "heads", "query rows", "keys", "dims"};

typedef struct part {      /* a tensor */
    const fd_tensor *from; /* in the instance */
    fd_tensor *to;
    int64_t extent[4];
    int dim; /* the far one; -1: it has none, and there is one slice */
    bool output;
    int64_t place, step, slices, slice_bytes, element; /* in bytes but for the count */
    unsigned char *image;                              /* [slice_bytes] a slice on its way */
} part;

typedef struct far {
    fd_stretch memory;
    fd_problem problem;
    part parts[NUM_PARTS];
    int64_t behind; /* bytes of the stretch from slice 0 on */
} far;

static int64_t round_up(int64_t x, int64_t to)
{
    return (x + to - 1) / to * to;
}

/* ---- Where everything lies --------------------------------------------------------------------- */

static void name_parts(far *f, const fd_instance *x, enum fd_huge_axis axis)
{
    const fd_problem *p = &x->problem;
    fd_problem *to = &f->problem;
    const int64_t batch = p->batch, rows = p->q_len, heads = p->heads_q, kv = p->heads_kv, slots = p->kv_capacity;
    const int query = axis == FD_HUGE_BATCH ? 0 : axis == FD_HUGE_ROWS ? 1 : axis == FD_HUGE_HEADS ? 2 : -1;
    const int cache = axis == FD_HUGE_BATCH ? 0 : axis == FD_HUGE_KEYS ? 1 : axis == FD_HUGE_HEADS ? 2 : -1;
    const int dims = axis == FD_HUGE_DIMS ? 3 : -1;
    const part parts[NUM_PARTS] = {
        {.from = &p->q, .to = &to->q, .extent = {batch, rows, heads, p->head_dim}, .dim = query > dims ? query : dims},
        {.from = &p->k, .to = &to->k, .extent = {batch, slots, kv, p->head_dim}, .dim = cache > dims ? cache : dims},
        {.from = &p->v, .to = &to->v, .extent = {batch, slots, kv, p->head_dim_v}, .dim = cache > dims ? cache : dims},
        {.from = &p->o,
         .to = &to->o,
         .extent = {batch, rows, heads, p->head_dim_v},
         .dim = query > dims ? query : dims,
         .output = true},
        {.from = &p->lse, .to = &to->lse, .extent = {batch, rows, heads, 1}, .dim = query, .output = true},
        {.from = &p->kv_lens, .to = &to->kv_lens, .extent = {batch, 1, 1, 1}, .dim = axis == FD_HUGE_BATCH ? 0 : -1}};
    memcpy(f->parts, parts, sizeof parts);
}

/* Strides and steps; rows begin at multiples of 16 bytes. */
static fd_status place_parts(far *f, int64_t kv_len, char *why, size_t n)
{
    int64_t place = 0;
    f->behind = RECORD;
    for (int k = 0; k < NUM_PARTS; k++) {
        part *t = &f->parts[k];
        t->element = (int64_t)fd_dtype_bytes(t->from->dtype);
        t->slices = t->dim >= 0 ? t->extent[t->dim] : 1;
        const bool cache = t->to == &f->problem.k || t->to == &f->problem.v;
        const int64_t last = cache && t->dim == 1 ? kv_len - 1 : t->slices - 1; /* that is read */
        t->step = last > 0 ? round_up((t->element << 32) / last, RECORD) + RECORD : 0;
        *t->to = *t->from;
        int64_t size = 1;
        for (int d = 3; d >= 0; d--) {
            t->to->stride[d] = d == t->dim ? t->step / t->element : size;
            size *= d == t->dim ? 1 : d == 3 ? round_up(t->extent[d], 8) : t->extent[d];
        }
        t->slice_bytes = size * t->element;
        t->place = place;
        place += round_up(t->slice_bytes, PLACE) + PLACE;
        const int64_t end = (t->slices - 1) * t->step + RECORD;
        f->behind = end > f->behind ? end : f->behind;
        t->image = (unsigned char *)malloc((size_t)t->slice_bytes);
        if (t->image == NULL) {
            snprintf(why, n, "no memory for a slice of %lld bytes", (long long)t->slice_bytes);
            return FD_NO_MEMORY;
        }
    }
    if (place > RECORD) {
        snprintf(why, n, "a slice of every tensor takes %lld bytes, more than a record of %lld: make the case smaller",
                 (long long)place, (long long)RECORD);
        return FD_INVALID;
    }
    return FD_OK;
}

static size_t at(const part *t, int64_t offset)
{
    return (size_t)(ROOM + offset + t->place);
}

/* Where 32 bits would take slice i, as a byte or element offset, unsigned or signed: [NUM_CUTS]. */
static void cuts_of(const part *t, int64_t i, int64_t cut[NUM_CUTS])
{
    const int64_t offset = i * t->step;
    for (int x = 0; x < 2; x++) {
        const int64_t modulus = (x == 0 ? 1 : t->element) << 32, low = offset % modulus;
        cut[2 * x] = low;
        cut[2 * x + 1] = low >= modulus / 2 ? low - modulus : low;
    }
}

static bool is_slice(const part *t, int64_t offset)
{
    return t->step == 0 || (offset >= 0 && offset % t->step == 0 && offset / t->step < t->slices);
}

/* ---- Slices ------------------------------------------------------------------------------------ */

/* Calls with the offsets, in bytes, of each element of slice i: in the compact tensor, and in the slice. */
typedef void visitor(void *data, const part *t, const int64_t index[4], int64_t compact, int64_t within);

static void visit(const part *t, int64_t i, visitor *call, void *data)
{
    int64_t index[4], begin[4] = {0}, end[4];
    memcpy(end, t->extent, sizeof end);
    if (t->dim >= 0) {
        begin[t->dim] = i;
        end[t->dim] = i + 1;
    }
    for (index[0] = begin[0]; index[0] < end[0]; index[0]++) {
        for (index[1] = begin[1]; index[1] < end[1]; index[1]++) {
            for (index[2] = begin[2]; index[2] < end[2]; index[2]++) {
                for (index[3] = begin[3]; index[3] < end[3]; index[3]++) {
                    int64_t compact = 0, within = 0;
                    for (int d = 0; d < 4; d++) {
                        compact += index[d] * t->from->stride[d];
                        within += d == t->dim ? 0 : index[d] * t->to->stride[d];
                    }
                    call(data, t, index, compact * t->element, within * t->element);
                }
            }
        }
    }
}

static void copy_in(void *data, const part *t, const int64_t index[4], int64_t compact, int64_t within)
{
    (void)data, (void)index;
    memcpy(t->image + within, (const unsigned char *)t->from->data + compact, (size_t)t->element);
}

/* Slice i of an input, into its image. */
static void draw(const part *t, int64_t i)
{
    memset(t->image, 0xff, (size_t)t->slice_bytes);
    if (!t->output) {
        visit(t, i, copy_in, NULL);
    }
}

static fd_status write_slices(const far *f, char *why, size_t n)
{
    fd_status status = FD_OK;
    for (int k = 0; k < NUM_PARTS; k++) {
        const part *t = &f->parts[k];
        memset(t->image, 0xff, (size_t)t->slice_bytes);
        for (int64_t i = 0; i < t->slices && t->step > 0 && status == FD_OK; i++) {
            int64_t cut[NUM_CUTS];
            cuts_of(t, i, cut);
            for (int x = 0; x < NUM_CUTS && status == FD_OK; x++) {
                if (!is_slice(t, cut[x])) {
                    status = fd_stretch_write(&f->memory, at(t, cut[x]), t->image, (size_t)t->slice_bytes, why, n);
                }
            }
        }
        for (int64_t i = 0; i < t->slices && status == FD_OK; i++) {
            draw(t, i);
            status = fd_stretch_write(&f->memory, at(t, i * t->step), t->image, (size_t)t->slice_bytes, why, n);
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
static void compare(void *data, const part *t, const int64_t index[4], int64_t compact, int64_t within)
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
static fd_status read_slices(const far *f, answers *a, char *why, size_t n)
{
    fd_status status = FD_OK;
    for (int k = 0; k < NUM_PARTS && status == FD_OK; k++) {
        const part *t = &f->parts[k];
        unsigned char *sent = (unsigned char *)malloc((size_t)t->slice_bytes);
        if (sent == NULL) {
            snprintf(why, n, "no memory for a slice of %lld bytes", (long long)t->slice_bytes);
            return FD_NO_MEMORY;
        }
        for (int64_t i = 0; i < t->slices && status == FD_OK; i++) {
            draw(t, i);
            memcpy(sent, t->image, (size_t)t->slice_bytes);
            status = fd_stretch_read(&f->memory, at(t, i * t->step), t->image, (size_t)t->slice_bytes, why, n);
            if (status == FD_OK && t->output) {
                visit(t, i, compare, a);
            }
            if (status == FD_OK && memcmp(t->image, sent, (size_t)t->slice_bytes) != 0) {
                fail(a->out, t->output ? "wrote between the rows of o or lse" : "wrote to its inputs");
            }
            memset(t->image, 0xff, (size_t)t->slice_bytes);
            status = status == FD_OK
                         ? fd_stretch_write(&f->memory, at(t, i * t->step), t->image, (size_t)t->slice_bytes, why, n)
                         : status;
        }
        for (int64_t i = 0; i < t->slices && t->output && t->step > 0 && status == FD_OK; i++) {
            int64_t cut[NUM_CUTS];
            cuts_of(t, i, cut);
            for (int x = 0; x < NUM_CUTS && status == FD_OK; x++) {
                if (!is_slice(t, cut[x])) {
                    status = fd_stretch_read(&f->memory, at(t, cut[x]), t->image, (size_t)t->slice_bytes, why, n);
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

static fd_status run_far(const fd_rung *rung, const fd_device *device, const fd_plan *plan, far *f, answers *a,
                         char *why, size_t n)
{
    fd_status status = fd_stretch_take(&f->memory, device, (size_t)(ROOM + f->behind), why, n);
    if (status != FD_OK) {
        a->out->verdict = FD_SKIP;
        snprintf(a->out->reason, sizeof a->out->reason, "%.200s", why);
        return status == FD_NO_MEMORY ? FD_OK : status;
    }
    for (int k = 0; k < NUM_PARTS; k++) {
        part *t = &f->parts[k];
        t->to->data = f->memory.base + at(t, 0);
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
    far f = {.behind = 0};
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
    name_parts(&f, &x, axis);
    status = status == FD_OK ? place_parts(&f, x.c.kv_len, why, n) : status;
    if (status != FD_OK) {
        goto done;
    }
    for (int k = 0; k < NUM_PARTS; k++) {
        const part *t = &f.parts[k];
        const int64_t last = ((t->slices - 1) * t->step + t->slice_bytes) / t->element - 1;
        out->elements = last > out->elements ? last : out->elements;
    }
    out->bytes = ROOM + f.behind;
    answers a = {.x = &x, .o = o, .lse = lse, .out = out};
    compare_exact(&a, c);
    status = run_far(rung, device, plan, &f, &a, why, n);
done:
    for (int k = 0; k < NUM_PARTS; k++) {
        free(f.parts[k].image);
    }
    fd_stretch_free(&f.memory);
    free(plan);
    free(o);
    free(lse);
    fd_instance_free(&x);
    return status;
}
