#include "execute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

fd_machine fd_host_machine(int32_t threads)
{
    return (fd_machine){.size = sizeof(fd_machine), .space = FD_HOST, .num_units = threads, .blocks_per_unit = 1};
}

fd_status fd_plan_for(const fd_rung *rung, const fd_problem *problem, fd_plan **plan, char *why, size_t n)
{
    const fd_machine machine = fd_host_machine(FD_HOST_THREADS);
    return fd_plan_on(&machine, rung, problem, plan, why, n);
}

fd_status fd_plan_on(const fd_machine *machine, const fd_rung *rung, const fd_problem *problem, fd_plan **plan,
                     char *why, size_t n)
{
    const size_t bytes = fd_plan_bytes(rung, problem, machine);
    *plan = NULL;
    if (bytes == 0) {
        return FD_OK;
    }
    *plan = calloc(1, bytes < sizeof(fd_plan) ? sizeof(fd_plan) : bytes);
    if (*plan == NULL) {
        snprintf(why, n, "no memory for a plan of %zu bytes", bytes);
        return FD_NO_MEMORY;
    }
    const fd_status status = fd_make_plan(rung, problem, machine, *plan);
    if (status != FD_OK || (*plan)->num_splits < 1 || (*plan)->split_size < 1 || (*plan)->size != bytes) {
        snprintf(why, n, "plan() returned %s",
                 status != FD_OK          ? fd_status_name(status)
                 : (*plan)->size != bytes ? "a size that is not plan_bytes()"
                                          : "no split at all");
        free(*plan);
        *plan = NULL;
        return status != FD_OK ? status : FD_INVALID;
    }
    return FD_OK;
}

static void gather(const fd_problem *p, float *o_out, float *lse_out)
{
    for (int64_t row = 0; row < fd_row_count(p); row++) {
        int32_t b, t, h;
        fd_row_of_index(p, row, &b, &t, &h);
        const int64_t at = fd_row_at(&p->o, b, t, h);
        for (int32_t i = 0; i < p->head_dim_v; i++) {
            o_out[row * p->head_dim_v + i] = fd_load(&p->o, at + i * p->o.stride[3]);
        }
        if (p->lse.data != NULL) {
            lse_out[row] = fd_load(&p->lse, fd_row_at(&p->lse, b, t, h));
        }
    }
}

fd_status fd_execute(const fd_rung *rung, const fd_plan *plan, fd_instance *instance, bool with_lse,
                     enum fd_poison poison, float *o_out, float *lse_out, char *why, size_t n)
{
    fd_problem problem = instance->problem;
    if (!with_lse) {
        problem.lse.data = NULL;
        problem.features = fd_features(&problem);
    }
    fd_buffer workspace;
    const size_t bytes = fd_workspace_bytes(rung, &problem, plan);
    if (fd_buffer_alloc(&workspace, bytes) != FD_OK) {
        snprintf(why, n, "no memory for a workspace of %zu bytes", bytes);
        return FD_NO_MEMORY;
    }
    fd_poison_fill(workspace.data, workspace.bytes, poison);
    fd_instance_poison(instance, poison);

    const uint64_t inputs = fd_instance_checksum(instance);
    fd_plan *copy = NULL;
    if (plan != NULL) {
        copy = malloc(plan->size);
        if (copy == NULL) {
            fd_buffer_free(&workspace);
            snprintf(why, n, "no memory for a copy of the plan, %u bytes", plan->size);
            return FD_NO_MEMORY;
        }
        memcpy(copy, plan, plan->size);
    }
    const fd_context context = {.size = sizeof context, .plan = plan, .plan_device = plan, .workspace = workspace.data};
    fd_status status = rung->run(&problem, &context);

    if (status != FD_OK) {
        snprintf(why, n, "run() returned %s", fd_status_name(status));
    } else if (!fd_buffer_intact(&workspace)) {
        status = FD_INVALID;
        snprintf(why, n, "wrote outside its workspace of %zu bytes", bytes);
    } else if (!fd_instance_outputs_intact(instance, poison)) {
        status = FD_INVALID;
        snprintf(why, n, "wrote outside the rows of o and lse");
    } else if (fd_instance_checksum(instance) != inputs) {
        status = fd_instance_restore(instance, why, n);
        if (status == FD_OK) {
            status = FD_INVALID;
            snprintf(why, n, "wrote to its inputs");
        }
    } else if (copy != NULL && memcmp(copy, plan, plan->size) != 0) {
        status = FD_INVALID;
        snprintf(why, n, "changed its plan");
    } else {
        gather(&problem, o_out, lse_out);
    }
    free(copy);
    fd_buffer_free(&workspace);
    return status;
}
