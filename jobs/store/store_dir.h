/*
 * The directory store, shared between its files: opening folders, and temporary files.
 *
 * Only regular files are objects. A link is never an object, wherever it lies: listing skips
 * it, reading does not find it, writing replaces it as a name or refuses to pass through it.
 * So nothing outside the folder is ever read or written. Only the store's root itself may be
 * reached through links, as its owner named it.
 *
 * Unlike on S3, `a` and `a/b` cannot both be objects, and a folder stays when its last object
 * is deleted.
 */
#ifndef STK_STORE_STORE_DIR_H
#define STK_STORE_STORE_DIR_H

#include <sys/stat.h>

#include "jobs/store/store_backend.h"

struct store_dir {
	struct store base; /* must be first: a store_dir is used as a store */
	char *root;        /* absolute */
};

/* --- store_dir_file.c --- */

/* Open folder of an object, and the object's name in it. */
struct dir_place {
	int fd;
	const char *name; /* borrowed from the key */
	const char *key;
};

/* Returns 1 with the place, 0 if the folder is absent (never with `make`), -1 with an error. The
 * caller closes place->fd (AUTO(store_dir_place_close)). */
int store_dir_place_open(struct store_dir *store, const char *key, bool make, struct dir_place *ret,
			 struct err **err);
void store_dir_place_close(struct dir_place *place);

/* Opens the root. Returns 1, 0 if absent, -1 with an error. */
int store_dir_root_open(struct store_dir *store, bool make, int *ret_fd, struct err **err);

/* A temporary file in the place, invisible to others until it gets its name. If it has no name
 * at the end of its scope, it is removed. */
struct dir_temp {
	const struct dir_place *place;
	int fd;
	char name[sizeof(STORE_RESERVED) + 16];
};
int store_dir_temp_new(struct store_dir *store, const struct dir_place *place, struct dir_temp *ret,
		       struct err **err);
void store_dir_temp_drop(struct dir_temp *temp);
/* Stamps the temporary file and makes it durable; call once the content is complete. */
int store_dir_temp_sync(struct store_dir *store, struct dir_temp *temp, struct err **err);
/* Links the temporary file to the object's name if that is free. Returns 1 if linked and
 * durable, 0 if the name is taken, -1 with an error. */
int store_dir_temp_link(struct store_dir *store, struct dir_temp *temp, struct err **err);
/* Makes changes of names in the folder durable. */
int store_dir_place_sync(struct store_dir *store, const struct dir_place *place, struct err **err);

void store_dir_tag(const struct stat *st, char tag[STORE_TAG]);
void store_dir_object(const struct stat *st, const char *key, struct store_object *ret);

/* Opens an object for reading. Returns 1 with fd and stat, 0 if absent, -1 with an error. */
int store_dir_object_open(struct store_dir *store, const char *key, int *ret_fd,
			  struct stat *ret_st, struct err **err);

/* Sets the error "cannot write 'KEY' in the store '…'". Returns -1. */
int store_dir_write_error(struct store_dir *store, const char *key, int os_errno, struct err **err);

/* --- store_dir_list.c --- */

/* A listing that returns one object after the other, in key order. */
struct dir_walk;
struct dir_row {
	const char *key; /* all pointers here are borrowed until the next row is asked for */
	int folder;      /* open folder that holds the file `name` */
	const char *name;
	struct stat st;
};
/* Called in each folder for every entry that is not an object: reserved names, links, pipes…
 * `folder` is the folder's key with the slash at its end, or "". May be NULL. */
typedef void (*dir_other_fn)(void *arg, int dir, const char *folder, const char *name);
/* Opens a walk. If the store does not exist, the walk is empty. */
int store_dir_walk_open(struct store_dir *store, const char *prefix, dir_other_fn other, void *arg,
			struct dir_walk **ret, struct err **err);
int store_dir_walk_next(struct dir_walk *walk, struct dir_row *ret,
			struct err **err);         /* 1 with a row, 0 at the end, -1 */
void store_dir_walk_freep(struct dir_walk **walk); /* for AUTO() */

int store_dir_list(struct store *store, const char *prefix, store_list_fn fn, void *arg,
		   struct err **err);
int store_dir_folders(struct store *store, const char *prefix, store_folder_fn fn, void *arg,
		      struct err **err);

/* --- store_dir_copy.c --- */

int store_dir_upload(struct store *store, const struct store_upload *upload, const char *key,
		     struct err **err);
/* Copies all of `from` into the empty `to`. Returns 0 or an errno. */
int store_dir_copy_file(int from, int to);
int store_dir_download(struct store *store, const char *key, const char *path, struct err **err);

#endif
