/* flock() and the locks of fcntl(): see tree_internal.h and fcntl_locking(2). */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>

#include "tests/world/tree_internal.h"

enum lock_kind { LOCK_OF_FLOCK, LOCK_OF_FILE, LOCK_OF_PROCESS };

struct tree_lock {
	enum lock_kind kind;
	const void *owner; /* the description, or the process */
	short type;        /* F_RDLCK, F_WRLCK */
	int64_t first, last;
	pid_t pid;
	struct tree_lock *next;
};

struct want {
	struct inode *inode;
	struct tree_lock lock;
};

/* flock() is apart from fcntl(), but on NFS, where it is a lock of the whole file. */
static bool is_apart(const struct inode *inode, const struct tree_lock *a,
		     const struct tree_lock *b)
{
	return (a->kind == LOCK_OF_FLOCK) != (b->kind == LOCK_OF_FLOCK) &&
	       inode->disk->kind != DISK_SHARE;
}

static const struct tree_lock *conflict(const struct inode *inode, const struct tree_lock *want)
{
	for (const struct tree_lock *lock = inode->locks; lock; lock = lock->next)
		if ((lock->owner != want->owner || lock->kind != want->kind) &&
		    !is_apart(inode, lock, want) && lock->first <= want->last &&
		    want->first <= lock->last && (lock->type == F_WRLCK || want->type == F_WRLCK))
			return lock;
	return NULL;
}

static bool is_free(void *arg)
{
	const struct want *want = arg;

	return !conflict(want->inode, &want->lock);
}

static bool is_of(const struct tree_lock *lock, const struct tree_lock *like)
{
	return lock->owner == like->owner && lock->kind == like->kind;
}

/* Owners in the order of their first locks, and each one's by their start, as the kernel has them:
 * so the same one of several conflicts is told. */
static void add(struct inode *inode, const struct tree_lock *like, int64_t first, int64_t last,
		short type)
{
	struct tree_lock *lock = malloc(sizeof *lock), **at = &inode->locks;

	if (!lock)
		abort();
	while (*at && !is_of(*at, like))
		at = &(*at)->next;
	while (*at && is_of(*at, like) && (*at)->first < first)
		at = &(*at)->next;
	*lock = *like;
	lock->first = first;
	lock->last = last;
	lock->type = type;
	lock->next = *at;
	*at = lock;
}

/* Takes the range out of what the owner has. */
static void cut_out(struct inode *inode, const struct tree_lock *range)
{
	struct tree_lock **at = &inode->locks;

	while (*at) {
		struct tree_lock *lock = *at, old = *lock;

		if (!is_of(lock, range) || lock->first > range->last || range->first > lock->last) {
			at = &lock->next;
			continue;
		}
		if (old.first < range->first) {
			lock->last = range->first - 1;
			at = &lock->next;
		} else if (old.last > range->last) {
			lock->first = range->last + 1;
			return;
		} else {
			*at = lock->next;
			free(lock);
			continue;
		}
		if (old.last > range->last) {
			add(inode, &old, range->last + 1, old.last, old.type);
			return;
		}
	}
}

/* Locks of one kind that touch are one lock. */
static void join(struct inode *inode, const struct tree_lock *like)
{
	for (struct tree_lock *lock = inode->locks; lock && lock->next; lock = lock->next) {
		struct tree_lock *next = lock->next;

		while (next && is_of(lock, like) && is_of(next, like) && lock->type == next->type &&
		       lock->last == next->first - 1) {
			lock->last = next->last;
			lock->next = next->next;
			free(next);
			next = lock->next;
		}
	}
}

static int take(struct inode *inode, struct tree_lock *lock, bool wait)
{
	struct want want = { inode, *lock };

	while (lock->type != F_UNLCK && conflict(inode, lock)) {
		int failed;

		if (!wait)
			return -EAGAIN;
		inode_open(inode);
		failed = world_wait(is_free, &want, WORLD_NEVER);
		inode_close(inode);
		if (failed < 0)
			return failed;
	}
	cut_out(inode, lock);
	if (lock->type != F_UNLCK)
		add(inode, lock, lock->first, lock->last, lock->type);
	join(inode, lock);
	world_stir();
	return 0;
}

int lock_flock(struct file *file, int operation)
{
	struct opened *opened = opened_of(file);
	struct tree_lock lock = { .kind = LOCK_OF_FLOCK, .owner = file, .last = INT64_MAX };

	switch (operation & ~LOCK_NB) {
	case LOCK_SH:
		lock.type = F_RDLCK;
		break;
	case LOCK_EX:
		lock.type = F_WRLCK;
		break;
	case LOCK_UN:
		lock.type = F_UNLCK;
		break;
	default:
		return -EINVAL;
	}
	if (!opened)
		return 0; /* a pipe: nobody asks for it */
	/* The server refuses a lock to write through a description that cannot: EBADF. */
	if (opened->inode->disk->kind == DISK_SHARE &&
	    ((lock.type == F_WRLCK && !opened->may_write) ||
	     (lock.type == F_RDLCK && !opened->may_read)))
		return -EBADF;
	/* A change of the kind gives the old lock up first, flock(2). */
	if (lock.type != F_UNLCK && conflict(opened->inode, &lock) && !(operation & LOCK_NB))
		cut_out(opened->inode, &lock);
	return take(opened->inode, &lock, !(operation & LOCK_NB));
}

static int range_of(const struct file *file, const struct opened *opened, const struct flock *lock,
		    struct tree_lock *ret)
{
	int64_t from = lock->l_start;

	if (lock->l_whence == SEEK_CUR)
		from += file->offset;
	else if (lock->l_whence == SEEK_END)
		from += opened->inode->now.size;
	else if (lock->l_whence != SEEK_SET)
		return -EINVAL;
	ret->first = lock->l_len < 0 ? from + lock->l_len : from;
	ret->last = lock->l_len == 0  ? INT64_MAX
		    : lock->l_len < 0 ? from - 1
				      : from + lock->l_len - 1;
	if (ret->first < 0)
		return -EINVAL;
	ret->type = lock->l_type;
	if (ret->type != F_RDLCK && ret->type != F_WRLCK && ret->type != F_UNLCK)
		return -EINVAL;
	return 0;
}

static void tell_conflict(const struct inode *inode, const struct tree_lock *want,
			  struct flock *ret)
{
	const struct tree_lock *found = conflict(inode, want);

	if (!found) {
		ret->l_type = F_UNLCK;
		return;
	}
	ret->l_type = found->type;
	ret->l_whence = SEEK_SET;
	ret->l_start = found->first;
	ret->l_len = found->last == INT64_MAX ? 0 : found->last - found->first + 1;
	ret->l_pid = found->kind == LOCK_OF_PROCESS ? found->pid : -1;
}

int tree_fcntl_lock(struct file *file, int cmd, struct flock *lock)
{
	struct opened *opened = opened_of(file);
	bool of_file = cmd == F_OFD_SETLK || cmd == F_OFD_SETLKW || cmd == F_OFD_GETLK;
	struct tree_lock want = { .kind = of_file ? LOCK_OF_FILE : LOCK_OF_PROCESS,
				  .owner = of_file ? (void *)file : (void *)self,
				  .pid = self->pid };
	int failed;

	if (!opened || (of_file && lock->l_pid != 0))
		return -EINVAL;
	if (file->flags & O_PATH)
		return -EBADF;
	failed = range_of(file, opened, lock, &want);
	if (failed < 0)
		return failed;
	if (cmd == F_GETLK || cmd == F_OFD_GETLK) {
		if (want.type == F_UNLCK && cmd == F_GETLK)
			return -EINVAL;
		tell_conflict(opened->inode, &want, lock);
		return 0;
	}
	if ((want.type == F_RDLCK && !opened->may_read) ||
	    (want.type == F_WRLCK && !opened->may_write))
		return -EBADF;
	return take(opened->inode, &want, cmd == F_SETLKW || cmd == F_OFD_SETLKW);
}

static void release(struct inode *inode, enum lock_kind kind, const void *owner)
{
	struct tree_lock all = { .kind = kind, .owner = owner, .last = INT64_MAX };
	struct tree_lock *before = inode->locks;

	if (!before)
		return;
	cut_out(inode, &all);
	world_stir();
}

void lock_release_file(struct file *file)
{
	struct opened *opened = opened_of(file);

	release(opened->inode, LOCK_OF_FLOCK, file);
	release(opened->inode, LOCK_OF_FILE, file);
}

void tree_descriptor_closes(struct process *process, struct file *file)
{
	struct opened *opened = opened_of(file);

	if (opened)
		release(opened->inode, LOCK_OF_PROCESS, process);
}

void tree_process_ends(struct process *process)
{
	for (int fd = 0; fd < PROCESS_FDS; fd++)
		if (process->fds[fd].file)
			tree_descriptor_closes(process, process->fds[fd].file);
	map_process_ends(process);
}
