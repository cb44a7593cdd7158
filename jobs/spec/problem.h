/*
 * Collecting problems while a spec is read: where each one stands, and the
 * bounds that keep ten thousand mistakes readable.
 */
#ifndef STK_SPEC_PROBLEM_H
#define STK_SPEC_PROBLEM_H

#include "jobs/spec/spec.h"

/* A place in what the user wrote. */
struct mark {
	int line, column; /* from 1; 0 = the file as a whole */
	const char *set;  /* the "path=value" override it came from, or NULL */
};

/* Where problems of one spec go. */
struct reporter {
	const char *file;
	struct problems *problems;
};

/* Add one. The problem that was added (valid until the next is), or NULL if
 * the bound is reached and it was only counted. `field` may be NULL. */
struct problem *problem_error(struct reporter *to, struct mark at, const char *field,
			      const char *fmt, ...) STK_PRINTF(4, 5);
struct problem *problem_lint(struct reporter *to, struct mark at, const char *field,
			     const char *fmt, ...) STK_PRINTF(4, 5);
/* Say what to do about it; a NULL problem is fine. */
void problem_hint(struct problem *problem, const char *fmt, ...) STK_PRINTF(2, 3);

/* Bring them into file order, drop repetitions (one anchor seen through many
 * aliases) and cut the list to SPEC_PROBLEMS_MAX, lints first. */
void problems_finish(struct problems *problems);

#endif
