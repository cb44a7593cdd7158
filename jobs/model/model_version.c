/* "version" in an entry: see model_version.h. */
#include "jobs/model/model_version.h"

#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/model/model_internal.h"

/* Members of a version that name files: dotted paths of objects with "file", "size" and
 * "sha256". */
static const char *const kept_files[] = {
	"data.manifest", "data.seen", "hold_out.manifest",
	"source.patch",  "journal",   "outputs.manifest",
};

/* True for a key below the folder of this run's version. */
static bool is_key(const char *key, const char *run)
{
	AUTO(auto_free) char *folder = mem_format(MODEL_VERSIONS "%s/", run);

	return key && text_starts(key, folder) && store_key_fits(key, false);
}

static bool is_file(const json_t *file)
{
	const json_t *size = json_object_get(file, "size");

	return json_is_integer(size) && json_integer_value(size) >= 0 &&
	       model_is_digest(js_str(file, "sha256"));
}

/* The key of a model's file; the caller frees it. */
static char *key_of(const char *model, const char *path)
{
	return *path ? mem_format("%s/%s", model, path) : mem_copy(model);
}

static char *model_invalid(const json_t *model, const char *run)
{
	AUTO(auto_free) char *prefix = model_files_prefix(run);
	const json_t *files = json_object_get(model, "files"), *file;
	const char *path = js_str(model, "path"), *before = NULL;
	bool single = js_bool(model, "single", false);
	size_t i;

	if (!is_key(path, run) || !text_starts(path, prefix))
		return mem_copy("its model lies outside of its version");
	if (json_array_size(files) == 0 || (single && json_array_size(files) != 1))
		return mem_copy("its model has no files");
	json_array_foreach (files, i, file) {
		const char *name = js_str(file, "path");
		AUTO(auto_free) char *key = NULL;

		if (!name || single != (*name == '\0') || !is_file(file))
			return mem_format("file %zu of its model is not described", i + 1);
		key = key_of(path, name);
		if (!is_key(key, run))
			return mem_format("file %zu of its model lies outside of it", i + 1);
		if (before && strcmp(before, name) >= 0)
			return mem_format("the files of its model are not sorted at %zu", i + 1);
		before = name;
	}
	return NULL;
}

char *model_version_invalid(const json_t *version, const char *run)
{
	char *invalid;

	if (!json_is_object(version))
		return mem_copy("it has no version");
	invalid = model_invalid(json_object_get(version, "model"), run);
	for (size_t i = 0; !invalid && i < STK_LENGTH(kept_files); i++) {
		const json_t *file = js_path(version, kept_files[i]);

		if (file && (!is_key(js_str(file, "file"), run) || !is_file(file)))
			invalid = mem_format("its '%s' is not described", kept_files[i]);
	}
	return invalid;
}

int model_version_each(const json_t *version, model_named_fn fn, void *arg, struct err **err)
{
	const json_t *model = json_object_get(version, "model"), *file;
	int result;
	size_t n;

	json_array_foreach (json_object_get(model, "files"), n, file) {
		AUTO(auto_free) char *key = key_of(js_str(model, "path"), js_str(file, "path"));
		const struct model_named named = { key, (uint64_t)js_int(file, "size", 0),
						   js_str(file, "sha256"), true };

		if ((result = fn(arg, &named, err)) != 0)
			return result;
	}
	for (size_t i = 0; i < STK_LENGTH(kept_files); i++) {
		const json_t *kept = js_path(version, kept_files[i]);
		const struct model_named named = { js_str(kept, "file"),
						   (uint64_t)js_int(kept, "size", 0),
						   js_str(kept, "sha256"), false };

		if (kept && (result = fn(arg, &named, err)) != 0)
			return result;
	}
	return 0;
}
