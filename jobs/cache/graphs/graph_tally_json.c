/* The tally as JSON: see graph_tally.h. */
#include "jobs/cache/graphs/graph_tally_internal.h"

#include <stdlib.h>
#include <string.h>

/* Misses before hits, long ones before short ones, else in order of the log. */
static int by_weight(const void *a, const void *b)
{
	const struct tally_graph *x = *(const struct tally_graph *const *)a;
	const struct tally_graph *y = *(const struct tally_graph *const *)b;

	if (x->missed != y->missed)
		return x->missed ? -1 : 1;
	if (x->seconds != y->seconds)
		return x->seconds > y->seconds ? -1 : 1;
	return x < y ? -1 : 1;
}

static void put_if(json_t *row, const char *name, bool value)
{
	if (value)
		js_put(row, name, json_true());
}

static void put_count(json_t *row, const char *name, int64_t count)
{
	if (count > 0)
		js_put(row, name, json_integer(count));
}

static json_t *graph_json(const struct tally_graph *graph)
{
	json_t *row = json_object();

	js_put(row, "key", js_text(graph->key, strlen(graph->key)));
	js_put(row, "name", js_text(graph->name, strlen(graph->name)));
	js_put(row, "hit", json_boolean(graph->hit));
	js_put(row, "missed", json_boolean(graph->missed));
	js_put(row, "stored", json_boolean(graph->stored));
	if (graph->missed)
		js_put(row, "seconds", json_real(graph->seconds));
	if (graph->place[0])
		js_put(row, "place", js_text(graph->place, strlen(graph->place)));
	put_if(row, "extracted", graph->extracted);
	put_if(row, "compile_failed", graph->compile_failed || graph->reported_failed);
	put_if(row, "cached_failure", graph->cached_failure);
	if (graph->waited > 0)
		js_put(row, "waited", json_real(graph->waited));
	js_put_str(row, "not_stored", graph->not_stored);
	js_put_str(row, "failed", graph->failed);
	return row;
}

json_t *graph_tally_json(const struct graph_tally *tally, size_t limit)
{
	AUTO(auto_free)
	const struct tally_graph **order = mem_zero(tally->count, sizeof(struct tally_graph *));
	json_t *ret = json_object(), *graphs = json_array();
	struct graph_tally_counts counts;

	graph_tally_counts(tally, &counts);
	js_put(ret, "named", json_integer(counts.named));
	js_put(ret, "hits", json_integer(counts.hits));
	js_put(ret, "misses", json_integer(counts.misses));
	js_put(ret, "stored", json_integer(counts.stored));
	js_put(ret, "failed", json_integer(counts.failed));
	js_put(ret, "seconds", json_real(counts.seconds));
	if (counts.bypassed > 0) {
		js_put(ret, "bypassed", json_integer(counts.bypassed));
		js_put(ret, "bypassed_seconds", json_real(counts.bypassed_seconds));
	}
	js_put_str(ret, "bypass_why", counts.bypass_why);
	put_count(ret, "dropped", counts.dropped);
	put_count(ret, "extracted", counts.extracted);
	put_count(ret, "compile_failed", counts.compile_failed);
	put_count(ret, "cached_failures", counts.cached_failures);
	put_count(ret, "waited", counts.waited);
	if (counts.waited > 0)
		js_put(ret, "waited_seconds", json_real(counts.waited_seconds));
	for (size_t i = 0; i < tally->count; i++)
		order[i] = &tally->graphs[i];
	if (tally->count > 1)
		qsort(order, tally->count, sizeof *order, by_weight);
	for (size_t i = 0; i < tally->count && i < limit; i++)
		json_array_append_new(graphs, graph_json(order[i]));
	js_put(ret, "graphs", graphs);
	return ret;
}
