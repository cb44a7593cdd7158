/* Joins the parts of several nodes into one checkpoint. See shards.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/checkpoint/candidate.h"
#include "jobs/checkpoint/mark.h"
#include "jobs/checkpoint/remote.h"
#include "jobs/checkpoint/shards.h"

#define REMOTE_NAME FS_TEMP_PREFIX "far"
/* Only metadata and indexes are read, and none is larger than this. */
#define REMOTE_MAX ((uint64_t)256 << 20)

struct joining {
	const struct ckpt_root *root;
	const char *folder, *name;
	const json_t *notes;
	json_t *files;
	struct checkpoint_tree tree;
	struct ckpt_join *out;
};

static void joining_release(struct joining *joining)
{
	checkpoint_tree_release(&joining->tree);
	json_decref(joining->files);
}

void checkpoint_join_release(struct ckpt_join *join)
{
	checkpoint_release(&join->ckpt);
	json_decref(join->files);
	*join = (struct ckpt_join){ 0 };
}

/* ---- files of other nodes ---- */

static int open_remote(void *arg, const char *path)
{
	const struct joining *joining = arg;
	const struct checkpoint_tree_file *file = checkpoint_tree_find(&joining->tree, path);
	AUTO(auto_free) char *key = remote_key(joining->root, joining->name, path);
	AUTO(auto_free) char *copy = fs_join(joining->folder, REMOTE_NAME);
	AUTO(err_freep) struct err *ignored = NULL;
	int fd;

	if (!file || file->size > REMOTE_MAX) {
		errno = EFBIG;
		return -1;
	}
	unlink(copy);
	if (store_download(joining->root->store, key, copy, &ignored) <= 0) {
		errno = EIO;
		return -1;
	}
	fd = open(copy, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	unlink(copy);
	return fd;
}

/* ---- the union ---- */

static void conflict(struct joining *joining, char *why)
{
	if (joining->out->ckpt.why)
		free(why);
	else
		joining->out->ckpt.why = why;
	joining->out->conflict = true;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(js_str(*(json_t *const *)a, "path"), js_str(*(json_t *const *)b, "path"));
}

static bool row_is_good(const json_t *row)
{
	const char *ends = js_str(row, "ends");

	return js_str(row, "path") && js_int(row, "size", -1) >= 0 && ends &&
	       strlen(ends) == SHA256_HEX - 1;
}

/* Compares two notes' rows of the same path. */
static void compare(struct joining *joining, const json_t *a, const json_t *b)
{
	static const char *const members[] = { "size", "ends", "tag" };
	const char *path = js_str(a, "path");
	bool same = true;

	/* A file that was not sent has no tag; its node reports the reason in "trouble". */
	for (size_t i = 0; i < STK_LENGTH(members); i++)
		same = same && (json_equal(json_object_get(a, members[i]),
					   json_object_get(b, members[i])) ||
				(strcmp(members[i], "tag") == 0 &&
				 (!js_str(a, "tag") || !js_str(b, "tag"))));
	if (!same)
		conflict(joining,
			 mem_format("nodes %lld and %lld have saved '%s' with different content",
				    (long long)js_int(a, "node", 0),
				    (long long)js_int(b, "node", 0), *path ? path : joining->name));
}

/* Returns all rows of all notes, each with its node, sorted by path. The caller frees the array,
 * not the rows. */
static json_t **all_rows(const struct joining *joining, size_t *ret_count)
{
	json_t **rows = NULL, *note, *row;
	size_t n, i, count = 0;

	json_array_foreach (joining->notes, n, note) {
		const json_t *files = json_object_get(note, "files");

		rows = mem_grow(rows, count + json_array_size(files) + 1, sizeof *rows);
		json_array_foreach (files, i, row) {
			if (!row_is_good(row))
				continue;
			js_put(row, "node", json_incref(json_object_get(note, "node")));
			rows[count++] = row;
		}
	}
	if (count)
		qsort(rows, count, sizeof *rows, by_path);
	*ret_count = count;
	return rows;
}

static void add_row(struct joining *joining, json_t *row)
{
	struct checkpoint_tree *tree = &joining->tree;
	json_t *one = json_object();
	struct checkpoint_tree_file *file = &tree->files[tree->count++];
	static const char *const members[] = { "path", "size", "ends", "tag" };

	for (size_t i = 0; i < STK_LENGTH(members); i++)
		if (json_object_get(row, members[i]))
			json_object_set(one, members[i], json_object_get(row, members[i]));
	json_array_append_new(joining->files, one);
	*file = (struct checkpoint_tree_file){ .path = js_str(one, "path"),
					       .size = (uint64_t)js_int(row, "size", 0),
					       .remote = js_int(row, "node", 0) > 0 || tree->fd < 0,
					       .opaque = js_bool(row, "opaque", false) };
	tree->bytes += file->size;
}

static void unite(struct joining *joining)
{
	size_t count = 0;
	AUTO(auto_free) json_t **rows = all_rows(joining, &count);

	joining->tree.files = mem_zero(count + 1, sizeof *joining->tree.files);
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && by_path(&rows[i - 1], &rows[i]) == 0)
			compare(joining, rows[i - 1], rows[i]);
		else
			add_row(joining, rows[i]);
	}
}

/* Evaluates the notes of the nodes. */
static void read_notes(struct joining *joining)
{
	const json_t *first = json_array_get(joining->notes, 0);
	json_t *note;
	size_t i;

	joining->tree.single = js_bool(first, "single", false);
	json_array_foreach (joining->notes, i, note) {
		int64_t saving = js_int(note, "saving_ms", 0);

		if (saving > joining->out->ckpt.saving_ms)
			joining->out->ckpt.saving_ms = saving;
		if (js_bool(note, "single", false) != joining->tree.single)
			conflict(joining,
				 mem_format("a file on node %lld, and a folder on node %lld",
					    (long long)js_int(joining->tree.single ? first : note,
							      "node", 0),
					    (long long)js_int(joining->tree.single ? note : first,
							      "node", 0)));
	}
	unite(joining);
	json_array_foreach (joining->notes, i, note)
		if (!js_bool(note, "sent", false))
			conflict(joining,
				 mem_format("node %lld did not upload its part: %s",
					    (long long)js_int(note, "node", 0),
					    js_str(note, "trouble") ? js_str(note, "trouble")
								    : "not finished"));
}

/* Checks that the store lists exactly the files in the notes. */
static int hold_against_store(struct joining *joining, struct err **err)
{
	AUTO(remote_release) struct remote there = { 0 };
	json_t *row;
	size_t i;

	if (remote_list(joining->root, joining->name, joining->tree.single, &there, err) < 0)
		return -1;
	json_array_foreach (joining->files, i, row) {
		const char *path = js_str(row, "path"), *tag = js_str(row, "tag");
		const struct remote_file *now = remote_find(&there, path);
		const char *shown = *path ? path : joining->name;

		if (!now)
			conflict(joining, mem_format("'%s' is missing", shown));
		else if (!*now->tag)
			conflict(joining,
				 mem_format("'%s' cannot be verified: listed without its ETag",
					    shown));
		else if ((int64_t)now->size != js_int(row, "size", -1) || !tag ||
			 strcmp(tag, now->tag) != 0)
			conflict(joining,
				 mem_format("'%s' differs from the upload of its node", shown));
	}
	if (there.count != json_array_size(joining->files))
		conflict(joining, mem_format("%zu files lie there, not the %zu that were saved",
					     there.count, json_array_size(joining->files)));
	return 0;
}

/* ---- older siblings of a checkpoint ---- */

static void tree_of(const struct ckpt_mark *mark, struct checkpoint_tree *ret)
{
	json_t *row;
	size_t i;

	*ret = TREE_INIT;
	ret->files = mem_zero(json_array_size(mark->files) + 1, sizeof *ret->files);
	json_array_foreach (mark->files, i, row) {
		ret->files[i] =
			(struct checkpoint_tree_file){ .path = js_str(row, "path"),
						       .size = (uint64_t)js_int(row, "size", 0),
						       .remote = true };
		ret->single |= !*ret->files[i].path;
	}
	ret->count = json_array_size(mark->files);
}

struct older {
	struct ckpt_mark marks[SIBLINGS];
	struct checkpoint_tree trees[SIBLINGS];
	const struct checkpoint_tree *list[SIBLINGS];
	size_t count;
};

static void older_release(struct older *older)
{
	for (size_t i = 0; i < older->count; i++) {
		checkpoint_tree_release(&older->trees[i]);
		checkpoint_mark_release(&older->marks[i]);
	}
}

static int find_older(const struct joining *joining, struct older *older, struct err **err)
{
	AUTO(mark_names_release) struct mark_names names = { 0 };

	if (mark_names_add(&names, joining->root, err) < 0)
		return -1;
	mark_names_sort(&names);
	for (size_t i = 0; i < names.count && older->count < SIBLINGS; i++) {
		struct ckpt_mark *mark = &older->marks[older->count];
		int there;

		if (names.items[i].step >= joining->out->ckpt.step ||
		    !sibling_check_related(joining->name, names.items[i].name))
			continue;
		there = mark_read(joining->root, names.items[i].name, mark, NULL, err);
		if (there < 0)
			return -1;
		if (there == 0)
			continue;
		tree_of(mark, &older->trees[older->count]);
		older->list[older->count] = &older->trees[older->count];
		older->count++;
	}
	return 0;
}

/* ---- whole checkpoints ---- */

static int check_joined(struct joining *joining, const struct ckpt_kind *kind, struct err **err)
{
	struct ckpt *ckpt = &joining->out->ckpt;
	struct checkpoint_check check = { .tree = &joining->tree, .name = joining->name };
	AUTO(older_release) struct older older = { 0 };

	ckpt->kind = kind_of(kind, &check);
	if (!kind->named(joining->name, !joining->tree.single, &ckpt->step)) {
		conflict(joining, mem_copy("not the name of a checkpoint"));
		return 0;
	}
	if (hold_against_store(joining, err) < 0 || find_older(joining, &older, err) < 0)
		return -1;
	if (ckpt->why)
		return 0;
	candidate_prove(joining->folder, &joining->tree, ckpt, older.list, older.count);
	return 0;
}

int checkpoint_join(const struct ckpt_root *root, const char *folder, const struct ckpt_kind *kind,
		    const char *name, const json_t *notes, struct ckpt_join *ret, struct err **err)
{
	AUTO(checkpoint_join_release) struct ckpt_join join = { 0 };
	AUTO(joining_release)
	struct joining joining = {
		.root = root,
		.folder = folder,
		.name = name,
		.notes = notes,
		.files = json_array(),
		.tree = TREE_INIT,
		.out = &join,
	};

	join.ckpt.name = mem_copy(name);
	join.ckpt.path = fs_join(folder, name);
	joining.tree.path = mem_copy(join.ckpt.path);
	joining.tree.fd = open(join.ckpt.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	joining.tree.open_remote = open_remote;
	joining.tree.arg = &joining;
	read_notes(&joining);
	if (joining.tree.count == 0)
		conflict(&joining, mem_copy("no node has saved any part"));
	else if (check_joined(&joining, kind, err) < 0)
		return -1;
	join.ckpt.files = joining.tree.count;
	join.ckpt.bytes = joining.tree.bytes;
	join.files = TAKE(joining.files);
	*ret = join;
	join = (struct ckpt_join){ 0 };
	return 0;
}

int checkpoint_mark_withdraw(const struct ckpt_root *root, const char *name, struct err **err)
{
	AUTO(mark_place_close) struct mark_place place = { 0 };
	AUTO(auto_free) char *key = NULL;

	if (mark_place_open(root, &place, err) < 0)
		return -1;
	key = mem_format("%s%s" CKPT_MARK_SUFFIX, place.prefix, name);
	return store_delete(place.store, key, err);
}

int checkpoint_join_mark(const struct ckpt_root *root, const struct ckpt_join *join,
			 const struct ckpt_owner *owner, struct utc at, struct err **err)
{
	AUTO(checkpoint_mark_release) struct ckpt_mark there = { 0 };
	AUTO(auto_free) char *url = checkpoint_root_url(root, join->ckpt.name);
	json_auto_t *body = mark_body(&join->ckpt, url, owner, at, join->files);
	int marked = checkpoint_mark_read(root, join->ckpt.name, &there, err);

	if (marked < 0)
		return -1;
	if (marked > 0 && json_equal(there.files, join->files))
		return 0;
	/* A mark of other files, or a file that is not a valid mark, says nothing about these
	 * files. */
	if (checkpoint_mark_withdraw(root, join->ckpt.name, err) < 0)
		return -1;
	return mark_put(root, join->ckpt.name, body, err);
}
