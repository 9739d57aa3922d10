/* machine.c: see machine.h. Linux reads /proc and /sys, macOS sysctl; elsewhere fields stay unknown. */
#ifdef __APPLE__
#define _DARWIN_C_SOURCE
#else
#define _POSIX_C_SOURCE 200809L
#endif

#include "machine.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif
#ifdef __APPLE__
#include <sys/sysctl.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif

#include "text.h"

#ifndef FD_BUILD_FLAGS
#define FD_BUILD_FLAGS "unknown"
#endif

#if defined __clang__ || !defined __GNUC__
#define COMPILER __VERSION__ /* clang names itself */
#else
#define COMPILER "gcc " __VERSION__
#endif

uint64_t fd_fnv(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < bytes; i++) {
        hash = (hash ^ byte[i]) * 0x100000001b3u;
    }
    return hash;
}

/* Copies text as one line without outer blanks; "unknown" if nothing is left. */
static void one_line(char *to, size_t n, const char *from)
{
    size_t used = 0;
    for (; *from != '\0' && used + 1 < n; from++) {
        const bool blank = (unsigned char)*from <= ' ' || *from == 127;
        if (!blank || (used > 0 && to[used - 1] != ' ')) {
            to[used++] = blank ? ' ' : *from;
        }
    }
    while (used > 0 && to[used - 1] == ' ') {
        used--;
    }
    to[used] = '\0';
    fd_text_clean(to);
    if (used == 0) {
        snprintf(to, n, "unknown");
    }
}

/* The text after the colon or blank of the first line of a file that begins with key. */
static bool find_line(const char *path, const char *key, char *text, size_t n)
{
    char line[512];
    bool found = false;
    FILE *file = fopen(path, "r");
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            const char *rest = line + strlen(key);
            one_line(text, n, rest + strspn(rest, ": \t"));
            found = true;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

/* The first number of such a line; 0 if there is none. "" takes the first line. */
static int64_t find_number(const char *path, const char *key)
{
    char text[64];
    return find_line(path, key, text, sizeof text) ? strtoll(text, NULL, 10) : 0;
}

#ifdef __APPLE__
static int64_t sysctl_number(const char *name)
{
    int64_t value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 ? value : 0;
}
#endif

void fd_processor_name(char *text, size_t n)
{
#ifdef __APPLE__
    size_t size = n;
    if (sysctlbyname("machdep.cpu.brand_string", text, &size, NULL, 0) == 0) {
        return;
    }
#endif
    if (find_line("/proc/cpuinfo", "model name", text, n) || find_line("/proc/cpuinfo", "Model", text, n) ||
        find_line("/proc/device-tree/model", "", text, n)) {
        return;
    }
    char part[32];
    if (find_line("/proc/cpuinfo", "CPU part", part, sizeof part)) {
        snprintf(text, n, "part %s", part);
        return;
    }
    snprintf(text, n, "unknown");
}

const char *fd_libc_name(void)
{
#ifdef __GLIBC__
    static char name[64];
    snprintf(name, sizeof name, "glibc %s", gnu_get_libc_version());
    return name;
#else
    return "unknown libc";
#endif
}

static int64_t memory_total(void)
{
#ifdef __APPLE__
    return sysctl_number("hw.memsize");
#else
    return find_number("/proc/meminfo", "MemTotal") * 1024;
#endif
}

int64_t fd_memory_available(void)
{
    int64_t available = find_number("/proc/meminfo", "MemAvailable") * 1024;
    available = available > 0 ? available : memory_total();
    available = available > 0 ? available : INT64_MAX;
    const int64_t limit = find_number("/sys/fs/cgroup/memory.max", ""); /* "max", no limit, reads as 0 */
    const int64_t left = limit - find_number("/sys/fs/cgroup/memory.current", "");
    return limit > 0 && left < available ? left : available;
}

static int64_t l3_size(void)
{
    int64_t size = find_number("/sys/devices/system/cpu/cpu0/cache/index3/size", "") * 1024; /* "32768K" */
#ifdef __APPLE__
    size = sysctl_number("hw.l3cachesize");
#elif defined _SC_LEVEL3_CACHE_SIZE
    if (size <= 0) { /* second choice: some C libraries multiply it by the sockets of a virtual machine's host */
        size = sysconf(_SC_LEVEL3_CACHE_SIZE);
    }
#endif
    return size > 0 ? size : 0;
}

static int32_t cores(void)
{
#ifdef _OPENMP
    return omp_get_num_procs(); /* honours the affinity mask */
#else
    const long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (int32_t)count : 1;
#endif
}

void fd_machine_identify(fd_machine_record *r)
{
    char text[2048];
    const int64_t gib = (r->memory_bytes + (1 << 29)) >> 30; /* what the kernel reserves varies from boot to boot */
    const int length = snprintf(text, sizeof text, "%s|%s|%" PRId32 "|%" PRId64 "|%" PRId64 "|%s|%s|%s", r->processor,
                                r->architecture, r->cores, gib, r->l3_bytes, r->compiler, r->flags, r->libc);
    const uint64_t hash = fd_fnv(FD_FNV_BEGIN, text, (size_t)length);
    snprintf(r->machine_id, sizeof r->machine_id, "%08" PRIx32, (uint32_t)(hash ^ hash >> 32));
}

static void join_command(fd_machine_record *r, const char *program, int argc, char *const *argv)
{
    char text[sizeof r->command] = "";
    size_t used = 0;
    for (int i = -1; i < argc && used + 1 < sizeof text; i++) {
        const int length = snprintf(text + used, sizeof text - used, "%s ", i < 0 ? program : argv[i]);
        used += length > 0 ? (size_t)length : 0;
    }
    one_line(r->command, sizeof r->command, text);
}

void fd_machine_record_read(fd_machine_record *r, const char *program, int argc, char *const *argv)
{
    struct utsname name;
    struct tm utc;
    char text[sizeof r->system];
    *r = (fd_machine_record){.cores = cores(), .memory_bytes = memory_total(), .l3_bytes = l3_size()};
    const bool named = uname(&name) >= 0;

    fd_processor_name(r->processor, sizeof r->processor);
    one_line(r->architecture, sizeof r->architecture, named ? name.machine : "");
    snprintf(text, sizeof text, "%.64s %.90s", named ? name.sysname : "", named ? name.release : "");
    one_line(r->system, sizeof r->system, text);
    one_line(r->compiler, sizeof r->compiler, COMPILER);
    one_line(r->flags, sizeof r->flags, FD_BUILD_FLAGS);
    one_line(r->libc, sizeof r->libc, fd_libc_name());

    const time_t now = time(NULL);
    if (gmtime_r(&now, &utc) == NULL || strftime(r->date, sizeof r->date, "%Y-%m-%dT%H:%M:%SZ", &utc) == 0) {
        snprintf(r->date, sizeof r->date, "unknown");
    }
    const char *commit = getenv("FD_COMMIT");
    one_line(r->commit, sizeof r->commit, commit != NULL ? commit : "");
    join_command(r, program, argc, argv);
    fd_machine_identify(r);
}

void fd_machine_record_write(const fd_machine_record *r, FILE *file, const char *prefix)
{
    fprintf(file, "%smachine_id: %s\n", prefix, r->machine_id);
    fprintf(file, "%sprocessor: %s (%s)\n", prefix, r->processor, r->architecture);
    fprintf(file, "%scores: %" PRId32 "\n", prefix, r->cores);
    fprintf(file, "%smemory: %.1f GiB\n", prefix, (double)r->memory_bytes / 0x1p30);
    fprintf(file, "%sl3: %.1f MiB\n", prefix, (double)r->l3_bytes / 0x1p20);
    fprintf(file, "%ssystem: %s\n", prefix, r->system);
    fprintf(file, "%scompiler: %s\n", prefix, r->compiler);
    fprintf(file, "%sflags: %s\n", prefix, r->flags);
    fprintf(file, "%slibc: %s\n", prefix, r->libc);
    fprintf(file, "%sdate: %s\n", prefix, r->date);
    fprintf(file, "%scommit: %s\n", prefix, r->commit);
    fprintf(file, "%scommand: %s\n", prefix, r->command);
}
