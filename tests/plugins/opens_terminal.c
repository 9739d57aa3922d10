/* Writes to the terminal itself, not to its standard output. */
#define BEFORE(p, c) write_to_terminal()
static void write_to_terminal(void);
#include "plugin.h"

static void write_to_terminal(void)
{
    FILE *terminal = fopen("/dev/tty", "w");
    if (terminal != NULL) {
        fputs("past the judge\n", terminal);
        fclose(terminal);
    }
}
