/* The world's own hand in the files, and machines that halt: see tree.h. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/world/tree_internal.h"

static void mount_at(struct tree *tree, struct inode *covered, const char *path, struct disk *disk)
{
	if (tree->mount_count == (int)(sizeof tree->mounts / sizeof *tree->mounts))
		abort();
	tree->mounts[tree->mount_count++] =
		(struct mount){ .covered = covered, .disk = disk, .path = strdup(path) };
}

struct tree *tree_new(struct machine *machine)
{
	struct tree *tree = calloc(1, sizeof *tree);

	if (!tree)
		abort();
	tree->machine = machine;
	machine->root = tree; /* the paths below are found in it */
	mount_at(tree, NULL, "/", disk_new(DISK_LOCAL, "/dev/vda1"));
	tree->proc = proc_disk(tree);
	tree_mount(tree, "/proc", tree->proc);
	tree_mount(tree, "/dev", device_disk());
	tree_mount(tree, "/tmp", disk_new(DISK_MEMORY, "tmpfs"));
	return tree;
}

/* The folder at a path, which is made. */
static struct inode *make_folders(struct machine *machine, const char *path)
{
	char way[PATH_MAX];
	struct walk walk;

	for (size_t len = 1; path[len - 1]; len++) {
		if (path[len] != '/' && path[len] != '\0')
			continue;
		snprintf(way, sizeof way, "%.*s", (int)len, path);
		if (walk_at(&walk, NULL, machine, NULL, AT_FDCWD, way, 0) < 0)
			abort();
		if (!walk.inode) {
			if (change_create(&walk, S_IFDIR | 0755, &walk.inode) < 0)
				abort();
			sync_inode(walk.folder);
		}
		if (path[len] == '\0')
			return walk.inode;
	}
	return walk_mounted(tree_of(machine), tree_of(machine)->mounts[0].disk->root);
}

void tree_mount(struct tree *tree, const char *path, struct disk *disk)
{
	struct inode *covered = make_folders(tree->machine, path);

	/* A server's clock is that of the first machine, as it was. */
	if (disk->kind == DISK_SHARE && !disk->has_wall) {
		disk->wall_ns = machine_clock_ns(tree->machine, CLOCK_REALTIME) - now_ns;
		disk->has_wall = true;
	}
	mount_at(tree, covered, path, disk);
}

void tree_mkdirs(struct machine *machine, const char *path)
{
	(void)make_folders(machine, path);
}

void tree_put(struct machine *machine, const char *path, const void *bytes, size_t len, mode_t mode)
{
	char folder[PATH_MAX];
	struct walk walk;

	snprintf(folder, sizeof folder, "%s", path);
	*strrchr(folder, '/') = '\0';
	if (*folder)
		(void)make_folders(machine, folder);
	if (walk_at(&walk, NULL, machine, NULL, AT_FDCWD, path, 0) < 0)
		abort();
	if (!walk.inode && change_create(&walk, S_IFREG | mode, &walk.inode) < 0)
		abort();
	walk.inode->mode = S_IFREG | mode;
	inode_resize(walk.inode, machine, 0);
	if (inode_write(walk.inode, machine, 0, bytes, len) != (ssize_t)len)
		abort();
	sync_inode(walk.inode);
	sync_inode(walk.folder);
}

static struct inode *find(struct machine *machine, const char *path)
{
	struct walk walk;

	if (walk_at(&walk, NULL, machine, NULL, AT_FDCWD, path, 0) < 0)
		return NULL;
	return walk.inode;
}

char *tree_get(struct machine *machine, const char *path, size_t *ret_len)
{
	struct inode *inode = find(machine, path);
	char *text;
	ssize_t len;

	if (!inode || !S_ISREG(inode->mode))
		return NULL;
	if (inode->made) {
		size_t made_len = 0;

		text = inode->made->text(inode, NULL, &made_len);
		if (ret_len)
			*ret_len = made_len;
		return text;
	}
	text = malloc((size_t)inode->now.size + 1);
	if (!text)
		abort();
	len = inode_read(inode, 0, text, (size_t)inode->now.size);
	text[len] = '\0';
	if (ret_len)
		*ret_len = (size_t)len;
	return text;
}

bool tree_exists(struct machine *machine, const char *path)
{
	return find(machine, path) != NULL;
}

bool tree_remove(struct machine *machine, const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	char folder_path[PATH_MAX];
	struct inode *folder;

	snprintf(folder_path, sizeof folder_path, "%.*s", (int)(name - path - 1), path);
	folder = find(machine, folder_path);
	if (!folder || !names_find(folder, name))
		return false;
	change_one(folder, name, NULL);
	return true;
}

static void remove_all(struct inode *folder, const char *name, struct inode *inode)
{
	while (S_ISDIR(inode->mode) && inode->names.count > 0) {
		char inner[NAME_MAX + 1];

		snprintf(inner, sizeof inner, "%s", inode->names.list[0].text);
		remove_all(inode, inner, inode->names.list[0].inode);
	}
	change_one(folder, name, NULL);
}

const char *tree_path(const struct file *file)
{
	static char text[PATH_MAX + 16];
	const struct opened *opened = opened_of(file);

	if (!file)
		return NULL;
	if (!opened)
		snprintf(text, sizeof text, "%s:[%llu]", file->ops->kind,
			 (unsigned long long)file->number);
	else if (opened->inode->links == 0)
		snprintf(text, sizeof text, "%s (deleted)", opened->path);
	else
		memcpy(text, opened->path, strlen(opened->path) + 1);
	return text;
}

static void empty(struct disk *disk)
{
	struct inode *root = disk->root;

	while (root->names.count > 0) {
		char name[NAME_MAX + 1];

		snprintf(name, sizeof name, "%s", root->names.list[0].text);
		remove_all(root, name, root->names.list[0].inode);
	}
}

void tree_halt(struct machine *machine, bool power_lost)
{
	struct tree *tree = tree_of(machine);

	for (int i = 0; i < tree->mount_count; i++) {
		struct disk *disk = tree->mounts[i].disk;

		if (disk->kind == DISK_LOCAL && power_lost)
			disk_lose_power(disk);
		else if (disk->kind == DISK_MEMORY && strcmp(disk->name, "tmpfs") == 0)
			empty(disk);
	}
}
