/* Changes of names, with the errors that Linux gives and the order in which it looks for them
 * (fs/namei.c): see tree_internal.h. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/world/tree_internal.h"

#define LINKS_MOST 65000 /* EXT4_LINK_MAX */

static struct machine *machine_of(const struct walk *walk)
{
	return walk->tree->machine;
}

/* Whether names of that folder may change at all. */
static int check_folder(const struct inode *folder, bool creates)
{
	if (folder->made)
		return creates ? -ENOENT : -EPERM;
	if (folder->links == 0)
		return folder->disk->kind == DISK_SHARE ? -ESTALE : -ENOENT;
	return 0;
}

static void folder_changed(const struct walk *walk, struct inode *folder)
{
	inode_touch(folder, machine_of(walk), true);
}

static void inode_changed(const struct walk *walk, struct inode *inode)
{
	inode_touch(inode, machine_of(walk), false);
}

static int check_room(const struct disk *disk, bool block)
{
	if (disk->files_free != NEVER_LIMITED && disk->files_free <= 0)
		return disk_full_error(disk);
	return block && disk_is_full(disk) ? disk_full_error(disk) : 0;
}

int change_create(struct walk *walk, mode_t mode, struct inode **ret)
{
	struct inode *folder = walk->folder;
	mode_t umask = walk->process ? walk->process->umask : 0;
	int failed = check_folder(folder, true);

	if (failed == 0)
		failed = check_room(folder->disk, S_ISDIR(mode));
	if (failed < 0)
		return failed;
	if (!S_ISLNK(mode))
		mode &= ~umask;
	*ret = inode_new(folder->disk, mode, machine_of(walk));
	change_one(folder, walk->name, *ret);
	folder_changed(walk, folder);
	return 0;
}

/* For a new name: which must not be there. */
static int walk_to_create(struct walk *walk, struct process *process, int dirfd, const char *path,
			  bool folder)
{
	int failed = walk_at(walk, process, NULL, NULL, dirfd, path, WALK_PARENT);

	if (failed < 0)
		return failed;
	if (walk->too_long)
		return -ENAMETOOLONG;
	if (walk->last != LAST_NAME || walk->inode)
		return -EEXIST;
	return walk->slash && !folder ? -ENOENT : 0;
}

int change_mkdir(struct process *process, int dirfd, const char *path, mode_t mode)
{
	struct walk walk;
	struct inode *made;
	int failed = walk_to_create(&walk, process, dirfd, path, true);

	return failed < 0 ? failed : change_create(&walk, S_IFDIR | (mode & 01777), &made);
}

int change_symlink(struct process *process, const char *target, int dirfd, const char *path)
{
	struct walk walk;
	struct inode *made;
	int failed;

	if (!*target)
		return -ENOENT;
	if (strlen(target) >= PATH_MAX)
		return -ENAMETOOLONG;
	failed = walk_to_create(&walk, process, dirfd, path, false);
	if (failed == 0)
		failed = change_create(&walk, S_IFLNK | 0777, &made);
	if (failed < 0)
		return failed;
	made->target = strdup(target);
	return made->target ? 0 : -ENOMEM;
}

static int check_link(const struct inode *inode, bool is_temporary)
{
	if (S_ISDIR(inode->mode))
		return -EPERM;
	if (inode->links == 0 && !is_temporary)
		return -ENOENT;
	return inode->links >= LINKS_MOST ? -EMLINK : 0;
}

int change_link(struct process *process, int from_fd, const char *from, int to_fd, const char *to,
		int flags)
{
	struct walk old, new;
	struct inode *inode;
	int failed;

	if (flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	failed = walk_found(&old, process, from_fd, from,
			    (flags & AT_SYMLINK_FOLLOW ? 0U : WALK_NOFOLLOW) |
				    (flags & AT_EMPTY_PATH ? WALK_EMPTY : 0U));
	if (failed < 0)
		return failed;
	failed = walk_to_create(&new, process, to_fd, to, false);
	if (failed < 0)
		return failed;
	inode = old.inode;
	if (!inode || inode->disk != new.folder->disk)
		return -EXDEV;
	failed = check_folder(new.folder, true);
	/* A file without a name is one of O_TMPFILE if it never had one. */
	if (failed == 0)
		failed = check_link(inode, inode->is_temporary);
	if (failed < 0)
		return failed;
	inode->is_temporary = false;
	change_one(new.folder, new.name, inode);
	inode_changed(&new, inode);
	folder_changed(&new, new.folder);
	return 0;
}

static void remove_name(const struct walk *walk, struct inode *inode)
{
	struct inode *folder = walk->folder;

	inode_open(inode);
	change_one(folder, walk->name, NULL);
	inode_changed(walk, inode);
	folder_changed(walk, folder);
	inode_close(inode);
}

int change_unlink(struct process *process, int dirfd, const char *path)
{
	struct walk walk;
	struct inode *inode;
	int failed = walk_at(&walk, process, NULL, NULL, dirfd, path, WALK_PARENT);

	if (failed < 0)
		return failed;
	inode = walk.inode;
	if (walk.last != LAST_NAME)
		return -EISDIR;
	if (!inode)
		return walk.too_long ? -ENAMETOOLONG : -ENOENT;
	if (walk.slash)
		return S_ISDIR(inode->mode) ? -EISDIR : -ENOTDIR;
	failed = check_folder(walk.folder, false);
	if (failed < 0)
		return failed;
	if (S_ISDIR(inode->mode))
		return -EISDIR;
	remove_name(&walk, inode);
	return 0;
}

int change_rmdir(struct process *process, int dirfd, const char *path)
{
	struct walk walk;
	int failed = walk_at(&walk, process, NULL, NULL, dirfd, path, WALK_PARENT);

	if (failed < 0)
		return failed;
	if (walk.last != LAST_NAME)
		return walk.last == LAST_DOT      ? -EINVAL
		       : walk.last == LAST_DOTDOT ? -ENOTEMPTY
						  : -EBUSY;
	if (!walk.inode)
		return walk.too_long ? -ENAMETOOLONG : -ENOENT;
	failed = check_folder(walk.folder, false);
	if (failed < 0)
		return failed;
	if (!S_ISDIR(walk.inode->mode))
		return -ENOTDIR;
	if (walk_is_mount(walk.tree, walk.inode))
		return -EBUSY;
	if (walk.inode->names.count > 0)
		return -ENOTEMPTY;
	remove_name(&walk, walk.inode);
	return 0;
}

/* ---- rename ---- */

static bool is_within(const struct inode *inode, const struct inode *folder)
{
	for (; folder; folder = folder->parent)
		if (folder == inode)
			return true;
	return false;
}

static int check_places(const struct walk *old, const struct walk *new, unsigned flags)
{
	bool exchange = flags & RENAME_EXCHANGE;

	if (old->folder && new->folder && old->folder->disk != new->folder->disk)
		return -EXDEV;
	if (old->last != LAST_NAME)
		return -EBUSY;
	if (new->last != LAST_NAME)
		return flags & RENAME_NOREPLACE ? -EEXIST : -EBUSY;
	if (!old->inode)
		return old->too_long ? -ENAMETOOLONG : -ENOENT;
	if (new->too_long)
		return -ENAMETOOLONG;
	if (new->inode && (flags & RENAME_NOREPLACE))
		return -EEXIST;
	if (exchange && !new->inode)
		return -ENOENT;
	if (exchange && !S_ISDIR(new->inode->mode) && new->slash)
		return -ENOTDIR;
	if (!S_ISDIR(old->inode->mode) && (old->slash || (!exchange && new->slash)))
		return -ENOTDIR;
	if (is_within(old->inode, new->folder))
		return -EINVAL;
	if (new->inode && is_within(new->inode, old->folder))
		return exchange ? -EINVAL : -ENOTEMPTY;
	return 0;
}

static int check_target(const struct walk *old, const struct walk *new)
{
	if (!new->inode)
		return 0;
	if (S_ISDIR(old->inode->mode) && !S_ISDIR(new->inode->mode))
		return -ENOTDIR;
	if (!S_ISDIR(old->inode->mode) && S_ISDIR(new->inode->mode))
		return -EISDIR;
	if (walk_is_mount(new->tree, new->inode))
		return -EBUSY;
	return S_ISDIR(new->inode->mode) && new->inode->names.count > 0 ? -ENOTEMPTY : 0;
}

static int check_rename(const struct walk *old, const struct walk *new, unsigned flags)
{
	int failed = check_places(old, new, flags);

	if (failed < 0)
		return failed;
	if (old->inode == new->inode)
		return 0;
	failed = check_folder(old->folder, false);
	if (failed == 0)
		failed = check_folder(new->folder, true);
	if (failed == 0 && !(flags & RENAME_EXCHANGE))
		failed = check_target(old, new);
	if (failed == 0 && walk_is_mount(old->tree, old->inode))
		failed = -EBUSY;
	return failed;
}

static void carry_out(const struct walk *old, const struct walk *new, bool exchange)
{
	struct inode *moved = old->inode, *replaced = new->inode;

	inode_open(moved);
	if (replaced)
		inode_open(replaced);
	change_two(old->folder, old->name, exchange ? replaced : NULL, new->folder, new->name,
		   moved);
	inode_changed(new, moved);
	folder_changed(old, old->folder);
	if (new->folder != old->folder)
		folder_changed(new, new->folder);
	if (replaced) {
		inode_changed(new, replaced);
		inode_close(replaced);
	}
	inode_close(moved);
}

int change_rename(struct process *process, int from_fd, const char *from, int to_fd, const char *to,
		  unsigned flags)
{
	struct walk old, new;
	int failed;

	if ((flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE)) ||
	    ((flags & RENAME_NOREPLACE) && (flags & RENAME_EXCHANGE)))
		return -EINVAL;
	failed = walk_at(&old, process, NULL, NULL, from_fd, from, WALK_PARENT);
	if (failed < 0)
		return failed;
	failed = walk_at(&new, process, NULL, NULL, to_fd, to, WALK_PARENT);
	if (failed == 0)
		failed = check_rename(&old, &new, flags);
	if (failed < 0 || old.inode == new.inode)
		return failed;
	carry_out(&old, &new, flags & RENAME_EXCHANGE);
	return 0;
}
