/* The one table of environment variables: see variable.h. */
#include "jobs/base/variable.h"

/* The uses in variable.def are bare words. */
#define READ   VAR_READ
#define PASSED VAR_PASSED
#define GIVEN  VAR_GIVEN
#define KIND   VAR_KIND
#define TOLD   VAR_TOLD

const struct variable_row variables[VAR_COUNT] = {
#define VARIABLE(id, name, uses, help) [VAR_##id] = { name, uses, help },
#include "jobs/base/variable.def"
#undef VARIABLE
};
