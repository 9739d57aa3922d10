/* cmd_emulate.c: `flashdecode emulate`: CUDA rungs compiled with hooks, on the emulator: faults, counts, and the same bits in
 * every schedule. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "commands.h"
#include "csv.h"
#include "emulate.h"
#include "emulate_options.h"
#include "ladder.h"
#include "machine.h"

static const char *const schedules[FD_EMU_NUM_SCHEDULES] = {"sequential", "reversed", "shuffled"};

typedef struct session {
    fd_emulate_options options;
    fd_machine_record machine;
    FILE *table, *csv; /* csv NULL: none */
    fd_emulation emulation;
    void *o, *lse, *first_o, *first_lse; /* as stored; of the first schedule */
    int64_t passed, failed, skipped;
} session;

/* ---- Printing ---- */

static void print_size(FILE *f, int64_t bytes)
{
    if (bytes < 10240) {
        fprintf(f, "%" PRId64 " bytes", bytes);
    } else if (bytes < (int64_t)10 << 20) {
        fprintf(f, "%.1f KiB", (double)bytes / 1024.0);
    } else {
        fprintf(f, "%.1f MiB", (double)bytes / 1048576.0);
    }
}

static void print_global(FILE *f, const char *what, int64_t requests, int64_t sectors, int64_t bytes, int64_t distinct)
{
    if (requests == 0 && bytes == 0) {
        return;
    }
    fprintf(f, "     global %s %8" PRId64 " requests", what, requests);
    if (requests > 0) {
        fprintf(f, " x %4.1f sectors", (double)sectors / (double)requests);
    }
    fprintf(f, ", ");
    print_size(f, bytes);
    if (distinct > 0) {
        fprintf(f, ", each byte %.1fx", (double)bytes / (double)distinct);
    }
    fprintf(f, "\n");
}

static void print_shared(FILE *f, const char *what, int64_t requests, int64_t wavefronts, int64_t ideal)
{
    if (requests == 0) {
        return;
    }
    fprintf(f, "     shared %s %8" PRId64 " requests, %" PRId64 " wavefronts, %.2f of the ideal\n", what, requests,
            wavefronts, (double)wavefronts / (double)ideal);
}

static void print_counts(FILE *f, const fd_emu_counters *c)
{
    fprintf(f, "   %s: %" PRId64 " launch%s, %" PRId64 " blocks, %" PRId64 " threads\n", c->kernel, c->launches,
            c->launches == 1 ? "" : "es", c->blocks, c->threads);
    print_global(f, "loads ", c->global_loads, c->global_load_sectors, c->global_load_bytes, c->global_load_distinct);
    print_global(f, "stores", c->global_stores, c->global_store_sectors, c->global_store_bytes,
                 c->global_store_distinct);
    print_shared(f, "loads ", c->shared_loads, c->shared_load_wavefronts, c->shared_load_ideal);
    print_shared(f, "stores", c->shared_stores, c->shared_store_wavefronts, c->shared_store_ideal);
    fprintf(f, "     %" PRId64 " barriers, %" PRId64 " warp barriers, %" PRId64 " shuffles and votes", c->barriers,
            c->warp_syncs, c->shuffles);
    if (c->atomics + c->fences > 0) {
        fprintf(f, ", %" PRId64 " atomics, %" PRId64 " fences", c->atomics, c->fences);
    }
    fprintf(f, "\n");
    if (c->uncounted > 0) {
        fprintf(f, "     %" PRId64 " accesses are NOT counted: too many between barriers\n", c->uncounted);
    }
}

static const char csv_head[] =
    "rung,where,dtype_q,dtype_kv,dtype_o,batch,heads_q,heads_kv,head_dim,q_len,kv_len,num_splits,name,case,schedule,"
    "kernel,launches,blocks,threads,barriers,warp_syncs,shuffles,fences,atomics,global_loads,global_load_sectors,"
    "global_load_bytes,global_load_distinct,global_stores,global_store_sectors,global_store_bytes,"
    "global_store_distinct,shared_loads,shared_load_wavefronts,shared_load_ideal,shared_stores,"
    "shared_store_wavefronts,shared_store_ideal,uncounted,commit,machine_id\n";

static void csv_row(const session *s, const fd_rung *rung, int32_t num_splits, const fd_emu_counters *c)
{
    const fd_problem *p = &s->emulation.problem;
    const int64_t counts[] = {c->launches,
                              c->blocks,
                              c->threads,
                              c->barriers,
                              c->warp_syncs,
                              c->shuffles,
                              c->fences,
                              c->atomics,
                              c->global_loads,
                              c->global_load_sectors,
                              c->global_load_bytes,
                              c->global_load_distinct,
                              c->global_stores,
                              c->global_store_sectors,
                              c->global_store_bytes,
                              c->global_store_distinct,
                              c->shared_loads,
                              c->shared_load_wavefronts,
                              c->shared_load_ideal,
                              c->shared_stores,
                              c->shared_store_wavefronts,
                              c->shared_store_ideal,
                              c->uncounted};
    FILE *f = s->csv;
    fprintf(f, "%" PRId32 ",emu,%s,%s,%s,", rung->number, fd_dtype_name(p->q.dtype), fd_dtype_name(p->k.dtype),
            fd_dtype_name(p->o.dtype));
    fprintf(f, "%" PRId32 ",%" PRId32 ",%" PRId32 ",%" PRId32 ",%" PRId32 ",%" PRId32 ",%" PRId32 ",", p->batch,
            p->heads_q, p->heads_kv, p->head_dim, p->q_len, s->options.c.kv_len, num_splits);
    fd_csv_field(f, rung->name);
    fputc(',', f);
    fd_csv_field(f, s->options.c.name);
    fprintf(f, ",%s,%s", schedules[s->options.emulator.schedule], c->kernel);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        fprintf(f, ",%" PRId64, counts[i]);
    }
    fputc(',', f);
    fd_csv_field(f, s->machine.commit);
    fprintf(f, ",%s\n", s->machine.machine_id);
}

/* ---- Running ---- */

static void print_faults(const session *s, int32_t schedule)
{
    const fd_emu_report *reports;
    char line[512];
    const int count = fd_emu_reports(&reports);
    for (int i = 0; i < count; i++) {
        fd_emu_describe(&reports[i], line, sizeof line);
        fprintf(s->table, "   FAULT, %s: %s\n", schedules[schedule], line);
    }
}

/* How many elements of the results still hold the poison that was there before the run. */
static int64_t not_written(const session *s)
{
    const size_t o_element = fd_dtype_bytes(s->emulation.problem.o.dtype);
    const struct {
        const unsigned char *data;
        size_t bytes, element;
    } parts[] = {{s->o, s->emulation.o_bytes, o_element}, {s->lse, s->emulation.lse_bytes, sizeof(float)}};
    unsigned char poison[sizeof(float)];
    int64_t count = 0;
    fd_poison_fill(poison, sizeof poison, FD_POISON_NAN);
    for (int i = 0; i < 2; i++) {
        for (size_t at = 0; at < parts[i].bytes; at += parts[i].element) {
            count += memcmp(parts[i].data + at, poison, parts[i].element) == 0;
        }
    }
    return count;
}

/* Every schedule, the one whose counts are wanted first. */
static void emulate(session *s, const fd_rung *rung)
{
    const fd_emulate_options *a = &s->options;
    char why[512] = "";
    bool failed = false;
    int32_t num_splits = 1;
    fprintf(s->table, "%02" PRId32 " %s\n", rung->number, rung->name);
    for (int32_t i = 0; i < FD_EMU_NUM_SCHEDULES; i++) {
        fd_emu_options options = a->emulator;
        options.schedule = (a->emulator.schedule + i) % FD_EMU_NUM_SCHEDULES;
        fd_emu_configure(&options);
        fd_emu_clear();
        const fd_status status = fd_emulation_run(&s->emulation, rung, s->o, s->lse, &num_splits, why, sizeof why);
        const fd_emu_report *reports;
        const fd_emu_counters *counters;
        const int faults = fd_emu_reports(&reports);
        if (status == FD_UNSUPPORTED && faults == 0) {
            fprintf(s->table, "   skipped: %s\n", why);
            s->skipped++;
            return;
        }
        print_faults(s, options.schedule);
        if (status != FD_OK && faults == 0) {
            fprintf(s->table, "   FAILED, %s: %s\n", schedules[options.schedule], why);
        }
        const int64_t missing = status == FD_OK ? not_written(s) : 0;
        if (missing > 0) {
            fprintf(s->table, "   FAILED, %s: %" PRId64 " elements of o and lse were not written\n",
                    schedules[options.schedule], missing);
        }
        failed |= status != FD_OK || faults > 0 || missing > 0;
        if (i == 0) {
            const int kernels = fd_emu_counts(&counters);
            for (int k = 0; k < kernels; k++) {
                print_counts(s->table, &counters[k]);
                if (s->csv != NULL) {
                    csv_row(s, rung, num_splits, &counters[k]);
                }
            }
            memcpy(s->first_o, s->o, s->emulation.o_bytes);
            memcpy(s->first_lse, s->lse, s->emulation.lse_bytes);
        } else if (!failed && (memcmp(s->o, s->first_o, s->emulation.o_bytes) != 0 ||
                               memcmp(s->lse, s->first_lse, s->emulation.lse_bytes) != 0)) {
            fprintf(s->table, "   FAILED: other bits in the %s schedule than in the %s one\n",
                    schedules[options.schedule], schedules[a->emulator.schedule]);
            failed = true;
        }
    }
    s->failed += failed;
    s->passed += !failed;
    fprintf(s->table, failed ? "   FAILED\n" : "   no fault; o and lse have the same bits in all three schedules\n");
}

static void print_head(const session *s)
{
    const fd_case *c = &s->options.c;
    char letters[4];
    fprintf(s->table, "EMULATED: correctness and counts only, no time. Memory is sequentially\n"
                      "consistent: a missing __threadfence() is not found. A GPU's bits may differ.\n");
    fprintf(s->table,
            "case %s\n"
            "batch %" PRId32 ", heads %" PRId32 ":%" PRId32 ", head_dim %" PRId32 ", kv_len %" PRId32 ", %s, %s\n"
            "planned for %" PRId32 " multiprocessors\n"
            "counts of the %s schedule; request: an instruction of a warp\n",
            c->name, c->batch, c->heads_q, c->heads_kv, c->head_dim, c->kv_len, fd_dtype_letters(c, letters),
            s->options.padded ? "padded" : "dense", s->options.emulator.num_units,
            schedules[s->options.emulator.schedule]);
}

static fd_status run_all(session *s, char *why, size_t n)
{
    fd_instance instance;
    fd_status status = fd_instance_create(&instance, &s->options.c, why, n);
    if (status != FD_OK) {
        return status;
    }
    status = fd_emulation_create(&s->emulation, &instance, s->options.padded, why, n);
    if (status != FD_OK) {
        fd_instance_free(&instance);
        return status;
    }
    void **const buffers[] = {&s->o, &s->first_o, &s->lse, &s->first_lse};
    for (int i = 0; i < 4 && status == FD_OK; i++) {
        const size_t bytes = i < 2 ? s->emulation.o_bytes : s->emulation.lse_bytes;
        *buffers[i] = malloc(bytes);
        if (*buffers[i] == NULL) {
            snprintf(why, n, "no memory for %zu bytes of results", bytes);
            status = FD_NO_MEMORY;
        }
    }
    for (int i = 0; i < fd_ladder_count && status == FD_OK; i++) {
        const fd_rung *rung = fd_hooked_find(fd_ladder[i]->number);
        if (rung != NULL && fd_in_list(s->options.rungs, s->options.num_rungs, rung->number)) {
            emulate(s, rung);
        }
    }
    for (int i = 0; i < 4; i++) {
        free(*buffers[i]);
    }
    fd_emulation_free(&s->emulation);
    fd_instance_free(&instance);
    return status;
}

int fd_cmd_emulate(int argc, char **argv)
{
    session s = {.passed = 0};
    fd_csv csv = {.file = NULL};
    char why[1280];
    int code = fd_emulate_parse(argc, argv, &s.options);
    if (code >= 0) {
        return code;
    }
    const char *path = s.options.csv;
    if (path != NULL && fd_csv_open(&csv, path, why, sizeof why) != FD_OK) {
        goto done;
    }
    s.csv = csv.file;
    s.table = csv.file != NULL && strcmp(path, "-") == 0 ? stderr : stdout;
    fd_machine_record_read(&s.machine, "flashdecode", argc, argv);
    if (s.csv != NULL) {
        fd_machine_record_write(&s.machine, s.csv, "# ");
        fputs(csv_head, s.csv);
    }
    print_head(&s);
    if (run_all(&s, why, sizeof why) != FD_OK) {
        goto done;
    }
    fprintf(s.table, "%" PRId64 " passed, %" PRId64 " failed, %" PRId64 " skipped\n", s.passed, s.failed, s.skipped);
    if (s.csv == NULL || fd_csv_commit(&csv, why, sizeof why) == FD_OK) {
        code = fd_exit_code(s.passed, s.failed);
    }

done:
    if (code < 0) {
        fprintf(stderr, "flashdecode emulate: %s\n", why);
        code = FD_EXIT_USAGE;
    }
    fd_csv_discard(&csv);
    return code;
}
