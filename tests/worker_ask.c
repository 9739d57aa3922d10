/* worker_ask.c: how the worker is asked, and what is made of its answer. */
#include "worker_parts.h"
#ifdef __linux__
#include <stdarg.h>
#include <stdio.h>

#include "text.h"

fd_worker_state fd_worker;
pthread_mutex_t fd_worker_lock = PTHREAD_MUTEX_INITIALIZER;

void fd_worker_blame(const char *format, ...)
{
    if (!fd_worker.incident.happened) {
        va_list arguments;
        va_start(arguments, format);
        fd_worker.incident = (fd_incident){.happened = true};
        vsnprintf(fd_worker.incident.text, sizeof fd_worker.incident.text, format, arguments);
        va_end(arguments);
        fd_text_clean(fd_worker.incident.text);
    }
}

void fd_worker_take_text(char *to, size_t n, const char *from, size_t bytes)
{
    snprintf(to, n, "%.*s", (int)bytes - 1, from);
    fd_text_clean(to);
}

bool fd_worker_ask(enum fd_request request)
{
    fd_shared *s = fd_worker.process.shared;
    const bool answered = fd_process_ask(&fd_worker.process, &fd_worker.options, request, &fd_worker.incident);
    for (int kind = 0; kind < FD_NUM_CONDUCTS; kind++) {
        if ((s->conduct & ~fd_worker.conduct) >> kind & 1u) {
            snprintf(fd_worker.conduct_text[kind], sizeof fd_worker.conduct_text[kind], "%.120s, in %s",
                     s->conduct_text[kind], fd_doing_text(s->conduct_doing[kind]));
            fd_text_clean(fd_worker.conduct_text[kind]);
        }
    }
    fd_worker.conduct |= s->conduct;
    s->conduct = 0;
    return answered;
}

bool fd_worker_lay_out(const fd_arena *l)
{
    if (!fd_arena_fill(l, &fd_worker.process)) {
        fd_worker_blame("no memory for the tensors of this case, %.1f MiB", (double)l->bytes / 0x1p20);
        return false;
    }
    return true;
}

void fd_worker_begin_question(fd_arena *l, const fd_problem *problem, const fd_plan *plan)
{
    fd_shared *s = fd_worker.process.shared;
    fd_tensor *tensors[FD_NUM_TENSORS];
    *l = (fd_arena){.at_start = fd_worker.at_start};
    s->problem = *problem;
    s->problem.kv_lens_host = NULL;
    if (!fd_worker.gives_lse) {
        s->problem.lse.data = NULL;
        s->problem.features &= ~(uint32_t)FD_LSE;
    }
    fd_problem_tensors(&s->problem, tensors);
    for (int t = 0; t < FD_NUM_TENSORS; t++) {
        tensors[t]->data = tensors[t]->data != NULL ? (void *)(uintptr_t)1 : NULL;
        s->tensor_segment[t] = -1;
    }
    s->workspace_segment = s->plan_segment = s->kv_lens_host_segment = -1;
    if (problem->kv_lens_host != NULL) {
        s->kv_lens_host_segment = fd_arena_place(l, "kv_lens_host", (uint64_t)problem->batch * sizeof(int32_t),
                                                 sizeof(int32_t), false, problem->kv_lens_host);
    }
    if (plan != NULL) {
        s->plan_segment = fd_arena_place(l, "the plan", plan->size, FD_TENSOR_ALIGNMENT, false, plan);
    }
}

fd_status fd_worker_known(int32_t status, const char *function)
{
    if (status < FD_OK || status > FD_DEVICE_ERROR) {
        fd_worker_blame("%s returned %d, which is no fd_status", function, status);
        return FD_INVALID;
    }
    return (fd_status)status;
}

bool fd_worker_on_gpu(void)
{
    return strcmp(fd_worker.loaded.where, "gpu") == 0;
}
#endif
