/* Errors of a GPU's functions are taken from a record of that GPU and toolkit only, and only if it is whole. */
#define _DEFAULT_SOURCE /* mkstemp */

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "execute.h"
#include "gpu/math_error.h"
#include "gpu_math.h"

#define H200 "NVIDIA H200, compute capability 9.0"
#define NVCC "nvcc 13.0.88"

static char path[] = "/tmp/gpu_math_XXXXXX";

/* The record with the line that begins with `without` left out, or replaced by `by`. */
static fd_gpu_math read_with(const char *without, const char *by, const char *gpu, const char *toolkit)
{
    static const char record[] = "# processor: NVIDIA H200, compute capability 9.0 (x86_64)\n"
                                 "# libc: nvcc 13.0.88\n"
                                 "function,range,unit,tested,misrounded,error,at,error_exact\n"
                                 "expf,[-104 0] normal,relative,9,1,1.5e-07,0x1p+0,1.5e-07\n"
                                 "expf,[-104 0] subnormal,2^-149,9,1,1.4,0x1p+0,1.4\n"
                                 "expf,below -103.98,2^-149,9,0,0,0x0p+0,0\n"
                                 "expf,(0 88.73],relative,9,1,1.6e-07,0x1p+0,1.6e-07\n"
                                 "expf,below -1024,not 0,9,0,0,0x0p+0,0\n"
                                 "expf,properties,broken,5,0,0,0x0p+0,0\n"
                                 "logf,[1 2^20],relative,9,1,8e-08,0x1p+0,8e-08\n"
                                 "logf,other positive,relative,9,1,7e-08,0x1p+0,7e-08\n"
                                 "logf,properties,broken,2,0,0,0x0p+0,0\n";
    FILE *f = fopen(path, "w");
    cr_assert(f != NULL);
    for (const char *line = record; *line != '\0';) {
        const char *end = strchr(line, '\n') + 1;
        if (without != NULL && strncmp(line, without, strlen(without)) == 0) {
            fputs(by, f);
        } else {
            fwrite(line, 1, (size_t)(end - line), f);
        }
        line = end;
    }
    fclose(f);
    return fd_gpu_math_read(path, gpu, toolkit);
}

static void make_path(void)
{
    cr_assert_geq(close(mkstemp(path)), 0);
}

static void remove_path(void)
{
    remove(path);
}

Test(gpu_math, a_record_of_this_gpu_and_toolkit_counts_rounded_up, .init = make_path, .fini = remove_path)
{
    const fd_gpu_math math = read_with(NULL, "", H200, NVCC);
    cr_assert(math.measured, "%s", math.source);
    cr_expect_gt(math.exp_rel, 1.6e-07f);
    cr_expect_lt(math.exp_rel, 1.601e-07f);
    cr_expect_gt(math.exp_abs, 1.3f * 0x1p-149f);
    cr_expect_leq(math.exp_abs, FD_GPU_EXP_ABS);
    cr_expect_gt(math.log_rel, 8e-08f);
    cr_expect_lt(math.log_rel, 8.01e-08f);
}

Test(gpu_math, another_gpu_toolkit_or_file_does_not_count, .init = make_path, .fini = remove_path)
{
    cr_expect_not(read_with(NULL, "", "NVIDIA H100, compute capability 9.0", NVCC).measured);
    cr_expect_not(read_with(NULL, "", "NVIDIA H200, compute capability 8.0", NVCC).measured);
    cr_expect_not(read_with(NULL, "", H200, "nvcc 13.1.0").measured);
    cr_expect_not(read_with(NULL, "", H200, NULL).measured);
    cr_expect_not(fd_gpu_math_read("/nonexistent/math.csv", H200, NVCC).measured);
}

Test(gpu_math, a_range_or_property_that_is_missing_broken_or_nan_voids_the_record, .init = make_path,
     .fini = remove_path)
{
    static const char *const lines[][2] = {{"expf,[-104 0] normal", ""},
                                           {"expf,[-104 0] subnormal", ""},
                                           {"expf,below -103.98", ""},
                                           {"expf,(0 88.73]", ""},
                                           {"expf,below -1024", ""},
                                           {"expf,properties", ""},
                                           {"logf,[1 2^20]", ""},
                                           {"logf,other positive", ""},
                                           {"logf,properties", ""},
                                           {"expf,properties", "expf,properties,broken,5,1,1,0x0p+0,1\n"},
                                           {"expf,below -1024", "expf,below -1024,not 0,9,1,1,0x0p+0,1\n"},
                                           {"expf,[-104 0] normal", "expf,[-104 0] normal,relative,9,1,nan,0x0p+0,1\n"},
                                           {"logf,[1 2^20]", "logf,[1 2^20],relative,9,1,inf,0x0p+0,1\n"}};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        cr_expect_not(read_with(lines[i][0], lines[i][1], H200, NVCC).measured, "without '%s', '%s'", lines[i][0],
                      lines[i][1]);
    }
}

/* What is in the repository is a record of that kind, and within what NVIDIA documents. */
Test(gpu_math, the_recorded_h200_counts)
{
    const fd_gpu_math math = fd_gpu_math_read("data/measured/h200/math.csv", H200, NVCC);
    cr_assert(math.measured, "%s", math.source);
    cr_expect_leq(math.exp_rel, FD_GPU_EXP_REL);
    cr_expect_leq(math.exp_abs, FD_GPU_EXP_ABS);
    cr_expect_leq(math.log_rel, FD_GPU_LOG_REL);
}

/* ---- Claims where a rung runs ---- */

static void arith_measured(const fd_problem *p, const fd_plan *plan, int64_t kv_len, fd_arith *a)
{
    (void)p, (void)plan, (void)kv_len;
    a->math = FD_MATH_CLAIMED;
    a->exp_rel = 1e-5f;
}

static void arith_silent(const fd_problem *p, const fd_plan *plan, int64_t kv_len, fd_arith *a)
{
    (void)p, (void)plan, (void)kv_len, (void)a;
}

static fd_arith claims_on(const char *where, void (*arith)(const fd_problem *, const fd_plan *, int64_t, fd_arith *))
{
    static const fd_caps caps = {.size = sizeof caps, .spaces = 1u << FD_DEVICE};
    const fd_device device = {.where = where};
    const fd_rung rung = {.size = sizeof rung, .caps = &caps, .arith = arith};
    fd_problem p = {.size = sizeof p};
    fd_arith a;
    fd_use_device(&device);
    fd_claims_here(&rung, &p, NULL, 1, &a);
    fd_use_device(NULL);
    return a;
}

Test(gpu_math, a_kernel_that_claims_nothing_has_cudas_errors_not_the_hosts)
{
    const fd_arith a = claims_on("gpu", arith_silent);
    cr_expect_eq(a.math, FD_MATH_CLAIMED);
    cr_expect_eq(a.exp_rel, FD_GPU_EXP_REL);
    cr_expect_eq(a.exp_abs, FD_GPU_EXP_ABS);
    cr_expect_eq(a.log_rel, FD_GPU_LOG_REL);
    cr_expect_str_eq(fd_gpu_math_whose(&a), "as NVIDIA documents");
}

Test(gpu_math, other_claims_and_the_emulator_are_left_alone)
{
    const fd_arith own = claims_on("gpu", arith_measured);
    cr_expect_eq(own.exp_rel, 1e-5f);
    cr_expect_str_eq(fd_gpu_math_whose(&own), "as it says");
    cr_expect_eq(claims_on("emu", arith_silent).math, FD_MATH_LIBM);
}
