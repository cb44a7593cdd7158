/* Variables of a debug run by compile kind: see debug.def. */
#ifndef STK_CACHE_KINDS_DEBUG_H
#define STK_CACHE_KINDS_DEBUG_H

#include "jobs/cache/kinds/compile_kind.h"

/* Calls `fn` for each variable that a debug run of this kind has. */
void debug_variables(const struct compile_kind *kind, kind_variable_fn fn, void *arg);

#endif
