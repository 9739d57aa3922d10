/* test_dump.c: folders of cases. Right answers pass, wrong ones fail under their name, and what was made of an lse is said. */
#define _POSIX_C_SOURCE 200809L

#include "test_dump.h"

#include <math.h>

static const char *const ragged = "gaussian/fff/h6:2/d40/n5+0+0+300+0+64+65+1/s64";

/* Writes the case, then what the rung makes of it; edit may change the answer in between. */
typedef void editor(const fd_instance *x, float *o, float *lse);

static void write_answers(const char *dir, const fd_rung *rung, editor *edit, bool with_lse)
{
    fd_case_index index;
    char why[512], name[200], path[2000];
    cr_assert(fd_case_index_read(dir, &index, why, sizeof why) == FD_OK, "%s", why);
    for (int32_t i = 0; i < index.count; i++) {
        fd_instance x;
        float *o, *lse;
        const fd_case *c = case_of(index.entries[i].name);
        cr_assert(fd_instance_create(&x, c, why, sizeof why) == FD_OK, "%s", why);
        const fd_problem *p = &x.problem;
        if (fd_supports_here(rung, p, why, sizeof why) == FD_OK) {
            answer_of(rung, &x, &o, &lse);
            if (edit != NULL) {
                edit(&x, o, lse);
            }
            const fd_safetensor tensors[] = {f32("o", o, 4, p->batch, p->q_len, p->heads_q, p->head_dim_v),
                                             f32("lse", lse, 3, p->batch, p->q_len, p->heads_q, 0)};
            fd_case_answer_name(index.entries[i].file, name, sizeof name);
            snprintf(path, sizeof path, "%s/%s", dir, name);
            write_file(path, tensors, with_lse ? 2 : 1, NULL, 0);
            free(o);
            free(lse);
        }
        fd_instance_free(&x);
    }
    fd_case_index_free(&index);
}

static const char *cases(const char *option, const char *value)
{
    static char dir[600];
    snprintf(dir, sizeof dir, "%s/cases", folder());
    const said *s = call(fd_cmd_cases, (const char *const[]){"cases", dir, option, value, NULL});
    cr_assert_eq(s->code, FD_EXIT_PASS, "%s", s->err);
    return dir;
}

static void expect(const said *s, int code, const char *out)
{
    cr_expect_eq(s->code, code, "exit code %d, expected %d\n%s%s", s->code, code, s->out, s->err);
    cr_expect(strstr(s->out, out) != NULL, "does not say '%s':\n%s%s", out, s->out, s->err);
}

static void expect_silent(const said *s, const char *out)
{
    cr_expect(strstr(s->out, out) == NULL, "says '%s':\n%s", out, s->out);
}

Test(dump, answers_of_a_right_rung_pass)
{
    const char *dir = cases("--dtype", "fp16");
    expect(check(dir), FD_EXIT_NOTHING, "0 passed, 0 failed, 61 skipped");
    expect(check(dir), FD_EXIT_NOTHING, "no o: not answered");
    write_answers(dir, fd_ladder_find(5), NULL, true);
    expect(check(dir), FD_EXIT_PASS, "61 passed, 0 failed, 0 skipped");
    remove_folder();
}

static void lse_to_base_2(const fd_instance *x, float *o, float *lse)
{
    (void)o;
    for (int64_t row = 0; row < fd_row_count(&x->problem); row++) {
        lse[row] = isinf(lse[row]) ? HUGE_VALF : lse[row] * 1.44269504f;
    }
}

static void lse_half_in_base_2(const fd_instance *x, float *o, float *lse)
{
    (void)o;
    for (int64_t row = 0; row < fd_row_count(&x->problem); row += 2) {
        lse[row] *= 1.44269504f;
    }
}

static void lse_of_one_empty_row_positive(const fd_instance *x, float *o, float *lse)
{
    (void)o;
    for (int64_t row = 0; row < fd_row_count(&x->problem); row++) {
        if (isinf(lse[row])) {
            lse[row] = HUGE_VALF;
            return;
        }
    }
}

static void lse_a_little_off(const fd_instance *x, float *o, float *lse)
{
    (void)o;
    for (int64_t row = 0; row < fd_row_count(&x->problem); row++) {
        lse[row] = isinf(lse[row]) ? lse[row] : (lse[row] + 0x1p-8f) * 1.44269504f;
    }
}

Test(dump, conventions_of_lse_are_recognised_and_named)
{
    const char *dir = cases("--case", ragged);
    write_answers(dir, fd_ladder_find(5), NULL, true);
    const said *s = check(dir);
    expect(s, FD_EXIT_PASS, "1 passed, 0 failed");
    expect_silent(s, "note");

    write_answers(dir, fd_ladder_find(5), lse_to_base_2, true);
    s = check(dir);
    expect(s, FD_EXIT_PASS, "lse is in base 2; lse of a row without a key is +infinity");
    expect(s, FD_EXIT_PASS, "1 passed, 0 failed");

    write_answers(dir, fd_ladder_find(5), NULL, false);
    s = check(dir);
    expect(s, FD_EXIT_PASS, "note, 1 of 1: lse was not judged, there is none");
    remove_folder();
}

Test(dump, wrong_lse_fails)
{
    const char *dir = cases("--case", ragged);
    write_answers(dir, fd_ladder_find(5), lse_half_in_base_2, true);
    expect(check(dir), FD_EXIT_FAIL, "lse is natural in row b=0 t=0 h=1, and in base 2 in row b=0 t=0 h=0");
    write_answers(dir, fd_ladder_find(5), lse_of_one_empty_row_positive, true);
    expect(check(dir), FD_EXIT_FAIL, "lse is not -infinity for a row that sees no key");
    write_answers(dir, fd_ladder_find(5), lse_a_little_off, true);
    expect(check(dir), FD_EXIT_FAIL, "lse is outside the proved bound");
    expect(check(dir), FD_EXIT_FAIL, ", in natural units");
    remove_folder();
}

static void expect_named(const char *dir, const char *file, bool with_lse)
{
    char looks[200];
    const fd_rung *mutant = mutant_of(file);
    write_answers(dir, mutant, NULL, with_lse);
    const said *s = check(dir);
    snprintf(looks, sizeof looks, "looks like: %s\n", mutant->name);
    expect(s, FD_EXIT_FAIL, looks);
}

Test(dump, wrong_answers_are_named, .timeout = 120)
{
    const char *dir = cases("--case", ragged);
    expect_named(dir, "kv_len_of_batch_0", true);
    expect_named(dir, "k_of_batch_0", true);
    expect_named(dir, "l_forgotten", true);
    expect_named(dir, "no_rescale", false);
    expect_named(dir, "scale_missing", true);
    expect_named(dir, "lse_base_2", true);
    remove_folder();
}

Test(dump, an_answer_may_be_in_the_cases_own_file)
{
    const char *dir = cases("--case", "gaussian/fff/h4:1/d64/n65"), *input, *answer;
    fd_safetensors file, answers;
    char why[512];
    write_answers(dir, fd_ladder_find(5), NULL, true);
    input = in_folder("cases/001_gaussian_fff_h4_1_d64_n65.safetensors");
    answer = in_folder("cases/001_gaussian_fff_h4_1_d64_n65.out.safetensors");
    cr_assert(fd_safetensors_open(input, &file, why, sizeof why) == FD_OK, "%s", why);
    cr_assert(fd_safetensors_open(answer, &answers, why, sizeof why) == FD_OK, "%s", why);
    fd_safetensor tensors[8];
    int32_t count = 0;
    for (int32_t i = 0; i < file.count; i++) {
        tensors[count++] = file.tensors[i];
    }
    tensors[count++] = *fd_safetensors_find(&answers, "o");
    write_file(input, tensors, count, NULL, 0); /* no metadata, as save_file() without being told */
    expect(check(dir), FD_EXIT_USAGE, "");
    cr_expect(strstr(check(dir)->err, "o is here and in") != NULL, "%s", check(dir)->err);
    remove(answer);
    expect(check(dir), FD_EXIT_PASS, "1 passed, 0 failed");
    expect(check(input), FD_EXIT_PASS, "1 passed, 0 failed"); /* as a problem of one's own */

    ((float *)(uintptr_t)tensors[0].data)[65] += 1.0f; /* k, row 1: tensors are sorted by name */
    write_file(input, tensors, count, NULL, 0);
    const said *s = check(dir);
    cr_expect_eq(s->code, FD_EXIT_USAGE);
    cr_expect(strstr(s->err, "k differs from the case's in row [0, 1, 0]") != NULL, "%s", s->err);
    fd_safetensors_close(&file);
    fd_safetensors_close(&answers);
    remove_folder();
}

/* The bound of lse is that of the computation; a change of base comes on top. */
Test(dump, an_lse_in_base_2_may_have_three_more_roundings)
{
    fd_instance x;
    fd_outcome out[3];
    char why[512];
    const fd_rung *rung = fd_ladder_find(5);
    const fd_libm_error libm = fd_libm_error_get(NULL);
    const fd_rounding rounding = fd_host_rounding(&libm);
    cr_assert(fd_instance_create(&x, case_of("gaussian/fff/h4:1/d64/n65"), why, sizeof why) == FD_OK, "%s", why);
    const int64_t at = fd_row_count(&x.problem) * x.problem.head_dim_v;
    for (int k = 0; k < 3; k++) {
        x.lse_roundings = k == 1 ? 3 : 0;
        x.lse_absent = k == 2;
        cr_assert(fd_judge(&x, &rung, 1, &rounding, &out[k], why, sizeof why) == FD_OK, "%s", why);
        cr_expect_eq(out[k].verdict, FD_PASS);
    }
    for (int32_t h = 0; h < 4; h++) {
        const double line = out[0].pass_line[at + h], more = out[1].pass_line[at + h] - line;
        const double expected = 3.0 * 0x1p-24 * (fabs((double)out[0].lse[h]) + line);
        cr_expect(fabs(more - expected) <= 1e-5 * expected, "%g more instead of %g", more, expected);
        cr_expect(out[2].pass_line[at + h] == HUGE_VAL);
    }
    fd_outcomes_free(out, 3);
    fd_instance_free(&x);
}
