/* plan() writes behind plan_bytes(). */
#define FIELDS .plan_bytes = plan_bytes, .plan = make_plan
#include "fd.h"
static size_t plan_bytes(const fd_problem *p, const fd_machine *m)
{
    (void)p, (void)m;
    return sizeof(fd_plan) + 4;
}
static fd_status make_plan(const fd_problem *p, const fd_machine *m, fd_plan *plan)
{
    (void)m;
    *plan = (fd_plan){.size = sizeof(fd_plan) + 4, .num_splits = 1, .split_size = p->kv_capacity};
    ((volatile int32_t *)(plan + 1))[1] = 1;
    return FD_OK;
}
#include "plugin.h"
