/* test_oracle_cache.c: an answer from the disk is the oracle's, bit for bit, or is not taken. */
#define _POSIX_C_SOURCE 200809L /* mkdtemp, fork, setenv */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands.h"
#include "judge.h"
#include "ladder.h"
#include "oracle_cache.h"
#include "oracle_fast.h"

/* ---- A folder, an instance, a row -------------------------------------------------------------- */

static char folder[64]; /* of this test, which has a process of its own; removed with its files at the end */

static void make_folder(void)
{
    strcpy(folder, "/tmp/fd-oracle-cache-XXXXXX");
    cr_assert(mkdtemp(folder) != NULL);
}

/* Calls visit for every file in the folder, with its path; returns how many there are. */
static int each_file(void (*visit)(const char *path))
{
    int count = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        char path[400];
        if (e->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
            count++;
            if (visit != NULL) {
                visit(path);
            }
        }
    }
    if (d != NULL) {
        closedir(d);
    }
    return count;
}

static void remove_file(const char *path)
{
    unlink(path);
}

static void remove_folder(void)
{
    each_file(remove_file);
    rmdir(folder);
}

TestSuite(oracle_cache, .init = make_folder, .fini = remove_folder);

static fd_case a_case(const char *family, int32_t kv_len)
{
    fd_case c = {.batch = 1,
                 .heads_q = 4,
                 .heads_kv = 2,
                 .head_dim = 16,
                 .head_dim_v = 24,
                 .kv_lens = {kv_len},
                 .kv_len = kv_len,
                 .split_size = 64,
                 .seed = 11};
    snprintf(c.name, sizeof c.name, "oracle cache %s %d", family, kv_len);
    snprintf(c.family, sizeof c.family, "%s", family);
    return c;
}

static fd_instance instance(const fd_case *c)
{
    fd_instance x;
    char why[200] = "";
    cr_assert_eq(fd_instance_create(&x, c, why, sizeof why), FD_OK, "%s", why);
    return x;
}

/* Row h by way of the cache, or of the oracle alone. */
static fd_oracle_row row_of(fd_oracle_cache *cache, const fd_problem *p, int32_t h)
{
    fd_oracle_row row;
    char why[200] = "";
    cr_assert_eq(fd_oracle_row_init(&row, p->kv_capacity, p->head_dim_v), FD_OK);
    const fd_status status = cache != NULL ? fd_oracle_cached(cache, p, 0, 0, h, &row, why, sizeof why)
                                           : fd_oracle_fast(p, 0, 0, h, &row, why, sizeof why);
    cr_assert_eq(status, FD_OK, "%s", why);
    return row;
}

static bool same(const fd_oracle_row *x, const fd_oracle_row *y)
{
    const size_t keys = (size_t)x->kv_len * sizeof(double), values = 8 * (size_t)x->head_dim_v * sizeof(double);
    const double a[] = {x->lse, x->lse_lo, x->lse_radius, x->s_max, x->a_max, x->gap_max};
    const double b[] = {y->lse, y->lse_lo, y->lse_radius, y->s_max, y->a_max, y->gap_max};
    return x->kv_len == y->kv_len && x->head_dim_v == y->head_dim_v && memcmp(a, b, sizeof a) == 0 &&
           memcmp(x->gap, y->gap, keys) == 0 && memcmp(x->a, y->a, keys) == 0 && memcmp(x->p, y->p, keys) == 0 &&
           memcmp(x->o, y->o, values) == 0;
}

/* Asks for row h and compares with the oracle; was it found? */
static bool found(fd_oracle_cache *cache, const fd_problem *p, int32_t h)
{
    const int64_t before = cache->found;
    fd_oracle_row got = row_of(cache, p, h), want = row_of(NULL, p, h);
    cr_assert(same(&got, &want), "the cache's row is not the oracle's");
    fd_oracle_row_free(&got);
    fd_oracle_row_free(&want);
    return cache->found > before;
}

/* ---- Bit for bit ------------------------------------------------------------------------------- */

Test(oracle_cache, a_second_run_finds_every_row_and_the_same_bits)
{
    const fd_case c = a_case("gaussian", 200);
    fd_instance x = instance(&c);
    for (int run = 0; run < 2; run++) { /* as two processes would */
        fd_oracle_cache cache;
        fd_oracle_cache_open(&cache, folder, FD_ORACLE_CACHE_BYTES);
        for (int32_t h = 0; h < c.heads_q; h++) {
            cr_assert_eq(found(&cache, &x.problem, h), run == 1, "run %d, h %d", run, h);
        }
    }
    cr_assert_eq(each_file(NULL), c.heads_q, "one file a row, and nothing else");
    fd_instance_free(&x);
}

static fd_outcome judged(const fd_rung *rung, const fd_case *c)
{
    fd_instance x = instance(c);
    char why[200] = "";
    fd_outcome out;
    const fd_libm_error libm = fd_libm_error_get("/nonexistent/libm_error.csv"); /* assumed, the same everywhere */
    const fd_rounding rounding = fd_host_rounding(&libm);
    cr_assert_eq(fd_judge(&x, &rung, 1, &rounding, &out, why, sizeof why), FD_OK, "%s", why);
    fd_instance_free(&x);
    return out;
}

Test(oracle_cache, verdicts_are_the_same_without_it_with_an_empty_one_and_with_a_full_one)
{
    const char *const families[] = {"gaussian", "peaky", "ragged-spike", "sink"};
    setenv("FD_ORACLE_CACHE", folder, 1);
    fd_oracle_cache *usual = fd_oracle_cache_usual();
    cr_assert_str_eq(usual->folder, folder);
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        fd_case c = a_case(families[f], 300);
        snprintf(c.argument, sizeof c.argument, "%s", f == 1 ? "8" : "");
        fd_outcome out[3];
        for (int way = 0; way < 3; way++) { /* off, cold, warm */
            fd_oracle_cache_open(usual, way == 0 ? "" : folder, FD_ORACLE_CACHE_BYTES);
            out[way] = judged(fd_ladder_find(5), &c);
            cr_assert_eq(usual->found, way == 2 ? c.heads_q : 0);
        }
        for (int way = 1; way < 3; way++) {
            const fd_outcome *a = &out[0], *b = &out[way];
            cr_assert_eq(a->verdict, b->verdict);
            cr_assert_eq(memcmp(a->pass_line, b->pass_line, (size_t)a->elements * sizeof *a->pass_line), 0);
            const double *const x[] = {&a->err_max, &a->bound, &a->ratio, &a->lse_ratio, &a->z_max, &a->z_squares};
            const double *const y[] = {&b->err_max, &b->bound, &b->ratio, &b->lse_ratio, &b->z_max, &b->z_squares};
            for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
                cr_assert_eq(memcmp(x[i], y[i], sizeof(double)), 0, "number %zu of %s", i, families[f]);
            }
        }
        fd_outcomes_free(out, 3);
    }
}

/* ---- The question ------------------------------------------------------------------------------ */

static void name_of(const fd_problem *p, char name[33])
{
    const fd_oracle_row row = {.kv_capacity = p->kv_capacity, .head_dim_v = p->head_dim_v};
    cr_assert(fd_oracle_cache_name(p, 0, 0, 1, &row, name));
}

Test(oracle_cache, any_change_of_what_the_oracle_reads_is_another_question)
{
    const fd_case c = a_case("gaussian", 200);
    fd_instance x = instance(&c);
    fd_problem *p = &x.problem;
    char name[33], other[33];
    name_of(p, name);

    float *const elements[] = {(float *)p->q.data + fd_row_at(&p->q, 0, 0, 1) + 15, /* the last of the query */
                               (float *)p->k.data + fd_kv_at(p, &p->k, 0, 0, 0),    /* the first of the first key */
                               (float *)p->v.data + fd_kv_at(p, &p->v, 0, 199, 0) +
                                   23}; /* the last of the last value */
    for (size_t e = 0; e < sizeof elements / sizeof *elements; e++) {
        const float kept = *elements[e];
        *elements[e] = nextafterf(kept, 10.0f);
        name_of(p, other);
        cr_assert(strcmp(name, other) != 0, "element %zu", e);
        *elements[e] = kept;
    }
    const float scale = p->sm_scale;
    p->sm_scale = nextafterf(scale, 1.0f);
    name_of(p, other);
    cr_assert(strcmp(name, other) != 0, "sm_scale");
    p->sm_scale = scale;

    int32_t *kv_len = p->kv_lens.data;
    (*kv_len)--;
    name_of(p, other);
    cr_assert(strcmp(name, other) != 0, "kv_len");
    (*kv_len)++;

    name_of(p, other);
    cr_assert_str_eq(name, other, "the same question");
    fd_instance_free(&x);
}

Test(oracle_cache, what_the_oracle_does_not_read_is_no_part_of_the_question)
{
    fd_case c = a_case("gaussian", 200);
    fd_instance x = instance(&c);
    char name[33], other[33];
    name_of(&x.problem, name);
    fd_instance_poison(&x, FD_POISON_FINITE);
    name_of(&x.problem, other);
    cr_assert_str_eq(name, other, "poison behind the last key");
    fd_instance_free(&x);

    c.layout = FD_LAYOUT_BHSD; /* the same numbers elsewhere in memory */
    x = instance(&c);
    name_of(&x.problem, other);
    cr_assert_str_eq(name, other, "layout");
    fd_instance_free(&x);
}

Test(oracle_cache, a_problem_that_the_question_does_not_cover_goes_to_the_oracle)
{
    const fd_case c = a_case("gaussian", 200);
    fd_instance x = instance(&c);
    fd_oracle_cache cache;
    fd_oracle_row row;
    char why[200] = "", name[33];
    fd_oracle_cache_open(&cache, folder, FD_ORACLE_CACHE_BYTES);
    cr_assert_eq(fd_oracle_row_init(&row, x.problem.kv_capacity, c.head_dim_v), FD_OK);
    x.problem.softcap = 30.0f;
    x.problem.features = fd_features(&x.problem);
    cr_assert_not(fd_oracle_cache_name(&x.problem, 0, 0, 1, &row, name));
    cr_assert_eq(fd_oracle_cached(&cache, &x.problem, 0, 0, 1, &row, why, sizeof why), FD_UNSUPPORTED);

    x.problem.softcap = 0.0f;
    x.problem.features = fd_features(&x.problem);
    ((float *)x.problem.q.data)[fd_row_at(&x.problem.q, 0, 0, 1)] = NAN;
    cr_assert_eq(fd_oracle_cached(&cache, &x.problem, 0, 0, 1, &row, why, sizeof why), FD_INVALID);
    cr_assert_eq(each_file(NULL), 0, "a failure is no answer to keep");
    fd_oracle_row_free(&row);
    fd_instance_free(&x);
}

/* ---- Files that are not what they should be ---------------------------------------------------- */

static long damage_at; /* byte to change; -1: cut the file in half; -2: empty it; -3: longer by a byte */

static void damage(const char *path)
{
    struct stat s;
    cr_assert_eq(stat(path, &s), 0);
    if (damage_at < 0) {
        cr_assert_eq(truncate(path, damage_at == -1 ? s.st_size / 2 : damage_at == -2 ? 0 : s.st_size + 1), 0);
        return;
    }
    FILE *f = fopen(path, "r+b");
    fseek(f, damage_at, SEEK_SET);
    const int byte = fgetc(f);
    fseek(f, damage_at, SEEK_SET);
    fputc(byte ^ 1, f);
    fclose(f);
}

static long file_size;
static void measure(const char *path)
{
    struct stat s;
    cr_assert_eq(stat(path, &s), 0);
    file_size = (long)s.st_size;
}

Test(oracle_cache, a_damaged_file_is_not_believed_and_is_written_again)
{
    const fd_case c = a_case("gaussian", 100);
    fd_instance x = instance(&c);
    fd_oracle_cache cache;
    fd_oracle_cache_open(&cache, folder, FD_ORACLE_CACHE_BYTES);
    cr_assert_not(found(&cache, &x.problem, 0));
    each_file(measure);
    for (damage_at = -3; damage_at < file_size; damage_at += damage_at < 120 ? 1 : 97) {
        each_file(damage);
        cr_assert_not(found(&cache, &x.problem, 0), "damage at %ld", damage_at);
        cr_assert(found(&cache, &x.problem, 0), "not repaired after damage at %ld", damage_at);
    }
    fd_instance_free(&x);
}

static char wrong_name[33];
static void rename_to_wrong_name(const char *path)
{
    char to[128];
    snprintf(to, sizeof to, "%s/%s", folder, wrong_name);
    cr_assert_eq(rename(path, to), 0);
}

Test(oracle_cache, the_answer_to_another_question_is_not_taken)
{
    const fd_case c = a_case("gaussian", 100);
    fd_instance x = instance(&c);
    fd_oracle_cache cache;
    fd_oracle_cache_open(&cache, folder, FD_ORACLE_CACHE_BYTES);
    cr_assert_not(found(&cache, &x.problem, 0));
    name_of(&x.problem, wrong_name); /* of row 1 */
    each_file(rename_to_wrong_name);
    cr_assert_not(found(&cache, &x.problem, 1));
    fd_instance_free(&x);
}

/* ---- Folders that do not take files ------------------------------------------------------------ */

Test(oracle_cache, where_nothing_can_be_written_the_rows_are_computed_and_it_is_said_once)
{
    const fd_case c = a_case("gaussian", 100);
    fd_instance x = instance(&c);
    char said[128], path[128];
    snprintf(path, sizeof path, "%s/no/such/place", folder);
    snprintf(said, sizeof said, "%s/stderr", folder);
    cr_assert(freopen(said, "w", stderr) != NULL);

    fd_oracle_cache cache;
    fd_oracle_cache_open(&cache, path, FD_ORACLE_CACHE_BYTES);
    for (int32_t h = 0; h < c.heads_q; h++) {
        cr_assert_not(found(&cache, &x.problem, h));
    }
    fflush(stderr);
    char text[1000];
    FILE *f = fopen(said, "r");
    const size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    fclose(f);
    const char *first = strstr(text, "cannot be kept in");
    cr_assert(first != NULL && strstr(first + 1, "cannot be kept in") == NULL, "said: %s", text);
    fd_instance_free(&x);
}

Test(oracle_cache, a_full_disk_leaves_no_torn_file)
{
    const fd_case c = a_case("gaussian", 100);
    fd_instance x = instance(&c);
    fd_oracle_cache cache;
    fd_oracle_cache_open(&cache, folder, FD_ORACLE_CACHE_BYTES);
    cache.silent = true;
    struct rlimit limit = {.rlim_cur = 1000, .rlim_max = RLIM_INFINITY}; /* bytes a file may have */
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cr_assert_not(found(&cache, &x.problem, 0));
    cr_assert(cache.gave_up);
    cr_assert_eq(each_file(NULL), 0);
    fd_instance_free(&x);
}

/* ---- Size, and other processes ----------------------------------------------------------------- */

static long total_size;
static void add_size(const char *path)
{
    measure(path);
    total_size += file_size;
}

Test(oracle_cache, the_least_recently_used_rows_go_when_the_limit_is_passed)
{
    enum { ROWS = 40 };
    const fd_case c = a_case("gaussian", 100);
    fd_instance x = instance(&c);
    fd_oracle_cache cache;
    fd_oracle_cache_open(&cache, folder, FD_ORACLE_CACHE_BYTES);
    found(&cache, &x.problem, 0);
    each_file(measure);
    const int64_t limit = 16 * (int64_t)file_size;
    char foreign[128];
    snprintf(foreign, sizeof foreign, "%s/notes.txt", folder);
    fclose(fopen(foreign, "w"));

    fd_oracle_cache_open(&cache, folder, limit);
    for (int i = 1; i < ROWS; i++) {
        x.problem.sm_scale = 0.125f + (float)i * 0x1p-10f;
        cr_assert_not(found(&cache, &x.problem, 0));
        total_size = 0;
        each_file(add_size);
        cr_assert_leq(total_size, limit + limit / 16 + file_size, "after %d rows", i);
    }
    cr_assert(found(&cache, &x.problem, 0), "the last one written is there");
    x.problem.sm_scale = 0.125f + 0x1p-10f;
    cr_assert_not(found(&cache, &x.problem, 0), "the first one is gone");
    cr_assert_eq(access(foreign, F_OK), 0, "somebody else's file is left alone");
    fd_instance_free(&x);
}

Test(oracle_cache, processes_share_a_folder)
{
    enum { PROCESSES = 4, ROUNDS = 3 };
    const fd_case c = a_case("gaussian", 100);
    fd_instance x = instance(&c);
    pid_t child[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            alarm(60); /* an assertion that fails in a child would wait for ever */
            fd_oracle_cache cache;
            fd_oracle_cache_open(&cache, folder, 40000); /* so small that they remove each other's files, too */
            for (int r = 0; r < ROUNDS; r++) {
                for (int32_t h = 0; h < c.heads_q; h++) {
                    found(&cache, &x.problem, h);
                }
            }
            _exit(cache.gave_up ? 1 : 0);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        cr_assert_eq(waitpid(child[i], &status, 0), child[i]);
        cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "process %d: status %x", i, (unsigned)status);
    }
    cr_assert_leq(each_file(NULL), c.heads_q, "temporary files were left behind");
    fd_instance_free(&x);
}
