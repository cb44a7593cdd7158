/* Many graphs by one listing: see wanted.h. */
#include "jobs/cache/wanted.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/cache/lock_file.h"

void wanted_list_release(struct wanted_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].key);
		free(list->items[i].path);
	}
	free(list->items);
	free(list->by_key);
	*list = (struct wanted_list){ 0 };
}

static int by_key(const void *a, const void *b)
{
	const struct wanted *const *x = a, *const *y = b;

	return strcmp((*x)->key, (*y)->key);
}

static void take_names(const struct graph_book *book, struct wanted_list *list)
{
	const struct book_graph *graph;

	for (size_t i = 0; (graph = book_at(book, i)); i++) {
		list->items = mem_grow(list->items, i + 1, sizeof *list->items);
		list->items[i] = (struct wanted){ .key = book_entry(book, graph) };
		list->count = i + 1;
	}
	list->by_key = mem_zero(list->count + 1, sizeof *list->by_key);
	for (size_t i = 0; i < list->count; i++)
		list->by_key[i] = &list->items[i];
	qsort(list->by_key, list->count, sizeof *list->by_key, by_key);
}

static int note(void *arg, const struct listing_graph *graph, struct err **err)
{
	const struct wanted_list *list = arg;
	struct wanted like = { .key = (char *)graph->key }, *pointer = &like, **place, *seen;

	(void)err;
	place = bsearch(&pointer, list->by_key, list->count, sizeof *place, by_key);
	if (!place || (*place)->path)
		return 0;
	seen = *place;
	seen->path = mem_copy(graph->path);
	snprintf(seen->tag, sizeof seen->tag, "%s", graph->tag);
	seen->listed = *graph;
	seen->listed.key = seen->key;
	seen->listed.path = seen->path;
	seen->listed.tag = seen->tag;
	return 0;
}

int wanted_list_see(const struct graph_book *book, struct store *store,
		    const struct compile_kind *kind, struct wanted_list *ret, struct err **err)
{
	take_names(book, ret);
	if (store_directory(store) || ret->count <= LOCK_FEW)
		return 0;
	return listing_each(store, kind, note, ret, err);
}
