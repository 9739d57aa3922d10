/* Takes the host's upper bounds of kv_lens for the lengths themselves: right until a plan is reused. */
#define KV_LEN(p, b) ((p)->kv_lens_host != NULL ? (p)->kv_lens_host[b] : fd_kv_len(p, b))
#include "plugin.h"
