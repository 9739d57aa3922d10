/* hooked.c: the CUDA rungs compiled a second time, with hooks. */
#include "emulator.h"

extern const fd_rung *const fd_hooked[]; /* build/hooked.c, written by the Makefile */
extern const int fd_hooked_count;

const fd_rung *fd_hooked_find(int32_t number)
{
    for (int i = 0; i < fd_hooked_count; i++) {
        if (fd_hooked[i]->number == number) {
            return fd_hooked[i];
        }
    }
    return NULL;
}
