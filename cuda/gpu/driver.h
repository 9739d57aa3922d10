/* driver.h: what gpu/ calls of NVIDIA's driver library, loaded by driver.c. Names and numbers are those of cuda.h. */
#ifndef FD_GPU_DRIVER_H
#define FD_GPU_DRIVER_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t cu_result, cu_device; /* CUresult (0: success), CUdevice */
typedef void *cu_context, *cu_stream;
typedef uint64_t cu_pointer; /* CUdeviceptr */

enum { CU_STREAM_NON_BLOCKING = 1 };

typedef struct fd_gpu_driver { /* all symbols that are used, by the driver's own names */
    cu_result (*cuInit)(unsigned flags);
    cu_result (*cuDeviceGet)(cu_device *device, int ordinal);
    cu_result (*cuDeviceGetName)(char *name, int n, cu_device device);
    cu_result (*cuDeviceGetAttribute)(int *value, int attribute, cu_device device);
    cu_result (*cuDevicePrimaryCtxRetain)(cu_context *context, cu_device device);
    cu_result (*cuCtxSetCurrent)(cu_context context);
    cu_result (*cuCtxSynchronize)(void);
    cu_result (*cuMemAlloc)(cu_pointer *data, size_t bytes);
    cu_result (*cuMemFree)(cu_pointer data);
    cu_result (*cuMemcpyHtoD)(cu_pointer to, const void *from, size_t bytes);
    cu_result (*cuMemcpyDtoH)(void *to, cu_pointer from, size_t bytes);
    cu_result (*cuStreamCreate)(cu_stream *stream, unsigned flags);
    cu_result (*cuStreamSynchronize)(cu_stream stream);
    cu_result (*cuLaunchHostFunc)(cu_stream stream, void (*function)(void *data), void *data);
    cu_result (*cuGetErrorString)(cu_result error, const char **text);
} fd_gpu_driver;

extern fd_gpu_driver fd_cu;

#endif /* FD_GPU_DRIVER_H */
