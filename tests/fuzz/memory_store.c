/* A store in memory: see memory_store.h. */
#include "tests/fuzz/memory_store.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/hash.h"

static struct memory_store *memory(struct store *store)
{
	return (struct memory_store *)(void *)store;
}

/* Returns the place where the key is, or would be. */
static size_t place_of(const struct memory_store *store, const char *key)
{
	size_t at = 0;

	while (at < store->count && strcmp(store->objects[at].key, key) < 0)
		at++;
	return at;
}

const struct memory_object *memory_store_find(const struct memory_store *store, const char *key)
{
	size_t at = place_of(store, key);

	return at < store->count && strcmp(store->objects[at].key, key) == 0 ? &store->objects[at]
									     : NULL;
}

static int memory_put(struct store *base, const char *key, const void *bytes, size_t len,
		      struct err **err)
{
	struct memory_store *store = memory(base);
	size_t at = place_of(store, key);
	struct memory_object *object;

	(void)err;
	if (!memory_store_find(store, key)) {
		store->objects = mem_grow(store->objects, store->count + 1, sizeof *store->objects);
		memmove(store->objects + at + 1, store->objects + at,
			(store->count - at) * sizeof *store->objects);
		store->objects[at] =
			(struct memory_object){ .key = mem_copy(key), .bytes = SB_INIT };
		store->count++;
	}
	object = &store->objects[at];
	sb_clear(&object->bytes);
	sb_add(&object->bytes, bytes, len);
	object->size = len;
	object->modified = store->now;
	hash_sha256_hex(bytes, len, object->tag);
	return 0;
}

static int memory_stat(struct store *base, const char *key, struct store_object *ret,
		       struct err **err)
{
	const struct memory_object *object = memory_store_find(memory(base), key);

	(void)err;
	if (!object)
		return 0;
	*ret = (struct store_object){ key, object->size, object->modified, "" };
	memcpy(ret->tag, object->tag, sizeof ret->tag);
	return 1;
}

static int memory_get(struct store *base, const char *key, size_t max, struct sb *ret,
		      char ret_tag[STORE_TAG], struct err **err)
{
	const struct memory_object *object = memory_store_find(memory(base), key);

	if (!object)
		return 0;
	if (object->bytes.len > max)
		return err_set(err, EXIT_REFUSED, "'%s' is too large", key);
	sb_add(ret, object->bytes.text, object->bytes.len);
	if (ret_tag)
		memcpy(ret_tag, object->tag, STORE_TAG);
	return 1;
}

/* An object that has a size only cannot be read, like one that is just being written. */
static int memory_read_range(struct store *base, const char *key, uint64_t offset, size_t len,
			     struct sb *ret, char ret_tag[STORE_TAG], struct err **err)
{
	const struct memory_object *object = memory_store_find(memory(base), key);

	(void)err;
	if (!object)
		return 0;
	if (offset < object->bytes.len) {
		size_t left = object->bytes.len - (size_t)offset;

		sb_add(ret, object->bytes.text + offset, left < len ? left : len);
	}
	if (ret_tag)
		memcpy(ret_tag, object->tag, STORE_TAG);
	return 1;
}

static int memory_put_if_absent(struct store *base, const char *key, const void *bytes, size_t len,
				struct err **err)
{
	if (memory_store_find(memory(base), key))
		return 0;
	return memory_put(base, key, bytes, len, err) < 0 ? -1 : 1;
}

static int memory_replace(struct store *base, const char *key, const char *tag, const void *bytes,
			  size_t len, struct err **err)
{
	const struct memory_object *object = memory_store_find(memory(base), key);

	if (!object || strcmp(object->tag, tag) != 0)
		return 0;
	return memory_put(base, key, bytes, len, err) < 0 ? -1 : 1;
}

static void clear_object(struct memory_object *object)
{
	free(object->key);
	sb_release(&object->bytes);
}

static int memory_remove(struct store *base, const char *key, struct err **err)
{
	struct memory_store *store = memory(base);
	size_t at = place_of(store, key);

	(void)err;
	if (!memory_store_find(store, key))
		return 0;
	clear_object(&store->objects[at]);
	memmove(store->objects + at, store->objects + at + 1,
		(store->count - at - 1) * sizeof *store->objects);
	store->count--;
	return 0;
}

/* The keys that begin with the prefix, as they are now: whoever is told of one may
 * take it away. */
static char **keys_below(const struct memory_store *store, const char *prefix)
{
	char **keys = mem_zero(store->count + 1, sizeof *keys);
	size_t count = 0;

	for (size_t i = 0; i < store->count; i++)
		if (strncmp(store->objects[i].key, prefix, strlen(prefix)) == 0)
			keys[count++] = mem_copy(store->objects[i].key);
	return keys;
}

static int memory_list(struct store *base, const char *prefix, store_list_fn fn, void *arg,
		       struct err **err)
{
	AUTO(auto_strv) char **keys = keys_below(memory(base), prefix);
	int done = 0;

	for (size_t i = 0; done == 0 && keys[i]; i++) {
		struct store_object object;

		if (memory_stat(base, keys[i], &object, err) > 0)
			done = fn(arg, &object, err);
	}
	return done < 0 ? -1 : 0;
}

static int memory_folders(struct store *base, const char *prefix, store_folder_fn fn, void *arg,
			  struct err **err)
{
	AUTO(auto_strv) char **keys = keys_below(memory(base), prefix);
	AUTO(auto_free) char *before = NULL;
	int done = 0;

	for (size_t i = 0; done == 0 && keys[i]; i++) {
		const char *below = keys[i] + strlen(prefix);
		AUTO(auto_free) char *name = mem_copy_n(below, strcspn(below, "/"));

		if (!below[strlen(name)] || (before && strcmp(before, name) == 0))
			continue;
		done = fn(arg, name, err);
		free(before);
		before = TAKE(name);
	}
	return done < 0 ? -1 : 0;
}

static void memory_free(struct store *base)
{
	struct memory_store *store = memory(base);

	for (size_t i = 0; i < store->count; i++)
		clear_object(&store->objects[i]);
	free(store->objects);
	free(store->base.url);
	free(store);
}

static const struct store_backend memory_backend = {
	.free = memory_free,
	.list = memory_list,
	.folders = memory_folders,
	.get = memory_get,
	.read_range = memory_read_range,
	.stat = memory_stat,
	.put = memory_put,
	.put_if_absent = memory_put_if_absent,
	.replace_if_same = memory_replace,
	.remove = memory_remove,
};

struct memory_store *memory_store_new(void)
{
	struct memory_store *store = mem_zero(1, sizeof *store);

	store->base.backend = &memory_backend;
	store->base.url = mem_copy("memory:");
	return store;
}

bool memory_store_add(struct memory_store *store, const char *key, uint64_t size)
{
	AUTO(err_freep) struct err *err = NULL;
	struct memory_object *object;

	if (store_put(&store->base, key, "", 0, &err) < 0)
		return false;
	object = &store->objects[place_of(store, key)];
	object->size = size;
	snprintf(object->tag, sizeof object->tag, "t%llu", (unsigned long long)size);
	return true;
}
