/*
 * Compile manifests, which lie in a cache that others write to. The input is a cache as
 * cache_text.h has it, then behind each FUZZ_PART a lock. The graph key of a lock is
 * a digest that no fuzzer hits, so each is put in its place under the key that its
 * ingredients have; as it came it is read too.
 */
#include "tests/fuzz/fuzz.h"

#include "jobs/cache/gc.h"
#include "jobs/cache/manifest/compile_manifest_file.h"
#include "jobs/cache/manifest/key_claim.h"
#include "jobs/cache/verdict/listing.h"
#include "tests/fuzz/cache_text.h"

#define SOME_KEY "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

static void put(struct store *store, const char *graph_key, const char *text, size_t len)
{
	AUTO(auto_free) char *object = compile_manifest_object_key(graph_key);
	AUTO(err_freep) struct err *err = NULL;

	MUST(store_put(store, object, text, len, &err) == 0);
}

/* 1 a good lock, 0 none that can be trusted, and then it is said why. */
static int load(struct store *store, const char *graph_key, struct compile_manifest **ret)
{
	AUTO(auto_free) char *damage = NULL;
	AUTO(err_freep) struct err *err = NULL;
	int found = compile_manifest_load(store, graph_key, ret, &damage, &err);

	MUST(found == 0 || found == 1);
	MUST((found == 1) == (damage == NULL));
	for (const char *at = damage; at && *at; at++)
		MUST((unsigned char)*at >= ' ' && *at != 0x7f);
	return found;
}

/* The lock goes in as it came: it may say what it likes. */
static void load_as_it_came(struct span text)
{
	struct memory_store *store = memory_store_new();
	struct store *base = &store->base;
	AUTO(compile_manifest_freep) struct compile_manifest *lock = NULL;
	AUTO(auto_free) char *copy = span_copy(text);

	put(base, SOME_KEY, copy, text.len);
	load(base, SOME_KEY, &lock);
	store_freep(&base);
}

static void put_in_place(struct store *store, struct span text)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *line = NULL;
	json_auto_t *document = NULL;
	char graph_key[SHA256_HEX];

	load_as_it_came(text);
	if (js_parse(text.text, text.len, "it", &document, &err) < 0 ||
	    !json_is_object(json_object_get(document, "ingredients")))
		return;
	graph_key_of(json_object_get(document, "ingredients"), graph_key);
	js_put_str(document, "graph_key", graph_key);
	line = js_line(document);
	put(store, graph_key, line, strlen(line));
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_graph(const struct manifest_graph *a, const struct manifest_graph *b)
{
	return same_text(a->key, b->key) && same_text(a->path, b->path) && a->size == b->size &&
	       same_text(a->digest, b->digest) && a->tagged == b->tagged && a->late == b->late &&
	       same_text(a->proved_by, b->proved_by) && a->proved_at.ms == b->proved_at.ms;
}

/* Member by member: what the writer left out would be missing in both of its texts. */
static bool same_lock(const struct compile_manifest *a, const struct compile_manifest *b)
{
	bool same = same_text(a->graph_key, b->graph_key) && same_text(a->name, b->name) &&
		    a->kind == b->kind && a->created.ms == b->created.ms &&
		    same_text(a->run, b->run) && a->count == b->count;
	AUTO(auto_free) char *compiler = json_dumps(a->compiler, JSON_SORT_KEYS | JSON_COMPACT);
	AUTO(auto_free)
	char *other_compiler = json_dumps(b->compiler, JSON_SORT_KEYS | JSON_COMPACT);
	AUTO(auto_free)
	char *ingredients = json_dumps(a->ingredients, JSON_SORT_KEYS | JSON_COMPACT);
	AUTO(auto_free)
	char *other_ingredients = json_dumps(b->ingredients, JSON_SORT_KEYS | JSON_COMPACT);

	for (size_t i = 0; same && i < a->count; i++)
		same = same_graph(&a->graphs[i], &b->graphs[i]);
	return same && same_text(compiler, other_compiler) &&
	       same_text(ingredients, other_ingredients);
}

/* Written and read back it is the same. */
static void check_round_trip(const struct compile_manifest *lock)
{
	struct memory_store *store = memory_store_new();
	struct store *base = &store->base;
	AUTO(compile_manifest_freep) struct compile_manifest *again = NULL;
	AUTO(err_freep) struct err *err = NULL;

	MUST(compile_manifest_file_replace(base, lock, NULL, &err) == 1);
	MUST(load(base, lock->graph_key, &again) == 1);
	MUST(same_lock(lock, again));
	store_freep(&base);
}

/* The members of a good lock may be believed. */
static void check_content(const struct compile_manifest *lock)
{
	json_auto_t *diff = graph_key_ingredients_diff(lock->ingredients, lock->ingredients);
	json_auto_t *hidden = json_deep_copy(lock->ingredients);
	char graph_key[SHA256_HEX];

	graph_key_of(lock->ingredients, graph_key);
	MUST(strcmp(graph_key, lock->graph_key) == 0);
	MUST(lock->count > 0 && json_array_size(diff) == 0);
	graph_key_ingredients_hide_secrets(hidden);
	MUST(json_equal(hidden, lock->ingredients));
	for (size_t i = 0; i < lock->count; i++) {
		const struct manifest_graph *graph = &lock->graphs[i];
		struct entry_object object;

		MUST(lock->kind->object(graph->path, &object) && object.role == ROLE_COMPILED);
		MUST(strlen(graph->key) == object.graph.len &&
		     strncmp(graph->path, graph->key, object.graph.len) == 0);
		MUST(graph->digest[0] && strlen(graph->digest) < STORE_TAG);
	}
}

/* True if the pinned object lies there, and the compiler takes it. */
static bool holds(struct memory_store *store, const struct compile_kind *kind,
		  const struct manifest_graph *graph)
{
	const struct memory_object *object = memory_store_find(store, graph->path);
	AUTO(sb_release) struct sb hold = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;
	struct listing_graph listed = { 0 };

	if (!object || object->size != graph->size || !graph->tagged ||
	    strcmp(object->tag, graph->digest) != 0)
		return false;
	MUST(listing_find(&store->base, kind, graph->key, &listed, &hold, &err) == 1);
	return listed.state == ENTRY_DONE || !kind->prefix;
}

static void check_report(struct memory_store *store, const struct compile_manifest *lock)
{
	AUTO(compile_manifest_report_clear) struct lock_report report = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *rows = NULL;
	bool all = true;

	for (size_t i = 0; i < lock->count; i++)
		all = all && holds(store, lock->kind, &lock->graphs[i]);
	MUST(compile_manifest_check(&store->base, lock, &report, &err) == 0);
	MUST(report.warm == all);
	MUST(report.warm == (report.count == 0 && report.behind == 0));
	MUST(report.count <= lock->count && report.behind <= lock->count);
	for (size_t i = 0; i < report.count; i++) {
		MUST(report.problems[i].graph < lock->count);
		MUST(report.problems[i].fault != LOCK_SAME);
	}
	rows = compile_manifest_problems_json(lock, &report);
	MUST(json_array_size(rows) == report.count);
}

static int drop_row(void *arg, json_t *row, struct err **err)
{
	(void)arg;
	(void)err;
	MUST(js_str(row, "state") || js_str(row, "action"));
	json_decref(row);
	return 0;
}

static void check_sums(struct memory_store *store, const struct compile_manifest_set *set)
{
	const struct cache_check_options options = { .all = true };
	AUTO(err_freep) struct err *err = NULL;
	struct cache_check sums;
	size_t files = 0;

	for (size_t i = 0; i < store->count; i++)
		files += strncmp(store->objects[i].key, LOCK_PREFIX, strlen(LOCK_PREFIX)) == 0 &&
			 !key_claim_is(store->objects[i].key);
	MUST(set->count + json_array_size(set->damaged) == files);
	MUST(cache_check(&store->base, &options, drop_row, NULL, &sums, &err) == 0);
	MUST(sums.locks == (int64_t)set->count && sums.behind <= sums.locks);
	MUST(sums.damaged_locks == (int64_t)json_array_size(set->damaged));
	MUST(sums.ok + sums.missing + sums.truncated + sums.changed == sums.graphs);
	MUST(sums.others_bad <= sums.others);
}

/* The nearest lock to its own ingredients is the lock itself, or one that is as near. */
static void check_nearest(struct store *store, const struct compile_manifest *lock)
{
	AUTO(compile_manifest_freep) struct compile_manifest *nearest = NULL;
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *diff = NULL;

	MUST(compile_manifest_find_nearest(store, lock->name, lock->ingredients, &nearest, &err) ==
	     1);
	diff = graph_key_ingredients_diff(nearest->ingredients, lock->ingredients);
	MUST(strcmp(nearest->name, lock->name) == 0 && json_array_size(diff) == 0);
}

/* A lock that was brought up to date is behind no other, and a second time there is
 * nothing to bring. */
static void check_refresh(struct store *store, const char *graph_key)
{
	AUTO(compile_manifest_freep) struct compile_manifest *lock = NULL;
	AUTO(compile_manifest_report_clear) struct lock_report report = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *first = NULL;
	json_auto_t *second = NULL;
	int64_t taken = -1;

	MUST(compile_manifest_refresh(store, graph_key, &taken, &err) == 0 && taken >= 0);
	MUST(load(store, graph_key, &lock) == 1);
	check_content(lock);
	check_round_trip(lock);
	MUST(compile_manifest_check(store, lock, &report, &err) == 0 && report.behind == 0);
	MUST(compile_manifest_refresh_others(store, lock, &first, &err) == 0);
	MUST(compile_manifest_refresh_others(store, lock, &second, &err) == 0);
	MUST(json_array_size(second) == 0);
}

/* Paths that locks name and that are there: all, or those that are as one of them says. */
static char **named_paths(struct memory_store *store, const struct compile_manifest_set *set,
			  bool only_good)
{
	size_t count = 0, room = 1;
	char **paths;

	for (size_t i = 0; i < set->count; i++)
		room += set->locks[i]->count;
	paths = mem_zero(room, sizeof *paths);
	for (size_t i = 0; i < set->count; i++)
		for (size_t n = 0; n < set->locks[i]->count; n++) {
			const struct manifest_graph *graph = &set->locks[i]->graphs[n];

			if (memory_store_find(store, graph->path) &&
			    (!only_good || holds(store, set->locks[i]->kind, graph)))
				paths[count++] = mem_copy(graph->path);
		}
	return paths;
}

static void check_still_there(const struct memory_store *store, char *const *paths)
{
	for (size_t i = 0; paths[i]; i++)
		MUST(memory_store_find(store, paths[i]));
}

/* Every graph as a problem: so an old report may look when others have mended all. */
static struct lock_report old_report(const struct compile_manifest *lock)
{
	struct lock_report report = { .count = lock->count };

	report.problems = mem_zero(lock->count, sizeof *report.problems);
	for (size_t i = 0; i < lock->count; i++)
		report.problems[i] =
			(struct lock_problem){ .graph = i, .fault = LOCK_CHANGED, .size = 1 };
	return report;
}

/* Repairing takes nothing away that any lock pins as it is, whatever was seen before. */
static void check_repair(struct memory_store *store, const struct compile_manifest_set *set)
{
	AUTO(auto_strv) char **good = named_paths(store, set, true);

	for (size_t i = 0; i < set->count; i++) {
		AUTO(compile_manifest_report_clear)
		struct lock_report report = old_report(set->locks[i]);
		AUTO(err_freep) struct err *err = NULL;
		json_auto_t *removed = NULL;

		MUST(compile_manifest_repair(&store->base, set->locks[i], &report, &removed,
					     &err) == 0);
		MUST(json_array_size(removed) <= report.count);
	}
	check_still_there(store, good);
}

/* Locks of either sort: of stoker, and of a compiler that is at work. */
static size_t count_locks(const struct memory_store *store)
{
	const struct compile_kind *neuron = compile_kind_find("neuron");
	size_t count = 0;

	for (size_t i = 0; i < store->count; i++) {
		const char *key = store->objects[i].key;
		struct entry_object object;

		count += strncmp(key, LOCK_PREFIX, strlen(LOCK_PREFIX)) == 0 ||
			 (neuron->object(key, &object) && (object.role & ROLE_LOCK));
	}
	return count;
}

/* Collecting takes nothing away that any lock names, however it is there; and nothing
 * at all if there is a lock that nobody can read. */
static void check_gc(struct memory_store *store, const struct compile_manifest_set *set)
{
	const struct gc_options options = { .now.ms = INT64_C(1) << 40, .remove = true };
	AUTO(auto_strv) char **named = named_paths(store, set, false);
	AUTO(err_freep) struct err *err = NULL;
	struct gc_sum sum;
	size_t before = store->count, locked = count_locks(store);
	int done = cache_gc(&store->base, &options, drop_row, NULL, &sum, &err);

	MUST((done == 0) == (json_array_size(set->damaged) == 0));
	MUST(done == 0 || store->count == before);
	MUST(count_locks(store) == locked);
	check_still_there(store, named);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memory_store *store = memory_store_new();
	struct store *base = &store->base;
	AUTO(compile_manifest_set_clear) struct compile_manifest_set set = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	struct span rest = { (const char *)data, size }, part;

	if (span_next(&rest, FUZZ_PART, &part))
		cache_fill(store, part);
	while (span_next(&rest, FUZZ_PART, &part))
		put_in_place(base, part);
	MUST(compile_manifest_set_load(base, &set, &err) == 0);
	check_sums(store, &set);
	for (size_t i = 0; i < set.count; i++) {
		check_content(set.locks[i]);
		check_round_trip(set.locks[i]);
		check_report(store, set.locks[i]);
		check_nearest(base, set.locks[i]);
	}
	check_repair(store, &set);
	for (size_t i = 0; i < set.count; i++)
		check_refresh(base, set.locks[i]->graph_key);
	compile_manifest_set_clear(&set);
	MUST(compile_manifest_set_load(base, &set, &err) == 0);
	check_gc(store, &set);
	store_freep(&base);
	return 0;
}
