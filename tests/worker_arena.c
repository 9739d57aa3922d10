/* worker_arena.c: see worker_arena.h. */
#define _GNU_SOURCE
#include "worker_arena.h"
#ifdef __linux__
#include <stdio.h>
#include <unistd.h>

uint64_t fd_view_bytes(const fd_problem *p, int t, const fd_tensor *x)
{
    const int64_t slots = p->page_size > 0 ? p->page_size : p->kv_capacity;
    const int64_t blocks = p->page_size > 0 ? p->num_pages : p->batch;
    const int64_t pages = p->page_size > 0 ? (p->kv_capacity + p->page_size - 1) / p->page_size : 0;
    const int64_t extents[FD_NUM_TENSORS][4] = {{p->batch, p->q_len, p->heads_q, p->head_dim},
                                                {blocks, slots, p->heads_kv, p->head_dim},
                                                {blocks, slots, p->heads_kv, p->head_dim_v},
                                                {p->batch, p->q_len, p->heads_q, p->head_dim_v},
                                                {p->batch, p->q_len, p->heads_q, 1},
                                                {p->batch, 1, 1, 1},
                                                {p->batch, pages, 1, 1},
                                                {p->heads_q, 1, 1, 1},
                                                {blocks, slots, p->heads_kv, 1},
                                                {blocks, slots, p->heads_kv, 1},
                                                {p->batch, 1, 1, 1}};
    int64_t last = 0;
    for (int i = 0; i < 4; i++) {
        if (extents[t][i] <= 0) {
            return 0;
        }
        last += (extents[t][i] - 1) * x->stride[i];
    }
    return (uint64_t)(last + 1) * fd_dtype_bytes(x->dtype);
}

static uint64_t round_up(uint64_t x, uint64_t multiple)
{
    return (x + multiple - 1) / multiple * multiple;
}

int32_t fd_arena_place(fd_arena *l, const char *name, uint64_t bytes, uint64_t alignment, bool writable,
                       const void *from)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    fd_segment *x = &l->segments[l->count];
    *x = (fd_segment){.at = l->bytes, .bytes = bytes, .writable = writable};
    snprintf(x->name, sizeof x->name, "%s", name);
    x->span = round_up(round_up(bytes, alignment) + 64, page);
    x->offset = x->span - round_up(bytes, alignment);
    if (l->at_start && alignment < 256) {
        x->offset %= 64;
    } else if (l->at_start) {
        x->offset = 0;
    }
    l->bytes += x->span;
    l->from[l->count] = from;
    return l->count++;
}

void fd_arena_no_more_than_16(fd_arena *l)
{
    fd_segment *x = &l->segments[l->count - 1];
    if (x->offset % 32 == 0) {
        x->offset = x->offset >= 16 ? x->offset - 16 : 48; /* the same modulo 64 */
    }
}

static unsigned char slack_byte(const fd_segment *x, uint64_t i)
{
    return x->writable ? (unsigned char)(0xa5u + 29u * i) : 0xff; /* read by mistake: NaN in every type */
}

/* The bytes of the pages that are not the segment's. */
static bool slack(const fd_segment *x, unsigned char *pages, bool write, int64_t *at)
{
    for (uint64_t i = 0; i < x->span; i++) {
        if (i == x->offset) {
            i += x->bytes;
            if (i >= x->span) {
                break;
            }
        }
        if (write) {
            pages[i] = slack_byte(x, i);
        } else if (pages[i] != slack_byte(x, i)) {
            *at = (int64_t)i - (int64_t)x->offset;
            return false;
        }
    }
    return true;
}

bool fd_slack_intact(const fd_segment *x, const unsigned char *pages, int64_t *at)
{
    return slack(x, (unsigned char *)(uintptr_t)pages, false, at); /* compares only */
}

bool fd_arena_fill(const fd_arena *l, fd_process *process)
{
    fd_shared *s = process->shared;
    bool same = l->count == s->num_segments;
    if (!fd_process_reserve(process, l->bytes)) {
        return false;
    }
    for (int32_t i = 0; i < l->count; i++) {
        const fd_segment *x = &l->segments[i], *y = &s->segments[i];
        same = same && x->at == y->at && x->span == y->span && x->offset == y->offset && x->bytes == y->bytes &&
               x->writable == y->writable && strcmp(x->name, y->name) == 0;
    }
    if (!same) {
        memcpy(s->segments, l->segments, sizeof s->segments);
        s->num_segments = l->count;
        s->layout++;
    }
    for (int32_t i = 0; i < l->count; i++) {
        unsigned char *pages = process->memory + l->segments[i].at;
        slack(&l->segments[i], pages, true, NULL);
        if (l->from[i] != NULL && l->segments[i].bytes > 0) {
            memcpy(pages + l->segments[i].offset, l->from[i], l->segments[i].bytes);
        }
    }
    return true;
}
#endif
