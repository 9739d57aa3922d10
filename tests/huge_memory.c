/* huge_memory.c: stretches of memory larger than what is touched of them, and a run on tensors that lie there. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS, MAP_NORESERVE */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "execute.h"
#include "huge.h"

#ifdef FD_GPU
#include "gpu/measure.h"
#endif

static bool on_gpu(const fd_stretch *x)
{
    return x->device != NULL && strcmp(x->device->where, "gpu") == 0;
}

static fd_status reserve(fd_stretch *x, size_t bytes, char *why, size_t n)
{
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) {
        snprintf(why, n, "%.1f GiB of addresses cannot be reserved: see ulimit -v and vm.overcommit_memory",
                 (double)bytes / 0x1p30);
        return FD_NO_MEMORY;
    }
    x->base = (unsigned char *)map;
    return FD_OK;
}

fd_status fd_stretch_take(fd_stretch *x, const fd_device *device, size_t bytes, char *why, size_t n)
{
    void *data = NULL;
    *x = (fd_stretch){.device = device};
    fd_status status = device == NULL ? reserve(x, bytes, why, n) : device->alloc(&data, bytes, why, n);
    if (status == FD_OK && device != NULL) {
        x->base = (unsigned char *)data;
    }
    if (status == FD_OK) {
        x->bytes = bytes;
    }
#ifdef FD_GPU
    if (status == FD_OK && on_gpu(x)) {
        status = fd_gpu_set_ones(x->base, x->bytes, why, n);
    }
#endif
    return status;
}

void fd_stretch_free(fd_stretch *x)
{
    if (x->base != NULL && x->device == NULL) {
        munmap(x->base, x->bytes);
    } else if (x->base != NULL) {
        x->device->release(x->base);
    }
    *x = (fd_stretch){.bytes = 0};
}

fd_status fd_stretch_write(const fd_stretch *x, size_t at, const void *from, size_t bytes, char *why, size_t n)
{
    if (x->device != NULL) {
        return x->device->write(x->base + at, from, bytes, why, n);
    }
    memcpy(x->base + at, from, bytes);
    return FD_OK;
}

fd_status fd_stretch_read(const fd_stretch *x, size_t at, void *to, size_t bytes, char *why, size_t n)
{
    if (x->device != NULL) {
        return x->device->read(to, x->base + at, bytes, why, n);
    }
    memcpy(to, x->base + at, bytes);
    return FD_OK;
}

fd_status fd_stretch_untouched(const fd_stretch *x, char *why, size_t n)
{
    (void)why, (void)n;
    if (!on_gpu(x)) {
        return FD_OK;
    }
#ifdef FD_GPU
    int64_t at = -1;
    const fd_status status = fd_gpu_find_not_ones(x->base, x->bytes, &at, why, n);
    if (status == FD_OK && at >= 0) {
        snprintf(why, n, "byte %lld of %zu was written to, which belongs to no row", (long long)at, x->bytes);
        return FD_INVALID;
    }
    return status;
#else
    return FD_OK;
#endif
}

fd_status fd_huge_run(const fd_rung *rung, const fd_device *device, const fd_problem *p, const fd_plan *plan,
                      int64_t *workspace_bytes, char *why, size_t n)
{
    fd_stretch workspace = {.bytes = 0}, plan_copy = {.bytes = 0};
    fd_context context = {.size = sizeof context, .plan = plan, .plan_device = plan};
    const size_t bytes = fd_workspace_bytes(rung, p, plan);
    fd_status status = fd_stretch_take(&workspace, device, bytes + 256, why, n);
    if (workspace_bytes != NULL) {
        *workspace_bytes = (int64_t)bytes;
    }
    if (status == FD_OK && plan != NULL && device != NULL) {
        status = fd_stretch_take(&plan_copy, device, plan->size, why, n);
        status = status == FD_OK ? fd_stretch_write(&plan_copy, 0, plan, plan->size, why, n) : status;
        context.plan_device = (const fd_plan *)(const void *)plan_copy.base;
    }
    context.workspace = workspace.base;
    if (status == FD_OK && device != NULL) {
        status = device->run(rung, p, &context, why, n);
    } else if (status == FD_OK) {
        status = rung->run(p, &context);
        if (status != FD_OK) {
            snprintf(why, n, "run() returned %s", fd_status_name(status));
        }
    }
    fd_stretch_free(&workspace);
    fd_stretch_free(&plan_copy);
    return status;
}
