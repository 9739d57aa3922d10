/* test_emulate.c: the CUDA rungs under observation: no fault, nothing left unwritten, the same bits in every schedule. */
#include <criterion/criterion.h>
#include <criterion/redirect.h>

#include <stdarg.h>
#include <stdlib.h>

#include "commands.h"
#include "emulate.h"
#include "emulate_options.h"
#include "ladder.h"

/* Lengths around tiles and warps, an empty sequence, groups, odd dimensions, 16-bit types: small, for every access costs. */
static const fd_case shapes[] = {
    {.dtype_q = FD_F32,
     .dtype_kv = FD_F32,
     .dtype_o = FD_F32,
     .batch = 1,
     .heads_q = 4,
     .heads_kv = 1,
     .head_dim = 64,
     .head_dim_v = 64,
     .kv_lens = {129},
     .kv_len = 129},
    {.dtype_q = FD_BF16,
     .dtype_kv = FD_BF16,
     .dtype_o = FD_BF16,
     .batch = 3,
     .heads_q = 2,
     .heads_kv = 2,
     .head_dim = 40,
     .head_dim_v = 24,
     .kv_lens = {1, 0, 70},
     .kv_len = 70,
     .split_size = 32},
    {.dtype_q = FD_F16,
     .dtype_kv = FD_F16,
     .dtype_o = FD_F32,
     .batch = 2,
     .heads_q = 3,
     .heads_kv = 1,
     .head_dim = 128,
     .head_dim_v = 128,
     .kv_lens = {64, 33},
     .kv_len = 64,
     .split_size = 16},
};

static void check(const fd_rung *rung, const fd_case *shape)
{
    static unsigned char o[FD_EMU_NUM_SCHEDULES][1 << 16], lse[FD_EMU_NUM_SCHEDULES][1 << 12];
    char why[512];
    fd_case c = *shape;
    fd_instance instance;
    fd_emulation x;
    int32_t num_splits;
    c.seed = 3;
    strcpy(c.family, "gaussian");
    cr_assert_eq(fd_instance_create(&instance, &c, why, sizeof why), FD_OK, "%s", why);
    cr_assert_eq(fd_emulation_create(&x, &instance, false, why, sizeof why), FD_OK, "%s", why);
    cr_assert(x.o_bytes <= sizeof o[0] && x.lse_bytes <= sizeof lse[0]);
    for (int32_t s = 0; s < FD_EMU_NUM_SCHEDULES; s++) {
        const fd_emu_options options = {.schedule = s, .seed = 7, .num_units = 16, .spin_seconds = 10.0};
        fd_emu_configure(&options);
        fd_emu_clear();
        const fd_status status = fd_emulation_run(&x, rung, o[s], lse[s], &num_splits, why, sizeof why);
        if (status == FD_UNSUPPORTED) {
            break;
        }
        cr_assert_eq(status, FD_OK, "rung %d, schedule %d: %s", rung->number, s, why);
        cr_assert_arr_eq(o[s], o[0], x.o_bytes, "rung %d, schedule %d: other bits of o", rung->number, s);
        cr_assert_arr_eq(lse[s], lse[0], x.lse_bytes, "rung %d, schedule %d: other bits of lse", rung->number, s);
    }
    fd_emulation_free(&x);
    fd_instance_free(&instance);
}

Test(emulate, cuda_rungs_have_no_fault_and_one_result)
{
    for (int i = 0; i < fd_ladder_count; i++) {
        const fd_rung *rung = fd_hooked_find(fd_ladder[i]->number);
        for (size_t k = 0; rung != NULL && k < sizeof shapes / sizeof *shapes; k++) {
            check(rung, &shapes[k]);
        }
    }
}

/* As `verify` lays a case out: the same answers, other addresses. */
Test(emulate, padded_rows_have_the_same_bits_as_dense_ones)
{
    static unsigned char o[2][1 << 16], lse[2][1 << 12];
    const fd_rung *rung = fd_hooked_find(23);
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        char why[512];
        fd_case c = shapes[k];
        fd_instance instance;
        int32_t num_splits;
        strcpy(c.family, "gaussian");
        cr_assert_eq(fd_instance_create(&instance, &c, why, sizeof why), FD_OK, "%s", why);
        for (int padded = 0; padded <= 1; padded++) {
            fd_emulation x;
            cr_assert_eq(fd_emulation_create(&x, &instance, padded, why, sizeof why), FD_OK, "%s", why);
            if (padded) {
                const fd_problem *p = &x.problem, *like = &instance.problem;
                cr_assert_arr_eq(p->v.stride, like->v.stride, sizeof p->v.stride);
                cr_assert_arr_eq(p->o.stride, like->o.stride, sizeof p->o.stride);
                cr_assert_arr_eq(p->lse.stride, like->lse.stride, sizeof p->lse.stride);
                cr_assert_eq(p->kv_capacity, like->kv_capacity);
            }
            cr_assert_eq(fd_emulation_run(&x, rung, o[padded], lse[padded], &num_splits, why, sizeof why), FD_OK, "%s",
                         why);
            fd_emulation_free(&x);
        }
        cr_assert_arr_eq(o[1], o[0], sizeof o[0]);
        cr_assert_arr_eq(lse[1], lse[0], sizeof lse[0]);
        fd_instance_free(&instance);
    }
}

static int command(int argc, ...)
{
    char *argv[8] = {(char *)(uintptr_t) "emulate"};
    va_list args;
    va_start(args, argc);
    for (int i = 1; i <= argc; i++) {
        argv[i] = va_arg(args, char *);
    }
    va_end(args);
    return fd_cmd_emulate(argc + 1, argv);
}

/* Splits planned for a GPU's multiprocessors, on a cache of two of the shortest splits that rung 24 makes. Four
 * blocks a split, and one multiprocessor holds four. */
Test(emulate, sms_are_what_plans_are_made_for)
{
    static unsigned char o[4 * 64 * sizeof(float)], lse[4 * sizeof(float)];
    char why[512], sms[2][8] = {"1", "132"}, *argv[] = {"emulate", "--heads", "4:4", "--kv-len", "512", "--sms", NULL};
    for (int i = 0; i < 2; i++) {
        fd_emulate_options options;
        fd_instance instance;
        fd_emulation x;
        int32_t num_splits = 0;
        argv[6] = sms[i];
        cr_assert_lt(fd_emulate_parse(7, argv, &options), 0);
        fd_emu_configure(&options.emulator);
        cr_assert_eq(fd_instance_create(&instance, &options.c, why, sizeof why), FD_OK, "%s", why);
        cr_assert_eq(fd_emulation_create(&x, &instance, options.padded, why, sizeof why), FD_OK, "%s", why);
        cr_assert_eq(fd_emulation_run(&x, fd_hooked_find(24), o, lse, &num_splits, why, sizeof why), FD_OK, "%s", why);
        cr_expect_eq(num_splits, i + 1, "%s multiprocessors: %d splits", sms[i], num_splits);
        fd_emulation_free(&x);
        fd_instance_free(&instance);
    }
}

Test(emulate, wrong_options_are_usage_errors)
{
    cr_redirect_stdout();
    cr_redirect_stderr();
    cr_assert_eq(command(2, "--rung", "1"), FD_EXIT_USAGE); /* no CUDA rung */
    cr_assert_eq(command(2, "--rung", "2x"), FD_EXIT_USAGE);
    cr_assert_eq(command(2, "--heads", "3:2"), FD_EXIT_USAGE);
    cr_assert_eq(command(2, "--heads", "4"), FD_EXIT_USAGE);
    cr_assert_eq(command(2, "--dtype", "xyz"), FD_EXIT_USAGE);
    cr_assert_eq(command(2, "--kv-len", "-1"), FD_EXIT_USAGE);
    cr_assert_eq(command(2, "--batch", "0"), FD_EXIT_USAGE);
    cr_assert_eq(command(2, "--schedule", "random"), FD_EXIT_USAGE);
    cr_assert_eq(command(2, "--sms", "0"), FD_EXIT_USAGE);
    cr_assert_eq(command(2, "--case", "none"), FD_EXIT_USAGE);
    cr_assert_eq(command(4, "--case", "none", "--batch", "1"), FD_EXIT_USAGE);
    cr_assert_eq(command(1, "--frobnicate"), FD_EXIT_USAGE);
    cr_assert_eq(command(1, "stray"), FD_EXIT_USAGE);
    cr_assert_eq(command(2, "--csv", "/nonexistent/x.csv"), FD_EXIT_USAGE);
    cr_assert_eq(command(1, "--help"), FD_EXIT_PASS);
}
