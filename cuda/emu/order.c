#include "order.h"

#include <stdlib.h>
#include <string.h>

#define MAX_BLOCKS 16 /* of a cluster */

/* A vector of times, [num_threads] of the grid. */
typedef struct vectors {
    uint32_t **at;
    int32_t count, room, made;
} vectors;

typedef struct object { /* an address that was released */
    const void *address;
    int32_t vector;
    bool shared; /* memory: the next block's is another */
} object;

static const emu_launch *run;
static uint32_t now = 1, launch_start, cluster_time, barrier_time[MAX_BLOCKS], block_start[MAX_BLOCKS];
static uint32_t num_threads, per_block; /* of the grid; of a block */

static emu_watch *watches; /* [threads that run] */
static uint32_t *rows;     /* [threads that run][per_block] */
static size_t watches_room, rows_room;

static vectors known, published; /* by threads, until their block ends; by objects, until the launch ends */
static object *objects;
static int32_t num_objects, objects_room;

static uint32_t later(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* A new vector, zero; -1: no memory. Those of ended blocks and launches are used again. */
static int32_t vector_new(vectors *v)
{
    if (v->count == v->room) {
        const int32_t more = v->room == 0 ? 16 : 2 * v->room;
        uint32_t **larger = (uint32_t **)realloc(v->at, (size_t)more * sizeof *larger);
        if (larger == NULL) {
            return -1;
        }
        v->at = larger;
        v->room = more;
    }
    if (v->count == v->made) {
        v->at[v->made] = (uint32_t *)calloc(num_threads, sizeof **v->at);
        if (v->at[v->made] == NULL) {
            return -1;
        }
        v->made++;
    } else {
        memset(v->at[v->count], 0, num_threads * sizeof **v->at);
    }
    return v->count++;
}

static void vectors_clear(vectors *v, bool release)
{
    for (int32_t i = 0; release && i < v->made; i++) {
        free(v->at[i]);
    }
    v->made = release ? 0 : v->made;
    v->count = 0;
}

static int32_t rank_of(const emu_block *block)
{
    return (int32_t)(block - run->blocks);
}

static emu_watch *watch_of(const emu_thread *t)
{
    return t->watch;
}

/* ---- Launches and blocks ---- */

bool emu_order_launch(const emu_launch *launch)
{
    const fd_dim g = launch->grid, t = launch->threads;
    const uint64_t blocks = (uint64_t)g.x * g.y * g.z, threads = (uint64_t)t.x * t.y * t.z;
    const size_t running = (size_t)(threads * (uint64_t)launch->num_blocks), cells = running * (size_t)threads;
    vectors_clear(&known, true);
    vectors_clear(&published, true);
    num_objects = 0;
    run = launch;
    if (blocks > UINT32_MAX / threads) {
        return false;
    }
    num_threads = (uint32_t)(blocks * threads);
    per_block = (uint32_t)threads;
    if (running > watches_room) {
        free(watches);
        watches = (emu_watch *)calloc(running, sizeof *watches);
        watches_room = watches != NULL ? running : 0;
    }
    if (cells > rows_room) {
        free(rows);
        rows = (uint32_t *)calloc(cells, sizeof *rows);
        rows_room = rows != NULL ? cells : 0;
    }
    launch_start = now++;
    return watches != NULL && rows != NULL;
}

void emu_order_block(emu_block *block)
{
    const int32_t rank = rank_of(block);
    const fd_dim i = block->index, g = run->grid;
    const uint32_t first = (i.z * g.y + i.y) * g.x * per_block + i.x * per_block;
    barrier_time[rank] = block_start[rank] = cluster_time = now++;
    for (int32_t t = 0; t < block->num_threads; t++) {
        const size_t at = (size_t)rank * per_block + (size_t)t;
        watches[at] = (emu_watch){first + (uint32_t)t, false, -1, rows + at * per_block};
        block->threads[t].watch = &watches[at];
    }
}

void emu_order_end(void)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < num_objects; i++) {
        if (!objects[i].shared) {
            objects[kept++] = objects[i];
        }
    }
    num_objects = kept;
    vectors_clear(&known, false);
}

uint32_t emu_order_now(void)
{
    return now;
}

uint32_t emu_order_start(const emu_block *block)
{
    return block != NULL ? block_start[rank_of(block)] : launch_start;
}

void emu_order_whose(uint32_t number, fd_dim *block, uint32_t *thread)
{
    const uint32_t b = number / per_block;
    *thread = number % per_block;
    *block = (fd_dim){b % run->grid.x, b / run->grid.x % run->grid.y, b / run->grid.x / run->grid.y};
}

/* ---- What happened before what ---- */

/* Number in the grid of the first thread of my block. */
static uint32_t first_of(const emu_thread *me)
{
    return watch_of(me)->number - (uint32_t)me->index;
}

bool emu_ordered(const emu_thread *me, const emu_who *before)
{
    const emu_watch *w = watch_of(me);
    const int32_t rank = rank_of(me->warp->block);
    const uint32_t first = first_of(me), mine = before->thread - first;
    const uint32_t peer = before->thread - (first - (uint32_t)rank * per_block); /* in the cluster */
    if (before->time <= launch_start || before->thread == w->number) {
        return true;
    }
    if (mine < per_block) {
        return before->time <= later(barrier_time[rank], w->row[mine]);
    }
    if (peer < (uint32_t)run->num_blocks * per_block && before->time <= cluster_time) {
        return true;
    }
    return w->foreign >= 0 && before->time <= known.at[w->foreign][before->thread];
}

/* One vector that holds what both do; -1 is the empty one. Vectors of `known` never change once a thread has them. */
static int32_t join(int32_t a, int32_t b)
{
    if (a == b || b < 0) {
        return a;
    }
    if (a < 0) {
        return b;
    }
    const int32_t both = vector_new(&known);
    for (uint32_t i = 0; both >= 0 && i < num_threads; i++) {
        known.at[both][i] = later(known.at[a][i], known.at[b][i]);
    }
    return both >= 0 ? both : a; /* without memory something is forgotten: a false report, not a missed one */
}

static void barrier_of(const emu_block *block, uint32_t time)
{
    int32_t foreign = -1;
    for (int32_t t = 0; t < block->num_threads; t++) {
        foreign = join(foreign, watch_of(&block->threads[t])->foreign);
    }
    barrier_time[rank_of(block)] = time;
    for (int32_t t = 0; t < block->num_threads; t++) {
        watch_of(&block->threads[t])->foreign = foreign;
        watch_of(&block->threads[t])->wide = false;
    }
}

void emu_order_barrier(const emu_block *block)
{
    barrier_of(block, now++);
}

void emu_order_cluster(void)
{
    int32_t foreign = -1;
    for (int32_t b = 0; b < run->num_blocks; b++) {
        barrier_of(&run->blocks[b], now);
        foreign = join(foreign, watch_of(&run->blocks[b].threads[0])->foreign);
    }
    for (int32_t b = 0; b < run->num_blocks; b++) {
        for (int32_t t = 0; t < run->blocks[b].num_threads; t++) {
            watch_of(&run->blocks[b].threads[t])->foreign = foreign;
        }
    }
    cluster_time = now++;
}

void emu_order_warp(const emu_warp *warp, uint32_t mask)
{
    uint32_t joined[EMU_MAX_THREADS];
    int32_t foreign = -1;
    bool wide = false;
    for (uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
        const emu_watch *w = watch_of(&warp->threads[__builtin_ctz(lanes)]);
        wide |= w->wide;
        foreign = join(foreign, w->foreign);
    }
    const uint32_t first = wide ? 0 : (uint32_t)warp->threads[0].index;
    const uint32_t end = wide ? per_block : first + (uint32_t)warp->lanes;
    memset(joined + first, 0, (end - first) * sizeof *joined);
    for (uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
        const emu_thread *t = &warp->threads[__builtin_ctz(lanes)];
        for (uint32_t i = first; i < end; i++) {
            joined[i] = later(joined[i], watch_of(t)->row[i]);
        }
        joined[t->index] = now;
    }
    for (uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
        const emu_watch *w = watch_of(&warp->threads[__builtin_ctz(lanes)]);
        memcpy(w->row + first, joined + first, (end - first) * sizeof *joined);
        warp->threads[__builtin_ctz(lanes)].watch->wide = wide;
        warp->threads[__builtin_ctz(lanes)].watch->foreign = foreign;
    }
    now++;
}

/* ---- Release and acquire ---- */

static object *object_at(const void *address)
{
    for (int32_t i = 0; i < num_objects; i++) {
        if (objects[i].address == address) {
            return &objects[i];
        }
    }
    return NULL;
}

static object *object_new(const void *address)
{
    if (num_objects == objects_room) {
        const int32_t more = objects_room == 0 ? 16 : 2 * objects_room;
        object *larger = (object *)realloc(objects, (size_t)more * sizeof *larger);
        if (larger == NULL) {
            return NULL;
        }
        objects = larger;
        objects_room = more;
    }
    const int32_t vector = vector_new(&published);
    if (vector < 0) {
        return NULL;
    }
    objects[num_objects] = (object){address, vector, emu_is_shared(address, 1)};
    return &objects[num_objects++];
}

bool emu_order_release(const emu_thread *by, const void *address)
{
    const emu_watch *w = watch_of(by);
    object *o = object_at(address);
    if (o == NULL && (o = object_new(address)) == NULL) {
        return false;
    }
    uint32_t *times = published.at[o->vector];
    const int32_t rank = rank_of(by->warp->block);
    const uint32_t first = first_of(by), peers = first - (uint32_t)rank * per_block;
    for (uint32_t i = 0; w->foreign >= 0 && i < num_threads; i++) {
        times[i] = later(times[i], known.at[w->foreign][i]);
    }
    for (uint32_t i = 0; run->num_blocks > 1 && i < (uint32_t)run->num_blocks * per_block; i++) {
        times[peers + i] = later(times[peers + i], cluster_time);
    }
    for (uint32_t i = 0; i < per_block; i++) {
        times[first + i] = later(times[first + i], later(barrier_time[rank], w->row[i]));
    }
    times[w->number] = now++;
    return true;
}

bool emu_order_acquire(const emu_thread *by, const void *address)
{
    emu_watch *w = by->watch;
    const object *o = object_at(address);
    if (o == NULL) {
        return true;
    }
    const uint32_t *times = published.at[o->vector], first = first_of(by);
    bool news = false;
    for (uint32_t i = 0; i < num_threads && !news; i++) {
        news = i - first >= per_block && times[i] > (w->foreign >= 0 ? known.at[w->foreign][i] : 0);
    }
    if (news) {
        const int32_t vector = vector_new(&known);
        if (vector < 0) {
            return false;
        }
        for (uint32_t i = 0; i < num_threads; i++) {
            known.at[vector][i] = later(times[i], w->foreign >= 0 ? known.at[w->foreign][i] : 0);
        }
        w->foreign = vector;
    }
    for (uint32_t i = 0; i < per_block; i++) {
        w->row[i] = later(w->row[i], times[first + i]);
    }
    w->wide = true;
    return true;
}
