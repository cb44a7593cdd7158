/* Outputs of a task on their way to their place: see task_place.h. */
#include "jobs/node/tasks/task_place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/checkpoint/tree.h"
#include "jobs/store/store.h"
#include "jobs/store/sync.h"

static bool is_here(const struct task_place *place)
{
	return place->base[0] == '/';
}

void task_place_of(const struct agent_config *config, const struct node_task *task,
		   struct task_place *ret)
{
	const char *output = config->order->tasks.output;
	const char *outputs = config->outputs ? config->outputs : config->prefix;
	long long restart = config->restart;

	*ret = (struct task_place){ 0 };
	if (task->shard >= 0 && output)
		ret->base = mem_format("%s/%s/%lld.%lld", output, task->name,
				       (long long)config->attempt, restart);
	else if (restart > 0)
		ret->base = mem_format("%s/%s%s.restart-%lld", config->workspace, outputs,
				       task->name, restart);
	else
		ret->base = mem_format("%s/%s%s", config->workspace, outputs, task->name);
	ret->sub = node_task_is_shared(config) ? mem_format("node-%d", config->node) : mem_copy("");
	if (!is_here(ret))
		ret->folder = fs_join(config->dir, "tasks/output");
	else
		ret->folder = *ret->sub ? fs_join(ret->base, ret->sub) : mem_copy(ret->base);
}

void task_place_release(struct task_place *place)
{
	free(place->base);
	free(place->sub);
	free(place->folder);
	*place = (struct task_place){ 0 };
}

/* The folder of results may be others' too; only the umask takes rights away from them. */
int task_place_make(const struct task_place *place, struct err **err)
{
	if (fs_remove_tree(place->folder, err) < 0)
		return err_wrap(err, "cannot empty the folder for outputs");
	return fs_mkdirs_open(place->folder, is_here(place) ? 0777 : 0700, err);
}

void task_place_discard(const struct task_place *place)
{
	AUTO(err_freep) struct err *ignored = NULL;

	/* A failed removal costs space, nothing else. */
	if (place->base && !is_here(place))
		(void)!fs_remove_tree(place->folder, &ignored);
}

/* ---- one task ---- */

static int unfit(struct err **err, const char *why)
{
	err_set(err, EXIT_RUN_FAILED, "the outputs cannot be kept: %s", why);
	return err_hint(err, "let the command leave files and folders only in STOKER_OUTPUT_DIR");
}

static int list_files(const struct task_place *place, json_t **ret, struct err **err)
{
	AUTO(checkpoint_tree_release) struct checkpoint_tree tree = TREE_INIT;
	json_auto_t *files = json_array();
	int there = checkpoint_tree_read(place->folder, &tree, err);

	if (there < 0)
		return -1;
	if (there == 0 || tree.single)
		return unfit(err, "the folder is gone");
	if (tree.odd)
		return unfit(err, tree.odd);
	for (size_t i = 0; i < tree.count; i++) {
		const struct checkpoint_tree_file *file = &tree.files[i];
		AUTO(auto_close) int fd = checkpoint_tree_open(&tree, file);
		AUTO(auto_free)
		char *name = mem_format("%s%s%s", place->sub, *place->sub ? "/" : "", file->path);
		char hex[SHA256_HEX];
		json_t *row = json_object();

		json_array_append_new(files, row);
		if (fd < 0)
			return fs_error(err, errno, "cannot read the output '%s'", file->path);
		if (hash_sha256_range(fd, 0, file->size, hex, err) < 0)
			return -1;
		js_put_str(row, "file", name);
		js_put(row, "size", json_integer((json_int_t)file->size));
		js_put_str(row, "sha256", hex);
	}
	*ret = TAKE(files);
	return 0;
}

struct refusal {
	char *why; /* owned: of the first file that was not taken */
};

static void on_fate(void *arg, enum sync_fate fate, const char *key, uint64_t size, const char *why)
{
	struct refusal *refusal = arg;

	(void)size;
	if ((fate == SYNC_REFUSED || fate == SYNC_FAILED) && !refusal->why)
		refusal->why = mem_format("'%s' %s", key, why ? why : "was not taken");
}

static int upload(const struct task_place *place, struct err **err)
{
	AUTO(auto_free)
	char *url =
		*place->sub ? mem_format("%s/%s", place->base, place->sub) : mem_copy(place->base);
	AUTO(store_freep) struct store *from = NULL;
	AUTO(store_freep) struct store *to = NULL;
	struct refusal refusal = { NULL };
	const struct sync_options options = { .once = true, .on_object = on_fate, .arg = &refusal };
	AUTO(auto_free) char *why = NULL;
	struct sync_sum sum;
	int done = -1;

	if (store_open(place->folder, &from, err) == 0 && store_open(url, &to, err) == 0)
		done = sync_run(from, to, &options, &sum, err);
	why = refusal.why;
	if (done < 0)
		return err_wrap(err, "cannot upload the outputs");
	return why ? unfit(err, why) : 0;
}

int task_place_keep(const struct task_place *place, json_t **ret_files, struct err **err)
{
	json_auto_t *files = NULL;

	if (list_files(place, &files, err) < 0)
		return -1;
	if ((is_here(place) ? fs_sync_tree(place->folder, err) : upload(place, err)) < 0)
		return -1;
	*ret_files = TAKE(files);
	return 0;
}

/* ---- the whole phase ---- */

struct finish {
	const struct agent_config *config;
	const char *output; /* path or URL */
	char **kept;        /* of each task, "<task>/<attempt>.<restart>/" that has done it */
	json_t *surplus;    /* keys to delete */
	struct sb list;     /* the manifest */
};

static void finish_release(struct finish *finish)
{
	for (int64_t i = 0; finish->kept && i < node_task_count(finish->config); i++)
		free(finish->kept[i]);
	free(finish->kept);
	json_decref(finish->surplus);
	sb_release(&finish->list);
}

static int add_row(const struct finish *finish, int64_t index, const json_t *file, struct sb *out,
		   bool *first)
{
	const char *name = js_str(file, "file");
	json_auto_t *row = json_object();
	AUTO(auto_free) char *path = NULL;
	AUTO(auto_free) char *line = NULL;

	path = mem_format("%s%s", finish->kept[index], name ? name : "");
	js_put_str(row, "file", path);
	js_put(row, "size", json_incref(json_object_get(file, "size")));
	js_put(row, "sha256", json_incref(json_object_get(file, "sha256")));
	js_put(row, "shard", json_integer(index));
	line = js_line(row);
	sb_addf(out, "%s\n%s", *first ? "" : ",", line);
	*first = false;
	return out->truncated ? -1 : 0;
}

/* The folder of a task's outputs beneath the output, from the URL in its done.json. */
static char *kept_of(const struct finish *finish, const json_t *done)
{
	const char *url = js_str(done, "url");
	size_t len = strlen(finish->output);

	if (!url || strncmp(url, finish->output, len) != 0 || url[len] != '/')
		return NULL;
	return mem_format("%s/", url + len + 1);
}

/* Notes what lies in the folder of a task, but was not left by the one that has done it. What else
 * is there is not ours. */
static int note_surplus(void *arg, const struct store_object *object, struct err **err)
{
	struct finish *finish = arg;
	int64_t index = node_task_find(finish->config, object->key);
	const char *kept = index >= 0 ? finish->kept[index] : NULL;

	(void)err;
	if (kept && strncmp(object->key, kept, strlen(kept)) != 0)
		json_array_append_new(finish->surplus, js_text(object->key, strlen(object->key)));
	return 0;
}

static int delete_surplus(struct finish *finish, struct store *store, struct err **err)
{
	const char *folder = store_directory(store);
	const json_t *key;
	size_t i;

	if (store_list(store, "", note_surplus, finish, err) < 0)
		return err_wrap(err, "cannot list the outputs");
	json_array_foreach (finish->surplus, i, key)
		if (store_delete(store, json_string_value(key), err) < 0)
			return err_wrap(err, "cannot delete the outputs of a superseded attempt");
	json_array_foreach (finish->surplus, i, key) {
		/* The folder of the key, "<task>/<attempt>.<restart>", is empty now. */
		const char *text = json_string_value(key), *slash = strchr(text, '/');
		AUTO(auto_free) char *path = NULL;

		slash = slash ? strchr(slash + 1, '/') : NULL;
		if (!folder || !slash)
			continue;
		path = mem_format("%s/%.*s", folder, (int)(slash - text), text);
		if (fs_remove_tree(path, err) < 0)
			return -1;
	}
	return 0;
}

/* Makes the list of all files; sets what each task has left. */
static int make_list(struct finish *finish, task_done_fn done, void *arg, struct err **err)
{
	AUTO(auto_free)
	char *head = mem_format("{\"v\":1,\"run\":\"%s\",\"files\":[", finish->config->run);
	bool first = true;

	sb_adds(&finish->list, head);
	for (int64_t i = 0; i < node_task_count(finish->config); i++) {
		json_auto_t *body = NULL;
		json_t *file;
		size_t k;

		if (done(arg, i, &body, err) < 0)
			return -1;
		finish->kept[i] = kept_of(finish, body);
		if (!finish->kept[i])
			return err_set(err, EXIT_REFUSED,
				       "the outputs of shard %lld lie elsewhere than in '%s'",
				       (long long)i, finish->output);
		json_array_foreach (json_object_get(body, "files"), k, file)
			if (add_row(finish, i, file, &finish->list, &first) < 0)
				return err_set(err, EXIT_REFUSED,
					       "there are too many outputs for one manifest");
	}
	sb_adds(&finish->list, "\n]}\n");
	return 0;
}

/* The list gets the folder's rights: users who may list the outputs may read it. */
static int write_list(const struct finish *finish, const struct store *store, struct err **err)
{
	AUTO(auto_free) char *path = fs_join(store_directory(store), TASK_MANIFEST);
	struct stat st;

	if (stat(store_directory(store), &st) < 0)
		return fs_error(err, errno, "cannot write '%s'", path);
	return fs_write_atomic(path, finish->list.text, finish->list.len, st.st_mode & 0666, err);
}

static int upload_list(const struct finish *finish, struct store *store, struct err **err)
{
	AUTO(auto_free) char *path = fs_join(finish->config->dir, "tasks/" TASK_MANIFEST);

	if (fs_write_atomic(path, finish->list.text, finish->list.len, 0600, err) < 0)
		return -1;
	return store_upload(store, path, TASK_MANIFEST, err) < 0 ? -1 : 0;
}

int task_place_finish(const struct agent_config *config, task_done_fn done, void *arg,
		      struct err **err)
{
	AUTO(finish_release)
	struct finish finish = { .config = config,
				 .output = config->order->tasks.output,
				 .surplus = json_array(),
				 .list = SB_INIT_MAX((size_t)1 << 30) };
	AUTO(store_freep) struct store *store = NULL;

	finish.kept = mem_zero((size_t)node_task_count(config) + 1, sizeof *finish.kept);
	if (store_open(finish.output, &store, err) < 0 || make_list(&finish, done, arg, err) < 0 ||
	    delete_surplus(&finish, store, err) < 0)
		return -1;
	return store_directory(store) ? write_list(&finish, store, err)
				      : upload_list(&finish, store, err);
}
