/* safetensors_fuzz.c: any bytes as a .safetensors file, through the reader, the problem and the answer made of it, up to
 * an instance of a small problem. Whatever the bytes are: FD_OK, or one line that says what is wrong. `make fuzz`. */
#define _POSIX_C_SOURCE 200809L /* fmemopen */

#include <stdlib.h>

#include "dump.h"
#include "ladder.h"

#define SMALL ((int64_t)1 << 20) /* bytes of an instance that is worth making */

/* No rung is run here, so none is linked. */
const fd_rung *const fd_ladder[] = {NULL};
const int fd_ladder_count = 0;

static void refused(fd_status status, const char *why)
{
    if (status == FD_OK) {
        return;
    }
    const size_t length = strlen(why);
    for (size_t i = 0; i < length; i++) {
        if ((unsigned char)why[i] < 32) {
            abort(); /* more than one line */
        }
    }
    if (length == 0) {
        abort();
    }
}

/* The first sequences of the first one's q_len, as an instance and as gathered answers. */
static void make_instance(const fd_dump *d, const fd_dumped *answer)
{
    const fd_problem *p = &d->problem;
    int32_t sequences[4], count = 0, q_len = 0;
    for (int32_t b = 0; b < p->batch && count < 4; b++) {
        q_len = q_len == 0 ? d->q_lens[b] : q_len;
        if (d->q_lens[b] == q_len && q_len > 0) {
            sequences[count++] = b;
        }
    }
    const double rows = (double)count * q_len * p->heads_q, keys = (double)count * (double)p->kv_capacity * p->heads_kv;
    if (count == 0 || (rows + keys) * (p->head_dim + p->head_dim_v + 32) > (double)SMALL) {
        return;
    }
    fd_instance instance;
    char why[1024] = "";
    const fd_dump_part part = {d, sequences, count, q_len};
    const fd_status status = fd_dump_instance(&part, "fuzz", FD_F32, &instance, why, sizeof why);
    refused(status, why);
    if (status == FD_OK) {
        fd_instance_restore(&instance, why, sizeof why);
        fd_instance_free(&instance);
    }
    float *o = malloc((size_t)(rows * p->head_dim_v) * sizeof *o + 1), *lse = malloc((size_t)rows * sizeof *lse + 1);
    if (o != NULL && lse != NULL && answer->o.data != NULL) {
        fd_dumped_gather(answer, sequences, count, q_len, o, lse);
    }
    free(o);
    free(lse);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FILE *stream = size > 0 ? fmemopen((void *)(uintptr_t)data, size, "rb") : NULL;
    fd_safetensors file;
    fd_dump dump;
    fd_dumped answer;
    fd_arith claims;
    bool found = false;
    char why[1024] = "";
    if (stream == NULL) {
        return 0;
    }
    fd_status status = fd_safetensors_read(stream, "fuzz", &file, why, sizeof why);
    fclose(stream);
    refused(status, why);
    if (status != FD_OK) {
        return 0;
    }
    status = fd_dump_read(&file, "fuzz", &dump, why, sizeof why);
    refused(status, why);
    if (status == FD_OK) {
        refused(fd_dumped_read(&file, "fuzz", &dump.rows, &answer, &found, why, sizeof why), why);
        refused(fd_dump_claims(&file, "fuzz", &claims, why, sizeof why), why);
        make_instance(&dump, &answer);
        fd_dump_free(&dump);
    }
    fd_safetensors_close(&file);
    return 0;
}

/* ---- Mutation ---------------------------------------------------------------------------------- */

#define HEADER_MAX 4096

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

static uint64_t header_length(const uint8_t *data)
{
    uint64_t length = 0;
    for (int x = 7; x >= 0; x--) {
        length = length << 8 | data[x];
    }
    return length;
}

/* Bytes at random nearly always leave a header whose length is a lie, and the reader stops there. Two times in three, the
 * header alone is changed and its length set right, so that the data behind it still fit. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    uint8_t header[HEADER_MAX];
    const uint64_t length = size >= 8 ? header_length(data) : UINT64_MAX;
    if (seed % 3 == 0 || length > size - 8 || length > HEADER_MAX || size > max_size) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    const size_t rest = size - 8 - (size_t)length;
    size_t room = max_size - 8 - rest;
    room = room < HEADER_MAX ? room : HEADER_MAX;
    memcpy(header, data + 8, (size_t)length);
    const size_t changed = LLVMFuzzerMutate(header, (size_t)length, room);
    memmove(data + 8 + changed, data + 8 + length, rest);
    memcpy(data + 8, header, changed);
    for (int x = 0; x < 8; x++) {
        data[x] = (uint8_t)((uint64_t)changed >> 8 * x);
    }
    return 8 + changed + rest;
}
