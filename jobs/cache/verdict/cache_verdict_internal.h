/*
 * Results of looking at the cache, shared only by cache_verdict.c (looking), cache_verdict_decide.c
 * (conclusions), cache_verdict_wait.c and cache_verdict_words.c (wording).
 */
#ifndef STK_CACHE_VERDICT_CACHE_VERDICT_INTERNAL_H
#define STK_CACHE_VERDICT_CACHE_VERDICT_INTERNAL_H

#include "jobs/cache/verdict/cache_verdict.h"
#include "jobs/cache/verdict/entry.h"

/* State in the cache of one graph that the logs name. */
struct cache_verdict_entry {
	char *key; /* key in listings */
	enum entry_state state;
	uint64_t bytes;
	const char *why; /* static text on the state; may be NULL */
	bool hopeless;   /* the compiler will never store it */
	char path[256];  /* path of the compiled graph; "" if absent */
	char tag[STORE_TAG];
	char *error;            /* the compiler's first error message; may be NULL */
	struct entry_lock lock; /* oldest lock, if the graph is locked */
	int64_t lock_age_ms;
	bool lock_is_old; /* no process seems to hold it any more */
};

/* Totals of all looks, beside the counts in the verdict. */
struct cache_verdict_totals {
	uint64_t bytes;
	int64_t failed_but_done; /* reported as failed, but done */
	int64_t old_locks; /* locks that no process seems to hold: waiting for them is useless */
	char *lock;        /* key of the oldest lock; NULL: none */
	int64_t lock_age_ms;
	json_t *locks; /* keys of all locks, in the order of the graphs; NULL: none */
};

/* cache_verdict_words.c. Description of the problem of one graph, in one line; the caller frees
 * it. */
char *cache_verdict_what(const struct graph_tally *tally, const struct tally_graph *graph,
			 const struct cache_verdict_entry *entry);
json_t *cache_verdict_evidence(const struct verify_request *request,
			       const struct cache_verdict *verdict,
			       const struct cache_verdict_totals *totals);
/* URL of a cache in use other than the intended one; NULL: none. Borrowed. */
const char *cache_verdict_other_cache(const struct verify_request *request);
/* Hint on the locks, whether or not a process may hold them: one command for all of them, so that
 * the user does not meet them one per run. At most UNLOCK_HINT_MAX bytes; the caller frees it. */
#define UNLOCK_HINT_MAX 4000
char *cache_verdict_unlock_hint(const struct verify_request *request,
				const struct cache_verdict_totals *totals);

/* cache_verdict.c. Adds the lock of a graph. */
void cache_verdict_add_lock(struct cache_verdict_totals *totals, const struct entry_lock *lock,
			    int64_t age_ms);
int64_t cache_verdict_lock_age_ms(const struct entry_lock *lock);     /* never less than 0 */
void cache_verdict_totals_clear(struct cache_verdict_totals *totals); /* for AUTO() */

/* cache_verdict_decide.c: sets reason, hint, remark, and whether the cache is complete. */
void cache_verdict_decide(const struct verify_request *request,
			  const struct cache_verdict_totals *totals, struct cache_verdict *ret);

#endif
