/* Cache of a remote workspace: see workspace_cache.h. */
#include "jobs/engine/workspace_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/store/order.h"

/* Object as last read from the store. */
struct workspace_cache_seen {
	char *key, *text;
	size_t len;
	int found;
	struct err *why; /* if `found` is -1 */
	struct mono at;
};

/* A piece of a node's log. */
struct piece {
	char *prefix;
	int node;
	uint64_t from; /* offset of the piece in the log */
	struct sb text;
	struct mono at; /* when the store last had nothing after it; ms 0: not asked */
	struct piece_time {
		uint64_t from, to;
		struct utc modified;
	} * times; /* of all pieces, as they were listed last */
	size_t time_count;
	struct mono listed_at;
};

struct workspace_cache {
	struct store *store;
	struct workspace_cache_seen *list;
	size_t count;
	struct piece *pieces; /* newest piece of each node's log */
	size_t piece_count;
};

struct workspace_cache *workspace_cache_new(struct store *store)
{
	struct workspace_cache *cache = mem_zero(1, sizeof *cache);

	cache->store = store;
	return cache;
}

static void seen_release(struct workspace_cache_seen *seen)
{
	free(seen->key);
	free(seen->text);
	err_free(seen->why);
}

void workspace_cache_freep(struct workspace_cache **cache)
{
	struct workspace_cache *f = *cache;

	if (!f)
		return;
	for (size_t i = 0; i < f->count; i++)
		seen_release(&f->list[i]);
	for (size_t i = 0; i < f->piece_count; i++) {
		free(f->pieces[i].prefix);
		free(f->pieces[i].times);
		sb_release(&f->pieces[i].text);
	}
	free(f->list);
	free(f->pieces);
	free(f);
	*cache = NULL;
}

/* ---- objects ---- */

static struct workspace_cache_seen *find_seen(struct workspace_cache *cache, const char *key)
{
	for (size_t i = 0; i < cache->count; i++)
		if (strcmp(cache->list[i].key, key) == 0)
			return &cache->list[i];
	return NULL;
}

static void fetch(struct workspace_cache *cache, struct workspace_cache_seen *seen, size_t max)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(max);

	err_freep(&seen->why);
	seen->found = store_get(cache->store, seen->key, max, &text, NULL, &seen->why);
	seen->at = clock_mono_now();
	free(seen->text);
	seen->len = text.len;
	seen->text = mem_copy_n(text.text ? text.text : "", text.len);
}

int workspace_cache_get(struct workspace_cache *cache, const char *key, size_t max, struct sb *ret,
			struct err **err)
{
	struct workspace_cache_seen *seen = find_seen(cache, key);

	if (!seen) {
		cache->list = mem_grow(cache->list, cache->count + 1, sizeof *cache->list);
		seen = &cache->list[cache->count++];
		*seen = (struct workspace_cache_seen){ .key = mem_copy(key) };
	}
	if (!seen->text || clock_mono_now().ms - seen->at.ms >= REMOTE_MS)
		fetch(cache, seen, max);
	if (seen->found < 0) {
		err_set(err, seen->why->code, "%s", seen->why->message);
		return seen->why->hint ? err_hint(err, "%s", seen->why->hint) : -1;
	}
	sb_add(ret, seen->text, seen->len);
	return seen->found;
}

int workspace_cache_json(struct workspace_cache *cache, const char *key, size_t max,
			 const char *what, json_t **ret, struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(max);
	int there = workspace_cache_get(cache, key, max, &text, err);

	*ret = NULL;
	if (there <= 0)
		return there;
	return js_parse(text.text, text.len, what, ret, err) < 0 ? -1 : 1;
}

void workspace_cache_forget(struct workspace_cache *cache, const char *prefix)
{
	for (size_t i = cache->count; i-- > 0;)
		if (strncmp(cache->list[i].key, prefix, strlen(prefix)) == 0) {
			seen_release(&cache->list[i]);
			cache->list[i] = cache->list[--cache->count];
		}
	for (size_t i = 0; i < cache->piece_count; i++)
		if (text_starts(cache->pieces[i].prefix, prefix))
			cache->pieces[i].at.ms = 0;
}

/* ---- signs of life ---- */

struct newest {
	const char *prefix;
	struct utc at;
};

static int add_newest(void *arg, const struct store_object *object, struct err **err)
{
	struct newest *newest = arg;
	const char *name = object->key + strlen(newest->prefix);

	(void)err;
	if ((text_starts(name, "node-") || strcmp(name, ENGINE_FILE) == 0 ||
	     strcmp(name, ORDER_FILE) == 0) &&
	    object->modified.ms > newest->at.ms)
		newest->at = object->modified;
	return 0;
}

int workspace_cache_sign(struct workspace_cache *cache, const char *prefix,
			 struct workspace_cache_sign *sign, struct err **err)
{
	struct newest newest = { .prefix = prefix };

	if (sign->at.ms > 0 && clock_mono_now().ms - sign->at.ms < REMOTE_SIGN_MS)
		return 0;
	if (store_list(cache->store, prefix, add_newest, &newest, err) < 0)
		return -1;
	sign->at = clock_mono_now();
	if (sign->since.ms == 0 || newest.at.ms != sign->last.ms)
		sign->since = sign->at;
	sign->last = newest.at;
	return 0;
}

/* ---- logs ---- */

struct place_of_offset {
	const char *prefix; /* key prefix of the pieces */
	uint64_t offset, from;
};

static int on_piece(void *arg, const struct store_object *object, struct err **err)
{
	struct place_of_offset *place = arg;
	uint64_t from = strtoull(object->key + strlen(place->prefix), NULL, 10);

	(void)err;
	if (from > place->offset)
		return 1; /* keys are listed in order */
	place->from = from;
	return 0;
}

static char *pieces_of(const char *prefix, int node)
{
	return mem_format("%snode-%d/" LOG_FILE "/", prefix, node);
}

/* Returns the cached piece of this node's log, new if absent; valid until the next call. */
static struct piece *find_piece(struct workspace_cache *cache, const char *prefix, int node)
{
	struct piece *piece;

	for (size_t i = 0; i < cache->piece_count; i++)
		if (cache->pieces[i].node == node && strcmp(cache->pieces[i].prefix, prefix) == 0)
			return &cache->pieces[i];
	cache->pieces = mem_grow(cache->pieces, cache->piece_count + 1, sizeof *cache->pieces);
	piece = &cache->pieces[cache->piece_count++];
	*piece = (struct piece){ .prefix = mem_copy(prefix), .node = node };
	piece->text = SB_INIT_MAX(LOG_PIECE_MAX);
	return piece;
}

/* Moves to the piece that holds this offset. */
static int go_to(struct workspace_cache *cache, struct piece *piece, uint64_t offset,
		 struct err **err)
{
	AUTO(auto_free) char *pieces = pieces_of(piece->prefix, piece->node);
	struct place_of_offset place = { .prefix = pieces, .offset = offset };

	if (offset > 0 && store_list(cache->store, pieces, on_piece, &place, err) < 0)
		return -1;
	piece->from = place.from;
	piece->at.ms = 0;
	sb_clear(&piece->text);
	return 0;
}

/* Reads what follows the bytes of `piece`: 1, 0 nothing yet, -1. */
static int go_on(struct workspace_cache *cache, struct piece *piece, struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(LOG_PIECE_MAX);
	bool sealed = piece->text.len >= LOG_SEALED;
	uint64_t from = piece->from + (sealed ? piece->text.len : 0);
	AUTO(auto_free) char *pieces = pieces_of(piece->prefix, piece->node);
	AUTO(auto_free) char *key = mem_format("%s" LOG_OFFSET, pieces, (unsigned long long)from);
	int found;

	if (piece->at.ms > 0 && clock_mono_now().ms - piece->at.ms < REMOTE_MS)
		return 0;
	found = store_get(cache->store, key, LOG_PIECE_MAX, &text, NULL, err);
	if (found < 0)
		return -1;
	if (found == 0 || (!sealed && text.len <= piece->text.len)) {
		piece->at = clock_mono_now();
		return 0;
	}
	piece->from = from;
	piece->at.ms = 0;
	sb_clear(&piece->text);
	sb_add(&piece->text, text.text, text.len);
	return 1;
}

int workspace_cache_logs(struct workspace_cache *cache, const char *prefix, int node,
			 uint64_t *offset, size_t max, struct sb *ret, struct err **err)
{
	struct piece *piece = find_piece(cache, prefix, node);

	if ((*offset < piece->from || *offset > piece->from + piece->text.len) &&
	    go_to(cache, piece, *offset, err) < 0)
		return -1;
	while (max > 0) {
		size_t before = ret->len, skip, len;
		int more = 1;

		if (*offset >= piece->from + piece->text.len)
			more = go_on(cache, piece, err);
		if (more <= 0)
			return more;
		if (*offset < piece->from || *offset >= piece->from + piece->text.len)
			return 0; /* rewritten meanwhile, and shorter */
		skip = (size_t)(*offset - piece->from);
		len = piece->text.len - skip;
		sb_add(ret, piece->text.text + skip, len < max ? len : max);
		/* Bytes that do not fit into `ret` are read by the next call. */
		len = ret->len - before;
		*offset += len;
		max -= len;
		if (len == 0)
			break;
	}
	return 0;
}

static int add_size(void *arg, const struct store_object *object, struct err **err)
{
	struct place_of_offset *place = arg;

	(void)err;
	place->from = strtoull(object->key + strlen(place->prefix), NULL, 10) + object->size;
	return 0;
}

int workspace_cache_log_size(struct workspace_cache *cache, const char *prefix, int node,
			     uint64_t *ret, struct err **err)
{
	AUTO(auto_free) char *pieces = pieces_of(prefix, node);
	struct place_of_offset place = { .prefix = pieces };

	if (store_list(cache->store, pieces, add_size, &place, err) < 0)
		return -1;
	*ret = place.from;
	return 1;
}

struct piece_list {
	const char *prefix;
	struct piece *piece;
};

static int add_time(void *arg, const struct store_object *object, struct err **err)
{
	struct piece_list *list = arg;
	struct piece *piece = list->piece;
	uint64_t from = strtoull(object->key + strlen(list->prefix), NULL, 10);

	(void)err;
	piece->times = mem_grow(piece->times, piece->time_count + 1, sizeof *piece->times);
	piece->times[piece->time_count++] =
		(struct piece_time){ from, from + object->size, object->modified };
	return 0;
}

struct utc workspace_cache_log_written(struct workspace_cache *cache, const char *prefix, int node,
				       uint64_t offset)
{
	struct piece *piece = find_piece(cache, prefix, node);
	AUTO(auto_free) char *pieces = pieces_of(prefix, node);
	struct piece_list list = { pieces, piece };
	AUTO(err_freep) struct err *unknown = NULL;

	if ((piece->time_count == 0 || offset >= piece->times[piece->time_count - 1].to) &&
	    (piece->listed_at.ms == 0 || clock_mono_now().ms - piece->listed_at.ms >= REMOTE_MS)) {
		piece->time_count = 0;
		piece->listed_at = clock_mono_now();
		(void)!store_list(cache->store, pieces, add_time, &list, &unknown);
	}
	for (size_t i = piece->time_count; i-- > 0;)
		if (piece->times[i].from <= offset)
			return piece->times[i].modified;
	return (struct utc){ 0 };
}
