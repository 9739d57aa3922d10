/* worker_said.c: how a plug-in ended, in one line: what happened, to which tensor, in which function, at which line. */
#define _GNU_SOURCE
#include "worker.h"
#ifdef __linux__
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "text.h"

#define NEAR_NULL 65536       /* a member or element of a NULL pointer */
#define SYMBOL_MS 20000       /* that addr2line may take; of a large library it takes seconds */
#define STACK_SLACK (1 << 20) /* a frame that jumps over the end of the stack */

extern char **environ;

const char *fd_doing_text(int32_t doing)
{
    static const char *const names[FD_NUM_DOINGS] = {"the worker",  "dlopen() (a constructor)",
                                                     "fd_plugin()", "the reading of its descriptor",
                                                     "supports()",  "plan_bytes()",
                                                     "plan()",      "workspace()",
                                                     "arith()",     "run()",
                                                     "merge()",     "exit() (a destructor)"};
    return doing >= 0 && doing < FD_NUM_DOINGS ? names[doing] : "?";
}

/* ---- Where ------------------------------------------------------------------------------------- */

/* What a program prints, its first n - 1 bytes. One that takes too long is killed: it reads a stranger's file. */
static void said_by(char *const *words, char *said, size_t n)
{
    posix_spawn_file_actions_t actions;
    int ends[2];
    size_t used = 0;
    pid_t pid = 0;
    said[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    const int failed = posix_spawnp(&pid, words[0], &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    struct pollfd end = {.fd = ends[0], .events = POLLIN};
    for (ssize_t got = 1; failed == 0 && got > 0 && used<n - 1; used += got> 0 ? (size_t)got : 0) {
        got = poll(&end, 1, SYMBOL_MS) == 1 ? read(ends[0], said + used, n - 1 - used) : 0;
    }
    said[used] = '\0';
    close(ends[0]);
    if (failed == 0) {
        (void)kill(pid, SIGKILL); /* it has said what it says, or is stuck */
        (void)waitpid(pid, NULL, 0);
    }
}

/* The first two lines of binutils' addr2line: function and file:line. false without it, or without symbols. */
static bool symbol_of(const char *path, uint64_t offset, char *text, size_t n)
{
    char address[32], tool[] = "addr2line", functions[] = "-f", short_names[] = "-s", file[] = "-e", library[4096];
    char said[512];
    snprintf(address, sizeof address, "0x%" PRIx64, offset);
    snprintf(library, sizeof library, "%s", path);
    char *const words[] = {tool, functions, short_names, file, library, address, NULL};
    said_by(words, said, sizeof said);
    char *save = NULL, *function = strtok_r(said, "\n", &save), *line = strtok_r(NULL, "\n", &save);
    if (function == NULL || line == NULL || (function[0] == '?' && line[0] == '?')) {
        return false;
    }
    line[strcspn(line, " ")] = '\0'; /* "(discriminator 3)" */
    if (line[0] == '?') {
        snprintf(text, n, ", in its function %.80s", function);
    } else {
        snprintf(text, n, ", at %.100s", line);
    }
    return true;
}

/* ", at file.c:12" of the innermost frame that is the plug-in's; "" if none is. */
static void where_of(const fd_shared *s, const char *path, char *text, size_t n)
{
    text[0] = '\0';
    for (int i = 0; i < s->crash.num_frames && i < FD_WORKER_FRAMES; i++) {
        const uint64_t pc = s->crash.frames[i];
        if (pc >= s->loaded.begin && pc < s->loaded.end) {
            const uint64_t offset = pc - s->loaded.begin - (i > 0); /* a return address is past its call */
            if (!symbol_of(path, offset, text, n)) {
                const char *name = strrchr(path, '/');
                snprintf(text, n, ", at %.60s+0x%" PRIx64, name != NULL ? name + 1 : path, offset);
            }
            return;
        }
    }
}

/* ---- What -------------------------------------------------------------------------------------- */

/* Says which tensor the address belongs to or is next to; false if to none. */
static bool tensor_at(const fd_shared *s, uint64_t at, int32_t wrote, char *text, size_t n)
{
    const char *verb = wrote < 0 ? "touched" : wrote > 0 ? "wrote" : "read";
    if (at - s->nothing < 4096 * (uint64_t)FD_NUM_TENSORS) {
        snprintf(text, n, "%s tensor %s, which only run() may read", verb, fd_tensor_names[(at - s->nothing) / 4096]);
        return true;
    }
    for (int32_t i = 0; i < s->num_segments && i < FD_WORKER_SEGMENTS; i++) {
        const fd_segment *x = &s->segments[i];
        const uint64_t begin = x->address, end = begin + x->bytes;
        const int64_t byte = (int64_t)(at - begin);
        const int width = (int)sizeof x->name;
        if (begin == 0) {
            continue;
        }
        if (at >= begin && at < end) {
            snprintf(text, n, "wrote to %s%.*s, at its byte %" PRId64, x->writable ? "" : "its input ", width, x->name,
                     byte);
            return true;
        }
        if (at >= end && at - end < FD_WORKER_GUARD / 2 + x->span) {
            snprintf(text, n, "%s past the end of %.*s, at byte %" PRId64 " of %" PRIu64, verb, width, x->name, byte,
                     x->bytes);
            return true;
        }
        if (at < begin && begin - at < FD_WORKER_GUARD / 2) {
            snprintf(text, n, "%s before the start of %.*s, at byte %" PRId64, verb, width, x->name, byte);
            return true;
        }
    }
    return false;
}

static void crash_text(const fd_shared *s, char *text, size_t n)
{
    const fd_crash *x = &s->crash;
    switch (x->signal) {
    case SIGABRT:
        snprintf(text, n, "aborted (abort(), an assertion or an uncaught exception)");
        return;
    case SIGFPE:
        snprintf(text, n, "divided an integer by zero, or trapped a floating-point exception (SIGFPE)");
        return;
    case SIGILL:
        snprintf(text, n, "executed an illegal instruction (SIGILL): was it compiled for another processor?");
        return;
    case SIGTRAP:
        snprintf(text, n, "trapped (SIGTRAP)");
        return;
    case SIGSEGV:
    case SIGBUS:
        break;
    default:
        snprintf(text, n, "was ended by signal %d (%s)", x->signal, strsignal(x->signal));
        return;
    }
    const uint64_t from_stack = x->address > x->stack ? x->address - x->stack : x->stack - x->address;
    if (s->stack_low > 0 && x->address < s->stack_low + STACK_SLACK &&
        x->address + 16 * (uint64_t)STACK_SLACK > s->stack_low && from_stack < STACK_SLACK) {
        snprintf(text, n, "overflowed its stack");
    } else if (x->address < NEAR_NULL && !(x->code == SI_KERNEL)) {
        snprintf(text, n, "%s address 0x%" PRIx64 ", a NULL pointer or one near it",
                 x->wrote < 0                 ? "touched"
                 : x->wrote > 0               ? "wrote to"
                 : x->frames[0] == x->address ? "jumped to"
                                              : "read",
                 x->address);
    } else if (x->code == SI_KERNEL || !tensor_at(s, x->address, x->wrote, text, n)) {
        if (x->code == SI_KERNEL) {
            snprintf(text, n, "dereferenced a pointer that is none, or misaligned for its instruction");
        } else {
            snprintf(text, n, "%s address 0x%" PRIx64 ", which is nobody's",
                     x->frames[0] == x->address ? "jumped to"
                     : x->wrote > 0             ? "wrote to"
                                                : "read",
                     x->address);
        }
    }
}

static void last_line(int file, int64_t from, char *text, size_t n)
{
    char said[2048];
    const int64_t size = (int64_t)lseek(file, 0, SEEK_END);
    const int64_t begin = size - from > (int64_t)sizeof said - 1 ? size - (int64_t)sizeof said + 1 : from;
    const ssize_t got = pread(file, said, sizeof said - 1, (off_t)begin);
    text[0] = '\0';
    said[got > 0 ? got : 0] = '\0';
    char *save = NULL;
    for (char *line = strtok_r(said, "\r\n", &save); line != NULL; line = strtok_r(NULL, "\r\n", &save)) {
        if (strspn(line, " \t") < strlen(line)) {
            snprintf(text, n, "%.180s", line);
        }
    }
    fd_text_clean(text);
}

void fd_worker_describe(const fd_process *process, const fd_worker_options *options, int ended, enum fd_fate fate,
                        int64_t stderr_from, fd_incident *incident)
{
    const fd_shared *s = process->shared;
    const char *doing = fd_doing_text(s->doing);
    const bool said = atomic_load(&s->crash.valid) != 0;
    const int code = WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
    char what[300], where[160] = "";
    if (said) {
        where_of(s, options->path, where, sizeof where);
    }
    if (fate == FD_FLOODED_OUT || fate == FD_FLOODED_ERR) {
        snprintf(what, sizeof what, "wrote more than %d MiB to standard %s in %s", FD_WORKER_SAYS >> 20,
                 fate == FD_FLOODED_OUT ? "output" : "error", doing);
    } else if (fate == FD_HUNG) {
        snprintf(what, sizeof what, "still running after %.0f s in %s", (double)options->seconds * process->runs,
                 doing);
    } else if (said && code == FD_WORKER_CRASHED) {
        char crash[160];
        crash_text(s, crash, sizeof crash);
        snprintf(what, sizeof what, "%s, in %s%s", crash, doing,
                 s->crash.near_limit ? "; it had reached its memory limit (--megabytes)" : "");
    } else if (code >= FD_WORKER_ROBBED && code <= FD_WORKER_CANNOT && s->text[0] != '\0') {
        snprintf(what, sizeof what, "%.150s%s%s", s->text, code != FD_WORKER_CANNOT ? ", in " : "",
                 code != FD_WORKER_CANNOT ? doing : "");
    } else if (WIFSTOPPED(ended)) {
        snprintf(what, sizeof what, "asked to be traced (ptrace), and stopped, in %s", doing);
    } else if (WIFSIGNALED(ended)) {
        snprintf(what, sizeof what, "killed by signal %d (%s) in %s%s", WTERMSIG(ended), strsignal(WTERMSIG(ended)),
                 doing,
                 WTERMSIG(ended) == SIGKILL   ? ": out of memory, perhaps"
                 : WTERMSIG(ended) == SIGSEGV ? ": a thread's stack overflowed, perhaps"
                                              : "");
    } else {
        snprintf(what, sizeof what, "ended the process with code %d in %s", code, doing);
    }
    if (!incident->happened) {
        *incident = (fd_incident){.happened = true};
        snprintf(incident->text, sizeof incident->text, "%.200s%.118s", what, where);
        fd_text_clean(incident->text);
        last_line(process->err, stderr_from, incident->stderr_line, sizeof incident->stderr_line);
    }
    incident->death = true;
    incident->hang = incident->hang || fate == FD_HUNG;
}
#endif
