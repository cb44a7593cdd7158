/* Environment of the job: what may be kept of it, and where the rest comes from. */
#include <stdlib.h>

#include "jobs/spec/resolved.h"

/* Puts the variables of one field on top of others. */
static void put_env(const struct spec *spec, enum spec_field field, json_t *env)
{
	const struct node *map = access_node_of_field(spec, field);
	json_t *value;
	const char *name;

	json_object_foreach ((json_t *)(uintptr_t)spec_get(spec, field), name, value)
		json_object_set_nocheck(env, name, value);
	for (size_t i = 0; map && i < map->count; i++)
		if (map->entries[i].value->deferred)
			json_object_set_new_nocheck(
				env, map->entries[i].key,
				json_string_nocheck(map->entries[i].value->deferred));
}

/* Puts the values of pass_env that may be kept. No part of them is a reference. */
static void put_passed(const struct spec *spec, json_t *env)
{
	json_t *value;
	const char *name;

	json_object_foreach (spec->passed, name, value) {
		AUTO(auto_free) char *deferred = spec_deferred(json_string_value(value));

		if (!pass_env_is_secret(name, json_string_value(value)))
			js_put_str(env, name, deferred);
	}
}

json_t *spec_secrets(const struct spec *spec)
{
	const json_t *written = spec_get(spec, SPEC_SECRETS);
	json_t *secrets = written ? json_deep_copy(written) : json_object(), *value;
	const char *name;

	json_object_foreach (spec->env_files, name, value)
		js_put_str(secrets, name, js_str(value, "source"));
	json_object_foreach (spec->passed, name, value) {
		AUTO(auto_free) char *source = mem_format("env:%s", name);

		if (pass_env_is_secret(name, json_string_value(value)))
			js_put_str(secrets, name, source);
	}
	return secrets;
}

json_t *spec_env(const struct spec *spec, bool with_overrides)
{
	json_t *env = json_object();

	put_passed(spec, env);
	put_env(spec, SPEC_ENV, env);
	if (with_overrides)
		put_env(spec, SPEC_COMPILE_OVERRIDES_ENV, env);
	return env;
}
