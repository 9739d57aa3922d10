/* dump_claims.c: what the metadata of an answer say about its arithmetic, in the words of the command line. */
#include "claims_options.h"
#include "dump.h"

fd_status fd_dump_claims(const fd_safetensors *file, const char *path, fd_arith *claims, char *why, size_t n)
{
    char reason[200] = "";
    fd_status status = FD_OK;
    *claims = fd_claims_none();
    for (int k = 0; fd_claims_option_names[k] != NULL && status == FD_OK; k++) {
        const char *value = fd_safetensors_metadata(file, fd_claims_option_names[k]);
        if (value != NULL) {
            status = fd_claims_option(fd_claims_option_names[k], value, claims, reason, sizeof reason);
        }
    }
    if (status == FD_OK) {
        status = fd_claims_options_check(claims, reason, sizeof reason);
    }
    return status == FD_OK ? FD_OK : fd_safetensors_refuse(path, why, n, "metadata %s", reason);
}
