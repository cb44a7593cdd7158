/*
 * The environment variables of stoker and of the jobs it runs, listed once in variable.def. The
 * code that sets them, the documentation and the tests use these rows.
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
	VAR_OURS = 1 << 6,
};

struct variable_row {
	const char *name;
	unsigned uses; /* bits of enum variable_use */
	const char *help;
};

extern const struct variable_row variable_rows[VAR_COUNT];

/* The row of "NAME", or of "NAME=value"; NULL if not found. */
const struct variable_row *variable_find(const char *name);

#endif
