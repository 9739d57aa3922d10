/* huge_slices.c: see huge_slices.h. */
#include "huge_slices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORD ((int64_t)1 << 21)
#define PLACE ((int64_t)4096) /* multiple at which a tensor's slices begin within a record; also the gap behind them */

const char *const fd_huge_axis_names[FD_HUGE_AXES] = {"batch", "heads", "query rows", "keys", "dims"};

static int64_t round_up(int64_t x, int64_t to)
{
    return (x + to - 1) / to * to;
}

/* ---- Where everything lies --------------------------------------------------------------------- */

void fd_far_name(fd_far *f, const fd_instance *x, enum fd_huge_axis axis)
{
    const fd_problem *p = &x->problem;
    fd_problem *to = &f->problem;
    const int64_t batch = p->batch, rows = p->q_len, heads = p->heads_q, kv = p->heads_kv, slots = p->kv_capacity;
    const int query = axis == FD_HUGE_BATCH ? 0 : axis == FD_HUGE_ROWS ? 1 : axis == FD_HUGE_HEADS ? 2 : -1;
    const int cache = axis == FD_HUGE_BATCH ? 0 : axis == FD_HUGE_KEYS ? 1 : axis == FD_HUGE_HEADS ? 2 : -1;
    const int dims = axis == FD_HUGE_DIMS ? 3 : -1;
    const fd_far_part parts[FD_FAR_PARTS] = {
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
fd_status fd_far_place(fd_far *f, int64_t kv_len, char *why, size_t n)
{
    int64_t place = 0;
    f->behind = RECORD;
    for (int k = 0; k < FD_FAR_PARTS; k++) {
        fd_far_part *t = &f->parts[k];
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

size_t fd_far_at(const fd_far_part *t, int64_t offset)
{
    return (size_t)(FD_FAR_ROOM + offset + t->place);
}

void fd_far_cuts(const fd_far_part *t, int64_t i, int64_t cut[FD_FAR_CUTS])
{
    const int64_t offset = i * t->step;
    for (int x = 0; x < 2; x++) {
        const int64_t modulus = (x == 0 ? 1 : t->element) << 32, low = offset % modulus;
        cut[2 * x] = low;
        cut[2 * x + 1] = low >= modulus / 2 ? low - modulus : low;
    }
}

bool fd_far_is_slice(const fd_far_part *t, int64_t offset)
{
    return t->step == 0 || (offset >= 0 && offset % t->step == 0 && offset / t->step < t->slices);
}

/* ---- Slices ------------------------------------------------------------------------------------ */

void fd_far_visit(const fd_far_part *t, int64_t i, fd_far_visitor *call, void *data)
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

static void copy_in(void *data, const fd_far_part *t, const int64_t index[4], int64_t compact, int64_t within)
{
    (void)data, (void)index;
    memcpy(t->image + within, (const unsigned char *)t->from->data + compact, (size_t)t->element);
}

void fd_far_draw(const fd_far_part *t, int64_t i)
{
    memset(t->image, 0xff, (size_t)t->slice_bytes);
    if (!t->output) {
        fd_far_visit(t, i, copy_in, NULL);
    }
}
