/* test_dump_bad.c: bad input of every kind ends with exit code 2 and one line that names it and the cure; nothing that is
 * half written is taken for whole. */
#define _POSIX_C_SOURCE 200809L

#include "test_dump.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void expect_refused(const said *s, const char *says)
{
    const char *end = strchr(s->err, '\n');
    cr_expect_eq(s->code, FD_EXIT_USAGE, "exit code %d instead of 2 and '%s'; %s%s", s->code, says, s->out, s->err);
    cr_expect(strstr(s->err, says) != NULL, "does not say '%s': %s", says, s->err);
    cr_expect(end != NULL && end[1] == '\0', "not one line: %s", s->err);
    cr_expect(strstr(s->out, "passed") == NULL, "a summary in spite of that: %s", s->out);
}

/* ---- A problem of one's own -------------------------------------------------------------------- */

/* Right but for what a test changes: batch 2, heads 4:2, head_dim 8, 6 slots. */
enum { Q, K, V, O, LSE, LENS, TENSORS };

static float q[2][1][4][8], k[2][6][2][8], v[2][6][2][8], o[2][1][4][8], lse[2][1][4];
static int64_t lens[2] = {6, 3};
static fd_safetensor right[TENSORS + 2];

static void make_right(void)
{
    const fd_safetensor tensors[TENSORS] = {
        f32("q", &q[0][0][0][0], 4, 2, 1, 4, 8),
        f32("k", &k[0][0][0][0], 4, 2, 6, 2, 8),
        f32("v", &v[0][0][0][0], 4, 2, 6, 2, 8),
        f32("o", &o[0][0][0][0], 4, 2, 1, 4, 8),
        f32("lse", &lse[0][0][0], 3, 2, 1, 4, 0),
        {.name = "kv_lens", .dtype_name = "I64", .rank = 1, .shape = {2}, .data = lens}};
    memcpy(right, tensors, sizeof tensors);
    for (int b = 0; b < 2; b++) {
        for (int h = 0; h < 4; h++) {
            lse[b][0][h] = logf((float)lens[b]); /* all zeros: every weight is the same */
        }
    }
}

static const said *check_with(const fd_safetensor *tensors, int32_t count, const char *key, const char *value)
{
    const fd_metadata metadata = {key, value};
    const char *path = in_folder("own.safetensors");
    write_file(path, tensors, count, &metadata, key != NULL ? 1 : 0);
    return check(path);
}

/* The right problem with tensor `which` replaced. */
static const said *check_replaced(int which, fd_safetensor by)
{
    fd_safetensor tensors[TENSORS];
    memcpy(tensors, right, sizeof tensors);
    tensors[which] = by;
    return check_with(tensors, TENSORS, NULL, NULL);
}

static const said *check_without(int which)
{
    fd_safetensor tensors[TENSORS];
    int32_t count = 0;
    for (int t = 0; t < TENSORS; t++) {
        if (t != which) {
            tensors[count++] = right[t];
        }
    }
    return check_with(tensors, count, NULL, NULL);
}

static fd_safetensor integers(const char *name, const char *dtype, int32_t rank, int64_t a, int64_t b, const void *data)
{
    return (fd_safetensor){.name = name, .dtype_name = dtype, .rank = rank, .shape = {a, b}, .data = data};
}

Test(dump_bad, the_problem_is_right_before_it_is_broken)
{
    make_right();
    const said *s = check_with(right, TENSORS, NULL, NULL);
    cr_expect_eq(s->code, FD_EXIT_PASS, "%s%s", s->out, s->err);
    remove_folder();
}

Test(dump_bad, missing_tensors)
{
    make_right();
    expect_refused(check_without(Q), "there is no tensor q; q, k and v are needed");
    expect_refused(check_without(K), "there is no tensor k");
    expect_refused(check_without(V), "there is no tensor v");
    expect_refused(check_without(O), "there is an lse, but no o; add o");
    fd_safetensor tensors[] = {right[Q], right[K], right[V], right[LENS]};
    expect_refused(check_with(tensors, 4, NULL, NULL), "there is no tensor o to judge; add it");
    remove_folder();
}

Test(dump_bad, unknown_names)
{
    make_right();
    right[TENSORS] = f32("attn_mask", &q[0][0][0][0], 2, 2, 6, 0, 0);
    expect_refused(check_with(right, TENSORS + 1, NULL, NULL), "tensor 'attn_mask' is none this judge knows");
    right[TENSORS] = f32("my.mask", &q[0][0][0][0], 2, 2, 6, 0, 0);
    cr_expect_eq(check_with(right, TENSORS + 1, "my.note", "x")->code, FD_EXIT_PASS);
    right[TENSORS] = f32("out", &o[0][0][0][0], 4, 2, 1, 4, 8);
    expect_refused(check_with(right, TENSORS + 1, NULL, NULL), "'o' and 'out' are two names of one tensor");
    expect_refused(check_with(right, TENSORS, "casual", "true"), "metadata 'casual' is none this judge knows");
    expect_refused(check_with(right, TENSORS, "softcap", "30"), "metadata 'softcap' is none this judge knows");
    expect_refused(check_with(right, TENSORS, "two\nlines", ""), "metadata 'two?lines' is none");
    expect_refused(check_with(right, TENSORS, "layout", "BDSH"),
                   "metadata layout is 'BDSH', not BSHD, BHSD, NHD or HND");
    expect_refused(check_with(right, TENSORS, "causal", "yes"), "metadata causal is 'yes', not false or true");
    expect_refused(check_with(right, TENSORS, "window_right", "1.5"), "metadata window_right is '1.5', not a whole");
    expect_refused(check_with(right, TENSORS, "case", "gaussian/nonsense"), "'gaussian/nonsense' is not in this table");
    remove_folder();
}

Test(dump_bad, wrong_types)
{
    make_right();
    static double wide[64];
    expect_refused(check_replaced(Q, integers("q", "F64", 2, 2, 32, wide)), "q is F64; store F32, F16 or BF16");
    expect_refused(check_replaced(K, integers("k", "I8", 1, 96, 0, wide)), "k is I8; store F32, F16 or BF16");
    expect_refused(check_replaced(LSE, integers("lse", "F64", 1, 8, 0, wide)), "lse is F64; store it as F32");
    expect_refused(check_replaced(LENS, integers("kv_lens", "F32", 1, 2, 0, wide)), "kv_lens is F32; store I32 or I64");
    fd_safetensor half = right[V];
    half.dtype_name = "BF16";
    expect_refused(check_replaced(V, half), "k is F32 and v is BF16; this judge takes one type of both");
    half = right[O];
    half.dtype_name = "F64";
    half.shape[1] = 0;
    expect_refused(check_replaced(O, half), "o is F64; store what the implementation returned as F32, F16 or BF16");
    remove_folder();
}

Test(dump_bad, wrong_shapes)
{
    make_right();
    expect_refused(check_replaced(Q, f32("q", &q[0][0][0][0], 2, 8, 8, 0, 0)), "q is F32 [8, 8], expected four: batch");
    expect_refused(check_replaced(Q, f32("q", &q[0][0][0][0], 4, 2, 1, 8, 4)), "q has head_dim 4, k 8");
    expect_refused(check_replaced(Q, f32("q", &q[0][0][0][0], 4, 1, 1, 4, 8)), "q has 1 sequences, k 2");
    expect_refused(check_replaced(V, f32("v", &v[0][0][0][0], 4, 2, 5, 2, 8)),
                   "k is F32 [2, 6, 2, 8] and v is F32 [2, 5, 2, 8]: all but head_dim must agree");
    expect_refused(check_replaced(Q, f32("q", &q[0][0][0][0], 4, 2, 1, 3, 8)),
                   "q has 3 heads, no multiple of the 2 of k");
    expect_refused(check_replaced(Q, f32("q", &q[0][0][0][0], 4, 2, 0, 4, 8)), "give at least one row");
    expect_refused(check_replaced(K, f32("k", &k[0][0][0][0], 4, 0, 6, 2, 8)), "k is F32 [0, 6, 2, 8]: nothing but");
    expect_refused(check_replaced(O, f32("o", &o[0][0][0][0], 4, 2, 1, 8, 4)),
                   "o is F32 [2, 1, 8, 4], expected [2, 1, 4, 8]");
    expect_refused(check_replaced(LSE, f32("lse", &lse[0][0][0], 1, 8, 0, 0, 0)),
                   "lse is F32 [8], expected [2, 1, 4] or [2, 4, 1]");
    expect_refused(check_replaced(LENS, integers("kv_lens", "I64", 1, 1, 0, lens)),
                   "kv_lens has 1 elements, but q has 2");
    expect_refused(check_replaced(LENS, integers("kv_lens", "I64", 2, 1, 2, lens)),
                   "kv_lens is I64 [1, 2], expected one");
    remove_folder();
}

Test(dump_bad, numbers_out_of_range)
{
    make_right();
    lens[1] = 7;
    expect_refused(check_with(right, TENSORS, NULL, NULL), "kv_lens[1] = 7, but the cache has room for 6 keys");
    lens[1] = -1;
    expect_refused(check_with(right, TENSORS, NULL, NULL), "kv_lens[1] = -1, but");
    lens[1] = INT64_C(1) << 32;
    expect_refused(check_with(right, TENSORS, NULL, NULL), "kv_lens[1] = 4294967296, but");
    lens[1] = 3;
    q[1][0][2][3] = NAN;
    expect_refused(check_with(right, TENSORS, NULL, NULL),
                   "q[1, 0, 2, 3] (sequence, row, head, element) is nan; visible inputs must be finite");
    q[1][0][2][3] = 0.0f;
    k[1][2][0][0] = INFINITY;
    expect_refused(check_with(right, TENSORS, NULL, NULL), "k[1, 2, 0, 0] (sequence, row, head, element) is inf");
    k[1][2][0][0] = 0.0f;
    k[1][3][0][0] = NAN; /* behind kv_lens: no visible token */
    cr_expect_eq(check_with(right, TENSORS, NULL, NULL)->code, FD_EXIT_PASS);
    expect_refused(check_with(right, TENSORS, "sm_scale", "nan"), "sm_scale nan is no finite float");
    expect_refused(check_with(right, TENSORS, "sm_scale", "1e300"), "sm_scale 1e+300 is no finite float");
    expect_refused(check_with(right, TENSORS, "sm_scale", "0.1x"), "metadata sm_scale is '0.1x', no number");
    const float two[2] = {0.5f, 0.25f};
    right[TENSORS] = f32("sm_scale", two, 1, 2, 0, 0, 0);
    expect_refused(check_with(right, TENSORS + 1, NULL, NULL), "sm_scale is F32 [2], expected one element");
    right[TENSORS] = f32("sm_scale", two, 0, 0, 0, 0, 0);
    expect_refused(check_with(right, TENSORS + 1, "sm_scale", "0.25"),
                   "sm_scale is 0.5, but metadata sm_scale says 0.25");
    remove_folder();
}

Test(dump_bad, pages_and_packed_rows)
{
    make_right();
    int32_t pages[2][2] = {{0, 1}, {2, -1}}, starts[3] = {0, 6, 12};
    fd_safetensor tensors[TENSORS + 1];
    memcpy(tensors, right, sizeof tensors);
    tensors[K] = f32("k", &k[0][0][0][0], 4, 3, 4, 2, 8); /* 3 pages of 4 */
    tensors[V] = f32("v", &v[0][0][0][0], 4, 3, 4, 2, 8);
    tensors[TENSORS] = integers("page_table", "I32", 2, 2, 2, pages);
    const said *s = check_with(tensors, TENSORS + 1, NULL, NULL);
    cr_expect_eq(s->code, FD_EXIT_PASS, "%s", s->err);
    pages[0][1] = 3;
    expect_refused(check_with(tensors, TENSORS + 1, NULL, NULL), "page_table[0, 1] = 3, but k has 3 pages");
    pages[0][1] = -1;
    expect_refused(check_with(tensors, TENSORS + 1, NULL, NULL), "page_table[0, 1] = -1, but");
    lens[0] = 9;
    expect_refused(check_with(tensors, TENSORS + 1, NULL, NULL), "kv_lens[0] = 9, but the cache has room for 8");
    lens[0] = 6;
    tensors[LENS] = tensors[TENSORS];
    expect_refused(check_with(tensors, TENSORS, NULL, NULL), "a paged cache needs kv_lens");

    memcpy(tensors, right, sizeof tensors);
    tensors[K] = f32("k", &k[0][0][0][0], 3, 12, 2, 8, 0);
    tensors[V] = f32("v", &v[0][0][0][0], 3, 12, 2, 8, 0);
    tensors[TENSORS] = integers("cu_seqlens_k", "I32", 1, 3, 0, starts);
    s = check_with(tensors, TENSORS + 1, NULL, NULL);
    cr_expect_eq(s->code, FD_EXIT_PASS, "%s", s->err);
    starts[1] = 13;
    expect_refused(check_with(tensors, TENSORS + 1, NULL, NULL), "cu_seqlens_k[1] = 13, expected 0 .. 12");
    starts[1] = 6;
    starts[2] = 5;
    expect_refused(check_with(tensors, TENSORS + 1, NULL, NULL), "cu_seqlens_k[2] = 5, expected 6 .. 12");
    starts[2] = 11;
    expect_refused(check_with(tensors, TENSORS + 1, NULL, NULL), "cu_seqlens_k ends with 11, but k has 12 rows");
    starts[2] = 12;
    starts[0] = 1;
    expect_refused(check_with(tensors, TENSORS + 1, NULL, NULL), "cu_seqlens_k[0] = 1, expected 0 .. 0");
    remove_folder();
}

/* ---- Files and folders ------------------------------------------------------------------------- */

Test(dump_bad, files_that_are_none)
{
    expect_refused(check("/nowhere/own.safetensors"),
                   "/nowhere/own.safetensors: no such file or folder; check the path");
    FILE *file = fopen(in_folder("own.safetensors"), "wb");
    cr_assert(file != NULL && fwrite("\x10\0\0\0\0\0\0\0{\"q\":", 1, 13, file) == 13 && fclose(file) == 0);
    expect_refused(check(in_folder("own.safetensors")), "only 5 bytes follow it: is the file cut off?");
    expect_refused(check(folder()), "there is no index.csv in it");
    expect_refused(check("/dev/null"), "no regular file");
    file = fopen(in_folder("index.csv"), "w");
    cr_assert(file != NULL && fputs("# fd-dump 1, cases 99\n", file) >= 0 && fclose(file) == 0);
    expect_refused(check(folder()), "of fd-dump 1, cases 99; this program has 1, 1: write the folder anew");
    file = fopen(in_folder("index.csv"), "w");
    cr_assert(file != NULL && fputs("# fd-dump 1, cases 1\nfile,case\n../x,y,\n", file) >= 0 && fclose(file) == 0);
    expect_refused(check(folder()), "line 3 names '../x', which is no file of a case");
    remove_folder();
}

static const said *cases_into(const char *dir)
{
    return call(fd_cmd_cases, (const char *const[]){"cases", dir, "--family", "attained", NULL});
}

Test(dump_bad, folders_that_hold_something)
{
    char dir[600];
    snprintf(dir, sizeof dir, "%s/cases", folder());
    expect_refused(cases_into("/nowhere/cases"), "/nowhere/cases: cannot be made or read: No such file or directory");
    expect_refused(cases_into("/dev/null"), "/dev/null: cannot be made or read");
    cr_expect_eq(cases_into(dir)->code, FD_EXIT_PASS);
    expect_refused(cases_into(dir), "holds cases already; remove it, or name another folder");
    cr_assert(remove(in_folder("cases/index.csv")) == 0); /* as after an interrupted run */
    cr_expect_eq(cases_into(dir)->code, FD_EXIT_PASS);
    cr_assert(rename(in_folder("cases/index.csv"), in_folder("cases/thesis.tex")) == 0);
    expect_refused(cases_into(dir), "holds 'thesis.tex', which is none of these files; name an empty folder");
    expect_refused(call(fd_cmd_cases, (const char *const[]){"cases", dir, "--family", "nonsense", NULL}),
                   "no case matches; flashdecode oracle --list names them");
    expect_refused(call(fd_cmd_cases, (const char *const[]){"cases", dir, "--dtype", "fp8", NULL}),
                   "--dtype fp8; give fp32, fp16 or bf16");
    if (geteuid() != 0) { /* root may write anywhere */
        snprintf(dir, sizeof dir, "%s/closed/cases", folder());
        cr_assert(mkdir(in_folder("closed"), 0500) == 0);
        expect_refused(cases_into(dir), "Permission denied");
    }
    remove_folder();
}

/* Files of a folder, whole ones and others. */
static void count_files(const char *dir, int *whole, int *other)
{
    char command[800], text[64] = "";
    snprintf(command, sizeof command,
             "ls '%s' 2>/dev/null | grep -c '^[0-9]*_[^/]*safetensors$'; ls '%s' 2>/dev/null | grep -vc "
             "'^[0-9]*_[^/]*safetensors$'",
             dir, dir);
    FILE *p = popen(command, "r");
    cr_assert(p != NULL && fread(text, 1, sizeof text - 1, p) > 0);
    pclose(p);
    cr_assert_eq(sscanf(text, "%d %d", whole, other), 2, "%s", text);
}

Test(dump_bad, a_full_disk_leaves_whole_files_only)
{
    char dir[600];
    int whole, other;
    snprintf(dir, sizeof dir, "%s/cases", folder());
    const pid_t child = fork();
    if (child == 0) { /* no file above 100 kB: some case of the family is larger */
        const struct rlimit limit = {100000, 100000};
        setrlimit(RLIMIT_FSIZE, &limit);
        char *argv[] = {"cases", dir, "--family", "ragged-spike", NULL};
        optind = 0;
        _exit(fd_cmd_cases(4, argv));
    }
    int status = 0;
    cr_assert(waitpid(child, &status, 0) == child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == FD_EXIT_USAGE, "status %x", (unsigned)status);
    count_files(dir, &whole, &other);
    cr_expect_eq(other, 0, "%d files that are no whole case", other);
    expect_refused(check(dir), "there is no index.csv in it");
    remove_folder();
}

/* Is a file of the folder being written? */
static bool is_writing(const char *dir)
{
    DIR *d = opendir(dir);
    bool found = false;
    for (struct dirent *e; d != NULL && !found && (e = readdir(d)) != NULL;) {
        found = strstr(e->d_name, ".tmp") != NULL;
    }
    if (d != NULL) {
        closedir(d);
    }
    return found;
}

Test(dump_bad, an_interrupted_run_leaves_whole_files_only, .timeout = 60)
{
    char dir[600], why[1024];
    int whole = 0, other = 0;
    snprintf(dir, sizeof dir, "%s/cases", folder());
    const pid_t child = fork();
    if (child == 0) {
        char *argv[] = {"cases", dir, NULL};
        optind = 0;
        _exit(fd_cmd_cases(2, argv));
    }
    bool caught = false; /* stopped in the middle of a file, which Ctrl-C then finds unfinished */
    while (!caught && waitpid(child, NULL, WNOHANG) == 0) {
        count_files(dir, &whole, &other);
        if (whole >= 3 && is_writing(dir)) {
            kill(child, SIGSTOP);
            waitpid(child, NULL, WUNTRACED);
            caught = is_writing(dir);
            kill(child, caught ? SIGINT : SIGCONT);
        }
    }
    cr_assert(caught);
    kill(child, SIGCONT);
    int status = 0;
    cr_assert(waitpid(child, &status, 0) == child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGINT, "status %x", (unsigned)status);
    count_files(dir, &whole, &other);
    cr_expect_eq(other, 0, "%d files that are no whole case", other);
    fd_safetensors file;
    char command[700], path[1500];
    snprintf(command, sizeof command, "ls '%s' | tail -n 1", dir);
    FILE *p = popen(command, "r");
    char last[300] = "";
    cr_assert(p != NULL && fgets(last, sizeof last, p) != NULL);
    pclose(p);
    last[strcspn(last, "\n")] = '\0';
    snprintf(path, sizeof path, "%s/%s", dir, last);
    cr_expect(fd_safetensors_open(path, &file, why, sizeof why) == FD_OK, "the last file: %s", why);
    fd_safetensors_close(&file);
    expect_refused(check(dir), "there is no index.csv in it");
    remove_folder();
}
