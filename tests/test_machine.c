/* test_machine.c: the machine record, result files, quantiles, the read floor and the bench's own checks. */
#define _POSIX_C_SOURCE 200809L

#include <criterion/criterion.h>
#include <errno.h>

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "csv.h"
#include "ladder.h"
#include "machine.h"
#include "read_floor.h"

static char *const no_arguments[] = {NULL};

Test(machine, id_is_of_hardware_and_toolchain_only)
{
    fd_machine_record a, b;
    fd_machine_record_read(&a, "flashdecode", 0, no_arguments);
    setenv("FD_COMMIT", "abc1234", 1);
    fd_machine_record_read(&b, "other", 0, no_arguments);
    cr_assert_str_eq(a.machine_id, b.machine_id);
    cr_assert_eq(strspn(a.machine_id, "0123456789abcdef"), 8);
    cr_assert_str_eq(b.commit, "abc1234");

    snprintf(b.date, sizeof b.date, "1999-12-31T00:00:00Z");
    snprintf(b.system, sizeof b.system, "Other 1.0");
    b.memory_bytes += 1 << 20; /* what the kernel reserves */
    fd_machine_identify(&b);
    cr_assert_str_eq(a.machine_id, b.machine_id);

    snprintf(b.processor, sizeof b.processor, "another processor");
    fd_machine_identify(&b);
    cr_assert_str_neq(a.machine_id, b.machine_id);
    b = a;
    snprintf(b.flags, sizeof b.flags, "-O3 -ffast-math");
    fd_machine_identify(&b);
    cr_assert_str_neq(a.machine_id, b.machine_id);
}

Test(machine, record_is_complete_and_one_line_a_field)
{
    fd_machine_record r;
    char text[8192] = "", *const arguments[] = {"bench", "--csv", "a\nb", NULL};
    fd_machine_record_read(&r, "flashdecode", 3, arguments);
    cr_assert_str_eq(r.command, "flashdecode bench --csv a b");
    cr_assert_gt(r.cores, 0);
    cr_assert_gt(strlen(r.processor), 0);
    cr_assert_eq(strlen(r.date), strlen("2000-01-01T00:00:00Z"));

    FILE *file = tmpfile();
    fd_machine_record_write(&r, file, "# ");
    rewind(file);
    int lines = 0;
    while (fgets(text, sizeof text, file) != NULL) {
        lines++;
        cr_assert(strncmp(text, "# ", 2) == 0 && strstr(text, ": ") != NULL, "line: %s", text);
    }
    fclose(file);
    cr_assert_eq(lines, 12);
    cr_assert_gt(fd_memory_available(), 0);
}

Test(machine, fnv_is_the_published_function)
{
    cr_assert_eq(fd_fnv(FD_FNV_BEGIN, "", 0), 0xcbf29ce484222325u);
    cr_assert_eq(fd_fnv(FD_FNV_BEGIN, "foobar", 6), 0x85944171f73967e8u);
}

/* A fresh folder, removed with remove_folder. */
static void make_folder(char *folder)
{
    strcpy(folder, "/tmp/fd_test_XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
}

static void read_text(const char *path, char *text, size_t n)
{
    FILE *file = fopen(path, "r");
    cr_assert_not_null(file, "%s is missing", path);
    text[fread(text, 1, n - 1, file)] = '\0';
    fclose(file);
}

Test(csv, appears_complete_or_not_at_all)
{
    char folder[32], path[64], why[1280], text[256];
    fd_csv csv;
    make_folder(folder);
    snprintf(path, sizeof path, "%s/out.csv", folder);
    cr_assert_eq(fd_csv_open(&csv, path, why, sizeof why), FD_OK);
    fd_csv_field(csv.file, "plain");
    fputc(',', csv.file);
    fd_csv_field(csv.file, "a,\"b\"");
    cr_assert_neq(access(path, F_OK), 0, "visible before it is complete");
    cr_assert_eq(fd_csv_commit(&csv, why, sizeof why), FD_OK);
    read_text(path, text, sizeof text);
    cr_assert_str_eq(text, "plain,\"a,\"\"b\"\"\"");

    cr_assert_eq(fd_csv_open(&csv, path, why, sizeof why), FD_OK);
    fputs("half", csv.file);
    fd_csv_discard(&csv);
    read_text(path, text, sizeof text);
    cr_assert_eq(text[0], 'p', "a discarded file replaced the old one");
    unlink(path);
    cr_assert_eq(rmdir(folder), 0, "a temporary file was left behind");
}

Test(csv, a_disk_that_is_full_is_an_error_and_keeps_the_old_file)
{
    char folder[32], path[64], why[1280], text[256];
    fd_csv csv;
    make_folder(folder);
    snprintf(path, sizeof path, "%s/out.csv", folder);
    cr_assert_eq(fd_csv_open(&csv, path, why, sizeof why), FD_OK);
    fputs("old", csv.file);
    cr_assert_eq(fd_csv_commit(&csv, why, sizeof why), FD_OK);

    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    const struct rlimit tiny = {.rlim_cur = 1000, .rlim_max = limit.rlim_max};
    setrlimit(RLIMIT_FSIZE, &tiny);
    cr_assert_eq(fd_csv_open(&csv, path, why, sizeof why), FD_OK);
    for (int i = 0; i < 2000; i++) {
        fputs("many bytes ", csv.file);
    }
    errno = ENOTTY; /* of whatever came after the write that failed */
    const fd_status status = fd_csv_commit(&csv, why, sizeof why);
    setrlimit(RLIMIT_FSIZE, &limit);
    cr_assert_eq(status, FD_INVALID);
    cr_assert(strstr(why, "cannot write") != NULL && strstr(why, path) != NULL && strchr(why, '\n') == NULL, "%s", why);
    cr_expect_not_null(strstr(why, "is the disk full?"), "%s", why);
    read_text(path, text, sizeof text);
    cr_assert_str_eq(text, "old");
    unlink(path);
    cr_assert_eq(rmdir(folder), 0, "a temporary file was left behind");
}

/* A pipe in a folder of our own stands for every device: broken code run as root must not replace /dev/null. */
Test(csv, pipes_are_written_in_place_and_folders_refused)
{
    char folder[32], path[64], why[1280], text[8] = "";
    struct stat status;
    fd_csv csv;
    make_folder(folder);
    snprintf(path, sizeof path, "%s/pipe", folder);
    cr_assert_eq(mkfifo(path, 0600), 0);
    const int reader = open(path, O_RDONLY | O_NONBLOCK);
    cr_assert_eq(fd_csv_open(&csv, path, why, sizeof why), FD_OK);
    fputs("x", csv.file);
    cr_assert_eq(fd_csv_commit(&csv, why, sizeof why), FD_OK);
    cr_expect(stat(path, &status) == 0 && S_ISFIFO(status.st_mode), "the pipe was replaced");
    cr_expect(read(reader, text, sizeof text) == 1 && text[0] == 'x');
    close(reader);

    cr_expect_eq(fd_csv_open(&csv, folder, why, sizeof why), FD_INVALID);
    unlink(path);
    cr_assert_eq(rmdir(folder), 0, "a temporary file was left behind");
    cr_assert_eq(fd_csv_open(&csv, path, why, sizeof why), FD_INVALID);
    cr_assert_not_null(strstr(why, path));
}

Test(bench, quantiles)
{
    double x[] = {5.0, 1.0, 4.0, 2.0, 3.0};
    fd_sort(x, 5);
    cr_assert_eq(fd_quantile(x, 5, 0.0), 1.0);
    cr_assert_eq(fd_quantile(x, 5, 0.25), 2.0);
    cr_assert_eq(fd_quantile(x, 5, 0.5), 3.0);
    cr_assert_eq(fd_quantile(x, 5, 1.0), 5.0);
    cr_assert_eq(fd_quantile(x, 4, 0.5), 2.5);
    cr_assert_eq(fd_quantile(x, 4, 0.75), 3.25);
    cr_assert_eq(fd_quantile(x, 1, 0.75), 1.0);
}

Test(bench, the_floor_reads_every_byte)
{
    enum { BYTES = 3001 };
    static unsigned char data[BYTES + 8];
    for (int32_t threads = 1; threads <= 3; threads++) {
        for (size_t i = 0; i < BYTES; i++) { /* one byte set: any load left out shows */
            memset(data, 0, sizeof data);
            data[1 + i] = 1;
            cr_assert_neq(fd_read_sum(data + 1, BYTES, threads), 0, "byte %zu, %" PRId32 " threads", i, threads);
        }
        memset(data, 1, sizeof data); /* 375 words and a byte; any load done twice shows */
        cr_assert_eq(fd_read_sum(data + 1, BYTES, threads), 375 * UINT64_C(0x0101010101010101) + 1);
        cr_assert_eq(fd_read_sum(data, 0, threads), 0);
    }
}

static const fd_bench_shape small = {FD_F32, FD_BF16, FD_F32, 2, 8, 2, 64, 100};

Test(bench, sizes_and_bytes)
{
    char why[256];
    fd_bench_data data;
    cr_assert_eq(fd_bench_create(&data, &small, why, sizeof why), FD_OK, "%s", why);
    cr_assert_eq(fd_check_problem(&data.problem, why, sizeof why), FD_OK, "%s", why);
    const int64_t kv = 2 * 2 * 2 * 100 * 64 * 2, q_and_o = 2 * 2 * 8 * 64 * 4, lse = 2 * 8 * 4;
    cr_assert_eq(data.kv_bytes, kv / 2);
    cr_assert_eq(data.bytes, kv + q_and_o + lse);
    cr_assert_eq(fd_kv_at(&data.problem, &data.problem.k, 1, 99, 1) + 64, 2 * 2 * 100 * 64);
    fd_bench_free(&data);
}

Test(bench, impossible_sizes_are_refused_by_name)
{
    char why[256];
    fd_bench_data data = {.kv_bytes = 0};
    fd_bench_shape shape = small;
    shape.kv_len = INT32_MAX;
    shape.batch = 1 << 20;
    cr_assert_eq(fd_bench_create(&data, &shape, why, sizeof why), FD_NO_MEMORY);
    cr_assert_not_null(strstr(why, "2147483647"));
    shape.batch = shape.heads_q = shape.heads_kv = shape.head_dim = INT32_MAX; /* overflows 64 bits */
    cr_assert_eq(fd_bench_kv_bytes(&shape), -1);
    cr_assert_eq(fd_bench_create(&data, &shape, why, sizeof why), FD_NO_MEMORY);
    shape = small;
    shape.heads_kv = 3;
    cr_assert_eq(fd_bench_create(&data, &shape, why, sizeof why), FD_INVALID);
    cr_assert_not_null(strstr(why, "heads_kv"));
    shape = small;
    shape.kv_len = 0;
    cr_assert_eq(fd_bench_create(&data, &shape, why, sizeof why), FD_INVALID);
}

Test(bench, every_rung_is_timed_or_says_why_not)
{
    enum { MANY = 64 };
    char why[256];
    fd_bench_data data;
    fd_bench_point points[MANY];
    cr_assert_eq(fd_bench_create(&data, &small, why, sizeof why), FD_OK);
    for (int i = 0; i < fd_ladder_cpu_count; i++) {
        points[i] = (fd_bench_point){.rung = fd_ladder[i], .threads = 1 + i % 2};
    }
    fd_bench_run(&data, points, fd_ladder_cpu_count, 0, 0.001);
    for (int i = 0; i < fd_ladder_cpu_count; i++) {
        const fd_bench_point x = points[i];
        cr_assert(x.status == FD_OK ? x.ns_median > 0.0 : strlen(x.why) > 0);
        cr_assert(x.status != FD_OK || (x.repeats >= 5 && x.ns_p25 <= x.ns_median && x.ns_median <= x.ns_p75));
        cr_assert(x.status != FD_OK || x.floor_ns > 0.0);
    }
    fd_bench_free(&data);
}

/* The order in which two rungs are run; each adds its digit. */
static char turns[64];

static fd_status first_turn(const fd_problem *problem, const fd_context *context)
{
    (void)problem, (void)context;
    strcat(turns, "1");
    return FD_OK;
}

static fd_status second_turn(const fd_problem *problem, const fd_context *context)
{
    (void)problem, (void)context;
    strcat(turns, "2");
    return FD_OK;
}

Test(bench, rungs_take_turns_so_that_drift_meets_them_all)
{
    char why[256];
    fd_bench_data data;
    cr_assert_eq(fd_bench_create(&data, &small, why, sizeof why), FD_OK);
    fd_rung one = *fd_ladder[0], two = *fd_ladder[0];
    one.run = first_turn;
    two.run = second_turn;
    fd_bench_point points[] = {{.rung = &one, .threads = 1}, {.rung = &two, .threads = 1}};
    fd_bench_run(&data, points, 2, 4, 0.0);
    cr_assert_str_eq(turns, "12" /* warm-up */ "12211221");
    cr_assert(points[0].repeats == 4 && points[1].repeats == 4);
    fd_bench_free(&data);
}

Test(bench, a_rung_is_threaded_if_its_plan_says_so)
{
    char why[256];
    fd_bench_data data;
    cr_assert_eq(fd_bench_create(&data, &small, why, sizeof why), FD_OK);
    cr_assert_not(fd_bench_threaded(&data.problem, fd_ladder_find(1)));
    cr_assert_not(fd_bench_threaded(&data.problem, fd_ladder_find(5)));
    cr_assert(fd_bench_threaded(&data.problem, fd_ladder_find(6)));
    fd_bench_free(&data);
}

static fd_status refuse_all(const fd_problem *problem, char *why, size_t n)
{
    (void)problem;
    snprintf(why, n, "takes nothing");
    return FD_UNSUPPORTED;
}

static fd_status fail(const fd_problem *problem, const fd_context *context)
{
    (void)problem, (void)context;
    return FD_DEVICE_ERROR;
}

Test(bench, refusals_and_failures_are_told_apart)
{
    char why[256];
    fd_bench_data data;
    cr_assert_eq(fd_bench_create(&data, &small, why, sizeof why), FD_OK);
    fd_rung rung = *fd_ladder[0];
    rung.supports = refuse_all;
    fd_bench_point x = {.rung = &rung, .threads = 1};
    fd_bench_run(&data, &x, 1, 5, 0.0);
    cr_assert(x.status == FD_UNSUPPORTED && !x.failed);
    cr_assert_not_null(strstr(x.why, "takes nothing"));
    rung.supports = NULL;
    rung.run = fail;
    fd_bench_run(&data, &x, 1, 5, 0.0);
    cr_assert(x.status == FD_DEVICE_ERROR && x.failed);
    fd_bench_free(&data);
}
