/*
 * Mappings of files, for what SQLite shares between processes: see tree_internal.h and mmap(2).
 *
 * While a file is mapped its bytes lie in one piece of memory, inode->flat, that does not move: all
 * processes of the world see it there at once. Writes to the file go to its blocks as well; what
 * was stored through the mapping reaches them with the end of the last one.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/world/tree_internal.h"

/* The longest file that can be mapped: the index of 130,000 pages of a log of SQLite. */
#define FLAT_BYTES ((size_t)1 << 20)

struct mapping {
	const struct process *process;
	struct inode *inode;
	const uint8_t *at;
	struct mapping *next;
};

static struct mapping *mappings;

static int flatten(struct inode *inode)
{
	uint8_t *flat;

	if (inode->flat)
		return 0;
	if ((size_t)inode->now.size > FLAT_BYTES)
		return -ENOMEM;
	flat = calloc(1, FLAT_BYTES);
	if (!flat)
		abort();
	(void)inode_read(inode, 0, flat, (size_t)inode->now.size);
	inode->flat_len = FLAT_BYTES;
	inode->flat = flat;
	return 0;
}

/* What was stored in a hole is lost: SQLite has every page written to before it maps it. */
static void unflatten(struct inode *inode, const struct machine *machine)
{
	uint8_t *flat = inode->flat;
	size_t size = (size_t)inode->now.size;

	inode->flat = NULL;
	inode->flat_len = 0;
	for (size_t i = 0; i < inode->now.count && i * BLOCK_BYTES < size; i++) {
		size_t at = i * BLOCK_BYTES, left = size - at;

		if (inode->now.blocks[i])
			(void)inode_write(inode, machine, (int64_t)at, flat + at,
					  left < BLOCK_BYTES ? left : BLOCK_BYTES);
	}
	free(flat);
}

int map_file(struct file *file, size_t len, int64_t at, void **ret)
{
	struct opened *opened = opened_of(file);
	struct mapping *mapping;
	int failed;

	if (!opened || !S_ISREG(opened->inode->mode) || opened->inode->made)
		return -ENODEV;
	if (!opened->may_read || !opened->may_write)
		return -EACCES;
	if (len == 0 || at < 0 || at % BLOCK_BYTES != 0)
		return -EINVAL;
	if ((size_t)at + len > FLAT_BYTES)
		return -ENOMEM;
	failed = flatten(opened->inode);
	if (failed < 0)
		return failed;
	mapping = malloc(sizeof *mapping);
	if (!mapping)
		abort();
	*mapping = (struct mapping){ self, opened->inode, opened->inode->flat + at, mappings };
	mappings = mapping;
	inode_open(opened->inode);
	*ret = opened->inode->flat + at;
	return 0;
}

static bool is_mapped(const struct inode *inode)
{
	for (const struct mapping *mapping = mappings; mapping; mapping = mapping->next)
		if (mapping->inode == inode)
			return true;
	return false;
}

/* `at` NULL: all of the process. */
static void release(const struct process *process, const void *at)
{
	struct mapping **link = &mappings;

	while (*link) {
		struct mapping *mapping = *link;
		struct inode *inode = mapping->inode;

		if (mapping->process != process || (at && mapping->at != at)) {
			link = &mapping->next;
			continue;
		}
		*link = mapping->next;
		free(mapping);
		if (!is_mapped(inode))
			unflatten(inode, process->machine);
		inode_close(inode);
		if (at)
			return;
	}
}

void map_release(const void *at)
{
	release(self, at);
}

void map_process_ends(const struct process *process)
{
	release(process, NULL);
}
