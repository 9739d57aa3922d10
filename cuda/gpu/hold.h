/* hold.h: does run() keep to the stream that it was given? The stream is held up while run() launches, so that
 * nothing of it can have happened yet: what is in o by then was written on another stream, and so is what changes
 * there after the stream is done. */
#ifndef FD_GPU_HOLD_H
#define FD_GPU_HOLD_H

#include <stdbool.h>

#include "driver.h"
#include "fd.h"

/* Before run(): everything before is over, o is remembered, and the stream waits. A stream is let go by itself
 * after 50 ms, as loading a kernel, and a run() that synchronises, wait for it; then nothing is said. No memory:
 * nothing is said, either. */
void fd_hold_begin(const fd_tensor *o, size_t bytes, cu_stream stream);

/* After run(): lets the stream go. true: o has changed already. */
bool fd_hold_end(void);

/* When the stream is done: remembers o. */
void fd_hold_done(void);

/* When everything is done: true: o has changed since. */
bool fd_hold_late(void);

#endif /* FD_GPU_HOLD_H */
