/* test_dump_claims.c: what an answer says of its own arithmetic, in its metadata or on the command line. */
#define _POSIX_C_SOURCE 200809L

#include "test_dump.h"

#include <math.h>

/* Values of +-1: o is off by 5e-4 of sum p|v|, far outside the line of fp32, and inside that of weights in bf16. */
enum { KEYS = 64, DIM = 8 };
static float q[1][1][1][DIM], k[1][KEYS][1][DIM], v[1][KEYS][1][DIM], o[1][1][1][DIM];

static const said *check_with(const char *key, const char *value, const char *option, const char *as)
{
    const fd_metadata metadata = {key, value};
    const char *path = in_folder("own.safetensors");
    double l = 0.0, sum = 0.0;
    for (int32_t j = 0; j < KEYS; j++) {
        const float sign = j % 2 == 0 ? 1.0f : -1.0f;
        const double weight = exp((double)(j % 7) * (1.0 / sqrt((double)DIM)));
        for (int32_t i = 0; i < DIM; i++) {
            v[0][j][0][i] = sign;
        }
        q[0][0][0][0] = 1.0f;
        k[0][j][0][0] = (float)(j % 7);
        l += weight;
        sum += weight * (double)sign;
    }
    for (int32_t i = 0; i < DIM; i++) {
        o[0][0][0][i] = (float)(sum / l + 5e-4);
    }
    const fd_safetensor tensors[] = {
        f32("q", &q[0][0][0][0], 4, 1, 1, 1, DIM), f32("k", &k[0][0][0][0], 4, 1, KEYS, 1, DIM),
        f32("v", &v[0][0][0][0], 4, 1, KEYS, 1, DIM), f32("o", &o[0][0][0][0], 4, 1, 1, 1, DIM)};
    write_file(path, tensors, 4, &metadata, key != NULL ? 1 : 0);
    return call(fd_cmd_check, (const char *const[]){"check", path, option, as, NULL});
}

static void expect(const said *s, int code, const char *says)
{
    cr_expect_eq(s->code, code, "exit code %d, expected %d\n%s%s", s->code, code, s->out, s->err);
    cr_expect(strstr(s->out, says) != NULL || strstr(s->err, says) != NULL, "does not say '%s':\n%s%s", says, s->out,
              s->err);
}

Test(dump_claims, weights_in_bf16_must_be_said)
{
    expect(check_with(NULL, NULL, NULL, NULL), FD_EXIT_FAIL, "o is outside the proved bound");
    expect(check_with("weights", "bf16", NULL, NULL), FD_EXIT_PASS, "1 passed, 0 failed");
    expect(check_with(NULL, NULL, "--weights", "bf16"), FD_EXIT_PASS, "1 passed, 0 failed");
    expect(check_with("weights", "bf16", "--weights", "fp32"), FD_EXIT_FAIL, "o is outside the proved bound");
    remove_folder();
}

Test(dump_claims, wrong_words_are_refused)
{
    expect(check_with("weights", "bf15", NULL, NULL), FD_EXIT_USAGE, "metadata --weights bf15: say fp32, bf16");
    expect(check_with(NULL, NULL, "--order", "any,tree"), FD_EXIT_USAGE, "check: --order any,tree: say any");
    expect(check_with("mma-keys", "16", NULL, NULL), FD_EXIT_USAGE, "--mma-keys and --mma-error speak of");
    remove_folder();
}
