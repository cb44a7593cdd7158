/*
 * Between lock.c (reading), lock_keep.c (writing), lock_check.c (checking,
 * repairing) and lock_refresh.c: names and limits of lock files, and how one is
 * replaced. Nobody else needs it.
 */
#ifndef STK_CACHE_LOCK_FILE_H
#define STK_CACHE_LOCK_FILE_H

#include "jobs/cache/lock.h"

#define LOCK_BYTES_MAX ((size_t)64 << 20)
#define LOCKS_MAX      100000 /* in one cache */
#define LOCK_FEW       4      /* so many graphs are asked for one by one, more are listed */
#define LOCK_TRIES     16     /* rounds against others who change the same lock */

bool lock_key_is_good(const char *graph_key);
char *lock_object_key(const char *graph_key); /* "stoker/<key>.json"; yours to free */

/* As lock_load, with the tag for a conditional replacement. */
int lock_file_get(struct store *store, const char *graph_key, struct compile_lock **ret,
		  char ret_tag[STORE_TAG], char **ret_damage, struct err **err);

/* Write a lock over what was read: with the tag of lock_file_get; NULL: there was
 * none. 1 written, 0 somebody has changed it meanwhile, -1 error. */
int lock_file_replace(struct store *store, const struct compile_lock *lock, const char *tag,
		      struct err **err);

#endif
