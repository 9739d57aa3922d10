/* observe.c: see observe.h. Host memory only: the stamps are the caller's. */
#include "observe.h"

#include <stddef.h>

static struct observation {
    fd_stamp *stamps; /* NULL: none is wanted */
    int64_t capacity, used;
    int count, lost;
    fd_observed_launch launches[FD_OBSERVED_MAX];
} seen;

void fd_gpu_observe(fd_stamp *stamps, int64_t capacity)
{
    seen.stamps = stamps;
    if (stamps != NULL) {
        seen.capacity = capacity;
        seen.used = 0;
        seen.count = seen.lost = 0;
    }
}

int fd_gpu_observed(fd_observed_launch launches[FD_OBSERVED_MAX])
{
    for (int i = 0; i < seen.count; i++) {
        launches[i] = seen.launches[i];
    }
    return seen.lost ? -1 : seen.count;
}

fd_stamp *fd_gpu_observing(const fd_observed_launch *launch)
{
    if (seen.stamps == NULL) {
        return NULL;
    }
    if (seen.count == FD_OBSERVED_MAX || launch->blocks > seen.capacity - seen.used) {
        seen.lost = 1;
        return NULL;
    }
    fd_observed_launch *kept = &seen.launches[seen.count++];
    *kept = *launch;
    kept->first = seen.used;
    seen.used += launch->blocks;
    return seen.stamps + kept->first;
}
