/* test_help.c: every command says what it does, within the 80 columns of a terminal. */
#define _POSIX_C_SOURCE 200809L /* dup2 */
#include <criterion/criterion.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"ladder", fd_cmd_ladder},       {"plan", fd_cmd_plan},       {"verify", fd_cmd_verify},
    {"bench", fd_cmd_bench},         {"mutants", fd_cmd_mutants}, {"relations", fd_cmd_relations},
    {"killtable", fd_cmd_killtable}, {"curves", fd_cmd_curves},   {"seeds", fd_cmd_seeds},
    {"oracle", fd_cmd_oracle},       {"exp", fd_cmd_exp},         {"golden", fd_cmd_golden},
    {"check", fd_cmd_check},         {"cases", fd_cmd_cases},     {"decode", fd_cmd_decode},
    {"splits", fd_cmd_splits},       {"hashes", fd_cmd_hashes},
};

Test(help, fits_80_columns_and_names_its_command)
{
    for (size_t c = 0; c < sizeof commands / sizeof *commands; c++) {
        char name[16], help[] = "--help", start[64], line[200];
        snprintf(name, sizeof name, "%s", commands[c].name);
        snprintf(start, sizeof start, "usage: flashdecode %s", name);
        FILE *said = tmpfile();
        const int terminal = dup(STDOUT_FILENO);
        cr_assert(said != NULL && terminal >= 0);
        fflush(stdout);
        dup2(fileno(said), STDOUT_FILENO);
        optind = 0; /* getopt begins anew */
        const int code = commands[c].run(2, (char *[]){name, help, NULL});
        fflush(stdout);
        dup2(terminal, STDOUT_FILENO);
        close(terminal);
        rewind(said);

        cr_expect_eq(code, FD_EXIT_PASS, "%s --help ends with %d", name, code);
        for (int i = 0; fgets(line, sizeof line, said) != NULL; i++) {
            cr_expect(i > 0 || strncmp(line, start, strlen(start)) == 0, "%s --help begins: %s", name, line);
            cr_expect_leq(strcspn(line, "\n"), 80, "%s --help: %s", name, line);
        }
        cr_expect_gt(ftell(said), (long)strlen(start), "%s --help says nothing", name);
        fclose(said);
    }
}
