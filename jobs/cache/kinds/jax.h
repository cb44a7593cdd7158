/*
 * The row of the kind `jax`: JAX's persistent compilation cache. Only compile_kind.c uses it; jax.c
 * and jax_log.c state the facts it relies on.
 */
#ifndef STK_CACHE_KINDS_JAX_H
#define STK_CACHE_KINDS_JAX_H

#include "jobs/cache/kinds/compile_kind.h"

extern const struct compile_kind jax_kind;

/* jax_log.c: reads JAX's own messages. */
bool jax_scan(const char *text, size_t len, size_t *at, struct graph_note *ret);

/* True for `<module>-<64 hex digits>`. */
bool jax_is_graph_key(const char *text, size_t len);

#endif
