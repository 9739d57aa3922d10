/* oracle_survey.c: rows in parallel, each with its own clock, as other programs may share the machine. */
#define _POSIX_C_SOURCE 200809L

#include "oracle_survey.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "instance.h"
#include "oracle_fast.h"

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double peak_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_maxrss / 1024.0;
}

/* The indices of the rows to ask, rows without a key left out. Returns their number; -1: no memory. */
static int64_t choose(const fd_problem *p, const fd_survey *survey, int64_t **chosen)
{
    const int64_t rows = fd_row_count(p);
    int64_t some = 0, asked = 0;
    *chosen = malloc((size_t)rows * sizeof **chosen);
    for (int64_t r = 0; *chosen != NULL && r < rows; r++) {
        int32_t b, t, h;
        fd_row_of_index(p, r, &b, &t, &h);
        if (fd_visible_end(p, b, t) > 0) {
            (*chosen)[some++] = r;
        }
    }
    if (*chosen == NULL) {
        return -1;
    }
    if (survey->rows <= 0 || survey->rows >= some) {
        return some;
    }
    const int64_t step = some / survey->rows, first = survey->turn % step;
    for (; asked < survey->rows; asked++) {
        (*chosen)[asked] = (*chosen)[first + asked * step];
    }
    return asked;
}

typedef struct desk { /* of one thread */
    fd_oracle_row fast, plain;
    fd_survey_result sum;
    fd_status status;
    char why[160];
} desk;

static void ask(desk *k, const fd_problem *p, const fd_survey *survey, int64_t index)
{
    int32_t b, t, h;
    fd_row_of_index(p, index, &b, &t, &h);
    const double start = seconds(CLOCK_THREAD_CPUTIME_ID);
    if (survey->fast) {
        k->status = fd_oracle_fast(p, b, t, h, &k->fast, k->why, sizeof k->why);
    }
    const double between = seconds(CLOCK_THREAD_CPUTIME_ID);
    if (survey->plain && k->status == FD_OK) {
        k->status = fd_oracle(p, b, t, h, FD_ORACLE_BITS, &k->plain, k->why, sizeof k->why);
    }
    k->sum.fast += between - start;
    k->sum.plain += seconds(CLOCK_THREAD_CPUTIME_ID) - between;
    if (survey->fast && survey->plain && k->status == FD_OK) {
        fd_oracle_compare(&k->fast, &k->plain, p->head_dim, &k->sum.d);
    }
    k->sum.rows++;
    k->sum.keys += fd_visible_end(p, b, t);
    k->sum.products += fd_visible_end(p, b, t) * ((int64_t)p->head_dim + p->head_dim_v);
}

static void add(fd_survey_result *result, const fd_survey_result *x)
{
    result->rows += x->rows;
    result->keys += x->keys;
    result->products += x->products;
    result->fast += x->fast;
    result->plain += x->plain;
    fd_disagreement_add(&result->d, &x->d);
}

fd_status fd_oracle_survey(const fd_case *c, const fd_survey *survey, fd_survey_result *result, char *why, size_t n)
{
    fd_instance instance;
    fd_status status = fd_instance_create(&instance, c, why, n);
    if (status != FD_OK) {
        return status;
    }
    const fd_problem *p = &instance.problem;
    int64_t *chosen;
    const int64_t rows = choose(p, survey, &chosen);
    const double start = seconds(CLOCK_MONOTONIC), before = peak_mib();
#pragma omp parallel
    {
        desk k = {.why = "no memory for an oracle row", .status = rows < 0 ? FD_NO_MEMORY : FD_OK};
        if (k.status == FD_OK && survey->fast) {
            k.status = fd_oracle_row_init(&k.fast, p->kv_capacity, p->head_dim_v);
        }
        if (k.status == FD_OK && survey->plain) {
            k.status = fd_oracle_row_init(&k.plain, p->kv_capacity, p->head_dim_v);
        }
#pragma omp for schedule(dynamic, 1)
        for (int64_t r = 0; r < rows; r++) {
            if (k.status == FD_OK) {
                ask(&k, p, survey, chosen[r]);
            }
        }
#pragma omp critical
        {
            add(result, &k.sum);
            if (k.status != FD_OK && status == FD_OK) {
                status = k.status;
                snprintf(why, n, "%s: %s", c->name, k.why);
            }
        }
        fd_oracle_row_free(&k.fast);
        fd_oracle_row_free(&k.plain);
    }
    result->wall += seconds(CLOCK_MONOTONIC) - start;
    result->memory = fmax(result->memory, peak_mib() - before);
    free(chosen);
    fd_instance_free(&instance);
    return status;
}
