/* The rows of compiler kinds, and code common to all of them: see compile_kind.h. */
#include "jobs/cache/kinds/compile_kind.h"

#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/cache/kinds/jax.h"
#include "jobs/cache/kinds/neuron.h"

static const char *const state_names[ENTRY_STATES] = {
	[ENTRY_DONE] = "done",       [ENTRY_EMPTY] = "empty",   [ENTRY_PARTIAL] = "partial",
	[ENTRY_FAILED] = "failed",   [ENTRY_LOCKED] = "locked", [ENTRY_TODO] = "todo",
	[ENTRY_MISSING] = "missing",
};

const char *compile_kind_entry_state_name(enum entry_state state)
{
	return state_names[state];
}

/* The kind `none`: no cache, so nothing to set, read or find. */

static bool none_scan(const char *text, size_t len, size_t *at, struct graph_note *ret)
{
	(void)text;
	(void)ret;
	*at = len;
	return false;
}

static bool none_object(const char *key, struct entry_object *ret)
{
	(void)key;
	(void)ret;
	return false;
}

static enum entry_state none_state(unsigned roles, uint64_t compiled_size)
{
	(void)roles;
	(void)compiled_size;
	return ENTRY_MISSING;
}

static int none_fingerprint(const struct program_place *place, json_t **ret, struct err **err)
{
	(void)place;
	(void)err;
	*ret = json_object();
	return 0;
}

static const struct compile_kind none_kind = {
	.name = "none",
	.scan = none_scan,
	.object = none_object,
	.state = none_state,
	.fingerprint = none_fingerprint,
};

static const struct compile_kind *const kinds[] = { &none_kind, &jax_kind, &neuron_kind };

const struct compile_kind *compile_kind_at(size_t n)
{
	return n < STK_LENGTH(kinds) ? kinds[n] : NULL;
}

const struct compile_kind *compile_kind_find(const char *name)
{
	for (size_t i = 0; i < STK_LENGTH(kinds); i++)
		if (strcmp(kinds[i]->name, name) == 0)
			return kinds[i];
	return NULL;
}

static bool matches(const char *row, const char *variable)
{
	size_t len = strlen(row);

	if (row[len - 1] == '*')
		return strncmp(row, variable, len - 1) == 0;
	return strcmp(row, variable) == 0;
}

static bool is_listed(const char *const *rows, const char *variable)
{
	for (; rows && *rows; rows++)
		if (matches(*rows, variable))
			return true;
	return false;
}

static bool is_set(const struct compile_kind *kind, const char *variable)
{
	for (const struct kind_variable *row = kind->environment; row && row->name; row++)
		if (strcmp(row->name, variable) == 0)
			return true;
	return false;
}

void compile_kind_environment(const struct compile_kind *kind, const char *cache,
			      kind_variable_fn fn, void *arg)
{
	for (const struct kind_variable *row = kind->environment; row && row->name; row++)
		fn(arg, row->name, row->value ? row->value : cache);
}

bool compile_kind_steers(const struct compile_kind *kind, const char *variable)
{
	if (!is_listed(kind->steering, variable) || is_set(kind, variable))
		return false;
	return !is_listed(kind->neutral, variable) ||
	       (kind->not_neutral && strcmp(kind->not_neutral, variable) == 0);
}
