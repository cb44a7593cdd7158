/* The one table of environment variables: see variable.h. */
#include "jobs/base/variable.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* The uses in variable.def are bare words. */
#define READ   VAR_READ
#define PASSED VAR_PASSED
#define GIVEN  VAR_GIVEN
#define KIND   VAR_KIND
#define TOLD   VAR_TOLD
#define LENT   VAR_LENT
#define OURS   VAR_OURS

const struct variable_row variable_rows[VAR_COUNT] = {
#define VARIABLE(id, name, uses, help) [VAR_##id] = { name, uses, help },
#include "jobs/base/variable.def"
#undef VARIABLE
};

const struct variable_row *variable_find(const char *name)
{
	size_t len = strcspn(name, "=");

	for (int i = 0; i < VAR_COUNT; i++) {
		size_t row = strlen(variable_rows[i].name);
		bool any = variable_rows[i].name[row - 1] == '*';

		if (any ? len >= row && strncmp(variable_rows[i].name, name, row - 1) == 0
			: len == row && strncmp(variable_rows[i].name, name, row) == 0)
			return &variable_rows[i];
	}
	return NULL;
}
