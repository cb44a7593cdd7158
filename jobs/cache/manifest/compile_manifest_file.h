/*
 * Between compile_manifest.c (reading), compile_manifest_keep.c (writing), compile_manifest_check.c
 * (checking, repairing) and compile_manifest_refresh.c: names, limits and replacement of manifest
 * files. For these files only.
 */
#ifndef STK_CACHE_MANIFEST_COMPILE_MANIFEST_FILE_H
#define STK_CACHE_MANIFEST_COMPILE_MANIFEST_FILE_H

#include "jobs/cache/kinds/pause.h"
#include "jobs/cache/manifest/compile_manifest.h"

#define LOCK_BYTES_MAX ((size_t)64 << 20)
#define LOCKS_MAX      100000 /* manifests in one cache */
#define LOCK_FEW       4      /* up to this many graphs are checked one by one, more by a listing */
#define LOCK_TRIES     16     /* attempts while other processes change the same manifest */

bool compile_manifest_key_is_good(const char *graph_key);
/* "stoker/<key>.json"; the caller frees it. */
char *compile_manifest_object_key(const char *graph_key);

/* Like compile_manifest_load, with the tag for a conditional replacement. */
int compile_manifest_file_get(struct store *store, const char *graph_key,
			      struct compile_manifest **ret, char ret_tag[STORE_TAG],
			      char **ret_damage, struct err **err);

/* Replaces the manifest that compile_manifest_file_get read with the tag `tag`; NULL: creates it.
 * Returns 1 if written, 0 if another process changed it meanwhile, -1 with an error. */
int compile_manifest_file_replace(struct store *store, const struct compile_manifest *lock,
				  const char *tag, struct err **err);

/* In a directory, makes the entries durable before a manifest names them, with all other files in
 * the folder of an entry. `pause` is called before each entry. */
int compile_manifest_file_sync(struct store *store, const struct compile_manifest *lock,
			       const struct cache_pause *pause, struct err **err);

#endif
