#define _DEFAULT_SOURCE /* sigjmp_buf */

#include "observe.h"

#include <stdio.h>

#include "races.h"
#include "requests.h"
#include "signals.h"

#define MAX_CLUSTER 16
#define ASKED_MAX 16u /* bytes of one instruction of one thread */

static bool watching; /* a hooked kernel runs */
static emu_shadow *of_static, *of_dynamic[MAX_CLUSTER];

static void out_of_memory(void)
{
    emu_report(FD_EMU_LAUNCH, NULL, 0, "no memory left to observe the kernel in: make the problem smaller");
    emu_running->failed = true;
    watching = false;
}

/* The shadow of a region that may have moved since it was made. */
static emu_shadow *renew(emu_shadow *shadow, const unsigned char *base, size_t bytes)
{
    if (shadow != NULL && shadow->base == base && shadow->bytes == bytes) {
        return shadow;
    }
    emu_shadow_free(shadow);
    return bytes > 0 ? emu_shadow_new(base, bytes) : NULL;
}

void emu_observe_launch(emu_launch *run)
{
    watching = run->file->hooked != 0 && !run->failed;
    if (!watching) {
        return;
    }
    const size_t bytes = (size_t)(run->file->shared_end - run->file->shared);
    of_static = renew(of_static, run->file->shared, bytes);
    if (!emu_order_launch(run) || (bytes > 0 && of_static == NULL)) {
        out_of_memory();
    }
}

void emu_observe_block(emu_block *block)
{
    if (!watching) {
        return;
    }
    const int32_t rank = (int32_t)(block - emu_running->blocks);
    const uint32_t smem = emu_running->launch->smem;
    emu_order_block(block);
    of_dynamic[rank] = renew(of_dynamic[rank], block->dynamic, smem);
    if (smem > 0 && of_dynamic[rank] == NULL) {
        out_of_memory();
    }
}

void emu_observe_barrier(emu_block *block)
{
    if (!watching) {
        return;
    }
    emu_order_barrier(block);
    for (int32_t w = 0; w < block->num_warps; w++) {
        emu_requests_meet(&block->warps[w]);
    }
}

void emu_observe_cluster(void)
{
    if (!watching) {
        return;
    }
    emu_order_cluster();
    for (int32_t b = 0; b < emu_running->num_blocks; b++) {
        for (int32_t w = 0; w < emu_running->blocks[b].num_warps; w++) {
            emu_requests_meet(&emu_running->blocks[b].warps[w]);
        }
    }
}

void emu_observe_warp(emu_warp *warp, uint32_t mask, bool orders_memory)
{
    if (!watching) {
        return;
    }
    if (orders_memory) {
        emu_order_warp(warp, mask);
    }
    if ((mask & warp->present) == warp->present) {
        emu_requests_meet(warp);
    }
}

void emu_observe_end(emu_launch *run)
{
    if (!watching) {
        return;
    }
    for (int32_t b = 0; b < run->num_blocks; b++) {
        for (int32_t w = 0; w < run->blocks[b].num_warps; w++) {
            emu_requests_meet(&run->blocks[b].warps[w]);
        }
    }
    emu_order_end();
}

void emu_observe_release(const emu_thread *by, const void *object)
{
    if (watching && !emu_order_release(by, object)) {
        out_of_memory();
    }
}

void emu_observe_acquire(const emu_thread *by, const void *object)
{
    if (watching && !emu_order_acquire(by, object)) {
        out_of_memory();
    }
}

/* ---- Accesses ---- */

/* Ends the launch: what follows a wild access means nothing. */
static void fail_at(const emu_thread *thread, const void *at, size_t bytes, bool write, const void *pc)
{
    char where[160];
    const unsigned char *first = (const unsigned char *)at, *last = first + bytes - 1;
    const emu_allocation *a = emu_allocation_at(at);
    const bool inside = (a != NULL && first >= a->data && first < a->data + a->bytes) || emu_is_shared(at, 1);
    emu_describe_address(inside ? last : first, where, sizeof where);
    emu_report_at(FD_EMU_ACCESS, thread, pc, NULL, 0, "%s %zu bytes, the %s at %s", write ? "writes" : "reads", bytes,
                  inside ? "last" : "first", where);
    emu_running->failed = true;
    emu_in_observer = 0;
    if (fd_emu_self != NULL) {
        emu_fail();
    }
}

typedef struct region {
    emu_shadow *shadow;
    bool shared;
    uint32_t start;
} region;

/* The region that the access is in; false: none holds all of it. */
static bool find_region(const unsigned char *at, size_t bytes, region *r)
{
    const emu_launch *run = emu_running;
    if (of_static != NULL && at >= of_static->base && at + bytes <= of_static->base + of_static->bytes) {
        *r = (region){of_static, true, emu_order_start(&run->blocks[0])};
        return true;
    }
    for (int32_t b = 0; run->launch->smem > 0 && b < run->num_blocks; b++) {
        if (at >= of_dynamic[b]->base && at + bytes <= of_dynamic[b]->base + of_dynamic[b]->bytes) {
            *r = (region){of_dynamic[b], true, emu_order_start(&run->blocks[b])};
            return true;
        }
    }
    emu_allocation *a = emu_allocation_at(at);
    if (a == NULL || at < a->data || at + bytes > a->data + a->bytes) {
        return false;
    }
    if (a->shadow == NULL) {
        a->shadow = emu_shadow_new(a->data, a->bytes);
    }
    *r = (region){a->shadow, false, emu_order_start(NULL)};
    return true;
}

static void count(const emu_access *a, size_t fresh)
{
    fd_emu_counters *c = emu_running->counters;
    if (!a->shared) {
        *(a->write ? &c->global_store_distinct : &c->global_load_distinct) += (int64_t)fresh;
    }
    if (a->bytes > ASKED_MAX) {
        emu_request_bulk(a->bytes, a->write, a->shared);
    } else if (!a->atomic &&
               !emu_request(a->thread, a->at, (uint32_t)a->bytes, a->write, a->shared, emu_place_of(a->pc))) {
        out_of_memory();
    }
}

void emu_observe_access_by(emu_thread *thread, const void *at, size_t bytes, bool write, bool atomic, const void *pc)
{
    region r;
    size_t cells = 0;
    if (!watching || bytes == 0) {
        return;
    }
    emu_in_observer = 1;
    if (!find_region((const unsigned char *)at, bytes, &r)) {
        fail_at(thread, at, bytes, write, pc);
        return;
    }
    emu_cell *first = r.shadow != NULL ? emu_shadow_cells(r.shadow, at, bytes, &cells) : NULL;
    if (first == NULL) {
        out_of_memory();
    } else {
        const emu_access access = {thread, at, bytes, write, atomic, r.shared, r.start, pc};
        count(&access, emu_race_check(&access, first, cells, (size_t)1 << r.shadow->shift));
    }
    emu_in_observer = 0;
    if (emu_expired) {
        emu_spun(pc);
    }
}

void emu_observe_access(const void *at, size_t bytes, bool write, bool atomic, const void *pc)
{
    if (watching) {
        emu_observe_access_by(emu_self(), at, bytes, write, atomic, pc);
    }
}

void emu_observe_in_flight(const void *at, size_t bytes, bool in_flight)
{
    region r;
    size_t cells = 0;
    if (!watching || bytes == 0 || !find_region((const unsigned char *)at, bytes, &r) || r.shadow == NULL) {
        return;
    }
    emu_cell *first = emu_shadow_cells(r.shadow, at, bytes, &cells);
    for (size_t i = 0; first != NULL && i < cells; i++) {
        first[i].in_flight = in_flight;
    }
}

/* Memory of the thread itself and of the emulator: its stack, who it is, the arguments of the kernel. */
static bool is_own(const emu_thread *self, const unsigned char *at)
{
    const unsigned char *stack = (const unsigned char *)self->fiber.stack,
                        *args = (const unsigned char *)emu_running->args;
    return (at >= stack && at < stack + self->fiber.bytes) || at == (const unsigned char *)&fd_emu_self ||
           (at >= (const unsigned char *)self && at < (const unsigned char *)(self + 1)) ||
           (at >= args && at < args + emu_running->args_bytes);
}

void emu_observe_hook(const void *at, size_t bytes, bool write, bool aligned, const void *pc)
{
    if (!watching || fd_emu_self == NULL || is_own(emu_self(), (const unsigned char *)at)) {
        return;
    }
    if (aligned && (uintptr_t)at % bytes != 0) {
        emu_report_at(FD_EMU_ALIGNMENT, emu_self(), pc, NULL, 0,
                      "a %zu-byte access at an address that is %zu past a multiple of it", bytes,
                      (size_t)((uintptr_t)at % bytes));
        emu_fail();
    }
    for (size_t done = 0; done < bytes;) { /* in pieces that a GPU's instruction can be of */
        const unsigned char *piece = (const unsigned char *)at + done;
        size_t size = ASKED_MAX;
        while ((uintptr_t)piece % size != 0 || size > bytes - done) {
            size /= 2;
        }
        emu_observe_access(piece, size, write, false, pc);
        done += size;
    }
}
