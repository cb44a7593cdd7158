/*
 * Effects of log messages on the tally: see graph_tally.h.
 *
 * Compile times and some errors are printed with a name, not a key. They belong
 * to the last miss of that name on that node: a miss is printed right before its
 * compilation. A hit of the same name in between means that a later time may be that of loading it,
 * so once a miss has its time, a hit closes it. Ranks of one node share a log; the longest time
 * counts, as it is how long the node had to wait.
 *
 * Other compilers print the key each time. Then a compilation's time is the front-end's measurement
 * or, without one, the time between its first and its last message on one node.
 */
#include "jobs/cache/graphs/graph_tally_internal.h"

#include <stdlib.h>
#include <string.h>

#define SECONDS_MAX 1000000 /* longer than this, two clocks must have differed */

/* A function has several spellings: "jit(f)" while it compiles, "jit_f" as a module. All characters
 * but letters, digits, dots and dashes become "_", and trailing "_" are dropped. */
static size_t normalise(struct compile_kind_words name, char ret[GRAPH_NAME_MAX + 1])
{
	size_t len = name.len < GRAPH_NAME_MAX ? name.len : GRAPH_NAME_MAX;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)name.text[i];
		bool keep = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
			    (c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c >= 0x80;

		ret[i] = keep ? (char)c : '_';
	}
	while (len > 0 && ret[len - 1] == '_')
		len--;
	ret[len] = '\0';
	return len;
}

/* State of a name on a node, added if need be. NULL without a name, or if there are too many. */
static struct named *name_of(struct graph_tally *tally, int node, struct compile_kind_words name)
{
	char text[GRAPH_NAME_MAX + 1] = "";
	AUTO(auto_free) char *key = NULL;
	size_t at, len;

	if (normalise(name, text) == 0)
		return NULL;
	key = mem_format("%d %s", node, text);
	len = strlen(key);
	at = graph_tally_index_find(tally->by_name, key, len);
	if (at == 0) {
		if (tally->name_count == NAMES_MAX)
			return NULL;
		tally->names = mem_room(tally->names, tally->name_count, sizeof *tally->names);
		at = ++tally->name_count;
		tally->names[at - 1] = (struct named){ 0 };
		graph_tally_enter(tally->by_name, key, len, at);
	}
	return &tally->names[at - 1];
}

static void keep_first(char **where, struct compile_kind_words text)
{
	if (!*where && text.len > 0)
		*where = mem_copy_n(text.text, text.len);
}

static bool note_hit(struct graph_tally *tally, int node, const struct graph_note *note)
{
	struct tally_graph *graph = graph_tally_graph_of(tally, note);
	struct named *named = name_of(tally, node, note->name);

	if (named) {
		named->keyed = true;
		named->hit_since = true;
	}
	if (!graph)
		return false;
	graph->hit = true;
	graph->unreadable = false; /* some rank could use it */
	return true;
}

/* Notes the time stamp at which the compilation of a key began on a node. Waiting ranks print the
 * same line later. */
static void note_start(struct graph_tally *tally, int node, const struct graph_note *note)
{
	struct named *named = note->stamp_ms ? name_of(tally, node, note->key) : NULL;

	if (named && named->started_ms == 0)
		named->started_ms = note->stamp_ms;
}

static double since_start(struct graph_tally *tally, int node, const struct graph_note *note)
{
	struct named *named = note->stamp_ms ? name_of(tally, node, note->key) : NULL;
	int64_t ms = named && named->started_ms ? note->stamp_ms - named->started_ms : 0;

	if (named)
		named->started_ms = 0;
	return ms > 0 && ms < SECONDS_MAX * 1000 ? (double)ms / 1000 : 0;
}

static bool note_miss(struct graph_tally *tally, int node, const struct graph_note *note)
{
	struct tally_graph *graph = graph_tally_graph_of(tally, note);
	struct named *named;

	if (!graph)
		return false;
	graph->missed = true;
	graph->compiling |= note->called;
	note_start(tally, node, note);
	named = name_of(tally, node, note->name);
	if (!named)
		return true;
	/* A repeated line is not a new compilation. */
	if (named->miss != (size_t)(graph - tally->graphs) + 1 || named->hit_since) {
		named->measured = false;
		named->hit_since = false;
	}
	named->keyed = true;
	named->miss = (size_t)(graph - tally->graphs) + 1;
	if (named->read_error) {
		keep_first(&graph->failed, (struct compile_kind_words){
						   named->read_error, strlen(named->read_error) });
		graph->unreadable = !named->read_error_bad_form && !graph->hit;
		auto_free(&named->read_error);
	}
	return true;
}

/* The graph that a note means by its key, or the last miss of its name. */
static struct tally_graph *meant(struct graph_tally *tally, int node, const struct graph_note *note)
{
	struct named *named;

	if (note->key.len > 0)
		return graph_tally_graph_of(tally, note);
	if (note->name.len == 0)
		return NULL;
	named = name_of(tally, node, note->name);
	return named && named->miss ? &tally->graphs[named->miss - 1] : NULL;
}

/* A key was reported as compiled, so some rank had to compile it. */
static bool note_key_compiled(struct graph_tally *tally, int node, const struct graph_note *note)
{
	struct tally_graph *graph = graph_tally_graph_of(tally, note);
	double seconds = note->seconds > 0 ? note->seconds : since_start(tally, node, note);
	bool better = note->summary && seconds > 0 && graph && !graph->timed;

	if (!graph)
		return false;
	graph->missed = true;
	graph->compiling = false;
	graph->reported_good |= note->summary;
	if (better || (graph->timed == note->summary && graph->seconds < seconds))
		graph->seconds = seconds;
	graph->timed |= better;
	return true;
}

static bool note_compiled(struct graph_tally *tally, int node, const struct graph_note *note)
{
	struct named *named;
	char name[GRAPH_NAME_MAX + 1] = "";
	const json_t *before;

	if (note->key.len > 0)
		return note_key_compiled(tally, node, note);
	named = name_of(tally, node, note->name);
	if (!named)
		return false;
	if (named->miss && !(named->measured && named->hit_since)) {
		struct tally_graph *graph = &tally->graphs[named->miss - 1];

		named->measured = true;
		if (graph->seconds < note->seconds)
			graph->seconds = note->seconds;
		return true;
	}
	if (named->keyed)
		return false; /* the loading of a hit */
	normalise(note->name, name);
	before = json_object_get(tally->bypassed, name);
	if (before && json_real_value(before) >= note->seconds)
		return false;
	if (before || json_object_size(tally->bypassed) < NAMES_MAX)
		json_object_setn_new_nocheck(tally->bypassed, name, strlen(name),
					     json_real(note->seconds));
	return true;
}

static bool note_read_error(struct graph_tally *tally, int node, const struct graph_note *note)
{
	size_t at = graph_tally_index_find(tally->by_key, note->name.text, note->name.len);
	struct named *named;

	if (at > 0) { /* some readers name the key instead */
		keep_first(&tally->graphs[at - 1].failed, note->why);
		return true;
	}
	named = name_of(tally, node, note->name);
	if (!named)
		return false;
	auto_free(&named->read_error);
	keep_first(&named->read_error, note->why);
	named->read_error_bad_form = note->bad_form;
	return false;
}

static bool note_failed(struct graph_tally *tally, const struct graph_note *note)
{
	struct tally_graph *graph;

	tally->front_end.killed |= note->killed;
	if (note->key.len == 0) {
		keep_first(&tally->first_error, note->why);
		return true;
	}
	graph = graph_tally_graph_of(tally, note);
	if (!graph)
		return false;
	if (note->summary)
		graph->reported_failed = true;
	else
		graph->compile_failed = true;
	graph->compiling = false;
	/* A replayed failure was not compiled again. */
	graph->missed |= !graph->cached_failure;
	keep_first(&graph->failed, note->why);
	return true;
}

/* Notes a message on a graph other than hit and miss. */
static bool note_key(struct graph_tally *tally, const struct graph_note *note)
{
	struct tally_graph *graph = graph_tally_graph_of(tally, note);

	if (!graph)
		return false;
	if (note->kind == NOTE_EXTRACTED)
		graph->extracted = true;
	else if (note->kind == NOTE_CACHED_FAILURE)
		graph->cached_failure = true;
	else if (graph->waited < note->seconds)
		graph->waited = note->seconds;
	return true;
}

/* The record of a cache URL, added if need be. If the table is full, a URL that was named only
 * once, as in torn lines, is replaced; NULL if there is no such one. */
static struct cache_in_use *cache_of(struct graph_tally *tally, struct compile_kind_words url)
{
	struct cache_in_use *spare = NULL;

	for (size_t i = 0; i < tally->cache_count; i++) {
		struct cache_in_use *cache = &tally->caches[i];

		if (strlen(cache->url) == url.len && memcmp(cache->url, url.text, url.len) == 0)
			return cache;
		if (!spare && cache->times == 1)
			spare = cache;
	}
	if (tally->cache_count < CACHES_MAX)
		spare = &tally->caches[tally->cache_count++];
	if (!spare)
		return NULL;
	free(spare->url);
	*spare = (struct cache_in_use){ .url = mem_copy_n(url.text, url.len) };
	return spare;
}

static bool note_cache(struct graph_tally *tally, const struct graph_note *note)
{
	struct cache_in_use *cache = cache_of(tally, note->why);

	if (cache)
		cache->times++;
	return false;
}

/* Notes a message of the front-end about itself; no graph's count changes by it. */
static bool note_front_end(struct graph_tally *tally, int node, const struct graph_note *note)
{
	struct graph_tally_front_end *front_end = &tally->front_end;
	AUTO(auto_free) char *name = mem_format("%d", node);

	switch (note->kind) {
	case NOTE_TOTALS:
		front_end->blocks += note->graphs >= 0;
		front_end->graphs += note->graphs > 0 ? note->graphs : 0;
		front_end->good += note->good > 0 ? note->good : 0;
		front_end->bad += note->bad > 0 ? note->bad : 0;
		if (front_end->largest < note->graphs)
			front_end->largest = note->graphs;
		if (note->bad > 0)
			tally->exits[note->bad % 256] = true;
		if (front_end->most_bad < note->bad)
			front_end->most_bad = note->bad;
		break;
	case NOTE_NOTHING:
		front_end->nothing++;
		break;
	case NOTE_WORKER_DIED:
		front_end->workers_died++;
		keep_first(&tally->worker_why, note->why);
		return false;
	default:
		front_end->script_failed = true;
		return false;
	}
	if (json_object_size(tally->front_end_nodes) < TALLY_NODES_MAX)
		json_object_set_new_nocheck(tally->front_end_nodes, name, json_true());
	return false;
}

/* Notes a message on storing a graph, by its key or its name. */
static bool note_storing(struct graph_tally *tally, int node, const struct graph_note *note)
{
	struct tally_graph *graph = meant(tally, node, note);

	if (!graph)
		return false;
	if (note->kind == NOTE_STORED)
		graph->stored = true;
	else if (note->kind == NOTE_NOT_STORED && note->lasting)
		graph->never_stored = true;
	if (note->kind != NOTE_STORED)
		keep_first(note->kind == NOTE_NOT_STORED ? &graph->not_stored : &graph->failed,
			   note->why);
	return true;
}

/* Adds a note from `node`'s log. True if the counts may have changed. */
static bool take_note(struct graph_tally *tally, int node, const struct graph_note *note)
{
	switch (note->kind) {
	case NOTE_HIT:
		return note_hit(tally, node, note);
	case NOTE_MISS:
		return note_miss(tally, node, note);
	case NOTE_COMPILED:
		return note_compiled(tally, node, note);
	case NOTE_READ_ERROR:
		return note_read_error(tally, node, note);
	case NOTE_BYPASS:
		keep_first(&tally->bypass_why, note->why);
		return true;
	case NOTE_STORED:
	case NOTE_NOT_STORED:
	case NOTE_WRITE_ERROR:
		return note_storing(tally, node, note);
	case NOTE_FAILED:
		return note_failed(tally, note);
	case NOTE_EXTRACTED:
	case NOTE_CACHED_FAILURE:
	case NOTE_WAITING:
		return note_key(tally, note);
	case NOTE_CACHE:
		return note_cache(tally, note);
	case NOTE_TOTALS:
	case NOTE_NOTHING:
	case NOTE_WORKER_DIED:
	case NOTE_SCRIPT_FAILED:
		return note_front_end(tally, node, note);
	case NOTE_REMAINING:
	case NOTE_KINDS:
		break;
	}
	return false;
}

/* State of this node's unfinished messages; NULL if `node` is not a valid index. */
static void *memory_of(struct graph_tally *tally, const struct line_reader *lines, int node)
{
	size_t at = (size_t)node;

	if (node < 0 || at >= TALLY_NODES_MAX || (tally->lines && tally->lines != lines))
		return NULL;
	tally->lines = lines;
	if (at >= tally->memory_count) {
		tally->memories = mem_grow(tally->memories, at + 1, sizeof *tally->memories);
		while (tally->memory_count <= at)
			tally->memories[tally->memory_count++] = NULL;
	}
	if (!tally->memories[at])
		tally->memories[at] = lines->memory();
	return tally->memories[at];
}

bool graph_tally_scan(struct graph_tally *tally, const struct compile_kind *kind, int node,
		      const char *text, size_t len)
{
	void *memory = kind->lines ? memory_of(tally, kind->lines, node) : NULL;
	struct graph_note note;
	bool changed = false;
	size_t at = 0;

	while (kind->scan(text, len, &at, &note))
		changed |= take_note(tally, node, &note);
	at = 0;
	while (memory && kind->lines->scan(memory, text, len, &at, &note))
		changed |= take_note(tally, node, &note);
	return changed;
}
