/* plan.c: see plan.h. Lengths are counted in tiles, so that whatever is found begins and ends at one. */
#include "plan.h"

#include <inttypes.h>
#include <stdio.h>

static int64_t divide_up(int64_t x, int64_t by) /* x >= 0; no sum that could overflow */
{
    return x / by + (x % by != 0);
}

static int64_t larger(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

static int64_t smaller(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

int64_t fd_plan_keys(const fd_problem *p)
{
    int64_t keys = p->kv_lens_host != NULL ? 0 : p->kv_capacity;
    for (int32_t b = 0; p->kv_lens_host != NULL && b < p->batch; b++) {
        keys = larger(keys, p->kv_lens_host[b]);
    }
    return keys;
}

/* ---- Fill the machine ---------------------------------------------------------------------------
 *
 * A machine with `slots` resident thread blocks runs a grid in waves. Decoding reads, so a block takes as long as the
 * keys of its split, and the unit of time is a tile. Work is heads * (tiles of all sequences), whatever the cut; the
 * mean load of a slot, W = work / slots, is the time that no cut can beat.
 *
 * One wave. If all blocks are resident at once, time is that of the longest split: the smallest split_size whose blocks
 * still fit is the best. With equal lengths, n tiles and B = batch * heads blocks a split, that is floor(slots / B)
 * splits; it takes at most 2 W, rounded up to tiles, because floor(x) > x / 2 for x >= 1. One split more would begin a
 * second wave, as long as the first, for a few blocks: 24 splits of 8 heads on 132 multiprocessors take 2 waves of
 * n / 24, 16 splits one of n / 16.
 *
 * More than one wave. Ragged batches need it, where one long sequence would keep a few slots busy while the rest have
 * long finished; and batches with more rows than slots have no choice. Blocks start as slots become free, so the last
 * one starts at W at the latest and the time is at most W + split_size (Graham 1966). With split_size = W it is at most
 * 2 W. Equal lengths and B >= slots give W >= n: no split.
 *
 * So: one wave, unless its longest split exceeds 2 W. With equal lengths it never does. */

/* Blocks with a key, of one head: splits of t tiles over all sequences. */
static int64_t parts(const fd_problem *p, int64_t tile, int64_t t)
{
    if (p->kv_lens_host == NULL) {
        return p->batch * divide_up(divide_up(p->kv_capacity, tile), t);
    }
    int64_t sum = 0;
    for (int32_t b = 0; b < p->batch; b++) {
        sum += divide_up(divide_up(p->kv_lens_host[b], tile), t);
    }
    return sum;
}

/* W in tiles, rounded up; at most `most`. work = heads * tiles may not fit 64 bits; slots and heads are below 2^31. */
static int64_t mean_load(int64_t heads, int64_t tiles, int64_t slots, int64_t most)
{
    const int64_t whole = tiles / slots;
    if (whole > most / heads) {
        return most;
    }
    return smaller(heads * whole + divide_up(heads * (tiles % slots), slots), most);
}

/* Tiles a split, from least to most = the tiles of the longest sequence. */
static int64_t fill(const fd_split_policy *policy, const fd_problem *p, int64_t slots, int64_t tile, int64_t least,
                    int64_t most)
{
    const int64_t room = slots / policy->heads; /* blocks of one head that are resident at once */
    const int64_t load = larger(mean_load(policy->heads, parts(p, tile, 1), slots, most), least);
    if (parts(p, tile, most) > room) {
        return load;
    }
    int64_t low = least, high = most; /* the smallest that fits lies in low .. high: parts() falls as t grows */
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (parts(p, tile, middle) > room) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low <= 2 * load ? low : load;
}

/* ---- The plan ----------------------------------------------------------------------------------- */

static fd_status check(const fd_split_policy *policy, const fd_problem *p, const fd_machine *machine, char *why,
                       size_t n)
{
    if (fd_plan_keys(p) > INT32_MAX) {
        snprintf(why, n, "kv_capacity %" PRId64 " is above 2^31 - 1, the largest kv_len", fd_plan_keys(p));
        return FD_INVALID;
    }
    if (policy->tile < 0 || policy->num_splits_max < 0 || policy->split_size_min < 0 || policy->no_split_below < 0) {
        snprintf(why, n, "policy: tile, num_splits_max, split_size_min or no_split_below is negative");
        return FD_INVALID;
    }
    if (policy->kind < FD_SPLIT_NONE || policy->kind > FD_SPLIT_FILL) {
        snprintf(why, n, "policy: kind %d is none of fd_split_kind", policy->kind);
        return FD_INVALID;
    }
    if (policy->kind == FD_SPLIT_CHUNK && policy->chunk < 1) {
        snprintf(why, n, "policy: chunk is %" PRId64 " keys, expected 1 or more", policy->chunk);
        return FD_INVALID;
    }
    if (policy->kind == FD_SPLIT_FILL &&
        (policy->heads < 1 || machine->num_units < 1 || machine->blocks_per_unit < 0)) {
        snprintf(why, n, "cannot fill a machine: heads %d, num_units %d, blocks_per_unit %d", policy->heads,
                 machine->num_units, machine->blocks_per_unit);
        return FD_INVALID;
    }
    return FD_OK;
}

/* Resident thread blocks, at most 2^31 - 1; an unknown number a unit counts as 1. */
static int64_t resident(const fd_machine *machine)
{
    return smaller(machine->num_units * larger(machine->blocks_per_unit, 1), INT32_MAX);
}

fd_status fd_plan_splits(const fd_split_policy *policy, const fd_problem *p, const fd_machine *machine, fd_plan *plan,
                         char *why, size_t n)
{
    const fd_status status = check(policy, p, machine, why, n);
    if (status != FD_OK) {
        return status;
    }
    const int64_t keys = larger(fd_plan_keys(p), 1), tile = larger(policy->tile, 1), most = divide_up(keys, tile);
    const int64_t splits_max = policy->num_splits_max > 0 ? policy->num_splits_max : INT32_MAX;
    const int64_t least = divide_up(most, splits_max);

    int64_t t = most; /* tiles a split */
    if (p->num_splits_request > 0) {
        t = divide_up(most, p->num_splits_request);
    } else if (p->split_size_request > 0) {
        t = divide_up(p->split_size_request, tile);
    } else if (keys >= policy->no_split_below && policy->kind == FD_SPLIT_CHUNK) {
        t = larger(divide_up(policy->chunk, tile), least);
    } else if (keys >= policy->no_split_below && policy->kind == FD_SPLIT_FILL) {
        t = larger(divide_up(policy->split_size_min, tile), least);
        t = fill(policy, p, resident(machine), tile, smaller(t, most), most);
    }
    t = smaller(t, most);
    const int64_t splits = p->num_splits_request > 0 ? p->num_splits_request : divide_up(most, t);
    if (splits > splits_max) {
        snprintf(why, n, "%" PRId64 " splits are asked for, the most here is %" PRId64, splits, splits_max);
        return FD_INVALID;
    }
    *plan =
        (fd_plan){.size = sizeof *plan, .num_splits = (int32_t)splits, .split_size = t * tile, .tile = policy->tile};
    return FD_OK;
}
