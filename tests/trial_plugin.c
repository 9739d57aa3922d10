/* trial_plugin.c: plug-ins. */
#include "trial.h"

fd_status fd_trial_plugin(fd_trial *trial, char *why, size_t n)
{
    snprintf(why, n, "%s: plug-ins cannot be judged yet", trial->options.target);
    return FD_UNSUPPORTED;
}
