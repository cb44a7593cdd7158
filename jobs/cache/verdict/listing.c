/* Lists the content of a cache: see listing.h. */
#include "jobs/cache/verdict/listing.h"

#include <string.h>

#include "jobs/base/fs/fs.h"

/* A listing in progress: the objects of one graph follow each other in key
 * order, so only one graph is in memory. */
struct listing_walk {
	const struct compile_kind *kind; /* kind to list; NULL: any */
	listing_fn fn;
	void *arg;
	struct listing_graph graph; /* with its strings in the members below */
	struct sb key, path;
	char tag[STORE_TAG];
	bool open;
};

static int finish_graph(struct listing_walk *walk, struct err **err)
{
	struct listing_graph *graph = &walk->graph;

	if (!walk->open)
		return 0;
	walk->open = false;
	graph->key = walk->key.text;
	graph->path = walk->path.text;
	graph->tag = walk->tag;
	graph->state = graph->kind->state(graph->roles, graph->size);
	return walk->fn(walk->arg, graph, err);
}

static const struct compile_kind *classify(const struct compile_kind *only, const char *key,
					   struct entry_object *ret)
{
	const struct compile_kind *kind = only;

	for (size_t n = 0; only ? n == 0 : (kind = compile_kind_at(n)) != NULL; n++)
		if (kind->object(key, ret))
			return kind;
	return NULL;
}

static int walk_object(void *arg, const struct store_object *object, struct err **err)
{
	struct listing_walk *walk = arg;
	struct listing_graph *graph = &walk->graph;
	struct entry_object entry;
	const struct compile_kind *kind = NULL;
	int done;

	if (strncmp(object->key, LOCK_PREFIX, strlen(LOCK_PREFIX)) != 0)
		kind = classify(walk->kind, object->key, &entry);
	if (!kind)
		return 0;
	if (!walk->open || graph->kind != kind || walk->key.len != entry.graph.len ||
	    memcmp(walk->key.text, entry.graph.text, entry.graph.len) != 0) {
		done = finish_graph(walk, err);
		if (done != 0)
			return done;
		*graph = (struct listing_graph){ .kind = kind };
		walk->open = true;
		walk->tag[0] = '\0';
		sb_clear(&walk->key);
		sb_add(&walk->key, entry.graph.text, entry.graph.len);
		sb_clear(&walk->path);
		sb_adds(&walk->path, object->key);
	}
	graph->roles |= entry.role;
	graph->bytes += object->size;
	if (graph->modified.ms < object->modified.ms)
		graph->modified = object->modified;
	if (entry.role == ROLE_COMPILED) {
		graph->size = object->size;
		memcpy(walk->tag, object->tag, sizeof walk->tag);
		sb_clear(&walk->path);
		sb_adds(&walk->path, object->key);
	}
	return 0;
}

/* Like listing_each, for the objects with a prefix. */
static int each_below(struct store *store, const char *prefix, const struct compile_kind *kind,
		      listing_fn fn, void *arg, struct err **err)
{
	struct listing_walk walk = {
		.kind = kind, .fn = fn, .arg = arg, .key = SB_INIT, .path = SB_INIT
	};
	int done = store_list(store, prefix, walk_object, &walk, err);

	/* A stopped listing has nothing open: its last graph was just finished. */
	if (done >= 0)
		done = finish_graph(&walk, err);
	sb_release(&walk.key);
	sb_release(&walk.path);
	return done < 0 ? -1 : 0;
}

int listing_each(struct store *store, const struct compile_kind *kind, listing_fn fn, void *arg,
		 struct err **err)
{
	return each_below(store, "", kind, fn, arg, err);
}

/* A search for one graph by listing. */
struct listing_search {
	struct store *store;
	const struct compile_kind *kind;
	const char *graph;
	struct listing_graph *ret;
	struct sb *hold;
	bool found;
};

/* Copies key, path and tag into `hold`, one after the other, each with its NUL. */
static void hold_strings(struct listing_graph *ret, struct sb *hold)
{
	const char *const parts[] = { ret->key, ret->path, ret->tag };
	size_t path, tag;

	sb_clear(hold);
	sb_add(hold, parts[0], strlen(parts[0]) + 1);
	path = hold->len;
	sb_add(hold, parts[1], strlen(parts[1]) + 1);
	tag = hold->len;
	sb_add(hold, parts[2], strlen(parts[2]) + 1);
	ret->key = hold->text;
	ret->path = hold->text + path;
	ret->tag = hold->text + tag;
}

static int compare_graph(void *arg, const struct listing_graph *graph, struct err **err)
{
	struct listing_search *search = arg;

	(void)err;
	if (strcmp(graph->key, search->graph) != 0)
		return 0;
	*search->ret = *graph;
	hold_strings(search->ret, search->hold);
	search->found = true;
	return 1;
}

static int find_below(struct listing_search *search, const char *graph, struct err **err)
{
	AUTO(auto_free) char *prefix = search->kind->prefix(graph);
	const char *whole = search->graph;
	int done;

	if (!prefix)
		return 0;
	search->graph = graph;
	done = each_below(search->store, prefix, search->kind, compare_graph, search, err);
	search->graph = whole;
	return done;
}

/* Looks for the graph in one place. If several places have it, one in which it is not done takes
 * precedence. */
static int try_place(void *arg, const char *name, struct err **err)
{
	struct listing_search *search = arg;
	AUTO(auto_free) char *graph = mem_format("%s/%s", name, search->graph);

	if (find_below(search, graph, err) < 0)
		return -1;
	return search->found && search->ret->state != ENTRY_DONE;
}

static int find_by_prefix(struct listing_search *search, struct err **err)
{
	if (find_below(search, search->graph, err) < 0)
		return -1;
	if (!search->found && search->kind->placed && !strchr(search->graph, '/') &&
	    store_folders(search->store, "", try_place, search, err) < 0)
		return -1;
	return search->found;
}

int listing_find(struct store *store, const struct compile_kind *kind, const char *graph,
		 struct listing_graph *ret, struct sb *ret_hold, struct err **err)
{
	struct listing_search search = { store, kind, graph, ret, ret_hold, false };
	AUTO(auto_free) char *path = NULL;
	struct store_object object;
	int found;

	if (kind->prefix)
		return find_by_prefix(&search, err);
	if (!kind->path) {
		if (listing_each(store, kind, compare_graph, &search, err) < 0)
			return -1;
		return search.found;
	}
	path = kind->path(graph);
	if (strlen(path) > FS_NAME_MAX)
		return 0;
	found = store_stat(store, path, &object, err);
	if (found <= 0)
		return found;
	*ret = (struct listing_graph){
		.kind = kind,
		.key = graph,
		.path = path,
		.size = object.size,
		.bytes = object.size,
		.modified = object.modified,
		.tag = object.tag,
		.roles = ROLE_COMPILED,
		.state = kind->state(ROLE_COMPILED, object.size),
	};
	hold_strings(ret, ret_hold);
	return 1;
}
