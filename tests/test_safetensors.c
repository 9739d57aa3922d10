/* test_safetensors.c: the reader finds what is there, and refuses every damaged file with a line that says what is
 * wrong with it. */
#define _POSIX_C_SOURCE 200809L /* getpid */

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "safetensors.h"

static const char *path(void)
{
    static char name[4096];
    const char *folder = getenv("TMPDIR");
    snprintf(name, sizeof name, "%s/fd-test-%ld.safetensors", folder != NULL ? folder : "/tmp", (long)getpid());
    return name;
}

static void write_bytes(const void *bytes, size_t n)
{
    FILE *file = fopen(path(), "wb");
    cr_assert_not_null(file, "%s cannot be written", path());
    cr_assert(fwrite(bytes, 1, n, file) == n);
    cr_assert(fclose(file) == 0);
}

/* 8 bytes that say `length`, the header, and data_bytes bytes 0, 1, 2, ... */
static void write_file(uint64_t length, const char *header, size_t data_bytes)
{
    unsigned char bytes[2048];
    const size_t n = strlen(header);
    cr_assert(8 + n + data_bytes <= sizeof bytes);
    for (int x = 0; x < 8; x++) {
        bytes[x] = (unsigned char)(length >> 8 * x);
    }
    memcpy(bytes + 8, header, n);
    for (size_t x = 0; x < data_bytes; x++) {
        bytes[8 + n + x] = (unsigned char)x;
    }
    write_bytes(bytes, 8 + n + data_bytes);
}

static void expect_refused(const char *says)
{
    fd_safetensors file;
    char why[600] = "";
    cr_assert(fd_safetensors_open(path(), &file, why, sizeof why) == FD_INVALID, "taken, instead of: %s", says);
    cr_assert(strstr(why, says) != NULL, "'%s' does not say '%s'", why, says);
    cr_assert(strncmp(why, path(), strlen(path())) == 0 && strchr(why, '\n') == NULL, "%s", why);
    cr_assert(file.tensors == NULL && file.header == NULL && file.data == NULL);
    remove(path());
}

#define F32_4(name, begin, end) "\"" name "\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[" begin "," end "]}"

Test(safetensors, finds_tensors_and_metadata)
{
    char why[600] = "";
    fd_safetensors file;
    const char *header = "{\"__metadata__\":{\"sm_scale\":\"0x1p-3\"},"
                         "\"z\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
                         "\"scalar\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
                         "\"empty\":{\"dtype\":\"F16\",\"shape\":[7,0],\"data_offsets\":[16,16]},"
                         "\"steps\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[16,24]}}   ";
    write_file(strlen(header), header, 24);
    cr_assert(fd_safetensors_open(path(), &file, why, sizeof why) == FD_OK, "%s", why);
    remove(path());
    cr_assert(file.count == 4);

    const fd_safetensor *x = fd_safetensors_find(&file, "z");
    cr_assert(x != NULL && x->dtype == FD_BF16 && x->rank == 2 && x->shape[0] == 2 && x->shape[1] == 3);
    cr_assert(x->bytes == 12 && ((const unsigned char *)x->data)[11] == 15);
    x = fd_safetensors_find(&file, "scalar");
    cr_assert(x != NULL && x->dtype == FD_F32 && x->rank == 0 && x->bytes == 4);
    cr_assert(((const unsigned char *)x->data)[0] == 0);
    x = fd_safetensors_find(&file, "empty");
    cr_assert(x != NULL && x->rank == 2 && x->bytes == 0 && x->data != NULL);
    x = fd_safetensors_find(&file, "steps");
    cr_assert(x != NULL && x->dtype == -1 && x->bytes == 8);
    cr_assert_str_eq(x->dtype_name, "I64");

    cr_assert_null(fd_safetensors_find(&file, "y"));
    cr_assert_str_eq(fd_safetensors_metadata(&file, "sm_scale"), "0x1p-3");
    cr_assert_null(fd_safetensors_metadata(&file, "other"));
    fd_safetensors_close(&file);
}

Test(safetensors, file_without_tensors_or_metadata)
{
    char why[600] = "";
    fd_safetensors file;
    write_file(2, "{}", 0);
    cr_assert(fd_safetensors_open(path(), &file, why, sizeof why) == FD_OK, "%s", why);
    remove(path());
    cr_assert(file.count == 0 && fd_safetensors_find(&file, "q") == NULL);
    cr_assert_null(fd_safetensors_metadata(&file, "sm_scale"));
    fd_safetensors_close(&file);
}

Test(safetensors, damaged_files_are_refused)
{
    write_bytes("1234567", 7);
    expect_refused("7 bytes are no safetensors file");
    write_file(3, "{}", 0);
    expect_refused("header length 3, but only 2 bytes follow");
    write_file(UINT64_MAX, "{}", 0);
    expect_refused("header length 18446744073709551615 is above");
    write_file(100000001, "{}", 0);
    expect_refused("is above 100000000");
    write_file(0, "", 0);
    expect_refused("does not begin with {");
    write_file(2, "[]", 0);
    expect_refused("does not begin with {");
    write_file(7, "{\"a\":1,", 0);
    expect_refused("not JSON");
    write_file(9, "{\"a\" \"b\"}", 0);
    expect_refused("not JSON, near byte 8 of it: ':' expected near '\"b\"'");
    write_file(4, "{}xx", 0);
    expect_refused("end of file expected");
    write_bytes("\5\0\0\0\0\0\0\0{}\0\0\0", 13);
    expect_refused("end of file expected");
    remove(path());
    expect_refused("cannot be opened");
}

Test(safetensors, wrong_headers_are_refused)
{
    const struct {
        const char *header; /* with 32 bytes of data behind it */
        const char *says;
    } bad[] = {
        {"{" F32_4("a", "0", "16") "," F32_4("b", "20", "36") "}", "'b' ends at byte 36, but the file has 32"},
        {"{" F32_4("a", "16", "0") "," F32_4("b", "16", "32") "}", "'a': data_offsets [16, 0] run backwards"},
        {"{" F32_4("a", "0", "16") "," F32_4("b", "12", "28") "}", "'a' and 'b' overlap"},
        {"{" F32_4("a", "0", "16") "," F32_4("b", "0", "16") "}", "overlap"},
        {"{" F32_4("b", "16", "32") "}", "hole of 16 bytes before tensor 'b'"},
        {"{" F32_4("a", "0", "16") "}", "16 bytes behind the last tensor"},
        {"{" F32_4("a", "0", "16") "," F32_4("a", "16", "32") "}", "a name twice, near byte 58"},
        {"{" F32_4("a", "0", "32") "}", "make 16 bytes, data_offsets 32"},
        {"{" F32_4("a", "-16", "0") "}", "not two integers"},
        {"{" F32_4("a", "0", "1e400") "}", "real number overflow"},
        {"{" F32_4("a", "0", "1e1") "}", "not two integers"},
        {"{" F32_4("a", "0.5", "16.5") "}", "not two integers"},
        {"{" F32_4("a", "0", "16,32") "}", "not two integers"},
        {"{" F32_4("a", "0", "18446744073709551616") "}", "too big integer"},
        {"{" F32_4("a", "0", "9223372036854775807") "}", "ends at byte 9223372036854775807"}, /* no double holds it */
        {"{" F32_4("a", "0", "16") "," F32_4("\\u0061", "16", "32") "}", "a name twice"},
        {"{" F32_4("\xff", "0", "32") "}", "unable to decode byte 0xff"},
        {"{\"a\":1}", "'a' is not an object of dtype"},
        {"{\"a\":[1,2,3]}", "'a' is not an object of dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[8]}}", "'a' is not an object of dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[8],\"data_offsets\":[0,32],\"shape\":[4]}}", "a name twice"},
        {"{\"a\":{\"dtype\":\"F33\",\"shape\":[8],\"data_offsets\":[0,32]}}", "unknown dtype 'F33'"},
        {"{\"a\":{\"dtype\":4,\"shape\":[8],\"data_offsets\":[0,32]}}", "unknown dtype"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":8,\"data_offsets\":[0,32]}}", "shape is not an array"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-8],\"data_offsets\":[0,32]}}", "extent 0 of its shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4,\"2\"],\"data_offsets\":[0,32]}}", "extent 1 of its shape"},
        /* 2^62 elements, then 2^64 that wrap to 8 */
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2147483648,2147483648],\"data_offsets\":[0,32]}}",
         "more bytes than 2^63"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,8],\"data_offsets\":[0,32]}}",
         "more bytes than 2^63"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,8],\"data_offsets\":[0,32]}}", "more than 8 dimensions"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[7],\"data_offsets\":[2,30]}}",
         "'b' begins at byte 2, no multiple"},
        {"{\"a\\nb\":1}", "'a?b' is not an object of dtype"}, /* one line, whatever the name holds */
        {"{\"__metadata__\":[]}", "__metadata__ is not an object"},
        {"{\"__metadata__\":{\"a\":1}}", "__metadata__ 'a' is not a string"},
        {"{\"__metadata__\":{},\"__metadata__\":{}}", "a name twice"},
    };
    for (size_t x = 0; x < sizeof bad / sizeof *bad; x++) {
        write_file(strlen(bad[x].header), bad[x].header, 32);
        expect_refused(bad[x].says);
    }
}

/* Every prefix of a good file is refused; so is any file with one byte more. */
Test(safetensors, every_cut_is_noticed)
{
    unsigned char bytes[256];
    const char *header = "{" F32_4("a", "0", "16") "," F32_4("b", "16", "32") "}";
    write_file(strlen(header), header, 33);
    FILE *file = fopen(path(), "rb");
    cr_assert_not_null(file);
    const size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t cut = 0; cut <= n; cut++) {
        if (cut == n - 1) {
            continue;
        }
        write_bytes(bytes, cut);
        expect_refused(cut == n ? "1 bytes behind the last tensor" : "");
    }
}

/* ---- The writer -------------------------------------------------------------------------------- */

Test(safetensors, what_is_written_is_read)
{
    char why[600] = "";
    fd_safetensors file;
    const uint16_t odd[3] = {0x3f80, 0xffff, 1};
    const float scale = 0.3f;
    const int64_t lens[2] = {INT64_MAX, -1};
    const fd_safetensor tensors[] = {{.name = "odd", .dtype_name = "BF16", .rank = 1, .shape = {3}, .data = odd},
                                     {.name = "scale", .dtype_name = "F32", .rank = 0, .data = &scale},
                                     {.name = "none", .dtype_name = "F16", .rank = 2, .shape = {7, 0}, .data = odd},
                                     {.name = "lens", .dtype_name = "I64", .rank = 1, .shape = {2}, .data = lens}};
    const fd_metadata metadata[] = {{"quoted", "a \"b\"\n\\"}};
    cr_assert(fd_safetensors_write(path(), tensors, 4, metadata, 1, why, sizeof why) == FD_OK, "%s", why);
    cr_assert(fd_safetensors_open(path(), &file, why, sizeof why) == FD_OK, "%s",
              why); /* which refuses unaligned ones */
    remove(path());
    cr_assert_eq(file.count, 4);
    const fd_safetensor *x = fd_safetensors_find(&file, "odd");
    cr_expect(x->dtype == FD_BF16 && x->shape[0] == 3 && memcmp(x->data, odd, sizeof odd) == 0);
    x = fd_safetensors_find(&file, "scale");
    cr_expect(x->rank == 0 && memcmp(x->data, &scale, sizeof scale) == 0);
    x = fd_safetensors_find(&file, "lens");
    cr_expect(memcmp(x->data, lens, sizeof lens) == 0);
    x = fd_safetensors_find(&file, "none");
    cr_expect(x->rank == 2 && x->shape[0] == 7 && x->bytes == 0);
    cr_expect_str_eq(fd_safetensors_metadata(&file, "quoted"), "a \"b\"\n\\");
    fd_safetensors_close(&file);
}

Test(safetensors, what_cannot_be_written_is_refused)
{
    char why[600] = "";
    const float x = 1.0f;
    fd_safetensor tensor = {.name = "x", .dtype_name = "F12", .rank = 0, .data = &x};
    cr_expect(fd_safetensors_write(path(), &tensor, 1, NULL, 0, why, sizeof why) == FD_INVALID);
    cr_expect(strstr(why, "tensor 'x' has no known dtype") != NULL, "%s", why);
    tensor = (fd_safetensor){.name = "x", .dtype_name = "F32", .rank = 2, .shape = {INT64_MAX, 2}, .data = &x};
    cr_expect(fd_safetensors_write(path(), &tensor, 1, NULL, 0, why, sizeof why) == FD_INVALID);
    tensor = (fd_safetensor){.name = "\xff", .dtype_name = "F32", .rank = 0, .data = &x};
    cr_expect(fd_safetensors_write(path(), &tensor, 1, NULL, 0, why, sizeof why) != FD_OK);
    cr_expect(access(path(), F_OK) != 0, "a file in spite of that");
    tensor.name = "x";
    cr_expect(fd_safetensors_write("/nowhere/x", &tensor, 1, NULL, 0, why, sizeof why) == FD_INVALID);
    cr_expect(strstr(why, "cannot write /nowhere/x: No such file or directory") != NULL, "%s", why);
}
