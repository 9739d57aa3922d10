/* test_trial_files.c: what `check` leaves behind: CSV that can be read back, XML that parsers take, and baselines that fail
 * on what became worse and on nothing else. */
#define _POSIX_C_SOURCE 200809L
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "csv_read.h"
#include "junit.h"
#include "trial.h"

static char *const command[] = {(char *)"check", (char *)"./lib.so", NULL};

static fd_trial a_trial(void)
{
    return (fd_trial){.implementation = "mine", .place = "cpu", .options = {.argc = 2, .argv = command, .growth = 2.0}};
}

static fd_trial_line a_line(const char *name, int32_t verdict, int32_t tier)
{
    fd_trial_line line = {.verdict = verdict, .tier = tier, .seconds = -1.0, .err_max = 3.0, .lse_err = 1e-6};
    snprintf(line.name, sizeof line.name, "%s", name);
    snprintf(line.group, sizeof line.group, "tiers");
    snprintf(line.reason, sizeof line.reason, "%s", verdict == FD_PASS ? "" : "because");
    return line;
}

static void temporary(char path[32])
{
    strcpy(path, "/tmp/fd-trial-XXXXXX");
    const int file = mkstemp(path);
    cr_assert_geq(file, 0);
    close(file);
}

static char *contents(const char *path)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "rb");
    cr_assert_not_null(file);
    const size_t bytes = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[bytes] = '\0';
    return text;
}

static const char *escaped(const char *raw)
{
    static char text[256];
    FILE *file = fmemopen(text, sizeof text, "w");
    fd_xml_text(file, raw);
    fclose(file);
    return text;
}

Test(trial_files, text_in_xml_is_escaped)
{
    const struct {
        const char *raw, *xml;
    } pairs[] = {{"a<b & \"c\" > 'd'", "a&#60;b &#38; &#34;c&#34; &#62; &#39;d&#39;"},
                 {"]]>", "]]&#62;"},
                 {"line\none\ttab\r", "line&#10;one&#9;tab&#13;"},
                 {"\x01\x1b[31m\x7f", "\\x01\\x1b[31m\x7f"},
                 {"\xc3\xa9 \xe2\x89\xa4 \xf0\x9f\x98\x80", "\xc3\xa9 \xe2\x89\xa4 \xf0\x9f\x98\x80"},
                 {"\xff\xc3", "\\xff\\xc3"},                            /* no UTF-8, a sequence cut off */
                 {"\xc0\xaf\xe0\x80\xaf", "\\xc0\\xaf\\xe0\\x80\\xaf"}, /* longer than need be */
                 {"\xed\xa0\x80", "\\xed\\xa0\\x80"},                   /* a surrogate */
                 {"\xef\xbf\xbe", "\\xef\\xbf\\xbe"},                   /* U+FFFE, which XML leaves out */
                 {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"}};         /* beyond Unicode */
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        cr_expect_str_eq(escaped(pairs[i].raw), pairs[i].xml);
    }
}

/* Every byte, alone and before another, in every place that holds text of others: a parser that is not ours takes it. */
Test(trial_files, xml_parsers_take_any_bytes)
{
    const char *parser = system("xmllint --version >/dev/null 2>&1") == 0 ? "xmllint --noout"
                         : system("python3 -c 'import xml.sax' 2>/dev/null") == 0
                             ? "python3 -c 'import sys, xml.etree.ElementTree as e; e.parse(sys.argv[1])'"
                             : NULL;
    if (parser == NULL) {
        cr_skip_test("no xmllint and no python3 here: the XML was not parsed");
    }
    fd_trial trial = a_trial();
    strcpy(trial.implementation, "\x02<mine>&\xff");
    for (int c = 1; c < 256; c++) {
        fd_trial_line line = a_line("", c % 3 == 0 ? FD_FAIL : c % 3 == 1 ? FD_SKIP : FD_PASS, FD_TIER_PROVED);
        const char text[] = {(char)c, 'a', (char)c, (char)c, '\x80', (char)c, (char)(c ^ 0x55 ? c ^ 0x55 : 1), '\0'};
        snprintf(line.name, sizeof line.name, "%s", text);
        snprintf(line.reason, sizeof line.reason, "%s", text);
        snprintf(line.declared, sizeof line.declared, "%s", text);
        snprintf(line.looks_like, sizeof line.looks_like, "%s", text);
        snprintf(line.replay, sizeof line.replay, "%s", text);
        snprintf(line.group, sizeof line.group, "%s", c % 2 ? "tiers" : text);
        cr_assert_eq(fd_trial_keep(&trial, &line), FD_OK);
    }
    trial.not_run = 3;
    strcpy(trial.not_run_why, "5 deaths & more\x1b");
    char path[32], why[256], parse[128];
    temporary(path);
    cr_assert_eq(fd_trial_write_junit(&trial, path, why, sizeof why), FD_OK, "%s", why);
    snprintf(parse, sizeof parse, "%s %s", parser, path);
    cr_expect_eq(system(parse), 0, "%s", parse);
    unlink(path);
    fd_trial_free(&trial);
}

Test(trial_files, xml_counts_what_it_holds)
{
    fd_trial trial = a_trial();
    fd_trial_line lines[] = {a_line("one", FD_PASS, FD_TIER_NONE), a_line("two", FD_FAIL, FD_TIER_PROVED),
                             a_line("three", FD_SKIP, FD_TIER_NONE), a_line("four", FD_FAIL, FD_TIER_EXACT),
                             a_line("five", FD_EXPECTED_FAILURE, FD_TIER_NONE)};
    lines[3].standing = FD_STANDING_KNOWN;
    lines[0].seconds = 1.5;
    strcpy(lines[1].detail, "b=0: got 1, want 2");
    strcpy(lines[4].group, "relations");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        cr_assert_eq(fd_trial_keep(&trial, &lines[i]), FD_OK);
    }
    char path[32], why[256];
    temporary(path);
    cr_assert_eq(fd_trial_write_junit(&trial, path, why, sizeof why), FD_OK, "%s", why);
    const char *xml = contents(path);
    cr_expect_not_null(strstr(xml, "<testsuites name=\"mine\" tests=\"5\" failures=\"1\" errors=\"0\" skipped=\"2\" "
                                   "time=\"1.500\">"));
    cr_expect_not_null(strstr(xml, "<testsuite name=\"tiers\" tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"2\""));
    cr_expect_not_null(strstr(xml, "<testsuite name=\"relations\" tests=\"1\" failures=\"0\""));
    cr_expect_not_null(strstr(xml, "<testcase name=\"one\" classname=\"tiers\" time=\"1.500\">"));
    cr_expect_not_null(strstr(xml, "<failure message=\"because\" type=\"proved\">because&#10;b=0: got 1, want 2&#10;"));
    cr_expect_not_null(strstr(xml, "<skipped message=\"known failure: because\"/>"));
    unlink(path);
    cr_expect_eq(fd_trial_write_junit(&trial, "/dev/full", why, sizeof why), FD_INVALID);
    cr_expect_not_null(strstr(why, "/dev/full"), "%s", why);
    fd_trial_free(&trial);
}

Test(trial_files, csv_comes_back_bit_for_bit)
{
    fd_trial trial = a_trial();
    fd_trial_line line = a_line("a case, with a comma", FD_FAIL, FD_TIER_STATISTICAL);
    line.err_max = 0x1.fffffffffffffp-3;
    line.ratio = HUGE_VAL;
    strcpy(line.reason, "\"quoted\", and\r\ntwo lines, cut within \342\202");
    strcpy(line.declared, "\"quoted\", and\r\ntwo lines, \377");
    cr_assert_eq(fd_trial_keep(&trial, &line), FD_OK);
    line = a_line("", FD_PASS, FD_TIER_NONE);
    cr_assert_eq(fd_trial_keep(&trial, &line), FD_OK);
    char path[32], why[256];
    fd_csv_table table;
    temporary(path);
    cr_assert_eq(fd_trial_write_csv(&trial, path, why, sizeof why), FD_OK, "%s", why);
    cr_assert_eq(fd_csv_read(path, &table, why, sizeof why), FD_OK, "%s", why);
    cr_expect_eq(table.rows, 2);
    cr_expect_str_eq(fd_csv_at(&table, 0, fd_csv_column(&table, "case")), "a case, with a comma");
    cr_expect_str_eq(fd_csv_at(&table, 0, fd_csv_column(&table, "reason")),
                     "\"quoted\", and??two lines, cut within ??");
    cr_expect_str_eq(fd_csv_at(&table, 0, fd_csv_column(&table, "declared")), "\"quoted\", and\r\ntwo lines, ?");
    cr_expect_str_eq(fd_csv_at(&table, 0, fd_csv_column(&table, "verdict")), "fail");
    cr_expect_str_eq(fd_csv_at(&table, 0, fd_csv_column(&table, "tier")), "statistical");
    cr_expect_eq(strtod(fd_csv_at(&table, 0, fd_csv_column(&table, "err_max")), NULL), 0x1.fffffffffffffp-3);
    cr_expect_eq(strtod(fd_csv_at(&table, 0, fd_csv_column(&table, "ratio")), NULL), HUGE_VAL);
    cr_expect_str_eq(fd_csv_at(&table, 0, fd_csv_column(&table, "no such")), "");
    cr_expect_not_null(strstr(fd_csv_comment(&table, "command"), "check ./lib.so"));
    cr_expect_null(fd_csv_comment(&table, "comman"));
    fd_csv_free(&table);
    fd_trial_free(&trial);
    unlink(path);
}

/* One verdict before, the same one now. */
typedef struct pair {
    int32_t before, tier_before, now, tier_now;
    double err_before, err_now, lse_before, lse_now, growth;
    int32_t standing, verdict;
} pair;

static fd_trial_line held(const pair *p)
{
    fd_trial former = a_trial(), trial = a_trial();
    fd_trial_line line = a_line("case", p->before, p->tier_before);
    char path[32], why[256];
    line.err_max = p->err_before;
    line.lse_err = p->lse_before;
    cr_assert_eq(fd_trial_keep(&former, &line), FD_OK);
    temporary(path);
    cr_assert_eq(fd_trial_write_csv(&former, path, why, sizeof why), FD_OK, "%s", why);
    trial.options.baseline = path;
    trial.options.growth = p->growth;
    cr_assert_eq(fd_trial_read_baseline(&trial, why, sizeof why), FD_OK, "%s", why);
    unlink(path);
    line = a_line("case", p->now, p->tier_now);
    line.err_max = p->err_now;
    line.lse_err = p->lse_now;
    cr_assert_eq(fd_trial_add(&trial, &line, NULL), FD_OK);
    line = trial.lines[0];
    cr_expect_eq(fd_trial_exit_code(&trial), line.verdict == FD_FAIL && line.standing != FD_STANDING_KNOWN ? 1
                                             : line.verdict == FD_SKIP                                     ? 77
                                                                                                           : 0);
    fd_trial_free(&trial);
    fd_trial_free(&former);
    return line;
}

Test(baseline, fails_on_what_became_worse_only)
{
    enum { E = FD_TIER_EXACT, P = FD_TIER_PROVED, S = FD_TIER_STATISTICAL, N = FD_TIER_NONE };
    const pair pairs[] = {
        {FD_PASS, N, FD_PASS, N, 3.0, 3.0, 0, 0, 2.0, FD_STANDING_NONE, FD_PASS},
        {FD_PASS, N, FD_PASS, N, 3.0, 2.0, 0, 0, 1.0, FD_STANDING_NONE, FD_PASS},
        {FD_PASS, N, FD_PASS, N, 3.0, 6.0, 0, 0, 2.0, FD_STANDING_NONE, FD_PASS},
        {FD_PASS, N, FD_PASS, N, 3.0, 6.1, 0, 0, 2.0, FD_STANDING_WORSE, FD_FAIL},
        {FD_PASS, N, FD_PASS, N, 3.0, 0x1.8000000000001p1, 0, 0, 1.0, FD_STANDING_WORSE, FD_FAIL},
        {FD_PASS, N, FD_PASS, N, 0.0, 0.9, 0, 0, 2.0, FD_STANDING_NONE, FD_PASS},
        {FD_PASS, N, FD_PASS, N, 0.0, 0.9, 0, 0, 1.0, FD_STANDING_WORSE, FD_FAIL},
        {FD_PASS, N, FD_PASS, N, 3.0, (double)NAN, 0, 0, 2.0, FD_STANDING_WORSE, FD_FAIL},
        {FD_PASS, N, FD_PASS, N, 3.0, 3.0, 1e-6, 2.1e-6, 2.0, FD_STANDING_WORSE, FD_FAIL},
        {FD_PASS, N, FD_PASS, N, 3.0, 3.0, 1e-9, 1e-7, 2.0, FD_STANDING_NONE, FD_PASS},
        {FD_PASS, N, FD_FAIL, P, 3.0, 3.0, 0, 0, 2.0, FD_STANDING_WORSE, FD_FAIL},
        {FD_EXPECTED_FAILURE, N, FD_FAIL, P, 3.0, 3.0, 0, 0, 2.0, FD_STANDING_WORSE, FD_FAIL},
        {FD_PASS, N, FD_SKIP, N, 3.0, 0.0, 0, 0, 2.0, FD_STANDING_WORSE, FD_FAIL},
        {FD_SKIP, N, FD_SKIP, N, 0.0, 0.0, 0, 0, 2.0, FD_STANDING_NONE, FD_SKIP},
        {FD_SKIP, N, FD_PASS, N, 0.0, 9.0, 0, 0, 2.0, FD_STANDING_NONE, FD_PASS},
        {FD_SKIP, N, FD_FAIL, P, 0.0, 9.0, 0, 0, 2.0, FD_STANDING_WORSE, FD_FAIL},
        {FD_FAIL, P, FD_FAIL, P, 3.0, 9.0, 0, 0, 2.0, FD_STANDING_KNOWN, FD_FAIL},
        {FD_FAIL, S, FD_FAIL, E, 3.0, 3.0, 0, 0, 2.0, FD_STANDING_WORSE, FD_FAIL},
        {FD_FAIL, E, FD_FAIL, S, 3.0, 3.0, 0, 0, 2.0, FD_STANDING_KNOWN, FD_FAIL},
        {FD_FAIL, P, FD_PASS, N, 9.0, 9.0, 0, 0, 2.0, FD_STANDING_FIXED, FD_PASS},
        {FD_FAIL, P, FD_SKIP, N, 9.0, 9.0, 0, 0, 2.0, FD_STANDING_NONE, FD_SKIP},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const fd_trial_line line = held(&pairs[i]);
        cr_expect_eq(line.standing, pairs[i].standing, "pair %zu: standing %d", i, line.standing);
        cr_expect_eq(line.verdict, pairs[i].verdict, "pair %zu: verdict %d", i, line.verdict);
        cr_expect_eq(line.against[0] != '\0', line.standing != FD_STANDING_NONE, "pair %zu: says nothing", i);
    }
}

Test(baseline, times_are_worse_only_beyond_noise_and_beyond_rung_05)
{
    const struct {
        double before[4], now[4]; /* p25, median, p75, rung 05 */
        bool worse;
        const char *device[2]; /* before, now; NULL: none */
    } pairs[] = {{{9.0, 10.0, 11.0, 5.0}, {9.0, 10.0, 11.0, 5.0}, false, {NULL, NULL}},
                 {{9.0, 10.0, 11.0, 5.0}, {12.0, 13.0, 14.0, 5.0}, true, {NULL, NULL}},
                 {{9.0, 10.0, 11.0, 5.0}, {10.9, 13.0, 14.0, 5.0}, false, {NULL, NULL}}, /* the middle halves overlap */
                 {{9.9, 10.0, 10.1, 5.0}, {10.3, 10.4, 10.5, 5.0}, false, {NULL, NULL}}, /* 4 % */
                 {{9.0, 10.0, 11.0, 5.0}, {12.0, 13.0, 14.0, 6.5}, false, {NULL, NULL}}, /* so has rung 05 */
                 {{9.0, 10.0, 11.0, 0.0}, {12.0, 13.0, 14.0, 0.0}, true, {NULL, NULL}},
                 {{9.0, 10.0, 11.0, 0.0}, {12.0, 13.0, 14.0, 0.0}, true, {"a GPU", "a GPU"}},
                 {{9.0, 10.0, 11.0, 0.0}, {12.0, 13.0, 14.0, 0.0}, false, {"a GPU", "another"}},
                 {{9.0, 10.0, 11.0, 0.0}, {12.0, 13.0, 14.0, 0.0}, false, {NULL, "a GPU"}},
                 {{9.0, 10.0, 11.0, 5.0}, {1.0, 2.0, 3.0, 5.0}, false, {NULL, NULL}}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        fd_trial former = a_trial(), trial = a_trial();
        fd_trial_line line = a_line("time/fff", FD_PASS, FD_TIER_NONE);
        char path[32], why[256];
        line.time = (fd_trial_time){.repeats = 9,
                                    .over_p25 = pairs[i].before[0],
                                    .over_median = pairs[i].before[1],
                                    .over_p75 = pairs[i].before[2],
                                    .rung_over = pairs[i].before[3]};
        const char *there = pairs[i].device[0], *here = pairs[i].device[1];
        snprintf(former.device, sizeof former.device, "%s", there != NULL ? there : "");
        cr_assert_eq(fd_trial_keep(&former, &line), FD_OK);
        temporary(path);
        cr_assert_eq(fd_trial_write_csv(&former, path, why, sizeof why), FD_OK, "%s", why);
        trial.options.baseline = path;
        cr_assert_eq(fd_trial_read_baseline(&trial, why, sizeof why), FD_OK, "%s", why);
        fd_baseline_device(trial.baseline, here != NULL ? here : "");
        line.time = (fd_trial_time){.repeats = 9,
                                    .over_p25 = pairs[i].now[0],
                                    .over_median = pairs[i].now[1],
                                    .over_p75 = pairs[i].now[2],
                                    .rung_over = pairs[i].now[3]};
        cr_assert_eq(fd_trial_add(&trial, &line, NULL), FD_OK);
        cr_expect_eq(trial.lines[0].standing, pairs[i].worse ? FD_STANDING_WORSE : FD_STANDING_NONE, "pair %zu", i);
        cr_expect_eq(fd_trial_exit_code(&trial), pairs[i].worse ? 1 : 0, "pair %zu", i);
        unlink(path);
        fd_trial_free(&trial);
        fd_trial_free(&former);
    }
}

Test(baseline, verdicts_are_found_by_group_and_name)
{
    fd_trial former = a_trial(), trial = a_trial();
    fd_trial_line line = a_line("case", FD_FAIL, FD_TIER_PROVED);
    char path[32], why[256];
    cr_assert_eq(fd_trial_keep(&former, &line), FD_OK);
    line = a_line("another", FD_PASS, FD_TIER_NONE);
    cr_assert_eq(fd_trial_keep(&former, &line), FD_OK);
    temporary(path);
    cr_assert_eq(fd_trial_write_csv(&former, path, why, sizeof why), FD_OK, "%s", why);
    trial.options.baseline = path;
    cr_assert_eq(fd_trial_read_baseline(&trial, why, sizeof why), FD_OK, "%s", why);
    line = a_line("case", FD_FAIL, FD_TIER_PROVED);
    strcpy(line.group, "relations");
    cr_assert_eq(fd_trial_add(&trial, &line, NULL), FD_OK); /* another group: nobody knew */
    strcpy(line.group, "tiers");
    cr_assert_eq(fd_trial_add(&trial, &line, NULL), FD_OK);
    cr_expect_eq(trial.lines[0].standing, FD_STANDING_WORSE);
    cr_expect_eq(trial.lines[1].standing, FD_STANDING_KNOWN);
    cr_expect_eq(fd_baseline_unmet(trial.baseline), 1);
    cr_expect_str_eq(fd_baseline_machine(trial.baseline), "");
    unlink(path);
    fd_trial_free(&trial);
    fd_trial_free(&former);
}

Test(baseline, what_is_none_is_refused_in_one_line)
{
    static const char good[] = "# machine_id: 0\n# versions: judge 3, bound 1, sigma 1, cases 1, contract 1\n"
                               "group,case,verdict,tier,err_max,lse_err\n";
    const struct {
        const char *text, *says;
        fd_status status;
    } files[] = {{"# machine_id: 0\n# versions: judge 3, bound 1, sigma 1, cases 9, contract 1\n"
                  "group,case,verdict,tier,err_max,lse_err\n",
                  "another case table", FD_INVALID},
                 {"", "no row of column names", FD_INVALID},
                 {"rung,name\n1,naive\n", "not written by", FD_INVALID},
                 {"# versions: cases 1, contract 1\na,b\n1\n", "line 3: 1 fields under 2 names", FD_INVALID},
                 {"a,\"b\n1", "not written by", FD_INVALID},
                 {good, "", FD_OK}};
    for (size_t i = 0; i <= sizeof files / sizeof *files; i++) {
        fd_trial trial = a_trial();
        char path[32] = "/nonexistent/baseline.csv", why[256] = "";
        const bool missing = i == sizeof files / sizeof *files;
        if (!missing) {
            temporary(path);
            FILE *file = fopen(path, "w");
            fputs(files[i].text, file);
            fclose(file);
        }
        trial.options.baseline = path;
        const fd_status status = fd_trial_read_baseline(&trial, why, sizeof why);
        cr_expect_eq(status, missing ? FD_INVALID : files[i].status, "file %zu: %s", i, why);
        cr_expect_not_null(strstr(why, missing ? "No such file" : files[i].says), "file %zu: %s", i, why);
        cr_expect(status == FD_OK || strstr(why, path) != NULL, "file %zu: %s", i, why);
        cr_expect_null(strchr(why, '\n'));
        if (status == FD_OK) {
            cr_expect_str_neq(fd_baseline_machine(trial.baseline), "", "machine 0 is not this one");
        }
        fd_trial_free(&trial);
        if (!missing) {
            unlink(path);
        }
    }
}
