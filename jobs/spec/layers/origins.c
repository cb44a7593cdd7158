/* Where each value of a spec came from: see spec_origins(). */
#include "jobs/spec/layers/layers.h"

struct origin_walk {
	const struct spec *spec;
	json_t *origins;
};

static json_t *origin_of(const struct spec *spec, struct mark at)
{
	json_t *origin = json_object();

	if (at.set) {
		js_put_str(origin, "option", "--set");
		return origin;
	}
	js_put_str(origin, "file", at.file ? at.file : spec->file);
	js_put(origin, "line", json_integer(at.line));
	js_put(origin, "column", json_integer(at.column));
	js_put_str(origin, "profile", at.profile);
	return origin;
}

static void walk(struct origin_walk *origins, const struct entry *entry, const struct path *path)
{
	const struct node *node = entry->value;
	AUTO(auto_free) char *name = NULL;

	for (size_t i = 0; node->kind == NODE_MAP && i < node->count; i++) {
		struct path below = { path, node->entries[i].key, 0 };

		walk(origins, &node->entries[i], &below);
	}
	if (node->kind == NODE_MAP)
		return;
	name = node_path_text(path);
	js_put(origins->origins, name, origin_of(origins->spec, access_mark_of_entry(entry)));
}

json_t *spec_origins(const struct spec *spec)
{
	struct origin_walk origins = { spec, json_object() };
	json_t *written = json_object_get(spec->here, "written");

	for (size_t i = 0; i < spec->tree->count; i++) {
		const struct entry *entry = &spec->tree->entries[i];
		struct path path = { NULL, entry->key, 0 };

		if (!field_is_own(entry->key))
			walk(&origins, entry, &path);
	}
	/* The word that this machine was asked for. */
	if (written)
		js_put(origins.origins, field_table[SPEC_RESOURCES_INSTANCE].path,
		       json_incref(written));
	return origins.origins;
}
