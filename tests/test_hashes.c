/* test_hashes.c: data/cases_hashes.csv is what cases and rungs are, whatever machine this is; another bit does not pass. */
#define _POSIX_C_SOURCE 200809L /* setenv, mkdtemp */
#include <criterion/criterion.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"

static int hashes(const char *option, const char *value)
{
    char name[] = "hashes", first[32], second[96];
    snprintf(first, sizeof first, "%s", option);
    snprintf(second, sizeof second, "%s", value != NULL ? value : "");
    optind = 0; /* getopt begins anew */
    return fd_cmd_hashes(value != NULL ? 3 : 2, (char *[]){name, first, second, NULL});
}

Test(hashes, inputs_of_all_small_cases_are_those_on_record)
{
    cr_expect_eq(hashes("--inputs", NULL), FD_EXIT_PASS);
}

Test(hashes, answers_are_those_on_record)
{
    static const char *const families[] = {"selector", "attained", "ragged-spike", "tied"};
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        cr_expect_eq(hashes("--family", families[f]), FD_EXIT_PASS, "%s", families[f]);
    }
}

/* A record whose lines of a family end in another digit, or are gone. */
static int with_record(const char *edit, const char *family)
{
    char folder[] = "/tmp/fd-hashes-XXXXXX", command[512];
    cr_assert_not_null(mkdtemp(folder));
    snprintf(command, sizeof command, "cp data/cases.csv %s && sed '%s' data/cases_hashes.csv > %s/cases_hashes.csv",
             folder, edit, folder);
    cr_assert_eq(system(command), 0);
    setenv("FD_DATA", folder, 1);
    const int code = hashes("--family", family);
    unsetenv("FD_DATA");
    snprintf(command, sizeof command, "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
    return code;
}

Test(hashes, another_bit_fails)
{
    cr_expect_eq(with_record("/^tied/s/,[0-9a-f]\\{8\\},/,00000000,/", "tied"), FD_EXIT_FAIL);
    cr_expect_eq(with_record("/^tied/s/,[0-9a-f]\\{16\\},/,0000000000000000,/", "tied"), FD_EXIT_FAIL);
}

Test(hashes, what_is_not_on_record_is_no_pass)
{
    cr_expect_eq(with_record("/^tied/d", "tied"), FD_EXIT_NOTHING);
    cr_expect_eq(with_record("1s/version 1/version 0/", "tied"), FD_EXIT_USAGE);
}

Test(hashes, answers_of_another_libm_are_not_compared)
{
    cr_expect_eq(with_record("s/^# libm: ./# libm: -/; /^tied/s/,[0-9a-f]\\{8\\},/,00000000,/", "tied"), FD_EXIT_PASS);
}
