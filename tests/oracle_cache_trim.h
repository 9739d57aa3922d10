/* oracle_cache_trim.h: the size of the oracle's cache on disk. */
#ifndef FD_ORACLE_CACHE_TRIM_H
#define FD_ORACLE_CACHE_TRIM_H

#include <stdint.h>

#define FD_ORACLE_CACHE_TEMPORARY "tmp." /* a file being written is called this, and six characters */

/* If the rows in folder take more than `limit` bytes, removes those that were not used for longest, until at most 7/8
 * of it are left; and files that somebody began to write an hour ago. Touches nothing that the cache has not named.
 * What another process removes meanwhile is no error. */
void fd_oracle_cache_trim(const char *folder, int64_t limit);

#endif /* FD_ORACLE_CACHE_TRIM_H */
