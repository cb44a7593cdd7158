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

/* Two such objects, that of a lock and what a job finds where it is: what is known of
 * both and differs, and what came in addition, as [{"field","old","new"}], sorted by
 * field; empty: nothing. `ret_unknown` gets what cannot be compared, in words (yours to
 * free), or NULL; of that nothing is in the list. */
json_t *fingerprint_compare(const json_t *locked, const json_t *found, char **ret_unknown);

/* "neuronx-cc 2.26 in place of 2.25 (and 2 more)", of a list that is not empty, the
 * compiler itself first where it is among them; and what tells one such list from all
 * others. Yours to free. */
char *fingerprint_words(const json_t *changed);
char *fingerprint_pair(const json_t *changed);

#endif
