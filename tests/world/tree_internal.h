/*
 * Files of the simulated world, from the inside: what the files tree_*.c share. See tree.h.
 *
 *   tree_inode.c    disks, inodes and their bytes, room and quotas
 *   tree_sync.c     names, what of them and of the bytes has reached the disk, loss of power
 *   tree_walk.c     paths: mounts, links, "..", /proc/self/fd
 *   tree_change.c   create, link, unlink, rename …: the changes of names, with their errors
 *   tree_lock.c     flock() and fcntl()
 *   tree_map.c      mappings of files
 *   tree_open_path.c     open(), and what descriptors of files and folders do
 *   tree_proc.c     /proc and /dev
 *   tree_calls.c, tree_content.c, tree_folder.c   the wrappers
 *   tree_hand.c     the world's own hand, machines that halt
 *
 * Functions return 0 or more, or a negative errno. Nothing here spends time or gives way, but the
 * wrappers. Pointers to inodes are borrowed: they hold until the next call that may give way,
 * unless `opens` was raised.
 */
#ifndef STK_TESTS_WORLD_TREE_INTERNAL_H
#define STK_TESTS_WORLD_TREE_INTERNAL_H

#include <limits.h>
#include <sys/stat.h>

#include "tests/world/call.h"
#include "tests/world/tree.h"

#define BLOCK_BYTES   4096
#define NEVER_LIMITED INT64_C(-1)

/* Bytes of a file; shared between what is in memory and what is on the disk, and copied before a
 * write. */
struct block {
	unsigned refs;
	uint8_t bytes[BLOCK_BYTES];
};

struct content {
	struct block **blocks; /* NULL: a hole */
	size_t count, room;
	int64_t size;
};

struct inode;

struct name {
	uint64_t hash; /* folders are kept, and listed, in the order of the hash, as ext4 does */
	char *text;
	struct inode *inode;
};

struct names {
	struct name *list;
	size_t count, room;
};

struct times {
	int64_t access, change, modify, birth; /* wall clock, ns */
};

struct inode {
	struct disk *disk;
	uint64_t number;
	mode_t mode;
	dev_t device;
	unsigned links;           /* names that lead here; a folder has one at most */
	unsigned opens;           /* descriptions and mappings */
	unsigned undoes;          /* of changes that may still be lost */
	bool is_free;             /* the number and the room were given back */
	bool is_temporary;        /* of O_TMPFILE, and no name yet */
	struct content now, kept; /* in memory; on the disk */
	struct times times, kept_times;
	mode_t kept_mode;
	int64_t dirty_since_ns; /* WORLD_NEVER: all of it is on the disk */
	uint8_t *flat;          /* mapped: the bytes, as the mappings have them */
	size_t flat_len;
	char *target;         /* of a symbolic link */
	struct names names;   /* of a folder */
	struct inode *parent; /* of a folder; NULL: none, or the root of a disk */
	unsigned folders;     /* folders in a folder */
	struct tree_lock *locks;
	const struct made_ops *made; /* made up by the kernel: /proc, /dev; NULL: an ordinary one */
	struct process *made_of;
	const char *made_path;
	uint64_t changes;              /* of bytes, attributes or names */
	struct inode *previous, *next; /* of the disk */
};

/* What /proc and /dev have instead of bytes. NULL: it has none of that kind. */
struct made_ops {
	int (*look)(struct inode *folder, const char *text, struct process *by, struct inode **ret);
	void (*list)(struct inode *folder, struct process *by, struct names *ret);
	ssize_t (*target)(struct inode *link, struct process *by, char *text, size_t size);
	/* What a link leads to, where its text does not say it. */
	int (*magic)(struct inode *link, struct file **ret);
	char *(*text)(struct inode *file, struct process *by, size_t *ret_len);
	ssize_t (*read)(struct inode *device, void *buffer, size_t len);
	ssize_t (*write)(struct inode *device, size_t len);
};

struct undo_part {
	struct inode *folder, *before;
	char *text;
};

/* A change of names that is not on the disk. */
struct undo {
	int64_t at_ns;
	int count;
	bool lost; /* of tree_sync.c */
	struct undo_part parts[2];
};

struct disk {
	enum disk_kind kind;
	char name[32];
	dev_t device;
	struct inode *root, *inodes;
	uint8_t *taken; /* numbers that are in use, a bit each */
	size_t taken_len;
	uint64_t next_number;
	int64_t bytes_free, files_free; /* NEVER_LIMITED */
	bool quota, refuses_folder_sync, clones;
	int64_t wall_ns; /* a share: the server's clock at world time 0 */
	bool has_wall;
	struct undo *undos;
	size_t undo_count, undo_room;
	struct tree *tree; /* of /proc */
};

struct mount {
	struct inode *covered; /* NULL: "/" */
	struct disk *disk;
	char *path;
};

struct tree {
	struct machine *machine;
	struct mount mounts[16];
	int mount_count;
	struct disk *proc;
	struct inode **made; /* of /proc */
	size_t made_count;
};

/* An open file or folder: file->data. */
struct opened {
	struct inode *inode;
	struct machine *machine;
	char *path; /* as it was found */
	char *text; /* a made file: what it says */
	size_t text_len;
	bool has_text;
	bool may_read, may_write;
	uint64_t wrote;  /* writes through this description since the last fsync or close */
	uint64_t number; /* unique: an identity for SQLite */
};

/* ---- tree_inode.c ---- */

struct inode *inode_new(struct disk *disk, mode_t mode, struct machine *machine);
/* After links, opens or undoes went down: gives back what nobody needs any more. */
void inode_settle(struct inode *inode);
void inode_open(struct inode *inode);
void inode_close(struct inode *inode);
/* The machine's clock, as files are stamped: in steps of 4 ms. */
int64_t inode_clock(const struct disk *disk, const struct machine *machine);
void inode_touch(struct inode *inode, const struct machine *machine, bool modified);
ssize_t inode_read(const struct inode *inode, int64_t at, void *buffer, size_t len);
ssize_t inode_write(struct inode *inode, const struct machine *machine, int64_t at,
		    const void *bytes, size_t len);
int inode_resize(struct inode *inode, const struct machine *machine, int64_t size);
int inode_allocate(struct inode *inode, const struct machine *machine, int64_t at, int64_t len);
void inode_cut(struct inode *inode, int64_t size); /* what lies behind it is gone */
int64_t inode_blocks(const struct inode *inode);   /* of 4 KiB */
void inode_stat(const struct inode *inode, struct stat *ret);
void content_copy(struct content *to, const struct content *from);
void content_release(struct content *content);
void disk_give_room(struct disk *disk, int64_t blocks);
bool disk_is_full(const struct disk *disk);
int disk_full_error(const struct disk *disk);

/* ---- tree_sync.c ---- */

uint64_t name_hash(const struct inode *folder, const char *text);
struct inode *names_find(const struct inode *folder, const char *text);
/* The index of the first name with a greater hash. */
size_t names_after(const struct names *names, uint64_t hash);
void names_add(struct names *names, uint64_t hash, const char *text, struct inode *inode);
/* Has a name lead to an inode, or to none; `links` and parents follow. No record of it. */
void names_set(struct inode *folder, const char *text, struct inode *inode);
/* The same as a change of the disk: one, or two that are lost or kept together. */
void change_one(struct inode *folder, const char *text, struct inode *inode);
void change_two(struct inode *folder, const char *text, struct inode *inode, struct inode *folder2,
		const char *text2, struct inode *inode2);
/* Before the bytes or attributes change: old ones reach the disk by themselves after a while. */
void sync_before_write(struct inode *inode);
/* Bytes that are not on the disk. */
int64_t sync_dirty(const struct inode *inode);
/* Returns the number of bytes that had to be written. */
int64_t sync_inode(struct inode *inode);
int64_t sync_disk(struct disk *disk);

/* ---- tree_walk.c ---- */

enum walk_flags {
	WALK_NOFOLLOW = 1, /* not the last link, unless a slash follows */
	WALK_PARENT = 2,   /* for a change of the last name: it is never followed */
	WALK_EMPTY = 8,    /* AT_EMPTY_PATH */
	WALK_CREATE = 16,  /* O_CREAT: a slash after the last name is -EISDIR */
};

enum walk_last { LAST_NAME, LAST_DOT, LAST_DOTDOT, LAST_ROOT };

struct walk {
	struct tree *tree;
	struct process *process; /* NULL: the world's own hand, which sees the truth */
	struct inode *folder;    /* of the last name */
	char name[NAME_MAX + 1];
	enum walk_last last;
	bool slash;          /* slashes follow the last name */
	bool too_long;       /* the last name is, which only its change makes an error */
	struct inode *inode; /* NULL: the name is not there */
	struct file *magic;  /* what is not in any folder: a pipe by /proc/self/fd/N */
	char text[PATH_MAX]; /* the way without links and dots */
	size_t text_len;
	int links;
};

/* `cwd` NULL: that of the process, or "/". Returns 0 even where the last name is not there. */
int walk_at(struct walk *walk, struct process *process, struct machine *machine, const char *cwd,
	    int dirfd, const char *path, unsigned flags);
/* The same; -ENOENT where the last name is not there. */
int walk_found(struct walk *walk, struct process *process, int dirfd, const char *path,
	       unsigned flags);
struct tree *tree_of(const struct machine *machine);
struct inode *walk_mounted(struct tree *tree, struct inode *inode);
bool walk_is_mount(struct tree *tree, const struct inode *inode);

/* ---- tree_change.c ---- */

int change_create(struct walk *walk, mode_t mode, struct inode **ret);
int change_mkdir(struct process *process, int dirfd, const char *path, mode_t mode);
int change_symlink(struct process *process, const char *target, int dirfd, const char *path);
int change_link(struct process *process, int from_fd, const char *from, int to_fd, const char *to,
		int flags);
int change_unlink(struct process *process, int dirfd, const char *path);
int change_rmdir(struct process *process, int dirfd, const char *path);
int change_rename(struct process *process, int from_fd, const char *from, int to_fd, const char *to,
		  unsigned flags);

/* ---- tree_lock.c ---- */

int lock_flock(struct file *file, int operation);
void lock_release_file(struct file *file);

/* ---- tree_map.c ---- */

/* mmap() with PROT_READ | PROT_WRITE and MAP_SHARED by the running process: 0, or a negative errno.
 */
int map_file(struct file *file, size_t len, int64_t at, void **ret);
/* munmap() of what map_file() gave. */
void map_release(const void *at);
void map_process_ends(const struct process *process);

/* ---- tree_open.c ---- */

extern const struct file_ops inode_ops;
/* NULL: the description is not of an inode. */
struct opened *opened_of(const struct file *file);
struct file *opened_file(struct inode *inode, struct machine *machine, const char *path, int flags);
/* The description of a descriptor of the running process and its inode: 0 or -EBADF; what has no
 * inode, as a pipe, gives *ret NULL. */
int opened_at(int fd, struct file **file, struct opened **ret);
/* The same for more than a look: also -EBADF for a descriptor of O_PATH. */
int opened_usable(int fd, struct file **file, struct opened **ret);
int open_inode(struct walk *walk, struct inode *inode, int flags, bool created, struct file **ret);

/* ---- tree_proc.c ---- */

struct disk *proc_disk(struct tree *tree);
struct disk *device_disk(void);

/* ---- for wrappers ---- */

/* The whole path, for faults and traces: borrowed, until the next call of it. */
const char *call_path(int dirfd, const char *path);
void call_spend_bytes(const struct inode *inode, size_t len);

#endif
