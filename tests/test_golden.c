/* test_golden.c: the golden vectors are what the oracle says, bit for bit; their reader in C is the program's own closed
 * bound; and it tells a right function from a wrong one. The reader and the function are those of data/golden. */
#define _POSIX_C_SOURCE 200809L
#include <criterion/criterion.h>
#include <dirent.h>
#include <unistd.h>

#include "closed_bound.h"
#include "commands.h"
#include "golden.h"
#include "safetensors.h"

int golden_main(int argc, char **argv);
#define main golden_main
#include "../data/golden/judge.c"
#undef main
#undef U
#include "../data/golden/naive.c"

static fd_case_table the_table(void)
{
    fd_case_table table;
    char why[256];
    cr_assert_eq(fd_cases_read("data/golden/cases.csv", &table, why, sizeof why), FD_OK, "%s", why);
    return table;
}

static bool same_bytes(const char *path, const char *other)
{
    FILE *a = fopen(path, "rb"), *b = fopen(other, "rb");
    bool same = a != NULL && b != NULL;
    for (int c = 0; same && c != EOF;) {
        c = fgetc(a);
        same = c == fgetc(b);
    }
    if (a != NULL) {
        fclose(a);
    }
    if (b != NULL) {
        fclose(b);
    }
    return same;
}

Test(golden, files_are_rebuilt_bit_for_bit)
{
    fd_case_table table = the_table();
    char folder[] = "/tmp/fd-golden-XXXXXX", why[256];
    cr_assert_not_null(mkdtemp(folder));
    for (int32_t i = 0; i < table.count; i++) {
        char name[96], made[200], kept[200];
        fd_golden_name(&table.cases[i], name, sizeof name);
        snprintf(made, sizeof made, "%s/%s.safetensors", folder, name);
        snprintf(kept, sizeof kept, "data/golden/%s.safetensors", name);
        cr_assert_eq(fd_golden_write(&table.cases[i], folder, why, sizeof why), FD_OK, "%s", why);
        cr_expect(same_bytes(made, kept), "%s is not what the oracle says now", kept);
        unlink(made);
    }
    rmdir(folder);
    int32_t files = 0;
    DIR *kept = opendir("data/golden");
    cr_assert_not_null(kept);
    for (const struct dirent *entry; (entry = readdir(kept)) != NULL;) {
        files += strstr(entry->d_name, ".safetensors") != NULL;
    }
    closedir(kept);
    cr_expect_eq(files, table.count, "%d files of %d cases", files, table.count);
    cr_expect_eq(system("cd data/golden && sha256sum --quiet -c SHA256SUMS"), 0);
    fd_cases_free(&table);
}

/* Oracle row [row] of an open golden vector, its arrays the file's own. */
static fd_oracle_row row_of(int64_t row, int64_t dims, int64_t keys)
{
    int64_t s[4];
    double *at[NUM];
    for (int t = 0; t < NUM; t++) {
        const double *all = tensor(names[t], s, 0);
        at[t] = (double *)(uintptr_t)(all + (t < O ? row : row * dims));
    }
    return (fd_oracle_row){.kv_len = keys,
                           .head_dim_v = (int32_t)dims,
                           .lse = *at[LSE],
                           .lse_lo = *at[LSE_LO],
                           .lse_radius = *at[LSE_RADIUS],
                           .s_max = *at[S_MAX],
                           .a_max = *at[A_MAX],
                           .gap_max = *at[GAP_MAX],
                           .o = at[O],
                           .o_lo = at[O_LO],
                           .radius = at[O_RADIUS],
                           .gauge = at[GAUGE],
                           .spread = at[SPREAD],
                           .spread_a = at[SPREAD_A],
                           .spread_gap = at[SPREAD_GAP],
                           .v_max = at[V_MAX]};
}

static void reader_bounds(const fd_oracle_row *row, double rescales, int64_t head_dim, double sm_scale, double *bound,
                          double *lse)
{
    const double *const x[NUM] = {&row->lse,     &row->lse_lo,  &row->lse_radius, &row->s_max, &row->a_max,
                                  &row->gap_max, row->o,        row->o_lo,        row->radius, row->gauge,
                                  row->spread,   row->spread_a, row->spread_gap,  row->v_max};
    *lse = bounds((double)row->kv_len, rescales, (double)head_dim, sm_scale, row->head_dim_v, x, bound);
}

/* Under the hypotheses that README.md states. One level of keys added, or any tree. */
static fd_arith hypotheses(int32_t num_levels)
{
    return (fd_arith){.size = sizeof(fd_arith),
                      .num_levels = num_levels,
                      .level = {{.ways = 4096, .merge = FD_MERGE_ADD, .order = FD_SEQUENTIAL}},
                      .math = FD_MATH_CLAIMED,
                      .exp_rel = 0x1p-22f,
                      .exp_abs = 0x1p-148f,
                      .log_rel = 0x1p-22f};
}

static bool near(double x, double y)
{
    return fabs(x - y) <= 1e-12 * fabs(y);
}

/* The reader's formula is the program's, and no file is there of which it says nothing (above 2^-4 of the gauge). */
Test(golden, reader_has_the_bound_of_the_program)
{
    const fd_rounding host = {.u = 0x1p-24, .eta = 0x1p-150, .largest = 0x1.fffffep127};
    const fd_arith any = hypotheses(0), added = hypotheses(1);
    fd_case_table table = the_table();
    int64_t rows = 0;
    for (int32_t i = 0; i < table.count; i++) {
        char name[96], path[200];
        int64_t q[4], v[4], s[4];
        fd_golden_name(&table.cases[i], name, sizeof name);
        snprintf(path, sizeof path, "data/golden/%s.safetensors", name);
        cr_assert(open_file(path), "%s", path);
        cr_assert(tensor("q", q, 0) != NULL && tensor("v", v, 0) != NULL);
        const int32_t *visible = tensor("exact.visible", s, 0);
        const float scale = *(const float *)tensor("sm_scale", s, 0);
        double lse, mine[512], theirs[512];
        for (int64_t r = 0; r < q[0] * q[1] * q[2]; r++) {
            if (visible[r / q[2]] == 0) {
                continue;
            }
            const fd_oracle_row row = row_of(r, v[3], visible[r / q[2]]);
            fd_closed_bound closed = fd_closed_bound_row(&any, &host, (int32_t)q[3], scale, &row, theirs);
            reader_bounds(&row, (double)row.kv_len, q[3], (double)scale, mine, &lse);
            cr_expect(near(lse, closed.lse), "%s: lse %g, program %g", name, lse, closed.lse);
            cr_expect(lse <= 0x1p-4, "%s: lse's bound %g says nothing", name, lse);
            for (int64_t k = 0; k < v[3]; k++) {
                cr_expect(near(mine[k], theirs[k]), "%s: o %g, program %g", name, mine[k], theirs[k]);
                cr_expect(mine[k] <= 0x1p-4 * row.gauge[k] + 0x1p-120, "%s: %g says nothing", name, mine[k]);
            }
            closed = fd_closed_bound_row(&added, &host, (int32_t)q[3], scale, &row, theirs);
            reader_bounds(&row, 1.0, q[3], (double)scale, mine, &lse);
            cr_expect(closed.known && lse >= closed.lse && lse <= 2.5 * closed.lse);
            for (int64_t k = 0; k < v[3]; k++) {
                cr_expect(mine[k] >= theirs[k], "%s: -r 1 gives %g, the sharper claim %g", name, mine[k], theirs[k]);
            }
            rows++;
        }
        free(header);
    }
    cr_expect_gt(rows, 400);
    fd_cases_free(&table);
}

Test(golden, reader_passes_what_is_right)
{
    fd_case_table table = the_table();
    for (int32_t i = 0; i < table.count; i++) {
        char name[96], path[200];
        fd_golden_name(&table.cases[i], name, sizeof name);
        snprintf(path, sizeof path, "data/golden/%s.safetensors", name);
        const struct verdict any = judge(path, HUGE_VAL), one = judge(path, 1.0);
        cr_expect(any.wrong == 0 && one.wrong == 0 && any.judged > 0, "%s: %g, %g", path, any.ratio, one.ratio);
        cr_expect(one.ratio >= any.ratio, "%s: fewer rescales must mean a lower line", path);
    }
    fd_cases_free(&table);
}
