/* test_resume.c: a measurement that was cut off goes on where it was. */
#define _POSIX_C_SOURCE 200809L /* getpid */

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#include "resume.h"

static const char *path(void)
{
    static char name[4096];
    const char *folder = getenv("TMPDIR");
    snprintf(name, sizeof name, "%s/fd-test-%ld.csv", folder != NULL ? folder : "/tmp", (long)getpid());
    return name;
}

static void write_text(const char *text)
{
    FILE *file = fopen(path(), "wb");
    cr_assert_not_null(file);
    cr_assert(fwrite(text, 1, strlen(text), file) == strlen(text));
    cr_assert_eq(fclose(file), 0);
}

static void expect_text(const char *text)
{
    char got[512] = "";
    FILE *file = fopen(path(), "rb");
    cr_assert_not_null(file);
    got[fread(got, 1, sizeof got - 1, file)] = '\0';
    fclose(file);
    remove(path());
    cr_assert_str_eq(got, text);
}

Test(resume, a_new_file_gets_a_header_and_rows)
{
    fd_resume r;
    char why[1200] = "";
    remove(path());
    cr_assert_eq(fd_resume_open(&r, path(), "rung,ns", why, sizeof why), FD_OK, "%s", why);
    cr_assert(r.fresh && !fd_resume_has(&r, "20,"));
    cr_assert_eq(fd_resume_add(&r, "20,5", why, sizeof why), FD_OK);
    cr_assert(fd_resume_has(&r, "20,"));
    fd_resume_close(&r);
    expect_text("rung,ns\n20,5\n");
}

Test(resume, what_is_there_is_kept_and_found)
{
    fd_resume r;
    char why[1200] = "";
    write_text("# a machine\nrung,ns\n20,5\n120,7\n");
    cr_assert_eq(fd_resume_open(&r, path(), "rung,ns", why, sizeof why), FD_OK, "%s", why);
    cr_assert(!r.fresh && fd_resume_has(&r, "20,") && fd_resume_has(&r, "120,7"));
    cr_assert(!fd_resume_has(&r, "2,") && !fd_resume_has(&r, "0,5"));
    cr_assert_eq(fd_resume_add(&r, "21,6", why, sizeof why), FD_OK);
    fd_resume_close(&r);
    expect_text("# a machine\nrung,ns\n20,5\n120,7\n21,6\n");
}

Test(resume, a_row_that_was_cut_off_is_measured_again)
{
    fd_resume r;
    char why[1200] = "";
    write_text("rung,ns\n20,5\n21,");
    cr_assert_eq(fd_resume_open(&r, path(), "rung,ns", why, sizeof why), FD_OK, "%s", why);
    cr_assert(fd_resume_has(&r, "20,") && !fd_resume_has(&r, "21,"));
    cr_assert_eq(fd_resume_add(&r, "21,6", why, sizeof why), FD_OK);
    fd_resume_close(&r);
    expect_text("rung,ns\n20,5\n21,6\n");
    write_text("rung,n");
    cr_assert_eq(fd_resume_open(&r, path(), "rung,ns", why, sizeof why), FD_OK, "%s", why);
    fd_resume_close(&r);
    expect_text("rung,ns\n");
}

Test(resume, other_columns_are_refused_and_left_alone)
{
    fd_resume r;
    char why[1200] = "";
    write_text("rung,ns,more\n20,5,1\n");
    cr_assert_eq(fd_resume_open(&r, path(), "rung,ns", why, sizeof why), FD_INVALID);
    cr_assert(strstr(why, "has other columns") != NULL && strncmp(why, path(), strlen(path())) == 0, "%s", why);
    expect_text("rung,ns,more\n20,5,1\n");
    cr_assert_eq(fd_resume_open(&r, "/nonexistent/x.csv", "rung,ns", why, sizeof why), FD_INVALID);
    cr_assert(strstr(why, "cannot be written") != NULL, "%s", why);
    cr_assert_eq(fd_resume_open(&r, "/dev/full", "rung,ns", why, sizeof why), FD_INVALID);
    cr_assert(strstr(why, "is no regular file") != NULL, "%s", why);
}
