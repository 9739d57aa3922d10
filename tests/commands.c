#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "gpu_math.h"
#include "sigma.h"

const char *fd_program = "build/flashdecode";

const char *fd_dtype_letters(const fd_case *c, char letters[4])
{
    static const char of[] = "fhb";
    const int32_t dtypes[3] = {c->dtype_q, c->dtype_kv, c->dtype_o};
    for (int i = 0; i < 3; i++) {
        letters[i] = dtypes[i] >= FD_F32 && dtypes[i] <= FD_BF16 ? of[dtypes[i]] : '?';
    }
    letters[3] = '\0';
    return letters;
}

fd_rounding fd_host_rounding(const fd_libm_error *libm)
{
    return (fd_rounding){.u = 0x1p-24,
                         .eta = 0x1p-150,
                         .largest = 0x1.fffffep127,
                         .exp_rel = libm->exp_rel,
                         .exp_abs = libm->exp_abs,
                         .exp_rel_positive = libm->exp_rel_positive,
                         .log_rel = libm->log_rel,
                         .log_rel_anywhere = libm->log_rel_anywhere};
}

void fd_print_hypotheses(const fd_libm_error *libm)
{
    printf("judge %d, bound %d, sigma %d, cases %d, contract %u; fp32 round to nearest, gradual underflow;\n"
           "expf within %.4f u and %.3g absolute, logf within %.4f u: %s\n"
           "oracle: exact logits, weights to 2^-91, sums in three doubles, checked by MPFR\n",
           FD_JUDGE_VERSION, FD_BOUND_VERSION, FD_SIGMA_VERSION, FD_CASE_TABLE_VERSION, FD_ABI, libm->exp_rel * 0x1p24,
           libm->exp_abs, libm->log_rel * 0x1p24,
           libm->measured ? "measured on every float" : "ASSUMED (run: flashdecode exp)");
#ifdef FD_GPU
    const fd_gpu_math *gpu = fd_gpu_math_here();
    if (gpu->measured) {
        printf("on this GPU expf within %.4f u and %.3g absolute, logf within %.4f u: measured on every\nfloat, %s\n",
               (double)gpu->exp_rel * 0x1p24, (double)gpu->exp_abs, (double)gpu->log_rel * 0x1p24, gpu->source);
    } else {
        printf("on this GPU expf and logf as NVIDIA documents them: %s\n", gpu->source);
    }
#endif
}

void fd_witness_text(const fd_witness *w, char *text, size_t n)
{
    const double got = (double)w->got;
    snprintf(text, n, "got %.9g, want %.9g (%a and %a, |difference| %.3g, pass line %.3g)", got, w->want, got, w->want,
             w->want > got ? w->want - got : got - w->want, w->bound);
}

void fd_print_failure(const fd_case *c, const fd_outcome *out, const char *looks_like, const char *replay)
{
    static const char *const tiers[] = {"", "exact", "proved", "statistical"};
    const fd_witness *w = &out->worst;
    printf("FAIL %02d %s: %s\n     tier: %s   case: %s   seed: 0x%llx\n", out->rung->number, out->rung->name,
           out->reason, tiers[out->tier], c->name, (unsigned long long)c->seed);
    if (w->b != 0 || w->h != 0 || w->i != -1 || w->bound > 0.0) {
        char row[16] = "", numbers[200]; /* row is left out where there is one query row only */
        if (w->t > 0) {
            snprintf(row, sizeof row, "t=%d ", w->t);
        }
        fd_witness_text(w, numbers, sizeof numbers);
        printf("     b=%d %sh=%d %s%d: %s\n", w->b, row, w->h, w->i < 0 ? "lse " : "i=", w->i < 0 ? 0 : w->i, numbers);
    }
    if (out->tier == FD_TIER_PROVED) {
        printf("     under: at most h_N = %lld, h_D = %lld roundings and R = %lld exponentials a key; "
               "the declaration or the kernel is wrong\n",
               (long long)out->h_n, (long long)out->h_d, (long long)out->rescales);
    }
    if (out->tier == FD_TIER_STATISTICAL) {
        printf("     under: the sigma model of proofs/README.md, which is no theorem: on random data no right rung "
               "should come here\n");
    }
    if (looks_like != NULL) {
        printf("     %s\n", looks_like);
    }
    printf("     replay: %s --case '%s'\n", replay, c->name);
}

/* Of the terminal behind standard error; 0: none, or one that cannot return to the start of a line. */
static int columns(void)
{
    const char *terminal = getenv("TERM");
    struct winsize size;
    if (!isatty(STDERR_FILENO) || terminal == NULL || strcmp(terminal, "dumb") == 0) {
        return 0;
    }
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void fd_progress(const char *what, int64_t done, int64_t total)
{
    const int most = columns() - 1; /* a full line would break */
    char line[100], bar[31];
    if (most <= 0) {
        return;
    }
    if (done >= total) {
        fprintf(stderr, "\r%*s\r", most < 78 ? most : 78, "");
        return;
    }
    const int64_t filled = total > 0 ? 30 * done / total : 0;
    for (int i = 0; i < 30; i++) {
        bar[i] = i < filled ? '#' : '.';
    }
    bar[30] = '\0';
    snprintf(line, sizeof line, "%-12.12s [%s] %lld/%lld", what, bar, (long long)done, (long long)total);
    if (most < (int)strlen(line)) {
        snprintf(line, sizeof line, "%.12s %lld/%lld", what, (long long)done, (long long)total);
    }
    fprintf(stderr, "\r%.*s", most, line);
    fflush(stderr);
}

int fd_exit_code(int64_t passed, int64_t failed)
{
    return failed > 0 ? FD_EXIT_FAIL : passed > 0 ? FD_EXIT_PASS : FD_EXIT_NOTHING;
}
