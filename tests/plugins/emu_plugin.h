/* emu_plugin.h: a plug-in of one kernel of one warp, for the emulator. */
#ifndef FD_TEST_EMU_PLUGIN_H
#define FD_TEST_EMU_PLUGIN_H

#include "fd_cuda.h"

static const fd_caps caps = {.size = sizeof(fd_caps),
                             .features = FD_LSE | FD_RAGGED | FD_HEAD_DIM_V,
                             .dtypes_q = 1u << FD_F32,
                             .dtypes_kv = 1u << FD_F32,
                             .dtypes_o = 1u << FD_F32,
                             .spaces = 1u << FD_DEVICE,
                             .q_len_max = 1};

#define PLUGIN(kernel)                                                                                                 \
    static fd_status run(const fd_problem *p, const fd_context *c)                                                     \
    {                                                                                                                  \
        const fd_launch launch = {{1, 1, 1}, {FD_WARP, 1, 1}, 0, 0, 0, c->stream};                                     \
        const fd_problem args = *p;                                                                                    \
        return FD_LAUNCH(kernel, launch, args);                                                                        \
    }                                                                                                                  \
    static const fd_rung plugin = {                                                                                    \
        .size = sizeof(fd_rung), .abi = FD_ABI, .name = #kernel, .caps = &caps, .run = run};                           \
    const fd_rung *fd_plugin(uint32_t host_abi)                                                                        \
    {                                                                                                                  \
        return host_abi == FD_ABI ? &plugin : NULL;                                                                    \
    }

#endif /* FD_TEST_EMU_PLUGIN_H */
