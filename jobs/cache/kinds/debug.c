/* The table of a debug run's variables: see debug.def. */
#include "jobs/cache/kinds/debug.h"

#include <string.h>

#include "jobs/base/auto.h"

enum debug_kinds { NONE = 1 << 0, JAX = 1 << 1, NEURON = 1 << 2 };

static const struct {
	unsigned kinds;
	const char *name, *value;
} rows[] = {
#define DEBUG(kinds, name, value, purpose) { (kinds), name, value },
#include "jobs/cache/kinds/debug.def"
#undef DEBUG
};

/* Kinds in the order of their bits. */
static const char *const kind_names[] = { "none", "jax", "neuron" };

void debug_variables(const struct compile_kind *kind, kind_variable_fn fn, void *arg)
{
	unsigned bit = 0;

	for (size_t i = 0; i < STK_LENGTH(kind_names); i++)
		if (strcmp(kind_names[i], kind->name) == 0)
			bit = 1u << i;
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		if (rows[i].kinds & bit)
			fn(arg, rows[i].name, rows[i].value);
}
