/* machine.h: where a number was measured. Every results file begins with this record. */
#ifndef FD_MACHINE_H
#define FD_MACHINE_H

#include <stdio.h>

#include "fd.h"

/* Text fields are one line of printable characters; what cannot be found is "unknown", or 0. */
typedef struct fd_machine_record {
    char processor[128], architecture[32];
    int32_t cores;                  /* that this process can be scheduled on */
    int64_t memory_bytes, l3_bytes; /* of the whole machine; of one level-3 cache */
    char system[160];               /* operating system and kernel */
    char compiler[128], flags[512], libc[64];
    char date[32];      /* UTC, ISO 8601 */
    char commit[64];    /* the environment's FD_COMMIT */
    char command[1024]; /* as typed, shortened if need be */
    char machine_id[9]; /* 8 hex digits: hardware, compiler, flags and libc; the date and the kernel do not enter */
} fd_machine_record;

/* Fills the record. program is put before the arguments in `command`, "" to leave it out. */
void fd_machine_record_read(fd_machine_record *record, const char *program, int argc, char *const *argv);

/* machine_id from the record's other fields. */
void fd_machine_identify(fd_machine_record *record);

/* One "key: value" line a field, each behind prefix: "# " on top of a CSV file. */
void fd_machine_record_write(const fd_machine_record *record, FILE *file, const char *prefix);

/* "glibc 2.36", or "unknown libc". */
const char *fd_libc_name(void);

/* The processor's marketing name, one line. */
void fd_processor_name(char *text, size_t n);

/* Bytes that can be allocated and touched now without swapping, a container's limit included; INT64_MAX: unknown. */
int64_t fd_memory_available(void);

/* 64-bit FNV-1a of more bytes; hash begins as FD_FNV_BEGIN. */
#define FD_FNV_BEGIN 0xcbf29ce484222325u
uint64_t fd_fnv(uint64_t hash, const void *data, size_t bytes);

#endif /* FD_MACHINE_H */
