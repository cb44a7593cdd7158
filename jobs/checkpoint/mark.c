/* Marks: what makes a checkpoint one to resume from. See checkpoint.h. */
#include "jobs/checkpoint/mark.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/checkpoint/proof.h"
#include "jobs/store/store.h"

#define MARK_VERSION 1
#define MARK_MAX     ((size_t)256 << 20) /* a million files */

void ckpt_mark_release(struct ckpt_mark *mark)
{
	free(mark->run);
	free(mark->nonce);
	free(mark->name);
	free(mark->url);
	free(mark->root);
	json_decref(mark->files);
	*mark = (struct ckpt_mark){ 0 };
}

void ckpt_marks_release(struct ckpt_marks *marks)
{
	for (size_t i = 0; i < marks->count; i++)
		ckpt_mark_release(&marks->items[i]);
	free(marks->items);
	*marks = (struct ckpt_marks){ 0 };
}

/* ---- writing ---- */

static int files_of(const struct tree *tree, json_t **ret, struct err **err)
{
	json_auto_t *files = json_array();

	for (size_t i = 0; i < tree->count; i++) {
		json_t *one = json_object();
		char ends[SHA256_HEX];

		json_array_append_new(files, one);
		if (ckpt_tree_ends(tree, &tree->files[i], ends) < 0)
			return fs_error(err, errno ? errno : EIO, "cannot read '%s/%s'", tree->path,
					tree->files[i].path);
		js_put_str(one, "path", tree->files[i].path);
		js_put(one, "size", json_integer((json_int_t)tree->files[i].size));
		js_put_str(one, "ends", ends);
	}
	*ret = TAKE(files);
	return 0;
}

static json_t *body_of(const struct ckpt *ckpt, const struct ckpt_owner *owner, struct utc at,
		       json_t *files)
{
	json_t *body = json_object();

	js_put(body, "v", json_integer(MARK_VERSION));
	js_put_str(body, "run", owner->run);
	js_put(body, "attempt", json_integer(owner->attempt));
	js_put_str(body, "nonce", owner->nonce);
	js_put(body, "step", json_integer(ckpt->step));
	js_put_str(body, "name", ckpt->name);
	js_put_str(body, "kind", ckpt->kind->name);
	js_put_str(body, "url", ckpt->path);
	js_put(body, "at", json_integer(at.ms));
	js_put(body, "saving_ms", json_integer(ckpt->saving_ms));
	js_put(body, "files", files);
	return body;
}

static int put_mark(const char *root, const char *name, const json_t *body, struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;
	AUTO(auto_free) char *key = mem_format("%s" CKPT_MARK_SUFFIX, name);
	AUTO(auto_free) char *text = js_line(body);

	if (store_open(root, &store, err) < 0)
		return -1;
	return store_put_if_absent(store, key, text, strlen(text), err);
}

int ckpt_mark(const char *root, const struct ckpt *ckpt, const struct ckpt_owner *owner,
	      struct utc at, struct err **err)
{
	AUTO(ckpt_tree_release) struct tree tree = TREE_INIT;
	AUTO(ckpt_release) struct ckpt now = { 0 };
	json_auto_t *body = NULL;
	json_t *files = NULL;
	int there = candidate_read(root, ckpt->name, ckpt->kind, &tree, &now, err);

	if (there < 0)
		return -1;
	if (there == 0)
		return err_set(err, EXIT_REFUSED, "cannot mark '%s/%s': it is gone", root,
			       ckpt->name);
	if (now.files != ckpt->files || now.bytes != ckpt->bytes ||
	    (strcmp(now.path, ckpt->path) == 0 && strcmp(now.tag, ckpt->tag) != 0))
		return err_set(err, EXIT_REFUSED, "cannot mark '%s': it has changed", now.path);
	if (!candidate_sound(&tree, &now, NULL))
		return err_set(err, EXIT_REFUSED, "cannot mark '%s': %s", now.path, now.why);
	if (files_of(&tree, &files, err) < 0)
		return -1;
	body = body_of(&now, owner, at, files);
	return put_mark(root, now.name, body, err);
}

/* ---- reading ---- */

static bool files_are_good(const json_t *files)
{
	size_t i;
	json_t *file;

	if (!json_is_array(files) || json_array_size(files) == 0)
		return false;
	json_array_foreach (files, i, file) {
		const char *ends = js_str(file, "ends");

		if (!js_str(file, "path") || js_int(file, "size", -1) < 0 || !ends ||
		    strlen(ends) != SHA256_HEX - 1)
			return false;
	}
	return true;
}

/* The mark that `body` says it is, or why it is none. */
static const char *mark_of(const char *root, const char *name, json_t *body, struct ckpt_mark *ret)
{
	const char *kind = js_str(body, "kind");
	const struct ckpt_kind *row = kind ? ckpt_kind_find(kind) : NULL;
	json_t *files = json_object_get(body, "files");
	int64_t step;

	if (js_int(body, "v", 0) != MARK_VERSION)
		return "its version is not known";
	if (!js_str(body, "run") || !js_str(body, "name") || !js_str(body, "nonce") ||
	    js_int(body, "attempt", 0) < 1 || js_int(body, "step", -1) < 0 ||
	    !files_are_good(files))
		return "something is missing in it";
	if (strcmp(js_str(body, "name"), name) != 0)
		return "it is of another checkpoint";
	if (!row || !row->prove)
		return "its kind of checkpoint is not known";
	if (!row->named(name, true, &step) && !row->named(name, false, &step))
		return "it is of no checkpoint";
	*ret = (struct ckpt_mark){ .run = mem_copy(js_str(body, "run")),
				   .nonce = mem_copy(js_str(body, "nonce")),
				   .name = mem_copy(name),
				   /* Where it lies, not where it once lay: roots may be
				    * mounted elsewhere, and a mark leads nowhere else. */
				   .url = fs_join(root, name),
				   .root = mem_copy(root),
				   .kind = row,
				   .attempt = js_int(body, "attempt", 0),
				   .step = js_int(body, "step", 0),
				   .saving_ms = js_int(body, "saving_ms", 0),
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

/* 1, 0 there is none or it is no mark (then it is rejected), -1. */
static int read_mark(struct store *store, const char *root, const char *name, struct ckpt_mark *ret,
		     json_t *rejected, struct err **err)
{
	AUTO(auto_free) char *key = mem_format("%s" CKPT_MARK_SUFFIX, name);
	AUTO(auto_free) char *path = fs_join(root, key);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(MARK_MAX + 1);
	AUTO(err_freep) struct err *garbage = NULL;
	json_auto_t *body = NULL;
	const char *why;
	int there = store_get(store, key, MARK_MAX, &text, NULL, err);

	if (there <= 0)
		return there;
	if (js_parse(text.text, text.len, "the mark", &body, &garbage) < 0)
		why = "it is no JSON";
	else
		why = mark_of(root, name, body, ret);
	if (why)
		mark_reject(rejected, path, why);
	return why ? 0 : 1;
}

int ckpt_mark_read(const char *root, const char *name, struct ckpt_mark *ret, struct err **err)
{
	AUTO(store_freep) struct store *store = NULL;

	if (store_open(root, &store, err) < 0)
		return -1;
	return read_mark(store, root, name, ret, NULL, err);
}

int mark_newest_first(const void *a, const void *b)
{
	const struct ckpt_mark *x = a, *y = b;

	if (x->step != y->step)
		return x->step > y->step ? -1 : 1;
	if (x->attempt != y->attempt)
		return x->attempt > y->attempt ? -1 : 1;
	return strcmp(y->name, x->name);
}

int ckpt_mark_list(const char *root, struct ckpt_marks *ret, json_t *rejected, struct err **err)
{
	AUTO(ckpt_marks_release) struct ckpt_marks marks = { 0 };
	AUTO(store_freep) struct store *store = NULL;
	AUTO(auto_strv) char **names = NULL;
	size_t count = 0;

	if (root_own(root, "", CKPT_MARK_SUFFIX, &names, err) < 0 ||
	    store_open(root, &store, err) < 0)
		return -1;
	while (names[count])
		count++;
	marks.items = mem_zero(count + 1, sizeof *marks.items);
	for (size_t i = 0; i < count; i++) {
		AUTO(auto_free)
		char *name = mem_copy_n(names[i], strlen(names[i]) - strlen(CKPT_MARK_SUFFIX));
		int there;

		/* Hidden names are unfinished files of the store's own. */
		if (!*name || *name == '.')
			continue;
		there = read_mark(store, root, name, &marks.items[marks.count], rejected, err);
		if (there < 0)
			return -1;
		marks.count += there > 0;
	}
	if (marks.count)
		qsort(marks.items, marks.count, sizeof *marks.items, mark_newest_first);
	*ret = marks;
	marks = (struct ckpt_marks){ 0 };
	return 0;
}

/* ---- holding ---- */

/* Names, sizes and ends as they were; else why not. */
static char *files_differ(const struct ckpt_mark *mark, const struct tree *tree)
{
	size_t i;
	json_t *file;

	json_array_foreach (mark->files, i, file) {
		const char *path = js_str(file, "path");
		const struct tree_file *now = ckpt_tree_find(tree, path);
		const char *shown = *path ? path : mark->name;
		char ends[SHA256_HEX];

		if (!now)
			return mem_format("'%s' is missing", shown);
		if ((int64_t)now->size != js_int(file, "size", -1))
			return mem_format("'%s' has %" PRIu64 " bytes, not %" PRId64
					  " as when it was marked",
					  shown, now->size, js_int(file, "size", -1));
		if (ckpt_tree_ends(tree, now, ends) < 0)
			return mem_format("'%s' cannot be read", shown);
		if (strcmp(ends, js_str(file, "ends")) != 0)
			return mem_format("'%s' is not what it was when it was marked", shown);
	}
	if (tree->count != json_array_size(mark->files))
		return mem_format("it has %zu files, not %zu as when it was marked", tree->count,
				  json_array_size(mark->files));
	return NULL;
}

int ckpt_mark_holds(const struct ckpt_mark *mark, char **ret_why, struct err **err)
{
	AUTO(ckpt_tree_release) struct tree tree = TREE_INIT;
	AUTO(ckpt_release) struct ckpt now = { 0 };
	int there = candidate_read(mark->root, mark->name, mark->kind, &tree, &now, err);

	if (there < 0)
		return -1;
	if (there == 0)
		*ret_why = mem_copy("it is gone");
	else
		*ret_why = files_differ(mark, &tree);
	if (*ret_why)
		return 0;
	if (now.step != mark->step) {
		*ret_why = mem_copy("its mark is of another step");
		return 0;
	}
	if (candidate_sound(&tree, &now, NULL))
		return 1;
	*ret_why = TAKE(now.why);
	return 0;
}
