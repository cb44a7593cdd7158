/*
 * Interface of one kind of store: a table of functions with the meaning of their namesakes in
 * store.h. Keys and prefixes are already checked. A new kind is one file that offers such a
 * table, and one line in store.c.
 */
#ifndef STK_STORE_STORE_BACKEND_H
#define STK_STORE_STORE_BACKEND_H

#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/store/store.h"

struct store_digest;
struct transfer_backend;

/* A regular file that is being uploaded. */
struct store_upload {
	const char *path; /* for errors */
	int fd;
	struct stat st; /* when it was opened */
};

struct store_backend {
	void (*free)(struct store *store);
	int (*list)(struct store *store, const char *prefix, store_list_fn fn, void *arg,
		    struct err **err);
	int (*folders)(struct store *store, const char *prefix, store_folder_fn fn, void *arg,
		       struct err **err);
	int (*get)(struct store *store, const char *key, size_t max, struct sb *ret,
		   char ret_tag[STORE_TAG], struct err **err);
	int (*read_range)(struct store *store, const char *key, uint64_t offset, size_t len,
			  struct sb *ret, char ret_tag[STORE_TAG], struct err **err);
	int (*stat)(struct store *store, const char *key, struct store_object *ret_object,
		    struct err **err);
	int (*put)(struct store *store, const char *key, const void *bytes, size_t len,
		   struct err **err);
	int (*put_if_absent)(struct store *store, const char *key, const void *bytes, size_t len,
			     struct err **err);
	int (*replace_if_same)(struct store *store, const char *key, const char *tag,
			       const void *bytes, size_t len, struct err **err);
	int (*remove)(struct store *store, const char *key, struct err **err);
	int (*upload)(struct store *store, const struct store_upload *upload, const char *key,
		      struct err **err);
	int (*download)(struct store *store, const char *key, const char *path, struct err **err);
	/* Copies an object of another store of this kind, as store_copy(): NULL, or the bytes need
	 * not come here. */
	int (*copy)(struct store *store, const char *key, struct store *from,
		    const struct store_object *object, const char *want,
		    char ret_sha256[SHA256_HEX], struct err **err);
	/* Opens the store as the remote side of a sync: see transfer_backend.h. */
	int (*backend)(struct store *store, struct transfer_backend **ret, struct err **err);
	/* Like store_sha256_all(). NULL: objects are files, which all cores read. */
	void (*digests)(struct store *store, struct store_digest *digests, size_t count);
};

/* Every kind of store begins with this. */
struct store {
	const struct store_backend *backend;
	char *url;             /* owned by the backend's struct, freed by its `free` */
	const char *directory; /* as store_directory() */
	store_unsafe_name_fn unsafe_name;
	void *unsafe_name_arg;
};

/* Opens a store of one kind; `where` is the URL as the user wrote it. */
int store_dir_open(const char *where, struct store **ret, struct err **err);
int store_s3_open(const char *where, struct store **ret, struct err **err);

/* Prefix of temporary files of a backend (or of fs.h) and of its locks: such names are never
 * keys and never listed. */
#define STORE_RESERVED FS_TEMP_PREFIX

#endif
