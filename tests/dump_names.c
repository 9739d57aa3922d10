/* dump_names.c: what tensors and metadata of a dump may be called. */
#include <errno.h>
#include <stdlib.h>

#include "claims_options.h"
#include "dump.h"

#define CLAIMS_MAX 32 /* options of claims_options.h */

/* Ours first, then what FlashAttention, FlashInfer, vLLM and PyTorch call the same thing. */
static const char *const names[FD_DUMP_TENSORS][5] = {
    [FD_DUMP_Q] = {"q", "query"},
    [FD_DUMP_K] = {"k", "key", "k_cache", "key_cache"},
    [FD_DUMP_V] = {"v", "value", "v_cache", "value_cache"},
    [FD_DUMP_O] = {"o", "out", "output"},
    [FD_DUMP_LSE] = {"lse", "softmax_lse"},
    [FD_DUMP_KV_LENS] = {"kv_lens", "cache_seqlens", "seqused_k", "context_lens", "seq_lens"},
    [FD_DUMP_CU_SEQLENS_Q] = {"cu_seqlens_q", "qo_indptr"},
    [FD_DUMP_CU_SEQLENS_K] = {"cu_seqlens_k"},
    [FD_DUMP_PAGE_TABLE] = {"page_table", "block_table", "block_tables"},
    [FD_DUMP_SM_SCALE] = {"sm_scale", "softmax_scale", "scale"},
    [FD_DUMP_WINDOW_RIGHT] = {"window_right"},
};

/* "format" is what torch's save_file writes; the second line is what `flashdecode cases` writes. */
static const char *const keys[] = {"layout",       "kv_layout", "lse_layout", "sm_scale",      "causal",
                                   "window_right", "format",    "split_size", "case",          "seed",
                                   "cases",        "dump",      "family",     "sm_scale_float"};

static int tensor_named(const char *name)
{
    for (int t = 0; t < FD_DUMP_TENSORS; t++) {
        for (int k = 0; k < 5 && names[t][k] != NULL; k++) {
            if (strcmp(name, names[t][k]) == 0) {
                return t;
            }
        }
    }
    return -1;
}

fd_status fd_dump_find(const fd_safetensors *file, const char *path, const fd_safetensor *found[FD_DUMP_TENSORS],
                       char *why, size_t n)
{
    memset(found, 0, FD_DUMP_TENSORS * sizeof *found);
    for (int32_t i = 0; i < file->count; i++) {
        const fd_safetensor *x = &file->tensors[i];
        const int t = tensor_named(x->name);
        if (t < 0 && strchr(x->name, '.') == NULL) {
            return fd_safetensors_refuse(path, why, n,
                                         "tensor '%.60s' is none this judge knows, and may change what is right: q, k, "
                                         "v, o, lse, kv_lens, cu_seqlens_q, cu_seqlens_k, page_table, sm_scale and "
                                         "window_right are known; rename it, or, if it changes nothing, put a dot into "
                                         "its name",
                                         x->name);
        }
        if (t >= 0 && found[t] != NULL) {
            return fd_safetensors_refuse(path, why, n, "'%s' and '%s' are two names of one tensor; drop one",
                                         found[t]->name, x->name);
        }
        if (t >= 0) {
            found[t] = x;
        }
    }
    return FD_OK;
}

fd_status fd_dump_check_metadata(const fd_safetensors *file, const char *path, char *why, size_t n)
{
    const char *known[sizeof keys / sizeof *keys + CLAIMS_MAX];
    int count = (int)(sizeof keys / sizeof *keys);
    memcpy(known, keys, sizeof keys);
    for (int k = 0; k < CLAIMS_MAX && fd_claims_option_names[k] != NULL; k++) {
        known[count++] = fd_claims_option_names[k];
    }
    const char *key = fd_safetensors_unknown_key(file, known, count);
    return key == NULL ? FD_OK
                       : fd_safetensors_refuse(path, why, n,
                                               "metadata '%.60s' is none this judge knows, and may change what is "
                                               "right: tutorials/dumps.md lists them; rename it, or, if it changes "
                                               "nothing, put a dot into its name",
                                               key);
}

fd_status fd_dump_word(const fd_safetensors *file, const char *path, const char *key, const char *const *words,
                       int count, int *index, char *why, size_t n)
{
    const char *value = fd_safetensors_metadata(file, key);
    char list[120] = "";
    *index = 0;
    for (int w = 0; w < count && value != NULL; w++) {
        if (strcmp(value, words[w]) == 0) {
            *index = w;
            return FD_OK;
        }
        const size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", w == 0 ? "" : w + 1 == count ? " or " : ", ", words[w]);
    }
    return value == NULL ? FD_OK
                         : fd_safetensors_refuse(path, why, n, "metadata %s is '%.40s', not %s", key, value, list);
}

fd_status fd_dump_number(const fd_safetensors *file, const char *path, const char *key, int64_t least, int64_t most,
                         int64_t *value, char *why, size_t n)
{
    const char *text = fd_safetensors_metadata(file, key);
    char *end;
    if (text == NULL) {
        return FD_OK;
    }
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    if (*text == '\0' || *end != '\0' || errno != 0 || number < least || number > most) {
        return fd_safetensors_refuse(path, why, n, "metadata %s is '%.40s', not a whole number %lld .. %lld", key, text,
                                     (long long)least, (long long)most);
    }
    *value = number;
    return FD_OK;
}

int64_t fd_dump_integer(const fd_safetensor *x, int64_t i)
{
    return x->dtype == FD_I32 ? ((const int32_t *)x->data)[i] : ((const int64_t *)x->data)[i];
}

const char *fd_dump_shape(const fd_safetensor *x, char *text, size_t n)
{
    size_t used = (size_t)snprintf(text, n, "%s [", x->dtype_name);
    for (int32_t d = 0; d < x->rank && used < n; d++) {
        used += (size_t)snprintf(text + used, n - used, "%s%lld", d > 0 ? ", " : "", (long long)x->shape[d]);
    }
    if (used < n) {
        snprintf(text + used, n - used, "]");
    }
    return text;
}
