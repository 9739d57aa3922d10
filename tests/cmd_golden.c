/* `flashdecode golden`: writes the golden vectors anew. */
#include <stdio.h>

#include "commands.h"
#include "golden.h"
#include "options.h"

static const char usage[] = "usage: flashdecode golden DIR\n"
                            "Writes the golden vectors, a .safetensors file a case of data/golden/cases.csv:\n"
                            "inputs, exact answers and moments. DIR must be there. The files have the same\n"
                            "bits on every machine; `make golden` writes those of data/golden, whose\n"
                            "README.md says what is in them.\n\n"
                            "Exit code: 0, 2 usage or bad input.\n";

int fd_cmd_golden(int argc, char **argv)
{
    const char *folder;
    const int parsed =
        fd_options_parse(argc, argv, usage, (fd_option[]){fd_operand(fd_opt_text("DIR", &folder)), {.name = NULL}});
    if (parsed >= 0) {
        return parsed;
    }
    char why[512], path[512];
    fd_case_table table = {0};
    fd_status status = fd_cases_read(fd_data_path("golden/cases.csv", path, sizeof path), &table, why, sizeof why);
    for (int32_t i = 0; i < table.count && status == FD_OK; i++) {
        fd_progress("golden", i, table.count);
        status = fd_golden_write(&table.cases[i], folder, why, sizeof why);
    }
    fd_progress("", 1, 1);
    if (status == FD_OK) {
        printf("%d golden vectors in %s\n", table.count, folder);
    } else {
        fprintf(stderr, "golden: %s\n", why);
    }
    fd_cases_free(&table);
    return status == FD_OK ? FD_EXIT_PASS : FD_EXIT_USAGE;
}
