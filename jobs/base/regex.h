/*
 * Regular expressions by PCRE2 (whose one home is regex.c), with bounds: a
 * pattern is compiled once (and just-in-time compiled where the machine can),
 * a search may take only so many steps and about a second at the very most, so no
 * pattern from a spec can hang us. A regex serves one search at a time.
 */
#ifndef STK_BASE_REGEX_H
#define STK_BASE_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/err.h"

#define REGEX_PATTERN_MAX 4096 /* bytes */
#define REGEX_GROUPS_MAX  16

struct regex;

struct span { /* offsets into the subject; both 0 if not set */
	size_t from, to;
	bool set; /* the group took part in the match */
};

/* Errors (EXIT_SPEC) quote PCRE2's words and the offset in the pattern. Not
 * allowed: \C, UTF mode, more than REGEX_GROUPS_MAX capturing groups. */
int regex_compile(const char *pattern, struct regex **ret, struct err **err);
void regex_freep(struct regex **re);

/* How many capturing groups the pattern has. */
size_t regex_groups(const struct regex *re);

/* How many searches were given up without an answer because they took too many
 * steps. A caller with many texts to search drops a pattern that does this. */
size_t regex_given_up(const struct regex *re);

/* First match at or after `start`. Bytes, not UTF-8. `spans[0]` is the whole
 * match, one span per group follows, the others stay as they are. No match and
 * "too many steps" are both false. */
bool regex_find(const struct regex *re, const char *text, size_t len, size_t start,
		struct span spans[REGEX_GROUPS_MAX + 1]);

/* The number that begins where the first group of the first match does, read in
 * full also where the pattern would cut `6.25e-05` to `6.25`. False if there is
 * no match, or none. */
bool regex_number(const struct regex *re, const char *text, size_t len, double *ret);

#endif
