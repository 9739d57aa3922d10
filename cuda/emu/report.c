/* report.c: faults and counts of the launches so far. */
#define _GNU_SOURCE /* dladdr */

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "block.h"

static fd_emu_report reports[FD_EMU_MAX_REPORTS];
static fd_emu_counters counters[FD_EMU_MAX_KERNELS + 1]; /* the last one collects what there is no room for */
static int num_reports, num_kernels;

const char *fd_emu_fault_name(int32_t fault)
{
    static const char *const names[] = {"no fault",
                                        "launch",
                                        "divergent barrier",
                                        "divergent warp operation",
                                        "deadlock",
                                        "endless loop",
                                        "memory access",
                                        "alignment",
                                        "index",
                                        "uninitialised shared memory",
                                        "race",
                                        "asynchronous copy",
                                        "cluster",
                                        "host access"};
    return fault >= 0 && (size_t)fault < sizeof names / sizeof *names ? names[fault] : "unknown fault";
}

static bool same_place(const fd_emu_report *a, const fd_emu_report *b)
{
    return a->fault == b->fault && a->line == b->line && a->pc == b->pc && strcmp(a->kernel, b->kernel) == 0 &&
           (a->file == b->file || (a->file != NULL && b->file != NULL && strcmp(a->file, b->file) == 0));
}

static void add(const fd_emu_report *report)
{
    for (int i = 0; i < num_reports; i++) {
        if (same_place(&reports[i], report)) {
            reports[i].count++;
            return;
        }
    }
    if (num_reports < FD_EMU_MAX_REPORTS) {
        reports[num_reports++] = *report;
    }
}

static void report_from(int32_t fault, const emu_thread *t, const void *pc, const void *earlier, const char *file,
                        int line, const char *format, va_list args)
{
    fd_emu_report r = {.fault = fault, .file = file, .line = line, .pc = pc, .earlier = earlier, .count = 1};
    snprintf(r.kernel, sizeof r.kernel, "%s", emu_running != NULL ? emu_running->kernel : "");
    if (t != NULL) {
        r.block = t->self.block_idx;
        r.thread = t->self.thread_idx;
    }
    vsnprintf(r.text, sizeof r.text, format, args);
    add(&r);
}

void emu_report(int32_t fault, const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report_from(fault, fd_emu_self != NULL ? emu_self() : NULL, NULL, NULL, file, line, format, args);
    va_end(args);
}

void emu_report_at(int32_t fault, const emu_thread *thread, const void *pc, const char *file, int line,
                   const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report_from(fault, thread, pc, NULL, file, line, format, args);
    va_end(args);
}

void emu_report_pair(int32_t fault, const emu_thread *thread, const void *pc, const void *earlier, const char *format,
                     ...)
{
    va_list args;
    va_start(args, format);
    report_from(fault, thread, pc, earlier, NULL, 0, format, args);
    va_end(args);
}

int fd_emu_reports(const fd_emu_report **out)
{
    *out = reports;
    return num_reports;
}

void fd_emu_clear(void)
{
    num_reports = num_kernels = 0;
    memset(counters, 0, sizeof counters);
}

fd_emu_counters *emu_counters_of(const char *kernel)
{
    for (int i = 0; i < num_kernels; i++) {
        if (strncmp(counters[i].kernel, kernel, sizeof counters[i].kernel - 1) == 0) {
            return &counters[i];
        }
    }
    fd_emu_counters *c = &counters[num_kernels];
    num_kernels += num_kernels < FD_EMU_MAX_KERNELS ? 1 : 0;
    snprintf(c->kernel, sizeof c->kernel, "%s", kernel);
    return c;
}

int fd_emu_counts(const fd_emu_counters **out)
{
    *out = counters;
    return num_kernels;
}

/* file:line of a place in this program or in a plug-in, by binutils' addr2line; "" without it. Asking takes a tenth of a second. */
static void place_of(const void *pc, char *place, size_t n)
{
    static struct {
        const void *pc;
        char place[160];
    } asked[32];
    static unsigned next;
    static const char here;
    Dl_info info, program;
    char object[48], command[96];
    int file = -1; /* of a plug-in: named by number, for its path may be hard on a shell */
    place[0] = '\0';
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        if (asked[i].pc == pc && pc != NULL) {
            snprintf(place, n, "%s", asked[i].place);
            return;
        }
    }
    if (pc == NULL || dladdr(pc, &info) == 0 || info.dli_fbase == NULL) {
        return;
    }
    /* A return address is one past the call; a position-independent program counts from where it was loaded. */
    snprintf(object, sizeof object, "exe");
    if (dladdr(&here, &program) != 0 && program.dli_fbase != info.dli_fbase) {
        file = open(info.dli_fname, O_RDONLY | O_CLOEXEC);
        snprintf(object, sizeof object, "fd/%d", file);
    }
    snprintf(command, sizeof command, "addr2line -e /proc/%ld/%s 0x%" PRIxPTR " 2>/dev/null", (long)getpid(), object,
             (uintptr_t)pc - (uintptr_t)info.dli_fbase - 1);
    FILE *answer = popen(command, "r");
    if (answer == NULL) {
        if (file >= 0) {
            close(file);
        }
        return;
    }
    if (fgets(place, (int)n, answer) == NULL || strncmp(place, "??", 2) == 0) {
        place[0] = '\0';
    }
    pclose(answer);
    if (file >= 0) {
        close(file);
    }
    place[strcspn(place, " \n")] = '\0';
    asked[next].pc = pc;
    snprintf(asked[next].place, sizeof asked[next].place, "%s", place);
    next = (next + 1) % (sizeof asked / sizeof *asked);
}

static void without_folder(char *place)
{
    const char *slash = strrchr(place, '/');
    if (slash != NULL) {
        memmove(place, slash + 1, strlen(slash));
    }
}

void fd_emu_locate(const fd_emu_report *r, char *place, size_t n)
{
    if (r->file != NULL) {
        snprintf(place, n, "%s:%" PRId32, r->file, r->line);
    } else {
        place_of(r->pc, place, n);
    }
    without_folder(place);
}

void fd_emu_describe(const fd_emu_report *r, char *line, size_t n)
{
    char place[160], earlier[160];
    fd_emu_locate(r, place, sizeof place);
    place_of(r->earlier, earlier, sizeof earlier);
    without_folder(earlier);
    int at = snprintf(line, n, "%s", fd_emu_fault_name(r->fault));
    if (r->kernel[0] != '\0' && at < (int)n) {
        at += snprintf(line + at, n - (size_t)at,
                       ": kernel %s, block (%" PRIu32 ",%" PRIu32 ",%" PRIu32 "), thread %" PRIu32, r->kernel,
                       r->block.x, r->block.y, r->block.z, r->thread.x);
    }
    if (place[0] != '\0' && at < (int)n) {
        at += snprintf(line + at, n - (size_t)at, ", %s", place);
    }
    if (at < (int)n) {
        at += snprintf(line + at, n - (size_t)at, ": %s", r->text);
    }
    if (earlier[0] != '\0' && at < (int)n) {
        at += snprintf(line + at, n - (size_t)at, "; there: %s", earlier);
    }
    if (r->count > 1 && at < (int)n) {
        snprintf(line + at, n - (size_t)at, " (%" PRId64 " times)", r->count);
    }
}
