/* Tries the rights and conditions that a run needs in its buckets: see preflight.h. */
#include "jobs/run/plan/preflight.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/hash.h"
#include "jobs/run/plan/conditions.h"
#include "jobs/store/store_right.h"

/* A probe takes minutes at worst, and clocks that are more than 15 minutes apart get no request
 * signed: anything older was left by a process that was killed. */
#define LEFTOVER_MS   ((int64_t)60 * 60 * 1000)
#define LEFTOVERS_MAX 100 /* at a time */

void preflight_release(struct preflight *probe)
{
	for (size_t i = 0; i < probe->count; i++)
		free(probe->buckets[i]);
	probe->count = 0;
}

/* --- rights --- */

struct leftovers {
	char **keys;
	size_t count;
};

static int add_leftover(void *arg, const struct store_object *object, struct err **err)
{
	struct leftovers *found = arg;

	(void)err;
	if (object->modified.ms > 0 && clock_utc_now().ms - object->modified.ms > LEFTOVER_MS)
		auto_strv_add(&found->keys, &found->count, object->key);
	return found->count == LEFTOVERS_MAX;
}

static int try_rights(struct store *store, const char *what, struct err **err)
{
	AUTO(auto_free) char *key = NULL;
	AUTO(auto_strv) char **old = NULL;
	struct leftovers found = { 0 };
	char chance[HASH_NAME_HEX];
	int result;

	hash_random_hex(8, chance);
	key = mem_format(PREFLIGHT_KEY "%s", chance);
	result = store_right_list(store, PREFLIGHT_KEY, add_leftover, &found, what, err);
	old = found.keys;
	for (enum store_right right = STORE_RIGHT_PUT; result == 0 && right < STORE_RIGHT_DELETE;
	     right++)
		result = store_right_try(store, right, key, what, err);
	for (size_t i = 0; result == 0 && i < found.count; i++)
		result = store_right_try(store, STORE_RIGHT_DELETE, old[i], what, err);
	return result == 0 ? store_right_try(store, STORE_RIGHT_DELETE, key, what, err) : -1;
}

/* --- conditions --- */

static bool is_tried(const struct preflight *probe, const char *bucket)
{
	for (size_t i = 0; i < probe->count; i++)
		if (strcmp(probe->buckets[i], bucket) == 0)
			return true;
	return false;
}

static int try_conditions(struct preflight *probe, struct store *store, const char *what,
			  struct err **err)
{
	AUTO(auto_free) char *bucket = conditions_bucket(store_url(store));

	if (store_directory(store) || probe->count == PREFLIGHT_PLACES || is_tried(probe, bucket))
		return 0;
	if (conditions_try(store, what, err) < 0)
		return -1;
	probe->buckets[probe->count++] = TAKE(bucket);
	return 0;
}

/* --- places --- */

static bool is_remote(const char *url)
{
	return url && url[0] != '/';
}

/* True if an earlier place has the same URL. */
static bool is_repeated(const struct preflight_place *places, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (places[i].url && strcmp(places[i].url, places[at].url) == 0)
			return true;
	return false;
}

void preflight_find(const json_t *plan, const char *state,
		    struct preflight_place ret[PREFLIGHT_PLACES])
{
	const struct preflight_place places[PREFLIGHT_PLACES] = {
		{ "state", state, NULL },
		{ "workspace", js_str(plan, "workspace"), "workspace" },
		{ "compile cache", js_str(json_object_get(plan, "compile"), "cache"),
		  "compile.cache_url" },
		{ "place for checkpoints", js_str(json_object_get(plan, "checkpoint"), "url"),
		  "checkpoint.url" },
	};

	for (size_t i = 0; i < PREFLIGHT_PLACES; i++) {
		ret[i] = places[i];
		if (!is_remote(ret[i].url) || is_repeated(ret, i))
			ret[i].url = NULL;
	}
}

static int try_place(struct preflight *probe, const struct preflight_place *place, bool with_rights,
		     struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;

	if (store_open(place->url, &store, err) < 0)
		return -1;
	if (with_rights && !store_directory(store) && try_rights(store, place->what, err) < 0)
		return -1;
	return try_conditions(probe, store, place->what, err);
}

static int try_places(struct preflight *probe, const struct preflight_place *places,
		      bool with_rights, struct err **err)
{
	for (size_t i = 0; i < PREFLIGHT_PLACES; i++)
		if (places[i].url && try_place(probe, &places[i], with_rights, err) < 0)
			return -1;
	return 0;
}

int preflight_state(struct preflight *probe, const struct journal *journal, struct err **err)
{
	struct store *store = journal_store(journal);

	return store ? try_conditions(probe, store, "state", err) : 0;
}

int preflight_conditions(struct preflight *probe, const json_t *plan, struct err **err)
{
	struct preflight_place places[PREFLIGHT_PLACES];

	preflight_find(plan, NULL, places);
	return try_places(probe, places, false, err);
}

int preflight_places(struct preflight *probe, const json_t *plan, const struct journal *journal,
		     struct err **err)
{
	struct preflight_place places[PREFLIGHT_PLACES];

	preflight_find(plan, journal && journal_is_remote(journal) ? journal_url(journal) : NULL,
		       places);
	return try_places(probe, places, true, err);
}
