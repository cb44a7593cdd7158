/*
 * The only table of stoker's exit codes. The help text, the documentation and a test per row come
 * from it; an error carries one of these codes from its origin to the exit of the process.
 */
#ifndef STK_BASE_EXITCODE_H
#define STK_BASE_EXITCODE_H

#include <stddef.h>

enum exit_code {
	EXIT_DONE = 0,         /* done as asked */
	EXIT_RUN_FAILED = 1,   /* the run failed for good */
	EXIT_USAGE = 2,        /* wrong command line */
	EXIT_SPEC = 3,         /* the spec is invalid, or the id belongs to another plan */
	EXIT_REFUSED = 4,      /* the environment does not allow it */
	EXIT_GATE = 5,         /* a gate said no */
	EXIT_STOPPED = 6,      /* stopped on request */
	EXIT_BUSY = 7,         /* someone else is driving this run */
	EXIT_DETACHED = 8,     /* an interrupt detached it: the run goes on */
	EXIT_NOT_FOUND = 9,    /* no such run */
	EXIT_DEFECT = 70,      /* a defect in stoker itself */
	EXIT_UNREACHABLE = 75, /* a service could not be reached for limits.unreachable */
};

struct exit_row {
	enum exit_code code;
	const char *name;    /* single word, as shown in help and JSON */
	const char *meaning; /* description in one line */
};

/* All rows, in rising order of code. */
extern const struct exit_row exitcode_rows[];
extern const size_t exitcode_row_count;

/* The row of a code; NULL if not found. */
const struct exit_row *exitcode_row_find(int code);

#endif
