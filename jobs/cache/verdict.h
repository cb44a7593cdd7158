/*
 * Is the cache complete for the graphs of this run? Three sources, each shown,
 * because each one alone has been seen to lie: how the job ended, what the
 * cache holds, and which graphs the job's logs name.
 *
 * Complete means: the job ended well, its logs name at least one graph, and
 * every graph they name is done in the cache and its entries have not changed
 * for the quiet period. Other graphs in the same cache are neither counted nor
 * touched.
 */
#ifndef STK_CACHE_VERDICT_H
#define STK_CACHE_VERDICT_H

#include "jobs/cache/book.h"
#include "jobs/cache/kind.h"
#include "jobs/store/store.h"

struct verify_request {
	const struct compile_kind *kind;
	struct store *store; /* the cache */
	const struct graph_book *book;
	bool job_ok;           /* the engine said that the job ended well */
	const char *job_words; /* how it ended, for people: "exit 0"; may be NULL */

	/* 0: the writers have ended, the first look counts. Otherwise two looks
	 * must see the same: pass the `seen` of the look before, and how long ago
	 * that was on the monotonic clock (NULL and 0 at the first look). */
	int64_t quiet_ms;
	const char *seen_before;
	int64_t seen_ago_ms;
};

struct cache_verdict {
	bool complete;
	/* Nothing is wrong yet: look again in so many ms (0: the verdict is final). */
	int64_t settle_ms;
	/* Precompiling again can help: false where every problem left is one that
	 * the compiler will run into each time (graphs it never stores). */
	bool retry_helps;
	int64_t graphs;                        /* named by the logs */
	int64_t done, failed, locked, missing; /* failed: also empty and damaged */
	char seen[65];                         /* digest of the entries seen, for the next look */
	char *reason;                          /* one line, why it is not complete; NULL if it is */
	char *hint;                            /* what to do about it; may be NULL */
	/* {"job":{"ended_well","words"},
	 *  "listing":{"url","done","failed","locked","missing","bytes"},
	 *  "log":{"named","hits","misses","stored","failed","seconds",…}} */
	json_t *evidence;
	/* [{"graph","name","state","what"}], in the order of the logs. */
	json_t *problems;
};

/* Look once. -1 only if the cache could not be read: that is unknown, neither
 * complete nor incomplete. */
int cache_verify(const struct verify_request *request, struct cache_verdict *ret, struct err **err);
void cache_verdict_clear(struct cache_verdict *verdict); /* for AUTO() */

/* Delete the entries of this run's graphs that are empty or damaged, or that
 * the compiler itself could not read: compilers do not replace what is there,
 * so only then does precompiling again help. Call it when every writer has
 * ended. `ret_removed` gets [{"graph","path","state"}]. */
int cache_repair(const struct verify_request *request, json_t **ret_removed, struct err **err);

#endif
