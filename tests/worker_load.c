/* worker_load.c: in the worker: loads the plug-in, and believes nothing that its descriptor says before it is checked. */
#define _GNU_SOURCE
#include "worker_protocol.h"
#ifdef __linux__
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

#include "text.h"

#define NAME_MOST 63

static fd_shared *shared;
static const fd_rung *rung;
static const fd_device *device; /* NULL: host */

static void refuse(const char *format, const char *text)
{
    shared->refused = 1;
    snprintf(shared->text, sizeof shared->text, format, text);
}

void fd_copy_text(char *to, size_t n, const char *from)
{
    snprintf(to, n, "%s", from);
    fd_text_clean(to);
}

static int note_code(struct dl_phdr_info *info, size_t size, void *base)
{
    (void)size;
    if (info->dlpi_addr == (uintptr_t)base) {
        uint64_t end = 0;
        for (int i = 0; i < info->dlpi_phnum; i++) {
            const uint64_t last = info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
            end = info->dlpi_phdr[i].p_type == PT_LOAD && last > end ? last : end;
        }
        shared->loaded.begin = info->dlpi_addr;
        shared->loaded.end = info->dlpi_addr + end;
    }
    return 0;
}

static bool copy_descriptor(void)
{
    const struct {
        const void *function;
        int32_t *has;
    } optional[] = {{(const void *)(uintptr_t)rung->supports, &shared->loaded.has_supports},
                    {(const void *)(uintptr_t)rung->plan, &shared->loaded.has_plan},
                    {(const void *)(uintptr_t)rung->workspace, &shared->loaded.has_workspace},
                    {(const void *)(uintptr_t)rung->arith, &shared->loaded.has_arith}};
    char number[24];
    if (rung->abi != FD_ABI) {
        snprintf(number, sizeof number, "%u", rung->abi);
        refuse("its descriptor says ABI %s, this program has 1: build it against this program's fd.h, and set .abi = "
               "FD_ABI",
               number);
    } else if (rung->size < offsetof(fd_rung, merge) || rung->size > 4096) {
        snprintf(number, sizeof number, "%u", rung->size);
        refuse("its descriptor says .size = %s: set .size = sizeof(fd_rung)", number);
    } else if (rung->name == NULL || rung->name[0] == '\0') {
        refuse("its descriptor has no %s: set .name", "name");
    } else if (strnlen(rung->name, NAME_MOST + 1) > NAME_MOST) {
        refuse("its descriptor's %s is longer than 63 bytes, or does not end", "name");
    } else if (rung->run == NULL) {
        refuse("its descriptor has no %s: set .run", "run()");
    } else if (rung->caps == NULL) {
        refuse("its descriptor has no %s: set .caps to what it takes", "caps");
    } else if (rung->caps->size < 12 || rung->caps->size > 4096) {
        snprintf(number, sizeof number, "%u", rung->caps->size);
        refuse("its caps say .size = %s: set .size = sizeof(fd_caps)", number);
    } else if ((rung->plan == NULL) != (rung->plan_bytes == NULL)) {
        refuse("its descriptor has only one of %s: set both or none", "plan and plan_bytes");
    } else {
        const size_t bytes = rung->caps->size < sizeof(fd_caps) ? rung->caps->size : sizeof(fd_caps);
        memcpy(&shared->loaded.caps, rung->caps, bytes);
        shared->loaded.caps.size = sizeof(fd_caps);
        fd_copy_text(shared->loaded.name, sizeof shared->loaded.name, rung->name);
        fd_copy_text(shared->loaded.idea, sizeof shared->loaded.idea, rung->idea != NULL ? rung->idea : "");
        for (size_t i = 0; i < sizeof optional / sizeof *optional; i++) {
            *optional[i].has = optional[i].function != NULL;
        }
        shared->loaded.has_merge = rung->size >= offsetof(fd_rung, merge) + sizeof rung->merge && rung->merge != NULL;
        return true;
    }
    return false;
}

/* A plug-in for device memory runs on the emulator if it was compiled for it (fd_cuda.h leaves a mark), else on the GPU. */
static bool find_device(void *library)
{
    snprintf(shared->loaded.where, sizeof shared->loaded.where, "cpu");
    if ((shared->loaded.caps.spaces & 1u << FD_HOST) != 0) {
        return true;
    }
#ifndef FD_NO_EMULATOR
    if (dlsym(library, "fd_emulated") != NULL) {
        device = fd_device_emu();
    }
#else
    (void)library;
#endif
    if (device == NULL) {
        device = fd_device_gpu(shared->text, sizeof shared->text);
    }
    if (device == NULL) {
        shared->refused = 2;
        return false;
    }
    snprintf(shared->loaded.where, sizeof shared->loaded.where, "%s", device->where);
    snprintf(shared->loaded.device, sizeof shared->loaded.device, "%s", device->name);
    shared->loaded.machine = device->machine;
    return true;
}

static const char *(*left_error)(void); /* kernel.cuh's; NULL: the plug-in has none */
static int (*last_error)(void);         /* cudaGetLastError() and cudaGetErrorString(), of a shared runtime */
static const char *(*error_text)(int error);

static void find_runtime(void *library)
{
    const struct {
        const char *name;
        void *to;
    } symbols[] = {
        {"fd_cuda_left_error", &left_error}, {"cudaGetLastError", &last_error}, {"cudaGetErrorString", &error_text}};
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *symbol = dlsym(library, symbols[i].name);
        memcpy(symbols[i].to, &symbol, sizeof symbol); /* C has no cast from an object's to a function's pointer */
    }
}

const char *fd_take_cuda_error(void)
{
    if (left_error != NULL) {
        return left_error();
    }
    const int error = last_error != NULL && error_text != NULL ? last_error() : 0;
    return error != 0 ? error_text(error) : NULL;
}

void fd_load_plugin(fd_shared *where, const fd_rung **loaded, const fd_device **runs_on)
{
    shared = where;
    rung = NULL;
    device = NULL;
    shared->doing = FD_DOING_DLOPEN;
    void *library = dlopen(shared->target, RTLD_NOW | RTLD_LOCAL);
    fd_watch_end(shared, false);
    if (library == NULL) {
        const char *said = dlerror();
        said = said != NULL ? said : "no reason given";
        if (strstr(said, "fd_emu_") != NULL) {
            refuse("is compiled for the emulator, which %s",
                   "this program has not: build it with nvcc, or use the other program");
        } else {
            refuse("cannot be loaded: %s; build it with -shared -fPIC, and link what it calls", said);
        }
        return;
    }
    void *symbol = dlsym(library, "fd_plugin");
    const fd_rung *(*entry)(uint32_t host_abi) = NULL;
    if (symbol == NULL) {
        refuse("exports no symbol %s; fd.h declares it, and a C++ plug-in gets its C name by including fd.h",
               "fd_plugin");
        return;
    }
    Dl_info info;
    if (dladdr(symbol, &info) != 0) {
        dl_iterate_phdr(note_code, info.dli_fbase);
    }
    memcpy(&entry, &symbol, sizeof entry); /* C has no cast from an object's to a function's pointer */
    shared->doing = FD_DOING_ENTRY;
    rung = entry(FD_ABI);
    fd_watch_end(shared, false);
    if (rung == NULL) {
        refuse("fd_plugin(1) returned NULL: the plug-in does not serve ABI %s", "1, which is this program's");
        return;
    }
    shared->doing = FD_DOING_DESCRIPTOR;
    if (copy_descriptor() && find_device(library)) {
        find_runtime(library);
        shared->doing = FD_DOING_NOTHING;
    }
    *loaded = rung;
    *runs_on = device;
}
#endif
