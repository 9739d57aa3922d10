/* driver.c: GPU 0 through the driver API, so that a program without CUDA's toolkit can hold a GPU plug-in's
 * memory. The context is the device's primary one, which the runtime inside rungs and plug-ins uses too. Names and
 * numbers are those of cuda.h, and older than any driver that knows sm_80. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>

#include "device.h"
#include "driver.h"
#include "hold.h"
#include "launch.h"

enum { /* CUdevice_attribute */
       CU_MULTIPROCESSORS = 16,
       CU_L2_BYTES = 38,
       CU_CAPABILITY_MAJOR = 75,
       CU_CAPABILITY_MINOR = 76,
       CU_SHARED_BYTES_OPTIN = 97 /* that a block may have when it asks */
};

fd_gpu_driver fd_cu;

static fd_device gpu;
static cu_stream stream; /* of every run(): it waits for no other, and no other for it */
static char lost[256];   /* why the GPU takes no more work from this process; "": it does */

/* ---- What kernel.cuh tells --------------------------------------------------------------------- */

static struct launches {
    const char *last;  /* the kernel launched last */
    int count;         /* since run() began */
    char refused[192]; /* "": no launch was */
} launches;

void fd_gpu_launching(const char *kernel)
{
    launches.last = kernel;
    launches.count++;
}

void fd_gpu_failed(const char *kernel, const char *text)
{
    snprintf(launches.refused, sizeof launches.refused, "%s cannot be launched: %s", kernel, text);
}

const char *fd_gpu_refused(void)
{
    return launches.refused;
}

/* ---- Errors ------------------------------------------------------------------------------------ */

static const char *text_of(cu_result error)
{
    const char *text = NULL;
    return fd_cu.cuGetErrorString(error, &text) == 0 && text != NULL ? text : "unknown CUDA error";
}

static bool good(cu_result result, const char *what, char *why, size_t n)
{
    if (result != 0) {
        snprintf(why, n, "GPU: %s: %s", what, text_of(result));
    }
    return result == 0;
}

/* ---- The device -------------------------------------------------------------------------------- */

static fd_status gpu_alloc(void **data, size_t bytes, char *why, size_t n)
{
    cu_pointer at = 0;
    const cu_result result = fd_cu.cuMemAlloc(&at, bytes > 0 ? bytes : 1);
    *data = result == 0 ? (void *)(uintptr_t)at : NULL; /* the driver aligns to 256 bytes at least */
    if (result != 0) {
        snprintf(why, n, "GPU: %.1f MiB cannot be allocated: %s", (double)bytes / 0x1p20, text_of(result));
        return lost[0] != '\0' ? FD_DEVICE_ERROR : FD_NO_MEMORY;
    }
    return FD_OK;
}

static void gpu_release(void *data)
{
    if (data != NULL) {
        (void)fd_cu.cuMemFree((cu_pointer)(uintptr_t)data); /* fails on a lost GPU only */
    }
}

static fd_status gpu_write(void *to_device, const void *from_host, size_t bytes, char *why, size_t n)
{
    return bytes == 0 || good(fd_cu.cuMemcpyHtoD((cu_pointer)(uintptr_t)to_device, from_host, bytes),
                              "copy to the device", why, n)
               ? FD_OK
               : FD_DEVICE_ERROR;
}

static fd_status gpu_read(void *to_host, const void *from_device, size_t bytes, char *why, size_t n)
{
    return bytes == 0 || good(fd_cu.cuMemcpyDtoH(to_host, (cu_pointer)(uintptr_t)from_device, bytes),
                              "copy from the device", why, n)
               ? FD_OK
               : FD_DEVICE_ERROR;
}

/* After a fault CUDA refuses everything else to the process. */
static fd_status lose(cu_result result, char *why, size_t n)
{
    const char *kernel = launches.last != NULL ? launches.last : "a kernel";
    snprintf(why, n, "%s%s: %s", launches.count > 1 ? "the last of several kernels was " : "", kernel, text_of(result));
    snprintf(lost, sizeof lost, "the GPU was lost before, and takes no work until the program is started again: %.150s",
             why);
    return FD_DEVICE_ERROR;
}

static size_t bytes_of_o(const fd_problem *p)
{
    const int64_t last = (p->batch - 1) * p->o.stride[0] + (p->q_len - 1) * p->o.stride[1] +
                         (p->heads_q - 1) * p->o.stride[2] + (p->head_dim_v - 1) * p->o.stride[3];
    return (size_t)(last + 1) * fd_dtype_bytes(p->o.dtype);
}

static fd_status gpu_run(const fd_rung *rung, const fd_problem *problem, const fd_context *context, char *why, size_t n)
{
    if (lost[0] != '\0') {
        snprintf(why, n, "%s", lost);
        return FD_DEVICE_ERROR;
    }
    launches = (struct launches){.last = NULL};
    fd_context here = *context;
    here.stream = stream;
    fd_hold_begin(&problem->o, bytes_of_o(problem), stream);
    fd_status status = rung->run(problem, &here);
    const bool early = fd_hold_end();
    cu_result result = fd_cu.cuStreamSynchronize(stream);
    if (result == 0) {
        fd_hold_done();
        result = fd_cu.cuCtxSynchronize();
    }
    if (result != 0) {
        return lose(result, why, n);
    }
    if (status != FD_OK) {
        snprintf(why, n, "run() returned %s%s%s", fd_status_name(status), launches.refused[0] != '\0' ? ": " : "",
                 launches.refused);
    } else if (launches.refused[0] != '\0') {
        snprintf(why, n, "run() returned FD_OK, but %s", launches.refused);
        status = FD_INVALID;
    } else if (early || fd_hold_late()) {
        snprintf(why, n, "o was written %s the stream that run() was given: it launches on another one",
                 early ? "ahead of" : "behind the end of");
        status = FD_INVALID;
    }
    return status;
}

/* ---- Opening it -------------------------------------------------------------------------------- */

static bool load(char *why, size_t n)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        snprintf(why, n, "no GPU: NVIDIA's driver library libcuda.so.1 is not installed here");
        return false;
    }
    const struct {
        const char *name;
        void *to;
    } symbols[] = {{"cuInit", &fd_cu.cuInit},
                   {"cuDeviceGet", &fd_cu.cuDeviceGet},
                   {"cuDeviceGetName", &fd_cu.cuDeviceGetName},
                   {"cuDeviceGetAttribute", &fd_cu.cuDeviceGetAttribute},
                   {"cuDevicePrimaryCtxRetain", &fd_cu.cuDevicePrimaryCtxRetain},
                   {"cuCtxSetCurrent", &fd_cu.cuCtxSetCurrent},
                   {"cuCtxSynchronize", &fd_cu.cuCtxSynchronize},
                   {"cuMemAlloc_v2", &fd_cu.cuMemAlloc},
                   {"cuMemFree_v2", &fd_cu.cuMemFree},
                   {"cuMemcpyHtoD_v2", &fd_cu.cuMemcpyHtoD},
                   {"cuMemcpyDtoH_v2", &fd_cu.cuMemcpyDtoH},
                   {"cuStreamCreate", &fd_cu.cuStreamCreate},
                   {"cuStreamSynchronize", &fd_cu.cuStreamSynchronize},
                   {"cuLaunchHostFunc", &fd_cu.cuLaunchHostFunc},
                   {"cuGetErrorString", &fd_cu.cuGetErrorString}};
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        if (symbol == NULL) {
            snprintf(why, n, "no GPU: libcuda.so.1 has no %s; its driver is too old", symbols[i].name);
            return false;
        }
        memcpy(symbols[i].to, &symbol, sizeof symbol); /* C has no cast from an object's to a function's pointer */
    }
    return true;
}

static bool open_gpu(char *why, size_t n)
{
    cu_device device = 0;
    cu_context context = NULL;
    int sms = 0, l2 = 0, major = 0, minor = 0, shared = 0;
    if (!load(why, n)) {
        return false;
    }
    const cu_result begun = fd_cu.cuInit(0);
    if (begun != 0) {
        snprintf(why, n, "no GPU: the driver says: %s", text_of(begun));
        return false;
    }
    if (!good(fd_cu.cuDeviceGet(&device, 0), "first device", why, n) ||
        !good(fd_cu.cuDeviceGetAttribute(&sms, CU_MULTIPROCESSORS, device), "multiprocessors", why, n) ||
        !good(fd_cu.cuDeviceGetAttribute(&l2, CU_L2_BYTES, device), "L2 size", why, n) ||
        !good(fd_cu.cuDeviceGetAttribute(&major, CU_CAPABILITY_MAJOR, device), "compute capability", why, n) ||
        !good(fd_cu.cuDeviceGetAttribute(&minor, CU_CAPABILITY_MINOR, device), "compute capability", why, n) ||
        !good(fd_cu.cuDeviceGetAttribute(&shared, CU_SHARED_BYTES_OPTIN, device), "shared memory", why, n) ||
        !good(fd_cu.cuDevicePrimaryCtxRetain(&context, device), "context", why, n) ||
        !good(fd_cu.cuCtxSetCurrent(context), "context", why, n) ||
        !good(fd_cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "a stream", why, n)) {
        return false;
    }
    gpu = (fd_device){.where = "gpu",
                      .machine = {.size = sizeof(fd_machine),
                                  .space = FD_DEVICE,
                                  .num_units = sms,
                                  .compute_capability = 10 * major + minor,
                                  .shared_bytes = shared,
                                  .l2_bytes = l2},
                      .alloc = gpu_alloc,
                      .release = gpu_release,
                      .write = gpu_write,
                      .read = gpu_read,
                      .run = gpu_run};
    return good(fd_cu.cuDeviceGetName(gpu.name, sizeof gpu.name, device), "its name", why, n);
}

const fd_device *fd_device_gpu(char *why, size_t n)
{
    static enum { UNTRIED, OPEN, ABSENT } state;
    static char reason[256];
    if (state == UNTRIED) {
        state = open_gpu(reason, sizeof reason) ? OPEN : ABSENT;
    }
    if (state == ABSENT) {
        snprintf(why, n, "%s", reason);
        return NULL;
    }
    return &gpu;
}
