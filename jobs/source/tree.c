/* Walks a source folder: names, ignore files, submodules. See tree.h. */
#include "jobs/source/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"
#include "jobs/source/archive.h"
#include "jobs/source/ignore.h"

/* Files that tools leave behind wherever they run, as the outermost rules: a "!" in a .gitignore
 * takes them back, and files that git tracks count all the same. */
static const char tool_leavings[] = "__pycache__/\n"
				    ".venv/\n"
				    ".ipynb_checkpoints/\n"
				    ".pytest_cache/\n"
				    ".mypy_cache/\n"
				    ".ruff_cache/\n"
				    ".tox/\n"
				    ".nox/\n"
				    ".eggs/\n"
				    ".hg/\n"
				    ".svn/\n"
				    ".idea/\n"
				    ".vscode/\n"
				    "node_modules/\n"
				    ".DS_Store\n"
				    ".*.sw[a-p]\n";

struct source_tree_walk {
	struct source_tree *tree;
	struct filter *filter;
	struct err **err;
	const struct ignore *leavings; /* the outermost rules */
	struct sb path; /* path of the folder, relative to the root, with its slash, or "" */
};

/* The folder being read. */
struct folder {
	int fd;
	const struct scope *scope;   /* NULL outside of any repository */
	const struct ignore *ignore; /* rules of this folder and of those above */
	bool excluded;               /* only what the index has is included */
};

int tree_open(struct source_tree *ret, const char *root, struct err **err)
{
	*ret = (struct source_tree){ .fd = -1, .moved = SB_INIT };
	ret->root = realpath(root, NULL);
	if (ret->root)
		ret->fd = open(ret->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (ret->fd >= 0)
		return 0;
	fs_error(err, errno, "cannot open the source folder '%s'", root);
	if ((*err)->os_errno == ENOENT || (*err)->os_errno == ENOTDIR) {
		err_code(err, EXIT_SPEC);
		err_hint(err,
			 "correct source.path, which names a folder relative to that of the spec");
	}
	return err_field(err, "source.path");
}

void tree_release(struct source_tree *tree)
{
	while (tree->scopes) {
		struct scope *next = tree->scopes->next;

		source_repo_freep(&tree->scopes->repo);
		free(tree->scopes->prefix);
		free(tree->scopes->label);
		free(tree->scopes);
		tree->scopes = next;
	}
	for (size_t i = 0; i < tree->count; i++) {
		free(tree->files[i].path);
		free(tree->files[i].target);
	}
	free(tree->files);
	free(tree->root);
	auto_close(&tree->fd);
	sb_release(&tree->moved);
	*tree = (struct source_tree){ .fd = -1, .moved = SB_INIT };
}

struct source_tree_file *tree_add(struct source_tree *tree, const char *path)
{
	struct source_tree_file *file;

	if (tree->count == tree->cap) {
		tree->cap = tree->cap ? tree->cap * 2 : 64;
		tree->files = mem_grow(tree->files, tree->cap, sizeof *tree->files);
	}
	file = &tree->files[tree->count++];
	memset(file, 0, sizeof *file);
	file->path = mem_copy(path);
	return file;
}

int tree_too_big(struct err **err, const char *root, const char *what)
{
	err_set(err, EXIT_REFUSED, "the source folder '%s' holds more than %s", root, what);
	err_hint(err, "choose files with source.include, link data with source.link, or exclude "
		      "files in .gitignore");
	return err_field(err, "source.include");
}

int tree_bad_name(struct err **err, const char *path)
{
	err_set(err, EXIT_REFUSED, "the name of '%s' is not UTF-8", path);
	err_hint(err, "rename the file, or exclude it with .gitignore or source.include");
	return err_field(err, "source.include");
}

static int read_error(const struct source_tree_walk *w, const char *path)
{
	return fs_error(w->err, errno, "cannot read '%s' in the source folder '%s'", path,
			w->tree->root);
}

/* Returns the path in the repository of the scope, borrowed from `path` or `buffer`. */
static const char *in_repo(const struct scope *scope, const char *path, struct sb *buffer)
{
	if (!scope->prefix[0])
		return path + scope->skip;
	sb_clear(buffer);
	sb_adds(buffer, scope->prefix);
	sb_adds(buffer, path + scope->skip);
	return buffer->text;
}

/* --- scopes --- */

static struct scope *add_scope(struct source_tree *tree, struct repo *repo, const char *label)
{
	struct scope *scope = mem_zero(1, sizeof *scope);

	scope->repo = repo;
	scope->prefix = mem_copy(source_repo_facts(repo)->prefix);
	scope->skip = strlen(label);
	scope->label = mem_copy(label);
	scope->next = tree->scopes;
	tree->scopes = scope;
	return scope;
}

/* Loads the two files of rules that are valid for a whole repository. */
static int load_repo_rules(const struct repo *repo, const struct ignore *outer,
			   struct ignore *global, struct ignore *info, struct err **err)
{
	AUTO(auto_free) char *global_path = source_repo_excludes(repo);
	AUTO(auto_free)
	char *info_path =
		fs_join(source_repo_facts(repo)->info_dir ? source_repo_facts(repo)->info_dir
							  : "/nonexistent",
			"exclude");

	global->outer = outer;
	if (global_path &&
	    ignore_load(global, outer, 0, AT_FDCWD, global_path, global_path, err) < 0)
		return -1;
	return ignore_load(info, global, 0, AT_FDCWD, info_path, info_path, err);
}

/* Closes the folder's descriptor. */
static int walk_folder(struct source_tree_walk *w, const struct folder *folder);

/* Walks a submodule: its own repository says which of its files count. */
static int walk_submodule(struct source_tree_walk *w, int given, const struct repo_entry *entry,
			  const char *path)
{
	AUTO(auto_close) int fd = given;
	AUTO(ignore_release) struct ignore global = { 0 };
	AUTO(ignore_release) struct ignore info = { 0 };
	AUTO(auto_free) char *where = fs_join(w->tree->root, path);
	AUTO(auto_free) char *label = mem_format("%s/", path);
	AUTO(source_repo_freep) struct repo *repo = NULL;
	struct folder inside = { .ignore = &info };
	char recorded[2 * REPO_ID + 1];
	int found = source_repo_open(where, true, &repo, w->err);

	if (found == 0) {
		err_set(w->err, EXIT_REFUSED, "the submodule '%s' is not checked out", path);
		return err_hint(w->err, "run 'git submodule update --init', or exclude the "
					"submodule with source.include");
	}
	if (found < 0 || source_repo_load(repo, NULL, w->err) < 0 ||
	    load_repo_rules(repo, w->leavings, &global, &info, w->err) < 0)
		return -1;
	hash_hex_lower(entry->commit_id, REPO_ID, recorded);
	if (!entry->in_commit || strcmp(recorded, source_repo_facts(repo)->commit) != 0)
		sb_add(&w->tree->moved, path, strlen(path) + 1);
	inside.scope = add_scope(w->tree, TAKE(repo), label);
	inside.fd = TAKE_FD(fd);
	return walk_folder(w, &inside);
}

/* --- folders and files --- */

/* Returns DT_* of an entry, from the file itself if the folder does not say. */
static unsigned char type_of(int fd, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type;
	if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return (unsigned char)IFTODT(st.st_mode);
}

/* True for a virtual environment of Python, whatever its name: only this machine can use it. */
static bool is_environment(int fd, bool tracked)
{
	return !tracked && faccessat(fd, "pyvenv.cfg", F_OK, 0) == 0;
}

/* True if the file begins with `begin` and holds `text` in its first page. */
static bool file_says(int fd, const char *name, const char *begin, const char *text)
{
	char head[4096];
	AUTO(auto_close)
	int file = openat(fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	ssize_t len = file < 0 ? -1 : fs_read_full(file, head, sizeof head, 0);

	return len >= (ssize_t)strlen(begin) && memcmp(head, begin, strlen(begin)) == 0 &&
	       memmem(head, (size_t)len, text, strlen(text));
}

/* True for a state directory of stoker's that no spec and no command line names any more. The
 * tables of a young database may still be in its write-ahead log alone. */
static bool is_state(int fd)
{
	static const char magic[] = "SQLite format 3";

	return file_says(fd, "journal.json", "{\"v\":", "\"kind\":\"dir\"") ||
	       file_says(fd, "journal.db", magic, "CREATE TABLE event(run ") ||
	       (faccessat(fd, "digests", F_OK, 0) == 0 &&
		file_says(fd, "journal.db", magic, magic));
}

static int enter_folder(struct source_tree_walk *w, const struct folder *around, const char *name,
			const char *path, struct sb *buffer)
{
	const struct scope *scope = around->scope;
	const char *repo_path = scope ? in_repo(scope, path, buffer) : path;
	struct repo_entry *entry = scope ? source_repo_find(scope->repo, repo_path) : NULL;
	bool tracked = scope && source_repo_tracks_below(scope->repo, repo_path);
	struct folder inside = *around;
	int fd;

	if (entry && entry->submodule)
		entry->seen = true;
	if (!filter_reaches(w->filter, path))
		return 0;
	if (!entry || !entry->submodule || !entry->in_index) {
		entry = NULL;
		inside.excluded = around->excluded || ignore_check(around->ignore, repo_path, true);
		if (inside.excluded && !tracked)
			return 0;
	}
	fd = openat(around->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return read_error(w, path);
	if (is_environment(fd, tracked) || is_state(fd)) {
		close(fd);
		return 0;
	}
	inside.fd = fd;
	return entry ? walk_submodule(w, fd, entry, path) : walk_folder(w, &inside);
}

static int add_file(struct source_tree_walk *w, const struct folder *folder, unsigned char type,
		    const char *path, struct sb *buffer)
{
	const struct scope *scope = folder->scope;
	const char *repo_path = scope ? in_repo(scope, path, buffer) : path;
	struct repo_entry *entry = scope ? source_repo_find(scope->repo, repo_path) : NULL;
	bool tracked = entry && entry->in_index && !entry->submodule;
	struct source_tree_file *file;

	if (!filter_takes(w->filter, path))
		return 0;
	if (!tracked && (folder->excluded || ignore_check(folder->ignore, repo_path, false)))
		return 0;
	if (!text_is_utf8(path, strlen(path)))
		return tree_bad_name(w->err, path);
	if (type != DT_REG && type != DT_LNK) {
		err_set(w->err, EXIT_REFUSED,
			"'%s' in the source folder '%s' is neither a file nor a link", path,
			w->tree->root);
		return err_hint(w->err,
				"remove the file, or exclude it with .gitignore or source.include");
	}
	if (w->tree->count == ARCHIVE_FILES_MAX)
		return tree_too_big(w->err, w->tree->root, "200,000 files");
	filter_mark(w->filter, path);
	file = tree_add(w->tree, path);
	file->mode = type == DT_LNK ? S_IFLNK : S_IFREG;
	file->scope = scope;
	file->entry = entry;
	if (entry)
		entry->seen = true;
	return 0;
}

static int walk_entry(struct source_tree_walk *w, const struct folder *folder,
		      const struct dirent *entry, struct sb *buffer)
{
	size_t before = w->path.len;
	unsigned char type;
	int result;

	/* .git is skipped at any depth: repositories have a folder, submodules a file. */
	if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
	    strcmp(entry->d_name, ".git") == 0)
		return 0;
	sb_adds(&w->path, entry->d_name);
	type = type_of(folder->fd, entry);
	if (type == DT_DIR) {
		AUTO(auto_free) char *path = mem_copy(w->path.text);

		sb_addc(&w->path, '/');
		result = enter_folder(w, folder, entry->d_name, path, buffer);
	} else {
		result = add_file(w, folder, type, w->path.text, buffer);
	}
	w->path.len = before;
	w->path.text[before] = '\0';
	return result;
}

/* Walks every entry of an open folder; w->path is its path. */
static int walk_folder(struct source_tree_walk *w, const struct folder *around)
{
	AUTO(ignore_release) struct ignore rules = { 0 };
	AUTO(sb_release) struct sb buffer = SB_INIT;
	AUTO(auto_free) char *what = mem_format("%s.gitignore", w->path.text);
	struct folder folder = *around;
	const struct scope *scope = around->scope;
	size_t base = scope ? strlen(scope->prefix) + w->path.len - scope->skip : w->path.len;
	DIR *entries = fdopendir(around->fd); /* takes the descriptor: one for each level */
	const struct dirent *entry;
	int result = 0;

	if (!entries) {
		int failed = read_error(w, w->path.len ? w->path.text : ".");

		close(around->fd);
		return failed;
	}
	if (ignore_load(&rules, around->ignore, base, around->fd, ".gitignore", what, w->err) < 0)
		result = -1;
	folder.ignore = rules.count ? &rules : around->ignore;
	while (result == 0 && (errno = 0, entry = readdir(entries)))
		result = walk_entry(w, &folder, entry, &buffer);
	if (result == 0 && errno)
		result = read_error(w, w->path.len ? w->path.text : ".");
	closedir(entries);
	return result;
}

/* --- the way from the top of the repository down to the root --- */

struct ancestors { /* rules of the folders above the root */
	struct ignore *rules;
	size_t count;
};

static void ancestors_release(struct ancestors *a)
{
	for (size_t i = 0; i < a->count; i++)
		ignore_release(&a->rules[i]);
	free(a->rules);
}

/* Loads the rules above the root; *ret_excluded: they exclude the root itself or a folder above
 * it. */
static int load_ancestors(const struct repo *repo, const struct ignore *outer, struct ancestors *a,
			  bool *ret_excluded, struct err **err)
{
	const char *prefix = source_repo_facts(repo)->prefix;
	size_t depth = 0, base = 0;

	for (const char *p = prefix; (p = strchr(p, '/')); p++)
		depth++;
	a->rules = mem_zero(depth + 1, sizeof *a->rules); /* rules point at each other */
	for (const char *slash = prefix; (slash = strchr(slash, '/')); slash++) {
		const struct ignore *nearest = a->count ? &a->rules[a->count - 1] : outer;
		AUTO(auto_free)
		char *path = mem_format("%s%.*s.gitignore", source_repo_facts(repo)->top, (int)base,
					prefix);
		AUTO(auto_free) char *folder = mem_copy_n(prefix, (size_t)(slash - prefix));

		if (ignore_load(&a->rules[a->count], nearest, base, AT_FDCWD, path, path, err) < 0)
			return -1;
		if (ignore_check(&a->rules[a->count++], folder, true))
			*ret_excluded = true;
		base = (size_t)(slash + 1 - prefix);
	}
	return 0;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct source_tree_file *)a)->path,
		      ((const struct source_tree_file *)b)->path);
}

void tree_sort(struct source_tree *tree)
{
	if (tree->count > 0)
		qsort(tree->files, tree->count, sizeof *tree->files, by_path);
}

int tree_walk(struct source_tree *tree, struct repo *given, struct filter *filter, struct err **err)
{
	AUTO(source_repo_freep) struct repo *repo = given;
	AUTO(ignore_release) struct ignore leavings = { 0 };
	AUTO(ignore_release) struct ignore global = { 0 };
	AUTO(ignore_release) struct ignore info = { 0 };
	AUTO(ancestors_release) struct ancestors above = { 0 };
	struct source_tree_walk w = { tree, filter, err, &leavings, SB_INIT };
	struct folder top = { .fd = -1, .ignore = &leavings };
	size_t tracked = 0;
	int result;

	ignore_parse(&leavings, NULL, 0, tool_leavings, strlen(tool_leavings));
	if (repo) {
		source_repo_entries(repo, &tracked);
		if (load_repo_rules(repo, &leavings, &global, &info, err) < 0 ||
		    load_ancestors(repo, &info, &above, &top.excluded, err) < 0)
			return -1;
	}
	if (repo && top.excluded && tracked == 0) {
		/* A folder that the repository around it excludes is not part of that repository:
		 * for example, a project in a home directory that is itself under git. */
		top.excluded = false;
	} else if (repo) {
		top.scope = add_scope(tree, TAKE(repo), "");
		top.ignore = above.count ? &above.rules[above.count - 1] : &info;
	}
	top.fd = fcntl(tree->fd, F_DUPFD_CLOEXEC, 0);
	result = top.fd < 0 ? read_error(&w, ".") : walk_folder(&w, &top);
	sb_release(&w.path);
	tree_sort(tree);
	return result;
}
