/*
 * The far side of a sync: a store whose objects come one after the other and move many at
 * once, while the near side is a directory on this machine. A kind of store is one row of
 * functions.
 *
 * Nothing here waits but mover_turn(). A mover belongs to one thread, and to one sync.
 */
#ifndef STK_STORE_MOVER_H
#define STK_STORE_MOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/err.h"
#include "jobs/store/store.h"

/* What the listing tells of an object. */
struct mover_row {
	const char *key; /* borrowed, until the next row is asked for */
	uint64_t size;   /* bytes */
	char tag[STORE_TAG];
	/* The tag may not tell this content from one that is written in the next moment. */
	bool fresh;
	const char *unfit; /* why the key is no name for a file, as the end of a sentence; NULL */
};

enum mover_next { MOVER_ROW, MOVER_WAIT, MOVER_END, MOVER_ERROR };

enum transfer_result {
	TRANSFER_DONE,
	TRANSFER_GONE,    /* it is no longer there */
	TRANSFER_CHANGED, /* it is another one by now */
	TRANSFER_TAKEN,   /* exclusive, and there is one already */
	TRANSFER_FAILED   /* with an error */
};

/* An object on its way between an open file and the mover's store. The mover reads or fills
 * the file from its start on and looks at nothing else of it. */
struct transfer {
	const char *key;
	uint64_t size; /* of what is fetched: once it is done, of what came */
	int fd;
	bool exclusive; /* of what is sent: only if there is none */
	/* Of what is fetched, "": whatever is there now. Once it is done, of what came or was
	 * sent, "" if unknown. */
	char tag[STORE_TAG];
	/* Called once, from mover_turn(). */
	void (*done)(struct transfer *transfer, enum transfer_result result, struct err *err);
	void *owner, *sync;
	void *op;              /* the mover's */
	struct transfer *next; /* the mover's */
};

struct mover_kind;
struct mover {
	const struct mover_kind *kind;
};

struct mover_kind {
	/* Begin to list what has this prefix; once. */
	int (*list)(struct mover *mover, const char *prefix, struct err **err);
	/* The next of it, in order of bytes, each key greater than the one before. */
	enum mover_next (*next)(struct mover *mover, struct mover_row *ret, struct err **err);
	int (*fetch)(struct mover *mover, struct transfer *transfer, struct err **err);
	/* NULL: this kind cannot be sent to. */
	int (*send)(struct mover *mover, struct transfer *transfer, struct err **err);
	/* Why a key cannot be there, as the end of a sentence; NULL: it can. With send(). */
	const char *(*unfit)(const char *key);
	/* Open the object that next() told last, to be read; -1: it cannot be. NULL function:
	 * objects are no files. */
	int (*open)(struct mover *mover);
	/* Go on with all of them, for `wait_ms` at most, sooner if something is done. */
	void (*turn)(struct mover *mover, int64_t wait_ms);
	/* What is under way is dropped without a word. */
	void (*free)(struct mover *mover);
};

int mover_open(struct store *store, struct mover **ret, struct err **err);
void mover_freep(struct mover **mover); /* for AUTO() */

/* Of a directory, and of a bucket. */
int mover_dir_open(struct store *store, struct mover **ret, struct err **err);
int mover_s3_open(struct store *store, struct mover **ret, struct err **err);

#endif
