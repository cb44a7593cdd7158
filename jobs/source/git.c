/* Git work trees through libgit2. See git.h. */
#include "jobs/source/git.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/text/text.h"
#include "jobs/source/git_library.h"
#include "jobs/source/git_place.h"

struct repo {
	git_repository *git;
	git_index *index;
	git_tree *tree; /* tree of HEAD; NULL before the first commit */
	struct repo_facts facts;
	char mark[REPO_MARK];
	struct repo_entry *entries;
	size_t count, cap;
	struct timespec index_written;
};

static int git_failed(struct err **err, const char *what, const char *on)
{
	const git_error *last = git_library.error_last();

	return err_set(err, EXIT_REFUSED, "cannot %s '%s': %s", what, on,
		       last && last->message ? last->message : "unknown error");
}

/* --- opening --- */

static int start_library(struct err **err)
{
	/* Extensions that do not change how objects and index are read. */
	static const char *const extensions[] = { "worktreeconfig", "partialclone" };

	if (git_library_load(err) < 0)
		return -1;
	if (git_library.libgit2_init() > 1)
		return 0;
	git_library.libgit2_opts(GIT_OPT_SET_EXTENSIONS, extensions, STK_LENGTH(extensions));
	return 0;
}

void source_repo_freep(struct repo **ref)
{
	struct repo *repo = *ref;

	if (!repo)
		return;
	for (size_t i = 0; i < repo->count; i++)
		free(repo->entries[i].path);
	free(repo->entries);
	free(repo->facts.prefix);
	free(repo->facts.info_dir);
	git_library.tree_free(repo->tree);
	git_library.index_free(repo->index);
	git_library.repository_free(repo->git);
	free(repo);
	git_library.libgit2_shutdown();
	*ref = NULL;
}

static int read_config(struct repo *repo, const char *root, struct err **err)
{
	git_config *config = NULL;
	int filemode = 1;

	if (git_library.repository_config_snapshot(&config, repo->git) < 0)
		return git_failed(err, "read the git configuration of", root);
	if (git_library.config_get_bool(&filemode, config, "core.filemode") < 0)
		filemode = 1;
	repo->facts.ignores_modes = !filemode;
	git_library.config_free(config);
	return 0;
}

/* Returns the path of `root` in the work tree with this top: "" or "sub/folder/"; NULL if `root` is
 * outside. */
static char *find_prefix(const char *root, const char *top)
{
	AUTO(auto_free) char *with_slash = mem_format("%s/", strcmp(root, "/") == 0 ? "" : root);

	return top && text_starts(with_slash, top) ? mem_copy(with_slash + strlen(top)) : NULL;
}

static int read_repo(struct repo *repo, const char *root, struct err **err)
{
	git_buf info = GIT_BUF_INIT;
	git_oid head;
	int found;

	repo->facts.top = git_library.repository_workdir(repo->git);
	repo->facts.prefix = find_prefix(root, repo->facts.top);
	if (!repo->facts.prefix)
		return err_set(err, EXIT_REFUSED,
			       "'%s' belongs to a git repository, but is not in its work tree",
			       root);
	if (git_library.repository_item_path(&info, repo->git, GIT_REPOSITORY_ITEM_INFO) == 0)
		repo->facts.info_dir = mem_copy(info.ptr);
	git_library.buf_dispose(&info);
	found = git_library.reference_name_to_id(&head, repo->git, "HEAD");
	if (found < 0 && found != GIT_ENOTFOUND && found != GIT_EUNBORNBRANCH)
		return git_failed(err, "find the current commit of", root);
	if (found == 0)
		git_library.oid_tostr(repo->facts.commit, sizeof repo->facts.commit, &head);
	return read_config(repo, root, err);
}

static int not_owned(const char *root, struct err **err)
{
	AUTO(auto_free) char *git = NULL;

	if (git_nearest(root, &git, err) <= 0)
		return *err ? -1 : 0; /* the repository has gone meanwhile */
	err_set(err, EXIT_REFUSED, "the git repository of '%s' belongs to another user", root);
	err_hint(err, "if you trust it: git config --global --add safe.directory %.*s",
		 (int)(strlen(git) - strlen("/.git")), git);
	return err_field(err, "source.path");
}

int source_repo_open(const char *root, bool exact, struct repo **ret, struct err **err)
{
	AUTO(source_repo_freep) struct repo *repo = NULL;
	int found = git_nearest(root, NULL, err);

	if (found <= 0)
		return found;
	if (start_library(err) < 0)
		return -1;
	repo = mem_zero(1, sizeof *repo);
	found = git_library.repository_open_ext(&repo->git, root,
						exact ? GIT_REPOSITORY_OPEN_NO_SEARCH : 0, NULL);
	/* libgit2 1.5 reports a foreign repository as not found if the user's configuration has no
	 * safe.directory at all. */
	if (found == GIT_EOWNER || (found == GIT_ENOTFOUND && git_is_of_another(root)))
		return not_owned(root, err);
	if (found == GIT_ENOTFOUND)
		return 0;
	if (found < 0)
		return git_failed(err, "open the git repository of", root);
	if (read_repo(repo, root, err) < 0)
		return -1;
	*ret = TAKE(repo);
	return 1;
}

const struct repo_facts *source_repo_facts(const struct repo *repo)
{
	return &repo->facts;
}

char *source_repo_excludes(const struct repo *repo)
{
	git_config *config = NULL;
	git_buf path = GIT_BUF_INIT;
	char *result = NULL;
	const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (git_library.repository_config_snapshot(&config, repo->git) == 0 &&
	    git_library.config_get_path(&path, config, "core.excludesfile") == 0)
		result = mem_copy(path.ptr);
	else if (base && base[0] == '/')
		result = mem_format("%s/git/ignore", base);
	else if (home && home[0] == '/')
		result = mem_format("%s/.config/git/ignore", home);
	git_library.buf_dispose(&path);
	git_library.config_free(config);
	return result;
}

/* --- index and commit --- */

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct repo_entry *)a)->path, ((const struct repo_entry *)b)->path);
}

static struct repo_entry *add_entry(struct repo *repo, const char *path)
{
	struct repo_entry *entry;

	if (!repo->entries || repo->count == repo->cap) {
		repo->cap = repo->cap ? repo->cap * 2 : 64;
		repo->entries = mem_grow(repo->entries, repo->cap, sizeof *repo->entries);
	}
	entry = &repo->entries[repo->count++];
	*entry = (struct repo_entry){ .path = mem_copy(path) };
	return entry;
}

static void add_index_entry(struct repo *repo, const git_index_entry *from)
{
	struct repo_entry *last = repo->count ? &repo->entries[repo->count - 1] : NULL;
	bool conflict = git_library.index_entry_is_conflict(from) != 0;
	struct repo_entry *entry;

	/* The sides of a conflict follow each other: they become one entry that equals nothing. */
	if (conflict && last && strcmp(last->path, from->path) == 0)
		return;
	entry = add_entry(repo, from->path);
	entry->in_index = true;
	entry->in_commit = !conflict;
	entry->mode = entry->commit_mode = from->mode;
	entry->submodule = from->mode == GIT_FILEMODE_COMMIT;
	entry->absent_is_ok = (from->flags_extended & GIT_INDEX_ENTRY_SKIP_WORKTREE) != 0;
	memcpy(entry->id, from->id.id, REPO_ID);
	memcpy(entry->commit_id, from->id.id, REPO_ID);
	entry->mtime_s = from->mtime.seconds;
	entry->mtime_ns = from->mtime.nanoseconds;
	entry->ctime_s = from->ctime.seconds;
	entry->ctime_ns = from->ctime.nanoseconds;
	entry->ino = from->ino;
	entry->size = from->file_size;
}

static int load_index(struct repo *repo, struct err **err)
{
	const char *top = repo->facts.top;
	bool sorted = true;
	struct stat st;

	if (git_library.repository_index(&repo->index, repo->git) < 0)
		return git_failed(err, "read the git index of", top);
	if (git_library.index_path(repo->index) &&
	    stat(git_library.index_path(repo->index), &st) == 0)
		repo->index_written = st.st_mtim;
	for (size_t i = 0; i < git_library.index_entrycount(repo->index); i++) {
		const git_index_entry *from = git_library.index_get_byindex(repo->index, i);

		if (!text_starts(from->path, repo->facts.prefix))
			continue;
		add_index_entry(repo, from);
		if (repo->count > 1 && strcmp(repo->entries[repo->count - 2].path, from->path) > 0)
			sorted = false; /* core.ignoreCase sorts otherwise */
	}
	if (!sorted)
		qsort(repo->entries, repo->count, sizeof *repo->entries, by_path);
	return 0;
}

struct repo_entry *source_repo_entries(struct repo *repo, size_t *ret_count)
{
	*ret_count = repo->count;
	return repo->entries;
}

struct repo_entry *source_repo_find(struct repo *repo, const char *path)
{
	const struct repo_entry key = { .path = (char *)(uintptr_t)path };

	if (repo->count == 0)
		return NULL;
	return bsearch(&key, repo->entries, repo->count, sizeof key, by_path);
}

bool source_repo_tracks_below(struct repo *repo, const char *folder)
{
	size_t low = 0, high = repo->count, len = strlen(folder);

	/* Finds the first path that is not before "folder/". */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const char *path = repo->entries[middle].path;
		int order = strncmp(path, folder, len);

		if (order < 0 || (order == 0 && (unsigned char)path[len] < '/'))
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < repo->count; low++) {
		const struct repo_entry *entry = &repo->entries[low];

		if (strncmp(entry->path, folder, len) != 0 || entry->path[len] != '/')
			return false;
		if (entry->in_index)
			return true;
	}
	return false;
}

/* If the index differs from the commit, the entry takes the commit's version. */
static void apply_delta(struct repo *repo, const git_diff_delta *delta)
{
	const char *path = delta->old_file.path;
	struct repo_entry *entry;

	if (!text_starts(path, repo->facts.prefix))
		return;
	entry = source_repo_find(repo, path);
	if (entry)
		entry->in_commit = false;
	if (delta->status == GIT_DELTA_ADDED || delta->old_file.mode == 0)
		return;
	if (!entry)
		return; /* taken later, when entries may be added */
	entry->in_commit = delta->status != GIT_DELTA_CONFLICTED;
	entry->commit_mode = delta->old_file.mode;
	memcpy(entry->commit_id, delta->old_file.id.id, REPO_ID);
}

static void add_deleted(struct repo *repo, const git_diff_delta *delta)
{
	struct repo_entry *entry;

	if (delta->status != GIT_DELTA_DELETED ||
	    !text_starts(delta->old_file.path, repo->facts.prefix))
		return;
	entry = add_entry(repo, delta->old_file.path);
	entry->in_commit = true;
	entry->commit_mode = delta->old_file.mode;
	entry->submodule = delta->old_file.mode == GIT_FILEMODE_COMMIT;
	memcpy(entry->commit_id, delta->old_file.id.id, REPO_ID);
}

static int compare_index(struct repo *repo, struct err **err)
{
	git_diff *diff = NULL;
	size_t deltas;

	if (git_library.diff_tree_to_index(&diff, repo->git, repo->tree, repo->index, NULL) < 0)
		return git_failed(err, "compare index and commit of", repo->facts.top);
	deltas = git_library.diff_num_deltas(diff);
	for (size_t i = 0; i < deltas; i++)
		apply_delta(repo, git_library.diff_get_delta(diff, i));
	for (size_t i = 0; i < deltas; i++)
		add_deleted(repo, git_library.diff_get_delta(diff, i));
	if (deltas > 0)
		repo->mark[0] = '\0';
	if (deltas > 0 && repo->count > 0)
		qsort(repo->entries, repo->count, sizeof *repo->entries, by_path);
	git_library.diff_free(diff);
	return 0;
}

/* An index and a commit have digests of content as ids, so those that were once the same always
 * are. An index may be written without its checksum, which is zeros then. */
static void find_mark(struct repo *repo)
{
	const git_oid *index = git_library.index_checksum(repo->index), none = { 0 };

	if (!repo->tree || !index || memcmp(index, &none, sizeof none) == 0)
		return;
	git_library.oid_tostr(repo->mark, 2 * REPO_ID + 1, index);
	git_library.oid_tostr(repo->mark + 2 * REPO_ID, 2 * REPO_ID + 1,
			      git_library.tree_id(repo->tree));
}

const char *source_repo_mark(const struct repo *repo)
{
	return repo->mark;
}

int source_repo_load(struct repo *repo, const char *known, struct err **err)
{
	git_object *object = NULL;

	if (load_index(repo, err) < 0)
		return -1;
	if (repo->facts.commit[0]) {
		if (git_library.revparse_single(&object, repo->git, "HEAD^{tree}") < 0)
			return git_failed(err, "read the current commit of", repo->facts.top);
		repo->tree = (git_tree *)object;
	}
	find_mark(repo);
	if (known && repo->mark[0] && strcmp(repo->mark, known) == 0)
		return 0;
	return compare_index(repo, err);
}

/* --- comparing files --- */

/* The index remembers size and times of the file it last looked at: if they are the same, so is the
 * content, unless the file was written at the same moment as the index. */
static bool is_as_remembered(const struct repo *repo, const struct repo_entry *entry,
			     const struct stat *st)
{
	const struct timespec *written = &repo->index_written;

	if (entry->size != (uint32_t)st->st_size || entry->ino != (uint32_t)st->st_ino ||
	    entry->mtime_s != (int32_t)st->st_mtim.tv_sec ||
	    entry->ctime_s != (int32_t)st->st_ctim.tv_sec)
		return false;
	if (entry->mtime_ns && entry->mtime_ns != (uint32_t)st->st_mtim.tv_nsec)
		return false;
	if (entry->ctime_ns && entry->ctime_ns != (uint32_t)st->st_ctim.tv_nsec)
		return false;
	if (st->st_mtim.tv_sec != written->tv_sec)
		return st->st_mtim.tv_sec < written->tv_sec;
	return entry->mtime_ns && st->st_mtim.tv_nsec < written->tv_nsec;
}

int source_repo_is_committed(struct repo *repo, const struct repo_entry *entry,
			     const struct stat *st, unsigned mode, const char *target,
			     struct err **err)
{
	git_oid id;
	int failed;

	if (!entry || !entry->in_commit)
		return 0;
	if (entry->commit_mode != mode && !(repo->facts.ignores_modes && S_ISREG(mode)))
		return 0;
	if (entry->in_index && memcmp(entry->id, entry->commit_id, REPO_ID) == 0 &&
	    entry->mode == entry->commit_mode && is_as_remembered(repo, entry, st))
		return 1;
	if (target)
		failed = git_library.odb_hash(&id, target, strlen(target), GIT_OBJECT_BLOB);
	else
		failed = git_library.repository_hashfile(&id, repo->git, entry->path,
							 GIT_OBJECT_BLOB, NULL);
	if (failed < 0)
		return git_failed(err, "read", entry->path);
	return memcmp(id.id, entry->commit_id, REPO_ID) == 0;
}

static int append_line(const git_diff_delta *delta, const git_diff_hunk *hunk,
		       const git_diff_line *line, void *arg)
{
	struct sb *out = arg;

	(void)delta;
	(void)hunk;
	if (line->origin == GIT_DIFF_LINE_CONTEXT || line->origin == GIT_DIFF_LINE_ADDITION ||
	    line->origin == GIT_DIFF_LINE_DELETION)
		sb_addc(out, line->origin);
	sb_add(out, line->content, line->content_len);
	return out->truncated ? GIT_EUSER : 0;
}

int source_repo_patch(struct repo *repo, char *const *paths, const char *label, struct sb *out,
		      struct err **err)
{
	git_diff_options options;
	AUTO(auto_free) char *old_prefix = mem_format("a/%s", label);
	AUTO(auto_free) char *new_prefix = mem_format("b/%s", label);
	git_diff *diff = NULL;
	int failed;

	git_library.diff_options_init(&options, GIT_DIFF_OPTIONS_VERSION);
	options.flags = GIT_DIFF_INCLUDE_UNTRACKED | GIT_DIFF_RECURSE_UNTRACKED_DIRS |
			GIT_DIFF_SHOW_UNTRACKED_CONTENT | GIT_DIFF_DISABLE_PATHSPEC_MATCH;
	options.pathspec.strings = (char **)(uintptr_t)paths;
	while (paths[options.pathspec.count])
		options.pathspec.count++;
	options.max_size = (git_off_t)out->max; /* larger files: only that they differ */
	options.old_prefix = old_prefix;
	options.new_prefix = new_prefix;
	if (git_library.diff_tree_to_workdir_with_index(&diff, repo->git, repo->tree, &options) < 0)
		return git_failed(err, "compare files and commit of", repo->facts.top);
	failed = git_library.diff_print(diff, GIT_DIFF_FORMAT_PATCH, append_line, out);
	git_library.diff_free(diff);
	return failed < 0 && failed != GIT_EUSER
		       ? git_failed(err, "write the patch of", repo->facts.top)
		       : 0;
}

/* --- files of a commit --- */

int source_repo_resolve(struct repo *repo, const char *rev, char ret_commit[65], struct err **err)
{
	AUTO(auto_free) char *spec = mem_format("%s^{commit}", rev);
	git_object *object = NULL;

	if (git_library.revparse_single(&object, repo->git, spec) < 0) {
		git_failed(err, "find the revision", rev);
		err_code(err, EXIT_SPEC);
		err_field(err, "source.rev");
		return err_hint(err,
				"name a commit, branch or tag that this clone has, or fetch it");
	}
	git_library.oid_tostr(ret_commit, 65, git_library.object_id(object));
	git_library.object_free(object);
	return 0;
}

struct commit_walk {
	struct repo *repo;
	const char *commit;
	repo_want_fn want;
	repo_blob_fn fn;
	void *arg;
	struct err **err;
};

static int give_blob(struct repo *repo, const git_tree_entry *entry, const char *path,
		     repo_blob_fn fn, void *arg, struct err **err)
{
	git_blob *blob = NULL;
	struct repo_blob give = { .path = path, .mode = git_library.tree_entry_filemode(entry) };
	int result;

	if (git_library.blob_lookup(&blob, repo->git, git_library.tree_entry_id(entry)) < 0)
		return git_failed(err, "read from the commit", path);
	give.bytes = git_library.blob_rawcontent(blob);
	give.len = (size_t)git_library.blob_rawsize(blob);
	result = fn(arg, &give, err);
	git_library.blob_free(blob);
	return result;
}

static int visit_entry(const char *folder, const git_tree_entry *entry, void *arg)
{
	const struct commit_walk *w = arg;
	AUTO(auto_free) char *path = mem_format("%s%s", folder, git_library.tree_entry_name(entry));

	switch (git_library.tree_entry_type(entry)) {
	case GIT_OBJECT_BLOB:
		if (!w->want(w->arg, path))
			return 0;
		return give_blob(w->repo, entry, path, w->fn, w->arg, w->err) < 0 ? GIT_EUSER : 0;
	case GIT_OBJECT_COMMIT:
		if (!w->want(w->arg, path))
			return 0;
		err_set(w->err, EXIT_REFUSED,
			"'%s' is a submodule, and commit %.12s lacks its files", path, w->commit);
		err_hint(w->err, "check out that commit and use source.rev: HEAD, or exclude the "
				 "submodule with source.include");
		return GIT_EUSER;
	default:
		return 0; /* a folder: it is walked */
	}
}

/* Opens the tree below the prefix. */
static int open_tree(struct repo *repo, const char *commit, git_tree **ret, struct err **err)
{
	size_t len = strlen(repo->facts.prefix);
	AUTO(auto_free)
	char *spec = mem_format("%s:%.*s", commit, (int)(len ? len - 1 : 0), repo->facts.prefix);
	git_object *object = NULL;

	if (git_library.revparse_single(&object, repo->git, spec) < 0 ||
	    git_library.object_type(object) != GIT_OBJECT_TREE) {
		git_library.object_free(object);
		return err_set(err, EXIT_REFUSED, "commit %.12s has no folder '%s'", commit,
			       repo->facts.prefix);
	}
	*ret = (git_tree *)object;
	return 0;
}

int source_repo_commit_files(struct repo *repo, const char *commit, repo_want_fn want,
			     repo_blob_fn fn, void *arg, struct err **err)
{
	struct commit_walk walk = { repo, commit, want, fn, arg, err };
	git_tree *tree = NULL;
	int failed;

	if (open_tree(repo, commit, &tree, err) < 0)
		return -1;
	failed = git_library.tree_walk(tree, GIT_TREEWALK_PRE, visit_entry, &walk);
	git_library.tree_free(tree);
	if (failed < 0 && failed != GIT_EUSER)
		return git_failed(err, "read commit", commit);
	return failed < 0 ? -1 : 0;
}

int source_repo_commit_file(struct repo *repo, const char *commit, const char *path,
			    repo_blob_fn fn, void *arg, struct err **err)
{
	git_tree *tree = NULL;
	git_tree_entry *entry = NULL;
	int result = -1;

	if (open_tree(repo, commit, &tree, err) < 0)
		return -1;
	if (git_library.tree_entry_bypath(&entry, tree, path) < 0)
		git_failed(err, "read from the commit", path);
	else
		result = give_blob(repo, entry, path, fn, arg, err);
	git_library.tree_entry_free(entry);
	git_library.tree_free(tree);
	return result;
}
