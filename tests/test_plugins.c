/* test_plugins.c: `flashdecode check` on plug-ins: a right one passes, and each fault of tests/plugins/ gets its own words and
 * its exit code. End to end, through the program beside this suite. */
#define _GNU_SOURCE /* popen, readlink */
#include <criterion/criterion.h>

#ifdef __linux__
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CASE "--case flat-integer/fff/h4:2/d64/n64/s64 --level exact"

static const char *build_folder(void)
{
    static char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    return dirname(path);
}

/* The exit code, and everything that the program said. */
static int check(const char *target, const char *options, char *said, size_t n)
{
    char command[8192];
    snprintf(command, sizeof command, "%s/flashdecode check %s %s 2>&1", build_folder(), target, options);
    FILE *pipe = popen(command, "r");
    cr_assert_not_null(pipe, "%s", command);
    const size_t got = fread(said, 1, n - 1, pipe);
    said[got] = '\0';
    char rest[512];
    while (fread(rest, 1, sizeof rest, pipe) > 0) {
    }
    const int status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int check_plugin(const char *name, const char *options, char *said, size_t n)
{
    char target[4200];
    snprintf(target, sizeof target, "%s/plugins/%s.so", build_folder(), name);
    return check(target, options, said, n);
}

typedef struct fault {
    const char *name;
    int code;
    const char *says;
    const char *options; /* NULL: those of the others */
} fault;

static void expect(const fault *faults, size_t count)
{
    static char said[1 << 16];
    for (size_t i = 0; i < count; i++) {
        const fault *x = &faults[i];
        const int code = check_plugin(x->name, x->options != NULL ? x->options : CASE, said, sizeof said);
        cr_expect_eq(code, x->code, "%s: exit code %d, not %d:\n%s", x->name, code, x->code, said);
        cr_expect_not_null(strstr(said, x->says), "%s: says nothing like \"%s\":\n%s", x->name, x->says, said);
    }
}

#define EXPECT(...)                                                                                                    \
    const fault faults[] = {__VA_ARGS__};                                                                              \
    expect(faults, sizeof faults / sizeof *faults)

Test(plugins, right_ones_pass)
{
    EXPECT({"right", 0, "1 passed, 0 failed, 0 skipped",
            "--case flat-integer/fff/h4:2/d64/n1/s64 --level proved --seconds 60"},
           {"pool", 0, "1 passed, 0 failed, 0 skipped", NULL},
           {"refuses", 77, "anything: head_dim 64 is not 73", NULL});
}

Test(plugins, crashes_are_told_with_tensor_function_and_line)
{
    EXPECT({"crash_null", 1, "read address 0x0, a NULL pointer or one near it, in run(), at crash_null.c:", NULL},
           {"crash_far", 1, "wrote to address 0x123456789000, which is nobody's, in run()", NULL},
           {"read_past_k", 1, "read past the end of k, at byte ", NULL},
           {"read_before_v", 1, "read before the start of v, at byte -", NULL},
           {"write_before_o", 1, "wrote before the start of o, at byte -4", NULL},
           {"write_past_lse", 1, "wrote past the end of lse", NULL},
           {"write_into_q", 1, "wrote to its input q, at its byte 0, in run()", NULL},
           {"write_past_workspace", 1, "wrote past the end of the workspace, at byte ", NULL},
           {"divides", 1, "divided an integer by zero", NULL},
           {"stack_overflow", 1, "overflowed its stack, in run(), at stack_overflow.c:", NULL});
}

Test(plugins, the_process_may_not_end)
{
    EXPECT({"exit_0", 1, "ended the process with code 0 in run()", NULL},
           {"exit_7", 1, "ended the process with code 7 in run()", NULL}, {"aborts", 1, "it said: ", NULL},
           {"aborts", 1, "aborted (abort(), an assertion or an uncaught exception), in run()", NULL},
           {"forks", 1, "left a process running, in run()", NULL}, {"fork_returns", 1, "in run()", NULL},
           {"closes_all", 1,
            "closed descriptors that are not its own: 0 (stdin), 1 (stdout), 2 (stderr), 3, 4, in run()", NULL},
           {"closes_stdin", 1, "closed descriptors that are not its own: 0 (stdin), in run()", NULL});
}

/* What the judge shares with the plug-in's process, the plug-in may write to; it learns nothing by that but words. */
Test(plugins, shared_memory_harms_nobody)
{
    EXPECT({"cuts_memory", 0, "1 passed, 0 failed", NULL},
           {"lengthens_memory", 0, "12 passed, 0 failed", "--family flat-integer --level exact"},
           {"scribbles", 1, "passed, ", NULL}, {"misnumbers", 0, "1 passed, 0 failed", NULL},
           {"traced", 1, "asked to be traced (ptrace), and stopped, in run()", NULL},
           {"exit_122", 1, "ended the process with code 122 in run()", NULL});
}

/* Nor does anything that the plug-in started outlive the check, whatever group and parents it gave itself. */
Test(plugins, daemons_are_found_and_ended)
{
    char name[16], alive[96];
    snprintf(name, sizeof name, "stray%d", (int)getpid());
    setenv("FD_TEST_STRAY", name, 1);
    EXPECT({"daemonizes", 1, "left a process running, in run()", NULL},
           {"daemonizes_and_crashes", 1, "aborted (abort(), an assertion or an uncaught exception), in run()", NULL},
           {"destructor_daemonizes", 1, "left a process running, in exit() (a destructor)", NULL});
    snprintf(alive, sizeof alive, "grep -qx %s /proc/[0-9]*/comm 2>/dev/null", name);
    cr_expect_neq(system(alive), 0, "a daemon of a plug-in is alive");
}

/* Whatever a plug-in says reaches a terminal and a table as text. */
Test(plugins, words_are_no_commands)
{
    static char said[1 << 16];
    EXPECT({"prints_commands", 1, "writes to standard output: \"?[2Jcleared ?? ? ??? \303\251\", in run()", NULL},
           {"name_commands", 0, "?]0;x??,\"<&>???? (cpu)", NULL},
           {"floods", 1, "wrote more than 64 MiB to standard output in run()", NULL},
           {"destructor_prints", 1, "writes to standard output: \"goodbye\", in exit() (a destructor)", NULL});
    (void)check_plugin("scribbles", CASE, said, sizeof said);
    cr_expect_null(strchr(said, '\033'), "%s", said);
}

Test(plugins, nor_run_for_ever)
{
    EXPECT({"hang", 1, "still running after 1 s in run(), at hang.c:", CASE " --seconds 1"},
           {"hang_busy", 1, "still running after 1 s in run()", CASE " --seconds 1"});
}

Test(plugins, memory_has_a_limit)
{
    EXPECT({"hogs_memory", 1, "it had reached its memory limit (--megabytes)", CASE " --megabytes 200"},
           {"returns_no_memory", 1, "run() returned FD_NO_MEMORY", NULL},
           {"workspace_absurd", 1,
            "workspace() asks for 18446744073709551615 bytes, more than the 1024 MiB that --megabytes allows it",
            NULL});
}

Test(plugins, conduct_is_a_verdict_of_its_own)
{
    EXPECT({"prints", 1, "writes to standard output: \"batch 1\", in run()", NULL},
           {"prints", 1, "1 passed, 1 failed, 0 skipped", NULL},
           {"leaks_threads", 1, "leaks threads: 1 more after each of 3 calls", NULL},
           {"leaks_descriptors", 1, "leaks descriptors: 1 more after each of 3 calls", NULL},
           {"flushes", 1, "left ", NULL}, {"catches_signals", 1, "left its own handler of signal 11", NULL},
           {"catches_signals", 1, "left another working directory, in run()", NULL},
           {"constructor_prints", 1, "writes to standard output: \"libplugin 2.1 ready\", in dlopen()", NULL});
}

Test(plugins, what_cannot_be_loaded)
{
    EXPECT({"no_such_plugin", 2, "No such file or directory; name the shared object", NULL},
           {"no_symbol", 2, "exports no symbol fd_plugin", NULL},
           {"wrong_abi", 2, "its descriptor says ABI 7, this program has 1: build it against", NULL},
           {"returns_null", 2, "fd_plugin(1) returned NULL", NULL},
           {"name_null", 2, "its descriptor has no name: set .name", NULL},
           {"run_null", 2, "its descriptor has no run(): set .run", NULL},
           {"garbage_descriptor", 1, "in the reading of its descriptor", NULL},
           {"garbage_pointers", 1, "in the reading of its descriptor", NULL},
           {"constructor_crashes", 1, "aborted (abort(), an assertion or an uncaught exception), in dlopen()", NULL},
           {"constructor_exits", 1, "ended the process with code 0 in dlopen()", NULL},
           {"destructor_crashes", 1, "a NULL pointer or one near it, in exit() (a destructor)", NULL});
}

Test(plugins, what_functions_return)
{
    EXPECT({"unknown_status", 1, "run() returned 42, which is no fd_status", NULL},
           {"plan_overruns", 1, "plan() wrote outside its 28 bytes, at byte 28", NULL},
           {"plan_reads_q", 1, "read tensor kv_lens, which only run() may read, in plan()", NULL},
           {"nondeterministic", 1, "the same call again has other bits", NULL},
           {"lse_base_2", 1, "lse returned in base 2", "--case gaussian/fff/h6:2/d40/n513+512+511 --level proved"});
}

/* The emulator lives in the program, and takes a plug-in's kernels as it takes the ladder's. */
Test(plugins, kernels_run_on_the_emulator)
{
    EXPECT({"emu_overrun", 1,
            "kernel overrun_kernel, block (0,0,0), thread 0, emu_overrun.cu:6: writes 4 bytes, the first at byte ",
            NULL},
           {"emu_race", 1, "race: kernel race_kernel, block (0,0,0), thread ", NULL},
           {"emu_race", 1, "emu_race.cu:9: writes byte ", NULL});
}

/* The GPU's hostile ones (cuda/gpu/plugin.sh), as far as the emulator has what they misuse. */
Test(plugins, gpu_faults_are_found_on_the_emulator)
{
    EXPECT({"gpu_right", 0, "1 passed, 0 failed", NULL}, {"gpu_slow", 0, "1 passed, 0 failed", NULL},
           {"gpu_overrun", 1, "wrote past the end of o, at byte ", NULL},
           {"gpu_overread", 1, ": reads 4 bytes, the first at byte 1 past the end of a device allocation", NULL},
           {"gpu_illegal", 1, ": writes 4 bytes, the first at address ", NULL},
           {"gpu_illegal_once", 1, "10 passed, 2 failed", "--family flat-integer --level exact"},
           {"gpu_hang", 1, "spin for something that nobody who runs will do", NULL},
           {"gpu_race", 1, "kernel attend, block (0,0,0), thread ", NULL},
           {"gpu_second_stream", 1, "attend is launched on another stream than run() was given", NULL},
           {"gpu_default_stream", 1, "attend is launched on another stream than run() was given", NULL},
           {"gpu_bad_launch", 1, "4096 threads a block, the kernel takes 32", NULL},
           {"gpu_one_case", 1, "o is not the exact answer", NULL},
           {"gpu_one_case", 1, "2 failed", "--family flat-integer --level exact"});
}

/* What fd.h allows and no case has: bounds of the lengths, no lengths, tensors that lie otherwise. */
Test(plugins, calls_of_another_form_are_made)
{
#define FORMS "--level metamorphic --case gaussian/fff/h6:2/d40/n513+512+511"
    EXPECT({"right", 0, " 0 failed", FORMS},
           {"bounds_for_lens", 1, "o has other bits (kv_lens_host above kv_lens, or absent: the same answer)", FORMS},
           {"needs_kv_lens", 1, "a NULL pointer or one near it, in run(), at ", FORMS},
           {"needs_kv_lens", 1, " (no kv_lens, a cache that is full: the same answer)", FORMS},
           {"rows_in_order", 1, "read past the end of q, at byte ", FORMS},
           {"rows_in_order", 1, " (the same numbers elsewhere in memory: the same answer)", FORMS});
}

/* No failure, and no silence. */
Test(plugins, what_is_taken_and_not_judged_is_said)
{
    EXPECT({"takes_more", 0, "not judged: it takes softcap", NULL}, {"takes_more", 0, ", and no case has that", NULL});
}

/* Results over disjoint keys, merged: what fd.h promises of empty ones, and the bound of the merge. */
Test(plugins, merges_are_judged)
{
#define MERGE "--smoke --level metamorphic"
    EXPECT({"merge_right", 0, " 0 failed", MERGE},
           {"merge_base_2", 1, "of the proved bound around the answer over all keys", MERGE},
           {"merge_empty", 1, "parts without keys is not o = 0 and lse = -infinity", MERGE},
           {"merge_overreads", 1, "a NULL pointer or one near it, in merge(), at ", MERGE},
           {"merge_own_strides", 1, "read past the end of partial_", MERGE},
           {"merge_wants_lse", 1, "a NULL pointer or one near it, in merge(), at ", MERGE},
           {"merge_four", 1, "merge() of 12 parts: ", MERGE}, {"rung_07", 0, " 0 failed", MERGE},
           {"gpu_merge", 0, " 0 failed", MERGE});
}

/* A tensor is handed out at a multiple of what fd.h promises, and, of q, k, v and o, some of them at none of twice
 * as much. */
Test(plugins, alignment_is_as_promised_and_no_better)
{
    EXPECT({"needs_16", 0, " 0 failed", "--smoke --level exact"},
           {"needs_32", 1, "0 passed, ", "--smoke --level exact"},
           {"gpu_needs_16", 0, " 0 failed", "--smoke --level exact"},
           {"gpu_needs_32", 1, "0 passed, ", "--smoke --level exact"});
}

/* One death does not hide the next verdict; many end the run, and what is left is counted. */
Test(plugins, the_suite_goes_on_and_knows_when_to_stop)
{
    static char said[1 << 16];
    const int code = check_plugin("exit_0", "--family flat-integer --level exact", said, sizeof said);
    cr_expect_eq(code, 1);
    cr_expect_not_null(strstr(said, "not run: its process ended 5 times"), "%s", said);
    cr_expect_not_null(strstr(said, "0 passed, 5 failed"), "%s", said);
}

/* A rung of the ladder as a plug-in gets the very verdicts that `verify` gives it. */
Test(plugins, a_rung_is_judged_as_in_the_program)
{
    static char said[1 << 16];
    const int code = check_plugin("rung_05", "--family ramp --level statistical", said, sizeof said);
    cr_expect_eq(code, 0, "%s", said);
    char command[8192], here[1 << 12], *there = strstr(said, "largest error of o over its proved bound: ");
    snprintf(command, sizeof command,
             "%s/flashdecode verify --rung 5 --family ramp --csv %s/plugins/rung_05.csv >/dev/null", build_folder(),
             build_folder());
    cr_expect_eq(system(command), 0);
    snprintf(command, sizeof command,
             "grep -v '^#' %s/plugins/rung_05.csv | awk -F, 'NR > 1 && $23 > worst { worst = $23 } END { printf "
             "\"%%.4g\", worst }'",
             build_folder());
    FILE *pipe = popen(command, "r");
    here[fread(here, 1, sizeof here - 1, pipe)] = '\0';
    pclose(pipe);
    cr_assert_not_null(there, "%s", said);
    there += strlen("largest error of o over its proved bound: ");
    cr_expect_eq(strncmp(there, here, strlen(here)), 0, "verify: %s, check: %.20s", here, there);
}

/* The examples, by the very commands of their heads: gcc's everywhere, nvcc's where it is. */
Test(plugins, examples_build_and_pass)
{
    static const char *const files[] = {"sdpa.c", "wrap.c", "sdpa.cu"};
    static char said[1 << 16];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char command[8192], target[4300], out[64];
        snprintf(command, sizeof command,
                 "sed -n 's/^ \\*     \\(gcc .*\\)/\\1/p' tutorials/plugin/%s | sed 's#build/#%s/plugins/#' | sh -e",
                 files[i], build_folder());
        cr_expect_eq(system(command), 0, "%s", command);
        snprintf(out, sizeof out, "%s", files[i]);
        snprintf(target, sizeof target, "%s/plugins/%s.so", build_folder(),
                 i == 0   ? "sdpa"
                 : i == 1 ? "wrap"
                          : "sdpa_emu");
        const int code = check(target, "--case gaussian/fff/h6:2/d40/n513+512+511 --level proved", said, sizeof said);
        cr_expect_eq(code, 0, "%s: %s", out, said);
        cr_expect_not_null(strstr(said, "1 passed, 0 failed, 0 skipped"), "%s: %s", out, said);
    }
}

/* fd.h is C++20, too. */
Test(plugins, cxx_builds_and_passes)
{
    static char said[1 << 16];
    char command[8192];
    snprintf(command, sizeof command,
             "command -v g++ >/dev/null || exit 0; g++ -std=c++20 -Wall -Wextra -Wno-missing-field-initializers "
             "-Werror -x c++ -O2 -shared -fPIC -I reference tutorials/plugin/sdpa.c -o %s/plugins/sdpa_cxx.so -lm",
             build_folder());
    cr_expect_eq(system(command), 0);
    snprintf(command, sizeof command, "%s/plugins/sdpa_cxx.so", build_folder());
    if (access(command, R_OK) == 0) {
        cr_expect_eq(check(command, CASE, said, sizeof said), 0, "%s", said);
    }
}
#endif
