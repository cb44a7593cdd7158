/* Deletes old graphs from a cache: see gc.h. */
#include "jobs/cache/gc.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/cache/manifest/compile_manifest_file.h"
#include "jobs/cache/manifest/key_claim.h"
#include "jobs/cache/verdict/entry.h"

#define OBJECTS_MAX 4096 /* objects of one graph; no kind has nearly as many */

struct gc {
	struct store *store;
	const struct gc_options *options;
	listing_row_fn fn;
	void *arg;
	json_t *named;                /* paths and keys of the graphs of all manifests */
	char locks_state[SHA256_HEX]; /* digest of the manifests that `named` was made from */
	struct gc_sum sum;
};

/* An object of a graph, from the second look. */
struct gc_part {
	char *key;
	unsigned role;
};

/* A graph as it is now. */
struct gc_objects {
	const struct compile_kind *kind;
	const char *graph; /* key of the graph */
	struct gc_part *parts;
	size_t count;
	uint64_t bytes;
	struct utc modified; /* the newest part */
	bool unknown;        /* holds an object of unknown form */
	bool compiling;
};

static void objects_clear(struct gc_objects *objects)
{
	for (size_t i = 0; i < objects->count; i++)
		free(objects->parts[i].key);
	free(objects->parts);
}

/* --- graphs named by manifests --- */

static int digest_lock(void *arg, const struct store_object *object, struct err **err)
{
	(void)err;
	if (key_claim_is(object->key))
		return 0; /* a claim changes all the time, and names no graph */
	hash_sha256_add(arg, object->key, strlen(object->key) + 1);
	hash_sha256_add(arg, object->tag, strlen(object->tag) + 1);
	return 0;
}

/* A digest that changes with any manifest. */
static int locks_state(struct store *store, char hex[SHA256_HEX], struct err **err)
{
	AUTO(hash_sha256_freep) struct sha256 *sha = hash_sha256_new();

	if (store_list(store, LOCK_PREFIX, digest_lock, sha, err) < 0)
		return err_wrap(err, "cannot list the compile manifests");
	hash_sha256_end(TAKE(sha), hex);
	return 0;
}

static int refuse_damaged(const struct compile_manifest_set *set, const struct store *store,
			  struct err **err)
{
	size_t count = json_array_size(set->damaged);
	const json_t *first = json_array_get(set->damaged, 0);

	if (set->count + count >= LOCKS_MAX)
		return err_set(err, EXIT_GATE,
			       "'%s' has too many compile manifests to know what they name",
			       store_url(store));
	if (count == 0)
		return 0;
	if (count == 1)
		err_set(err, EXIT_GATE, "cannot read the compile manifest '%s': %s",
			js_str(first, "lock"), js_str(first, "what"));
	else
		err_set(err, EXIT_GATE,
			"cannot read %zu compile manifests, the first of them '%s': %s", count,
			js_str(first, "lock"), js_str(first, "what"));
	return err_hint(err,
			"use the version of stoker that wrote the manifest, or remove the manifest "
			"from '%s' if no spec needs it; the next run of its spec writes a new one",
			store_url(store));
}

/* Read the manifests again if they have changed. The digest is taken first: a manifest written
 * meanwhile makes it differ the next time. */
static int refresh_locks(struct gc *gc, struct err **err)
{
	AUTO(compile_manifest_set_clear) struct compile_manifest_set set = { 0 };
	char state[SHA256_HEX];

	if (locks_state(gc->store, state, err) < 0)
		return -1;
	if (gc->named && strcmp(state, gc->locks_state) == 0)
		return 0;
	if (compile_manifest_set_load(gc->store, &set, err) < 0 ||
	    refuse_damaged(&set, gc->store, err) < 0)
		return -1;
	json_decref(gc->named);
	gc->named = json_object();
	for (size_t i = 0; i < set.count; i++)
		for (size_t n = 0; n < set.locks[i]->count; n++) {
			const struct manifest_graph *graph = &set.locks[i]->graphs[n];

			json_object_set_new_nocheck(gc->named, graph->path, json_true());
			json_object_set_new_nocheck(gc->named, graph->key, json_true());
		}
	gc->sum.locks = (int64_t)set.count;
	memcpy(gc->locks_state, state, sizeof state);
	return 0;
}

static bool is_named(const struct gc *gc, const struct listing_graph *graph)
{
	return json_object_get(gc->named, graph->key) || json_object_get(gc->named, graph->path);
}

/* --- the second look at one graph --- */

static bool is_young(const struct gc *gc, struct utc modified)
{
	int64_t older_ms = gc->options->older_ms;

	return modified.ms >
	       gc->options->now.ms - (older_ms > GC_AGE_LEAST ? older_ms : GC_AGE_LEAST);
}

static int note_object(void *arg, const struct store_object *object, unsigned role,
		       struct err **err)
{
	struct gc_objects *objects = arg;

	(void)err;
	if (role == 0 || objects->count == OBJECTS_MAX) {
		objects->unknown = true;
		return 1;
	}
	objects->parts = mem_grow(objects->parts, objects->count + 1, sizeof *objects->parts);
	objects->parts[objects->count++] = (struct gc_part){ mem_copy(object->key), role };
	objects->bytes += object->size;
	objects->compiling = objects->compiling || (role & ROLE_LOCK);
	if (objects->modified.ms < object->modified.ms)
		objects->modified = object->modified;
	return 0;
}

/* --- deleting --- */

/* In a directory store, removes the folder that held only the graph. A folder that another process
 * has put files into meanwhile is kept. */
static bool remove_folder(struct store *store, const struct gc_objects *objects)
{
	const char *directory = store_directory(store);
	AUTO(auto_free)
	char *folder = objects->kind->prefix ? objects->kind->prefix(objects->graph) : NULL;
	AUTO(auto_free) char *path = NULL;

	if (!directory || !folder)
		return true;
	folder[strlen(folder) - 1] = '\0';
	path = fs_join(directory, folder);
	return rmdir(path) == 0;
}

/* Deletes the marker first, then the compiled graph that it vouches for: after an interruption, the
 * rest is not a usable graph, and is still old enough to be deleted the next time. */
static int deletion_rank(const struct gc_part *part)
{
	if (part->role & ROLE_MARKER)
		return 0;
	return part->role & ROLE_COMPILED ? 1 : 2;
}

static int delete_graph(struct gc *gc, const struct gc_objects *objects, struct err **err)
{
	for (int rank = 0; rank <= 2; rank++)
		for (size_t i = 0; i < objects->count; i++)
			if (deletion_rank(&objects->parts[i]) == rank &&
			    store_delete(gc->store, objects->parts[i].key, err) < 0)
				return err_wrap(err, "cannot remove the graph '%s'",
						objects->graph);
	if (!remove_folder(gc->store, objects))
		gc->sum.folders_left = true;
	return 0;
}

/* --- judging --- */

/* Judges by the listing alone. */
static enum gc_fate fate_by_listing(const struct gc *gc, const struct listing_graph *graph)
{
	if (is_named(gc, graph))
		return GC_NAMED;
	if (is_young(gc, graph->modified))
		return GC_YOUNG;
	if (graph->state == ENTRY_LOCKED || (graph->roles & ROLE_LOCK))
		return GC_COMPILING;
	return GC_GOES;
}

/* Judges by the objects that are there now. */
static enum gc_fate fate_by_objects(const struct gc *gc, const struct gc_objects *objects)
{
	if (objects->unknown)
		return GC_UNKNOWN;
	if (objects->count == 0)
		return GC_VANISHED;
	if (objects->compiling)
		return GC_COMPILING;
	return is_young(gc, objects->modified) ? GC_YOUNG : GC_GOES;
}

static const char *why_it_stays(enum gc_fate fate)
{
	if (fate == GC_COMPILING)
		return "a lock file of the compiler exists";
	return "an entry has no known form";
}

static int report_row(const struct gc *gc, const struct listing_graph *graph, enum gc_fate fate,
		      struct err **err)
{
	const char *action = gc->options->remove ? "removed" : "remove";
	char modified[UTC_TEXT];
	json_t *row;

	if (fate != GC_GOES && fate != GC_COMPILING && fate != GC_UNKNOWN)
		return 0;
	row = json_object();
	js_put(row, "graph", js_text(graph->key, strlen(graph->key)));
	js_put_str(row, "kind", graph->kind->name);
	js_put(row, "path", js_text(graph->path, strlen(graph->path)));
	js_put_str(row, "state", compile_kind_entry_state_name(graph->state));
	js_put(row, "size_bytes", json_integer((json_int_t)graph->bytes));
	js_put_str(row, "modified", clock_utc_format(graph->modified, modified));
	js_put_str(row, "action", fate == GC_GOES ? action : "keep");
	if (fate != GC_GOES)
		js_put_str(row, "why", why_it_stays(fate));
	return gc->fn(gc->arg, row, err);
}

static int consider(void *arg, const struct listing_graph *listed, struct err **err)
{
	struct gc *gc = arg;
	struct listing_graph graph = *listed;
	AUTO(objects_clear) struct gc_objects objects = { .kind = graph.kind, .graph = graph.key };
	enum gc_fate fate = fate_by_listing(gc, &graph);

	if (fate == GC_GOES) {
		if (entry_each(gc->store, objects.kind, objects.graph, note_object, &objects, err) <
		    0)
			return -1;
		fate = fate_by_objects(gc, &objects);
		graph.bytes = objects.bytes;
		graph.modified = objects.modified;
	}
	if (fate == GC_GOES && gc->options->remove) {
		if (refresh_locks(gc, err) < 0)
			return -1;
		if (is_named(gc, &graph))
			fate = GC_NAMED;
		else if (delete_graph(gc, &objects, err) < 0)
			return -1;
	}
	gc->sum.graphs[fate]++;
	if (fate == GC_GOES)
		gc->sum.bytes += graph.bytes;
	return report_row(gc, &graph, fate, err);
}

int cache_gc(struct store *store, const struct gc_options *options, listing_row_fn fn, void *arg,
	     struct gc_sum *ret, struct err **err)
{
	struct gc gc = { .store = store, .options = options, .fn = fn, .arg = arg };
	int done = refresh_locks(&gc, err);

	if (done == 0)
		done = listing_each(store, NULL, consider, &gc, err);
	json_decref(gc.named);
	*ret = gc.sum;
	return done;
}
