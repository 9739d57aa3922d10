/* test_cuda_names.c: the rungs use CUDA's allowed names and fd_cuda.h's wrappers only, and tests/cuda_names.awk, which says
 * so, refuses what it should. */
#define _POSIX_C_SOURCE 200809L /* popen, mkdtemp */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The exit code of a shell command, and the beginning of what it prints. */
static int run(const char *command, char *said, size_t n)
{
    FILE *f = popen(command, "r");
    cr_assert_not_null(f);
    said[fread(said, 1, n - 1, f)] = '\0';
    const int status = pclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The same of one line in a file that is named like a rung. */
static int check(const char *line, char *said, size_t n)
{
    char folder[] = "/tmp/fd-names-XXXXXX", path[64], command[160];
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/99_mine.cu", folder);
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    fprintf(f, "%s\n", line);
    fclose(f);
    snprintf(command, sizeof command, "awk -f tests/cuda_names.awk %s", path);
    const int code = run(command, said, n);
    unlink(path);
    rmdir(folder);
    return code;
}

Test(cuda_names, the_rungs_use_no_other_names)
{
    char said[2000];
    const int code = run("awk -f tests/cuda_names.awk cuda/[0-9][0-9]_*.cu cuda/*.h 2>&1", said, sizeof said);
    cr_assert_eq(code, 0, "%s", said);
}

Test(cuda_names, others_are_refused_by_name)
{
    static const char *const wrong[][2] = {
        {"asm(\"ret;\");", "asm"},
        {"volatile int x;", "volatile"},
        {"int m = __activemask();", "__activemask"},
        {"float x = __ldg(p);", "__ldg"},
        {"x = __expf(x);", "__expf"},
        {"__global__ void f(void) {}", "__global__"},
        {"cudaMalloc(&p, 4);", "cudaMalloc"},
        {"cuLaunchKernel(f);", "cuLaunchKernel"},
        {"fd_k_20<<<1, 128>>>(args);", "<<<"},
        {"template <int N> int f(void);", "template"},
        {"class rung;", "class"},
        {"auto x = 1;", "auto"},
        {"#include <cuda_runtime.h>", "cuda_runtime.h"},
        {"#include \"emu/emu.h\"", "emu/emu.h"},
        {"atomicAdd(p, 1);", "atomicAdd"},
        {"fd_emu_syncthreads(0, 0);", "fd_emu_syncthreads"},
        {"float *restrict p;", "restrict"},
        {"x = exp(x);", "exp"},
        {"/* asm */ asm(\"\"); /* asm */", "asm"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char said[500], expected[80];
        snprintf(expected, sizeof expected, "99_mine.cu:1: %s%s", wrong[i][0][0] == '#' ? "#include " : "",
                 wrong[i][1]);
        cr_expect_eq(check(wrong[i][0], said, sizeof said), 1, "accepted: %s", wrong[i][0]);
        cr_expect_not_null(strstr(said, expected), "'%s' does not name '%s'", said, expected);
    }
}

Test(cuda_names, what_is_no_code_is_not_read)
{
    static const char *const right[] = {
        "/* asm volatile, a class of its own */",
        "// template",
        "const char *s = \"a \\\"class\\\" of asm\", c = '\"'; int n;",
        "#include \"fd_cuda.h\"",
        "x = expf(x) + __shfl_xor_sync(FD_FULL_MASK, x, 1); __syncthreads();",
        "p.sm_volatile = classes;",
    };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        char said[500];
        cr_expect_eq(check(right[i], said, sizeof said), 0, "refused: %s", said);
    }
}
