/*
 * What versions a program would run with, as compile_kind.fingerprint() tells
 * them: the same for all compilers that come as Python packages.
 */
#ifndef STK_CACHE_FINGERPRINT_H
#define STK_CACHE_FINGERPRINT_H

#include "jobs/cache/kind.h"

/* {"python":"3.11", package: version…} of those of `packages` that are installed
 * (NULL-terminated; names as in python.h, or their beginning with a * behind it).
 * A program that is not known to be Python is told by its content. */
int fingerprint_python(const struct program_place *place, const char *const *packages, json_t **ret,
		       struct err **err);

#endif
