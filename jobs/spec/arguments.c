/*
 * Input of the job: command line and hyperparameters as text, for training and for phase 1. Its
 * environment: environment.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/spec/fields/scalar.h"
#include "jobs/spec/resolved.h"

/* A number as JSON: as written if that is JSON. */
static void json_number_text(struct sb *out, const char *text)
{
	int64_t whole;

	if (scalar_is_json_number(text))
		sb_adds(out, text);
	else if (scalar_kind(text) == SCALAR_INT && scalar_int(text, &whole))
		sb_addf(out, "%lld", (long long)whole);
	else if (isfinite(scalar_real(text)))
		sb_addf(out, "%.17g", scalar_real(text));
	else
		sb_addf(out, "\"%s\"", text);
}

static void json_text(struct sb *out, const struct node *node)
{
	enum scalar_kind kind =
		node->kind == NODE_SCALAR && !node->quoted ? scalar_kind(node->text) : SCALAR_TEXT;

	if (node->kind == NODE_LIST) {
		sb_addc(out, '[');
		for (size_t i = 0; i < node->count; i++) {
			sb_adds(out, i > 0 ? ", " : "");
			json_text(out, node->entries[i].value);
		}
		sb_addc(out, ']');
	} else if (kind == SCALAR_NULL && !node->expanded) {
		sb_adds(out, "null");
	} else if (kind == SCALAR_BOOL) {
		sb_adds(out, scalar_true(node->text) ? "true" : "false");
	} else if (kind == SCALAR_INT || kind == SCALAR_REAL) {
		json_number_text(out, node->text);
	} else {
		json_auto_t *text = json_string_nocheck(node_deferred(node));
		char *quoted = json_dumps(text, JSON_ENCODE_ANY);

		sb_adds(out, quoted ? quoted : "\"\"");
		free(quoted);
	}
}

static bool is_boolean(const struct node *node)
{
	return node->kind == NODE_SCALAR && !node->quoted && scalar_kind(node->text) == SCALAR_BOOL;
}

char *arguments_render_value(const struct node *node)
{
	struct sb out = SB_INIT;

	if (node_is_null(node))
		return NULL;
	if (node->kind == NODE_SCALAR) {
		if (is_boolean(node))
			return mem_copy(scalar_true(node->text) ? "True" : "False");
		return mem_copy(node_deferred(node));
	}
	json_text(&out, node);
	return sb_take(&out);
}

/* Merges the nodes of one free map with those of `over` (or NULL) on top, in spec order; entries
 * in *ret_entries are borrowed, the caller frees the array. */
static size_t overlay(const struct node *map, const struct node *over, struct entry **ret_entries)
{
	size_t below = map && map->kind == NODE_MAP ? map->count : 0;
	size_t above = over && over->kind == NODE_MAP ? over->count : 0;
	const struct entry *changes = above > 0 ? over->entries : NULL;
	struct entry *entries = mem_grow(NULL, below + above + 1, sizeof *entries);
	size_t count = below;

	if (below > 0)
		memcpy(entries, map->entries, below * sizeof *entries);
	for (size_t i = 0; i < above; i++) {
		const struct entry *entry = &changes[i];
		struct entry *same = below > 0 ? node_entry(map, entry->key) : NULL;

		if (same)
			entries[same - map->entries].value = entry->value;
		else
			entries[count++] = *entry;
	}
	*ret_entries = entries;
	return count;
}

struct step_limit { /* the length of phase 1 as a hyperparameter */
	struct node node;
	char text[24];
};

/* Returns the hyperparameters of a phase. `steps` is storage that must outlive the entries. */
static size_t hyperparameters(const struct spec *spec, bool with_overrides,
			      struct step_limit *steps, struct entry **ret_entries)
{
	AUTO(auto_free) struct entry *entries = NULL;
	struct length length = phase_one_length_of(spec);
	struct entry extra = { .key = length.name, .value = &steps->node };
	struct node short_form = { .kind = NODE_MAP, .entries = &extra, .count = 1 };
	struct node merged = { .kind = NODE_MAP };
	const struct node *base = access_node_of_field(spec, SPEC_HYPERPARAMETERS);

	if (!with_overrides)
		return overlay(base, NULL, ret_entries);
	merged.count = overlay(
		base, access_node_of_field(spec, SPEC_COMPILE_OVERRIDES_HYPERPARAMETERS), &entries);
	merged.entries = entries;
	if (length.by != LENGTH_GIVEN && length.by != LENGTH_DEFAULT)
		return overlay(&merged, NULL, ret_entries);
	snprintf(steps->text, sizeof steps->text, "%lld", (long long)length.steps);
	steps->node = (struct node){ .kind = NODE_SCALAR, .text = steps->text };
	return overlay(&merged, &short_form, ret_entries);
}

json_t *arguments_command_texts(const struct spec *spec)
{
	const struct node *list = access_node_of_field(spec, SPEC_COMMAND);
	json_t *texts = json_deep_copy(spec_get(spec, SPEC_COMMAND));

	for (size_t i = 0; list && i < list->count; i++)
		if (list->entries[i].value->deferred)
			json_array_set_new(texts, i,
					   json_string_nocheck(list->entries[i].value->deferred));
	return texts;
}

char **spec_arguments(const struct spec *spec, bool with_overrides)
{
	bool flags = spec_says(spec, SPEC_HYPERPARAMETER_STYLE_BOOLEANS, "flag");
	json_auto_t *texts = arguments_command_texts(spec);
	json_auto_t *command = processes_command(spec, with_overrides, texts);
	AUTO(auto_free) struct entry *entries = NULL;
	struct step_limit steps;
	size_t count = hyperparameters(spec, with_overrides, &steps, &entries);
	char **argv = mem_zero(json_array_size(command) + 2 * count + 1, sizeof *argv);
	size_t argc = 0, i;
	const json_t *item;

	json_array_foreach (command, i, item)
		argv[argc++] = mem_copy(json_string_value(item));
	for (i = 0; i < count; i++) {
		const struct node *node = entries[i].value;
		AUTO(auto_free) char *value = arguments_render_value(node);
		bool flag = flags && is_boolean(node);

		if (!value || (flag && !scalar_true(node->text)))
			continue;
		argv[argc++] = mem_format("--%s", entries[i].key);
		if (!flag)
			argv[argc++] = TAKE(value);
	}
	return argv;
}

json_t *spec_hyperparameter_texts(const struct spec *spec, bool with_overrides)
{
	AUTO(auto_free) struct entry *entries = NULL;
	struct step_limit steps;
	size_t count = hyperparameters(spec, with_overrides, &steps, &entries);
	json_t *texts = json_object();

	for (size_t i = 0; i < count; i++) {
		AUTO(auto_free) char *value = arguments_render_value(entries[i].value);

		if (value)
			json_object_set_new_nocheck(texts, entries[i].key,
						    json_string_nocheck(value));
	}
	return texts;
}
