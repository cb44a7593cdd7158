/*
 * Verification of what inference left: it lies outside of the model folder, and the manifest of it
 * that an entry names is a copy in the folder, proved like all of its files. See model.h.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/sb.h"
#include "jobs/model/model_internal.h"

#define OUTPUTS_MANIFEST "manifest.json" /* where the outputs lie */
#define MANIFEST_MAX     ((size_t)256 << 20)

void model_verify_note_outputs(struct model_verifying *v, int64_t generation, const json_t *version)
{
	const json_t *outputs = json_object_get(version, "outputs"), *known;
	const char *url = js_str(outputs, "url");
	json_t *row;
	size_t i;

	if (!url || !json_object_get(outputs, "manifest"))
		return;
	/* A rollback names them again. */
	json_array_foreach (v->outputs, i, known)
		if (strcmp(js_str(known, "url"), url) == 0)
			return;
	row = json_object();
	js_put_str(row, "url", url);
	js_put(row, "manifest", json_incref(json_object_get(outputs, "manifest")));
	js_put(row, "newest", json_boolean(generation == v->newest));
	json_array_append_new(v->outputs, row);
}

struct model_outputs {
	struct model_object *objects; /* owned */
	size_t count;
};

static void model_outputs_release(struct model_outputs *listed)
{
	model_objects_free(listed->objects, listed->count);
}

static bool add(struct model_outputs *listed, const char *key, const json_t *size,
		const char *sha256)
{
	struct model_object *object;

	if (!key || !store_key_fits(key, false) || !json_is_integer(size) ||
	    json_integer_value(size) < 0 || !model_is_digest(sha256))
		return false;
	listed->objects = mem_room(listed->objects, listed->count, sizeof *listed->objects);
	object = &listed->objects[listed->count++];
	*object = (struct model_object){ .key = mem_copy(key),
					 .size = (uint64_t)json_integer_value(size) };
	memcpy(object->sha256, sha256, SHA256_HEX);
	return true;
}

/* Lists what the copy of the manifest names, and the manifest itself. Returns 1, 0 if the copy is
 * not what the entry names, which was told already, or is no manifest: the entry is as whoever has
 * written it wanted it. */
static int list(struct model_verifying *v, const json_t *copy, struct model_outputs *ret,
		struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(MANIFEST_MAX);
	const char *key = js_str(copy, "file");
	AUTO(err_freep) struct err *why = NULL;
	json_auto_t *manifest = NULL;
	const json_t *file;
	char sha256[SHA256_HEX];
	bool fits;
	size_t i;
	int there = store_get(v->model->store, key, MANIFEST_MAX, &text, NULL, err);

	if (there < 0)
		return -1;
	hash_sha256_hex(text.text, text.len, sha256);
	if (there == 0 || strcmp(sha256, js_str(copy, "sha256")) != 0)
		return 0;
	fits = js_parse(text.text, text.len, key, &manifest, &why) == 0 &&
	       add(ret, OUTPUTS_MANIFEST, json_object_get(copy, "size"), sha256);
	json_array_foreach (json_object_get(manifest, "files"), i, file)
		fits = fits && add(ret, js_str(file, "file"), json_object_get(file, "size"),
				   js_str(file, "sha256"));
	if (!fits)
		model_verify_differs(v, key, "it is no manifest of outputs");
	return fits;
}

/* A version that is not the newest may have lost its outputs, as whoever made room wanted. */
static bool is_gone(struct model_verifying *v, const json_t *row, struct store *store,
		    struct err **err)
{
	struct store_object object;
	int there = json_is_true(json_object_get(row, "newest"))
			    ? 1
			    : store_stat(store, OUTPUTS_MANIFEST, &object, err);

	if (there == 0)
		model_verify_unchecked(v, js_str(row, "url"),
				       "the outputs of this earlier version are gone");
	return there == 0;
}

static int check(struct model_verifying *v, const json_t *row, struct store *store,
		 struct err **err)
{
	AUTO(model_outputs_release) struct model_outputs listed = { 0 };
	int found;

	if (is_gone(v, row, store, err))
		return 0;
	if (*err)
		return -1;
	found = list(v, json_object_get(row, "manifest"), &listed, err);
	if (found <= 0)
		return found;
	return model_verify_objects(v, store, listed.objects, listed.count, err);
}

/* True if outputs can be looked at from here; a copy of the folder is verified without network, and
 * on any machine. */
static bool is_reached(struct model_verifying *v, const char *url)
{
	if (url[0] != '/' && store_directory(v->model->store)) {
		model_verify_unchecked(v, url, "these outputs are not looked at from a directory");
		return false;
	}
	if (url[0] == '/' && !fs_exists(url)) {
		model_verify_unchecked(v, url, "these outputs are not on this machine");
		return false;
	}
	return true;
}

void model_verify_outputs(struct model_verifying *v)
{
	const json_t *row;
	size_t i;

	json_array_foreach (v->outputs, i, row) {
		const char *url = js_str(row, "url");
		AUTO(store_freep) struct store *store = NULL;
		AUTO(err_freep) struct err *why = NULL;

		if (is_reached(v, url) &&
		    (store_open(url, &store, &why) < 0 || check(v, row, store, &why) < 0))
			model_verify_unchecked(v, url, why->message);
	}
}
