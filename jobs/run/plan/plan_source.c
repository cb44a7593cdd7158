/* The source of a plan: pinned when the plan is made, published before it runs; see plan.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/run/plan/own_places.h"
#include "jobs/run/plan/plan_internal.h"
#include "jobs/store/store.h"

char **plan_strings(const json_t *array)
{
	size_t count = json_array_size(array);
	char **strings = mem_zero(count + 1, sizeof *strings);

	for (size_t i = 0; i < count; i++)
		strings[i] = mem_copy(json_string_value(json_array_get(array, i)));
	return strings;
}

char *plan_beside_spec(const struct spec *spec, const char *place)
{
	AUTO(auto_free) char *folder = fs_dirname(spec_file(spec));
	AUTO(auto_free) char *joined = NULL;

	if (strncmp(place, "dir:", 4) == 0)
		place += 4;
	joined = fs_join(folder, place);
	return fs_absolute(joined);
}

void plan_add_origin(const struct spec *spec, const char *field, struct err **err)
{
	const char *set = spec_override(spec, field), *file;
	int line, column;

	if (set)
		err_wrap(err, "%s", set);
	if (spec_position(spec, field, &file, &line, &column))
		err_at(err, file, line, column);
}

/* Path of the remembered digests, one file per source folder, in the state directory. */
static char *memory_of(const char *root, const char *state_dir)
{
	char hex[SHA256_HEX];

	hash_sha256_hex(root, strlen(root), hex);
	return mem_format("%s/digests/%.32s", state_dir, hex);
}

int plan_pin_source(struct plan *plan, const struct spec *spec, bool bare, const char *state_dir,
		    char *const *own, struct err **err)
{
	AUTO(auto_strv) char **former = own_places_former(state_dir);
	AUTO(auto_strv) char **include = plan_strings(spec_get(spec, SPEC_SOURCE_INCLUDE));
	AUTO(auto_strv) char **link = plan_strings(spec_get(spec, SPEC_SOURCE_LINK));
	struct source_request request = {
		.include = include, .link = link, .own = own, .former = former
	};

	plan->root = plan_beside_spec(spec, spec_str(spec, SPEC_SOURCE_PATH));
	plan->rev = mem_copy(spec_str(spec, SPEC_SOURCE_REV));
	plan->memory = memory_of(plan->root, state_dir);
	if (bare) {
		plan->pin = mem_zero(1, sizeof *plan->pin);
		return 0;
	}
	request.root = plan->root;
	request.memory = plan->memory;
	request.rev = plan->rev;
	request.allow_dirty = spec_bool(spec, SPEC_SOURCE_ALLOW_DIRTY);
	if (source_pin(&request, &plan->pin, err) == 0)
		return 0;
	if ((*err)->field)
		plan_add_origin(spec, (*err)->field, err);
	return -1;
}

bool plan_is_bare(const struct plan *plan)
{
	return plan->pin && !plan->pin->kind[0];
}

json_t *plan_source(const struct plan *plan, const struct spec *spec)
{
	const json_t *paths = spec_get(spec, SPEC_SOURCE_LINK), *path;
	AUTO(auto_free) char *bundle = source_bundle_key(plan->pin->digest);
	json_t *source = json_object(), *links = json_array();
	size_t i;

	js_put_str(source, "kind", plan->pin->kind);
	if (plan->pin->commit[0])
		js_put_str(source, "commit", plan->pin->commit);
	js_put(source, "dirty", json_boolean(plan->pin->dirty));
	js_put_str(source, "digest", plan->pin->digest);
	js_put(source, "files", json_integer((json_int_t)plan->pin->count));
	js_put_str(source, "root", plan->root);
	js_put_str(source, "bundle", bundle);
	json_array_foreach (paths, i, path) {
		const char *link = json_string_value(path);
		AUTO(auto_free) char *target = fs_join(plan->root, link);

		json_array_append_new(links, json_pack("[s, s]", link, target));
	}
	js_put(source, "links", links);
	return source;
}

int plan_publish(const struct plan *plan, struct err **err)
{
	AUTO(store_freep) struct store *workspace = NULL;
	struct source_request request = { .root = plan->root,
					  .rev = plan->rev,
					  .memory = plan->memory };

	if (!plan->pin)
		return 0;
	if (store_open(js_str(plan->json, "workspace"), &workspace, err) < 0 ||
	    source_publish(&request, plan->pin, workspace, err) < 0) {
		if (!(*err)->hint)
			err_hint(err, "check that 'workspace' can be created and written");
		return err_wrap(err, "cannot publish the source");
	}
	return 0;
}
