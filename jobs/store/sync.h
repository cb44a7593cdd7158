/*
 * Copies one store into another: afterwards everything that `from` has is in `to`, byte for
 * byte. Nothing is ever deleted in `to`. At least one of the two is a directory.
 *
 * The sync is a merge-join of two listings in key order, so memory holds only what is being
 * transferred, and the first object moves while the listing still runs. Many small objects
 * move at once. Files appear under their names whole and durable (temporary name, then rename;
 * made durable in groups). If the sync is killed at any moment, no partial file has its final
 * name: the next run goes on, and objects that arrived whole are not moved again.
 *
 * Unchanged objects are recognised without a request for each: a manifest in the directory (a
 * file of a reserved name, which no listing shows) remembers for each key the file and the
 * object that were found equal. Without a row, sizes are compared, then the content: the MD5
 * of the file is compared with the ETag, for multipart objects too; two files are compared
 * byte by byte. If neither decides, the object is moved.
 *
 * Keys that cannot be files here are refused and reported, and the rest goes on: "..",
 * absolute and empty parts, NUL, names too long or reserved, names that differ only by case if
 * the file system takes them for one, a file where a folder must be. A zero-byte object with a
 * key that ends in a slash (a folder, as consoles make them) is skipped without a report. Links are
 * neither followed nor written through; on the way up they are refused.
 *
 * Works on one thread and waits. Errors are those of the stores; objects moved until then are
 * durable and remembered.
 */
#ifndef STK_STORE_SYNC_H
#define STK_STORE_SYNC_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/err.h"
#include "jobs/store/store.h"

/* Stage in which an object moves. Readers of `to` see no object of a later stage before those it
 * vouches for: if any object of a folder did not arrive, its SYNC_BEHIND_FOLDER objects are not
 * copied, and after any failure the SYNC_LAST objects are not. */
enum sync_stage {
	SYNC_NOT = -1,      /* never, and without a report */
	SYNC_AT_ONCE,       /* as soon as the listing reaches it */
	SYNC_BEHIND_FOLDER, /* when the other objects of its folder have arrived */
	SYNC_LAST,          /* when all others have arrived */
};

/* Outcome for one object. */
enum sync_fate {
	SYNC_SAME,    /* present and unchanged */
	SYNC_MOVED,   /* has arrived; in a dry run: would be moved */
	SYNC_REFUSED, /* cannot be written in the target; `why` */
	SYNC_FAILED,  /* changed or removed while it was copied; `why` */
	SYNC_FATES
};

struct sync_sum {
	int64_t objects[SYNC_FATES];
	uint64_t bytes[SYNC_FATES]; /* total size of the objects above */
	int64_t to_move;            /* objects found so far that must move, including those moved */
	uint64_t to_move_bytes;
	bool listed;  /* both listings have ended, so the two above are final */
	bool stopped; /* by `progress` */
};

struct sync_options {
	const char *only; /* prefix of the keys to copy; NULL: all */
	bool dry_run;     /* change nothing, not even the manifest */
	/* Keep no manifest: the copy is not kept in step, and a repeated one compares content. */
	bool once;
	/* If true, a key that `to` does not list is written only if no other writer has created
	 * it meanwhile. Otherwise it is refused, and `why` is sync_taken. */
	bool exclusive;
	int connections;                                      /* at the same time; 0: 16 */
	enum sync_stage (*stage)(void *arg, const char *key); /* NULL: all SYNC_AT_ONCE */
	/* Called for each object once its outcome is certain, in no particular order; `why` is
	 * NULL if there is nothing to say. The key may contain any byte but NUL and must be
	 * escaped for a terminal. NULL: objects are only counted. */
	void (*on_object)(void *arg, enum sync_fate fate, const char *key, uint64_t size,
			  const char *why);
	/* Called now and then, ten times a second at most. If it returns false, the sync stops,
	 * which is not an error (sum.stopped). NULL: none. */
	bool (*progress)(void *arg, const struct sync_sum *sum);
	void *arg; /* passed to all three callbacks */
};

extern const char *const sync_taken;

/* Returns 0 or -1; `ret` is filled in both cases. If the sync is stopped by `progress` or by a
 * store's error, the objects that arrived stay. */
int sync_run(struct store *from, struct store *to, const struct sync_options *options,
	     struct sync_sum *ret, struct err **err);

#endif
