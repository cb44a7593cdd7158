/*
 * The book of graphs: see book.h.
 *
 * Compile times and some errors are printed with a name, not a key. They belong
 * to the last miss of that name on that node: a miss is printed right before its
 * compilation. A hit of the same name in between means that a later time may be
 * that of loading it, so once a miss has its time, a hit closes it. Ranks of one
 * node share a log; the longest time wins there, which is what was waited for.
 */
#include "jobs/cache/book.h"

#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 100000 /* distinct names a node; more are not attributed */

/* What one node's log said last of one name. */
struct named {
	size_t miss; /* index of the last missed graph plus 1; 0: none */
	bool keyed;  /* a key was printed for it */
	bool measured, hit_since;
	char *read_error; /* for the miss that will follow; or NULL */
	bool read_error_bad_form;
};

struct graph_book {
	struct book_graph *graphs;
	size_t count, room;
	json_t *by_key; /* key → index: Jansson's table is hashed with a secret */
	struct named *names;
	size_t name_count, name_room;
	json_t *by_name;  /* "node name" → index */
	json_t *bypassed; /* name → seconds */
	char *bypass_why;
	int64_t dropped;
};

struct graph_book *book_new(void)
{
	struct graph_book *book = mem_zero(1, sizeof *book);

	book->by_key = json_object();
	book->by_name = json_object();
	book->bypassed = json_object();
	return book;
}

void book_freep(struct graph_book **book)
{
	struct graph_book *old = *book;

	if (!old)
		return;
	for (size_t i = 0; i < old->count; i++) {
		free((char *)old->graphs[i].key);
		free((char *)old->graphs[i].name);
		free(old->graphs[i].not_stored);
		free(old->graphs[i].failed);
	}
	for (size_t i = 0; i < old->name_count; i++)
		free(old->names[i].read_error);
	json_decref(old->by_key);
	json_decref(old->by_name);
	json_decref(old->bypassed);
	free(old->bypass_why);
	free(old->graphs);
	free(old->names);
	free(old);
	*book = NULL;
}

/* Index plus 1 in one of the tables, 0 if it is not there. */
static size_t look_up(const json_t *table, const char *key, size_t len)
{
	const json_t *at = json_object_getn(table, key, len);

	return at ? (size_t)json_integer_value(at) : 0;
}

static void enter(json_t *table, const char *key, size_t len, size_t index_plus_1)
{
	json_object_setn_new_nocheck(table, key, len, json_integer((json_int_t)index_plus_1));
}

/* The graph with this key, made if need be. NULL if the book is full. */
static struct book_graph *graph_of(struct graph_book *book, struct words key, struct words name)
{
	size_t at = look_up(book->by_key, key.text, key.len);
	struct book_graph *graph;

	if (at == 0) {
		if (book->count == BOOK_GRAPHS_MAX) {
			book->dropped++;
			return NULL;
		}
		if (book->count == book->room) {
			book->room = book->room ? book->room * 2 : 64;
			book->graphs = mem_grow(book->graphs, book->room, sizeof *book->graphs);
		}
		at = ++book->count;
		book->graphs[at - 1] = (struct book_graph){
			.key = mem_copy_n(key.text, key.len),
			.name = mem_copy(""),
		};
		enter(book->by_key, key.text, key.len, at);
	}
	graph = &book->graphs[at - 1];
	if (graph->name[0] == '\0' && name.len > 0) {
		free((char *)graph->name);
		graph->name = mem_copy_n(name.text, name.len);
	}
	return graph;
}

/* One function has several spellings: "jit(f)" while it compiles, "jit_f" as a
 * module. Everything that is no letter, digit, dot or dash becomes "_", and none
 * is left at the end. */
static size_t normalise(struct words name, char ret[GRAPH_NAME_MAX + 1])
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

/* What is known of a name on a node, made if need be. NULL for no name, or too
 * many of them. */
static struct named *name_of(struct graph_book *book, int node, struct words name)
{
	char text[GRAPH_NAME_MAX + 1] = "";
	AUTO(auto_free) char *key = NULL;
	size_t at, len;

	if (normalise(name, text) == 0)
		return NULL;
	key = mem_format("%d %s", node, text);
	len = strlen(key);
	at = look_up(book->by_name, key, len);
	if (at == 0) {
		if (book->name_count == NAMES_MAX)
			return NULL;
		if (book->name_count == book->name_room) {
			book->name_room = book->name_room ? book->name_room * 2 : 64;
			book->names = mem_grow(book->names, book->name_room, sizeof *book->names);
		}
		at = ++book->name_count;
		book->names[at - 1] = (struct named){ 0 };
		enter(book->by_name, key, len, at);
	}
	return &book->names[at - 1];
}

static void keep_first(char **where, struct words text)
{
	if (!*where && text.len > 0)
		*where = mem_copy_n(text.text, text.len);
}

static bool note_hit(struct graph_book *book, int node, const struct graph_note *note)
{
	struct book_graph *graph = graph_of(book, note->key, note->name);
	struct named *named = name_of(book, node, note->name);

	if (named) {
		named->keyed = true;
		named->hit_since = true;
	}
	if (!graph)
		return false;
	graph->hit = true;
	graph->unreadable = false; /* somebody could use it */
	return true;
}

static bool note_miss(struct graph_book *book, int node, const struct graph_note *note)
{
	struct book_graph *graph = graph_of(book, note->key, note->name);
	struct named *named = name_of(book, node, note->name);

	if (!graph)
		return false;
	graph->missed = true;
	if (!named)
		return true;
	/* A repeated line is no new compilation. */
	if (named->miss != (size_t)(graph - book->graphs) + 1 || named->hit_since) {
		named->measured = false;
		named->hit_since = false;
	}
	named->keyed = true;
	named->miss = (size_t)(graph - book->graphs) + 1;
	if (named->read_error) {
		keep_first(&graph->failed,
			   (struct words){ named->read_error, strlen(named->read_error) });
		graph->unreadable = !named->read_error_bad_form && !graph->hit;
		auto_free(&named->read_error);
	}
	return true;
}

/* The graph that a note means by its key, or by a name that was missed last. */
static struct book_graph *meant(struct graph_book *book, int node, const struct graph_note *note)
{
	struct named *named;

	if (note->key.len > 0)
		return graph_of(book, note->key, note->name);
	if (note->name.len == 0)
		return NULL;
	named = name_of(book, node, note->name);
	return named && named->miss ? &book->graphs[named->miss - 1] : NULL;
}

static bool note_compiled(struct graph_book *book, int node, const struct graph_note *note)
{
	struct named *named = name_of(book, node, note->name);
	char name[GRAPH_NAME_MAX + 1] = "";
	const json_t *before;

	if (!named)
		return false;
	if (named->miss && !(named->measured && named->hit_since)) {
		struct book_graph *graph = &book->graphs[named->miss - 1];

		named->measured = true;
		if (graph->seconds < note->seconds)
			graph->seconds = note->seconds;
		return true;
	}
	if (named->keyed)
		return false; /* a hit being loaded */
	normalise(note->name, name);
	before = json_object_get(book->bypassed, name);
	if (before && json_real_value(before) >= note->seconds)
		return false;
	if (before || json_object_size(book->bypassed) < NAMES_MAX)
		json_object_setn_new_nocheck(book->bypassed, name, strlen(name),
					     json_real(note->seconds));
	return true;
}

static bool note_read_error(struct graph_book *book, int node, const struct graph_note *note)
{
	size_t at = look_up(book->by_key, note->name.text, note->name.len);
	struct named *named;

	if (at > 0) { /* some readers name the key instead */
		keep_first(&book->graphs[at - 1].failed, note->why);
		return true;
	}
	named = name_of(book, node, note->name);
	if (!named)
		return false;
	auto_free(&named->read_error);
	keep_first(&named->read_error, note->why);
	named->read_error_bad_form = note->bad_form;
	return false;
}

bool book_note(struct graph_book *book, int node, const struct graph_note *note)
{
	struct book_graph *graph;

	switch (note->kind) {
	case NOTE_HIT:
		return note_hit(book, node, note);
	case NOTE_MISS:
		return note_miss(book, node, note);
	case NOTE_COMPILED:
		return note_compiled(book, node, note);
	case NOTE_READ_ERROR:
		return note_read_error(book, node, note);
	case NOTE_BYPASS:
		keep_first(&book->bypass_why, note->why);
		return true;
	case NOTE_STORED:
	case NOTE_NOT_STORED:
	case NOTE_WRITE_ERROR:
		break;
	case NOTE_KINDS:
		return false;
	}
	graph = meant(book, node, note);
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

bool book_scan(struct graph_book *book, const struct compile_kind *kind, int node, const char *text,
	       size_t len)
{
	struct graph_note note;
	bool changed = false;
	size_t at = 0;

	while (kind->scan(text, len, &at, &note))
		changed |= book_note(book, node, &note);
	return changed;
}

void book_counts(const struct graph_book *book, struct book_counts *ret)
{
	const char *name;
	json_t *seconds;

	*ret = (struct book_counts){ .named = (int64_t)book->count,
				     .dropped = book->dropped,
				     .bypass_why = book->bypass_why };
	for (size_t i = 0; i < book->count; i++) {
		const struct book_graph *graph = &book->graphs[i];

		ret->hits += graph->hit && !graph->missed;
		ret->misses += graph->missed;
		ret->stored += graph->stored;
		ret->failed += graph->failed != NULL;
		if (graph->missed)
			ret->seconds += graph->seconds;
	}
	ret->bypassed = (int64_t)json_object_size(book->bypassed);
	json_object_foreach (book->bypassed, name, seconds)
		ret->bypassed_seconds += json_real_value(seconds);
}

const struct book_graph *book_at(const struct graph_book *book, size_t n)
{
	return n < book->count ? &book->graphs[n] : NULL;
}

const struct book_graph *book_find(const struct graph_book *book, const char *key)
{
	size_t at = look_up(book->by_key, key, strlen(key));

	return at ? &book->graphs[at - 1] : NULL;
}

/* Misses before hits, long ones before short ones, else in order of the log. */
static int by_weight(const void *a, const void *b)
{
	const struct book_graph *x = *(const struct book_graph *const *)a;
	const struct book_graph *y = *(const struct book_graph *const *)b;

	if (x->missed != y->missed)
		return x->missed ? -1 : 1;
	if (x->seconds != y->seconds)
		return x->seconds > y->seconds ? -1 : 1;
	return x < y ? -1 : 1;
}

static json_t *graph_json(const struct book_graph *graph)
{
	json_t *row = json_object();

	js_put(row, "key", js_text(graph->key, strlen(graph->key)));
	js_put(row, "name", js_text(graph->name, strlen(graph->name)));
	js_put(row, "hit", json_boolean(graph->hit));
	js_put(row, "missed", json_boolean(graph->missed));
	js_put(row, "stored", json_boolean(graph->stored));
	if (graph->missed)
		js_put(row, "seconds", json_real(graph->seconds));
	js_put_str(row, "not_stored", graph->not_stored);
	js_put_str(row, "failed", graph->failed);
	return row;
}

json_t *book_json(const struct graph_book *book, size_t limit)
{
	AUTO(auto_free)
	const struct book_graph **order = mem_zero(book->count, sizeof(struct book_graph *));
	json_t *ret = json_object(), *graphs = json_array();
	struct book_counts counts;

	book_counts(book, &counts);
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
	if (counts.dropped > 0)
		js_put(ret, "dropped", json_integer(counts.dropped));
	for (size_t i = 0; i < book->count; i++)
		order[i] = &book->graphs[i];
	if (book->count > 1)
		qsort(order, book->count, sizeof *order, by_weight);
	for (size_t i = 0; i < book->count && i < limit; i++)
		json_array_append_new(graphs, graph_json(order[i]));
	js_put(ret, "graphs", graphs);
	return ret;
}
