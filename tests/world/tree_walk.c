/* Paths: mounts, links, "..", and what /proc leads to: see tree_internal.h and path_resolution(7).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/world/tree_internal.h"

#define LINKS_MAX 40 /* MAXSYMLINKS */

struct tree *tree_of(const struct machine *machine)
{
	return machine->root;
}

/* The root of what is mounted there, or the inode itself. */
struct inode *walk_mounted(struct tree *tree, struct inode *inode)
{
	for (int i = tree->mount_count; i-- > 0;)
		if (tree->mounts[i].covered == inode)
			return walk_mounted(tree, tree->mounts[i].disk->root);
	return inode;
}

bool walk_is_mount(struct tree *tree, const struct inode *inode)
{
	for (int i = 0; i < tree->mount_count; i++)
		if (tree->mounts[i].covered == inode || tree->mounts[i].disk->root == inode)
			return true;
	return false;
}

static struct inode *above(struct tree *tree, struct inode *inode)
{
	for (int i = tree->mount_count; i-- > 0;)
		if (tree->mounts[i].disk->root == inode) {
			if (!tree->mounts[i].covered)
				return inode; /* "/" */
			return above(tree, tree->mounts[i].covered);
		}
	return inode->parent ? walk_mounted(tree, inode->parent) : inode;
}

static void set_text(struct walk *walk, const char *text)
{
	size_t len = strlen(text);

	walk->text_len = len < sizeof walk->text ? len : sizeof walk->text - 1;
	memcpy(walk->text, text, walk->text_len);
	walk->text[walk->text_len] = '\0';
}

static int push_text(struct walk *walk, const char *name)
{
	size_t len = walk->text_len, more = strlen(name);

	if (len + more + 2 > sizeof walk->text)
		return -ENAMETOOLONG;
	if (len > 1)
		walk->text[len++] = '/';
	memcpy(walk->text + len, name, more + 1);
	walk->text_len = len + more;
	return 0;
}

static void pop_text(struct walk *walk)
{
	char *last = strrchr(walk->text, '/');

	if (!last)
		return;
	walk->text_len = (size_t)(last - walk->text) + (last == walk->text);
	walk->text[walk->text_len] = '\0';
}

static int look(struct walk *walk, const char *name)
{
	struct inode *folder = walk->folder;

	walk->inode = NULL;
	if (folder->made && folder->made->look) {
		int failed = folder->made->look(folder, name, walk->process, &walk->inode);

		if (failed < 0 && failed != -ENOENT)
			return failed;
	} else {
		if (strlen(name) > NAME_MAX)
			return -ENAMETOOLONG;
		walk->inode = names_find(folder, name);
	}
	if (walk->inode)
		walk->inode = walk_mounted(walk->tree, walk->inode);
	return 0;
}

static int walk_path(struct walk *walk, const char *path, unsigned flags);

static void start_at_root(struct walk *walk)
{
	walk->inode = walk_mounted(walk->tree, walk->tree->mounts[0].disk->root);
	walk->folder = NULL;
	walk->last = LAST_ROOT;
	set_text(walk, "/");
}

/* Where a magic link of /proc leads. */
static int follow_magic(struct walk *walk, struct inode *link)
{
	struct file *file = NULL;
	int failed = link->made->magic(link, &file);
	struct opened *opened = failed < 0 ? NULL : opened_of(file);

	if (failed < 0)
		return failed;
	walk->magic = file;
	walk->inode = opened ? opened->inode : NULL;
	walk->folder = NULL;
	walk->last = LAST_ROOT;
	if (opened)
		set_text(walk, opened->path);
	return 0;
}

static int read_target(const struct walk *walk, struct inode *link, char **ret)
{
	ssize_t len;

	*ret = calloc(1, PATH_MAX);
	if (!*ret)
		abort();
	if (!link->made) {
		snprintf(*ret, PATH_MAX, "%s", link->target);
		return 0;
	}
	len = link->made->target(link, walk->process, *ret, PATH_MAX - 1);
	if (len < 0)
		free(*ret);
	return len < 0 ? (int)len : 0;
}

/* The last name was a link; afterwards walk->inode is what it leads to. */
static int follow(struct walk *walk, bool is_last, unsigned flags)
{
	struct inode *link = walk->inode;
	bool slash = walk->slash;
	char *target;
	int failed;

	if (walk->links++ >= LINKS_MAX)
		return -ELOOP;
	if (link->made && link->made->magic)
		return follow_magic(walk, link);
	failed = read_target(walk, link, &target); /* on the heap: links may be 40 deep */
	if (failed < 0)
		return failed;
	pop_text(walk);
	walk->inode = walk->folder;
	failed = walk_path(walk, target, is_last ? flags : 0);
	free(target);
	if (!is_last)
		walk->slash = slash;
	return failed;
}

static void copy_name(struct walk *walk, const char *name)
{
	size_t len = strlen(name), most = sizeof walk->name - 1;

	len = len < most ? len : most;
	memcpy(walk->name, name, len);
	walk->name[len] = '\0';
}

/* One name of the path, not the last one, or the last one where it is to be followed. */
static int step(struct walk *walk, const char *name, bool is_last, unsigned flags)
{
	int failed;

	if (!S_ISDIR(walk->inode->mode))
		return -ENOTDIR;
	walk->folder = walk->inode;
	walk->last = LAST_NAME;
	if (strcmp(name, ".") == 0) {
		walk->last = LAST_DOT;
		return 0;
	}
	if (strcmp(name, "..") == 0) {
		walk->last = LAST_DOTDOT;
		walk->inode = above(walk->tree, walk->inode);
		pop_text(walk);
		return 0;
	}
	if (is_last && walk->slash && (flags & WALK_CREATE))
		return -EISDIR;
	failed = look(walk, name);
	walk->too_long = failed == -ENAMETOOLONG && is_last && (flags & WALK_PARENT);
	if (failed < 0)
		return walk->too_long ? 0 : failed;
	if (is_last)
		copy_name(walk, name);
	failed = push_text(walk, name);
	if (failed < 0)
		return failed;
	if (!walk->inode)
		return is_last ? 0 : -ENOENT;
	if (S_ISLNK(walk->inode->mode) && (!is_last || !(flags & WALK_NOFOLLOW)))
		return follow(walk, is_last, flags);
	return 0;
}

/* From walk->inode on; or from the root. */
static int walk_path(struct walk *walk, const char *path, unsigned flags)
{
	char name[NAME_MAX + 2]; /* one more, so that a name that is too long is seen to be */
	int failed = 0;

	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (*path == '/')
		start_at_root(walk);
	while (failed == 0) {
		size_t len;
		bool is_last;

		while (*path == '/')
			path++;
		len = (size_t)(strchrnul(path, '/') - path);
		if (len == 0)
			break;
		memcpy(name, path, len < sizeof name ? len : sizeof name - 1);
		name[len < sizeof name ? len : sizeof name - 1] = '\0';
		path += len;
		is_last = path[strspn(path, "/")] == '\0';
		if (is_last && *path == '/')
			walk->slash = true;
		if (is_last && *path == '/' && !(flags & WALK_PARENT))
			flags &= ~(unsigned)WALK_NOFOLLOW;
		failed = step(walk, name, is_last, flags);
		if (failed == 0 && !is_last && !walk->inode)
			return walk->magic ? -ENOTDIR : -ENOENT;
		/* A name that is not the last one must be a folder; the next step says so. */
	}
	if (failed == 0 && walk->slash && walk->inode && !S_ISDIR(walk->inode->mode) &&
	    !(flags & WALK_PARENT))
		return -ENOTDIR;
	return failed;
}

static int start_at(struct walk *walk, const char *cwd, int dirfd)
{
	struct file *file;
	struct opened *opened;

	if (dirfd == AT_FDCWD || !walk->process) {
		const char *from = cwd;
		int failed;

		if (!from)
			from = walk->process && walk->process->cwd ? walk->process->cwd : "/";
		start_at_root(walk);
		failed = walk_path(walk, from, 0);
		walk->slash = false;
		return failed < 0 ? failed : walk->inode ? 0 : -ENOENT;
	}
	if (dirfd < 0 || dirfd >= PROCESS_FDS || !walk->process->fds[dirfd].file)
		return -EBADF;
	file = walk->process->fds[dirfd].file;
	opened = opened_of(file);
	walk->last = LAST_ROOT;
	if (!opened) {
		walk->magic = file;
		return 0;
	}
	walk->inode = opened->inode;
	set_text(walk, opened->path);
	return 0;
}

int walk_at(struct walk *walk, struct process *process, struct machine *machine, const char *cwd,
	    int dirfd, const char *path, unsigned flags)
{
	int failed;

	walk->tree = tree_of(process ? process->machine : machine);
	walk->process = process;
	walk->folder = walk->inode = NULL;
	walk->magic = NULL;
	walk->slash = walk->too_long = false;
	walk->links = 0;
	walk->last = LAST_ROOT;
	set_text(walk, "/");
	if (flags & WALK_PARENT)
		flags |= WALK_NOFOLLOW;
	if (!*path && !(flags & WALK_EMPTY))
		return -ENOENT;
	if (*path == '/')
		return walk_path(walk, path, flags);
	failed = start_at(walk, cwd, dirfd);
	if (failed < 0 || !*path)
		return failed;
	if (!walk->inode || !S_ISDIR(walk->inode->mode))
		return -ENOTDIR;
	walk->magic = NULL;
	return walk_path(walk, path, flags);
}

int walk_found(struct walk *walk, struct process *process, int dirfd, const char *path,
	       unsigned flags)
{
	int failed = walk_at(walk, process, NULL, NULL, dirfd, path, flags);

	if (failed < 0)
		return failed;
	return walk->inode || walk->magic ? 0 : -ENOENT;
}

/* ---- for wrappers ---- */

const char *call_path(int dirfd, const char *path)
{
	static char whole[PATH_MAX + 256];
	const char *at = self->cwd ? self->cwd : "/";
	struct opened *opened = NULL;

	if (!path || *path == '/')
		return path;
	if (dirfd != AT_FDCWD && dirfd >= 0 && dirfd < PROCESS_FDS && self->fds[dirfd].file)
		opened = opened_of(self->fds[dirfd].file);
	if (opened)
		at = opened->path;
	if (!*path || strcmp(path, ".") == 0)
		snprintf(whole, sizeof whole, "%s", at);
	else
		snprintf(whole, sizeof whole, "%s%s%s", at, strcmp(at, "/") == 0 ? "" : "/", path);
	return whole;
}
