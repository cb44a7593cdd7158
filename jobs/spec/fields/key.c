/*
 * The parts of a spec that decide which graphs the compiler will see. A part too few makes a
 * false warm, a part too many an unneeded compile: so every part that is not known to be neutral
 * counts.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/hash.h"
#include "jobs/base/text/text.h"
#include "jobs/spec/fields/flags.h"
#include "jobs/spec/fields/names.h"
#include "jobs/spec/resolved.h"

static bool ignored(const struct spec *spec, const char *ingredient)
{
	const json_t *patterns = spec_get(spec, SPEC_COMPILE_IGNORE), *pattern;
	size_t i;

	json_array_foreach (patterns, i, pattern)
		if (names_match(json_string_value(pattern), ingredient))
			return true;
	return false;
}

/* True for the number of steps, under any of its names: phase 1 has its own, whatever that of
 * the training is. The user's own list replaces this, as it does the rest of the default. */
static bool is_length(const struct spec *spec, const char *section, const char *name)
{
	const struct entry *steps = phase_one_length_of(spec).training;

	return steps && !spec_is_set(spec, SPEC_COMPILE_IGNORE) &&
	       strcmp(section, "hyperparameters") == 0 && strcmp(name, steps->key) == 0;
}

static void add(const struct spec *spec, json_t *key, const char *section, const char *name,
		const char *text, bool secret)
{
	AUTO(auto_free) char *ingredient = mem_format("%s.%s", section, name);
	char hex[SHA256_HEX];
	char *hashed = NULL;

	if (ignored(spec, ingredient) || is_length(spec, section, name))
		return;
	if (secret || names_secret(name)) {
		hash_sha256_hex(text, strlen(text), hex);
		hashed = mem_format("sha256:%s", hex);
	}
	json_object_set_new_nocheck(key, ingredient, json_string_nocheck(hashed ? hashed : text));
	free(hashed);
}

/* `counted`: the number of workers is known, and an ingredient by itself. */
static void add_env(const struct spec *spec, bool counted, json_t *key)
{
	json_auto_t *env = spec_env(spec, false);
	json_t *value;
	const char *name;

	json_object_foreach (env, name, value) {
		const char *text = json_string_value(value);
		AUTO(auto_free) char *flags = flags_in_key(name, text);

		if (counted && strcmp(name, LAUNCH_VARIABLE) == 0)
			continue;
		/* Empty flags are the same as no flags. */
		if (!names_neutral(name) && !(flags && !*flags))
			add(spec, key, "env", name, flags ? flags : text, false);
	}
}

/* The others are in spec_env(). */
static void add_passed_secrets(const struct spec *spec, json_t *key)
{
	json_t *value;
	const char *name;

	json_object_foreach (spec->passed, name, value) {
		const char *text = json_string_value(value);

		if (pass_env_is_secret(name, text) && !names_neutral(name))
			add(spec, key, "env", name, text, true);
	}
}

static void add_hyperparameters(const struct spec *spec, json_t *key)
{
	const struct node *map = access_node_of_field(spec, SPEC_HYPERPARAMETERS);

	for (size_t i = 0; map && i < map->count; i++) {
		AUTO(auto_free) char *text = arguments_render_value(map->entries[i].value);

		if (text)
			add(spec, key, "hyperparameters", map->entries[i].key, text, false);
	}
}

/* Graphs are alike on all sizes of a family: "ml.trn1.32xlarge" → "trn1". */
static char *family_of(const char *instance)
{
	instance += text_starts(instance, "ml.") ? 3 : 0;
	return mem_copy_n(instance, strcspn(instance, "."));
}

/* A single value, as text. */
static void add_value(const struct spec *spec, json_t *key, enum spec_field field)
{
	const json_t *value = spec_get(spec, field);
	AUTO(auto_free) char *text = NULL;

	if (json_is_integer(value))
		text = mem_format("%lld", (long long)json_integer_value(value));
	else if (field == SPEC_RESOURCES_INSTANCE && value)
		text = spec->instance ? family_of(json_string_value(value)) : NULL;
	else if (json_is_string(value))
		text = mem_copy(json_string_value(value));
	if (text)
		json_object_set_new_nocheck(key, field_table[field].path,
					    json_string_nocheck(text));
}

/* Graphs depend on how many workers there are in all, however that is spelled. Where only the job
 * will know it, the number of nodes and what the command says count instead. */
static void add_world(const struct spec *spec, const json_t *processes, json_t *key)
{
	int64_t world = js_int(processes, "world", processes_nodes_of(spec));
	AUTO(auto_free) char *text = mem_format("%lld", (long long)world);

	if (!ignored(spec, field_table[SPEC_RESOURCES_NODES].path))
		js_put_str(key, KEY_WORLD, text);
}

static void add_command(const struct spec *spec, bool counted, json_t *key)
{
	json_auto_t *texts = arguments_command_texts(spec);

	json_object_set_new_nocheck(key, field_table[SPEC_COMMAND].path,
				    launch_without_places(texts, counted));
}

json_t *spec_key_ingredients(const struct spec *spec)
{
	json_auto_t *processes = spec_processes(spec, false);
	bool counted = !processes || json_object_get(processes, "world");
	json_t *key = json_object();

	for (int id = 0; id < SPEC_FIELD_COUNT; id++) {
		enum spec_field field = (enum spec_field)id;

		if (!field_table[id].in_key)
			continue;
		if (field == SPEC_HYPERPARAMETERS)
			add_hyperparameters(spec, key);
		else if (field == SPEC_ENV)
			add_env(spec, counted, key);
		else if (field == SPEC_PASS_ENV)
			add_passed_secrets(spec, key);
		else if (field == SPEC_COMMAND)
			add_command(spec, counted, key);
		else if (field == SPEC_RESOURCES_NODES && counted)
			add_world(spec, processes, key);
		else if (field_table[id].type == FIELD_LIST)
			json_object_set_new_nocheck(key, field_table[id].path,
						    json_deep_copy(spec_get(spec, field)));
		else
			add_value(spec, key, field);
	}
	return key;
}
