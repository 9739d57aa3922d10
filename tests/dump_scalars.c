/* dump_scalars.c: scale, mask and layout of a dump. */
#include <math.h>
#include <stdlib.h>

#include "dump_parts.h"

/* A tensor of one element, or metadata, in decimal or hex; rounded to the float that a kernel is called with. */
fd_status fd_dump_read_scale(const fd_dump_reader *r)
{
    fd_problem *p = &r->dump->problem;
    const fd_safetensor *x = r->x[FD_DUMP_SM_SCALE];
    const char *text = fd_safetensors_metadata(r->file, "sm_scale");
    char shape[120], *end = NULL;
    double value = 1.0 / sqrt((double)p->head_dim);
    if (x != NULL && (x->bytes != fd_safetensors_element_bytes(x->dtype_name) ||
                      (x->dtype != FD_F32 && strcmp(x->dtype_name, "F64") != 0))) {
        return FD_DUMP_REFUSE(r, "%s is %s, expected one element, F32 or F64", x->name,
                              fd_dump_shape(x, shape, sizeof shape));
    }
    if (text != NULL) {
        value = strtod(text, &end);
    }
    if (text != NULL && (*text == '\0' || *end != '\0')) {
        return FD_DUMP_REFUSE(r, "metadata sm_scale is '%.40s', no number", text);
    }
    if (x != NULL) {
        const double stored = x->dtype == FD_F32 ? (double)*(const float *)x->data : *(const double *)x->data;
        if (text != NULL && (float)stored != (float)value) {
            return FD_DUMP_REFUSE(r, "%s is %.9g, but metadata sm_scale says %.9g; drop one", x->name, stored, value);
        }
        value = stored;
    }
    p->sm_scale = (float)value;
    r->dump->scale_given = x != NULL || text != NULL;
    return isfinite(p->sm_scale) ? FD_OK : FD_DUMP_REFUSE(r, "sm_scale %g is no finite float", value);
}

fd_status fd_dump_read_metadata(fd_dump_reader *r)
{
    static const char *const orders[] = {"BSHD", "BHSD", "NHD", "HND"}, *const answers[] = {"false", "true"};
    fd_problem *p = &r->dump->problem;
    int word = 0, word_kv = 0, causal = 0;
    int64_t window_right = -1;
    fd_status status = fd_dump_check_metadata(r->file, r->dump->path, r->why, r->n);
    status = status == FD_OK ? fd_dump_word(r->file, r->dump->path, "layout", orders, 4, &word, r->why, r->n) : status;
    status =
        status == FD_OK ? fd_dump_word(r->file, r->dump->path, "kv_layout", orders, 4, &word_kv, r->why, r->n) : status;
    status =
        status == FD_OK ? fd_dump_word(r->file, r->dump->path, "causal", answers, 2, &causal, r->why, r->n) : status;
    status = status == FD_OK ? fd_dump_number(r->file, r->dump->path, "window_right", -1, INT32_MAX / 2, &window_right,
                                              r->why, r->n)
                             : status;
    status = status == FD_OK ? fd_dump_number(r->file, r->dump->path, "split_size", 0, INT32_MAX,
                                              &p->split_size_request, r->why, r->n)
                             : status;
    if (status == FD_OK && causal == 0 && window_right >= 0 && fd_safetensors_metadata(r->file, "causal") != NULL) {
        return FD_DUMP_REFUSE(r, "metadata window_right is %lld, but causal is false; drop one",
                              (long long)window_right);
    }
    r->order = word % 2 == 0 ? FD_HEADS_LAST : FD_HEADS_FIRST;
    r->order_kv = fd_safetensors_metadata(r->file, "kv_layout") == NULL ? r->order
                  : word_kv % 2 == 0                                    ? FD_HEADS_LAST
                                                                        : FD_HEADS_FIRST;
    r->dump->mask_given = fd_safetensors_metadata(r->file, "causal") != NULL || window_right >= 0;
    p->window_left = -1;
    p->window_right = causal != 0 && window_right < 0 ? 0 : (int32_t)window_right;
    return status;
}

/* One integer, as a tensor: languages that read no metadata read that. -1 is no mask. */
fd_status fd_dump_read_window(const fd_dump_reader *r)
{
    const fd_safetensor *x = r->x[FD_DUMP_WINDOW_RIGHT];
    fd_problem *p = &r->dump->problem;
    char shape[120];
    if (x == NULL) {
        return FD_OK;
    }
    if (x->bytes != fd_safetensors_element_bytes(x->dtype_name) ||
        (x->dtype != FD_I32 && strcmp(x->dtype_name, "I64") != 0)) {
        return FD_DUMP_REFUSE(r, "%s is %s, expected one element, I32 or I64", x->name,
                              fd_dump_shape(x, shape, sizeof shape));
    }
    const int64_t right = fd_dump_integer(x, 0);
    const bool also = fd_safetensors_metadata(r->file, "causal") || fd_safetensors_metadata(r->file, "window_right");
    if (right < -1 || right > INT32_MAX / 2 || (also && right != p->window_right)) {
        return FD_DUMP_REFUSE(r, "%s is %lld, expected %s", x->name, (long long)right,
                              also ? "what metadata causal and window_right say"
                                   : "-1, no mask, or keys ahead of the row");
    }
    p->window_right = (int32_t)right;
    r->dump->mask_given = true;
    return FD_OK;
}
