/*
 * Checks whether a compressed file is complete. JAX writes its entries in place, without a
 * temporary name, so a killed job leaves truncated entries behind, and JAX never replaces them.
 * zlib streams carry a checksum, which is verified; zstd frames as Python writes them carry none,
 * so only their blocks are followed to the end.
 */
#ifndef STK_CACHE_VERDICT_STREAM_CHECK_H
#define STK_CACHE_VERDICT_STREAM_CHECK_H

#include "jobs/cache/kinds/compile_kind.h"

/* A function for compile_kind.inspect. Bytes after the end of a zlib stream are accepted, as by
 * JAX; an unknown format is ENTRY_PARTIAL. */
int stream_check_inspect(int fd, enum entry_state *ret_state, const char **ret_why);

#endif
