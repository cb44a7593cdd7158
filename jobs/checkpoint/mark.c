/* Marks of complete checkpoints, which count for resuming. See checkpoint.h. */
#include "jobs/checkpoint/mark.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/checkpoint/candidate.h"
#include "jobs/checkpoint/remote.h"
#include "jobs/store/store_json.h"

#define MARK_VERSION 1
#define MARK_MAX     ((size_t)256 << 20) /* enough for a million files */

void checkpoint_mark_release(struct ckpt_mark *mark)
{
	free(mark->run);
	free(mark->nonce);
	free(mark->name);
	free(mark->url);
	free(mark->root);
	free(mark->device);
	json_decref(mark->files);
	*mark = (struct ckpt_mark){ 0 };
}

void checkpoint_marks_release(struct ckpt_marks *marks)
{
	for (size_t i = 0; i < marks->count; i++)
		checkpoint_mark_release(&marks->items[i]);
	free(marks->items);
	*marks = (struct ckpt_marks){ 0 };
}

/* ---- writing ---- */

int mark_files_of(const struct checkpoint_tree *tree, json_t **ret, struct err **err)
{
	json_auto_t *files = json_array();

	for (size_t i = 0; i < tree->count; i++) {
		json_t *one = json_object();
		char ends[SHA256_HEX];

		json_array_append_new(files, one);
		if (checkpoint_tree_ends(tree, &tree->files[i], ends) < 0)
			return fs_error(err, errno ? errno : EIO, "cannot read '%s/%s'", tree->path,
					tree->files[i].path);
		js_put_str(one, "path", tree->files[i].path);
		js_put(one, "size", json_integer((json_int_t)tree->files[i].size));
		js_put_str(one, "ends", ends);
	}
	*ret = TAKE(files);
	return 0;
}

json_t *mark_body(const struct ckpt *ckpt, const char *url, const struct ckpt_owner *owner,
		  struct utc at, json_t *files)
{
	json_t *body = json_object();

	js_put(body, "v", json_integer(MARK_VERSION));
	js_put_str(body, "run", owner->run);
	js_put(body, "attempt", json_integer(owner->attempt));
	js_put_str(body, "nonce", owner->nonce);
	js_put(body, "step", json_integer(ckpt->step));
	js_put_str(body, "name", ckpt->name);
	js_put_str(body, "kind", ckpt->kind->name);
	js_put_str(body, "url", url);
	js_put(body, "at", json_integer(at.ms));
	js_put(body, "saving_ms", json_integer(ckpt->saving_ms));
	js_put_str(body, "device", owner->device);
	if (owner->world_size > 0)
		js_put(body, "world_size", json_integer(owner->world_size));
	js_put(body, "files", json_incref(files));
	return body;
}

int mark_put(const struct ckpt_root *root, const char *name, const json_t *body, struct err **err)
{
	AUTO(mark_place_close) struct mark_place place = { 0 };
	AUTO(auto_free) char *key = NULL;
	AUTO(auto_free) char *path = root->store ? NULL : fs_join(root->path, name);

	/* A power cut must not leave a mark beside files that were never written. */
	if ((path && fs_sync_tree(path, err) < 0) || mark_place_open(root, &place, err) < 0)
		return -1;
	key = mem_format("%s%s" CKPT_MARK_SUFFIX, place.prefix, name);
	return store_json_replace(place.store, key, NULL, body, err);
}

/* Proves the checkpoint to be marked in the folder in which it was saved: in the root itself,
 * or, if that is in a store, in the folder that it was copied from. */
static int prove_again(const struct ckpt_root *root, const struct ckpt *ckpt,
		       struct checkpoint_tree *tree, struct ckpt *now, struct err **err)
{
	AUTO(auto_free) char *folder = root->store ? fs_dirname(ckpt->path) : mem_copy(root->path);
	int there = candidate_read(folder, ckpt->name, ckpt->kind, tree, now, err);

	if (there < 0)
		return -1;
	if (there == 0)
		return err_set(err, EXIT_REFUSED, "cannot mark '%s/%s': not found", folder,
			       ckpt->name);
	if (now->files != ckpt->files || now->bytes != ckpt->bytes ||
	    (strcmp(now->path, ckpt->path) == 0 && strcmp(now->tag, ckpt->tag) != 0))
		return err_set(err, EXIT_REFUSED, "cannot mark '%s': changed meanwhile", now->path);
	if (!candidate_sound(tree, now, NULL))
		return err_set(err, EXIT_REFUSED, "cannot mark '%s': %s", now->path, now->why);
	return 0;
}

int checkpoint_mark(const struct ckpt_root *root, const struct ckpt *ckpt,
		    const struct ckpt_owner *owner, struct utc at, struct err **err)
{
	AUTO(checkpoint_tree_release) struct checkpoint_tree tree = TREE_INIT;
	AUTO(checkpoint_release) struct ckpt now = { 0 };
	AUTO(auto_free) char *url = checkpoint_root_url(root, ckpt->name);
	json_auto_t *files = NULL, *body = NULL;

	if (prove_again(root, ckpt, &tree, &now, err) < 0 ||
	    mark_files_of(&tree, &files, err) < 0 ||
	    (root->store && remote_pin(root, ckpt->name, &tree, files, err) < 0))
		return -1;
	body = mark_body(&now, url, owner, at, files);
	return mark_put(root, now.name, body, err);
}

/* ---- reading ---- */

static bool files_are_good(const struct ckpt_root *root, const json_t *files)
{
	size_t i;
	json_t *file;

	if (!json_is_array(files) || json_array_size(files) == 0)
		return false;
	json_array_foreach (files, i, file) {
		const char *ends = js_str(file, "ends"), *tag = js_str(file, "tag");

		/* An empty tag would match any object that was listed without a tag. */
		if (!js_str(file, "path") || js_int(file, "size", -1) < 0 || !ends ||
		    strlen(ends) != SHA256_HEX - 1 || (root->store && (!tag || !*tag)))
			return false;
	}
	return true;
}

/* Fills `ret` from `body`. Returns NULL, or why it is not a valid mark. */
static const char *mark_of(const struct ckpt_root *root, const char *name, json_t *body,
			   struct ckpt_mark *ret)
{
	const char *kind = js_str(body, "kind"), *device = js_str(body, "device");
	const struct ckpt_kind *row = kind ? checkpoint_kind_find(kind) : NULL;
	json_t *files = json_object_get(body, "files");
	int64_t step;

	if (js_int(body, "v", 0) != MARK_VERSION)
		return "unknown version";
	if (!js_str(body, "run") || !js_str(body, "name") || !js_str(body, "nonce") ||
	    js_int(body, "attempt", 0) < 1 || js_int(body, "step", -1) < 0 ||
	    !files_are_good(root, files))
		return "a member is missing";
	if (strcmp(js_str(body, "name"), name) != 0)
		return "the mark is of another checkpoint";
	if (!row || !row->prove)
		return "unknown kind of checkpoint";
	if (!row->named(name, true, &step) && !row->named(name, false, &step))
		return "the mark is of no checkpoint";
	*ret = (struct ckpt_mark){ .run = mem_copy(js_str(body, "run")),
				   .nonce = mem_copy(js_str(body, "nonce")),
				   .name = mem_copy(name),
				   /* The current place, not the one in the mark: roots may be
				    * mounted elsewhere, and a mark must not lead out of its
				    * root. */
				   .url = checkpoint_root_url(root, name),
				   .root = mem_copy(root->path),
				   .store = root->store,
				   .kind = row,
				   .attempt = js_int(body, "attempt", 0),
				   .step = js_int(body, "step", 0),
				   .saving_ms = js_int(body, "saving_ms", 0),
				   .device = device ? mem_copy(device) : NULL,
				   .world_size = js_int(body, "world_size", 0),
				   .at = { js_int(body, "at", 0) },
				   .files = json_incref(files) };
	return NULL;
}

void mark_reject(json_t *rejected, const char *url, const char *why)
{
	json_t *one = json_object();

	js_put_str(one, "url", url);
	js_put_str(one, "why", why);
	if (rejected)
		json_array_append_new(rejected, one);
	else
		json_decref(one);
}

int mark_read(const struct ckpt_root *root, const char *name, struct ckpt_mark *ret,
	      json_t *rejected, struct err **err)
{
	AUTO(mark_place_close) struct mark_place place = { 0 };
	AUTO(auto_free) char *key = NULL;
	AUTO(auto_free) char *url = NULL;
	json_auto_t *body = NULL;
	const char *why;
	int there;

	if (mark_place_open(root, &place, err) < 0)
		return -1;
	key = mem_format("%s%s" CKPT_MARK_SUFFIX, place.prefix, name);
	there = store_json_get(place.store, key, MARK_MAX, &body, NULL, err);
	if (there <= 0)
		return there;
	why = body ? mark_of(root, name, body, ret) : "invalid JSON";
	url = mem_format("%s/%s", store_url(place.store), key);
	if (why)
		mark_reject(rejected, url, why);
	return why ? 0 : 1;
}

int checkpoint_mark_read(const struct ckpt_root *root, const char *name, struct ckpt_mark *ret,
			 struct err **err)
{
	return mark_read(root, name, ret, NULL, err);
}

/* Order for qsort: highest step, then highest attempt. */
static int newest_first(const void *a, const void *b)
{
	const struct ckpt_mark *x = a, *y = b;

	if (x->step != y->step)
		return x->step > y->step ? -1 : 1;
	if (x->attempt != y->attempt)
		return x->attempt > y->attempt ? -1 : 1;
	return strcmp(y->name, x->name);
}

int checkpoint_mark_list(const struct ckpt_root *root, int64_t above, struct ckpt_marks *ret,
			 json_t *rejected, struct err **err)
{
	AUTO(checkpoint_marks_release) struct ckpt_marks marks = { 0 };
	AUTO(mark_names_release) struct mark_names names = { 0 };

	if (mark_names_add(&names, root, err) < 0)
		return -1;
	mark_names_sort(&names);
	marks.items = mem_zero(names.count + 1, sizeof *marks.items);
	for (size_t i = 0; i < names.count && (above < 0 || names.items[i].step > above); i++) {
		int there = mark_read(root, names.items[i].name, &marks.items[marks.count],
				      rejected, err);

		if (there < 0)
			return -1;
		marks.count += there > 0;
	}
	if (marks.count)
		qsort(marks.items, marks.count, sizeof *marks.items, newest_first);
	*ret = marks;
	marks = (struct ckpt_marks){ 0 };
	return 0;
}

/* ---- holding ---- */

char *mark_files_differ(const struct ckpt_mark *mark, const struct checkpoint_tree *tree)
{
	size_t i;
	json_t *file;

	json_array_foreach (mark->files, i, file) {
		const char *path = js_str(file, "path");
		const struct checkpoint_tree_file *now = checkpoint_tree_find(tree, path);
		const char *shown = *path ? path : mark->name, *wanted = js_str(file, "ends");
		char ends[SHA256_HEX];

		if (!now)
			return mem_format("'%s' is missing", shown);
		if ((int64_t)now->size != js_int(file, "size", -1))
			return mem_format("'%s' has %" PRIu64 " bytes, not %" PRId64
					  " as when it was marked",
					  shown, now->size, js_int(file, "size", -1));
		if (!wanted) /* a model's file, of which a store has told the tag alone */
			continue;
		if (checkpoint_tree_ends(tree, now, ends) < 0)
			return mem_format("'%s' cannot be read", shown);
		if (strcmp(ends, wanted) != 0)
			return mem_format("'%s' has changed since it was marked", shown);
	}
	if (tree->count != json_array_size(mark->files))
		return mem_format("%zu files, not %zu as when it was marked", tree->count,
				  json_array_size(mark->files));
	return NULL;
}

int checkpoint_mark_holds(const struct ckpt_mark *mark, char **ret_why, struct err **err)
{
	AUTO(checkpoint_tree_release) struct checkpoint_tree tree = TREE_INIT;
	AUTO(checkpoint_release) struct ckpt now = { 0 };
	int there;

	if (mark->store)
		return remote_holds(mark, ret_why, err);
	there = candidate_read(mark->root, mark->name, mark->kind, &tree, &now, err);
	if (there < 0)
		return -1;
	if (there == 0)
		*ret_why = mem_copy("not found");
	else
		*ret_why = mark_files_differ(mark, &tree);
	if (*ret_why)
		return 0;
	if (now.step != mark->step) {
		*ret_why = mem_copy("the mark is of another step");
		return 0;
	}
	if (candidate_sound(&tree, &now, NULL))
		return 1;
	*ret_why = TAKE(now.why);
	return 0;
}
