/* scene.h: runs a kernel of async.h on device memory of exactly the size it needs, under one schedule and one way to
 * copy, and compares what is reported with what was planted. Included by Criterion suites only. */
#ifndef FD_FAULTS_SCENE_H
#define FD_FAULTS_SCENE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "async.h"
#include "emu/emulator.h"

/* Where a report must point, by the way to copy: FD_EMU_LATEST, FD_EMU_EARLIEST. */
typedef struct planted {
    int32_t fault, n;
    int32_t kind[2]; /* fd_emu_fault; 0: reported by nobody */
    const char *marker[2];
    const char *says; /* part of the text; NULL: anything */
} planted;

#define BOTH(x)                                                                                                        \
    {                                                                                                                  \
        x, x                                                                                                           \
    }
#define EACH_SCHEDULE(s) for (int32_t s = 0; s < FD_EMU_NUM_SCHEDULES; s++)
#define EACH_ASYNC(mode) for (int32_t mode = FD_EMU_LATEST; mode <= FD_EMU_EARLIEST; mode++)

static inline void *scene_upload(const void *host, size_t bytes)
{
    char why[160];
    void *data = NULL;
    cr_assert(fd_device_emu()->alloc(&data, bytes, why, sizeof why) == FD_OK, "%s", why);
    cr_assert(fd_device_emu()->write(data, host, bytes, why, sizeof why) == FD_OK, "%s", why);
    return data;
}

static inline void scene_download(void *host, void *data, size_t bytes)
{
    char why[160];
    cr_assert(fd_device_emu()->read(host, data, bytes, why, sizeof why) == FD_OK, "%s", why);
    fd_device_emu()->release(data);
}

static inline void scene_configure(int32_t schedule, int32_t async, int32_t mma)
{
    fd_emu_options options = *fd_emu_current();
    options.schedule = schedule;
    options.async = async;
    options.mma = mma;
    options.seed = 5;
    fd_emu_configure(&options);
    fd_emu_clear();
}

/* The line that ends in the comment "FAULT marker". */
static inline int scene_line_of(const char *path, const char *marker)
{
    char line[256], comment[64];
    snprintf(comment, sizeof comment, "/* FAULT %s */", marker);
    FILE *file = fopen(path, "r");
    cr_assert(file != NULL, "%s: the tests run in the top folder", path);
    int number = 0, found = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        number++;
        found = strstr(line, comment) != NULL ? number : found;
    }
    fclose(file);
    cr_assert(found > 0, "no %s in %s", comment, path);
    return found;
}

static inline void scene_expect_clean(const char *what)
{
    const fd_emu_report *reports;
    char text[400] = "";
    if (fd_emu_reports(&reports) > 0) {
        fd_emu_describe(&reports[0], text, sizeof text);
    }
    cr_assert(text[0] == '\0', "%s: %s", what, text);
}

/* The first report is of this kind, and names the line of the marker. */
static inline void scene_expect(const char *file, int32_t kind, const char *marker, const char *says, const char *what)
{
    const fd_emu_report *reports;
    char text[400] = "", path[96], place[128];
    const int n = fd_emu_reports(&reports);
    cr_assert(n > 0, "%s: nothing is reported", what);
    fd_emu_describe(&reports[0], text, sizeof text);
    cr_assert(reports[0].fault == kind, "%s: %s", what, text);
    if (marker != NULL) {
        snprintf(path, sizeof path, "tests/emulator_faults/%s", file);
        snprintf(place, sizeof place, "%s:%d:", file, scene_line_of(path, marker));
        cr_assert(strstr(text, place) != NULL, "%s: not at %s %s", what, place, text);
    }
    cr_assert(says == NULL || strstr(text, says) != NULL, "%s: does not say '%s': %s", what, says, text);
}

#endif /* FD_FAULTS_SCENE_H */
