/* Stands in for the files of the world while they are not there: only what processes need to be
 * started. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/world/kernel_internal.h"
#include "tests/world/tree.h"

struct tree *tree_new(struct machine *machine)
{
	(void)machine;
	return NULL;
}

const char *tree_path(const struct file *file)
{
	return file->ops->kind;
}

int tree_executable(struct machine *machine, const char *cwd, const char *path, char *line,
		    size_t size)
{
	const char *name = strrchr(path, '/');

	(void)machine, (void)cwd;
	if (!name)
		return -ENOENT;
	snprintf(line, size, "\177ELF world %s", name + 1);
	return 0;
}

int tree_is_folder(struct machine *machine, const char *cwd, const char *path)
{
	(void)machine, (void)cwd, (void)path;
	return 0;
}

static ssize_t null_read(struct file *file, void *buffer, size_t len)
{
	(void)file, (void)buffer, (void)len;
	return 0;
}

static ssize_t null_write(struct file *file, const void *bytes, size_t len)
{
	(void)file, (void)bytes;
	return (ssize_t)len;
}

static const struct file_ops null_ops = { .kind = "/dev/null",
					  .read = null_read,
					  .write = null_write };

int tree_open(struct process *process, int dirfd, const char *path, int flags, mode_t mode,
	      struct file **ret)
{
	(void)process, (void)dirfd, (void)path, (void)mode;
	*ret = file_new(&null_ops, flags, NULL);
	return 0;
}

int tree_fcntl_lock(struct file *file, int cmd, struct flock *lock)
{
	(void)file, (void)cmd, (void)lock;
	return -ENOLCK;
}

void tree_descriptor_closes(struct process *process, struct file *file)
{
	(void)process, (void)file;
}

void tree_process_ends(struct process *process)
{
	(void)process;
}

void tree_halt(struct machine *machine, bool power_lost)
{
	(void)machine, (void)power_lost;
}

void tree_put(struct machine *machine, const char *path, const void *bytes, size_t len, mode_t mode)
{
	(void)machine, (void)path, (void)bytes, (void)len, (void)mode;
}
