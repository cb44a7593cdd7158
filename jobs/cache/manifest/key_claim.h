/*
 * The claim on a graph key: if several runs need the same set of graphs at a time, one precompiles
 * them, and the others wait until its compile manifest is written.
 *
 * The claim is an object beside the manifests, `stoker/claims/<graph key>.json`, only ever created
 * if absent or replaced if unchanged:
 *
 *     {"v":1,"graph_key","run","host","nonce","since": utc ms,"held": bool,
 *      "valid_ms","beat"}
 *
 * `nonce` tells one run from all others, whatever their ids; it is known to the run's
 * drivers and to its agents, and each of them renews the claim (a new `beat`) while
 * phase 1 is under way, so that it outlives any of them. Another run takes the claim when it was
 * given up (`held` false), or when it has not changed for `valid_ms` while that run watched it, by
 * its own monotonic clock: clocks of different machines are never compared.
 *
 * The claim saves work and protects nothing: if two runs hold it, each for a valid reason, the same
 * graphs are compiled twice. So a claim that does not parse, or cannot be written, does not keep a
 * run from compiling.
 */
#ifndef STK_CACHE_MANIFEST_KEY_CLAIM_H
#define STK_CACHE_MANIFEST_KEY_CLAIM_H

#include "jobs/base/clock.h"
#include "jobs/cache/manifest/compile_manifest.h"

#define KEY_CLAIM_PREFIX   LOCK_PREFIX "claims/"
#define KEY_CLAIM_VALID_MS 60000 /* without a change for this long, other runs may take it */
#define KEY_CLAIM_RENEW_MS 20000

struct key_claim {
	struct store *store;     /* the cache; borrowed */
	char *key, *run, *nonce; /* key: the graph key */

	/* other run that held the claim at the last try: its id, and its host, NULL if unknown; and
	 * when its claim began, by its own clock, 0 if unknown */
	char *holder, *host;
	int64_t since_ms;
	/* run that the claim was taken from and why, or why it could not be written; else NULL */
	char *taken;

	/* the other run's claim as last seen, and how long it has been watched without a change */
	char *seen;
	struct mono seen_at;
	int64_t watched_ms;
};

/* Does not read the claim. Strings are copied. */
void key_claim_init(struct key_claim *claim, struct store *store, const char *graph_key,
		    const char *run, const char *nonce);
void key_claim_clear(struct key_claim *claim); /* for AUTO(); { 0 } is fine */

/* Returns 1 if the claim is now ours, whether taken or renewed, or if it is free but cannot be
 * written; 0 if another run has it: call again soon, at least each KEY_CLAIM_RENEW_MS, with the
 * same claim; -1 if it cannot be read, or its store cannot be reached. */
int key_claim_try(struct key_claim *claim, struct err **err);

/* Returns 1 if the claim is ours, and renews it; 0 if it is not ours (any more), and leaves it
 * unchanged. */
int key_claim_renew(const struct key_claim *claim, struct err **err);

/* Gives up the claim, if it is ours. */
int key_claim_release(const struct key_claim *claim, struct err **err);

/* True if an object of a cache is a claim, by its key. */
bool key_claim_is(const char *object);

#endif
