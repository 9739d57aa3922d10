/* `flashdecode ladder`: the rungs, what each changes, what each takes. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "csv.h"
#include "ladder.h"
#include "options.h"

static const char usage[] = "usage: flashdecode ladder [--csv FILE] [--help]\n"
                            "Lists the rungs: number, parent, name, idea.\n";

int fd_cmd_ladder(int argc, char **argv)
{
    const char *csv_path = NULL;
    const int parsed =
        fd_options_parse(argc, argv, usage, (fd_option[]){fd_opt_text("csv", &csv_path), {.name = NULL}});
    if (parsed >= 0) {
        return parsed;
    }
    printf("rung  after  name             idea\n");
    for (int k = 0; k < fd_ladder_count; k++) {
        char after[16] = "-";
        if (fd_ladder[k]->parent > 0) {
            snprintf(after, sizeof after, "%02d", fd_ladder[k]->parent);
        }
        printf("  %02d  %5s  %-15s  %s\n", fd_ladder[k]->number, after, fd_ladder[k]->name, fd_ladder[k]->idea);
    }
    if (csv_path == NULL) {
        return FD_EXIT_PASS;
    }

    fd_csv csv = {0};
    char why[256];
    if (fd_csv_open(&csv, csv_path, why, sizeof why) != FD_OK) {
        fprintf(stderr, "ladder: %s\n", why);
        return FD_EXIT_USAGE;
    }
    fputs("rung,name,parent,idea\n", csv.file);
    for (int k = 0; k < fd_ladder_count; k++) {
        fprintf(csv.file, "%d,", fd_ladder[k]->number);
        fd_csv_field(csv.file, fd_ladder[k]->name);
        fprintf(csv.file, ",%d,", fd_ladder[k]->parent);
        fd_csv_field(csv.file, fd_ladder[k]->idea);
        fputc('\n', csv.file);
    }
    const fd_status status = fd_csv_commit(&csv, why, sizeof why);
    if (status != FD_OK) {
        fprintf(stderr, "ladder: %s\n", why);
    }
    fd_csv_discard(&csv);
    return status == FD_OK ? FD_EXIT_PASS : FD_EXIT_USAGE;
}
