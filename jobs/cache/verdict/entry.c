/* Objects of one graph: see entry.h. */
#include "jobs/cache/verdict/entry.h"

#include <stdlib.h>
#include <string.h>

#define LOG_BYTES_MAX ((size_t)4 << 20) /* largest log of a stored failure that is read */

/* A walk over the objects with a graph's prefix. */
struct entry_walk {
	const struct compile_kind *kind;
	const char *graph;
	entry_fn fn;
	void *arg;
};

static int walk_object(void *arg, const struct store_object *object, struct err **err)
{
	const struct entry_walk *walk = arg;
	struct entry_object entry;
	bool known = walk->kind->object(object->key, &entry) &&
		     entry.graph.len == strlen(walk->graph) &&
		     memcmp(entry.graph.text, walk->graph, entry.graph.len) == 0;

	if (!known && !walk->kind->prefix)
		return 0;
	return walk->fn(walk->arg, object, known ? entry.role : 0, err);
}

int entry_each(struct store *store, const struct compile_kind *kind, const char *graph, entry_fn fn,
	       void *arg, struct err **err)
{
	struct entry_walk walk = { kind, graph, fn, arg };
	AUTO(auto_free) char *key = NULL;
	struct store_object object;
	int found;

	if (kind->prefix) {
		key = kind->prefix(graph);
		return key ? store_list(store, key, walk_object, &walk, err) : 0;
	}
	if (!kind->path)
		return store_list(store, "", walk_object, &walk, err);
	key = kind->path(graph);
	found = store_stat(store, key, &object, err);
	if (found > 0)
		found = walk_object(&walk, &object, err);
	return found < 0 ? -1 : 0;
}

/* Roles of the objects that are deleted, in the order of deletion. */
static const unsigned discarded[] = { ROLE_MARKER, ROLE_COMPILED, ROLE_LOG };

struct discard {
	json_t *keys[STK_LENGTH(discarded)];
	bool locked;
};

static int collect(void *arg, const struct store_object *object, unsigned role, struct err **err)
{
	struct discard *discard = arg;

	(void)err;
	discard->locked |= (role & ROLE_LOCK) != 0;
	for (size_t i = 0; i < STK_LENGTH(discarded); i++)
		if (role & discarded[i])
			json_array_append_new(discard->keys[i], json_string(object->key));
	return 0;
}

static int delete_all(struct store *store, const json_t *keys, json_t *removed, struct err **err)
{
	for (size_t i = 0; i < json_array_size(keys); i++) {
		json_t *key = json_array_get(keys, i);

		if (store_delete(store, json_string_value(key), err) < 0)
			return err_wrap(err, "cannot remove a damaged entry of the cache");
		json_array_append(removed, key);
	}
	return 0;
}

int entry_discard(struct store *store, const struct compile_kind *kind, const char *graph,
		  json_t **ret_removed, struct err **err)
{
	struct discard discard = { .locked = false };
	json_auto_t *removed = json_array();
	int done;

	for (size_t i = 0; i < STK_LENGTH(discarded); i++)
		discard.keys[i] = json_array();
	done = entry_each(store, kind, graph, collect, &discard, err);
	for (size_t i = 0; i < STK_LENGTH(discarded); i++) {
		if (done == 0 && !discard.locked)
			done = delete_all(store, discard.keys[i], removed, err);
		json_decref(discard.keys[i]);
	}
	if (done == 0)
		*ret_removed = TAKE(removed);
	return done;
}

void entry_lock_clear(struct entry_lock *lock)
{
	auto_free(&lock->key);
}

static int note_lock(void *arg, const struct store_object *object, unsigned role, struct err **err)
{
	struct entry_lock *lock = arg;

	(void)err;
	if (!(role & ROLE_LOCK) || (lock->key && lock->since.ms <= object->modified.ms))
		return 0;
	auto_free(&lock->key);
	lock->key = mem_copy(object->key);
	lock->since = object->modified;
	return 0;
}

int entry_lock_find(struct store *store, const struct compile_kind *kind, const char *graph,
		    struct entry_lock *ret, struct err **err)
{
	*ret = (struct entry_lock){ 0 };
	if (entry_each(store, kind, graph, note_lock, ret, err) < 0) {
		entry_lock_clear(ret);
		return -1;
	}
	return 0;
}

static int keep_log_key(void *arg, const struct store_object *object, unsigned role,
			struct err **err)
{
	char **key = arg;

	(void)err;
	if (!(role & ROLE_LOG) || object->size > LOG_BYTES_MAX)
		return 0;
	*key = mem_copy(object->key);
	return 1;
}

char *entry_first_error(struct store *store, const struct compile_kind *kind, const char *graph)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(LOG_BYTES_MAX);
	AUTO(err_freep) struct err *err = NULL; /* ignored: the message is only informative */
	AUTO(auto_free) char *key = NULL;
	struct compile_kind_words words;

	if (!kind->first_error || entry_each(store, kind, graph, keep_log_key, &key, &err) < 0 ||
	    !key || store_get(store, key, LOG_BYTES_MAX, &text, NULL, &err) <= 0)
		return NULL;
	words = kind->first_error(text.text, text.len);
	return words.len > 0 ? mem_copy_n(words.text, words.len) : NULL;
}
