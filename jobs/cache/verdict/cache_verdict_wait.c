/* Finds the lock that a stopped job was waiting for: see cache_verdict.h. */
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/cache/verdict/cache_verdict_internal.h"
#include "jobs/cache/verdict/listing.h"

/* Notes the lock of one graph, if it is still there. */
static int lock_find(const struct verify_request *request, const struct tally_graph *graph,
		     struct cache_verdict_totals *totals, struct err **err)
{
	AUTO(auto_free) char *key = graph_tally_entry(request->tally, graph);
	AUTO(entry_lock_clear) struct entry_lock lock = { 0 };
	AUTO(sb_release) struct sb hold = SB_INIT;
	struct listing_graph listed = { 0 };
	int found = listing_find(request->store, request->kind, key, &listed, &hold, err);

	if (found <= 0 || listed.state != ENTRY_LOCKED)
		return found < 0 ? -1 : 0;
	if (entry_lock_find(request->store, request->kind, listed.key, &lock, err) < 0)
		return -1;
	cache_verdict_add_lock(totals, &lock, cache_verdict_lock_age_ms(&lock));
	return 0;
}

int cache_find_wait(const struct verify_request *request, char **ret_words, char **ret_hint,
		    struct err **err)
{
	AUTO(cache_verdict_totals_clear) struct cache_verdict_totals totals = { .old_locks = 1 };
	AUTO(auto_free) char *age = NULL;
	AUTO(auto_free) char *waited = NULL;
	const struct tally_graph *graph;
	double longest = 0;

	*ret_words = *ret_hint = NULL;
	for (size_t i = 0; (graph = graph_tally_at(request->tally, i)); i++) {
		if (graph->waited <= 0)
			continue;
		if (graph->waited > longest)
			longest = graph->waited;
		if (lock_find(request, graph, &totals, err) < 0)
			return err_wrap(err, "cannot look for locks in the cache");
	}
	if (!totals.lock)
		return 0;
	age = text_format_duration(totals.lock_age_ms);
	waited = text_format_duration((int64_t)(longest * 1000));
	*ret_words = mem_format(
		"the job waited for %s for another process to compile; the lock '%s' is %s old",
		waited, totals.lock, age);
	/* The next run would meet the locks of the other graphs, too. */
	for (size_t i = 0; (graph = graph_tally_at(request->tally, i)); i++)
		if (graph->waited <= 0 && lock_find(request, graph, &totals, err) < 0) {
			auto_free(ret_words);
			return err_wrap(err, "cannot look for locks in the cache");
		}
	*ret_hint = cache_verdict_unlock_hint(request, &totals);
	return 0;
}
