/* What one of several nodes has of a checkpoint, on its way to the root. See shards.h. */
#include "jobs/checkpoint/shards.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs.h"
#include "jobs/checkpoint/mark.h"
#include "jobs/checkpoint/proof.h"
#include "jobs/checkpoint/remote.h"
#include "jobs/store/same.h"

#define NOTE_VERSION 1
#define NOTE_MAX     ((size_t)256 << 20) /* a million files */
#define PIECE        ((size_t)4 << 20)   /* of an object that is compared byte by byte */

void ckpt_life_put(const struct ckpt_life *life, json_t *object)
{
	js_put_str(object, "run", life->owner.run);
	js_put(object, "attempt", json_integer(life->owner.attempt));
	js_put(object, "restart", json_integer(life->restart));
	js_put_str(object, "nonce", life->owner.nonce);
	js_put_str(object, "token", life->token);
}

bool ckpt_life_is(const struct ckpt_life *life, const json_t *object)
{
	return js_int(object, "v", 0) == NOTE_VERSION && js_is(object, "run", life->owner.run) &&
	       js_is(object, "nonce", life->owner.nonce) && js_is(object, "token", life->token) &&
	       js_int(object, "attempt", 0) == life->owner.attempt &&
	       js_int(object, "restart", 0) == life->restart;
}

static char *note_key(const struct ckpt_root *root, const char *name, int node)
{
	return mem_format("%s" SHARDS_PREFIX "%s/node-%d.json", root->path, name, node);
}

/* The note of whatever life: 1, 0 there is none that can be read, -1. */
static int read_note(const struct ckpt_root *root, const char *name, int node, json_t **ret,
		     struct err **err)
{
	AUTO(auto_free) char *key = note_key(root, name, node);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(NOTE_MAX + 1);
	AUTO(err_freep) struct err *garbage = NULL;
	int there = store_get(root->store, key, NOTE_MAX, &text, NULL, err);

	if (there <= 0)
		return there;
	if (js_parse(text.text, text.len, "the note", ret, &garbage) < 0)
		return 0;
	return 1;
}

int ckpt_part_read(const struct ckpt_root *root, const char *name, const struct ckpt_life *life,
		   int node, json_t **ret, struct err **err)
{
	json_auto_t *note = NULL;
	int there = read_note(root, name, node, &note, err);

	if (there <= 0)
		return there;
	if (!ckpt_life_is(life, note) || !js_is(note, "name", name) ||
	    !json_is_array(json_object_get(note, "files")))
		return 0;
	*ret = TAKE(note);
	return 1;
}

static int remove_note(void *arg, const struct store_object *object, struct err **err)
{
	json_t *keys = arg;

	(void)err;
	json_array_append_new(keys, json_string(object->key));
	return 0;
}

int ckpt_parts_remove(const struct ckpt_root *root, const char *name, struct err **err)
{
	AUTO(auto_free) char *prefix = mem_format("%s" SHARDS_PREFIX "%s/", root->path, name);
	json_auto_t *keys = json_array();
	json_t *key;
	size_t i;

	if (store_list(root->store, prefix, remove_note, keys, err) < 0)
		return -1;
	json_array_foreach (keys, i, key)
		if (store_delete(root->store, json_string_value(key), err) < 0)
			return -1;
	return 0;
}

/* ---- sending ---- */

struct part {
	const struct ckpt_root *root;
	const struct ckpt *ckpt;
	struct tree tree;
	json_t *before;      /* the note that is there; NULL: none */
	json_t *note;        /* the new one */
	unsigned char *skip; /* a byte a file, PART_* */
	char *trouble;
	ckpt_copy_fn fn;
	void *arg;
};

static void part_release(struct part *part)
{
	ckpt_tree_release(&part->tree);
	json_decref(part->before);
	json_decref(part->note);
	free(part->skip);
	free(part->trouble);
}

/* The row of a path in the files of a note, NULL if there is none. Rows are sorted. */
static json_t *row_of(const json_t *note, const char *path)
{
	const json_t *files = json_object_get(note, "files");
	size_t low = 0, high = json_array_size(files);

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		json_t *row = json_array_get(files, middle);
		const char *there = js_str(row, "path");
		int order = strcmp(there ? there : "", path);

		if (order == 0)
			return row;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static int describe(struct part *part, const struct ckpt_life *life, int node, struct err **err)
{
	struct ckpt now = { .name = part->ckpt->name, .step = part->ckpt->step };
	AUTO(auto_free) unsigned char *opaque = NULL;
	json_t *files = NULL;
	bool sound;

	if (ckpt_tree_read(part->ckpt->path, &part->tree, err) < 0)
		return -1;
	opaque = mem_zero(part->tree.count + 1, 1);
	part->skip = mem_zero(part->tree.count + 1, 1);
	sound = candidate_part_sound(&part->tree, &now, opaque);
	if (!sound)
		err_set(err, EXIT_REFUSED, "cannot copy '%s': %s", part->ckpt->path, now.why);
	free(now.why);
	if (!sound || mark_files_of(&part->tree, &files, err) < 0)
		return -1;
	for (size_t i = 0; i < part->tree.count; i++)
		if (opaque[i])
			js_put(json_array_get(files, i), "opaque", json_true());
	part->note = json_object();
	js_put(part->note, "v", json_integer(NOTE_VERSION));
	ckpt_life_put(life, part->note);
	js_put(part->note, "node", json_integer(node));
	js_put_str(part->note, "name", part->ckpt->name);
	js_put(part->note, "step", json_integer(part->ckpt->step));
	js_put(part->note, "single", json_boolean(part->tree.single));
	js_put(part->note, "saving_ms", json_integer(part->ckpt->saving_ms));
	js_put(part->note, "files", files);
	return 0;
}

/* The file and an object of its size, byte by byte: 1 the same, 0 not, -1. */
static int same_bytes(const struct part *part, const struct tree_file *file, int fd,
		      const char *key, struct err **err)
{
	AUTO(auto_free) char *mine = mem_alloc(PIECE);

	for (uint64_t at = 0; at < file->size; at += PIECE) {
		size_t len = file->size - at < PIECE ? (size_t)(file->size - at) : PIECE;
		AUTO(sb_release) struct sb theirs = SB_INIT_MAX(PIECE + 1);
		int there = store_read_range(part->root->store, key, at, len, &theirs, NULL, err);

		if (there < 0)
			return -1;
		if (there == 0 || theirs.len != len || read_at(fd, at, mine, len) < 0 ||
		    memcmp(mine, theirs.text, len) != 0)
			return 0;
		if (part->fn && !part->fn(part->arg, at, part->tree.bytes))
			return err_set(err, EXIT_REFUSED, "copying '%s' was stopped",
				       part->tree.path);
	}
	return 1;
}

/* What somebody else has brought there under the name of this file: 1 the same, 0, -1. */
static int same_object(const struct part *part, const struct tree_file *file,
		       const struct remote_file *there, struct err **err)
{
	AUTO(auto_close) int fd = -1;
	AUTO(auto_free) char *key = NULL;
	int same;

	if (there->size != file->size)
		return 0;
	fd = ckpt_tree_open(&part->tree, file);
	if (fd < 0)
		return fs_error(err, errno, "cannot read '%s/%s'", part->tree.path, file->path);
	key = remote_key(part->root, part->ckpt->name, file->path);
	same = same_tag(fd, key, file->size, there->tag, err);
	return same != 0 ? same : same_bytes(part, file, fd, key, err);
}

/* Which of the files lie there from another node, and whether they are the same. `taken`:
 * only of those that somebody was faster with. */
static int find_shared(struct part *part, bool taken, struct err **err)
{
	AUTO(remote_release) struct remote there = { 0 };
	const struct tree *tree = &part->tree;

	if (remote_list(part->root, part->ckpt->name, tree->single, &there, err) < 0)
		return -1;
	for (size_t i = 0; i < tree->count && !part->trouble; i++) {
		const struct tree_file *file = &tree->files[i];
		const struct remote_file *other = remote_find(&there, file->path);
		const json_t *mine = row_of(part->before, file->path);
		int same;

		if (taken ? part->skip[i] != PART_TAKEN : part->skip[i] == PART_SHARED)
			continue;
		/* What was told of once may be our own, half-way; what has a tag is by that. */
		if (!taken && mine && !js_bool(mine, "shared", false) &&
		    (!js_str(mine, "tag") ||
		     (other && strcmp(js_str(mine, "tag"), other->tag) == 0)))
			continue;
		part->skip[i] = 0;
		if (!other)
			continue;
		same = same_object(part, file, other, err);
		if (same < 0)
			return -1;
		if (same == 0)
			part->trouble = mem_format("another node has saved '%s' with other content",
						   *file->path ? file->path : part->ckpt->name);
		part->skip[i] = PART_SHARED;
		js_put(json_array_get(json_object_get(part->note, "files"), i), "shared",
		       json_true());
	}
	return 0;
}

/* The same files as told before, so far as a note tells. */
static bool is_told(const struct part *part, const struct ckpt_life *life)
{
	static const char *const members[] = { "path", "size", "ends" };
	const json_t *mine = json_object_get(part->note, "files");
	const json_t *before = json_object_get(part->before, "files");
	json_t *row;
	size_t i;

	if (!part->before || !ckpt_life_is(life, part->before) ||
	    json_array_size(mine) != json_array_size(before))
		return false;
	json_array_foreach (mine, i, row)
		for (size_t k = 0; k < STK_LENGTH(members); k++)
			if (!json_equal(json_object_get(row, members[k]),
					json_object_get(json_array_get(before, i), members[k])))
				return false;
	return true;
}

/* One more generation unless it is the one that is there, to the letter. */
static int put_note(const struct part *part, bool sent, struct err **err)
{
	int node = (int)js_int(part->note, "node", 0);
	int64_t generation = js_int(part->before, "generation", 0);
	AUTO(auto_free) char *key = note_key(part->root, part->ckpt->name, node);
	AUTO(auto_free) char *text = NULL;

	js_put(part->note, "sent", json_boolean(sent));
	js_put_str(part->note, "trouble", part->trouble);
	js_put(part->note, "generation", json_integer(generation));
	if (part->before && json_equal(part->note, part->before))
		return 0;
	js_put(part->note, "generation", json_integer(generation + 1));
	text = js_line(part->note);
	return store_put(part->root->store, key, text, strlen(text), err);
}

/* What this node had beneath the name and has no more. */
static int clear_own(const struct part *part, struct err **err)
{
	json_t *row;
	size_t i;

	json_array_foreach (json_object_get(part->before, "files"), i, row) {
		const char *path = js_str(row, "path");
		AUTO(auto_free) char *key = NULL;

		if (!path || js_bool(row, "shared", false) || ckpt_tree_find(&part->tree, path))
			continue;
		key = remote_key(part->root, part->ckpt->name, path);
		if (store_delete(part->root->store, key, err) < 0)
			return -1;
	}
	return 0;
}

/* They are there; the tags that they have. */
static int pin(const struct part *part, struct err **err)
{
	AUTO(remote_release) struct remote there = { 0 };
	json_t *row;
	size_t i;

	if (remote_list(part->root, part->ckpt->name, part->tree.single, &there, err) < 0)
		return -1;
	json_array_foreach (json_object_get(part->note, "files"), i, row) {
		const char *path = js_str(row, "path");
		const struct remote_file *now = remote_find(&there, path);

		if (!now || (int64_t)now->size != js_int(row, "size", -1))
			return err_set(err, EXIT_REFUSED, "cannot copy '%s': '%s' is not there",
				       part->tree.path, path);
		js_put_str(row, "tag", now->tag);
	}
	return 0;
}

/* Files that changed on the way are another part. */
static int verify(const struct part *part, struct err **err)
{
	AUTO(ckpt_tree_release) struct tree now = TREE_INIT;
	char before[SHA256_HEX], after[SHA256_HEX];

	if (ckpt_tree_read(part->ckpt->path, &now, err) < 0)
		return -1;
	ckpt_tree_tag(&part->tree, "", before);
	ckpt_tree_tag(&now, "", after);
	if (strcmp(before, after) != 0)
		return err_set(err, EXIT_REFUSED, "cannot copy '%s': it has changed meanwhile",
			       part->ckpt->path);
	return 0;
}

/* Until nobody else brings what we were about to: each time at least one file more is known
 * to be another's. 1, 0 trouble, -1. */
static int send_files(struct part *part, struct err **err)
{
	int done = 0;

	for (size_t i = 0; done == 0 && i <= part->tree.count; i++) {
		if (i > 0 && find_shared(part, true, err) < 0)
			return -1;
		if (part->trouble)
			return 0;
		done = remote_send_part(part->root, part->ckpt, &part->tree, part->skip, part->fn,
					part->arg, err);
	}
	return done < 0 ? -1 : 1;
}

static int send_all(struct part *part, const struct ckpt_life *life, struct err **err)
{
	int done;

	/* What lies there before we tell of it is another's, from then on it may be ours. */
	if (find_shared(part, false, err) < 0)
		return -1;
	if (part->trouble)
		return put_note(part, false, err) < 0 ? -1 : 0;
	if (!is_told(part, life) && put_note(part, false, err) < 0)
		return -1;
	done = send_files(part, err);
	if (done == 0)
		return put_note(part, false, err) < 0 ? -1 : 0;
	if (done < 0 || verify(part, err) < 0 || clear_own(part, err) < 0 || pin(part, err) < 0)
		return -1;
	return put_note(part, true, err) < 0 ? -1 : 1;
}

int ckpt_part_send(const struct ckpt_root *root, const struct ckpt *ckpt,
		   const struct ckpt_life *life, int node, ckpt_copy_fn fn, void *arg, json_t **ret,
		   struct err **err)
{
	AUTO(part_release)
	struct part part = { .root = root, .ckpt = ckpt, .tree = TREE_INIT, .fn = fn, .arg = arg };
	int done;

	if (describe(&part, life, node, err) < 0 ||
	    read_note(root, ckpt->name, node, &part.before, err) < 0)
		return -1;
	done = send_all(&part, life, err);
	if (done >= 0)
		*ret = TAKE(part.note);
	return done;
}
