/* Uploads new entries to the compile cache: see cache_push.h. */
#include "jobs/node/checkpoints/cache_push.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/cache/kinds/compile_kind.h"
#include "jobs/cache/manifest/compile_manifest.h"
#include "jobs/cache/verdict/content.h"
#include "jobs/store/store.h"

enum cache_push_place { NEW, SETTLING, SETTLED, THERE, CUT };

struct item {
	char *key; /* owned */
	unsigned role;
	enum cache_push_place place;
	char tag[STORE_TAG]; /* tag of the file at the last look */
};

struct cache_push {
	const struct compile_kind *kind;
	char *folder; /* owned */
	struct store *from, *to;
	struct item *items; /* sorted by key; entries of both stores */
	size_t count;
	bool listed; /* entries that the cache had at the start are listed */
	size_t brought;
};

void cache_push_freep(struct cache_push **push)
{
	struct cache_push *p = *push;

	if (!p)
		return;
	for (size_t i = 0; i < p->count; i++)
		free(p->items[i].key);
	free(p->items);
	free(p->folder);
	store_freep(&p->from);
	store_freep(&p->to);
	free(p);
	*push = NULL;
}

int cache_push_open(const struct agent_config *config, struct cache_push **ret, struct err **err)
{
	const struct order_compile *compile = &config->order->compile;
	AUTO(cache_push_freep) struct cache_push *push = mem_zero(1, sizeof *push);

	push->kind = compile_kind_find(compile->kind);
	push->folder = agent_config_cache(config);
	if (store_open(push->folder, &push->from, err) < 0 ||
	    store_open(compile->cache, &push->to, err) < 0)
		return -1;
	*ret = TAKE(push);
	return 0;
}

/* Returns the item of that key, created if absent; items stay sorted. */
static struct item *item_of(struct cache_push *push, const char *key, unsigned role)
{
	size_t low = 0, high = push->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(push->items[middle].key, key);

		if (order == 0)
			return &push->items[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	push->items = mem_room(push->items, push->count, sizeof *push->items);
	memmove(&push->items[low + 1], &push->items[low],
		(push->count - low) * sizeof *push->items);
	push->count++;
	push->items[low] = (struct item){ .key = mem_copy(key), .role = role };
	return &push->items[low];
}

static bool is_entry(const struct cache_push *push, const char *key, unsigned *ret_role)
{
	struct entry_object object;

	if (strncmp(key, LOCK_PREFIX, strlen(LOCK_PREFIX)) == 0 ||
	    !push->kind->object(key, &object) || object.role & ROLE_LOCK)
		return false;
	*ret_role = object.role;
	return true;
}

static int note_there(void *arg, const struct store_object *object, struct err **err)
{
	struct cache_push *push = arg;
	unsigned role;

	(void)err;
	if (is_entry(push, object->key, &role))
		item_of(push, object->key, role)->place = THERE;
	return 0;
}

static int note_file(void *arg, const struct store_object *object, struct err **err)
{
	struct cache_push *push = arg;
	struct item *item;
	unsigned role;

	(void)err;
	if (!is_entry(push, object->key, &role))
		return 0;
	item = item_of(push, object->key, role);
	if (item->place == THERE)
		return 0;
	if (item->place == NEW || strcmp(item->tag, object->tag) != 0)
		item->place = SETTLING;
	else if (item->place == SETTLING)
		item->place = SETTLED;
	memcpy(item->tag, object->tag, sizeof item->tag);
	return 0;
}

/* Returns 1 if the item is in the cache now, 0 if it stays behind, -1 with an error. */
static int upload_item(struct cache_push *push, struct item *item, struct err **err)
{
	AUTO(auto_free) char *path = fs_join(push->folder, item->key);
	enum entry_state state = ENTRY_DONE;
	const char *why = NULL;

	if (item->role == ROLE_COMPILED &&
	    content_inspect(push->from, push->kind, item->key, &state, &why, err) < 0)
		return -1;
	if (state != ENTRY_DONE)
		return 0;
	if (store_upload(push->to, path, item->key, err) < 0)
		return -1;
	push->brought++;
	return 1;
}

/* Uploads the settled markers, or all settled items that are not markers. */
static int upload_all(struct cache_push *push, bool markers, bool at_end, cache_push_fn fn,
		      void *arg, struct err **err)
{
	for (size_t i = 0; i < push->count; i++) {
		struct item *item = &push->items[i];
		int there;

		if (item->place != SETTLED && !(at_end && item->place == SETTLING))
			continue;
		if (((item->role & ROLE_MARKER) != 0) != markers)
			continue;
		if (fn)
			fn(arg);
		there = upload_item(push, item, err);
		if (there < 0)
			return -1;
		item->place = there ? THERE : CUT;
	}
	return 0;
}

int cache_push_scan(struct cache_push *push, bool at_end, cache_push_fn fn, void *arg,
		    struct err **err)
{
	if (!push->listed && store_list(push->to, "", note_there, push, err) < 0)
		return err_wrap(err, "cannot read the compile cache");
	push->listed = true;
	if (store_list(push->from, "", note_file, push, err) < 0)
		return -1;
	if (upload_all(push, false, at_end, fn, arg, err) < 0 ||
	    upload_all(push, true, at_end, fn, arg, err) < 0)
		return err_wrap(err, "cannot upload the compiled graphs to the cache");
	return 0;
}

json_t *cache_push_news(struct cache_push *push, bool at_end, cache_push_fn fn, void *arg)
{
	AUTO(err_freep) struct err *why = NULL;
	json_int_t cut = 0;
	json_t *news;

	if (cache_push_scan(push, at_end, fn, arg, &why) < 0) {
		AUTO(auto_free) char *text = err_format(why);

		news = json_object();
		js_put_str(news, "news", "unpushed");
		js_put_str(news, "why", text);
		return news;
	}
	if (!at_end)
		return NULL;
	/* Cut entries stayed behind. */
	for (size_t i = 0; i < push->count; i++)
		cut += push->items[i].place == CUT;
	news = json_object();
	js_put_str(news, "news", "pushed");
	js_put(news, "brought", json_integer((json_int_t)push->brought));
	js_put(news, "cut", json_integer(cut));
	return news;
}
