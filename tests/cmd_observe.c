/* cmd_observe.c: `flashdecode observe`, the command around the three questions of observe.h. */
#include <inttypes.h>
#include <stdio.h>

#include "commands.h"
#include "ladder.h"
#include "observe.h"
#include "point_gpu.h"

void fd_observe_key(const fd_rung *rung, const fd_bench_shape *c, int64_t request, char *key, size_t n)
{
    snprintf(key, n,
             "%" PRId32 ",gpu,%s,%s,%s,%" PRId32 ",%" PRId32 ",%" PRId32 ",%" PRId32 ",1,%" PRId64 ",%" PRId64 ",",
             rung->number, fd_dtype_name(c->dtype_q), fd_dtype_name(c->dtype_kv), fd_dtype_name(c->dtype_o), c->batch,
             c->heads_q, c->heads_kv, c->head_dim, c->kv_len, request);
}

bool fd_observe_wants(const fd_observation *x, const fd_rung *rung)
{
    return !fd_runs_on_host(rung) && fd_in_list(x->options->rungs, x->options->num_rungs, rung->number);
}

bool fd_observe_has(const fd_observation *x, const char *key)
{
    return x->csv.file != NULL && fd_resume_has(&x->csv, key);
}

#ifdef FD_GPU

#define SECONDS 0.1

static fd_status begin(fd_observation *x, int argc, char **argv, char *why, size_t n)
{
    static const char *const heads[] = {fd_observe_sms_head, fd_observe_splits_head, fd_observe_blocks_head};
    const fd_observe_options *o = x->options;
    char id[64];
    for (int i = 0; i < o->num_kv_lens; i++) {
        fd_bench_shape shape = o->shape;
        shape.kv_len = o->kv_lens[i];
        if (fd_bench_kv_bytes(&shape) < 0) {
            snprintf(why, n, "K and V must fit 2^63 bytes");
            return FD_INVALID;
        }
    }
    fd_point_machine(x->gpu, &x->machine, argc, argv);
    const fd_status status = o->csv != NULL ? fd_resume_open(&x->csv, o->csv, heads[o->what], why, n) : FD_OK;
    if (status != FD_OK) {
        return status;
    }
    snprintf(id, sizeof id, "# machine_id: %s\n", x->machine.machine_id);
    if (x->csv.file != NULL && !fd_resume_has(&x->csv, id)) {
        fd_machine_record_write(&x->machine, x->csv.file, "# ");
    }
    return fd_point_launch(SECONDS, &x->launch_ns, why, n);
}

int fd_cmd_observe(int argc, char **argv)
{
    static fd_status (*const ask[])(fd_observation *, char *, size_t) = {fd_observe_sms, fd_observe_splits,
                                                                         fd_observe_blocks};
    fd_observe_options options;
    char why[1280] = "";
    int code = fd_observe_parse(argc, argv, &options);
    if (code >= 0) {
        return code;
    }
    fd_observation x = {.options = &options, .gpu = fd_device_gpu(why, sizeof why)};
    if (x.gpu == NULL) {
        fprintf(stderr, "flashdecode observe: %s\n", why);
        return FD_EXIT_NOTHING;
    }
    fd_status status = begin(&x, argc, argv, why, sizeof why);
    if (status == FD_OK) {
        printf("%s, machine %s; an empty kernel takes %.2f us\n", x.machine.processor, x.machine.machine_id,
               x.launch_ns * 1e-3);
        status = ask[options.what](&x, why, sizeof why);
        printf("%" PRId64 " observed, %" PRId64 " skipped, %" PRId64 " failed\n", x.done, x.skipped, x.failed);
    }
    code = x.done + x.failed == 0 && x.skipped == 0 ? FD_EXIT_PASS : fd_exit_code(x.done, x.failed);
    if (status != FD_OK) {
        fprintf(stderr, "flashdecode observe: %s\n", why);
        code = status == FD_NO_DEVICE ? FD_EXIT_NOTHING : FD_EXIT_USAGE;
    }
    fd_resume_close(&x.csv);
    return code;
}

#else

int fd_cmd_observe(int argc, char **argv)
{
    fd_observe_options options;
    const int code = fd_observe_parse(argc, argv, &options);
    if (code >= 0) {
        return code;
    }
    fprintf(stderr, "flashdecode observe: no GPU code in this program; make gpu builds build/gpu/flashdecode\n");
    return FD_EXIT_NOTHING;
}

#endif
