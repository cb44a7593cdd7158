/* Removes locks that an attempt of this run left behind: see orphaned_own_locks.h. */
#include "jobs/cache/manifest/orphaned_own_locks.h"

#include <string.h>

#include "jobs/cache/verdict/entry.h"
#include "jobs/cache/verdict/listing.h"

/* Tolerance: file systems keep times in coarser steps than clocks; the kernel's own time is up to
 * one tick behind. */
#define STEP_MS 20

/* True if, by the logs alone, the attempt was compiling the graph. */
static bool was_compiling(const struct tally_graph *graph)
{
	return graph->compiling && graph->waited <= 0;
}

static bool made_meanwhile(const struct orphaned_own_locks *request, struct utc since)
{
	return since.ms >= request->began_ms - STEP_MS && since.ms <= request->ended_ms + STEP_MS;
}

/* Returns 1 and the graph's key and lock if the lock is the attempt's own; else 0. */
static int find_own(const struct orphaned_own_locks *request, const struct tally_graph *graph,
		    char **ret_key, struct entry_lock *ret_lock, struct err **err)
{
	AUTO(auto_free) char *key = graph_tally_entry(request->tally, graph);
	AUTO(sb_release) struct sb hold = SB_INIT;
	struct listing_graph listed = { 0 };
	int found = listing_find(request->store, request->kind, key, &listed, &hold, err);

	if (found <= 0 || listed.state != ENTRY_LOCKED)
		return found < 0 ? -1 : 0;
	if (entry_lock_find(request->store, request->kind, listed.key, ret_lock, err) < 0)
		return -1;
	if (!ret_lock->key || !made_meanwhile(request, ret_lock->since))
		return 0;
	*ret_key = mem_copy(listed.key);
	return 1;
}

static int clear_one(const struct orphaned_own_locks *request, const struct tally_graph *graph,
		     json_t *removed, struct err **err)
{
	AUTO(auto_free) char *key = NULL;
	AUTO(entry_lock_clear) struct entry_lock lock = { 0 };
	int found = find_own(request, graph, &key, &lock, err);
	json_t *row, *keys;

	if (found <= 0)
		return found;
	if (store_delete(request->store, lock.key, err) < 0)
		return -1;
	row = json_object();
	keys = json_array();
	js_put(row, "graph", js_text(key, strlen(key)));
	js_put(row, "path", js_text(lock.key, strlen(lock.key)));
	js_put_str(row, "state", compile_kind_entry_state_name(ENTRY_LOCKED));
	json_array_append_new(keys, js_text(lock.key, strlen(lock.key)));
	js_put(row, "keys", keys);
	json_array_append_new(removed, row);
	return 0;
}

int orphaned_own_locks_clear(const struct orphaned_own_locks *request, json_t **ret_removed,
			     struct err **err)
{
	json_auto_t *removed = json_array();
	const struct tally_graph *graph;
	bool known = request->began_ms > 0 && request->ended_ms >= request->began_ms &&
		     store_directory(request->store);

	for (size_t i = 0; known && (graph = graph_tally_at(request->tally, i)); i++)
		if (was_compiling(graph) && clear_one(request, graph, removed, err) < 0)
			return err_wrap(err, "cannot remove the compiler locks of this run");
	*ret_removed = TAKE(removed);
	return 0;
}
