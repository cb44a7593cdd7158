/*
 * An object store. Cache, source bundles, claims, reports, locks and the shared journal all
 * stand on it, so what is proved on a directory holds on S3 as well.
 *
 * A store is opened at a URL: a directory, as a path or `dir:PATH`, or `s3://bucket/prefix`
 * (also `s3:bucket/prefix`). Keys are relative, `/`-separated names beneath it. No part of a
 * key is empty, "." or ".."; any other key is an error (EXIT_DEFECT). No link leads out of the
 * store for writing. Names in a bucket that are not valid keys are not objects of the store.
 *
 * Every write is whole and durable when the call returns: readers see the old object or the
 * new one. A tag names a content as `replace_if_same` needs it (S3: the ETag; directories: a
 * digest of size, inode and times). On S3 the same bytes written again may have the same tag:
 * an object that must be told apart from its own past, like a lease, contains a number or a
 * nonce.
 *
 * On S3 a call waits for the network: for minutes at worst, never for ever. A store belongs to
 * one thread, and must not be used on both sides of a fork.
 */
#ifndef STK_STORE_STORE_H
#define STK_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/clock.h"
#include "jobs/base/err.h"
#include "jobs/base/sb.h"

struct store;

#define STORE_TAG 72 /* size of a tag in bytes, with its NUL */

struct store_object {
	const char *key;     /* borrowed, until the callback returns */
	uint64_t size;       /* bytes */
	struct utc modified; /* for people and quiet periods, never for order */
	char tag[STORE_TAG];
};

/* Opens the store at `url`. A directory is made by the first write; a missing one lists as
 * empty. */
int store_open(const char *url, struct store **ret, struct err **err);
void store_freep(struct store **store);
const char *store_url(const struct store *store); /* borrowed; absolute path for a directory */
/* Sets the callback for names in a bucket that are not valid keys ("../x", "a//b", with control
 * bytes, longer than 1,024), which store_list() passes over. `why` is the end of a sentence. The
 * name may be hostile text. NULL: no callback. Directories have no such names. */
typedef void (*store_unsafe_name_fn)(void *arg, const char *name, const char *why);
void store_on_unsafe_name(struct store *store, store_unsafe_name_fn fn, void *arg);
/* Returns the number of bytes that this process has exchanged with services so far, including
 * those of objects still being transferred: a sign of progress, not a measure. */
uint64_t store_traffic(void);
/* Returns the directory that holds the objects as files, or NULL if they are not files.
 * Borrowed. */
const char *store_directory(const struct store *store);

/* True if this is a valid key, or the beginning of one, in any kind of store. */
bool store_key_fits(const char *key, bool is_prefix);

/* Lists every object whose key begins with `prefix` (""= all), in key order. `fn` returns 0 to
 * go on, 1 to stop early, -1 with `err` set to fail. */
typedef int (*store_list_fn)(void *arg, const struct store_object *object, struct err **err);
int store_list(struct store *store, const char *prefix, store_list_fn fn, void *arg,
	       struct err **err);

/* Lists the names one level below `prefix` ("" or ending in a slash) that have more below them:
 * the part of each key between the prefix and the next slash, each once, in byte order. On a
 * directory this includes empty folders. Unlike store_list(), this costs nothing for deeper
 * levels. `fn` as for store_list(). */
typedef int (*store_folder_fn)(void *arg, const char *name, struct err **err);
int store_folders(struct store *store, const char *prefix, store_folder_fn fn, void *arg,
		  struct err **err);

/* Returns 1 with the content appended to `ret`, 0 if the object is absent, -1 with an error
 * (also if it is larger than `max`). `ret_tag` may be NULL. */
int store_get(struct store *store, const char *key, size_t max, struct sb *ret,
	      char ret_tag[STORE_TAG], struct err **err);

/* Returns 1 with at most `len` bytes from `offset` on appended to `ret`, fewer if the object
 * ends before that; 0 if the object is absent; -1 with an error. `ret_tag` may be NULL. */
int store_read_range(struct store *store, const char *key, uint64_t offset, size_t len,
		     struct sb *ret, char ret_tag[STORE_TAG], struct err **err);

/* Returns 1 with size and tag, 0 if absent, -1 with an error. `object->key` is set to `key`. */
int store_stat(struct store *store, const char *key, struct store_object *ret_object,
	       struct err **err);

/* Writes or overwrites an object. */
int store_put(struct store *store, const char *key, const void *bytes, size_t len,
	      struct err **err);

/* Writes only if the key is absent. Returns 1 if written, 0 if the key exists, -1 with an error
 * (outcome unknown). */
int store_put_if_absent(struct store *store, const char *key, const void *bytes, size_t len,
			struct err **err);

/* Overwrites only the content that `tag` names. Returns 1 if replaced, 0 if it changed or is
 * gone, -1 with an error. */
int store_replace_if_same(struct store *store, const char *key, const char *tag, const void *bytes,
			  size_t len, struct err **err);

/* Deletes an object. An absent one is not an error. */
int store_delete(struct store *store, const char *key, struct err **err);

/* store_upload() copies a local file to `key`: 1 if stored, 0 if the key exists already
 * (content-addressed objects are never sent twice). store_download() copies an object to a local
 * file (mode 0600): 1 if done, 0 if absent. Both return -1 with an error. */
int store_upload(struct store *store, const char *path, const char *key, struct err **err);
int store_download(struct store *store, const char *key, const char *path, struct err **err);
/* Like store_upload(), of an open file that may have no name, from its beginning: its position is
 * there. The caller closes it. */
int store_upload_file(struct store *store, int fd, const char *key, struct err **err);

#endif
