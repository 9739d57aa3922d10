#include "diagnose.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "execute.h"
#include "mutants.h"

#define SAME 2.0      /* two right computations of one wrong formula are at most two bounds apart */
#define STRAY 0x1p-12 /* plus this share of the way from the right answer: old memory makes logits, and errors, large */
#define RIGHT 0.5     /* a failing answer is a bound away from the oracle's, so about a bound from a right rung's */
#define MAX_ANSWERS (2 * FD_MUTANTS_MAX + 1) /* mutants, parents, and the rung to be explained */
#define MAX_NAMES 4                          /* of a diagnosis that is none */

/* ---- Answers ----------------------------------------------------------------------------------- */

fd_status fd_gallery_open(fd_gallery *g, fd_instance *instance)
{
    const fd_problem *p = &instance->problem;
    const int64_t rows = fd_row_count(p);
    *g = (fd_gallery){.instance = instance, .elements = rows * p->head_dim_v, .values = rows * (p->head_dim_v + 1)};
    g->answers = calloc(MAX_ANSWERS, sizeof *g->answers);
    return g->answers != NULL ? FD_OK : FD_NO_MEMORY;
}

void fd_gallery_close(fd_gallery *g)
{
    for (int k = 0; k < g->count; k++) {
        if (g->answers[k].under[1] != g->answers[k].under[0]) {
            free(g->answers[k].under[1]);
        }
        free(g->answers[k].under[0]);
    }
    free(g->answers);
    *g = (fd_gallery){.instance = NULL};
}

static fd_answer *answer_of(fd_gallery *g, const fd_rung *rung)
{
    for (int k = 0; k < g->count; k++) {
        if (g->answers[k].rung == rung) {
            return &g->answers[k];
        }
    }
    if (g->count == MAX_ANSWERS) {
        return NULL;
    }
    g->answers[g->count] = (fd_answer){.rung = rung};
    return &g->answers[g->count++];
}

static float *execute(const fd_gallery *g, const fd_rung *rung, enum fd_poison poison)
{
    char why[160];
    fd_plan *plan = NULL;
    float *o = calloc((size_t)g->values + 1, sizeof *o);
    const bool ok = o != NULL && fd_supports_here(rung, &g->instance->problem, why, sizeof why) == FD_OK &&
                    fd_plan_for(rung, &g->instance->problem, &plan, why, sizeof why) == FD_OK &&
                    fd_execute(rung, plan, g->instance, true, poison, o, o + g->elements, why, sizeof why) == FD_OK;
    free(plan);
    if (!ok) {
        free(o);
        o = NULL;
    }
    return o;
}

/* NULL: the rung does not take the problem, or breaks a fence. */
static const float *ask(fd_gallery *g, const fd_rung *rung, int which)
{
    static const enum fd_poison poisons[2] = {FD_POISON_NAN, FD_POISON_FINITE};
    fd_answer *a = answer_of(g, rung);
    if (a != NULL && !a->asked[which]) {
        a->under[which] = execute(g, rung, poisons[which]);
        a->asked[which] = true;
    }
    return a != NULL ? a->under[which] : NULL;
}

void fd_gallery_keep(fd_gallery *g, const fd_outcome *outcome)
{
    fd_answer *a = outcome->verdict != FD_SKIP && outcome->o != NULL ? answer_of(g, outcome->rung) : NULL;
    if (a == NULL || a->asked[0] || a->asked[1]) {
        return;
    }
    float *o = malloc(((size_t)g->values + 1) * sizeof *o);
    if (o == NULL) {
        return;
    }
    memcpy(o, outcome->o, (size_t)g->elements * sizeof *o);
    memcpy(o + g->elements, outcome->lse, (size_t)(g->values - g->elements) * sizeof *o);
    a->under[0] = o;
    a->asked[0] = true;
    if (!(outcome->verdict == FD_FAIL && outcome->tier == FD_TIER_EXACT)) { /* same bits, whatever the poison */
        a->under[1] = o;
        a->asked[1] = true;
    }
}

static const fd_rung *parent_of(const fd_rung *mutant)
{
    for (int k = 0; k < fd_parents_count; k++) {
        if (fd_parents[k]->number == mutant->parent) {
            return fd_parents[k];
        }
    }
    return NULL;
}

/* ---- Comparison -------------------------------------------------------------------------------- */

/* A NaN and an infinity are the same accident, where the exact answer is a number; -infinity is itself an answer. */
static bool alike(float x, float y, double allowed, double bound)
{
    if (isfinite(x) && isfinite(y)) {
        return !isfinite(bound) || fabs((double)x - (double)y) <= allowed;
    }
    const bool broken = !isfinite(x) && !isfinite(y);
    return x == y || (isnan(x) && isnan(y)) || (broken && (isnan(x) || isnan(y)) && bound > 0.0) || !isfinite(bound);
}

/* Answers from a file were given under one: NaN behind the visible tokens, as in the files of `flashdecode cases`. */
static int poisons_of(const fd_gallery *g)
{
    return g->instance->given_once ? 1 : 2;
}

/* Does the mutant return what the rung returned, under both poisons? Elements without a bound say nothing. */
static bool explains(fd_gallery *g, const fd_outcome *outcome, const fd_rung *mutant)
{
    const fd_rung *parent = parent_of(mutant);
    for (int which = 0; which < poisons_of(g); which++) {
        const float *seen = ask(g, outcome->rung, which), *wrong = seen != NULL ? ask(g, mutant, which) : NULL;
        const float *right = wrong != NULL && parent != NULL ? ask(g, parent, which) : NULL;
        for (int64_t i = 0; i < g->values && right != NULL; i++) {
            const double bound = outcome->pass_line[i], stray = fabs((double)wrong[i] - (double)right[i]);
            if (!alike(seen[i], wrong[i], SAME * bound + (isfinite(stray) ? STRAY * stray : 0.0), bound)) {
                return false;
            }
        }
        if (right == NULL) {
            return false;
        }
    }
    return true;
}

/* Does the mutant return something else than its parent? Any other bit will do, unless the failure was one of a bound. */
static bool visible(fd_gallery *g, const fd_outcome *outcome, const fd_rung *mutant)
{
    const fd_rung *parent = parent_of(mutant);
    const double bounds = outcome->tier == FD_TIER_PROVED ? RIGHT : 0.0;
    for (int which = 0; which < poisons_of(g) && parent != NULL; which++) {
        const float *wrong = ask(g, mutant, which), *right = ask(g, parent, which);
        for (int64_t i = 0; i < g->values && wrong != NULL && right != NULL; i++) {
            const double bound = outcome->pass_line[i];
            if (!alike(wrong[i], right[i], bounds * bound, bound)) {
                return true;
            }
        }
    }
    return false;
}

fd_suspects fd_gallery_diagnose(fd_gallery *g, const fd_outcome *outcome, fd_suspects suspects)
{
    fd_suspects left = {{0, 0}};
    for (int k = 0; k < fd_mutants_count && outcome->pass_line != NULL; k++) {
        if (fd_suspected(suspects, k) && explains(g, outcome, fd_mutants[k]) &&
            (outcome->verdict != FD_FAIL || visible(g, outcome, fd_mutants[k]))) {
            left.bits[k / 64] |= (uint64_t)1 << k % 64;
        }
    }
    return left;
}

fd_suspects fd_diagnose(fd_instance *instance, const fd_outcome *outcome, fd_suspects suspects)
{
    fd_gallery g;
    if (fd_gallery_open(&g, instance) != FD_OK) {
        return (fd_suspects){{0, 0}};
    }
    fd_gallery_keep(&g, outcome);
    suspects = fd_gallery_diagnose(&g, outcome, suspects);
    fd_gallery_close(&g);
    return suspects;
}

void fd_diagnosis_text(fd_suspects suspects, char *text, size_t n)
{
    size_t used = (size_t)snprintf(text, n, "looks like:");
    int names = 0;
    for (int k = 0; k < fd_mutants_count && !fd_suspected(suspects, FD_MUTANTS_MAX); k++) {
        if (fd_suspected(suspects, k) && names++ < MAX_NAMES && used < n) {
            used += (size_t)snprintf(text + used, n - used, "%s %s", names > 1 ? " or" : "", fd_mutants[k]->name);
        }
    }
    if (names > MAX_NAMES && used < n) {
        snprintf(text + used, n - used, " or %d more", names - MAX_NAMES);
    } else if (names == 0 && used < n) {
        snprintf(text + used, n - used, " unknown");
    }
}

void fd_votes_add(fd_votes *votes, fd_suspects explains)
{
    votes->failures++;
    for (int k = 0; k < fd_mutants_count; k++) {
        votes->of[k] += fd_suspected(explains, k);
    }
}

void fd_votes_text(const fd_votes *votes, fd_suspects suspects, char *text, size_t n)
{
    fd_suspects most = {{0, 0}};
    int32_t largest = votes->failures / 2 + 1;
    for (int k = 0; k < fd_mutants_count; k++) {
        if (votes->of[k] >= largest) {
            most = votes->of[k] > largest ? (fd_suspects){{0, 0}} : most;
            most.bits[k / 64] |= (uint64_t)1 << k % 64;
            largest = votes->of[k];
        }
    }
    fd_diagnosis_text(suspects, text, n);
    if (suspects.bits[0] == 0 && suspects.bits[1] == 0 && (most.bits[0] != 0 || most.bits[1] != 0)) {
        char names[160];
        fd_diagnosis_text(most, names, sizeof names);
        snprintf(text, n, "looks like: unknown;%s in %d of %d", names + strlen("looks like:"), largest,
                 votes->failures);
    }
}
