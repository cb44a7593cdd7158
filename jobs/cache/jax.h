/*
 * The row of the kind `jax`: JAX's persistent compilation cache. Only kind.c
 * needs it; the facts it rests on are told in jax.c and jax_log.c.
 */
#ifndef STK_CACHE_JAX_H
#define STK_CACHE_JAX_H

#include "jobs/cache/kind.h"

extern const struct compile_kind jax_kind;

/* jax_log.c: reads JAX's own messages. */
bool jax_scan(const char *text, size_t len, size_t *at, struct graph_note *ret);

/* True for `<module>-<64 hex digits>`. */
bool jax_is_graph_key(const char *text, size_t len);

#endif
