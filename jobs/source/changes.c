/* Differences between a work tree and its commit. See changes.h. */
#include "jobs/source/changes.h"

#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX 5 /* files named in a message */

static void add_change(struct changes *changes, const struct scope *scope, const char *path,
		       const char *repo_path, const char *how)
{
	changes->list = mem_grow(changes->list, changes->count + 1, sizeof *changes->list);
	changes->list[changes->count++] = (struct change){
		.path = mem_copy(path),
		.how = how,
		.scope = scope,
		.repo_path = repo_path ? mem_copy(repo_path) : NULL,
	};
}

void changes_release(struct changes *changes)
{
	for (size_t i = 0; i < changes->count; i++) {
		free(changes->list[i].path);
		free(changes->list[i].repo_path);
	}
	free(changes->list);
	*changes = (struct changes){ 0 };
}

static int find_in_files(struct source_tree *tree, struct changes *ret, struct err **err)
{
	for (size_t i = 0; i < tree->count; i++) {
		const struct source_tree_file *file = &tree->files[i];
		const struct repo_entry *entry = file->entry;
		AUTO(auto_free) char *repo_path = NULL;
		int same = source_repo_is_committed(file->scope->repo, entry, &file->st, file->mode,
						    file->target, err);

		pin_tick(tree->ticker);
		if (same < 0)
			return -1;
		if (same)
			continue;
		repo_path = mem_format("%s%s", file->scope->prefix, file->path + file->scope->skip);
		add_change(ret, file->scope, file->path, repo_path,
			   entry && entry->in_commit ? "changed" : "new");
	}
	return 0;
}

/* Adds files that the commit has and the work tree lacks. */
static void find_deleted(const struct scope *scope, const struct filter *filter,
			 struct changes *ret)
{
	size_t count;
	const struct repo_entry *entries = source_repo_entries(scope->repo, &count);

	for (size_t i = 0; i < count; i++) {
		const struct repo_entry *entry = &entries[i];
		AUTO(auto_free)
		char *path = mem_format("%s%s", scope->label, entry->path + strlen(scope->prefix));

		if (entry->seen || !entry->in_commit || entry->absent_is_ok ||
		    !filter_takes(filter, path))
			continue;
		add_change(ret, scope, path, entry->path, "deleted");
	}
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct change *)a)->path, ((const struct change *)b)->path);
}

int changes_find(struct source_tree *tree, const struct filter *filter, struct changes *ret,
		 struct err **err)
{
	const char *end = tree->moved.text + tree->moved.len;

	if (find_in_files(tree, ret, err) < 0)
		return -1;
	for (const struct scope *scope = tree->scopes; scope; scope = scope->next)
		find_deleted(scope, filter, ret);
	for (const char *path = tree->moved.text; path < end; path += strlen(path) + 1)
		add_change(ret, NULL, path, NULL, "at another commit");
	if (ret->count > 0)
		qsort(ret->list, ret->count, sizeof *ret->list, by_path);
	return 0;
}

char *changes_summary(const struct changes *changes)
{
	struct sb text = SB_INIT;

	for (size_t i = 0; i < changes->count && i < SHOWN_MAX; i++)
		sb_addf(&text, "%s%s (%s)", i ? ", " : "", changes->list[i].path,
			changes->list[i].how);
	if (changes->count > SHOWN_MAX)
		sb_addf(&text, " and %zu more", changes->count - SHOWN_MAX);
	return sb_take(&text);
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Appends the part of the patch that belongs to one repository. */
static int add_scope_patch(const struct scope *scope, const struct changes *changes,
			   const char *around, struct sb *out, struct err **err)
{
	AUTO(auto_free) char **paths = mem_zero(changes->count + 1, sizeof *paths);
	AUTO(auto_free)
	char *label = mem_format("%s%s", scope->label[0] ? around : "", scope->label);
	size_t count = 0;

	for (size_t i = 0; i < changes->count; i++)
		if (changes->list[i].scope == scope)
			paths[count++] = changes->list[i].repo_path;
	if (count == 0)
		return 0;
	qsort(paths, count, sizeof *paths, compare_text);
	return source_repo_patch(scope->repo, paths, label, out, err);
}

int changes_patch(const struct source_tree *tree, const struct changes *changes, size_t max,
		  char **ret, struct err **err)
{
	AUTO(sb_release) struct sb out = SB_INIT_MAX(max);
	const struct scope *outermost = tree->scopes;

	while (outermost->next)
		outermost = outermost->next;
	for (size_t i = 0; i < changes->count; i++)
		if (!changes->list[i].scope)
			sb_addf(&out, "# submodule '%s' is at another commit than recorded\n",
				changes->list[i].path);
	for (const struct scope *scope = tree->scopes; scope; scope = scope->next)
		if (add_scope_patch(scope, changes, outermost->prefix, &out, err) < 0)
			return -1;
	*ret = out.truncated ? mem_format("%s\n# cut here: the bundle has it all\n", out.text)
			     : sb_take(&out);
	return 0;
}
