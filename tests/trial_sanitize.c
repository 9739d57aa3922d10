/* trial_sanitize.c: a GPU plug-in under NVIDIA's compute-sanitizer, which the CUDA toolkit brings: `check` runs itself under
 * it, worker and all. */
#define _GNU_SOURCE /* pipe2 */
#include "trial.h"

#ifdef __linux__
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "text.h"
#include "worker_protocol.h"

#define ERRORS_FOUND 99 /* the exit code that stands for them */
#define SLOWER "300"    /* seconds of one run: a sanitizer slows a kernel a hundredfold */

extern char **environ;

/* Small, and different in dtype, group, tails and empty sequences; the first that is taken serves. */
static const char *const cases[] = {"gaussian/fff/h6:2/d40/n5+0+0+300+0+64+65+1/s64", "gaussian/bbb/h4:2/d96/64/n97",
                                    "gaussian/hhh/h4:1/d64/n65"};
static const char *const tools[] = {"memcheck", "racecheck", "initcheck", "synccheck"};

/* Runs the command and keeps the end of what it says. Exit code, or -1 if it cannot be started. */
static int run(char *const words[], char *said, size_t n)
{
    int ends[2], status = -1;
    pid_t pid = 0;
    posix_spawn_file_actions_t actions;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    errno = posix_spawnp(&pid, words[0], &actions, NULL, words, environ);
    const bool started = errno == 0;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    size_t used = 0;
    for (ssize_t got = 1; started && got > 0;) {
        if (used > n / 2) { /* what was said first names the fault; what was said last, the count */
            memmove(said + n / 4, said + used - n / 8, n / 8);
            used = n / 4 + n / 8;
        }
        got = read(ends[0], said + used, n - 1 - used);
        used += got > 0 ? (size_t)got : 0;
    }
    said[used] = '\0';
    close(ends[0]);
    return started && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The first line that names a fault, without the sanitizer's margin. */
static void first_fault(const char *said, char *text, size_t n)
{
    static const char *const begins[] = {
        "Invalid", "Race",     "Uninitialized", "Barrier error", "Program hit", "Misaligned",
        "Error:",  "Warning:", "Host API",      "Divergent",     "Leaked",      "Out-of-range"};
    const char *best = NULL;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        const char *at = strstr(said, begins[i]);
        best = at != NULL && (best == NULL || at < best) ? at : best;
    }
    snprintf(text, n, "%.*s", best != NULL ? (int)strcspn(best, "\n") : 0, best != NULL ? best : "");
}

/* The largest count of a line "... SUMMARY: N errors" or "N hazards displayed"; -1 if no process wrote one. */
static long summary(const char *said)
{
    static const char word[] = " SUMMARY: ";
    long most = -1;
    for (const char *at = said; (at = strstr(at, word)) != NULL; at += sizeof word - 1) {
        const long count = strtol(at + sizeof word - 1, NULL, 10);
        most = count > most ? count : most;
    }
    return most;
}

fd_status fd_trial_sanitize(fd_trial *trial, char *why, size_t n)
{
    char sanitizer[] = "compute-sanitizer", tool_option[] = "--tool", all_option[] = "--target-processes",
         all[] = "all", code_option[] = "--error-exitcode", code_text[16], program[4096], check[] = "check",
         target[4096], level_option[] = "--level", level[] = "exact", seconds_option[] = "--seconds",
         seconds[] = SLOWER, case_option[] = "--case", tool[32], name[96], version[] = "--version";
    static char said[1 << 16];
    char *const asked[] = {sanitizer, version, NULL};
    if (run(asked, said, sizeof said) != 0) {
        snprintf(why, n, "--sanitize: compute-sanitizer is not here; it comes with the CUDA toolkit");
        return FD_INVALID;
    }
    (void)setenv(FD_SANITIZED, "1", 1); /* for the worker of the judge that runs below it */
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    snprintf(target, sizeof target, "%s", trial->options.target);
    snprintf(code_text, sizeof code_text, "%d", ERRORS_FOUND);
    char *const words[] = {sanitizer,      tool_option, tool,        all_option, all,          code_option,
                           code_text,      program,     check,       target,     level_option, level,
                           seconds_option, seconds,     case_option, name,       NULL};
    for (size_t t = 0; t < sizeof tools / sizeof *tools; t++) {
        int judged = 0;
        snprintf(tool, sizeof tool, "%s", tools[t]);
        for (size_t c = 0; c < sizeof cases / sizeof *cases && judged < 2; c++) {
            snprintf(name, sizeof name, "%s", cases[c]);
            const int code = run(words, said, sizeof said);
            const long errors = summary(said);
            const bool clean = code == 0 && errors == 0;
            fd_trial_line line = {.verdict = clean        ? FD_PASS
                                             : code == 77 ? FD_SKIP
                                                          : FD_FAIL,
                                  .tier = clean || code == 77 ? FD_TIER_NONE : FD_TIER_EXACT,
                                  .seconds = -1.0};
            char fault[200];
            first_fault(said, fault, sizeof fault);
            snprintf(line.name, sizeof line.name, "%s: %s", tools[t], cases[c]);
            snprintf(line.group, sizeof line.group, "sanitizer");
            if (code == 77) {
                snprintf(line.reason, sizeof line.reason, "the plug-in does not take this case");
            } else if (!clean) {
                snprintf(line.reason, sizeof line.reason, "%s: %s", tools[t],
                         fault[0] != '\0' ? fault
                         : errors < 0     ? "it says nothing of the plug-in's process"
                                          : "the run failed, without a word of the sanitizer's");
                const int used = snprintf(line.replay, sizeof line.replay, "%.120s --tool %s --target-processes all ",
                                          sanitizer, tools[t]);
                fd_trial_replay(line.replay + used, sizeof line.replay - (size_t)used, trial->options.target, "",
                                cases[c]);
            }
            judged += code != 77;
            const fd_status status = fd_trial_add(trial, &line, NULL);
            if (status != FD_OK) {
                return status;
            }
        }
    }
    return FD_OK;
}
#else
fd_status fd_trial_sanitize(fd_trial *trial, char *why, size_t n)
{
    (void)trial;
    snprintf(why, n, "--sanitize works on Linux only");
    return FD_UNSUPPORTED;
}
#endif
