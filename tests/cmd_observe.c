/* cmd_observe.c: `flashdecode observe`, the command around the three questions of observe.h. */
#include <inttypes.h>
#include <stdio.h>

#include "commands.h"
#include "ladder.h"
#include "observe.h"

#ifdef FD_GPU

#define SECONDS 0.1
#define FLOOR_SECONDS 0.03

/* ---- What the questions have in common --------------------------------------------------------- */

fd_status fd_observe_add(fd_observation *s, const char *rows, char *why, size_t n)
{
    const fd_status status = s->csv.file != NULL ? fd_resume_add(&s->csv, rows, why, n) : FD_OK;
    s->unwritable |= status != FD_OK;
    return status;
}

bool fd_observe_has(const fd_observation *s, const char *key)
{
    return s->csv.file != NULL && fd_resume_has(&s->csv, key);
}

fd_status fd_observe_lengths(fd_observation *s, fd_observe_visit *visit, void *data, char *why, size_t n)
{
    fd_status status = FD_OK;
    for (int i = 0; i < s->options->num_kv_lens && status == FD_OK; i++) {
        fd_bench_shape shape = s->options->shape;
        fd_point x;
        shape.kv_len = s->options->kv_lens[i];
        status = fd_point_make(s->gpu, &shape, &x, why, n);
        if (status != FD_OK) {
            return status;
        }
        status = fd_point_floor(&x, FLOOR_SECONDS, &s->floor_ns, why, n);
        status = status == FD_OK ? visit(s, &x, data, why, n) : status;
        fd_point_free(&x);
    }
    return status;
}

typedef struct each_rung {
    fd_observe_step *visit;
    void *data;
} each_rung;

static fd_status visit_rung(fd_observation *s, const each_rung *each, fd_point *x, const fd_rung *rung, int64_t request,
                            char *why, size_t n)
{
    const fd_bench_shape *c = &s->options->shape;
    char key[160];
    snprintf(key, sizeof key,
             "%" PRId32 ",gpu,%s,%s,%s,%" PRId32 ",%" PRId32 ",%" PRId32 ",%" PRId32 ",1,%" PRId64 ",%" PRId64 ",",
             rung->number, fd_dtype_name(c->dtype_q), fd_dtype_name(c->dtype_kv), fd_dtype_name(c->dtype_o), c->batch,
             c->heads_q, c->heads_kv, c->head_dim, x->problem.kv_capacity, request);
    if (fd_observe_has(s, key)) {
        return FD_OK;
    }
    fd_status status = fd_point_begin(x, rung, (int32_t)request, why, n);
    status = status == FD_OK ? each->visit(s, x, key, request, each->data, why, n) : status;
    if (status != FD_OK && !s->unwritable) {
        s->skipped += status == FD_UNSUPPORTED;
        s->failed += status != FD_UNSUPPORTED;
        printf("%02" PRId32 " %s, %" PRId64 " keys, %" PRId64 " splits: %s: %s\n", rung->number, rung->name,
               x->problem.kv_capacity, request, status == FD_UNSUPPORTED ? "skipped" : "FAILED", why);
        status = FD_OK;
    } else {
        s->done++;
    }
    fflush(stdout);
    fd_point_end(x);
    return status;
}

static fd_status visit_rungs(fd_observation *s, fd_point *x, void *data, char *why, size_t n)
{
    const fd_observe_options *o = s->options;
    fd_status status = FD_OK;
    for (int r = 0; r < fd_ladder_count && status == FD_OK; r++) {
        const bool wanted = !fd_runs_on_host(fd_ladder[r]) && fd_in_list(o->rungs, o->num_rungs, fd_ladder[r]->number);
        for (int k = 0; k < o->num_splits && status == FD_OK && wanted; k++) {
            status = visit_rung(s, (const each_rung *)data, x, fd_ladder[r], o->splits[k], why, n);
        }
    }
    return status;
}

fd_status fd_observe_rungs(fd_observation *s, fd_observe_step *visit, void *data, char *why, size_t n)
{
    each_rung each = {visit, data};
    return fd_observe_lengths(s, visit_rungs, &each, why, n);
}

/* ---- The command ------------------------------------------------------------------------------- */

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
    if (!fd_some_cuda_rung("observe", options.rungs, options.num_rungs)) {
        return FD_EXIT_NOTHING;
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
