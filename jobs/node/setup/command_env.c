/* The list of variables, and what refers to them: see command_env.h. */
#include "jobs/node/setup/command_env.h"

#include <stdlib.h>
#include <string.h>

#define REFERENCE "${STOKER_"

static char **find(const struct command_env *env, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < env->count; i++)
		if (strncmp(env->list[i], name, len) == 0 && env->list[i][len] == '=')
			return &env->list[i];
	return NULL;
}

void command_env_put(struct command_env *env, const char *name, const char *value)
{
	char **there = find(env, name);

	if (there) {
		free(*there);
		*there = mem_format("%s=%s", name, value);
		return;
	}
	env->list = mem_grow(env->list, env->count + 2, sizeof *env->list);
	env->list[env->count++] = mem_format("%s=%s", name, value);
	env->list[env->count] = NULL;
}

void command_env_drop(struct command_env *env, const char *name)
{
	char **there = find(env, name);

	if (!there)
		return;
	free(*there);
	/* The last entry, or the entry itself, takes its place. */
	*there = env->list[--env->count];
	env->list[env->count] = NULL;
}

const char *command_env_get(const struct command_env *env, const char *name)
{
	char **there = find(env, name);

	return there ? strchr(*there, '=') + 1 : NULL;
}

void command_env_release(struct command_env *env)
{
	auto_strv(&env->list);
	*env = (struct command_env){ 0 };
}

int command_env_command(const struct agent_config *config, const struct command_env *env,
			char ***ret, struct err **err)
{
	const json_t *command = config->order->command, *text;
	AUTO(auto_strv) char **argv = mem_zero(json_array_size(command) + 1, sizeof *argv);
	size_t i;

	json_array_foreach (command, i, text)
		if (command_env_expand(env, json_string_value(text), "the command", &argv[i], err) <
		    0)
			return -1;
	*ret = TAKE(argv);
	return 0;
}

/* Parses the reference at `text` (which begins with REFERENCE): its name, its fallback or NULL, and
 * its length. Returns false if the reference is not complete. */
static bool parse_reference(const char *text, char **ret_name, char **ret_fallback, size_t *ret_len)
{
	const char *name = text + 2, *end, *close;

	end = name + strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
	close = strchr(end, '}');
	if (!close || (close != end && strncmp(end, ":-", 2) != 0))
		return false;
	*ret_name = mem_copy_n(name, (size_t)(end - name));
	*ret_fallback = close == end ? NULL : mem_copy_n(end + 2, (size_t)(close - end - 2));
	*ret_len = (size_t)(close - text) + 1;
	return true;
}

/* Returns the number of dollar signs right before `at`. */
static size_t dollars_before(const char *text, const char *at)
{
	size_t count = 0;

	while (at - count > text && *(at - count - 1) == '$')
		count++;
	return count;
}

int command_env_expand(const struct command_env *env, const char *text, const char *where,
		       char **ret, struct err **err)
{
	AUTO(sb_release) struct sb out = SB_INIT;
	const char *at;

	while ((at = strstr(text, REFERENCE))) {
		AUTO(auto_free) char *name = NULL;
		AUTO(auto_free) char *fallback = NULL;
		size_t len, before = dollars_before(text, at);
		const char *value;

		sb_add(&out, text, (size_t)(at - text) - before);
		for (size_t i = 0; i < (before + 1) / 2; i++)
			sb_addc(&out, '$');
		if (before % 2) {
			text = at + 1;
			continue;
		}
		if (!parse_reference(at, &name, &fallback, &len)) {
			sb_adds(&out, REFERENCE);
			text = at + strlen(REFERENCE);
			continue;
		}
		value = command_env_get(env, name);
		if (fallback && (!value || !*value))
			value = fallback;
		if (!value) {
			err_set(err, EXIT_SPEC, "'%s' is not set here, but %s refers to it", name,
				where);
			return err_hint(err, "write ${%s:-text} where it may be absent", name);
		}
		sb_adds(&out, value);
		text = at + len;
	}
	sb_adds(&out, text);
	*ret = sb_take(&out);
	return 0;
}
