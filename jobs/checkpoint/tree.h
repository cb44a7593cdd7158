/*
 * The files of one checkpoint: a listing, and reads in the middle of them.
 *
 * All that the kinds may know of a checkpoint comes through here, so this is
 * where another kind of store would be put underneath: its listing, its range
 * reads. Nothing is reached through a link, whatever changes meanwhile.
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

struct tree_file {
	const char *path; /* relative to the checkpoint; "" if it is a single file */
	uint64_t size;    /* bytes */
	int64_t mtime_ns;
	int64_t birth_ns; /* where the file system does not tell it: mtime_ns */
	bool far;         /* on another node: proved there, read by `open_far` */
	bool opaque;      /* of a far one: its format says nothing of its length */
};

struct tree {
	char *path; /* absolute: of the checkpoint */
	int fd;     /* the folder, or the single file */
	bool single;
	struct tree_file *files; /* by path */
	size_t count;
	uint64_t bytes;
	struct sb names; /* holds the paths */
	/* A descriptor of a far file, -1 and errno; NULL where there are none. */
	int (*open_far)(void *arg, const char *path);
	void *arg;
	/* Why it cannot be a checkpoint (a link, a pipe, too many files…), or NULL. */
	char *odd;
};

#define TREE_INIT ((struct tree){ .fd = -1, .names = SB_INIT_MAX((size_t)1 << 28) })

/* 1, 0 there is no such file or folder (or it is a link), -1 error. Temporary files of this
 * project are left out. What vanishes while it is listed is not there. */
int ckpt_tree_read(const char *path, struct tree *ret, struct err **err);
void ckpt_tree_release(struct tree *tree); /* for AUTO() */

const struct tree_file *ckpt_tree_find(const struct tree *tree, const char *path);
/* The first file whose path begins with `prefix`, or NULL. */
const struct tree_file *ckpt_tree_first(const struct tree *tree, const char *prefix);

/* A descriptor of it, never through a link; -1 and errno. */
int ckpt_tree_open(const struct tree *tree, const struct tree_file *file);
/* Append the whole of a small file: 0, or -1 if it cannot be read or is larger. */
int ckpt_tree_text(const struct tree *tree, const struct tree_file *file, size_t max,
		   struct sb *ret);

/* Read exactly so many bytes there: 0, or -1 (errno; 0 if the file ends before). */
int read_at(int fd, uint64_t offset, void *bytes, size_t len);

/* SHA-256 over the first and last CKPT_ENDS bytes; 0 or -1 and errno. */
int ckpt_tree_ends(const struct tree *tree, const struct tree_file *file, char hex[SHA256_HEX]);

/* From the birth of the first file to the last write, milliseconds: how long it was
 * being saved. Too little where the file system tells no births. */
int64_t ckpt_tree_saving_ms(const struct tree *tree);

/* A digest of paths, sizes and times, and of `more`. */
void ckpt_tree_tag(const struct tree *tree, const char *more, char hex[SHA256_HEX]);

#endif
