/* test_help.c: every command says what it does, within the 80 columns of a terminal. */
#define _POSIX_C_SOURCE 200809L /* dup2 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "observe.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"ladder", fd_cmd_ladder},       {"plan", fd_cmd_plan},       {"verify", fd_cmd_verify},
    {"bench", fd_cmd_bench},         {"mutants", fd_cmd_mutants}, {"relations", fd_cmd_relations},
    {"killtable", fd_cmd_killtable}, {"curves", fd_cmd_curves},   {"seeds", fd_cmd_seeds},
    {"oracle", fd_cmd_oracle},       {"exp", fd_cmd_exp},         {"golden", fd_cmd_golden},
    {"check", fd_cmd_check},         {"cases", fd_cmd_cases},     {"decode", fd_cmd_decode},
    {"splits", fd_cmd_splits},       {"hashes", fd_cmd_hashes},   {"huge", fd_cmd_huge},
    {"observe", fd_cmd_observe},
#ifndef FD_NO_EMULATOR
    {"emulate", fd_cmd_emulate},
#endif

};

#define NUM_COMMANDS (sizeof commands / sizeof *commands)

/* Runs a command with up to three words behind its name, and returns a file of what it wrote to a descriptor. */
static FILE *said_by(size_t command, int descriptor, int *code, const char *one, const char *two, const char *three)
{
    char words[4][64];
    char *argv[5] = {words[0], NULL};
    int argc = 1;
    snprintf(words[0], sizeof words[0], "%s", commands[command].name);
    for (const char *const *word = (const char *const[]){one, two, three, NULL}; *word != NULL; word++) {
        snprintf(words[argc], sizeof words[argc], "%s", *word);
        argv[argc] = words[argc];
        argc++;
    }
    FILE *said = tmpfile();
    const int before = dup(descriptor);
    cr_assert(said != NULL && before >= 0);
    fflush(NULL);
    dup2(fileno(said), descriptor);
    *code = commands[command].run(argc, argv);
    fflush(NULL);
    dup2(before, descriptor);
    close(before);
    rewind(said);
    return said;
}

Test(help, fits_80_columns_and_names_its_command)
{
    for (size_t c = 0; c < NUM_COMMANDS; c++) {
        char start[64], line[200];
        int code;
        FILE *said = said_by(c, STDOUT_FILENO, &code, "--help", NULL, NULL);
        snprintf(start, sizeof start, "usage: flashdecode %s", commands[c].name);
        cr_expect_eq(code, FD_EXIT_PASS, "%s --help ends with %d", commands[c].name, code);
        for (int i = 0; fgets(line, sizeof line, said) != NULL; i++) {
            cr_expect(i > 0 || strncmp(line, start, strlen(start)) == 0, "%s --help begins: %s", commands[c].name,
                      line);
            cr_expect_leq(strcspn(line, "\n"), 80, "%s --help: %s", commands[c].name, line);
        }
        cr_expect_gt(ftell(said), (long)strlen(start), "%s --help says nothing", commands[c].name);
        fclose(said);
    }
}

/* One line that names the word and where the cure is; exit code 2; and nothing is run. `given` is an option that help
 * speaks of, or NULL: then it is not that one which is refused. */
static void expect_refusal(size_t command, const char *given)
{
    char line[300] = "", more[300], start[64];
    int code;
    FILE *said = given == NULL ? said_by(command, STDERR_FILENO, &code, "--no-such", NULL, NULL)
                               : said_by(command, STDERR_FILENO, &code, given, "1", "--no-such");
    const char *name = commands[command].name, *option = given != NULL ? given : "";
    snprintf(start, sizeof start, "flashdecode %s: ", name);
    cr_expect_eq(code, FD_EXIT_USAGE, "%s %s --no-such ends with %d", name, option, code);
    cr_expect(fgets(line, sizeof line, said) != NULL && strncmp(line, start, strlen(start)) == 0, "%s: %s", name, line);
    cr_expect(strstr(line, "--no-such is no option") != NULL ||
                  (given != NULL && strstr(line, given) != NULL && strstr(line, "is no option") == NULL),
              "%s %s: %s", name, option, line);
    cr_expect(fgets(more, sizeof more, said) == NULL, "%s %s says more than a line: %s", name, option, more);
    fclose(said);
}

Test(help, every_option_that_it_speaks_of_is_one_and_no_other)
{
    for (size_t c = 0; c < NUM_COMMANDS; c++) {
        char line[200], option[64];
        int code;
        FILE *said = said_by(c, STDOUT_FILENO, &code, "--help", NULL, NULL);
        expect_refusal(c, NULL);
        while (fgets(line, sizeof line, said) != NULL) {
            if (sscanf(line, "  %63s", option) == 1 && strncmp(option, "--", 2) == 0 && strcmp(option, "--help") != 0) {
                expect_refusal(c, option);
            }
        }
        fclose(said);
    }
}

/* What each sort of value refuses. */
Test(help, values_are_refused_by_name)
{
    static const struct {
        int (*run)(int argc, char **argv);
        const char *option, *value, *says;
    } bad[] = {
        {fd_cmd_bench, "--batch", "0", "--batch 0; give a number from 1 to 2147483647"},
        {fd_cmd_bench, "--batch", "4294967297", "--batch 4294967297; give a number from 1"},
        {fd_cmd_bench, "--batch", "+1", "--batch +1; give a number from 1"},
        {fd_cmd_bench, "--batch", "1x", "--batch 1x; give a number from 1"},
        {fd_cmd_bench, "--kv-len", "1,,2", "--kv-len 1,,2; give up to 64 numbers"},
        {fd_cmd_bench, "--kv-len", "1,2,", "--kv-len 1,2,; give up to 64 numbers"},
        {fd_cmd_bench, "--dtype", "fffb", "--dtype fffb; give three letters"},
        {fd_cmd_bench, "--rung", "5x", "--rung 5x; give up to 64 numbers"},
        {fd_cmd_bench, "--rung", "99", "--rung 99; there is no such rung"},
        {fd_cmd_plan, "--heads", "8:3", "--heads 8:3; give Q:KV"},
        {fd_cmd_plan, "--policy", "FILL", "--policy FILL; give none, chunk or fill"},
        {fd_cmd_verify, "--size", "", "--size ; give small, class or full"},
        {fd_cmd_verify, "--where", "there", "--where there; give cpu, emu or gpu"},
        {fd_cmd_check, "--growth", "nan", "--growth nan; give a number from 1"},
        {fd_cmd_check, "--growth", "inf", "--growth inf; give a number from 1"},
        {fd_cmd_check, "--order", "ring", "--order ring: say any"},
        {fd_cmd_oracle, "--row", "0", "--row 0; give batch and query head"},
        {fd_cmd_seeds, "--count", "0", "--count 0; give a number from 1"},
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        for (size_t c = 0; c < NUM_COMMANDS; c++) {
            if (commands[c].run == bad[k].run) {
                char line[300] = "";
                int code;
                FILE *said = said_by(c, STDERR_FILENO, &code, bad[k].option, bad[k].value, NULL);
                cr_expect_eq(code, FD_EXIT_USAGE);
                cr_expect(fgets(line, sizeof line, said) != NULL && strstr(line, bad[k].says) != NULL, "%s: %s",
                          bad[k].says, line);
                fclose(said);
            }
        }
    }
}
