/* Pins a source folder by content. See source.h. */
#include "jobs/source/source.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/base/text/text.h"
#include "jobs/source/archive.h"
#include "jobs/source/bundle.h"
#include "jobs/source/changes.h"
#include "jobs/source/digest_cache.h"
#include "jobs/source/git.h"
#include "jobs/source/git_place.h"
#include "jobs/source/python_text.h"
#include "jobs/source/tree.h"

#define PATCH_BYTES_MAX ((size_t)8 << 20)

/* --- a work tree or a plain folder --- */

static int refuse_dirty(const struct source_tree *tree, const struct source_pin *pin,
			struct err **err)
{
	if (pin->commit[0])
		err_set(err, EXIT_REFUSED, "the source '%s' differs from commit %.12s: %s",
			tree->root, pin->commit, pin->dirty_files);
	else
		err_set(err, EXIT_REFUSED, "nothing of the source '%s' is committed yet: %s",
			tree->root, pin->dirty_files);
	err_field(err, "source.allow_dirty");
	return err_hint(err, "commit the changes, or set source.allow_dirty: true to run with them "
			     "(the patch is kept)");
}

/* If core.fileMode is off, because the file system has no modes, git's own modes count. */
static void correct_modes(struct source_tree *tree)
{
	for (size_t i = 0; i < tree->count; i++) {
		struct source_tree_file *file = &tree->files[i];

		if (!S_ISREG(file->mode) || !source_repo_facts(file->scope->repo)->ignores_modes)
			continue;
		file->mode = 0100644;
		if (file->entry && file->entry->in_index && S_ISREG(file->entry->mode))
			file->mode = file->entry->mode;
	}
}

static int pin_work_tree(const struct source_request *request, struct source_tree *tree,
			 struct filter *filter, struct repo *given, struct source_pin *pin,
			 struct err **err)
{
	AUTO(source_repo_freep) struct repo *repo = given;
	AUTO(changes_release) struct changes changes = { 0 };
	AUTO(digest_cache_release) struct digest_cache known = { 0 };
	char mark[REPO_MARK] = "";

	digest_cache_load(&known, request->memory);
	if (repo && source_repo_load(repo, known.mark, err) < 0)
		return -1;
	if (repo) {
		snprintf(pin->commit, sizeof pin->commit, "%s", source_repo_facts(repo)->commit);
		snprintf(mark, sizeof mark, "%s", source_repo_mark(repo));
	}
	pin_tick(tree->ticker);
	if (tree_walk(tree, TAKE(repo), filter, err) < 0)
		return -1;
	pin_tick_tree(tree->ticker);
	if (tree_hash(tree, &known, mark, &pin->digests, err) < 0)
		return -1;
	snprintf(pin->kind, sizeof pin->kind, "%s", tree->scopes ? "git" : "dir");
	if (!tree->scopes) {
		pin->commit[0] = '\0';
		return 0;
	}
	pin_tick(tree->ticker);
	correct_modes(tree);
	if (changes_find(tree, filter, &changes, err) < 0)
		return -1;
	pin->dirty = changes.count > 0;
	if (!pin->dirty)
		return 0;
	pin->dirty_files = changes_summary(&changes);
	if (!request->allow_dirty)
		return refuse_dirty(tree, pin, err);
	return changes_patch(tree, &changes, PATCH_BYTES_MAX, &pin->patch, err);
}

/* --- the files of a commit --- */

struct commit_files {
	struct source_tree *tree;
	struct filter *filter;
	uint64_t bytes;
};

static bool want_file(void *arg, const char *path)
{
	const struct commit_files *files = arg;

	return filter_takes(files->filter, path);
}

static int add_blob(void *arg, const struct repo_blob *blob, struct err **err)
{
	struct commit_files *files = arg;
	struct source_tree_file *file;

	pin_tick(files->tree->ticker);
	files->bytes += blob->len;
	if (files->bytes > ARCHIVE_BYTES_MAX)
		return tree_too_big(err, files->tree->root, "1 GiB");
	if (files->tree->count == ARCHIVE_FILES_MAX)
		return tree_too_big(err, files->tree->root, "200,000 files");
	if (!text_is_utf8(blob->path, strlen(blob->path)))
		return tree_bad_name(err, blob->path);
	file = tree_add(files->tree, blob->path);
	file->mode = blob->mode;
	file->size = blob->len;
	hash_sha256_hex(blob->bytes, blob->len, file->sha256);
	filter_mark(files->filter, blob->path);
	if (S_ISREG(blob->mode) && python_text_is(blob->path))
		python_text_digest(blob->bytes, blob->len, file->reduced);
	if (!S_ISLNK(blob->mode))
		return 0;
	file->target = mem_copy_n(blob->bytes, blob->len);
	if (archive_link_inside(blob->path, file->target))
		return 0;
	err_set(err, EXIT_REFUSED, "the link '%s' leads out of the source folder '%s'", blob->path,
		files->tree->root);
	return err_hint(err, "exclude the link with source.include, or choose another source.rev");
}

static int pin_commit(const struct source_request *request, struct source_tree *tree,
		      struct filter *filter, struct repo *given, struct source_pin *pin,
		      struct err **err)
{
	AUTO(source_repo_freep) struct repo *repo = given;
	struct commit_files files = { tree, filter, 0 };

	if (!repo) {
		err_set(err, EXIT_SPEC, "'%s' is not a git work tree, and so has no revision '%s'",
			tree->root, request->rev);
		err_hint(err, "omit source.rev, or name a git work tree in source.path");
		return err_field(err, "source.rev");
	}
	snprintf(pin->kind, sizeof pin->kind, "git");
	if (source_repo_resolve(repo, request->rev, pin->commit, err) < 0 ||
	    source_repo_commit_files(repo, pin->commit, want_file, add_blob, &files, err) < 0)
		return -1;
	tree_sort(tree);
	return 0;
}

int source_file_digest(const char *path, char ret[SHA256_HEX], struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(PYTHON_TEXT_MAX);
	AUTO(err_freep) struct err *too_long = NULL;
	uint64_t size;

	if (hash_sha256_file(path, ret, &size, err) < 0)
		return -1;
	if (python_text_is(path) && fs_read(path, PYTHON_TEXT_MAX, &text, &too_long) == 0)
		python_text_digest(text.text, text.len, ret);
	return 0;
}

/* --- trees and commits --- */

/* Moves the tree's names to the pin. */
static void move_files(struct source_tree *tree, struct source_pin *pin)
{
	pin->files = mem_zero(tree->count, sizeof *pin->files);
	pin->count = tree->count;
	for (size_t i = 0; i < tree->count; i++) {
		struct source_tree_file *from = &tree->files[i];
		struct source_file *file = &pin->files[i];

		file->path = TAKE(from->path);
		file->mode = from->mode;
		file->size = from->size;
		memcpy(file->sha256, from->sha256, sizeof file->sha256);
		memcpy(file->reduced, from->reduced, sizeof file->reduced);
	}
}

static int finish_pin(struct source_tree *tree, const struct filter *filter, struct source_pin *pin,
		      struct err **err)
{
	if (filter_check_used(filter, err) < 0)
		return -1;
	if (tree->count == 0) {
		err_set(err, EXIT_REFUSED, "nothing to pack in the source folder '%s'", tree->root);
		err_hint(err, "check source.path, source.include and .gitignore");
		return err_field(err, "source.path");
	}
	move_files(tree, pin);
	bundle_digest(pin, pin->digest);
	return 0;
}

static int pin_make(const struct source_request *request, const struct pin_ticker *ticker,
		    struct source_pin **ret, struct err **err)
{
	AUTO(source_pin_freep) struct source_pin *pin = mem_zero(1, sizeof *pin);
	AUTO(filter_release) struct filter filter = { 0 };
	AUTO(tree_release) struct source_tree tree = { .fd = -1, .moved = SB_INIT };
	struct repo *repo = NULL;
	int result;

	pin->digests = SB_INIT_MAX(DIGEST_CACHE_BYTES);
	if (tree_open(&tree, request->root, err) < 0)
		return -1;
	tree.ticker = ticker;
	if (filter_init(&filter, request, err) < 0 ||
	    source_repo_open(tree.root, false, &repo, err) < 0)
		return -1;
	if (source_is_commit(request))
		result = pin_commit(request, &tree, &filter, repo, pin, err);
	else
		result = pin_work_tree(request, &tree, &filter, repo, pin, err);
	if (result < 0 || finish_pin(&tree, &filter, pin, err) < 0)
		return -1;
	*ret = TAKE(pin);
	return 0;
}

int source_pin(const struct source_request *request, struct source_pin **ret, struct err **err)
{
	int there = git_nearest(request->root, NULL, err);

	if (there < 0)
		return -1;
	if (there == 0) /* nothing of git is read */
		return pin_make(request, NULL, ret, err);
	return pin_aside(pin_make, request, ret, err);
}
