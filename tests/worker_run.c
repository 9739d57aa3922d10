/* worker_run.c: run() and merge(), in the worker: every tensor on pages of its own. */
#define _GNU_SOURCE
#include "worker_parts.h"
#ifdef __linux__
#include <stdio.h>
#include <stdlib.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "execute.h"

/* After FD_OK: what a page's end did not stop. */
static fd_status outputs_intact(const fd_arena *l, const char *function)
{
    for (int32_t i = 0; i < l->count; i++) {
        const fd_segment *x = &l->segments[i];
        int64_t at;
        if (x->writable && !fd_slack_intact(x, fd_worker.process.memory + x->at, &at)) {
            fd_worker_blame("wrote %s %s, at byte %lld of %llu, in %s",
                            at < 0 ? "before the start of" : "past the end of", x->name, (long long)at,
                            (unsigned long long)x->bytes, function);
            return FD_INVALID;
        }
    }
    return FD_OK;
}

/* Of q, k, v and o, two begin 16 bytes past a multiple of 32, as is all they are promised, and the other two end
 * where their pages do, so that the first byte behind is forbidden. Which of them it is depends on the shape, and
 * is the same in every run. */
static int odd_ones(const fd_problem *p)
{
    return (p->heads_q ^ p->head_dim >> 3) & 1;
}

/* The results that merge() is given: as q and lse are handed out. */
static void place_parts(fd_arena *l, const fd_problem *problem)
{
    fd_shared *s = fd_worker.process.shared;
    s->num_parts = fd_worker.num_parts;
    for (int32_t part = 0; part < fd_worker.num_parts; part++) {
        const fd_tensor *o = &fd_worker.part_o[part], *lse = &fd_worker.part_lse[part];
        s->part_o[part] = *o;
        s->part_lse[part] = *lse;
        s->part_segment[0][part] =
            fd_arena_place(l, "partial_o", fd_view_bytes(problem, 3, o), FD_TENSOR_ALIGNMENT, false, o->data);
        if (part % 2 == 0) {
            fd_arena_no_more_than_16(l);
        }
        s->part_segment[1][part] =
            fd_arena_place(l, "partial_lse", fd_view_bytes(problem, 4, lse), sizeof(float), false, lse->data);
    }
}

fd_status fd_worker_run(const fd_problem *problem, const fd_plan *made, const fd_buffer *scratch, char *why, size_t n)
{
    const bool merges = fd_worker.num_parts > 0;
    const char *function = merges ? "merge()" : "run()";
    fd_problem p = *problem;
    fd_tensor *tensors[FD_NUM_TENSORS];
    int32_t segment[FD_NUM_TENSORS]; /* what the worker shares may have been written over */
    fd_status status = FD_INVALID;
    fd_arena l;
    fd_problem_tensors(&p, tensors);
    if (!fd_worker.gives_lse && p.lse.data != NULL) {
        fd_tensor zeros = p.lse; /* the gaps between its elements stay what they are */
        for (int64_t row = 0; row < fd_row_count(problem); row++) {
            int32_t b, t, h;
            fd_row_of_index(problem, row, &b, &t, &h);
            fd_store(&zeros, fd_row_at(&zeros, b, t, h), 0.0f);
        }
        p.lse.data = NULL;
    }
    pthread_mutex_lock(&fd_worker_lock);
    fd_shared *s = fd_worker.process.shared;
    fd_worker.at_start =
        fd_worker.runs++ % 4 < 2; /* two in a row: who takes an address for its contents is found out */
    fd_worker_begin_question(&l, problem, made);
    for (int t = 0; t < FD_NUM_TENSORS; t++) {
        const bool written = t == 3 || t == 4; /* o and lse */
        const bool small = t >= 4;             /* read by the element */
        segment[t] = -1;
        if (tensors[t]->data != NULL) {
            segment[t] = s->tensor_segment[t] =
                fd_arena_place(&l, fd_tensor_names[t], fd_view_bytes(problem, t, tensors[t]),
                               small ? sizeof(float) : FD_TENSOR_ALIGNMENT, written, tensors[t]->data);
            if (!small && t % 2 == odd_ones(problem)) {
                fd_arena_no_more_than_16(&l);
            }
        }
    }
    place_parts(&l, problem);
    s->workspace_segment = fd_arena_place(&l, "the workspace", scratch->bytes, 256, true, scratch->data);
    s->repeats = fd_worker.repeats;
#ifdef _OPENMP
    s->threads = omp_get_max_threads();
#endif
    if (!fd_worker.incident.happened && fd_worker_lay_out(&l) && fd_worker_ask(merges ? FD_ASK_MERGE : FD_ASK_RUN)) {
        status = fd_worker_known(s->status, function);
        if (status == FD_NO_MEMORY) { /* to the judge that would mean its own */
            status = FD_INVALID;
            fd_worker_blame("%s returned FD_NO_MEMORY: it allocates, and reached its limit (--megabytes)", function);
        } else if (status != FD_OK && s->text[0] == '\0') {
            fd_worker_blame("%s returned %s", function, fd_status_name(status));
        } else if (status != FD_OK) {
            fd_worker_blame("%.300s", s->text);
        } else {
            status = outputs_intact(&l, function);
        }
        if (status == FD_DEVICE_ERROR && fd_worker_on_gpu()) { /* CUDA refuses all else then */
            fd_worker.incident.death = true;
            fd_process_stop(&fd_worker.process);
        }
        for (int t = 3; t <= 4 && status == FD_OK; t++) {
            if (segment[t] >= 0) {
                const fd_segment *x = &l.segments[segment[t]];
                memcpy(tensors[t]->data, fd_worker.process.memory + x->at + x->offset, x->bytes);
            }
        }
    }
    snprintf(why, n, "%s", fd_worker.incident.text);
    pthread_mutex_unlock(&fd_worker_lock);
    return status;
}

fd_status fd_worker_merge(const fd_problem *problem, const fd_plan *plan, const fd_buffer *scratch, int32_t num_parts,
                          const fd_tensor *part_o, const fd_tensor *part_lse, char *why, size_t n)
{
    fd_worker.num_parts = num_parts;
    fd_worker.part_o = part_o;
    fd_worker.part_lse = part_lse;
    const fd_status status = fd_worker_run(problem, plan, scratch, why, n);
    fd_worker.num_parts = 0;
    return status;
}
#endif
