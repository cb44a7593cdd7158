/*
 * What lies in a cache, by names and sizes: which objects are which graph's, and in
 * which state each graph is. The listing goes through the store once and has one
 * graph in memory; here every graph is put together once more, by going through all
 * objects for it.
 */
#include "tests/fuzz/fuzz.h"

#include "jobs/cache/verdict/entry.h"
#include "jobs/cache/verdict/listing.h"
#include "tests/fuzz/cache_text.h"

/* Checks one name as every kind sees it. */
static void check_object(const char *key)
{
	const struct compile_kind *kind;
	int owners = 0;

	for (size_t n = 0; (kind = compile_kind_at(n)); n++) {
		struct entry_object object;
		AUTO(auto_free) char *graph = NULL;
		AUTO(auto_free) char *begins = NULL;

		if (!kind->object(key, &object))
			continue;
		owners++;
		MUST(object.graph.text == key && object.graph.len > 0 &&
		     object.graph.len < strlen(key));
		MUST(object.role != 0);
		MUST(!(object.role & ROLE_COMPILED) || object.role == ROLE_COMPILED);
		MUST(!strstr(key, "//") && !strstr(key, "/../") && key[0] != '/' && key[0] != '.');
		graph = mem_copy_n(object.graph.text, object.graph.len);
		begins = kind->prefix ? kind->prefix(graph) : kind->path(graph);
		MUST(begins && strncmp(key, begins, strlen(begins)) == 0);
		MUST(kind->prefix || strcmp(key, begins) == 0);
	}
	MUST(owners <= 1);
}

/* Checks the objects that a state demands. */
static void check_state(const struct compile_kind *kind, unsigned roles, uint64_t size)
{
	enum entry_state state = kind->state(roles, size);
	enum entry_state locked = kind->state(roles | ROLE_LOCK, size);

	MUST((int)state >= 0 && state < ENTRY_STATES);
	MUST(state != ENTRY_DONE || ((roles & ROLE_COMPILED) && size > 0));
	MUST(state != ENTRY_LOCKED || (roles & ROLE_LOCK));
	MUST(state != ENTRY_FAILED || (roles & ROLE_LOG));
	MUST(state != ENTRY_EMPTY || size == 0);
	MUST(state != ENTRY_TODO || (roles & ROLE_INPUT));
	/* Somebody's lock makes nothing better than it was. */
	MUST(state == ENTRY_DONE || locked != ENTRY_DONE);
}

struct walk {
	const struct memory_store *store;
	const struct compile_kind *only;
	struct store *base;
	json_t *seen; /* "kind key" of the graphs told so far */
	size_t objects;
	uint64_t bytes;
};

static int count_object(void *arg, const struct store_object *object, unsigned role,
			struct err **err)
{
	size_t *count = arg;

	(void)object;
	(void)err;
	*count += role != 0; /* 0: something else that lies there */
	return 0;
}

/* The graph again, by going through all objects. */
static size_t put_together(const struct walk *walk, const struct listing_graph *graph,
			   struct listing_graph *ret)
{
	size_t count = 0;

	*ret = (struct listing_graph){ .kind = graph->kind, .tag = "" };
	for (size_t i = 0; i < walk->store->count; i++) {
		const struct memory_object *object = &walk->store->objects[i];
		struct entry_object entry;

		if (!graph->kind->object(object->key, &entry) ||
		    entry.graph.len != strlen(graph->key) ||
		    memcmp(entry.graph.text, graph->key, entry.graph.len) != 0)
			continue;
		count++;
		ret->roles |= entry.role;
		ret->bytes += object->size;
		if (ret->modified.ms < object->modified.ms)
			ret->modified = object->modified;
		if (entry.role == ROLE_COMPILED || !ret->path)
			ret->path = object->key;
		if (entry.role == ROLE_COMPILED) {
			ret->size = object->size;
			ret->tag = object->tag;
		}
	}
	ret->state = ret->kind->state(ret->roles, ret->size);
	return count;
}

static void check_same(const struct listing_graph *a, const struct listing_graph *b)
{
	MUST(a->roles == b->roles && a->size == b->size && a->bytes == b->bytes);
	MUST(a->modified.ms == b->modified.ms && a->state == b->state);
	MUST(strcmp(a->path, b->path) == 0 && strcmp(a->tag, b->tag) == 0);
}

/* Found by its key, and where a folder comes before it also by its name alone. */
static void check_found(const struct walk *walk, const struct listing_graph *graph)
{
	AUTO(sb_release) struct sb hold = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;
	const char *slash = strchr(graph->key, '/');
	struct listing_graph found = { 0 };
	struct entry_lock lock;
	size_t objects = 0;

	MUST(listing_find(walk->base, graph->kind, graph->key, &found, &hold, &err) == 1);
	MUST(strcmp(found.key, graph->key) == 0);
	check_same(&found, graph);
	if (graph->kind->placed) {
		MUST(slash);
		MUST(listing_find(walk->base, graph->kind, slash + 1, &found, &hold, &err) == 1);
		MUST(graph->state == ENTRY_DONE || found.state != ENTRY_DONE);
	}
	MUST(entry_each(walk->base, graph->kind, graph->key, count_object, &objects, &err) == 0);
	MUST(objects == put_together(walk, graph, &found));
	MUST(entry_lock_find(walk->base, graph->kind, graph->key, &lock, &err) == 0);
	MUST((lock.key != NULL) == ((graph->roles & ROLE_LOCK) != 0));
	entry_lock_clear(&lock);
}

static int check_graph(void *arg, const struct listing_graph *graph, struct err **err)
{
	struct walk *walk = arg;
	struct listing_graph again;
	AUTO(auto_free) char *label = mem_format("%s %s", graph->kind->name, graph->key);

	(void)err;
	MUST(!walk->only || walk->only == graph->kind);
	/* Names may be any bytes: not checked, as text that is no JSON. */
	MUST(!json_object_get(walk->seen, label));
	json_object_set_new_nocheck(walk->seen, label, json_true());
	walk->objects += put_together(walk, graph, &again);
	walk->bytes += graph->bytes;
	check_same(graph, &again);
	check_state(graph->kind, graph->roles, graph->size);
	check_found(walk, graph);
	return 0;
}

/* All graphs of one kind, or of any; returns how many objects they have. */
static size_t check_listing(struct memory_store *store, const struct compile_kind *kind)
{
	json_auto_t *seen = json_object();
	struct walk walk = { .store = store, .only = kind, .base = &store->base, .seen = seen };
	AUTO(err_freep) struct err *err = NULL;

	MUST(listing_each(&store->base, kind, check_graph, &walk, &err) == 0);
	return walk.objects;
}

static int count_row(void *arg, json_t *row, struct err **err)
{
	size_t *count = arg;
	AUTO(auto_free) char *line = js_line(row);

	(void)err;
	MUST(js_str(row, "state") &&
	     (js_str(row, "lock") || (js_str(row, "graph") && js_str(row, "path"))));
	MUST(!strchr(line, '\n') && !strchr(line, '\x1b'));
	(*count)++;
	json_decref(row);
	return 0;
}

/* Checks that `cache ls` and `cache verify` agree with the listing. */
static void check_told(struct memory_store *store, size_t graphs)
{
	AUTO(err_freep) struct err *err = NULL;
	const struct cache_check_options options = { .all = true };
	struct cache_check sums;
	size_t rows = 0;

	MUST(cache_list(&store->base, count_row, &rows, &err) == 0 && rows == graphs);
	rows = 0;
	MUST(cache_check(&store->base, &options, count_row, &rows, &sums, &err) == 0);
	MUST(sums.locks == 0 && sums.graphs == 0 && sums.others == (int64_t)graphs);
	MUST(sums.others_bad <= sums.others);
	MUST(rows == graphs + (size_t)sums.damaged_locks);
}

static int count_graph(void *arg, const struct listing_graph *graph, struct err **err)
{
	size_t *count = arg;

	(void)graph;
	(void)err;
	(*count)++;
	return 0;
}

static int first_to_discard(void *arg, const struct listing_graph *graph, struct err **err)
{
	char **ret = arg;

	(void)err;
	if (!graph->kind->placed || graph->roles & ROLE_LOCK)
		return 0;
	*ret = mem_copy(graph->key);
	return 1;
}

/* Discarded graphs will be compiled again, and of the rest nothing is touched. */
static void check_discard(struct memory_store *store)
{
	const struct compile_kind *kind = compile_kind_find("neuron");
	AUTO(sb_release) struct sb hold = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *graph = NULL;
	json_auto_t *removed = NULL;
	struct listing_graph left = { 0 };
	size_t before = store->count;

	MUST(listing_each(&store->base, kind, first_to_discard, &graph, &err) == 0);
	if (!graph)
		return;
	MUST(entry_discard(&store->base, kind, graph, &removed, &err) == 0);
	MUST(store->count + json_array_size(removed) == before);
	if (listing_find(&store->base, kind, graph, &left, &hold, &err) == 1)
		MUST(left.state == ENTRY_TODO || left.state == ENTRY_MISSING);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memory_store *store = memory_store_new();
	struct store *base = &store->base;
	AUTO(err_freep) struct err *err = NULL;
	const struct compile_kind *kind;
	size_t all, by_kind = 0, graphs = 0;

	cache_fill(store, (struct span){ (const char *)data, size });
	for (size_t i = 0; i < store->count; i++)
		check_object(store->objects[i].key);
	all = check_listing(store, NULL);
	for (size_t n = 0; (kind = compile_kind_at(n)); n++)
		by_kind += check_listing(store, kind);
	MUST(all == by_kind);
	MUST(listing_each(base, NULL, count_graph, &graphs, &err) == 0);
	check_told(store, graphs);
	check_discard(store);
	store_freep(&base);
	return 0;
}
