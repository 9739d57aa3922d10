/* trial_cases.c: see trial_cases.h. */
#include "trial_cases.h"

#include <stdlib.h>
#include <string.h>

#include "metamorph.h"

double fd_case_work(const fd_case *c)
{
    return (double)c->batch * c->heads_q * (c->q_len > 0 ? c->q_len : 1) * ((double)c->kv_len + 1.0) *
           (c->head_dim + c->head_dim_v);
}

bool fd_case_has_empty(const fd_case *c)
{
    bool empty = false;
    for (int32_t b = 0; b < c->batch; b++) {
        empty = empty || c->kv_lens[b] == 0;
    }
    return empty;
}

/* 0: known bit for bit, or empty, or ragged; a wrong kernel is named there in milliseconds. */
static int32_t rank_of(const fd_case *c)
{
    static const char *const exact[] = {"selector", "flat-integer", "negative"};
    bool first = fd_case_has_empty(c) || c->batch > 1;
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
        first = first || strcmp(c->family, exact[i]) == 0;
    }
    return first ? 0 : 1;
}

static int by_telling(const void *x, const void *y)
{
    const fd_choice *a = (const fd_choice *)x, *b = (const fd_choice *)y;
    const int32_t rank_a = rank_of(a->c), rank_b = rank_of(b->c);
    const double work_a = fd_case_work(a->c), work_b = fd_case_work(b->c);
    if (rank_a != rank_b) {
        return rank_a < rank_b ? -1 : 1;
    }
    return work_a < work_b ? -1 : work_a > work_b ? 1 : strcmp(a->c->name, b->c->name);
}

static int by_group(const void *x, const void *y)
{
    const fd_choice *a = (const fd_choice *)x, *b = (const fd_choice *)y;
    const int32_t far_a = abs(a->c->kv_len - FD_SMOKE_KEYS), far_b = abs(b->c->kv_len - FD_SMOKE_KEYS);
    if (a->group != b->group) {
        return a->group < b->group ? -1 : 1;
    }
    return far_a != far_b ? (far_a < far_b ? -1 : 1) : by_telling(x, y);
}

/* Family and dtypes; empty caches and ragged batches are groups of their own. */
static bool alike(const fd_case *x, const fd_case *y)
{
    return strcmp(x->family, y->family) == 0 && x->dtype_q == y->dtype_q && x->dtype_kv == y->dtype_kv &&
           x->dtype_o == y->dtype_o && fd_case_has_empty(x) == fd_case_has_empty(y) && (x->batch > 1) == (y->batch > 1);
}

static bool wanted(const fd_case *c, const fd_trial_options *o)
{
    const bool named = o->case_name == NULL ? c->size <= o->size : strcmp(o->case_name, c->name) == 0;
    return named && (o->family == NULL || strcmp(o->family, c->family) == 0);
}

int32_t fd_choose_cases(const fd_case_table *table, const fd_trial_options *o, fd_choice *choices)
{
    int32_t count = 0, groups = 0;
    for (int32_t i = 0; i < table->count; i++) {
        if (wanted(&table->cases[i], o)) {
            choices[count++] = (fd_choice){&table->cases[i], 0};
        }
    }
    qsort(choices, (size_t)count, sizeof *choices, by_telling);
    for (int32_t i = 0; i < count; i++) { /* numbered in the order of their first case */
        int32_t k = 0;
        while (o->smoke && k < i && !alike(choices[k].c, choices[i].c)) {
            k++;
        }
        choices[i].group = o->smoke && k < i ? choices[k].group : groups++;
    }
    if (o->smoke) {
        qsort(choices, (size_t)count, sizeof *choices, by_group);
    }
    return count;
}

int32_t fd_choose_relations(const fd_case_table *table, const fd_trial_options *o, fd_choice *choices)
{
    int32_t count = 0;
    for (int32_t i = 0; i < table->count; i++) {
        bool listed = o->case_name != NULL;
        for (int k = 0; k < fd_relation_case_count; k++) {
            listed = listed || strcmp(table->cases[i].name, fd_relation_cases[k]) == 0;
        }
        if (listed && wanted(&table->cases[i], o)) {
            choices[count] = (fd_choice){&table->cases[i], count};
            count++;
        }
    }
    qsort(choices, (size_t)count, sizeof *choices, by_telling);
    return count;
}
