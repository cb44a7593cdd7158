/* The compiler whose graphs a manifest pins: see compile_manifest.h. A compiler can be replaced
 * while phase 1 runs; a manifest that names the wrong one would make a later run start training
 * with a cold cache. */
#include <string.h>

#include "jobs/cache/graphs/fingerprint.h"
#include "jobs/cache/manifest/compile_manifest_file.h"

#define VERSION_MAX 120 /* longest version that is shown, in bytes */

/* Length of the version without the build's hash. */
static size_t release(const char *version, size_t len)
{
	const char *plus = memchr(version, '+', len);

	return plus ? (size_t)(plus - version) : len;
}

static bool same_release(const char *version, struct compile_kind_words other)
{
	size_t len = release(version, strlen(version));

	return len == release(other.text, other.len) && memcmp(version, other.text, len) == 0;
}

/* The version in an entry's place, if `compiler` names that package; else len 0. */
static struct compile_kind_words writer_of(const struct compile_kind *kind, const char *path,
					   const json_t *compiler, const char **ret_package)
{
	struct compile_kind_words version = { 0 };

	if (kind->writer)
		version = kind->writer(path, ret_package);
	return version.len > 0 && js_str(compiler, *ret_package) ? version
								 : (struct compile_kind_words){ 0 };
}

enum lock_writer compile_manifest_name_writer(const struct compile_kind *kind,
					      const struct graph_tally *tally, json_t *compiler)
{
	AUTO(auto_free) char *first = NULL;
	const struct tally_graph *graph;
	const char *package = NULL;

	for (size_t i = 0; (graph = graph_tally_at(tally, i)); i++) {
		AUTO(auto_free) char *path = graph_tally_entry(tally, graph);
		struct compile_kind_words version = writer_of(kind, path, compiler, &package);

		if (version.len == 0)
			continue;
		if (!first)
			first = mem_copy_n(version.text, version.len);
		else if (!same_release(first, version))
			return WRITER_MIXED;
	}
	if (!first || same_release(js_str(compiler, package),
				   (struct compile_kind_words){ first, strlen(first) }))
		return WRITER_SAME;
	js_put_str(compiler, package, first);
	return WRITER_OTHER;
}

/* The members that are known in both and differ. */
static json_t *contradictions(const json_t *planned, const json_t *compiler)
{
	AUTO(auto_free) char *unknown = NULL;
	json_t *changed = fingerprint_compare(planned, compiler, &unknown);

	for (size_t i = json_array_size(changed); i-- > 0;)
		if (json_is_null(json_object_get(json_array_get(changed, i), "old")))
			json_array_remove(changed, i);
	return changed;
}

json_t *compile_manifest_ingredients(const json_t *planned, const json_t *compiler)
{
	json_auto_t *changed = contradictions(json_object_get(planned, "compiler"), compiler);
	json_t *ingredients = json_deep_copy(planned);

	if (json_array_size(changed))
		js_put(ingredients, "compiler", json_deep_copy(compiler));
	return ingredients;
}

char *compile_manifest_compiler_fault(const struct compile_manifest *lock)
{
	const json_t *own = json_object_get(lock->ingredients, "compiler");
	json_auto_t *changed = contradictions(own, lock->compiler);

	if (json_array_size(changed)) {
		AUTO(auto_free) char *words = fingerprint_words(changed);

		return mem_format("the graphs were compiled with %s, which the key names", words);
	}
	for (size_t i = 0; i < lock->count; i++) {
		const char *package = NULL, *path = lock->graphs[i].path;
		struct compile_kind_words version = writer_of(lock->kind, path, own, &package);

		if (version.len > 0 && !same_release(js_str(own, package), version))
			return mem_format(
				"graph '%.100s' was compiled with %s %.*s in place of %.*s, which "
				"the key names",
				lock->graphs[i].key, package,
				(int)(version.len < VERSION_MAX ? version.len : VERSION_MAX),
				version.text, VERSION_MAX, js_str(own, package));
	}
	return NULL;
}

int compile_manifest_withdraw(struct store *store, const char *graph_key, const char *run,
			      struct err **err)
{
	AUTO(compile_manifest_freep) struct compile_manifest *lock = NULL;
	AUTO(auto_free) char *damage = NULL;
	AUTO(auto_free) char *object = NULL;
	int found = compile_manifest_load(store, graph_key, &lock, &damage, err);

	if (found <= 0 || strcmp(lock->run, run) != 0)
		return found < 0 ? -1 : 0;
	object = compile_manifest_object_key(graph_key);
	return store_delete(store, object, err);
}
