/* Verification of a model folder: every digest is computed again. See model.h. */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"
#include "jobs/model/model_internal.h"
#include "jobs/model/model_version.h"

#define GAPS_MAX 1000 /* missing entries that are told one by one */

static void verifying_release(struct model_verifying *v)
{
	model_objects_free(v->objects, v->count);
	json_decref(v->outputs);
	json_decref(v->told);
	json_decref(v->seen);
	json_decref(v->removed);
}

static void differs_with(struct model_verifying *v, const char *object, struct err *err)
{
	model_verify_differs(v, object, err ? err->message : "it cannot be read");
}

/* ---- the chain ---- */

static int on_entry_listed(void *arg, const struct store_object *object, struct err **err)
{
	struct model_verifying *v = arg;
	const char *name = object->key + strlen(MODEL_ENTRIES);
	AUTO(auto_free) char *right = NULL;
	char *end;
	int64_t number = strtoll(name, &end, 10);

	(void)err;
	right = model_entry_key(number);
	if (number < 1 || strcmp(right, object->key) != 0) {
		model_verify_differs(v, object->key, "no entry has such a name");
		return 0;
	}
	v->listed++;
	if (number > v->newest)
		v->newest = number;
	return 0;
}

/* A number far beyond the others is no entry of this chain: not each one before it is told. */
static void bound_newest(struct model_verifying *v)
{
	AUTO(auto_free) char *key = model_entry_key(v->newest);

	if (v->newest <= v->listed + GAPS_MAX)
		return;
	model_verify_differs(v, key, "the entries before it are missing");
	v->newest = v->listed;
}

static bool is_removed(const struct model_verifying *v, const char *key)
{
	const json_t *run;
	size_t i;

	json_array_foreach (v->removed, i, run) {
		AUTO(auto_free) char *prefix = model_files_prefix(json_string_value(run));

		if (text_starts(key, prefix))
			return true;
	}
	return false;
}

static int add_object(void *arg, const struct model_named *named, struct err **err)
{
	struct model_verifying *v = arg;
	const char *known = json_string_value(json_object_get(v->seen, named->key));
	struct model_object *object;

	(void)err;
	if (named->is_model && is_removed(v, named->key))
		return 0;
	if (known && strcmp(known, named->sha256) == 0)
		return 0;
	if (known) {
		model_verify_differs(v, named->key, "two entries name it with different digests");
		return 0;
	}
	json_object_set_new(v->seen, named->key, json_string(named->sha256));
	v->objects = mem_room(v->objects, v->count, sizeof *v->objects);
	object = &v->objects[v->count++];
	*object = (struct model_object){ .key = mem_copy(named->key), .size = named->size };
	memcpy(object->sha256, named->sha256, SHA256_HEX);
	return 0;
}

static void check_link(struct model_verifying *v, const char *key, const char *digest,
		       const char *want)
{
	if (*want && strcmp(digest, want) != 0)
		model_verify_differs(v, key, "it has another digest than the next entry names");
	if (v->how->head && strcmp(digest, v->how->head) == 0)
		v->head_found = true;
}

/* Checks one entry; `next` is the digest that the one after it names ("": not known), and becomes
 * the one that this one names. */
static int check_entry(struct model_verifying *v, int64_t generation, char next[SHA256_HEX],
		       struct err **err)
{
	AUTO(auto_free) char *key = model_entry_key(generation);
	AUTO(model_entry_release) struct model_entry entry = { 0 };
	AUTO(sb_release) struct sb text = SB_INIT_MAX(MODEL_ENTRY_MAX + 1);
	AUTO(err_freep) struct err *why = NULL;
	char digest[SHA256_HEX];
	int there = store_get(v->model->store, key, MODEL_ENTRY_MAX, &text, NULL, err);

	if (there < 0)
		return -1;
	if (there == 0) {
		model_verify_differs(v, key, "it is missing");
		next[0] = '\0';
		return 0;
	}
	v->ret->entries++;
	v->ret->bytes += text.len;
	hash_sha256_hex(text.text, text.len, digest);
	if (generation == v->newest)
		memcpy(v->ret->head, digest, SHA256_HEX);
	if (model_entry_parse(text.text, text.len, key, generation, v->model->name, &entry, &why) <
	    0) {
		differs_with(v, key, why);
		next[0] = '\0';
		return 0;
	}
	check_link(v, key, digest, next);
	snprintf(next, SHA256_HEX, "%s",
		 js_str(entry.body, "before") ? js_str(entry.body, "before") : "");
	if (generation == v->newest)
		v->removed = json_incref(json_object_get(entry.body, "removed"));
	model_verify_note_outputs(v, generation, json_object_get(entry.body, "version"));
	return model_version_each(json_object_get(entry.body, "version"), add_object, v, err);
}

static int check_chain(struct model_verifying *v, struct err **err)
{
	char next[SHA256_HEX] = "";

	if (store_list(v->model->store, MODEL_ENTRIES, on_entry_listed, v, err) < 0)
		return -1;
	bound_newest(v);
	for (int64_t generation = v->newest; generation > 0; generation--)
		if (check_entry(v, generation, next, err) < 0)
			return -1;
	return 0;
}

/* True if the pointer tells of the cumulative list what its entry says. An entry that cannot be
 * read is told as such. */
static bool tells_alike(const struct model_verifying *v, const struct model_pointer *pointer,
			const struct sb *text)
{
	AUTO(model_entry_release) struct model_entry entry = { 0 };
	AUTO(err_freep) struct err *unreadable = NULL;

	return pointer->seen[0] == '\0' ||
	       model_entry_parse(text->text, text->len, "", pointer->generation, v->model->name,
				 &entry, &unreadable) < 0 ||
	       (js_is(entry.body, "run", pointer->run) &&
		js_is(js_path(entry.body, "version.data.seen"), "sha256", pointer->seen));
}

static int check_pointer(struct model_verifying *v, struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(MODEL_POINTER_MAX + 1);
	AUTO(sb_release) struct sb entry = SB_INIT_MAX(MODEL_ENTRY_MAX + 1);
	AUTO(err_freep) struct err *why = NULL;
	AUTO(auto_free) char *key = NULL;
	struct model_pointer pointer = { 0 };
	char digest[SHA256_HEX];
	int there = store_get(v->model->store, MODEL_POINTER, MODEL_POINTER_MAX, &text, NULL, err);

	if (there < 0)
		return -1;
	if (there == 0) {
		if (v->newest > 0)
			model_verify_differs(v, MODEL_POINTER, "it is missing");
		return 0;
	}
	if (model_pointer_parse(text.text, text.len, MODEL_POINTER, v->model->name, &pointer,
				&why) < 0) {
		differs_with(v, MODEL_POINTER, why);
		return 0;
	}
	if (pointer.generation > v->newest) {
		model_verify_differs(v, MODEL_POINTER, "it names an entry that is not there");
		return 0;
	}
	key = model_entry_key(pointer.generation);
	there = store_get(v->model->store, key, MODEL_ENTRY_MAX, &entry, NULL, err);
	if (there < 0)
		return -1;
	hash_sha256_hex(entry.text, entry.len, digest);
	if (there > 0 && strcmp(digest, pointer.digest) != 0)
		model_verify_differs(v, key, "it has another digest than " MODEL_POINTER " names");
	else if (there > 0 && !tells_alike(v, &pointer, &entry))
		model_verify_differs(v, MODEL_POINTER,
				     "it names another cumulative list than its entry");
	else if (pointer.generation < v->newest)
		model_verify_unchecked(v, MODEL_POINTER,
				       "it stands behind the newest entry; the next promotion or "
				       "rollback moves it on");
	return 0;
}

int model_verify(struct model *model, const struct model_verification *how,
		 struct model_verified *ret, struct err **err)
{
	AUTO(verifying_release) struct model_verifying v = { .model = model, .how = how };

	*ret = (struct model_verified){ 0 };
	v.ret = ret;
	v.told = json_object();
	v.seen = json_object();
	v.outputs = json_array();
	if (check_chain(&v, err) < 0 || check_pointer(&v, err) < 0 ||
	    model_verify_objects(&v, model->store, v.objects, v.count, err) < 0)
		return -1;
	model_verify_outputs(&v);
	if (how->head && !v.head_found)
		model_verify_differs(&v, MODEL_ENTRIES,
				     "no entry has the digest that --head names");
	return 0;
}
