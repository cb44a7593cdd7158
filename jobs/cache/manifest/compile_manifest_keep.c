/* Writes manifests, after precompiling and after training: see compile_manifest.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/cache/graphs/fingerprint.h"
#include "jobs/cache/manifest/compile_manifest_file.h"
#include "jobs/cache/verdict/content.h"
#include "jobs/cache/verdict/graph_lookup.h"
#include "jobs/cache/verdict/listing.h"

static void graph_clear(struct manifest_graph *graph)
{
	free(graph->key);
	free(graph->path);
	free(graph->proved_by);
	*graph = (struct manifest_graph){ 0 };
}

static struct manifest_graph *add_graph(struct compile_manifest *lock)
{
	lock->graphs = mem_grow(lock->graphs, lock->count + 1, sizeof *lock->graphs);
	lock->graphs[lock->count] = (struct manifest_graph){ 0 };
	return &lock->graphs[lock->count++];
}

/* Finds a graph by its key or, if logs did not tell its place, by the end of the key. */
static struct manifest_graph *find_graph(const struct compile_manifest *lock, const char *key)
{
	size_t len = strlen(key);

	for (size_t i = 0; i < lock->count; i++) {
		const char *own = lock->graphs[i].key;
		size_t own_len = strlen(own);

		if (strcmp(own, key) == 0 ||
		    (own_len > len && own[own_len - len - 1] == '/' && !strchr(key, '/') &&
		     strcmp(own + own_len - len, key) == 0))
			return &lock->graphs[i];
	}
	return NULL;
}

/* Pins a listed graph. Returns 1 and the pin, 0 if the graph is not done, -1 with an error. */
static int pin_listed(struct store *store, const struct compile_kind *kind,
		      const struct listing_graph *listed, struct manifest_graph *ret,
		      struct err **err)
{
	struct content content = { .size = listed->size, .tagged = true };
	enum entry_state state;
	const char *why;
	int found;

	if (listed->state != ENTRY_DONE)
		return 0;
	found = content_inspect(store, kind, listed->path, &state, &why, err);
	if (found < 0 || (found > 0 && state != ENTRY_DONE))
		return found < 0 ? -1 : 0;
	snprintf(content.digest, sizeof content.digest, "%s", listed->tag);
	/* In a bucket the tag of the listing suffices. */
	if (store_directory(store) || !*listed->tag) {
		found = content_digest(store, listed->path, &content, err);
		if (found <= 0)
			return found;
	}
	*ret = (struct manifest_graph){
		.key = mem_copy(listed->key),
		.path = mem_copy(listed->path),
		.size = content.size,
		.tagged = content.tagged,
	};
	memcpy(ret->digest, content.digest, sizeof ret->digest);
	return 1;
}

/* The same for the graph with this key as it is in the cache now; its pin has the key with its
 * place, even if `key` lacks it. */
static int pin(struct store *store, const struct compile_kind *kind, const char *key,
	       struct manifest_graph *ret, struct err **err)
{
	AUTO(sb_release) struct sb hold = SB_INIT;
	struct listing_graph listed = { 0 };
	int found = listing_find(store, kind, key, &listed, &hold, err);

	return found > 0 ? pin_listed(store, kind, &listed, ret, err) : found;
}

/* Keeps the late graphs of the manifest that is about to be replaced, if they still match; none if
 * their compiler is known to be another one. */
static int keep_late(const struct lock_facts *facts, const struct compile_manifest *before,
		     struct compile_manifest *lock, struct err **err)
{
	AUTO(auto_free) char *unknown = NULL;
	json_auto_t *changed = fingerprint_compare(before->compiler, facts->compiler, &unknown);

	if (json_array_size(changed))
		return 0;
	for (size_t i = 0; i < before->count; i++) {
		const struct manifest_graph *old = &before->graphs[i];
		enum lock_fault fault;
		struct manifest_graph *kept;
		uint64_t size;

		if (!old->late || find_graph(lock, old->key))
			continue;
		if (pause_call(&facts->pause, err) < 0 ||
		    compile_manifest_check_graph(facts->store, old, &fault, &size, err) < 0)
			return -1;
		if (fault != LOCK_SAME)
			continue;
		kept = add_graph(lock);
		*kept = *old;
		kept->key = mem_copy(old->key);
		kept->path = mem_copy(old->path);
		kept->proved_by = old->proved_by ? mem_copy(old->proved_by) : NULL;
	}
	return 0;
}

static struct compile_manifest *lock_of(const struct lock_facts *facts)
{
	struct compile_manifest *lock = mem_zero(1, sizeof *lock);

	lock->kind = facts->kind;
	lock->name = mem_copy(facts->name);
	lock->run = mem_copy(facts->run);
	lock->image = facts->image ? mem_copy(facts->image) : NULL;
	lock->created = facts->now;
	lock->compiler = json_deep_copy(facts->compiler);
	lock->ingredients = json_deep_copy(facts->ingredients);
	graph_key_ingredients_hide_secrets(lock->ingredients);
	graph_key_of(lock->ingredients, lock->graph_key);
	return lock;
}

static int pin_all(const struct lock_facts *facts, const struct graph_tally *tally,
		   struct compile_manifest *lock, struct err **err)
{
	AUTO(graph_lookup_list_release) struct graph_lookup_list list = { 0 };

	if (graph_lookup_list_see(tally, facts->store, lock->kind, &list, err) < 0)
		return -1;
	if (list.count == 0)
		return err_set(err, EXIT_DEFECT, "a compile manifest needs at least one graph");
	for (size_t i = 0; i < list.count; i++) {
		const struct graph_lookup *graph = &list.items[i];
		struct manifest_graph pinned;
		int done;

		if (pause_call(&facts->pause, err) < 0)
			return -1;
		/* A graph not found by the listing may have been logged without its place. */
		done = graph->path
			       ? pin_listed(facts->store, lock->kind, &graph->listed, &pinned, err)
			       : pin(facts->store, lock->kind, graph->key, &pinned, err);
		if (done < 0)
			return -1;
		if (done == 0)
			return err_set(err, EXIT_GATE,
				       "graph '%s' has gone from the cache since it was verified",
				       graph->key);
		*add_graph(lock) = pinned;
	}
	return 0;
}

/* Tries once. Returns 1 if written, 0 if the old manifest has changed, -1 with an error. */
static int try_write(const struct lock_facts *facts, const struct graph_tally *tally,
		     struct compile_manifest **ret, struct err **err)
{
	AUTO(compile_manifest_freep) struct compile_manifest *lock = lock_of(facts);
	AUTO(compile_manifest_freep) struct compile_manifest *before = NULL;
	AUTO(auto_free) char *damage = NULL;
	char tag[STORE_TAG];
	int done = compile_manifest_file_get(facts->store, lock->graph_key, &before, tag, &damage,
					     err);

	if (done < 0 || pin_all(facts, tally, lock, err) < 0 ||
	    (before && keep_late(facts, before, lock, err) < 0))
		return -1;
	if (damage) {
		AUTO(auto_free) char *object = compile_manifest_object_key(lock->graph_key);

		if (store_delete(facts->store, object, err) < 0)
			return -1;
	}
	if (compile_manifest_file_sync(facts->store, lock, &facts->pause, err) < 0)
		return -1;
	done = compile_manifest_file_replace(facts->store, lock, before ? tag : NULL, err);
	if (done > 0)
		*ret = TAKE(lock);
	return done;
}

int compile_manifest_write(const struct lock_facts *facts, const struct graph_tally *tally,
			   struct compile_manifest **ret, json_t **ret_refreshed, struct err **err)
{
	AUTO(compile_manifest_freep) struct compile_manifest *lock = NULL;
	int done = 0;

	for (int i = 0; done == 0 && i < LOCK_TRIES; i++)
		done = try_write(facts, tally, &lock, err);
	if (done == 0)
		err_set(err, EXIT_UNREACHABLE, "other processes keep changing it");
	if (done <= 0 ||
	    compile_manifest_refresh_others(facts->store, lock, ret_refreshed, err) < 0)
		return err_wrap(err, "cannot write the compile manifest");
	if (ret)
		*ret = TAKE(lock);
	return 0;
}

/* Pins a graph that training had to compile. Returns 1 if pinned, 0 if there is nothing to change,
 * -1 with an error. A graph that was in the manifest already got lost after the cache was
 * checked. */
static int join(const struct lock_facts *facts, struct compile_manifest *lock, const char *key,
		struct err **err)
{
	struct manifest_graph *there = find_graph(lock, key), pinned;
	enum lock_fault fault = LOCK_MISSING;
	bool late = !there || there->late;
	uint64_t size;
	int done;

	if (there && compile_manifest_check_graph(facts->store, there, &fault, &size, err) < 0)
		return -1;
	if (fault == LOCK_SAME)
		return 0;
	done = pin(facts->store, lock->kind, key, &pinned, err);
	if (done <= 0)
		return done;
	pinned.late = late;
	pinned.proved_by = mem_copy(facts->run);
	pinned.proved_at = facts->now;
	if (there)
		graph_clear(there);
	else
		there = add_graph(lock);
	*there = pinned;
	return 1;
}

/* Tries once. Returns the number of graphs added, -1 with an error, -2 if the manifest changed
 * meanwhile. */
static int64_t try_join(const struct lock_facts *facts, const char *graph_key,
			const struct graph_tally *tally, struct err **err)
{
	AUTO(compile_manifest_freep) struct compile_manifest *lock = NULL;
	AUTO(auto_free) char *damage = NULL;
	const struct tally_graph *graph;
	char tag[STORE_TAG];
	int64_t joined = 0;
	int done = compile_manifest_file_get(facts->store, graph_key, &lock, tag, &damage, err);

	if (done <= 0 || lock->kind != facts->kind)
		return done < 0 ? -1 : 0;
	for (size_t i = 0; (graph = graph_tally_at(tally, i)); i++) {
		AUTO(auto_free) char *key = graph_tally_entry(tally, graph);

		if (!graph->missed)
			continue;
		if (pause_call(&facts->pause, err) < 0)
			return -1;
		done = join(facts, lock, key, err);
		if (done < 0)
			return -1;
		joined += done;
	}
	if (joined == 0)
		return 0;
	if (compile_manifest_file_sync(facts->store, lock, &facts->pause, err) < 0)
		return -1;
	done = compile_manifest_file_replace(facts->store, lock, tag, err);
	if (done > 0)
		done = compile_manifest_refresh_others(facts->store, lock, NULL, err) < 0 ? -1 : 1;
	return done > 0 ? joined : done < 0 ? -1 : -2;
}

int compile_manifest_join_late(const struct lock_facts *facts, const char *graph_key,
			       const struct graph_tally *tally, int64_t *ret_joined,
			       struct err **err)
{
	int64_t joined = -2;

	if (!compile_manifest_key_is_good(graph_key))
		return err_set(err, EXIT_DEFECT, "invalid graph key '%s'", graph_key);
	for (int i = 0; joined == -2 && i < LOCK_TRIES; i++)
		joined = try_join(facts, graph_key, tally, err);
	if (joined == -1)
		return err_wrap(err, "cannot add late graphs to the compile manifest");
	if (joined == -2)
		return err_set(err, EXIT_UNREACHABLE,
			       "cannot add late graphs to the compile manifest '%s': other "
			       "processes keep changing it",
			       graph_key);
	*ret_joined = joined;
	return 0;
}
