#define _POSIX_C_SOURCE 200809L
#include "data_path.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *fd_path_beside_program(const char *name, char *path, size_t n)
{
    const ssize_t length = readlink("/proc/self/exe", path, n); /* Linux only */
    const size_t used = length > 0 ? (size_t)length : 0;
    size_t folder = used < n ? used : 0;
    while (folder > 0 && path[folder - 1] != '/') {
        folder--;
    }
    const int rest = snprintf(path + folder, n - folder, "%s", name);
    if (folder == 0 || rest < 0 || folder + (size_t)rest >= n) {
        path[0] = '\0';
    }
    return path;
}

static bool holds_cases(const char *folder)
{
    char path[4200];
    const int length = snprintf(path, sizeof path, "%s/cases.csv", folder);
    return length > 0 && (size_t)length < sizeof path && access(path, R_OK) == 0;
}

const char *fd_data_folder(char *text, size_t n)
{
    const char *given = getenv("FD_DATA");
    if (given != NULL || holds_cases("data")) {
        return given != NULL ? given : "data";
    }
    const char *const beside[] = {"../data", "../share/flashdecode"};
    for (size_t k = 0; k < sizeof beside / sizeof *beside; k++) {
        if (*fd_path_beside_program(beside[k], text, n) != '\0' && holds_cases(text)) {
            return text;
        }
    }
    return "data";
}

const char *fd_data_path(const char *name, char *path, size_t n)
{
    char folder[4096];
    snprintf(path, n, "%s/%s", fd_data_folder(folder, sizeof folder), name);
    return path;
}
