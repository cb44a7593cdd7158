/*
 * The remote side of a sync: a store that lists its objects one after the other and transfers
 * many at once. The local side is a directory on this machine. Each kind of store is one table
 * of functions.
 *
 * Only turn() waits. A transfer backend belongs to one thread, and to one sync.
 */
#ifndef STK_STORE_TRANSFER_BACKEND_H
#define STK_STORE_TRANSFER_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/err.h"
#include "jobs/store/store.h"

/* An object as the listing returns it. */
struct transfer_backend_row {
	const char *key; /* borrowed until the next row is asked for */
	uint64_t size;   /* bytes */
	char tag[STORE_TAG];
	/* True if the tag may not tell this content from one written in the next moment. */
	bool fresh;
	const char *unsafe_name; /* why the key cannot be a file name; NULL if it can */
};

enum transfer_backend_next {
	TRANSFER_BACKEND_ROW,
	TRANSFER_BACKEND_WAIT,
	TRANSFER_BACKEND_END,
	TRANSFER_BACKEND_ERROR
};

enum transfer_result {
	TRANSFER_DONE,
	TRANSFER_GONE,    /* the object no longer exists */
	TRANSFER_CHANGED, /* the object has changed since it was listed */
	TRANSFER_TAKEN,   /* exclusive, and the key exists already */
	TRANSFER_FAILED   /* with an error */
};

/* A transfer between an open file and the backend's store. The backend reads or writes the file
 * from its start and looks at nothing else of it. */
struct transfer {
	const char *key;
	uint64_t size; /* fetch: expected size, once done the size received */
	int fd;
	bool exclusive; /* send: only if the key is absent */
	/* Fetch: tag of the content wanted, "" for whatever is there now. Once done, the tag of
	 * the content received or sent, "" if unknown. */
	char tag[STORE_TAG];
	/* Called once, from turn(). */
	void (*done)(struct transfer *transfer, enum transfer_result result, struct err *err);
	void *owner, *sync;
	void *op;              /* used by the backend */
	struct transfer *next; /* used by the backend */
};

struct transfer_backend_kind;
struct transfer_backend {
	const struct transfer_backend_kind *kind;
};

struct transfer_backend_kind {
	/* Starts listing the objects with this prefix; may be called once. */
	int (*list)(struct transfer_backend *backend, const char *prefix, struct err **err);
	/* Returns the next object, in byte order, each key greater than the one before. */
	enum transfer_backend_next (*next)(struct transfer_backend *backend,
					   struct transfer_backend_row *ret, struct err **err);
	int (*fetch)(struct transfer_backend *backend, struct transfer *transfer, struct err **err);
	/* NULL: this kind cannot receive objects. */
	int (*send)(struct transfer_backend *backend, struct transfer *transfer, struct err **err);
	/* Returns why a key is not valid in this store, as the end of a sentence, or NULL if it
	 * is valid. Present if send() is. */
	const char *(*unsafe_name)(const char *key);
	/* Opens for reading the object that next() returned last; returns -1 if it cannot be
	 * opened. The function is NULL if objects are not files. */
	int (*open)(struct transfer_backend *backend);
	/* Continues all transfers for at most `wait_ms`, less if one is finished. */
	void (*turn)(struct transfer_backend *backend, int64_t wait_ms);
	/* Drops running transfers without calling done(). */
	void (*free)(struct transfer_backend *backend);
};

/* Open the transfer backend of a directory, and of a bucket. */
int transfer_backend_dir_open(struct store *store, struct transfer_backend **ret, struct err **err);
int transfer_backend_s3_open(struct store *store, struct transfer_backend **ret, struct err **err);

#endif
