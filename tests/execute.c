#include "execute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mirror.h"

static const fd_device *chosen; /* NULL: the ladder's own */

const fd_device *fd_device_for(const fd_rung *rung, char *why, size_t n)
{
    why[0] = '\0';
    if (fd_runs_on_host(rung)) {
        return NULL;
    }
    return chosen != NULL ? chosen : fd_device_of_ladder(why, n);
}

void fd_use_device(const fd_device *device)
{
    chosen = device;
}

static const fd_rung *elsewhere; /* NULL: none */
static fd_runner *run_elsewhere;

static bool lse_elsewhere;

bool fd_gives_lse(const fd_rung *rung)
{
    return rung != elsewhere || lse_elsewhere;
}

void fd_use_runner(const fd_rung *rung, fd_runner *runner, bool gives_lse)
{
    elsewhere = rung;
    lse_elsewhere = gives_lse;
    run_elsewhere = runner;
}

const char *fd_where(const fd_rung *rung)
{
    char why[160];
    const fd_device *device = fd_device_for(rung, why, sizeof why);
    return fd_runs_on_host(rung) ? "cpu" : device != NULL ? device->where : "-";
}

static int64_t emulated_max = FD_EMULATED_MAX;

void fd_limit_emulation(int64_t multiply_adds)
{
    emulated_max = multiply_adds;
}

fd_machine fd_host_machine(int32_t threads)
{
    return (fd_machine){.size = sizeof(fd_machine), .space = FD_HOST, .num_units = threads, .blocks_per_unit = 1};
}

fd_status fd_supports_here(const fd_rung *rung, const fd_problem *problem, char *why, size_t n)
{
    if (fd_runs_on_host(rung)) {
        return fd_supports(rung, problem, why, n);
    }
    const fd_device *device = fd_device_for(rung, why, n);
    const fd_problem there = fd_problem_on_device(problem);
    if (device == NULL) {
        return FD_NO_DEVICE;
    }
    const fd_status status = fd_supports(rung, &there, why, n);
    const double work = (double)problem->batch * problem->heads_q * problem->q_len * (double)problem->kv_capacity *
                        (problem->head_dim + problem->head_dim_v);
    if (status == FD_OK && emulated_max > 0 && work > (double)emulated_max && strcmp(device->where, "emu") == 0) {
        snprintf(why, n, "too long for the emulator: %.0f million multiply-adds, at most %.0f; --case NAME runs it",
                 work * 1e-6, (double)emulated_max * 1e-6);
        return FD_UNSUPPORTED;
    }
    return status;
}

fd_status fd_plan_for(const fd_rung *rung, const fd_problem *problem, fd_plan **plan, char *why, size_t n)
{
    const fd_device *device = fd_device_for(rung, why, n);
    const fd_machine machine = device != NULL ? device->machine : fd_host_machine(FD_HOST_THREADS);
    return fd_plan_on(&machine, rung, problem, plan, why, n);
}

fd_status fd_plan_on(const fd_machine *machine, const fd_rung *rung, const fd_problem *problem, fd_plan **plan,
                     char *why, size_t n)
{
    const fd_problem p = machine->space == FD_DEVICE ? fd_problem_on_device(problem) : *problem;
    const size_t bytes = fd_plan_bytes(rung, &p, machine);
    *plan = NULL;
    if (bytes == 0) {
        return FD_OK;
    }
    *plan = calloc(1, bytes < sizeof(fd_plan) ? sizeof(fd_plan) : bytes);
    if (*plan == NULL) {
        snprintf(why, n, "no memory for a plan of %zu bytes", bytes);
        return FD_NO_MEMORY;
    }
    const fd_status status = fd_make_plan(rung, &p, machine, *plan);
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

/* On the host: inputs by their checksum, the plan by a copy. */
static fd_status run_here(const fd_rung *rung, const fd_problem *problem, const fd_plan *plan, fd_instance *instance,
                          enum fd_poison poison, const fd_buffer *workspace, char *why, size_t n)
{
    const uint64_t inputs = fd_instance_first_checksum(instance, poison);
    fd_plan *copy = plan != NULL ? malloc(plan->size) : NULL;
    if (plan != NULL && copy == NULL) {
        snprintf(why, n, "no memory for a copy of the plan, %u bytes", plan->size);
        return FD_NO_MEMORY;
    }
    if (plan != NULL) {
        memcpy(copy, plan, plan->size);
    }
    const fd_context context = {
        .size = sizeof context, .plan = plan, .plan_device = plan, .workspace = workspace->data};
    fd_status status = rung->run(problem, &context);
    if (status != FD_OK) {
        snprintf(why, n, "run() returned %s", fd_status_name(status));
    }
    if (fd_instance_checksum(instance) != inputs) {
        char failed[160];
        const fd_status restored = fd_instance_restore(instance, failed, sizeof failed);
        if (restored != FD_OK || status == FD_OK) {
            snprintf(why, n, "wrote to its inputs%s%s", restored != FD_OK ? ", which cannot be made again: " : "",
                     restored != FD_OK ? failed : "");
            status = restored != FD_OK ? restored : FD_INVALID;
        }
    } else if (status == FD_OK && plan != NULL && memcmp(copy, plan, plan->size) != 0) {
        status = FD_INVALID;
        snprintf(why, n, "changed its plan");
    }
    free(copy);
    return status;
}

static fd_status run_there(const fd_device *device, const fd_rung *rung, const fd_problem *problem, const fd_plan *plan,
                           fd_instance *x, fd_buffer *workspace, char *why, size_t n)
{
    const fd_memory memory = {.inputs = {&x->q, &x->k, &x->v, &x->kv_lens},
                              .num_inputs = 4,
                              .o = &x->o,
                              .lse = &x->lse,
                              .workspace = workspace};
    return fd_run_mirrored(device, rung, problem, plan, &memory, why, n);
}

fd_status fd_execute(const fd_rung *rung, const fd_plan *plan, fd_instance *instance, bool with_lse,
                     enum fd_poison poison, float *o_out, float *lse_out, char *why, size_t n)
{
    fd_problem problem = instance->problem;
    const fd_device *device = fd_device_for(rung, why, n);
    if (device == NULL && !fd_runs_on_host(rung)) {
        return FD_NO_DEVICE;
    }
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
    fd_poison_fill(workspace.data, workspace.bytes, fd_instance_poison_of(instance, FD_REGION_WORKSPACE, poison));
    fd_instance_poison(instance, poison);

    const fd_status status = rung == elsewhere ? run_elsewhere(&problem, plan, &workspace, why, n)
                             : device != NULL  ? run_there(device, rung, &problem, plan, instance, &workspace, why, n)
                                               : run_here(rung, &problem, plan, instance, poison, &workspace, why, n);
    fd_status verdict = status;
    if (status == FD_OK && !fd_buffer_intact(&workspace)) {
        verdict = FD_INVALID;
        snprintf(why, n, "wrote outside its workspace of %zu bytes", bytes);
    } else if (status == FD_OK && !fd_instance_outputs_intact(instance, poison)) {
        verdict = FD_INVALID;
        snprintf(why, n, "wrote outside the rows of o and lse");
    } else if (status == FD_OK) {
        gather(&problem, o_out, lse_out);
    }
    fd_buffer_free(&workspace);
    return verdict;
}
