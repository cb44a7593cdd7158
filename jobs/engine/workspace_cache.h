/*
 * Cache of a remote workspace for an engine, so that polling ten times a second costs a request
 * only now and then. It holds objects as last read from the store, and the log of a node in the
 * pieces that its agent uploads (jobs/store/order.h).
 */
#ifndef STK_ENGINE_WORKSPACE_CACHE_H
#define STK_ENGINE_WORKSPACE_CACHE_H

#include <stdint.h>

#include "jobs/base/sb.h"
#include "jobs/base/text/js.h"
#include "jobs/store/store.h"

#define REMOTE_MS      10000 /* between two requests for the same object */
#define REMOTE_SIGN_MS 60000 /* between two listings for a sign of life */

struct workspace_cache;

struct workspace_cache *workspace_cache_new(struct store *store); /* borrowed */
void workspace_cache_freep(struct workspace_cache **cache);       /* for AUTO() */

/* Appends the object of that key, as the store had it up to REMOTE_MS ago: 1, 0 absent, -1. */
int workspace_cache_get(struct workspace_cache *cache, const char *key, size_t max, struct sb *ret,
			struct err **err);
/* Does the same as workspace_cache_get(), parsed as JSON; errors call it `what`: 1 and a new
 * reference, 0 absent (NULL), -1. */
int workspace_cache_json(struct workspace_cache *cache, const char *key, size_t max,
			 const char *what, json_t **ret, struct err **err);
/* Forgets the objects with keys that begin with `prefix`, and that the logs beneath it had nothing
 * new: the next read goes to the store. */
void workspace_cache_forget(struct workspace_cache *cache, const char *prefix);

/* Last sign of life of an attempt: the last write beneath its prefix by its submit or its
 * agents. */
struct workspace_cache_sign {
	struct utc last; /* by the store's clock; ms 0: no object yet */
	/* since when it has been the last, and when the prefix was last listed (ms 0: never) */
	struct mono since, at;
};
/* Lists this prefix, at most once per REMOTE_SIGN_MS; `sign` starts as zeros. Objects written by
 * others (a driver's request) do not count. */
int workspace_cache_sign(struct workspace_cache *cache, const char *prefix,
			 struct workspace_cache_sign *sign, struct err **err);

/* Implements `logs` of engine.h, for the attempt with this prefix. */
int workspace_cache_logs(struct workspace_cache *cache, const char *prefix, int node,
			 uint64_t *offset, size_t max, struct sb *ret, struct err **err);

/* Implements `log_size` of engine.h: the size uploaded so far. Costs a request. */
int workspace_cache_log_size(struct workspace_cache *cache, const char *prefix, int node,
			     uint64_t *ret, struct err **err);

/* Implements `log_written` of engine.h: when the piece with this offset was uploaded. */
struct utc workspace_cache_log_written(struct workspace_cache *cache, const char *prefix, int node,
				       uint64_t offset);

#endif
