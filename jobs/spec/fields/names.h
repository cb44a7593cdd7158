/*
 * Knowledge about names of variables: stoker's own, secret-looking ones, and those that change
 * no graph.
 */
#ifndef STK_SPEC_FIELDS_NAMES_H
#define STK_SPEC_FIELDS_NAMES_H

#include <stdbool.h>

struct reserved_name {
	const char *pattern; /* a final '*' stands for anything */
	const char *why;     /* follows "variable 'X' " */
	const char *hint;
};

/* Returns the row of a variable that a spec may not set, or NULL. */
const struct reserved_name *names_reserved(const char *name);

/* True for TOKEN, PASSWORD, API_KEY and the like: values are shown as hashes only. */
bool names_secret(const char *name);

/* True if the variable is known to change no graph of any compiler, so that it is not part of
 * the graph key. */
bool names_neutral(const char *name);

/* True if the variable steers a compiler, of whatever kind, or the framework that traces for it. */
bool names_steering(const char *name);

/* Matches with '*' for any characters, '?' for one. */
bool names_match(const char *pattern, const char *name);

#endif
