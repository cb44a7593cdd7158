/* Uploads the part of a checkpoint that one of several nodes has. See shards.h. */
#include "jobs/checkpoint/shards.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/checkpoint/candidate.h"
#include "jobs/checkpoint/mark.h"
#include "jobs/checkpoint/remote.h"
#include "jobs/store/content_match.h"
#include "jobs/store/store_json.h"

#define NOTE_VERSION 1
#define NOTE_MAX     ((size_t)256 << 20) /* enough for a million files */
#define PIECE        ((size_t)4 << 20)   /* bytes of an object compared at a time */

void checkpoint_life_put(const struct ckpt_life *life, json_t *object)
{
	js_put_str(object, "run", life->owner.run);
	js_put(object, "attempt", json_integer(life->owner.attempt));
	js_put(object, "restart", json_integer(life->restart));
	js_put_str(object, "nonce", life->owner.nonce);
	js_put_str(object, "token", life->token);
}

bool checkpoint_life_is(const struct ckpt_life *life, const json_t *object)
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

/* Reads the note of any life. Returns 1, 0 if it is absent or cannot be parsed, -1 with an
 * error. */
static int read_note(const struct ckpt_root *root, const char *name, int node, json_t **ret,
		     struct err **err)
{
	AUTO(auto_free) char *key = note_key(root, name, node);
	int there = store_json_get(root->store, key, NOTE_MAX, ret, NULL, err);

	return there > 0 ? *ret != NULL : there;
}

int checkpoint_part_read(const struct ckpt_root *root, const char *name,
			 const struct ckpt_life *life, int node, json_t **ret, struct err **err)
{
	json_auto_t *note = NULL;
	int there = read_note(root, name, node, &note, err);

	if (there <= 0)
		return there;
	if (!checkpoint_life_is(life, note) || !js_is(note, "name", name) ||
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

int checkpoint_parts_remove(const struct ckpt_root *root, const char *name, struct err **err)
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

struct part_part {
	const struct ckpt_root *root;
	const struct ckpt *ckpt;
	struct checkpoint_tree tree;
	json_t *before;      /* the note in the store; NULL if absent */
	json_t *note;        /* the new one */
	unsigned char *skip; /* a byte per file, PART_* */
	char *trouble;
	ckpt_copy_fn fn;
	void *arg;
};

static void part_release(struct part_part *part)
{
	checkpoint_tree_release(&part->tree);
	json_decref(part->before);
	json_decref(part->note);
	free(part->skip);
	free(part->trouble);
}

/* Returns the row of a path in the files of a note, NULL if not found. Rows are sorted. */
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

static int describe(struct part_part *part, const struct ckpt_life *life, int node,
		    struct err **err)
{
	struct ckpt now = { .name = part->ckpt->name, .step = part->ckpt->step };
	AUTO(auto_free) unsigned char *opaque = NULL;
	json_t *files = NULL;
	bool sound;

	if (checkpoint_tree_read(part->ckpt->path, &part->tree, err) < 0)
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
	checkpoint_life_put(life, part->note);
	js_put(part->note, "node", json_integer(node));
	js_put_str(part->note, "name", part->ckpt->name);
	js_put(part->note, "step", json_integer(part->ckpt->step));
	js_put(part->note, "single", json_boolean(part->tree.single));
	js_put(part->note, "saving_ms", json_integer(part->ckpt->saving_ms));
	js_put(part->note, "files", files);
	return 0;
}

/* Compares the file and an object of its size byte by byte. Returns 1 if they are the same, 0 if
 * not, -1 with an error. */
static int same_bytes(const struct part_part *part, const struct checkpoint_tree_file *file, int fd,
		      const char *key, struct err **err)
{
	AUTO(auto_free) char *mine = mem_alloc(PIECE);

	for (uint64_t at = 0; at < file->size; at += PIECE) {
		size_t len = file->size - at < PIECE ? (size_t)(file->size - at) : PIECE;
		AUTO(sb_release) struct sb theirs = SB_INIT_MAX(PIECE + 1);
		int there = store_read_range(part->root->store, key, at, len, &theirs, NULL, err);

		if (there < 0)
			return -1;
		if (there == 0 || theirs.len != len || checkpoint_read_at(fd, at, mine, len) < 0 ||
		    memcmp(mine, theirs.text, len) != 0)
			return 0;
		if (part->fn && !part->fn(part->arg, at, part->tree.bytes))
			return err_set(err, EXIT_REFUSED, "copying '%s' was stopped",
				       part->tree.path);
	}
	return 1;
}

/* Compares the file with the object that another node has uploaded under its name. Returns 1 if
 * they are the same, 0 if not, -1 with an error. */
static int same_object(const struct part_part *part, const struct checkpoint_tree_file *file,
		       const struct remote_file *there, struct err **err)
{
	AUTO(auto_close) int fd = -1;
	AUTO(auto_free) char *key = NULL;
	int same;

	if (there->size != file->size)
		return 0;
	fd = checkpoint_tree_open(&part->tree, file);
	if (fd < 0)
		return fs_error(err, errno, "cannot read '%s/%s'", part->tree.path, file->path);
	key = remote_key(part->root, part->ckpt->name, file->path);
	same = content_match_tag(fd, key, file->size, there->tag, err);
	return same != 0 ? same : same_bytes(part, file, fd, key, err);
}

/* Finds the files that another node has uploaded, and checks that they are the same. `taken`:
 * only those that another node has uploaded since the last look. */
static int find_shared(struct part_part *part, bool taken, struct err **err)
{
	AUTO(remote_release) struct remote there = { 0 };
	const struct checkpoint_tree *tree = &part->tree;

	if (remote_list(part->root, part->ckpt->name, tree->single, &there, err) < 0)
		return -1;
	for (size_t i = 0; i < tree->count && !part->trouble; i++) {
		const struct checkpoint_tree_file *file = &tree->files[i];
		const struct remote_file *other = remote_find(&there, file->path);
		const json_t *mine = row_of(part->before, file->path);
		int same;

		if (taken ? part->skip[i] != PART_TAKEN : part->skip[i] == PART_SHARED)
			continue;
		/* A file in the old note may be our own, half uploaded; if the note has its tag,
		 * the tag decides. */
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

/* True if the files are the same as in the old note, as far as a note tells. */
static bool is_told(const struct part_part *part, const struct ckpt_life *life)
{
	static const char *const members[] = { "path", "size", "ends" };
	const json_t *mine = json_object_get(part->note, "files");
	const json_t *before = json_object_get(part->before, "files");
	json_t *row;
	size_t i;

	if (!part->before || !checkpoint_life_is(life, part->before) ||
	    json_array_size(mine) != json_array_size(before))
		return false;
	json_array_foreach (mine, i, row)
		for (size_t k = 0; k < STK_LENGTH(members); k++)
			if (!json_equal(json_object_get(row, members[k]),
					json_object_get(json_array_get(before, i), members[k])))
				return false;
	return true;
}

/* Writes the note with the next generation, unless it is identical to the one in the store. */
static int put_note(const struct part_part *part, bool sent, struct err **err)
{
	int node = (int)js_int(part->note, "node", 0);
	int64_t generation = js_int(part->before, "generation", 0);
	AUTO(auto_free) char *key = note_key(part->root, part->ckpt->name, node);

	js_put(part->note, "sent", json_boolean(sent));
	js_put_str(part->note, "trouble", part->trouble);
	js_put(part->note, "generation", json_integer(generation));
	if (part->before && json_equal(part->note, part->before))
		return 0;
	js_put(part->note, "generation", json_integer(generation + 1));
	return store_json_put(part->root->store, key, part->note, err);
}

/* Removes files that this node had beneath the name and no longer has. */
static int clear_own(const struct part_part *part, struct err **err)
{
	json_t *row;
	size_t i;

	json_array_foreach (json_object_get(part->before, "files"), i, row) {
		const char *path = js_str(row, "path");
		AUTO(auto_free) char *key = NULL;

		if (!path || js_bool(row, "shared", false) ||
		    checkpoint_tree_find(&part->tree, path))
			continue;
		key = remote_key(part->root, part->ckpt->name, path);
		if (store_delete(part->root->store, key, err) < 0)
			return -1;
	}
	return 0;
}

/* Checks that the files are in the store, and adds their tags to the note. */
static int pin(const struct part_part *part, struct err **err)
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
			return err_set(err, EXIT_REFUSED, "cannot copy '%s': '%s' is missing",
				       part->tree.path, path);
		js_put_str(row, "tag", now->tag);
	}
	return 0;
}

/* Checks that no file changed during the upload; if one did, this is another part. */
static int verify(const struct part_part *part, struct err **err)
{
	AUTO(checkpoint_tree_release) struct checkpoint_tree now = TREE_INIT;
	char before[SHA256_HEX], after[SHA256_HEX];

	if (checkpoint_tree_read(part->ckpt->path, &now, err) < 0)
		return -1;
	checkpoint_tree_tag(&part->tree, "", before);
	checkpoint_tree_tag(&now, "", after);
	if (strcmp(before, after) != 0)
		return err_set(err, EXIT_REFUSED, "cannot copy '%s': changed meanwhile",
			       part->ckpt->path);
	return 0;
}

/* Uploads until no other node is first with one of the files: after each try at least one more
 * file is known to be another node's. Returns 1, 0 on trouble, -1 with an error. */
static int send_files(struct part_part *part, struct err **err)
{
	int done = 0;

	for (size_t i = 0; done == 0 && i <= part->tree.count; i++) {
		if (i > 0 && find_shared(part, true, err) < 0)
			return -1;
		if (part->trouble)
			return 0;
		done = checkpoint_remote_send_part(part->root, part->ckpt, &part->tree, part->skip,
						   part->fn, part->arg, err);
	}
	return done < 0 ? -1 : 1;
}

static int send_all(struct part_part *part, const struct ckpt_life *life, struct err **err)
{
	int done;

	/* An object that exists before our note belongs to another node; from then on it may be
	 * ours. */
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

int checkpoint_part_send(const struct ckpt_root *root, const struct ckpt *ckpt,
			 const struct ckpt_life *life, int node, ckpt_copy_fn fn, void *arg,
			 json_t **ret, struct err **err)
{
	AUTO(part_release)
	struct part_part part = {
		.root = root, .ckpt = ckpt, .tree = TREE_INIT, .fn = fn, .arg = arg
	};
	int done;

	if (describe(&part, life, node, err) < 0 ||
	    read_note(root, ckpt->name, node, &part.before, err) < 0)
		return -1;
	done = send_all(&part, life, err);
	if (done >= 0)
		*ret = TAKE(part.note);
	return done;
}
