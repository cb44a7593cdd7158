/*
 * The claim on a graph key: of the runs that need one set of graphs at a time, one
 * precompiles, and the others wait until its lock is there.
 *
 * An object beside the locks, `stoker/claims/<graph key>.json`, only ever created if
 * absent or replaced if unchanged:
 *
 *     {"v":1,"graph_key","run","host","nonce","since": utc ms,"held": bool,
 *      "valid_ms","beat"}
 *
 * `nonce` tells one run from all others, whatever their ids; it is known to the run's
 * drivers and to its agents, and each of them renews the claim (a new `beat`) while
 * phase 1 is under way, so that it outlives any of them. Whoever wants it takes it when
 * it was given up (`held` false), or when it has not changed for `valid_ms` of watching
 * on the watcher's own monotonic clock: clocks of different machines are never compared.
 *
 * It saves work and protects nothing: where two hold it, each on good grounds, the
 * same graphs are compiled twice. So a claim that does not parse, or that nobody can
 * write, keeps nobody from compiling.
 */
#ifndef STK_CACHE_KEY_CLAIM_H
#define STK_CACHE_KEY_CLAIM_H

#include "jobs/base/clock.h"
#include "jobs/cache/lock.h"

#define KEY_CLAIM_PREFIX   LOCK_PREFIX "claims/"
#define KEY_CLAIM_VALID_MS 60000 /* without a change, and others may take it */
#define KEY_CLAIM_RENEW_MS 20000

struct key_claim {
	struct store *store;     /* the cache; the caller's */
	char *key, *run, *nonce; /* key: the graph key */

	/* who had it at the last try, where that was another: its id, NULL if it does not
	 * say; host, NULL likewise; since when, by its own clock, 0 likewise */
	char *holder, *host;
	int64_t since_ms;
	/* from whom it was taken and why, or why it could not be written; NULL: neither */
	char *taken;

	/* the other's claim as it was last seen, and how long it has been watched so */
	char *seen;
	struct mono seen_at;
	int64_t watched_ms;
};

/* Nothing is read yet. Strings are copied. */
void key_claim_init(struct key_claim *claim, struct store *store, const char *graph_key,
		    const char *run, const char *nonce);
void key_claim_clear(struct key_claim *claim); /* for AUTO(); { 0 } is fine */

/* 1 it is ours now, whether taken or renewed, or it is free and nobody can write it; 0
 * another run has it: come back soon, at least each KEY_CLAIM_RENEW_MS, with the same
 * claim; -1 it cannot be read, or its store cannot be reached. */
int key_claim_try(struct key_claim *claim, struct err **err);

/* 1 ours, and renewed; 0 not ours (any more), which changes nothing. */
int key_claim_renew(const struct key_claim *claim, struct err **err);

/* Give it up, if it is ours. */
int key_claim_release(const struct key_claim *claim, struct err **err);

/* Whether an object of a cache is such a claim, by its key. */
bool key_claim_is(const char *object);

#endif
