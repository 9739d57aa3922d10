#include "requests.h"

#include <stdlib.h>
#include <string.h>

#define SECTOR 32u /* bytes: what a cache line is filled by */
#define BANKS 32u  /* of 4 bytes: what shared memory answers in one pass */
#define MAX_CLUSTER 16
#define MAX_REQUESTS (1u << 20) /* of a warp between two meetings: 160 MiB of them */

typedef struct request {
    uint32_t mask;           /* lanes */
    uintptr_t base;          /* of the lane that came first */
    int32_t offset[FD_WARP]; /* from it, in bytes */
} request;

typedef struct site { /* one instruction */
    uint32_t place, bytes;
    bool write, shared;
    uint32_t count[FD_WARP]; /* times that each lane was here since they met */
    request *requests;       /* [num], room for more */
    uint32_t num, room;
} site;

typedef struct pending { /* of a warp, since its lanes met */
    site *sites;         /* [num] */
    uint32_t num, room, last;
    uint32_t requests; /* of all sites */
} pending;

static pending warps[MAX_CLUSTER][EMU_MAX_WARPS];

static pending *pending_of(const emu_warp *warp)
{
    const emu_block *block = warp->block;
    return &warps[block - emu_running->blocks][warp - block->warps];
}

static site *site_at(pending *l, uint32_t place, uint32_t bytes, bool write, bool shared)
{
    for (uint32_t i = 0; i < l->num; i++) { /* a loop comes by in the same order again and again */
        const uint32_t at = l->last + 1 + i < l->num ? l->last + 1 + i : (l->last + 1 + i) % l->num;
        site *s = &l->sites[at];
        if (s->place == place && s->bytes == bytes && s->write == write && s->shared == shared) {
            l->last = at;
            return s;
        }
    }
    if (l->num == l->room) {
        const uint32_t more = l->room == 0 ? 16 : 2 * l->room;
        site *larger = (site *)realloc(l->sites, more * sizeof *larger);
        if (larger == NULL) {
            return NULL;
        }
        memset(larger + l->room, 0, (more - l->room) * sizeof *larger);
        l->sites = larger;
        l->room = more;
    }
    site *s = &l->sites[l->num];
    *s = (site){
        .place = place, .bytes = bytes, .write = write, .shared = shared, .requests = s->requests, .room = s->room};
    l->last = l->num++;
    return s;
}

bool emu_request(const emu_thread *thread, const void *at, uint32_t bytes, bool write, bool shared, uint32_t place)
{
    pending *l = pending_of(thread->warp);
    site *s = site_at(l, place, bytes, write, shared);
    if (s == NULL) {
        return false;
    }
    const uint32_t which = s->count[thread->lane]++;
    if (which >= s->num && l->requests >= MAX_REQUESTS) {
        emu_running->counters->uncounted++;
        return true;
    }
    if (which >= s->num) { /* the first lane that comes so often */
        l->requests++;
        if (s->num == s->room) {
            const uint32_t more = s->room == 0 ? 4 : 2 * s->room;
            request *larger = (request *)realloc(s->requests, more * sizeof *larger);
            if (larger == NULL) {
                return false;
            }
            s->requests = larger;
            s->room = more;
        }
        s->requests[s->num++] = (request){.base = (uintptr_t)at};
    }
    request *r = &s->requests[which];
    r->mask |= 1u << thread->lane;
    /* Two regions more than 2 GiB apart at one place: taken modulo that, which keeps sectors and banks apart or not alike. */
    r->offset[thread->lane] = (int32_t)(uint32_t)((uintptr_t)at - r->base);
    return true;
}

/* ---- Counting ---- */

static int64_t num_sectors(const request *r, uint32_t bytes)
{
    uintptr_t seen[2 * FD_WARP];
    int64_t count = 0;
    for (uint32_t lanes = r->mask; lanes != 0; lanes &= lanes - 1) {
        const uintptr_t at = r->base + (uintptr_t)(intptr_t)r->offset[__builtin_ctz(lanes)];
        for (uintptr_t sector = at / SECTOR; sector <= (at + bytes - 1) / SECTOR; sector++) {
            int64_t i = count - 1; /* neighbours come one after the other: the last one first */
            while (i >= 0 && seen[i] != sector) {
                i--;
            }
            if (i < 0) {
                seen[count++] = sector;
            }
        }
    }
    return count;
}

/* Passes of the lanes [first, first + lanes) of a request: the most words that any bank is asked for. */
static int64_t num_passes(const request *r, uint32_t bytes, uint32_t first, uint32_t lanes)
{
    uintptr_t words[BANKS][FD_WARP];
    uint32_t asked[BANKS] = {0}, most = 0;
    for (uint32_t lane = first; lane < first + lanes; lane++) {
        if ((r->mask & 1u << lane) == 0) {
            continue;
        }
        const uintptr_t at = r->base + (uintptr_t)(intptr_t)r->offset[lane];
        for (uintptr_t word = at / 4; word <= (at + bytes - 1) / 4; word++) {
            const uint32_t bank = (uint32_t)(word % BANKS);
            uint32_t i = 0;
            while (i < asked[bank] && words[bank][i] != word) { /* lanes on the same word are served at once */
                i++;
            }
            if (i == asked[bank]) {
                words[bank][asked[bank]++] = word;
                most = asked[bank] > most ? asked[bank] : most;
            }
        }
    }
    return most;
}

/* Do all lanes ask for the same address? */
static bool is_uniform(const request *r)
{
    const int32_t first = r->offset[__builtin_ctz(r->mask)];
    for (uint32_t lanes = r->mask; lanes != 0; lanes &= lanes - 1) {
        if (r->offset[__builtin_ctz(lanes)] != first) {
            return false;
        }
    }
    return true;
}

/* A wide load of one address goes by twice as many lanes a pass: so NVIDIA says (its forum, topic 77228), and so an H200
 * counts for 16 bytes. It says it, for compute capability 7, of any load where neighbours share an address, too; that is
 * left out here, as nothing at hand has measured it. */
static int64_t num_wavefronts(const request *r, uint32_t bytes, bool write)
{
    const uint32_t wide = !write && bytes > 4 && is_uniform(r) ? 2 : 1;
    const uint32_t lanes = wide * (bytes <= 4 ? FD_WARP : bytes == 8 ? FD_WARP / 2 : FD_WARP / 4);
    int64_t count = 0;
    for (uint32_t first = 0; first < FD_WARP; first += lanes) {
        count += num_passes(r, bytes, first, lanes);
    }
    return count;
}

static void count_request(fd_emu_counters *c, const site *s, const request *r)
{
    const int64_t bytes = (int64_t)s->bytes * __builtin_popcount(r->mask);
    if (s->shared) {
        const int64_t passes = num_wavefronts(r, s->bytes, s->write), full = (bytes + 4 * BANKS - 1) / (4 * BANKS);
        const int64_t ideal = passes < full ? passes : full; /* a wide load of one address needs fewer than its bytes */
        *(s->write ? &c->shared_stores : &c->shared_loads) += 1;
        *(s->write ? &c->shared_store_wavefronts : &c->shared_load_wavefronts) += passes;
        *(s->write ? &c->shared_store_ideal : &c->shared_load_ideal) += ideal;
    } else {
        *(s->write ? &c->global_stores : &c->global_loads) += 1;
        *(s->write ? &c->global_store_sectors : &c->global_load_sectors) += num_sectors(r, s->bytes);
        *(s->write ? &c->global_store_bytes : &c->global_load_bytes) += bytes;
    }
}

void emu_requests_meet(const emu_warp *warp)
{
    pending *l = pending_of(warp);
    for (uint32_t i = 0; i < l->num; i++) {
        site *s = &l->sites[i];
        for (uint32_t k = 0; k < s->num; k++) {
            count_request(emu_running->counters, s, &s->requests[k]);
        }
        s->num = 0;
        memset(s->count, 0, sizeof s->count);
    }
    l->num = l->requests = 0;
}

void emu_request_bulk(size_t bytes, bool write, bool shared)
{
    fd_emu_counters *c = emu_running->counters;
    const int64_t n = (int64_t)bytes, passes = (n + 4 * BANKS - 1) / (4 * BANKS);
    if (shared) {
        *(write ? &c->shared_store_wavefronts : &c->shared_load_wavefronts) += passes;
        *(write ? &c->shared_store_ideal : &c->shared_load_ideal) += passes;
    } else {
        *(write ? &c->global_store_sectors : &c->global_load_sectors) += (n + SECTOR - 1) / SECTOR;
        *(write ? &c->global_store_bytes : &c->global_load_bytes) += n;
    }
}
