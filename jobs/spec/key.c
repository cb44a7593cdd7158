/*
 * Which parts of a spec decide what graphs the compiler will see. A part too
 * few makes a false warm, a part too many an unneeded compile: so whatever is
 * not known to be neutral counts.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/hash.h"
#include "jobs/base/sb.h"
#include "jobs/base/text.h"
#include "jobs/spec/names.h"
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

static void add(const struct spec *spec, json_t *key, const char *section, const char *name,
		const char *text)
{
	AUTO(auto_free) char *ingredient = mem_format("%s.%s", section, name);
	char hex[SHA256_HEX];
	char *hashed = NULL;

	if (ignored(spec, ingredient))
		return;
	if (names_secret(name)) {
		sha256_hex(text, strlen(text), hex);
		hashed = mem_format("sha256:%s", hex);
	}
	json_object_set_new_nocheck(key, ingredient, json_string_nocheck(hashed ? hashed : text));
	free(hashed);
}

/* Wrapper flags never reach the compiler (Neuron SDK, neuron-caching.rst). */
static const struct wrapper_flag {
	const char *name;
	bool takes_value;
} wrapper_flags[] = {
	{ "--cache_dir", true },
	{ "--no_cache", false },
	{ "--log_level", true },
	{ "--retry_failed_compilation", false },
};

static const struct wrapper_flag *wrapper_flag(const char *word)
{
	for (size_t i = 0; i < STK_LENGTH(wrapper_flags); i++) {
		size_t len = strlen(wrapper_flags[i].name);

		if (strncmp(word, wrapper_flags[i].name, len) == 0 &&
		    (!word[len] || word[len] == '='))
			return &wrapper_flags[i];
	}
	return NULL;
}

/* NEURON_CC_FLAGS as the compiler gets them. */
static char *compiler_flags(const char *flags)
{
	AUTO(auto_free) char *copy = mem_copy(flags);
	struct sb kept = SB_INIT;
	char *rest = NULL;
	bool is_value = false;

	for (char *word = strtok_r(copy, " \t\n", &rest); word;
	     word = strtok_r(NULL, " \t\n", &rest)) {
		const struct wrapper_flag *flag = wrapper_flag(word);
		bool drop = flag || (is_value && *word != '-');

		is_value = flag && flag->takes_value && !strchr(word, '=');
		if (!drop)
			sb_addf(&kept, "%s%s", kept.len > 0 ? " " : "", word);
	}
	return sb_take(&kept);
}

static void add_env(const struct spec *spec, json_t *key)
{
	json_auto_t *env = spec_env(spec, false);
	json_t *value;
	const char *name;

	json_object_foreach (env, name, value) {
		const char *text = json_string_value(value);
		AUTO(auto_free) char *flags = NULL;

		if (names_neutral(name))
			continue;
		if (strcmp(name, "NEURON_CC_FLAGS") == 0)
			text = flags = compiler_flags(text);
		add(spec, key, "env", name, text);
	}
}

static void add_hyperparameters(const struct spec *spec, json_t *key)
{
	const struct node *map = node_of_field(spec, SPEC_HYPERPARAMETERS);

	for (size_t i = 0; map && i < map->count; i++) {
		AUTO(auto_free) char *text = render_value(map->entries[i].value);

		if (text)
			add(spec, key, "hyperparameters", map->entries[i].key, text);
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
		text = family_of(json_string_value(value));
	else if (json_is_string(value))
		text = mem_copy(json_string_value(value));
	if (text)
		json_object_set_new_nocheck(key, fields[field].path, json_string_nocheck(text));
}

json_t *spec_key_ingredients(const struct spec *spec)
{
	json_t *key = json_object();

	for (int id = 0; id < SPEC_FIELD_COUNT; id++) {
		enum spec_field field = (enum spec_field)id;

		if (!fields[id].in_key)
			continue;
		if (field == SPEC_HYPERPARAMETERS)
			add_hyperparameters(spec, key);
		else if (field == SPEC_ENV)
			add_env(spec, key);
		else if (field == SPEC_COMMAND)
			json_object_set_new_nocheck(key, fields[id].path, command_texts(spec));
		else if (fields[id].type == FIELD_LIST)
			json_object_set_new_nocheck(key, fields[id].path,
						    json_deep_copy(spec_get(spec, field)));
		else
			add_value(spec, key, field);
	}
	return key;
}
