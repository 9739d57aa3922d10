/* test_proof_status.c: a verdict says so where its bound rests on a proof that is open. */
#include <criterion/criterion.h>
#include <string.h>

#include "proof_status.h"

#define LEVEL(ways, merge, order) ((fd_level){ways, FD_MERGE_##merge, FD_##order, .in_order = 1})

Test(proof_status, open_obligations_are_named)
{
    const struct {
        const char *what, *open; /* NULL: closed */
        fd_arith arith;
    } t[] = {
        {"rung 02", NULL, {.num_levels = 1, .level = {LEVEL(9, ADD, SEQUENTIAL)}}},
        {"rung 03", NULL, {.num_levels = 1, .level = {LEVEL(9, RUNNING, SEQUENTIAL)}}},
        {"rung 05", NULL, {.num_levels = 2, .level = {LEVEL(9, ADD, SEQUENTIAL), LEVEL(4, NORMALISED, SEQUENTIAL)}}},
        {"a tree of states", NULL, {.num_levels = 2, .level = {LEVEL(9, ADD, TREE), LEVEL(4, RESCALE, TREE)}}},
        {"rung 01", NULL, {.num_levels = 1, .level = {LEVEL(9, ADD, SEQUENTIAL)}, .shift = FD_SHIFT_NONE}},
        {"rung 07", "(o, lse)", {.num_levels = 2, .level = {LEVEL(9, ADD, SEQUENTIAL), LEVEL(4, LSE, TREE)}}},
        {"rung 07, one split", NULL, {.num_levels = 2, .level = {LEVEL(9, ADD, SEQUENTIAL), LEVEL(1, LSE, TREE)}}},
        {"no division",
         "without a division",
         {.num_levels = 2, .level = {LEVEL(9, ADD, SEQUENTIAL), LEVEL(4, LSE_NO_DIV, SEQUENTIAL)}}},
        {"rung 23",
         NULL,
         {.num_levels = 3,
          .level = {LEVEL(9, RUNNING, SEQUENTIAL), LEVEL(4, RESCALE, SEQUENTIAL), LEVEL(4, NORMALISED, SEQUENTIAL)}}},
        {"normalised twice",
         "normalised",
         {.num_levels = 2, .level = {LEVEL(4, NORMALISED, SEQUENTIAL), LEVEL(4, NORMALISED, SEQUENTIAL)}}},
        {"normalised in a tree",
         "normalised",
         {.num_levels = 2, .level = {LEVEL(9, ADD, SEQUENTIAL), LEVEL(4, NORMALISED, TREE)}}},
        {"unknown order", "normalised", {.num_levels = 0}},
        {"flushes", "flushed", {.num_levels = 1, .level = {LEVEL(9, ADD, SEQUENTIAL)}, .flushes = 1}},
        {"16-bit weights", "16-bit", {.num_levels = 1, .level = {LEVEL(9, ADD, SEQUENTIAL)}, .dtype_p = FD_BF16}},
        {"16-bit partials", "16-bit", {.num_levels = 1, .level = {LEVEL(9, ADD, SEQUENTIAL)}, .dtype_partial = FD_F16}},
        {"tensor cores",
         "other than fp32",
         {.num_levels = 1, .level = {LEVEL(9, ADD, SEQUENTIAL)}, .accumulator = FD_ACC_TENSOR_CORE}},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        char open[200];
        const bool closed = fd_proof_closed(&t[i].arith, open, sizeof open);
        cr_expect_eq(closed, t[i].open == NULL, "%s: %s", t[i].what, open);
        cr_expect(t[i].open == NULL ? open[0] == '\0' : strstr(open, t[i].open) != NULL, "%s says: %s", t[i].what,
                  open);
    }
}

Test(proof_status, two_are_named_and_a_short_buffer_is_kept)
{
    const fd_arith both = {.num_levels = 1, .level = {LEVEL(9, LSE, TREE)}, .flushes = 1};
    char open[200], small[16];
    cr_expect(!fd_proof_closed(&both, open, sizeof open));
    cr_expect_str_eq(open, "proof open: merges of (o, lse), flushed subnormals");
    cr_expect(!fd_proof_closed(&both, small, sizeof small));
    cr_expect_eq(strlen(small), sizeof small - 1);
}
