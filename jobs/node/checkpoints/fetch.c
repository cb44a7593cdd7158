/* Fetches what lies in a store to this node: see fetch.h. */
#include "jobs/node/checkpoints/fetch.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/cache/kinds/compile_kind.h"
#include "jobs/cache/manifest/compile_manifest.h"
#include "jobs/checkpoint/pin.h"
#include "jobs/data/data.h"
#include "jobs/node/checkpoints/cache_push.h"
#include "jobs/node/checkpoints/resume.h"
#include "jobs/node/setup/network.h"
#include "jobs/store/sync.h"

static bool waits_for_peers(const struct agent_config *config)
{
	return config->nodes > 1 && config->platform.host_count > 0;
}

static int wait_for_peers(const struct agent_config *config, struct err **err)
{
	int64_t wait_ms =
		config->claim_wait_ms < PEERS_WAIT_MS ? config->claim_wait_ms : PEERS_WAIT_MS;

	return waits_for_peers(config) ? network_wait(config->platform.hosts,
						      config->platform.host_count, wait_ms, err)
				       : 0;
}

/* Folders of models, by what they are for. */
static const char *const models[] = { "parent", "candidate", "baseline" };

bool fetch_needed(const struct agent_config *config)
{
	const char *url = agent_config_resumed_url(config);
	AUTO(auto_free) char *cache = agent_config_cache(config);

	return cache || (url && url[0] != '/') || config->order->parent.url ||
	       config->order->tasks.candidate.url || config->order->tasks.baseline.url ||
	       config->order->data_manifest || waits_for_peers(config) || resume_needed(config);
}

void fetch_discard(const struct agent_config *config)
{
	AUTO(auto_free) char *resume = fs_join(config->dir, "resume");
	AUTO(auto_free) char *cache = fs_join(config->dir, "cache");
	AUTO(auto_free) char *data = fs_join(config->dir, "data");
	AUTO(err_freep) struct err *ignored = NULL;

	/* A failed removal costs space, nothing else. */
	if (fs_remove_tree(resume, &ignored) < 0)
		err_freep(&ignored);
	if (fs_remove_tree(data, &ignored) < 0)
		err_freep(&ignored);
	for (size_t i = 0; i < STK_LENGTH(models); i++) {
		AUTO(auto_free) char *folder = fs_join(config->dir, models[i]);

		if (fs_remove_tree(folder, &ignored) < 0)
			err_freep(&ignored);
	}
	(void)!fs_remove_tree(cache, &ignored);
}

/* ---- the checkpoint ---- */

static int fetch_checkpoint(const struct agent_config *config, struct err **err)
{
	const char *url = agent_config_resumed_url(config);
	AUTO(checkpoint_mark_release) struct ckpt_mark mark = { 0 };
	AUTO(store_freep) struct store *store = NULL;
	AUTO(auto_free) char *root_url = NULL;
	AUTO(auto_free) char *folder = NULL;
	AUTO(auto_free) char *why = NULL;
	struct ckpt_root root = { .path = "" };
	int there;

	if (!url || url[0] == '/')
		return 0;
	root_url = fs_dirname(url);
	folder = fs_join(config->dir, "resume");
	if (store_open(root_url, &store, err) < 0)
		return -1;
	root.store = store;
	there = checkpoint_mark_read(&root, fs_basename(url), &mark, err);
	if (there > 0)
		there = checkpoint_fetch(&mark, folder, &why, err);
	if (there == 0)
		return err_set(err, EXIT_UNREACHABLE, "cannot resume from '%s': %s", url,
			       why ? why : "the mark is gone");
	return there < 0 ? -1 : 0;
}

/* ---- the data ---- */

static int fetch_data(const struct agent_config *config, struct err **err)
{
	const struct order *order = config->order;
	AUTO(auto_free) char *path = agent_config_data_manifest(config);
	AUTO(auto_free) char *folder = agent_config_data_dir(config);
	AUTO(auto_free) char *manifest = NULL;

	if (!path)
		return 0;
	if (data_fetch_manifest(order->data_manifest, path, &manifest, err) < 0)
		return -1;
	/* Each shard brings its own. */
	if (!folder || order->tasks.shards > 0)
		return 0;
	/* The files of an earlier start may be of another manifest. */
	if (fs_remove_tree(folder, err) < 0 ||
	    data_fetch_objects(manifest, order->data_base, folder, err) < 0)
		return err_wrap(err, "cannot fetch the data");
	return 0;
}

/* ---- models ---- */

/* Brings a model of the order into a folder of this node, and proves it. */
static int fetch_model(const struct agent_config *config, const struct order_model *model,
		       const char *name, struct err **err)
{
	const struct ckpt_kind *kind = checkpoint_kind_find(model->kind ? model->kind : "auto");
	AUTO(auto_free) char *folder = fs_join(config->dir, name);
	AUTO(checkpoint_pin_release) struct ckpt_pin pin = { 0 };
	AUTO(store_freep) struct store *workspace = NULL;
	AUTO(auto_free) char *path = NULL;
	int pinned;

	if (!model->url)
		return 0;
	if (!kind)
		return err_set(err, EXIT_DEFECT, "the order's '%s' is of unknown kind '%s'", name,
			       model->kind);
	if (!model->digest)
		pinned = checkpoint_pin_take(model->url, kind, NULL, &pin, err);
	else if (store_open(config->workspace, &workspace, err) < 0)
		pinned = -1;
	else
		pinned = checkpoint_pin_get(workspace, model->digest, &pin, err);
	if (pinned < 0 || checkpoint_pin_fetch(&pin, folder, &path, err) < 0)
		return err_wrap(err, "cannot fetch the %s", name);
	return 0;
}

/* ---- the compile cache ---- */

struct fetch_entry {
	char *key; /* owned */
	uint64_t size;
	struct utc modified;
};

struct entries {
	struct fetch_entry *items; /* owned */
	size_t count;
	const struct compile_kind *kind;
	const struct compile_manifest *lock; /* NULL: all entries are wanted */
};

static void entries_release(struct entries *entries)
{
	for (size_t i = 0; i < entries->count; i++)
		free(entries->items[i].key);
	free(entries->items);
	*entries = (struct entries){ 0 };
}

static bool is_needed(const struct entries *entries, const char *key)
{
	struct entry_object object;

	if (strncmp(key, LOCK_PREFIX, strlen(LOCK_PREFIX)) == 0 ||
	    !entries->kind->object(key, &object) || object.role & ROLE_LOCK)
		return false;
	for (size_t i = 0; entries->lock && i < entries->lock->count; i++) {
		const char *graph = entries->lock->graphs[i].key;

		if (strlen(graph) == object.graph.len &&
		    memcmp(graph, object.graph.text, object.graph.len) == 0)
			return true;
	}
	return !entries->lock;
}

static int note_entry(void *arg, const struct store_object *object, struct err **err)
{
	struct entries *entries = arg;

	(void)err;
	if (!is_needed(entries, object->key))
		return 0;
	entries->items = mem_room(entries->items, entries->count, sizeof *entries->items);
	entries->items[entries->count++] =
		(struct fetch_entry){ mem_copy(object->key), object->size, object->modified };
	return 0;
}

static int newest_first(const void *a, const void *b)
{
	const struct fetch_entry *x = a, *y = b;

	if (x->modified.ms != y->modified.ms)
		return x->modified.ms > y->modified.ms ? -1 : 1;
	return strcmp(x->key, y->key);
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct fetch_entry *)a)->key, ((const struct fetch_entry *)b)->key);
}

/* Keeps the newest entries up to PRELOAD_MAX bytes, sorted by key. */
static void choose_entries(struct entries *entries)
{
	uint64_t bytes = 0;
	size_t left = 0;

	if (entries->count)
		qsort(entries->items, entries->count, sizeof *entries->items, newest_first);
	while (left < entries->count && bytes < PRELOAD_MAX)
		bytes += entries->items[left++].size;
	while (entries->count > left)
		free(entries->items[--entries->count].key);
	if (entries->count)
		qsort(entries->items, entries->count, sizeof *entries->items, by_key);
}

static enum sync_stage is_chosen(void *arg, const char *key)
{
	const struct entries *entries = arg;
	const struct fetch_entry like = { .key = (char *)key };

	return entries->count && bsearch(&like, entries->items, entries->count, sizeof like, by_key)
		       ? SYNC_AT_ONCE
		       : SYNC_NOT;
}

/* An entry that has vanished meanwhile, or is not a valid file name here, is compiled again. */
static int copy_entries(struct store *cache, const char *folder, struct entries *entries,
			struct err **err)
{
	const struct sync_options options = { .stage = is_chosen, .arg = entries };
	AUTO(store_freep) struct store *local = NULL;
	struct sync_sum sum;

	choose_entries(entries);
	if (entries->count == 0)
		return 0;
	if (store_open(folder, &local, err) < 0)
		return -1;
	return sync_run(cache, local, &options, &sum, err);
}

/* Uploads what an earlier start of this job left in the folder, in case it never did, and removes
 * the folder: a killed compiler may have left cut files. */
static int save_rest(const struct agent_config *config, const char *folder, struct err **err)
{
	AUTO(cache_push_freep) struct cache_push *push = NULL;
	AUTO(err_freep) struct err *ignored = NULL;

	if (!fs_is_dir(folder))
		return 0;
	if (cache_push_open(config, &push, &ignored) == 0)
		(void)!cache_push_scan(push, true, NULL, NULL, &ignored);
	return fs_remove_tree(folder, err);
}

static int fetch_entries(const struct agent_config *config, struct err **err)
{
	const struct order_compile *compile = &config->order->compile;
	const char *key = compile->lock, *url = compile->cache;
	AUTO(auto_free) char *folder = agent_config_cache(config);
	AUTO(compile_manifest_freep) struct compile_manifest *lock = NULL;
	AUTO(entries_release)
	struct entries entries = { .kind = agent_config_compile_kind(config) };
	AUTO(store_freep) struct store *cache = NULL;
	AUTO(auto_free) char *damage = NULL;

	if (!folder)
		return 0;
	if (save_rest(config, folder, err) < 0 || fs_mkdirs(folder, err) < 0 ||
	    store_open(url, &cache, err) < 0 ||
	    (key && compile_manifest_load(cache, key, &lock, &damage, err) < 0))
		return err_wrap(err, "cannot fetch the compile cache");
	entries.lock = lock;
	if (store_list(cache, "", note_entry, &entries, err) < 0 ||
	    copy_entries(cache, folder, &entries, err) < 0)
		return err_wrap(err, "cannot fetch the compile cache '%s'", url);
	return 0;
}

int fetch_all(const struct agent_config *config, struct err **err)
{
	const struct order *order = config->order;

	if (fetch_model(config, &order->parent, models[0], err) < 0 ||
	    fetch_model(config, &order->tasks.candidate, models[1], err) < 0 ||
	    fetch_model(config, &order->tasks.baseline, models[2], err) < 0 ||
	    resume_agree(config, err) < 0 || fetch_checkpoint(config, err) < 0 ||
	    fetch_entries(config, err) < 0 || fetch_data(config, err) < 0)
		return -1;
	return wait_for_peers(config, err);
}
