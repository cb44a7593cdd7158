/*
 * Rights that a run needs in a store, each tried by using it: to list, to write, to read, to
 * delete. Who begins a run tries them, and so does an agent that looks around where jobs run, with
 * the rights of the jobs' role.
 */
#ifndef STK_STORE_STORE_RIGHT_H
#define STK_STORE_STORE_RIGHT_H

#include "aws/s3/s3.h"
#include "jobs/store/store.h"

/* Probes that a doctor writes: "<whose>/probe" beneath this, so that the next one finds them. */
#define STORE_RIGHT_PROBES ".stoker-doctor/"
#define STORE_RIGHT_PROBE  "probe"

/* Rights in the order in which they are tried: later ones need the object of the second. */
enum store_right { STORE_RIGHT_LIST, STORE_RIGHT_PUT, STORE_RIGHT_GET, STORE_RIGHT_DELETE };

/* Tries it with an empty object of this key; of LIST, with a listing of what begins so.
 * EXIT_REFUSED names the operation, the place, and the right that it needs. `what` is what the
 * store is to the run ("state"). */
int store_right_try(struct store *store, enum store_right right, const char *key, const char *what,
		    struct err **err);
/* The same for LIST, with a callback as of store_list(). */
int store_right_list(struct store *store, const char *prefix, store_list_fn fn, void *arg,
		     const char *what, struct err **err);

/* Tries an upload in parts with this key of a store in a bucket: see s3_parts_try(). -1: it could
 * not be begun to be tried. */
int store_right_try_parts(const struct store *store, const char *key, bool finds,
			  struct s3_parts_trial *ret, struct err **err);

/* Wraps an error with the operation that failed, and the right that it needs. Returns -1. */
int store_right_denied(const struct store *store, const char *what, const char *doing,
		       const char *right, struct err **err);

#endif
