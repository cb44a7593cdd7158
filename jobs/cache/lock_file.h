/*
 * Between lock.c (reading) and lock_keep.c (writing, checking, repairing): names
 * and limits of lock files. Nobody else needs it.
 */
#ifndef STK_CACHE_LOCK_FILE_H
#define STK_CACHE_LOCK_FILE_H

#include "jobs/cache/lock.h"

#define LOCK_BYTES_MAX ((size_t)64 << 20)
#define LOCKS_MAX      100000 /* in one cache */

bool lock_key_is_good(const char *graph_key);
char *lock_object_key(const char *graph_key); /* "stoker/<key>.json"; yours to free */
char *lock_key_of_object(const char *object); /* NULL if it is no lock's name */

/* As lock_load, with the tag for a conditional replacement. */
int lock_file_get(struct store *store, const char *graph_key, struct compile_lock **ret,
		  char ret_tag[STORE_TAG], char **ret_damage, struct err **err);

#endif
