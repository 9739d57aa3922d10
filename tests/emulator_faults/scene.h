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
/* The kernel as compiled plain and with hooks. */
#define EACH_BUILD(name, kernel)                                                                                       \
    for (fd_async_run *kernel = fd_async_plain_##name; kernel != NULL;                                                 \
         kernel = kernel == fd_async_plain_##name ? fd_async_hooked_##name : NULL)
#define EACH_SCHEDULE(s) for (int32_t s = 0; s < FD_EMU_NUM_SCHEDULES; s++)
#define EACH_WAY(schedule, async)                                                                                      \
    EACH_SCHEDULE(schedule)                                                                                            \
    for (int32_t async = FD_EMU_LATEST; async <= FD_EMU_EARLIEST; async++)

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

/* A report is of this kind, names the line of the marker and says this. The observer may have seen more before. */
static inline void scene_expect(const char *file, int32_t kind, const char *marker, const char *says, const char *what)
{
    const fd_emu_report *reports;
    char text[400] = "", path[96], place[128] = "";
    int found = 0;
    if (marker != NULL) {
        snprintf(path, sizeof path, "tests/emulator_faults/%s", file);
        snprintf(place, sizeof place, "%s:%d:", file, scene_line_of(path, marker));
    }
    for (int i = fd_emu_reports(&reports) - 1; i >= 0 && !found; i--) {
        fd_emu_describe(&reports[i], text, sizeof text);
        found = reports[i].fault == kind && strstr(text, place) != NULL && (says == NULL || strstr(text, says) != NULL);
    }
    cr_assert(found, "%s: no %s at %s %s; the first report: %s", what, fd_emu_fault_name(kind), place,
              says != NULL ? says : "", text);
}

#endif /* FD_FAULTS_SCENE_H */
