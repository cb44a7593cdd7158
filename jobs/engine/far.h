/*
 * What an engine remembers of a workspace that is no directory, so that looking ten times a
 * second costs a request now and then: objects as the store last had them, and the log of a
 * node in the pieces that its agent brings there (jobs/store/order.h).
 */
#ifndef STK_ENGINE_FAR_H
#define STK_ENGINE_FAR_H

#include <stdint.h>

#include "jobs/base/json.h"
#include "jobs/base/sb.h"
#include "jobs/store/store.h"

#define FAR_MS      10000 /* between two questions for the same object */
#define FAR_SIGN_MS 60000 /* between two looks for a sign of life */

struct far;

struct far *far_new(struct store *store); /* borrowed */
void far_freep(struct far **far);         /* for AUTO() */

/* The object of that key, appended: 1, 0 absent, -1; what the store said up to FAR_MS ago. */
int far_get(struct far *far, const char *key, size_t max, struct sb *ret, struct err **err);
/* The same, read as JSON, `what` it is in errors: 1 a new reference, 0 absent (NULL), -1. */
int far_json(struct far *far, const char *key, size_t max, const char *what, json_t **ret,
	     struct err **err);
/* What is remembered of keys that begin so counts no more, and of logs beneath this prefix
 * that there was nothing new: the next question goes to the store. */
void far_forget(struct far *far, const char *prefix);

/* The last sign of life of an attempt: when its submit or its agents wrote there last. */
struct far_sign {
	struct utc last;       /* by the store's clock; ms 0: nothing is there */
	struct mono since, at; /* since when it is known to be the last, and when it was looked for
				* (ms 0: never) */
};
/* Look for it beneath this prefix, once a FAR_SIGN_MS; begins with zeros. What others left there
 * (a driver's wish) tells nothing of it. */
int far_sign(struct far *far, const char *prefix, struct far_sign *sign, struct err **err);

/* What engine.h says of logs, of the attempt with this prefix. */
int far_logs(struct far *far, const char *prefix, int node, uint64_t *offset, size_t max,
	     struct sb *ret, struct err **err);

#endif
