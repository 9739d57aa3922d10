/* data_path.h: where the program's files are, from whatever folder it is called. */
#ifndef FD_DATA_PATH_H
#define FD_DATA_PATH_H

#include <stddef.h>

/* The folder of the case table and of captured tensors: $FD_DATA; else data, if it is here; else that of the checkout which
 * the program was built in, or beside which it was installed. text is room for it, and need not be what is returned. */
const char *fd_data_folder(char *text, size_t n);

/* A file in there. */
const char *fd_data_path(const char *name, char *path, size_t n);

/* A file in the folder of the program itself; "" where the system does not tell. */
const char *fd_path_beside_program(const char *name, char *path, size_t n);

#endif /* FD_DATA_PATH_H */
