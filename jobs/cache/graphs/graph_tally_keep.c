/*
 * Saves a tally and restores it in another process, so that it need not read the log again: see
 * graph_tally.h. Only the output of this file is read here, by the same version of stoker; still,
 * no member is trusted to have the right type.
 */
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/cache/graphs/graph_tally_internal.h"

#define FORM       1
#define GRAPHS_MAX 5000 /* a larger tally is not worth its bytes at each save */
#define NAMES_KEPT 20000

static bool is_plain(const char *text)
{
	return text_is_utf8(text, strlen(text));
}

static json_t *text_or_null(const char *text)
{
	return text ? js_text(text, strlen(text)) : json_null();
}

/* A copy of a string, which the caller frees; NULL for other types. */
static char *text_of(const json_t *value)
{
	return json_is_string(value) ? mem_copy(json_string_value(value)) : NULL;
}

/* ---- graphs --------------------------------------------------------------------------- */

/* The n-th flag, in the order of the saved row; NULL behind the last. */
static bool *flags_of(struct tally_graph *graph, size_t n)
{
	bool *const flags[] = {
		&graph->hit,
		&graph->missed,
		&graph->stored,
		&graph->unreadable,
		&graph->never_stored,
		&graph->extracted,
		&graph->compile_failed,
		&graph->reported_good,
		&graph->reported_failed,
		&graph->cached_failure,
		&graph->timed,
		&graph->compiling,
	};

	return n < STK_LENGTH(flags) ? flags[n] : NULL;
}

static json_t *keep_graph(const struct tally_graph *graph)
{
	struct tally_graph copy = *graph;
	json_int_t bits = 0;
	bool *flag;

	for (size_t i = 0; (flag = flags_of(&copy, i)); i++)
		bits |= (json_int_t)*flag << i;
	return json_pack("[o, o, o, I, f, f, o, o]", text_or_null(graph->key),
			 text_or_null(graph->name), text_or_null(graph->place), bits,
			 graph->seconds, graph->waited, text_or_null(graph->not_stored),
			 text_or_null(graph->failed));
}

/* A key is part of a path in the cache. */
static bool is_key(const char *key)
{
	return key && *key && key[0] != '.' && !strchr(key, '/');
}

static bool restore_graph(struct graph_tally *tally, const json_t *row)
{
	const char *key = json_string_value(json_array_get(row, 0));
	const char *name = json_string_value(json_array_get(row, 1));
	const char *place = json_string_value(json_array_get(row, 2));
	json_int_t bits = json_integer_value(json_array_get(row, 3));
	struct graph_note note = { 0 };
	struct tally_graph *graph;
	bool *flag;

	if (!is_key(key) || !name || !place || !is_key(*place ? place : key))
		return false;
	note.key = (struct compile_kind_words){ key, strlen(key) };
	note.name = (struct compile_kind_words){ name, strlen(name) };
	note.place = (struct compile_kind_words){ place, strlen(place) };
	graph = graph_tally_graph_of(tally, &note);
	if (!graph)
		return false;
	for (size_t i = 0; (flag = flags_of(graph, i)); i++)
		*flag = bits >> i & 1;
	graph->seconds = json_number_value(json_array_get(row, 4));
	graph->waited = json_number_value(json_array_get(row, 5));
	graph->not_stored = text_of(json_array_get(row, 6));
	graph->failed = text_of(json_array_get(row, 7));
	return true;
}

/* ---- names ---------------------------------------------------------------------------- */

static json_t *keep_names(const struct graph_tally *tally)
{
	json_t *names = json_object(), *index;
	const char *key;

	json_object_foreach (tally->by_name, key, index) {
		const struct named *named = &tally->names[json_integer_value(index) - 1];

		js_put(names, key,
		       json_pack("[I, b, b, b, b, o, I]", (json_int_t)named->miss, named->keyed,
				 named->measured, named->hit_since, named->read_error_bad_form,
				 text_or_null(named->read_error), (json_int_t)named->started_ms));
	}
	return names;
}

static bool restore_names(struct graph_tally *tally, json_t *names)
{
	const char *key;
	json_t *row;

	json_object_foreach (names, key, row) {
		json_int_t miss = json_integer_value(json_array_get(row, 0));

		if (miss < 0 || (size_t)miss > tally->count)
			return false;
		tally->names = mem_room(tally->names, tally->name_count, sizeof *tally->names);
		tally->names[tally->name_count] = (struct named){
			.miss = (size_t)miss,
			.keyed = json_is_true(json_array_get(row, 1)),
			.measured = json_is_true(json_array_get(row, 2)),
			.hit_since = json_is_true(json_array_get(row, 3)),
			.read_error_bad_form = json_is_true(json_array_get(row, 4)),
			.read_error = text_of(json_array_get(row, 5)),
			.started_ms = json_integer_value(json_array_get(row, 6)),
		};
		graph_tally_enter(tally->by_name, key, strlen(key), ++tally->name_count);
	}
	return true;
}

/* ---- the rest ------------------------------------------------------------------------- */

static json_t *keep_front_end(const struct graph_tally *tally)
{
	const struct graph_tally_front_end *said = &tally->front_end;
	json_t *exits = json_array();

	for (int i = 0; i < 256; i++)
		if (tally->exits[i])
			json_array_append_new(exits, json_integer(i));
	return json_pack("{s:[I,I,I,I,I,I,I,I], s:b, s:b, s:o, s:O}", "counts",
			 (json_int_t)said->blocks, (json_int_t)said->nothing,
			 (json_int_t)said->graphs, (json_int_t)said->good, (json_int_t)said->bad,
			 (json_int_t)said->largest, (json_int_t)said->most_bad,
			 (json_int_t)said->workers_died, "killed", said->killed, "script_failed",
			 said->script_failed, "exits", exits, "nodes", tally->front_end_nodes);
}

static void restore_front_end(struct graph_tally *tally, const json_t *kept)
{
	struct graph_tally_front_end *said = &tally->front_end;
	int64_t *const counts[] = { &said->blocks,   &said->nothing,     &said->graphs,
				    &said->good,     &said->bad,         &said->largest,
				    &said->most_bad, &said->workers_died };
	const json_t *list = json_object_get(kept, "counts"), *value;
	size_t i;

	for (i = 0; i < STK_LENGTH(counts); i++)
		*counts[i] = json_integer_value(json_array_get(list, i));
	said->killed = js_bool(kept, "killed", false);
	said->script_failed = js_bool(kept, "script_failed", false);
	json_array_foreach (json_object_get(kept, "exits"), i, value)
		if (json_integer_value(value) > 0 && json_integer_value(value) < 256)
			tally->exits[json_integer_value(value)] = true;
	if (json_is_object(json_object_get(kept, "nodes")))
		json_object_update(tally->front_end_nodes, json_object_get(kept, "nodes"));
}

static json_t *keep_caches(const struct graph_tally *tally)
{
	json_t *caches = json_array();

	for (size_t i = 0; i < tally->cache_count; i++)
		json_array_append_new(caches,
				      json_pack("[o, I]", text_or_null(tally->caches[i].url),
						(json_int_t)tally->caches[i].times));
	return caches;
}

static void restore_caches(struct graph_tally *tally, const json_t *caches)
{
	const json_t *row;
	size_t i;

	json_array_foreach (caches, i, row) {
		char *url = text_of(json_array_get(row, 0));

		if (!url || tally->cache_count == CACHES_MAX) {
			free(url);
			continue;
		}
		tally->caches[tally->cache_count++] =
			(struct cache_in_use){ url, json_integer_value(json_array_get(row, 1)) };
	}
}

static json_t *keep_memories(const struct graph_tally *tally)
{
	json_t *memories = json_array();

	for (size_t i = 0; i < tally->memory_count; i++)
		json_array_append_new(memories, tally->memories[i]
							? tally->lines->keep(tally->memories[i])
							: json_null());
	return memories;
}

static bool restore_memories(struct graph_tally *tally, const struct line_reader *lines,
			     const json_t *memories)
{
	const json_t *row;
	size_t i;

	if (!lines || json_array_size(memories) > TALLY_NODES_MAX)
		return json_array_size(memories) == 0;
	tally->lines = lines;
	tally->memories = mem_zero(json_array_size(memories) + 1, sizeof *tally->memories);
	tally->memory_count = json_array_size(memories);
	json_array_foreach (memories, i, row) {
		if (json_is_null(row))
			continue;
		tally->memories[i] = lines->memory();
		if (!lines->restore(tally->memories[i], row))
			return false;
	}
	return true;
}

static bool is_worth_keeping(const struct graph_tally *tally)
{
	if (tally->count > GRAPHS_MAX || tally->name_count > NAMES_KEPT ||
	    json_object_size(tally->bypassed) > NAMES_KEPT)
		return false;
	for (size_t i = 0; i < tally->count; i++)
		if (!is_plain(tally->graphs[i].key) || !is_plain(tally->graphs[i].place))
			return false;
	return true;
}

json_t *graph_tally_keep(const struct graph_tally *tally)
{
	json_t *kept, *graphs;

	if (!is_worth_keeping(tally))
		return NULL;
	graphs = json_array();
	for (size_t i = 0; i < tally->count; i++)
		json_array_append_new(graphs, keep_graph(&tally->graphs[i]));
	kept = json_pack("{s:i, s:o, s:I, s:b}", "form", FORM, "graphs", graphs, "dropped",
			 (json_int_t)tally->dropped, "more_places", tally->more_places);
	js_put(kept, "names", keep_names(tally));
	js_put(kept, "bypassed", json_deep_copy(tally->bypassed));
	js_put(kept, "front_end", keep_front_end(tally));
	js_put(kept, "caches", keep_caches(tally));
	js_put(kept, "memories", keep_memories(tally));
	js_put_str(kept, "bypass_why", tally->bypass_why);
	js_put_str(kept, "only_place", tally->only_place);
	js_put_str(kept, "worker_why", tally->worker_why);
	js_put_str(kept, "first_error", tally->first_error);
	return kept;
}

struct graph_tally *graph_tally_restore(const json_t *kept, const struct compile_kind *kind)
{
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_new();
	const json_t *row;
	size_t i;

	if (js_int(kept, "form", 0) != FORM)
		return NULL;
	json_array_foreach (json_object_get(kept, "graphs"), i, row)
		if (!restore_graph(tally, row))
			return NULL;
	if (!restore_names(tally, json_object_get(kept, "names")) ||
	    !restore_memories(tally, kind->lines, json_object_get(kept, "memories")))
		return NULL;
	if (json_is_object(json_object_get(kept, "bypassed")))
		json_object_update(tally->bypassed, json_object_get(kept, "bypassed"));
	restore_front_end(tally, json_object_get(kept, "front_end"));
	restore_caches(tally, json_object_get(kept, "caches"));
	tally->dropped = js_int(kept, "dropped", 0);
	tally->more_places = js_bool(kept, "more_places", false);
	free(tally->only_place);
	tally->only_place = text_of(json_object_get(kept, "only_place"));
	tally->bypass_why = text_of(json_object_get(kept, "bypass_why"));
	tally->worker_why = text_of(json_object_get(kept, "worker_why"));
	tally->first_error = text_of(json_object_get(kept, "first_error"));
	return TAKE(tally);
}
