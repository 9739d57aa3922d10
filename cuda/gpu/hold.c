/* hold.c: see hold.h. */
#define _DEFAULT_SOURCE
#include "hold.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOLD_NS 50000000 /* after which a stream goes on, whoever waits for it */
#define LOOK_NS 20000    /* between two looks whether it may */
#define SHOW_NS 100000   /* for a kernel on another stream to write something */
#define EXPIRED_MOST 3   /* in a row: run() waits for its stream, and is not held up any more */

static struct {
    _Atomic int go, expired;
    int expired_in_row;
    bool held;
    cu_pointer o;
    size_t bytes, capacity;
    unsigned char *before, *now; /* of o */
} hold;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1000000000 * (int64_t)t.tv_sec + t.tv_nsec;
}

/* In the stream, on a thread of the driver's. */
static void wait_there(void *data)
{
    const int64_t begun = now_ns();
    const struct timespec look = {0, LOOK_NS};
    (void)data;
    while (atomic_load(&hold.go) == 0) {
        if (now_ns() - begun > HOLD_NS) {
            atomic_store(&hold.expired, 1);
            return;
        }
        nanosleep(&look, NULL);
    }
}

static bool remember(unsigned char *to)
{
    return to != NULL && fd_cu.cuMemcpyDtoH(to, hold.o, hold.bytes) == 0;
}

void fd_hold_begin(const fd_tensor *o, size_t bytes, cu_stream stream)
{
    hold.o = (cu_pointer)(uintptr_t)o->data;
    hold.bytes = bytes;
    hold.held = false;
    if (bytes > hold.capacity) {
        free(hold.before);
        free(hold.now);
        hold.before = (unsigned char *)malloc(bytes);
        hold.now = (unsigned char *)malloc(bytes);
        hold.capacity = hold.before != NULL && hold.now != NULL ? bytes : 0;
    }
    if (hold.capacity < bytes || bytes == 0 || hold.expired_in_row >= EXPIRED_MOST) {
        return;
    }
    atomic_store(&hold.go, 0);
    atomic_store(&hold.expired, 0);
    hold.held =
        fd_cu.cuCtxSynchronize() == 0 && remember(hold.before) && fd_cu.cuLaunchHostFunc(stream, wait_there, NULL) == 0;
}

bool fd_hold_end(void)
{
    const struct timespec show = {0, SHOW_NS};
    if (!hold.held) {
        return false;
    }
    nanosleep(&show, NULL);
    const bool seen = remember(hold.now);
    const bool expired = atomic_load(&hold.expired) != 0;
    atomic_store(&hold.go, 1);
    hold.expired_in_row = expired ? hold.expired_in_row + 1 : 0;
    return seen && !expired && memcmp(hold.before, hold.now, hold.bytes) != 0;
}

void fd_hold_done(void)
{
    hold.held = hold.capacity >= hold.bytes && hold.bytes > 0 && remember(hold.before);
}

bool fd_hold_late(void)
{
    return hold.held && remember(hold.now) && memcmp(hold.before, hold.now, hold.bytes) != 0;
}
