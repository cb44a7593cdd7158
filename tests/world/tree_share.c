/* What a machine believes about a share: see tree_internal.h and nfs(5). */
#include "tests/world/tree_internal.h"

struct inode *share_look(struct process *process, struct inode *folder, const char *text,
			 bool fresh)
{
	(void)process;
	(void)fresh;
	return names_find(folder, text);
}

int share_stat(struct process *process, struct inode *inode, struct stat *ret)
{
	(void)process;
	inode_stat(inode, ret);
	return 0;
}

ssize_t share_read(const struct opened *opened, int64_t at, void *buffer, size_t len)
{
	return inode_read(opened->inode, at, buffer, len);
}

const struct names *share_names(struct process *process, struct inode *folder)
{
	(void)process;
	return &folder->names;
}

void share_forget(const struct machine *machine, struct inode *inode)
{
	(void)machine;
	(void)inode;
}

int share_check(const struct opened *opened)
{
	(void)opened;
	return 0;
}

bool share_hides(struct process *process, struct inode *folder, const char *text,
		 struct inode *inode)
{
	(void)process;
	(void)folder;
	(void)text;
	(void)inode;
	return false;
}

void share_closed(const struct machine *machine, struct inode *inode)
{
	(void)machine;
	(void)inode;
}

void share_halted(struct machine *machine)
{
	(void)machine;
}
