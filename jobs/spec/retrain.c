/*
 * The sections of retraining as a plan has them: with their defaults, the gate as one list, and a
 * stage (evaluate, infer) as a spec of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/spec/fields/scalar.h"
#include "jobs/spec/resolved.h"

json_t *spec_section(const struct spec *spec, enum spec_field section)
{
	const json_t *written = spec_get(spec, section);

	return written ? json_deep_copy(written) : bind_defaults((field_id)section);
}

static json_t *short_entry(const struct spec *spec)
{
	const char *metric = spec_str(spec, SPEC_EVALUATE_METRIC);
	json_t *entry;

	if (!metric || strcmp(metric, "none") == 0)
		return NULL;
	entry = json_object();
	js_put_str(entry, "metric", metric);
	js_put_str(entry, "direction", spec_str(spec, SPEC_EVALUATE_DIRECTION));
	js_put_str(entry, "against", field_table[SPEC_GATE_AGAINST].fallback);
	js_put_str(entry, "max_drop", spec_str(spec, SPEC_EVALUATE_MAX_DROP));
	js_put_str(entry, "confidence", field_table[SPEC_GATE_CONFIDENCE].fallback);
	return entry;
}

json_t *spec_gate(const struct spec *spec)
{
	json_t *gate = json_array(), *entry = short_entry(spec);
	const json_t *written;
	size_t i;

	if (entry)
		json_array_append_new(gate, entry);
	json_array_foreach (spec_get(spec, SPEC_GATE), i, written) {
		entry = json_deep_copy(written);
		/* Members that the other forms do not read. */
		if (!json_object_get(entry, "max_drop")) {
			json_object_del(entry, "direction");
			json_object_del(entry, "confidence");
		}
		if (!json_object_get(entry, "max_drop") && !json_object_get(entry, "max_gap"))
			json_object_del(entry, "against");
		json_array_append_new(gate, entry);
	}
	return gate;
}

/* --- a stage as a spec --- */

struct stage_edit {
	struct spec *spec;
	struct reporter *reporter;
	const struct node *section; /* NULL: the spec has none */
};

static struct node *value_of(const struct node *map, const char *key)
{
	struct entry *entry = map && map->kind == NODE_MAP ? node_entry(map, key) : NULL;

	return entry ? entry->value : NULL;
}

static void put_node(const struct stage_edit *edit, const char *path, struct node *value)
{
	if (value)
		set_node(edit->spec->arena, edit->reporter, edit->spec->tree, path, value);
}

/* Puts each entry of a map at the path `to`.NAME. */
static void put_entries(const struct stage_edit *edit, const char *to, const struct node *map)
{
	for (size_t i = 0; map && map->kind == NODE_MAP && i < map->count; i++) {
		AUTO(auto_free) char *path = mem_format("%s.%s", to, map->entries[i].key);

		put_node(edit, path, map->entries[i].value);
	}
}

/* Takes a name out of a map that is at the top of the spec. */
static void remove_node(const struct stage_edit *edit, const char *map, const char *key)
{
	struct entry *at = node_entry(edit->spec->tree, map);

	if (!at || at->value->kind != NODE_MAP)
		return;
	if (at->value->shared)
		at->value = node_own(edit->spec->arena, at->value);
	node_remove(at->value, key);
}

void retrain_make_stage(struct spec *spec, struct reporter *reporter, enum spec_field stage)
{
	struct stage_edit edit = { spec, reporter, value_of(spec->tree, field_table[stage].path) };
	const struct node *resources = value_of(edit.section, "resources");
	struct node *overrides = value_of(edit.section, "overrides");
	const struct node *together = value_of(edit.section, "together");

	put_node(&edit, "command", value_of(edit.section, "command"));
	node_remove(spec->tree, "hyperparameters");
	put_node(&edit, "hyperparameters", value_of(edit.section, "hyperparameters"));
	spec->alone = stage == SPEC_INFER && !(together && scalar_true(together->text));
	/* Price, network and workers are those of the instance. */
	if (value_of(resources, "instance")) {
		remove_node(&edit, "resources", "workers");
		remove_node(&edit, "resources", "price");
		remove_node(&edit, "resources", "efa");
	}
	put_entries(&edit, "resources", resources);
	put_node(&edit, "image", value_of(edit.section, "image"));
	put_entries(&edit, "env", value_of(edit.section, "env"));
	put_node(&edit, "batch.job_queue", value_of(edit.section, "job_queue"));
	remove_node(&edit, "compile", "overrides");
	remove_node(&edit, "compile", "max_steps");
	node_remove(spec->tree, "sweep");
	if (value_of(spec->tree, "compile")) {
		put_node(&edit, "compile.overrides", overrides);
		put_node(&edit, "compile.mode",
			 node_scalar(spec->arena,
				     value_of(edit.section, "compile")
					     ? value_of(edit.section, "compile")->text
					     : field_table[SPEC_EVALUATE_COMPILE].fallback,
				     false, spec->tree->at));
	}
}
