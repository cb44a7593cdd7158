/*
 * Bringing one store up to another: everything that `from` has is then in `to`, byte for
 * byte. Nothing is ever deleted there. At least one of both is a directory.
 *
 * It is a merge-join of two listings in key order, so nothing is held in memory but what
 * is under way, and the first object moves while the listing still runs; many small ones
 * move at once. Files appear under their names whole and durable (temporary name, then
 * rename; made durable in groups). Killed at any moment it leaves nothing half: the next
 * run goes on, and what has arrived whole is not moved again.
 *
 * What is unchanged is known without asking for it object by object: a manifest in the
 * directory (a file of a reserved name, which no listing shows) remembers of each key what
 * file and what object were found equal. Where it knows nothing, sizes are compared, then
 * the content: the file is read and its MD5 held against the ETag, of objects in parts too;
 * two files are compared byte by byte. What can be decided neither way is moved.
 *
 * Keys that cannot be files here are refused and told, and the rest goes on: "..", absolute
 * and empty parts, NUL, names too long or reserved, names that differ by case only where
 * the file system takes them for one, a file where a folder must be. Of a zero-byte object
 * whose key ends in a slash (a folder, as consoles make them) nothing is said. Links are
 * neither followed nor written through; on the way up they are refused.
 *
 * Works on one thread and waits. Errors: those of the stores; then what was moved until
 * then is durable and remembered.
 */
#ifndef STK_STORE_SYNC_H
#define STK_STORE_SYNC_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/err.h"
#include "jobs/store/store.h"

/* When an object moves. Readers of `to` see no object of a later stage before those it
 * speaks for: of a folder whose other objects did not all arrive the SYNC_BEHIND_FOLDER ones
 * stay behind, and after any failure the SYNC_LAST ones do. */
enum sync_stage {
	SYNC_NOT = -1,      /* never, and nothing is said of it */
	SYNC_AT_ONCE,       /* as the listing comes to it */
	SYNC_BEHIND_FOLDER, /* when the others of its folder have arrived */
	SYNC_LAST,          /* when all others have */
};

/* What became of an object. */
enum sync_fate {
	SYNC_SAME,    /* is there already, unchanged */
	SYNC_MOVED,   /* has arrived; in a dry run: would be moved */
	SYNC_REFUSED, /* its key can be none there; `why` */
	SYNC_FAILED,  /* changed or was taken away while it was copied; `why` */
	SYNC_FATES
};

struct sync_sum {
	int64_t objects[SYNC_FATES];
	uint64_t bytes[SYNC_FATES]; /* of all of each */
	int64_t to_move;            /* objects found so far that must move, moved ones too */
	uint64_t to_move_bytes;
	bool listed;  /* both listings are at their ends: the two above are final */
	bool stopped; /* by `progress` */
};

struct sync_options {
	const char *only; /* keys that begin with this; NULL: all */
	bool dry_run;     /* change nothing, not even the manifest */
	/* What `to` does not list is written only if nobody has brought one meanwhile: else it
	 * is refused, and `why` is sync_taken. */
	bool exclusive;
	int connections;                                      /* at once; 0: 16 */
	enum sync_stage (*stage)(void *arg, const char *key); /* NULL: all of them at once */
	/* Each object, in no particular order, except that it is told when it is there;
	 * `why` is NULL where there is nothing to say. Key: any bytes but NUL, to be escaped
	 * for a terminal. NULL: only counted. */
	void (*tell)(void *arg, enum sync_fate fate, const char *key, uint64_t size,
		     const char *why);
	/* Now and then, ten times a second at most. False: stop, which is no error
	 * (sum.stopped). NULL: none. */
	bool (*progress)(void *arg, const struct sync_sum *sum);
	void *arg; /* of all three */
};

extern const char *const sync_taken;

/* 0 or -1; `ret` is filled in both cases. Stopped by `progress` or a store's error, what
 * has arrived stays. */
int sync_run(struct store *from, struct store *to, const struct sync_options *options,
	     struct sync_sum *ret, struct err **err);

#endif
