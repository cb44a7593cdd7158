/* Tables and sums of the tally: see graph_tally.h. */
#include "jobs/cache/graphs/graph_tally.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/cache/graphs/graph_tally_internal.h"

struct graph_tally *graph_tally_new(void)
{
	struct graph_tally *tally = mem_zero(1, sizeof *tally);

	tally->by_key = json_object();
	tally->by_name = json_object();
	tally->bypassed = json_object();
	tally->front_end_nodes = json_object();
	return tally;
}

void graph_tally_freep(struct graph_tally **tally)
{
	struct graph_tally *old = *tally;

	if (!old)
		return;
	for (size_t i = 0; i < old->count; i++) {
		free((char *)old->graphs[i].key);
		free((char *)old->graphs[i].name);
		free((char *)old->graphs[i].place);
		free(old->graphs[i].not_stored);
		free(old->graphs[i].failed);
	}
	for (size_t i = 0; i < old->name_count; i++)
		free(old->names[i].read_error);
	json_decref(old->by_key);
	json_decref(old->by_name);
	json_decref(old->bypassed);
	json_decref(old->front_end_nodes);
	for (size_t i = 0; i < old->cache_count; i++)
		free(old->caches[i].url);
	for (size_t i = 0; i < old->memory_count; i++)
		if (old->memories[i])
			old->lines->forget(old->memories[i]);
	free(old->memories);
	free(old->worker_why);
	free(old->first_error);
	free(old->only_place);
	free(old->bypass_why);
	free(old->graphs);
	free(old->names);
	free(old);
	*tally = NULL;
}

size_t graph_tally_index_find(const json_t *table, const char *key, size_t len)
{
	const json_t *at = json_object_getn(table, key, len);

	return at ? (size_t)json_integer_value(at) : 0;
}

void graph_tally_enter(json_t *table, const char *key, size_t len, size_t index_plus_1)
{
	json_object_setn_new_nocheck(table, key, len, json_integer((json_int_t)index_plus_1));
}

/* Notes the place of a graph. The first mention counts: a graph lies where its job looked for
 * it. */
static void note_place(struct graph_tally *tally, struct tally_graph *graph,
		       struct compile_kind_words place)
{
	if (place.len == 0)
		return;
	if (graph->place[0] == '\0') {
		free((char *)graph->place);
		graph->place = mem_copy_n(place.text, place.len);
	}
	if (!tally->only_place)
		tally->only_place = mem_copy_n(place.text, place.len);
	else if (strlen(tally->only_place) != place.len ||
		 memcmp(tally->only_place, place.text, place.len) != 0)
		tally->more_places = true;
}

struct tally_graph *graph_tally_graph_of(struct graph_tally *tally, const struct graph_note *note)
{
	size_t at = graph_tally_index_find(tally->by_key, note->key.text, note->key.len);
	struct tally_graph *graph;

	if (at == 0) {
		if (tally->count == TALLY_GRAPHS_MAX) {
			tally->dropped++;
			return NULL;
		}
		tally->graphs = mem_room(tally->graphs, tally->count, sizeof *tally->graphs);
		at = ++tally->count;
		tally->graphs[at - 1] = (struct tally_graph){
			.key = mem_copy_n(note->key.text, note->key.len),
			.name = mem_copy(""),
			.place = mem_copy(""),
		};
		graph_tally_enter(tally->by_key, note->key.text, note->key.len, at);
	}
	graph = &tally->graphs[at - 1];
	if (graph->name[0] == '\0' && note->name.len > 0) {
		free((char *)graph->name);
		graph->name = mem_copy_n(note->name.text, note->name.len);
	}
	note_place(tally, graph, note->place);
	return graph;
}

bool graph_tally_is_made(const struct tally_graph *graph)
{
	return graph->missed && !graph->compile_failed && !graph->reported_failed &&
	       !graph->compiling;
}

void graph_tally_counts(const struct graph_tally *tally, struct graph_tally_counts *ret)
{
	const char *name;
	json_t *seconds;

	*ret = (struct graph_tally_counts){ .named = (int64_t)tally->count,
					    .dropped = tally->dropped,
					    .bypass_why = tally->bypass_why };
	for (size_t i = 0; i < tally->count; i++) {
		const struct tally_graph *graph = &tally->graphs[i];

		ret->hits += graph->hit && !graph->missed;
		ret->misses += graph->missed;
		ret->made += graph_tally_is_made(graph);
		ret->stored += graph->stored;
		ret->failed +=
			graph->failed != NULL || graph->compile_failed || graph->reported_failed;
		ret->extracted += graph->extracted;
		ret->compile_failed += graph->compile_failed || graph->reported_failed;
		ret->cached_failures += graph->cached_failure;
		ret->waited += graph->waited > 0;
		ret->waited_seconds += graph->waited;
		if (graph->missed)
			ret->seconds += graph->seconds;
	}
	ret->bypassed = (int64_t)json_object_size(tally->bypassed);
	json_object_foreach (tally->bypassed, name, seconds)
		ret->bypassed_seconds += json_real_value(seconds);
}

const struct tally_graph *graph_tally_at(const struct graph_tally *tally, size_t n)
{
	return n < tally->count ? &tally->graphs[n] : NULL;
}

const struct tally_graph *graph_tally_find(const struct graph_tally *tally, const char *key)
{
	size_t at = graph_tally_index_find(tally->by_key, key, strlen(key));

	return at ? &tally->graphs[at - 1] : NULL;
}

void graph_tally_front_end(const struct graph_tally *tally, struct graph_tally_front_end *ret)
{
	*ret = tally->front_end;
	ret->nodes = (int64_t)json_object_size(tally->front_end_nodes);
	ret->worker_why = tally->worker_why;
	ret->first_error = tally->first_error;
}

bool graph_tally_explains_exit(const struct graph_tally *tally, int status)
{
	return status >= 0 && status < 256 && tally->exits[status];
}

bool graph_tally_cache_at(const struct graph_tally *tally, size_t n, struct graph_tally_cache *ret)
{
	if (n >= tally->cache_count)
		return false;
	*ret = (struct graph_tally_cache){ tally->caches[n].url, tally->caches[n].times };
	return true;
}

char *graph_tally_entry(const struct graph_tally *tally, const struct tally_graph *graph)
{
	if (graph->place[0])
		return mem_format("%s/%s", graph->place, graph->key);
	if (tally->only_place && !tally->more_places)
		return mem_format("%s/%s", tally->only_place, graph->key);
	return mem_copy(graph->key);
}
