/* Looks up the compiler before the command begins: see compiler.h. */
#include "jobs/node/setup/compiler.h"

#include <string.h>

#include "jobs/cache/graphs/fingerprint.h"
#include "jobs/cache/kinds/compile_kind.h"

int compiler_place(const struct agent_config *config, const struct command_env *env,
		   char **ret_program, struct program_place *ret, struct err **err)
{
	const struct order *order = config->order;
	const char *program = order->compile.program;

	*ret = (struct program_place){
		.cwd = config->src,
		.path = command_env_get(env, "PATH"),
		.home = command_env_get(env, "HOME"),
		.python_path = command_env_get(env, "PYTHONPATH"),
	};
	if (!program && !order->has_compile)
		program = json_string_value(json_array_get(order->command, 0));
	if (!program)
		return err_set(err, EXIT_DEFECT, "the order names no program");
	if (command_env_expand(env, program, "command", ret_program, err) < 0)
		return -1;
	ret->program = *ret_program;
	return 0;
}

/* Returns NULL with an error if the compiler is not known. */
static json_t *find(const struct compile_kind *kind, const struct agent_config *config,
		    const struct command_env *env, struct err **err)
{
	AUTO(auto_free) char *program = NULL;
	struct program_place place;
	json_t *found = NULL;

	if (compiler_place(config, env, &program, &place, err) < 0)
		return NULL;
	return kind->fingerprint(&place, &found, err) < 0 ? NULL : found;
}

static int refuse(const json_t *changed, struct err **err)
{
	AUTO(auto_free) char *words = fingerprint_words(changed);

	err_set(err, EXIT_RUN_FAILED,
		"the training would run with %s, with which the cache was filled", words);
	return err_hint(err, "keep the versions from phase 1 on; phase 1 runs again with the "
			     "versions that are installed now");
}

/* Compares with the compile manifest's compiler. Returns -1 with an error if it is another one. */
static int compare(const struct agent_config *config, const json_t *locked,
		   struct node_report_compiler *report, struct err **err)
{
	const char *tolerated = config->order->compile.tolerated;
	AUTO(auto_free) char *unknown = NULL;
	AUTO(auto_free) char *pair = NULL;
	json_t *changed = fingerprint_compare(locked, report->found, &unknown);

	MESSAGE_SET_TEXT(report, unknown, unknown);
	if (json_array_size(changed) == 0) {
		json_decref(changed);
		return 0;
	}
	pair = fingerprint_pair(changed);
	MESSAGE_SET_JSON(report, changed, changed);
	MESSAGE_SET_TEXT(report, pair, pair);
	if (tolerated && strcmp(tolerated, pair) == 0)
		return 0;
	return refuse(changed, err);
}

int compiler_inspect(const struct agent_config *config, const struct command_env *env,
		     struct node_report *said, struct err **err)
{
	const struct order_compile *compile = &config->order->compile;
	const json_t *locked = compile->compiler;
	const char *name = compile->kind;
	const struct compile_kind *kind = name ? compile_kind_find(name) : NULL;
	AUTO(err_freep) struct err *why = NULL;
	struct node_report_compiler *report = &said->compiler;
	json_t *found;

	if (!kind || !kind->caches)
		return 0;
	MESSAGE_MARK(said, compiler);
	found = find(kind, config, env, &why);
	if (!found) {
		MESSAGE_SET_TEXT(report, unknown, why->message);
		return 0;
	}
	MESSAGE_SET_JSON(report, found, found);
	return locked ? compare(config, locked, report, err) : 0;
}
