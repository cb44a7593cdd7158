/*
 * The directory store, shared between its files: ways and temporary files.
 *
 * Only regular files are objects. A link is none, wherever it lies: listing
 * skips it, reading does not find it, writing replaces it as a name or refuses
 * to pass through it. So nothing outside the folder is ever read or written;
 * only the folder itself may be reached through links, as its owner named it.
 *
 * Unlike on S3, `a` and `a/b` cannot both be objects, and a folder stays when
 * its last object is deleted.
 */
#ifndef STK_STORE_STORE_DIR_H
#define STK_STORE_STORE_DIR_H

#include <sys/stat.h>

#include "jobs/store/store_backend.h"

struct store_dir {
	struct store base; /* first: a store is one of these */
	char *root;        /* absolute */
};

/* The folder of an object, opened, and its name in there. */
struct dir_place {
	int fd;
	const char *name; /* borrowed from the key */
	const char *key;
};

/* 1 and the place, 0 if the folder is not there (never with `make`), -1. The
 * caller closes place->fd (AUTO(dir_place_close)). */
int dir_place_open(struct store_dir *store, const char *key, bool make, struct dir_place *ret,
		   struct err **err);
void dir_place_close(struct dir_place *place);

/* Open the root: 1, 0 absent, -1. */
int dir_root_open(struct store_dir *store, bool make, int *ret_fd, struct err **err);

/* A temporary file in the place, invisible to others until it gets its name.
 * Whatever has no name at the end of its scope is removed. */
struct dir_temp {
	const struct dir_place *place;
	int fd;
	char name[sizeof(STORE_RESERVED) + 16];
};
int dir_temp_new(struct store_dir *store, const struct dir_place *place, struct dir_temp *ret,
		 struct err **err);
void dir_temp_drop(struct dir_temp *temp);
/* Its content is complete: stamp it and make it durable. */
int dir_temp_sync(struct store_dir *store, struct dir_temp *temp, struct err **err);
/* Give it the object's name if nobody has it: 1 given and durable, 0 taken, -1. */
int dir_temp_link(struct store_dir *store, struct dir_temp *temp, struct err **err);
/* Make changes of names in the folder durable. */
int dir_place_sync(struct store_dir *store, const struct dir_place *place, struct err **err);

void dir_tag(const struct stat *st, char tag[STORE_TAG]);
void dir_object(const struct stat *st, const char *key, struct store_object *ret);
/* Had it not been touched for so long, when one looked at it, that whatever is written to it
 * after that shows in its times? */
bool dir_is_settled(const struct stat *st, struct utc looked);

/* A listing that is asked for one object after the other, in key order. */
struct dir_walk;
struct dir_row {
	const char *key; /* this and what follows: borrowed, until the next is asked for */
	int folder;      /* open; the file is `name` in it */
	const char *name;
	struct stat st;
};
/* Of each folder, what is no object: reserved names, links, pipes… `folder` is its key with
 * the slash at its end, or "". May be NULL. */
typedef void (*dir_other_fn)(void *arg, int dir, const char *folder, const char *name);
/* Of a store that is not there the walk is empty. */
int dir_walk_open(struct store_dir *store, const char *prefix, dir_other_fn other, void *arg,
		  struct dir_walk **ret, struct err **err);
int dir_walk_next(struct dir_walk *walk, struct dir_row *ret, struct err **err); /* 1, 0, -1 */
void dir_walk_freep(struct dir_walk **walk);                                     /* for AUTO() */

int dir_list(struct store *store, const char *prefix, store_list_fn fn, void *arg,
	     struct err **err);
int dir_folders(struct store *store, const char *prefix, store_folder_fn fn, void *arg,
		struct err **err);
int dir_upload(struct store *store, const char *path, const char *key, struct err **err);
/* The whole of `from` into the empty `to`; 0 or errno. */
int dir_copy_file(int from, int to);
int dir_download(struct store *store, const char *key, const char *path, struct err **err);

/* Open an object for reading: 1 with fd and stat, 0 absent, -1. */
int dir_object_open(struct store_dir *store, const char *key, int *ret_fd, struct stat *ret_st,
		    struct err **err);

#endif
