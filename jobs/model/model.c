/* The model folder: opened, its pointer and its chain of entries read. See model.h. */
#include "jobs/model/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/model/model_internal.h"

int model_open(const char *url, const char *name, struct model **ret, struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;
	struct model *model;

	if (store_open(url, &store, err) < 0)
		return err_wrap(err, "cannot open the model folder");
	model = mem_zero(1, sizeof *model);
	model->store = TAKE(store);
	model->name = name ? mem_copy(name) : NULL;
	*ret = model;
	return 0;
}

void model_freep(struct model **model)
{
	if (*model) {
		store_freep(&(*model)->store);
		free((*model)->name);
		free(*model);
	}
	*model = NULL;
}

void model_entry_release(struct model_entry *entry)
{
	json_decref(entry->body);
	*entry = (struct model_entry){ 0 };
}

/* ---- reading ---- */

int model_entry_read(struct model *model, int64_t generation, struct model_entry *ret,
		     struct err **err)
{
	AUTO(auto_free) char *key = model_entry_key(generation);
	AUTO(auto_free) char *what = model_file_url(model, key);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(MODEL_ENTRY_MAX + 1);
	int there = store_get(model->store, key, MODEL_ENTRY_MAX, &text, NULL, err);

	if (there <= 0)
		return there;
	return model_entry_parse(text.text, text.len, what, generation, model->name, ret, err) < 0
		       ? -1
		       : 1;
}

static int contradiction(const struct model *model, int64_t generation, const char *why,
			 struct err **err)
{
	err_set(err, EXIT_REFUSED, "'%s/" MODEL_POINTER "' names generation %" PRId64 ", and %s",
		model_url(model), generation, why);
	err_hint(err,
		 "restore the missing or changed object from a copy; 'stoker lineage --verify' "
		 "names it");
	return err_damage(err);
}

int model_entry_fill(struct model *model, struct model_entry *entry, struct err **err)
{
	AUTO(model_entry_release) struct model_entry read = { 0 };
	int there;

	if (entry->body || entry->generation == 0)
		return 0;
	there = model_entry_read(model, entry->generation, &read, err);
	if (there < 0)
		return -1;
	if (there == 0)
		return contradiction(model, entry->generation, "there is no such entry", err);
	if (strcmp(read.digest, entry->digest) != 0)
		return contradiction(model, entry->generation,
				     "the entry has another digest than it names", err);
	entry->body = TAKE(read.body);
	return 0;
}

/* Goes on from `ret` to the newest entry. */
static int read_beyond(struct model *model, struct model_entry *ret, struct err **err)
{
	for (;;) {
		AUTO(model_entry_release) struct model_entry next = { 0 };
		int there = model_entry_read(model, ret->generation + 1, &next, err);

		if (there <= 0)
			return there;
		if (ret->generation > 0 && !js_is(next.body, "before", ret->digest)) {
			err_set(err, EXIT_REFUSED,
				"entry %" PRId64 " of '%s' does not follow entry %" PRId64
				": it names another digest",
				next.generation, model_url(model), ret->generation);
			err_hint(err, "restore the changed entry from a copy; 'stoker lineage "
				      "--verify' names what differs");
			return err_damage(err);
		}
		model_entry_release(ret);
		*ret = next;
		next = (struct model_entry){ 0 };
	}
}

/* Moves the pointer on to this entry. Another process may do so at the same time, and further. */
static int mend_pointer(struct model *model, struct model_pointer *pointer,
			const struct model_entry *entry, struct err **err)
{
	while (pointer->generation < entry->generation) {
		int written = model_pointer_write(model, pointer, entry, err);

		if (written != 0)
			return written < 0 ? -1 : 0;
		*pointer = (struct model_pointer){ 0 };
		if (model_pointer_read(model, pointer, err) < 0)
			return -1;
	}
	return 0;
}

/* Finds the newest entry. With `brief` that of a pointer which tells of its list is not read. */
static int find_head(struct model *model, bool brief, struct model_pointer *pointer,
		     struct model_entry *ret, struct err **err)
{
	if (model_pointer_read(model, pointer, err) < 0)
		return -1;
	ret->generation = pointer->generation;
	memcpy(ret->digest, pointer->digest, sizeof ret->digest);
	if (!(brief && pointer->seen[0]) && model_entry_fill(model, ret, err) < 0)
		return -1;
	return read_beyond(model, ret, err);
}

int model_head(struct model *model, bool mend, struct model_entry *ret, struct err **err)
{
	AUTO(model_entry_release) struct model_entry entry = { 0 };
	struct model_pointer pointer = { 0 };

	if (find_head(model, false, &pointer, &entry, err) < 0)
		return -1;
	if (mend && entry.generation > pointer.generation &&
	    mend_pointer(model, &pointer, &entry, err) < 0)
		return -1;
	*ret = entry;
	entry = (struct model_entry){ 0 };
	return ret->generation > 0;
}

void model_seen_release(struct model_seen *seen)
{
	free(seen->url);
	*seen = (struct model_seen){ 0 };
}

int model_head_seen(struct model *model, struct model_entry *ret, struct model_seen *ret_seen,
		    struct err **err)
{
	AUTO(model_entry_release) struct model_entry entry = { 0 };
	AUTO(auto_free) char *key = NULL;
	struct model_pointer pointer = { 0 };
	const json_t *seen;

	if (find_head(model, true, &pointer, &entry, err) < 0)
		return -1;
	seen = js_path(entry.body, "version.data.seen");
	if (entry.body)
		key = js_str(seen, "file") ? mem_copy(js_str(seen, "file")) : NULL;
	else if (entry.generation > 0)
		key = model_list_key(pointer.run, pointer.seen);
	*ret_seen = (struct model_seen){ .url = model_file_url(model, key) };
	if (key)
		memcpy(ret_seen->sha256, entry.body ? js_str(seen, "sha256") : pointer.seen,
		       SHA256_HEX);
	*ret = entry;
	entry = (struct model_entry){ 0 };
	return ret->generation > 0;
}

/* ---- the chain ---- */

int model_each(struct model *model, const struct model_entry *head, model_entry_fn fn, void *arg,
	       struct err **err)
{
	AUTO(model_entry_release) struct model_entry entry = { .generation = head->generation };
	int done;

	memcpy(entry.digest, head->digest, sizeof entry.digest);
	entry.body = json_incref(head->body);
	while ((done = fn(arg, &entry, err)) == 0 && entry.generation > 1) {
		AUTO(model_entry_release) struct model_entry before = { 0 };
		int there = model_entry_read(model, entry.generation - 1, &before, err);

		if (there < 0)
			return -1;
		if (there == 0 || !js_is(entry.body, "before", before.digest)) {
			err_set(err, EXIT_GATE, "entry %" PRId64 " of '%s' %s",
				entry.generation - 1, model_url(model),
				there == 0 ? "is missing"
					   : "has another digest than the next one names");
			err_hint(err, "restore it from a copy");
			return err_damage(err);
		}
		model_entry_release(&entry);
		entry = before;
		before = (struct model_entry){ 0 };
	}
	return done < 0 ? -1 : 0;
}
