/*
 * The files of one checkpoint: a listing, and reads at any offset.
 *
 * Everything that the kinds learn about a checkpoint comes through here, so another kind of
 * store would be added underneath this: its listing, its range reads. No file is reached
 * through a link, whatever changes meanwhile.
 */
#ifndef STK_CHECKPOINT_TREE_H
#define STK_CHECKPOINT_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/err.h"
#include "jobs/base/hash.h"
#include "jobs/base/sb.h"

#define TREE_FILES_MAX 1000000
#define TREE_DEPTH_MAX 64

struct checkpoint_tree_file {
	const char *path; /* relative to the checkpoint; "" if it is a single file */
	uint64_t size;    /* bytes */
	int64_t mtime_ns;
	int64_t birth_ns; /* mtime_ns if the file system does not tell it */
	bool remote;      /* on another node: proved there, read by `open_remote` */
	bool opaque;      /* for a far file: its format says nothing of its length */
};

struct checkpoint_tree {
	char *path; /* absolute path of the checkpoint */
	int fd;     /* the folder, or the single file */
	bool single;
	struct checkpoint_tree_file *files; /* sorted by path */
	size_t count;
	uint64_t bytes;
	struct sb names; /* holds the paths */
	/* Returns a descriptor of a far file, or -1 and errno; NULL if there are no far files. */
	int (*open_remote)(void *arg, const char *path);
	void *arg;
	/* The reason why the tree cannot be a checkpoint (a link, a pipe, too many files…), or
	 * NULL. */
	char *odd;
};

#define TREE_INIT ((struct checkpoint_tree){ .fd = -1, .names = SB_INIT_MAX((size_t)1 << 28) })

/* Returns 1, 0 if the file or folder is absent (or is a link), -1 with an error. Temporary files
 * of this project are left out, and so are files that vanish during the listing. */
int checkpoint_tree_read(const char *path, struct checkpoint_tree *ret, struct err **err);
void checkpoint_tree_release(struct checkpoint_tree *tree); /* for AUTO() */

const struct checkpoint_tree_file *checkpoint_tree_find(const struct checkpoint_tree *tree,
							const char *path);
/* Returns the first file with a path that begins with `prefix`, or NULL. */
const struct checkpoint_tree_file *checkpoint_tree_first(const struct checkpoint_tree *tree,
							 const char *prefix);

/* Opens a file, never through a link. Returns a descriptor, or -1 and errno. */
int checkpoint_tree_open(const struct checkpoint_tree *tree,
			 const struct checkpoint_tree_file *file);
/* Appends the whole of a small file. Returns 0, or -1 if it cannot be read or is larger. */
int checkpoint_tree_text(const struct checkpoint_tree *tree,
			 const struct checkpoint_tree_file *file, size_t max, struct sb *ret);

/* Reads exactly `len` bytes. Returns 0, or -1 (errno; 0 if the file ends before). */
int checkpoint_read_at(int fd, uint64_t offset, void *bytes, size_t len);

/* Computes the SHA-256 over the first and last CKPT_ENDS bytes. Returns 0, or -1 and errno. */
int checkpoint_tree_ends(const struct checkpoint_tree *tree,
			 const struct checkpoint_tree_file *file, char hex[SHA256_HEX]);

/* Returns the milliseconds from the birth of the first file to the last write: the duration of
 * the save. Too little if the file system tells no birth times. */
int64_t checkpoint_tree_saving_ms(const struct checkpoint_tree *tree);

/* Computes a digest of paths, sizes and times, and of `more`. */
void checkpoint_tree_tag(const struct checkpoint_tree *tree, const char *more,
			 char hex[SHA256_HEX]);

#endif
