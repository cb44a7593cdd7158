/*
 * What is known about names of variables: which ones stoker keeps for itself,
 * which look secret, which change no graph.
 */
#ifndef STK_SPEC_NAMES_H
#define STK_SPEC_NAMES_H

#include <stdbool.h>

struct reserved_name {
	const char *pattern; /* a final '*' stands for anything */
	const char *why;     /* follows "variable 'X' " */
	const char *hint;
};

/* The row of a variable that a spec may not set, or NULL. */
const struct reserved_name *names_reserved(const char *name);

/* TOKEN, PASSWORD, API_KEY and the like: values are shown as hashes only. */
bool names_secret(const char *name);

/* Known to change no graph of any compiler, so not part of the graph key. */
bool names_neutral(const char *name);

/* '*' any characters, '?' one. */
bool names_match(const char *pattern, const char *name);

#endif
