/*
 * Is a compressed file whole? JAX writes its entries in place, without a
 * temporary name, so a killed job leaves cut ones behind, and it never replaces
 * them. zlib streams carry a checksum, which is verified; zstd frames as Python
 * writes them carry none, so only their blocks are followed to the end.
 */
#ifndef STK_CACHE_FRAME_H
#define STK_CACHE_FRAME_H

#include "jobs/cache/kind.h"

/* As compile_kind.inspect. Bytes behind the end of a zlib stream are accepted,
 * as JAX does; an unknown format is ENTRY_PARTIAL. */
int frame_inspect(int fd, enum entry_state *ret_state, const char **ret_why);

#endif
