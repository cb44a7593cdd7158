/*
 * Regular expressions by PCRE2 (only regex.c includes it), with bounds: a pattern is compiled once
 * (and just-in-time compiled if the machine supports it), a search may take only a limited number
 * of steps and about a tenth of a second of CPU at the very most, so no pattern from a spec can
 * hang stoker. A regex serves one search at a time.
 */
#ifndef STK_BASE_TEXT_REGEX_H
#define STK_BASE_TEXT_REGEX_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/err.h"

#define REGEX_PATTERN_MAX 4096 /* bytes */
#define REGEX_GROUPS_MAX  16

struct regex;

struct regex_span { /* offsets into the subject; both 0 if not set */
	size_t from, to;
	bool set; /* the group took part in the match */
};

/* Errors (EXIT_SPEC) quote PCRE2's message and the offset in the pattern. Not allowed: \C, UTF
 * mode, more than REGEX_GROUPS_MAX capturing groups. */
int regex_compile(const char *pattern, struct regex **ret, struct err **err);
void regex_freep(struct regex **re);

/* Number of capturing groups in the pattern. */
size_t regex_groups(const struct regex *re);

/* Number of searches given up without an answer because they took too many steps. A caller with
 * many texts to search should drop a pattern that does this. */
size_t regex_given_up(const struct regex *re);

/* Finds the first match at or after `start`. Works on bytes, not UTF-8. `spans[0]` is the whole
 * match, then one span per group; the other spans are left unchanged. False if there is no match,
 * or if the search took too many steps. */
bool regex_find(const struct regex *re, const char *text, size_t len, size_t start,
		struct regex_span spans[REGEX_GROUPS_MAX + 1]);

/* Reads the number that begins where the first group of the first match does, in full even if the
 * pattern would cut `6.25e-05` to `6.25`. Returns the offset behind it; 0 if there is no match or
 * no number. */
size_t regex_number(const struct regex *re, const char *text, size_t len, double *ret);

#endif
