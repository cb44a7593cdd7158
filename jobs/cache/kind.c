/* The rows of compiler kinds, and what is common to all of them: see kind.h. */
#include "jobs/cache/kind.h"

#include <string.h>

#include "jobs/base/text.h"
#include "jobs/cache/jax.h"
#include "jobs/cache/neuron.h"

static const char *const state_names[ENTRY_STATES] = {
	[ENTRY_DONE] = "done",       [ENTRY_EMPTY] = "empty",   [ENTRY_PARTIAL] = "partial",
	[ENTRY_FAILED] = "failed",   [ENTRY_LOCKED] = "locked", [ENTRY_TODO] = "todo",
	[ENTRY_MISSING] = "missing",
};

const char *entry_state_name(enum entry_state state)
{
	return state_names[state];
}

/* The kind `none`: no cache, so nothing to set, to read or to find. */

static void none_environment(const char *cache, kind_variable_fn fn, void *arg)
{
	(void)cache;
	(void)fn;
	(void)arg;
}

static bool none_neutral(const char *variable)
{
	(void)variable;
	return false;
}

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
	.environment = none_environment,
	.neutral = none_neutral,
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

/* Variables that no compiler sees, by exact name or by prefix (ending in *).
 * PYTHONHASHSEED is not among them: it orders sets, and so traced code. */
static const char *const neutral_variables[] = {
	"CCOM_*",
	"COLUMNS",
	"FI_*",
	"LANG",
	"LC_*",
	"LINES",
	"LOGLEVEL",
	"LOG_LEVEL",
	"MALLOC_*",
	"MASTER_ADDR",
	"MASTER_PORT",
	"MLFLOW_*",
	"NEURON_RT_LOG_LEVEL",
	"NO_COLOR",
	"PYTHONFAULTHANDLER",
	"PYTHONUNBUFFERED",
	"STOKER_*",
	"TERM",
	"TMPDIR",
	"TOKENIZERS_PARALLELISM",
	"TQDM_*",
	"TZ",
	"WANDB_*",
};

static bool matches(const char *row, const char *variable)
{
	size_t len = strlen(row);

	if (row[len - 1] == '*')
		return strncmp(row, variable, len - 1) == 0;
	return strcmp(row, variable) == 0;
}

bool compile_kind_neutral(const struct compile_kind *kind, const char *variable)
{
	for (size_t i = 0; i < STK_LENGTH(neutral_variables); i++)
		if (matches(neutral_variables[i], variable))
			return true;
	return kind->neutral(variable);
}
