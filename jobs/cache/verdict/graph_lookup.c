/* Finds many graphs by one listing: see graph_lookup.h. */
#include "jobs/cache/verdict/graph_lookup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/cache/manifest/compile_manifest_file.h"

void graph_lookup_list_release(struct graph_lookup_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].key);
		free(list->items[i].path);
	}
	free(list->items);
	free(list->by_key);
	*list = (struct graph_lookup_list){ 0 };
}

static int by_key(const void *a, const void *b)
{
	const struct graph_lookup *const *x = a, *const *y = b;

	return strcmp((*x)->key, (*y)->key);
}

static void take_names(const struct graph_tally *tally, struct graph_lookup_list *list)
{
	const struct tally_graph *graph;

	for (size_t i = 0; (graph = graph_tally_at(tally, i)); i++) {
		list->items = mem_grow(list->items, i + 1, sizeof *list->items);
		list->items[i] = (struct graph_lookup){ .key = graph_tally_entry(tally, graph) };
		list->count = i + 1;
	}
	list->by_key = mem_zero(list->count + 1, sizeof *list->by_key);
	for (size_t i = 0; i < list->count; i++)
		list->by_key[i] = &list->items[i];
	qsort(list->by_key, list->count, sizeof *list->by_key, by_key);
}

static int note_graph(void *arg, const struct listing_graph *graph, struct err **err)
{
	const struct graph_lookup_list *list = arg;
	struct graph_lookup like = { .key = (char *)graph->key }, *pointer = &like, **place, *seen;

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

int graph_lookup_list_see(const struct graph_tally *tally, struct store *store,
			  const struct compile_kind *kind, struct graph_lookup_list *ret,
			  struct err **err)
{
	take_names(tally, ret);
	if (store_directory(store) || ret->count <= LOCK_FEW)
		return 0;
	return listing_each(store, kind, note_graph, ret, err);
}
