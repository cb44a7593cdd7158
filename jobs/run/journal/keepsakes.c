/* Finds data that only the folders of a run hold: see keepsakes.h. */
#include "jobs/run/journal/keepsakes.h"

#include <dirent.h>
#include <errno.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/store/order.h"

#define TRAIN   "train-"
#define OUTPUTS "outputs/" /* order_outputs() */

/* Arguments of one search. */
struct keepsakes_search {
	const json_t *plan;
	const char *run;
	const char *root;    /* the folder; NULL for objects */
	struct store *store; /* the objects, or the store of the folder; NULL if absent */
	json_t *ret;
};

static json_t *add_keepsake(const struct keepsakes_search *search, const char *what, char *url,
			    const char *key)
{
	json_t *one = json_object();

	js_put_str(one, "what", what);
	js_put_str(one, "url", url);
	js_put(one, "files", json_integer(0));
	js_put(one, "size_bytes", json_integer(0));
	js_put(one, "keys", json_pack("[s]", key));
	json_array_append_new(search->ret, one);
	free(url);
	return one;
}

static void count_files(json_t *one, uint64_t files, uint64_t bytes)
{
	js_put(one, "files", json_integer(js_int(one, "files", 0) + (json_int_t)files));
	js_put(one, "size_bytes", json_integer(js_int(one, "size_bytes", 0) + (json_int_t)bytes));
}

/* The number after "train-"; 0 if the name has another form. */
static int64_t attempt_of(const char *name)
{
	char *end;
	long long number;

	if (!text_starts(name, TRAIN))
		return 0;
	number = strtoll(name + strlen(TRAIN), &end, 10);
	return number > 0 && *end == '\0' ? number : 0;
}

/* ---- copies ----------------------------------------------------------------------- */

static bool holds(const struct ckpt_root *root, const char *name)
{
	AUTO(checkpoint_mark_release) struct ckpt_mark mark = { 0 };
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_free) char *why = NULL;

	return checkpoint_mark_read(root, name, &mark, &ignored) > 0 &&
	       checkpoint_mark_holds(&mark, &why, &ignored) > 0;
}

/* Looks beneath checkpoint.url. A copy that cannot be checked now does not count. */
static bool has_copy(const struct keepsakes_search *search, const char *name, int64_t attempt)
{
	const char *url = js_str(json_object_get(search->plan, "checkpoint"), "url");
	AUTO(store_freep) struct store *store = NULL;
	AUTO(err_freep) struct err *ignored = NULL;
	AUTO(auto_free) char *path = NULL;

	if (!url)
		return false;
	if (url[0] == '/') {
		path = mem_format("%s/%s/attempt-%lld", url, search->run, (long long)attempt);
		return holds(&(struct ckpt_root){ .path = path, .attempt = attempt }, name);
	}
	path = mem_format("%s/attempt-%lld/", search->run, (long long)attempt);
	return store_open(url, &store, &ignored) == 0 &&
	       holds(&(struct ckpt_root){ .path = path, .attempt = attempt, .store = store }, name);
}

/* Looks among the objects of the workspace that this folder goes with. */
static bool has_twin(const struct keepsakes_search *search, const char *name, int64_t attempt)
{
	AUTO(auto_free)
	char *path =
		mem_format("runs/%s/" TRAIN "%lld/checkpoints/", search->run, (long long)attempt);

	return search->root && search->store &&
	       holds(&(struct ckpt_root){ .path = path,
					  .attempt = attempt,
					  .store = search->store },
		     name);
}

/* ---- data in folders -------------------------------------------------------------- */

/* 1, 0, or -1: what cannot be looked at may hold the only copy. A link to a folder does not
 * count. */
static int is_folder(const char *path, struct err **err)
{
	struct stat st;

	if (lstat(path, &st) == 0)
		return S_ISDIR(st.st_mode);
	if (errno == ENOENT || errno == ENOTDIR)
		return 0;
	return fs_error(err, errno, "cannot look at '%s'", path);
}

static const struct ckpt_kind *kind_of_plan(const json_t *plan)
{
	const char *name = js_str(json_object_get(plan, "checkpoint"), "kind");
	const struct ckpt_kind *kind = name ? checkpoint_kind_find(name) : NULL;

	return kind ? kind : checkpoint_kind_find("auto");
}

/* 1, 0, or -1: a file that cannot be read for now makes no incomplete checkpoint of one that was
 * marked. */
static int is_complete(const struct ckpt *ckpt, const char *folder, int64_t attempt,
		       struct err **err)
{
	const struct ckpt_root root = { .path = folder, .attempt = attempt };
	AUTO(checkpoint_mark_release) struct ckpt_mark mark = { 0 };
	AUTO(auto_free) char *why = NULL;
	int there;

	if (ckpt->complete)
		return 1;
	there = checkpoint_mark_read(&root, ckpt->name, &mark, err);
	return there <= 0 ? there : checkpoint_mark_holds(&mark, &why, err);
}

static int find_checkpoints(const struct keepsakes_search *search, const char *key, int64_t attempt,
			    struct err **err)
{
	AUTO(auto_free)
	char *folder = mem_format("%s/runs/%s/%s", search->root, search->run, key);
	AUTO(checkpoint_list_release) struct ckpt_list list = { 0 };

	if (checkpoint_find(folder, kind_of_plan(search->plan), &list, err) < 0)
		return -1;
	for (size_t i = 0; i < list.count; i++) {
		const struct ckpt *ckpt = &list.items[i];
		AUTO(auto_free) char *own = NULL;
		AUTO(auto_free) char *mark = NULL;
		json_t *one;
		int complete = is_complete(ckpt, folder, attempt, err);

		if (complete < 0)
			return -1;
		if (complete == 0 || has_copy(search, ckpt->name, attempt) ||
		    has_twin(search, ckpt->name, attempt))
			continue;
		own = mem_format("%s/%s", key, ckpt->name);
		mark = mem_format("%s" MARK_SUFFIX, own);
		one = add_keepsake(search, "checkpoint", mem_copy(ckpt->path), own);
		js_put(one, "step", json_integer(ckpt->step));
		json_array_append_new(json_object_get(one, "keys"), json_string(mark));
		count_files(one, ckpt->files, ckpt->bytes);
	}
	return 0;
}

/* Files of a node beneath outputs/train-N/ of the workspace: {relative path: bytes}. */
struct uploaded {
	const char *prefix;
	json_t *sizes;
};

static int add_uploaded(void *arg, const struct store_object *object, struct err **err)
{
	const struct uploaded *uploaded = arg;
	const char *rest = object->key + strlen(uploaded->prefix), *at = strchr(rest, '/');

	(void)err;
	/* A later start has its own folder, see task_outputs_key(); the prefix of node-1 also
	 * matches node-10, which is skipped. */
	if (at && (at == rest || text_starts(rest, ".restart-")))
		js_put(uploaded->sizes, at + 1, json_integer((json_int_t)object->size));
	return 0;
}

/* True if every file of the folder was uploaded to the workspace. Links are not uploaded. */
static bool all_there(const char *folder, const json_t *sizes)
{
	char *const roots[] = { (char *)(uintptr_t)folder, NULL };
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	const FTSENT *entry;
	bool all = tree != NULL;

	while (all && (errno = 0, entry = fts_read(tree))) {
		const char *path = entry->fts_path + strlen(folder);

		if (entry->fts_info == FTS_ERR || entry->fts_info == FTS_DNR ||
		    entry->fts_info == FTS_NS)
			all = false;
		else if (entry->fts_info == FTS_F && S_ISREG(entry->fts_statp->st_mode))
			all = *path == '/' &&
			      js_int(sizes, path + 1, -1) == (int64_t)entry->fts_statp->st_size;
	}
	all = all && errno == 0;
	if (tree)
		fts_close(tree);
	return all;
}

/* The agent leaves its folder as it is once all of it was uploaded to the workspace. */
static bool was_uploaded(const struct keepsakes_search *search, const char *folder, int64_t attempt,
			 const char *node)
{
	AUTO(auto_free)
	char *prefix = mem_format("runs/%s/" OUTPUTS TRAIN "%lld/%s", search->run,
				  (long long)attempt, node);
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *sizes = json_object();
	struct uploaded uploaded = { prefix, sizes };

	return search->store &&
	       store_list(search->store, prefix, add_uploaded, &uploaded, &ignored) == 0 &&
	       all_there(folder, sizes);
}

static int keep_output(const struct keepsakes_search *search, const char *key, char *folder,
		       struct err **err)
{
	AUTO(auto_free) char *url = folder;
	uint64_t files, bytes;

	if (fs_measure(folder, &files, &bytes, err) < 0)
		return -1;
	if (files > 0)
		count_files(add_keepsake(search, "output", TAKE(url), key), files, bytes);
	return 0;
}

/* Looks at the folder of an attempt: of one node, or common to all nodes. */
static int search_attempt(const struct keepsakes_search *search, const char *key, int64_t attempt,
			  struct err **err)
{
	AUTO(auto_free) char *own = mem_format("%s/runs/%s/%s", search->root, search->run, key);
	AUTO(auto_free) char *checkpoints = fs_join(key, "checkpoints");
	AUTO(auto_free) char *output = fs_join(key, "output");
	AUTO(auto_free) char *folder = fs_join(own, "output");
	AUTO(auto_free) char *saved = fs_join(own, "checkpoints");

	int there = is_folder(saved, err);

	if (there < 0 || (there && find_checkpoints(search, checkpoints, attempt, err) < 0))
		return -1;
	there = is_folder(folder, err);
	if (there <= 0)
		return there;
	if (was_uploaded(search, folder, attempt, fs_basename(key)))
		return 0;
	return keep_output(search, output, TAKE(folder), err);
}

/* Finds the folders in a folder with a name prefix: NULL-terminated, sorted; none if there is no
 * such folder. */
static int folders_in(const char *folder, const char *prefix, char ***ret, struct err **err)
{
	struct dirent **entries;
	int found = scandir(folder, &entries, NULL, versionsort), result = 0;
	size_t n = 0;

	*ret = mem_zero(1, sizeof **ret);
	if (found < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : fs_error(err, errno, "cannot list '%s'", folder);
	for (int i = 0; i < found; i++) {
		AUTO(auto_free) char *path = fs_join(folder, entries[i]->d_name);
		int is = result == 0 && text_starts(entries[i]->d_name, prefix)
				 ? is_folder(path, err)
				 : 0;

		if (is > 0)
			auto_strv_add(ret, &n, entries[i]->d_name);
		else if (is < 0)
			result = -1;
		free(entries[i]);
	}
	free(entries);
	return result;
}

/* In a workspace that is a directory the outputs of all attempts are beneath outputs/. */
static int find_outputs(const struct keepsakes_search *search, const char *folder, struct err **err)
{
	AUTO(auto_free) char *above = fs_join(folder, "outputs");
	AUTO(auto_strv) char **attempts = NULL;
	int there = is_folder(above, err);

	if (there <= 0)
		return there;
	if (folders_in(above, "", &attempts, err) < 0)
		return -1;
	for (char **name = attempts; *name; name++) {
		AUTO(auto_free) char *key = mem_format(OUTPUTS "%s", *name);

		if ((*name)[0] != '.' && keep_output(search, key, fs_join(above, *name), err) < 0)
			return -1;
	}
	return 0;
}

/* Looks at the folder of an attempt, and at those of its nodes in it. */
static int search_nodes(const struct keepsakes_search *search, const char *above, const char *name,
			struct err **err)
{
	AUTO(auto_strv) char **nodes = NULL;
	int64_t attempt = attempt_of(name);

	if (attempt == 0)
		return 0;
	if (search_attempt(search, name, attempt, err) < 0 ||
	    folders_in(above, "node-", &nodes, err) < 0)
		return -1;
	for (char **node = nodes; *node; node++) {
		AUTO(auto_free) char *key = fs_join(name, *node);

		if (search_attempt(search, key, attempt, err) < 0)
			return -1;
	}
	return 0;
}

int keepsakes_in_folder(const json_t *plan, const char *root, const char *run, struct store *twin,
			json_t *ret, struct err **err)
{
	const struct keepsakes_search search = { plan, run, root, twin, ret };
	AUTO(auto_free) char *folder = mem_format("%s/runs/%s", root, run);
	AUTO(auto_strv) char **attempts = NULL;

	if (folders_in(folder, TRAIN, &attempts, err) < 0)
		return -1;
	for (char **name = attempts; *name; name++) {
		AUTO(auto_free) char *above = fs_join(folder, *name);

		if (search_nodes(&search, above, *name, err) < 0)
			return -1;
	}
	return find_outputs(&search, folder, err);
}

/* ---- among objects ----------------------------------------------------------------- */

/* "outputs/train-1" of "outputs/train-1/node-0/a/b"; NULL if the key is not an output. The caller
 * frees it. */
static char *output_of(const char *key)
{
	const char *end;

	if (!text_starts(key, OUTPUTS))
		return NULL;
	end = strchr(key + strlen(OUTPUTS), '/');
	return end ? mem_copy_n(key, (size_t)(end - key)) : mem_copy(key);
}

static json_t *with_key(json_t *ret, const char *key)
{
	json_t *one;
	size_t i;

	json_array_foreach (ret, i, one)
		if (strcmp(json_string_value(json_array_get(json_object_get(one, "keys"), 0)),
			   key) == 0)
			return one;
	return NULL;
}

static int add_output(void *arg, const struct store_object *object, struct err **err)
{
	const struct keepsakes_search *search = arg;
	const char *own = object->key + strlen("runs/") + strlen(search->run) + 1;
	AUTO(auto_free) char *key = output_of(own);
	json_t *one = key ? with_key(search->ret, key) : NULL;

	(void)err;
	if (!key)
		return 0;
	if (!one)
		one = add_keepsake(
			search, "output",
			mem_format("%s/runs/%s/%s", store_url(search->store), search->run, key),
			key);
	count_files(one, 1, object->size);
	return 0;
}

static int add_attempt(void *arg, const char *name, struct err **err)
{
	const struct keepsakes_search *search = arg;
	int64_t attempt = attempt_of(name);
	AUTO(auto_free)
	char *path = mem_format("runs/%s/%s/checkpoints/", search->run, name);
	const struct ckpt_root root = { .path = path, .attempt = attempt, .store = search->store };
	AUTO(checkpoint_marks_release) struct ckpt_marks marks = { 0 };

	if (attempt == 0)
		return 0;
	if (checkpoint_mark_list(&root, -1, &marks, NULL, err) < 0)
		return -1;
	for (size_t i = 0; i < marks.count; i++) {
		const struct ckpt_mark *mark = &marks.items[i];
		AUTO(auto_free) char *why = NULL;
		AUTO(auto_free) char *own = NULL;
		AUTO(auto_free) char *mark_key = NULL;
		const json_t *file;
		json_t *one;
		size_t k;
		int good = checkpoint_mark_holds(mark, &why, err);

		if (good < 0)
			return -1;
		if (good == 0 || has_copy(search, mark->name, attempt))
			continue;
		own = mem_format("%s/checkpoints/%s", name, mark->name);
		mark_key = mem_format("%s/checkpoints/marks/%s" MARK_SUFFIX, name, mark->name);
		one = add_keepsake(search, "checkpoint", mem_copy(mark->url), own);
		js_put(one, "step", json_integer(mark->step));
		json_array_append_new(json_object_get(one, "keys"), json_string(mark_key));
		json_array_foreach (mark->files, k, file)
			count_files(one, 1, (uint64_t)js_int(file, "size", 0));
	}
	return 0;
}

int keepsakes_in_store(const json_t *plan, struct store *store, const char *run, json_t *ret,
		       struct err **err)
{
	struct keepsakes_search search = { plan, run, NULL, store, ret };
	AUTO(auto_free) char *prefix = mem_format("runs/%s/", run);

	if (store_folders(store, prefix, add_attempt, &search, err) < 0)
		return -1;
	return store_list(store, prefix, add_output, &search, err);
}

/* ---- lookup by key ---------------------------------------------------------------------- */

enum keepsake_is keepsakes_have(const json_t *keepsakes, const char *key)
{
	enum keepsake_is found = KEEPSAKE_NOT;
	size_t len = strlen(key), i, k;
	const json_t *one, *word;

	json_array_foreach (keepsakes, i, one) {
		json_array_foreach (json_object_get(one, "keys"), k, word) {
			const char *kept = json_string_value(word);
			size_t kept_len = strlen(kept);

			if (strncmp(key, kept, kept_len) == 0 &&
			    (key[kept_len] == '\0' || key[kept_len] == '/'))
				return KEEPSAKE_IS;
			if (strncmp(kept, key, len) == 0 && kept[len] == '/')
				found = KEEPSAKE_ABOVE;
		}
	}
	return found;
}
