/* The verdict from three sources: see cache_verdict.h. */
#include "jobs/cache/verdict/cache_verdict.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/hash.h"
#include "jobs/cache/verdict/cache_verdict_internal.h"
#include "jobs/cache/verdict/content.h"
#include "jobs/cache/verdict/graph_lookup.h"
#include "jobs/cache/verdict/listing.h"

/* A lock older than this is not waited for: if its job is gone, only the phase's time-out would end
 * the wait. The same holds for a lock that this run itself seems to have left behind: one of its
 * workers died, and it never waited for another process. */
#define LOCK_OLD_MS (60 * 60 * 1000)

void cache_verdict_clear(struct cache_verdict *verdict)
{
	auto_free(&verdict->reason);
	auto_free(&verdict->hint);
	auto_free(&verdict->remark);
	json_decref(verdict->evidence);
	json_decref(verdict->problems);
	*verdict = (struct cache_verdict){ 0 };
}

static void entry_clear(struct cache_verdict_entry *entry)
{
	free(entry->key);
	free(entry->error);
	entry_lock_clear(&entry->lock);
}

/* Adds details to the state: the stored error of a failure, the oldest lock of a locked graph. */
static int entry_add_details(const struct verify_request *request, const struct tally_graph *graph,
			     struct cache_verdict_entry *entry, struct err **err)
{
	struct graph_tally_front_end said;

	if (entry->state == ENTRY_FAILED)
		entry->error = entry_first_error(request->store, request->kind, entry->key);
	if (entry->state != ENTRY_LOCKED)
		return 0;
	if (entry_lock_find(request->store, request->kind, entry->key, &entry->lock, err) < 0)
		return -1;
	if (!entry->lock.key)
		return 0;
	graph_tally_front_end(request->tally, &said);
	entry->lock_age_ms = cache_verdict_lock_age_ms(&entry->lock);
	entry->lock_is_old = entry->lock_age_ms >= LOCK_OLD_MS ||
			     graph->waited * 1000 >= LOCK_OLD_MS ||
			     (graph->waited <= 0 && (said.workers_died > 0 || said.killed));
	return 0;
}

static int inspect_entry(const struct verify_request *request, const struct tally_graph *graph,
			 const struct graph_lookup *lookup, struct cache_verdict_entry *ret,
			 struct err **err)
{
	AUTO(sb_release) struct sb hold = SB_INIT;
	struct listing_graph listed = lookup->listed;
	int found = 1;

	*ret = (struct cache_verdict_entry){ .state = ENTRY_MISSING, .key = mem_copy(lookup->key) };
	if (!lookup->path)
		found = listing_find(request->store, request->kind, ret->key, &listed, &hold, err);
	if (found < 0)
		return -1;
	if (found == 0) {
		ret->hopeless = graph->never_stored;
		return 0;
	}
	free(ret->key);
	ret->key = mem_copy(listed.key);
	ret->state = listed.state;
	ret->bytes = listed.size;
	if (strlen(listed.path) < sizeof ret->path)
		memcpy(ret->path, listed.path, strlen(listed.path) + 1);
	memcpy(ret->tag, listed.tag, strlen(listed.tag) + 1);
	if (ret->state == ENTRY_DONE && content_inspect(request->store, request->kind, listed.path,
							&ret->state, &ret->why, err) < 0)
		return -1;
	if (ret->state == ENTRY_DONE && graph->unreadable) {
		ret->state = ENTRY_PARTIAL;
		ret->why = "the framework could not use the entry";
	}
	return entry_add_details(request, graph, ret, err);
}

static void add_problem(const struct verify_request *request, struct cache_verdict *ret,
			const struct tally_graph *graph, const struct cache_verdict_entry *entry)
{
	AUTO(auto_free) char *what = cache_verdict_what(request->tally, graph, entry);
	json_t *row = json_object();

	js_put(row, "graph", js_text(entry->key, strlen(entry->key)));
	js_put(row, "name", js_text(graph->name, strlen(graph->name)));
	js_put_str(row, "state", compile_kind_entry_state_name(entry->state));
	js_put(row, "what", js_text(what, strlen(what)));
	js_put_str(row, "error", entry->error);
	if (entry->lock.key) {
		char since[UTC_TEXT];
		json_t *lock = json_object();

		js_put_str(lock, "key", entry->lock.key);
		js_put_str(lock, "since", clock_utc_format(entry->lock.since, since));
		js_put(row, "lock", lock);
	}
	json_array_append_new(ret->problems, row);
	if (!entry->hopeless && !entry->lock_is_old)
		ret->retry_helps = true;
	if (graph->missed && !graph->cached_failure &&
	    (graph->compile_failed || graph->reported_failed))
		ret->fewer_workers = request->kind->workers_option != NULL;
}

/* Adds one look to the totals. */
static void add_to_totals(struct cache_verdict_totals *totals, const struct tally_graph *graph,
			  const struct cache_verdict_entry *entry)
{
	totals->bytes += entry->bytes;
	if (entry->state == ENTRY_DONE)
		totals->failed_but_done += graph->compile_failed || graph->reported_failed;
	totals->old_locks += entry->lock_is_old;
	cache_verdict_add_lock(totals, &entry->lock, entry->lock_age_ms);
}

void cache_verdict_totals_clear(struct cache_verdict_totals *totals)
{
	free(totals->lock);
	json_decref(totals->locks);
}

void cache_verdict_add_lock(struct cache_verdict_totals *totals, const struct entry_lock *lock,
			    int64_t age_ms)
{
	if (!lock->key)
		return;
	if (!totals->locks)
		totals->locks = json_array();
	json_array_append_new(totals->locks, js_text(lock->key, strlen(lock->key)));
	if (totals->lock && totals->lock_age_ms >= age_ms)
		return;
	free(totals->lock);
	totals->lock = mem_copy(lock->key);
	totals->lock_age_ms = age_ms;
}

/* Age by the clock of the lock's writer, which may be ahead of this machine's; at least 0. */
int64_t cache_verdict_lock_age_ms(const struct entry_lock *lock)
{
	int64_t age = clock_utc_now().ms - lock->since.ms;

	return age > 0 ? age : 0;
}

static void count(struct cache_verdict *ret, enum entry_state state)
{
	switch (state) {
	case ENTRY_DONE:
		ret->done++;
		break;
	case ENTRY_EMPTY:
	case ENTRY_PARTIAL:
	case ENTRY_FAILED:
		ret->failed++;
		break;
	case ENTRY_LOCKED:
		ret->locked++;
		break;
	case ENTRY_TODO:
	case ENTRY_MISSING:
	case ENTRY_STATES:
		ret->missing++;
		break;
	}
}

/* Looks at every named graph, and makes the digest of what was seen. */
static int inspect_entries(const struct verify_request *request, struct cache_verdict *ret,
			   struct cache_verdict_totals *totals, struct err **err)
{
	AUTO(hash_sha256_freep) struct sha256 *sha = hash_sha256_new();
	AUTO(graph_lookup_list_release) struct graph_lookup_list list = { 0 };
	const struct tally_graph *graph;

	if (graph_lookup_list_see(request->tally, request->store, request->kind, &list, err) < 0)
		return err_wrap(err, "cannot verify the cache");
	for (size_t i = 0; (graph = graph_tally_at(request->tally, i)); i++) {
		AUTO(entry_clear) struct cache_verdict_entry entry = { 0 };

		if (pause_call(&request->pause, err) < 0)
			return -1;
		if (inspect_entry(request, graph, &list.items[i], &entry, err) < 0)
			return err_wrap(err, "cannot verify the cache");
		ret->graphs++;
		count(ret, entry.state);
		ret->made +=
			graph_tally_is_made(graph) || (graph->missed && entry.state == ENTRY_DONE);
		if (entry.state != ENTRY_DONE)
			add_problem(request, ret, graph, &entry);
		add_to_totals(totals, graph, &entry);
		hash_sha256_add(sha, entry.key, strlen(entry.key) + 1);
		hash_sha256_add(sha, &entry.state, sizeof entry.state);
		hash_sha256_add(sha, &entry.bytes, sizeof entry.bytes);
		hash_sha256_add(sha, entry.tag, strlen(entry.tag) + 1);
	}
	hash_sha256_end(TAKE(sha), ret->seen);
	return 0;
}

int cache_verify(const struct verify_request *request, struct cache_verdict *ret, struct err **err)
{
	AUTO(cache_verdict_clear) struct cache_verdict verdict = { .problems = json_array() };
	AUTO(cache_verdict_totals_clear) struct cache_verdict_totals totals = { 0 };

	if (inspect_entries(request, &verdict, &totals, err) < 0)
		return -1;
	verdict.evidence = cache_verdict_evidence(request, &verdict, &totals);
	cache_verdict_decide(request, &totals, &verdict);
	js_put_str(verdict.evidence, "remark", verdict.remark);
	*ret = verdict;
	verdict = (struct cache_verdict){ 0 };
	return 0;
}

int cache_repair(const struct verify_request *request, json_t **ret_removed, struct err **err)
{
	AUTO(graph_lookup_list_release) struct graph_lookup_list list = { 0 };
	json_auto_t *removed = json_array();
	const struct tally_graph *graph;

	if (graph_lookup_list_see(request->tally, request->store, request->kind, &list, err) < 0)
		return err_wrap(err, "cannot repair the cache");
	for (size_t i = 0; (graph = graph_tally_at(request->tally, i)); i++) {
		AUTO(entry_clear) struct cache_verdict_entry entry = { 0 };
		json_auto_t *keys = NULL;
		json_t *row;

		if (pause_call(&request->pause, err) < 0)
			return -1;
		if (inspect_entry(request, graph, &list.items[i], &entry, err) < 0)
			return err_wrap(err, "cannot repair the cache");
		if ((entry.state != ENTRY_EMPTY && entry.state != ENTRY_PARTIAL &&
		     entry.state != ENTRY_FAILED) ||
		    !entry.path[0])
			continue;
		if (entry_discard(request->store, request->kind, entry.key, &keys, err) < 0)
			return -1;
		if (json_array_size(keys) == 0)
			continue;
		row = json_object();
		js_put(row, "graph", js_text(entry.key, strlen(entry.key)));
		js_put_str(row, "path", entry.path);
		js_put_str(row, "state", compile_kind_entry_state_name(entry.state));
		js_put(row, "keys", TAKE(keys));
		json_array_append_new(removed, row);
	}
	*ret_removed = TAKE(removed);
	return 0;
}
