/*
 * Collecting problems while a spec is read: the place of each one, and the
 * bounds that keep ten thousand mistakes readable.
 */
#ifndef STK_SPEC_LINT_PROBLEM_H
#define STK_SPEC_LINT_PROBLEM_H

#include <stdarg.h>

#include "jobs/spec/spec.h"

/* A place in the text that the user wrote. */
struct mark {
	int line, column;    /* from 1; 0 = the file as a whole */
	const char *set;     /* the "path=value" override that wrote it, or NULL */
	const char *file;    /* the file that says it; NULL: that of the reporter */
	const char *profile; /* the profile there that says it, or NULL */
};

/* Receiver of the problems of one spec. */
struct reporter {
	const char *file;
	struct problems *problems;
};

/* Adds a problem. Returns it (valid until the next is added), or NULL if the bound is reached
 * and it was only counted. `field` may be NULL. */
struct problem *problem_error(struct reporter *to, struct mark at, const char *field,
			      const char *fmt, ...) STK_PRINTF(4, 5);
struct problem *problem_lint(struct reporter *to, struct mark at, const char *field,
			     const char *fmt, ...) STK_PRINTF(4, 5);
struct problem *problem_remark(struct reporter *to, struct mark at, const char *field,
			       const char *fmt, ...) STK_PRINTF(4, 5);
struct problem *problem_add(struct reporter *to, struct mark at, const char *field, bool lint,
			    const char *fmt, va_list args) STK_PRINTF(5, 0);
/* Sets the cure; a NULL problem is fine. */
void problem_hint(struct problem *problem, const char *fmt, ...) STK_PRINTF(2, 3);

/* Marks a problem as what another layer of the spec could cure: a field that is missing. */
void problem_missing(struct problem *problem);

/* Adds a copy of a problem that is there with a profile (NULL: alone), unless it is there anyway.
 */
void problems_add_of(struct problems *all, const struct problem *problem, const char *profile);

/* Sorts the problems into file order, those of `main` first and overrides last, drops repetitions
 * (one anchor seen through many aliases) and cuts the list to SPEC_PROBLEMS_MAX, lints first. */
void problems_finish(struct problems *problems, const char *main);

#endif
