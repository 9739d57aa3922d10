/* interrupt.h: what Ctrl-C, or a reader that has gone, leaves behind: no half-written file, and no process of a plug-in. */
#ifndef FD_INTERRUPT_H
#define FD_INTERRUPT_H

/* SIGINT, SIGTERM, and SIGHUP, SIGQUIT and SIGPIPE unless they are ignored, delete this file before they end the program.
 * "": none. At most 1055 bytes. */
void fd_interrupt_deletes(const char *path);

/* ... and kill this process and its group. 0: none. */
void fd_interrupt_kills(int pid);

#endif /* FD_INTERRUPT_H */
