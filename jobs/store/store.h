/*
 * One object store. Cache, source bundles, claims, reports, locks and the
 * shared journal all stand on it, so what is proved on a directory holds on
 * S3 as well.
 *
 * A store is opened at a URL: a directory, as a path or `dir:PATH`, or
 * `s3://bucket/prefix` (also `s3:bucket/prefix`). Keys are relative,
 * `/`-separated names beneath it, of parts that are neither empty nor "." or
 * ".."; anything else is an error (EXIT_DEFECT), and no link leads out of the
 * store for writing. What lies in a bucket under another name is no object here.
 *
 * Every write is whole and durable when the call returns: readers see the old
 * object or the new one. A tag names a content as `replace_if_same` needs it
 * (S3: the ETag; directories: a digest of size, inode and times). On S3 the same
 * bytes written again may have the same tag: what must be told apart from its
 * past, like a lease, has a number or a nonce in it.
 *
 * On S3 a call waits for the network: for minutes at worst, never for ever. A
 * store belongs to one thread, and is not to be used on both sides of a fork.
 */
#ifndef STK_STORE_STORE_H
#define STK_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/clock.h"
#include "jobs/base/err.h"
#include "jobs/base/sb.h"

struct store;

#define STORE_TAG 72 /* bytes of a tag with its NUL */

struct store_object {
	const char *key;     /* borrowed, until the callback returns */
	uint64_t size;       /* bytes */
	struct utc modified; /* for people and quiet periods, never for order */
	char tag[STORE_TAG];
};

/* The directory is made by the first write; a missing one lists as empty. */
int store_open(const char *url, struct store **ret, struct err **err);
void store_freep(struct store **store);
const char *store_url(const struct store *store); /* borrowed; absolute path for a directory */
/* Who is told of names in a bucket that are no keys here ("../x", "a//b", with control
 * bytes, longer than 1,024), when store_list() passes over them: `why` is the end of a
 * sentence. The name is as hostile as it can be. NULL: nobody. Directories have none. */
typedef void (*store_unfit_fn)(void *arg, const char *name, const char *why);
void store_on_unfit(struct store *store, store_unfit_fn fn, void *arg);
/* Bytes that this process has sent to services and got from them so far, of objects that are
 * under way too: a sign of progress, no measure. */
uint64_t store_traffic(void);
/* Ends waits of this process for services before their time, with EXIT_UNREACHABLE and the
 * effect unknown: `fn` (NULL: nobody) is asked several times a second whether the process is
 * called away. What is under way has a moment to end as it should. */
void store_interrupt(bool (*fn)(void *arg), void *arg);
/* The directory that the objects are files of; NULL where they are none. Borrowed. */
const char *store_directory(const struct store *store);

/* May this be a key, or the beginning of one, in any kind of store? */
bool store_key_fits(const char *key, bool is_prefix);

/* Every object whose key begins with `prefix` (""= all), in key order. `fn`
 * returns 0 to go on, 1 to stop early, -1 with `err` set to fail. */
typedef int (*store_list_fn)(void *arg, const struct store_object *object, struct err **err);
int store_list(struct store *store, const char *prefix, store_list_fn fn, void *arg,
	       struct err **err);

/* The names one level below `prefix` ("" or ending in a slash) that have more
 * below them: what stands in keys between the prefix and the next slash, each
 * once, in byte order. On a directory an empty folder is among them. Unlike
 * store_list, this costs nothing for what lies deeper. `fn` as there. */
typedef int (*store_folder_fn)(void *arg, const char *name, struct err **err);
int store_folders(struct store *store, const char *prefix, store_folder_fn fn, void *arg,
		  struct err **err);

/* 1 and the content appended to `ret`, 0 if there is no such object, -1 error
 * (also if it is larger than `max`). `ret_tag` may be NULL. */
int store_get(struct store *store, const char *key, size_t max, struct sb *ret,
	      char ret_tag[STORE_TAG], struct err **err);

/* 1 and at most `len` bytes from `offset` on appended to `ret`: fewer where the object
 * ends; 0 if there is no such object; -1 error. `ret_tag` may be NULL. */
int store_read_range(struct store *store, const char *key, uint64_t offset, size_t len,
		     struct sb *ret, char ret_tag[STORE_TAG], struct err **err);

/* 1 with size and tag, 0 absent, -1 error. `object->key` is set to `key`. */
int store_stat(struct store *store, const char *key, struct store_object *ret_object,
	       struct err **err);

/* Write or overwrite. */
int store_put(struct store *store, const char *key, const void *bytes, size_t len,
	      struct err **err);

/* Write only if there is none: 1 written, 0 taken, -1 error (outcome unknown). */
int store_put_if_absent(struct store *store, const char *key, const void *bytes, size_t len,
			struct err **err);

/* Overwrite only the content that `tag` names: 1 replaced, 0 it changed or is
 * gone, -1 error. */
int store_replace_if_same(struct store *store, const char *key, const char *tag, const void *bytes,
			  size_t len, struct err **err);

/* Absent is fine. */
int store_delete(struct store *store, const char *key, struct err **err);

/* Bring a local file in under `key` (0 if the key exists already: content
 * addressed objects are never sent twice; 1 stored), or an object out to a
 * local file (0600; 0 absent, 1 done). */
int store_upload(struct store *store, const char *path, const char *key, struct err **err);
int store_download(struct store *store, const char *key, const char *path, struct err **err);

#endif
