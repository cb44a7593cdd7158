/*
 * The environment variables of stoker and of the jobs it runs, once:
 * variable.def. What sets them, what documents them and what tests both go by
 * these rows.
 */
#ifndef STK_BASE_VARIABLE_H
#define STK_BASE_VARIABLE_H

enum variable {
#define VARIABLE(id, ...) VAR_##id,
#include "jobs/base/variable.def"
#undef VARIABLE
	VAR_COUNT
};

enum variable_use {
	VAR_READ = 1 << 0,
	VAR_PASSED = 1 << 1,
	VAR_GIVEN = 1 << 2,
	VAR_KIND = 1 << 3,
	VAR_TOLD = 1 << 4,
	VAR_LENT = 1 << 5,
};

struct variable_row {
	const char *name;
	unsigned uses; /* of enum variable_use */
	const char *help;
};

extern const struct variable_row variables[VAR_COUNT];

/* The row of "NAME", or of "NAME=value"; NULL: there is none. */
const struct variable_row *variable_find(const char *name);

#endif
