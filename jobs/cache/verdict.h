/*
 * Is the cache complete for the graphs of this run? Three sources, each shown,
 * because each one alone has been seen to lie: how the job ended, what the
 * cache holds, and which graphs the job's logs name.
 *
 * Complete means: the job ended well, its logs name at least one graph and no fewer
 * than its front-end counted, it used the cache that was meant, and every graph they
 * name is done in the cache and its entries have not changed for the quiet period.
 * Other graphs in the same cache are neither counted nor touched.
 *
 * What a front-end says of single graphs never outweighs the listing: a graph that
 * it reports as failed and that is done in the cache is done, and `remark` says so.
 * Nor does its exit status, where that is the number of those graphs.
 */
#ifndef STK_CACHE_VERDICT_H
#define STK_CACHE_VERDICT_H

#include "jobs/cache/book.h"
#include "jobs/cache/kind.h"
#include "jobs/cache/pause.h"
#include "jobs/store/store.h"

struct verify_request {
	const struct compile_kind *kind;
	struct store *store; /* the cache */
	const struct graph_book *book;
	bool job_ok;           /* the engine said that the job ended well */
	const char *job_words; /* how it ended, for people: "exit 0"; may be NULL */
	/* Its exit status where it ended badly and that is known; 0: it is not. */
	int exit_status;
	/* The cache as the job was told of it; NULL: the URL of `store`. */
	const char *cache_url;

	struct cache_pause pause; /* before each graph is looked at */

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
	/* It would wait for a lock that nobody seems to hold any more, as this job did. */
	bool waits_in_vain;
	/* ...but with fewer graphs compiled at a time: the compiler failed on some, or
	 * the system ended it for want of memory. */
	bool fewer_workers;
	int64_t graphs;                        /* named by the logs */
	int64_t done, failed, locked, missing; /* failed: also empty and damaged */
	int64_t made; /* compiled by this job: as its logs say, or as the listing shows all the same
		       */
	char seen[65]; /* digest of the entries seen, for the next look */
	char *reason;  /* one line, why it is not complete; NULL if it is */
	char *hint;    /* what to do about it; may be NULL */
	char *remark;  /* what was said and is not so; may be NULL */
	/* {"job":{"ended_well","words"},
	 *  "listing":{"url","done","failed","locked","missing","bytes"},
	 *  "log":{"named","hits","misses","stored","failed","seconds",…},
	 *  "front_end":{"program","nodes","blocks","nothing_to_do","graphs","good","bad",
	 *               "failed_but_done","workers_died","worker_why","first_error",
	 *               "killed","script_failed","caches":[URL, …]}}; the last one where
	 * the kind has a front-end, with what was not said left out; and "remark" */
	json_t *evidence;
	/* [{"graph","name","state","what"}], in the order of the logs; with
	 * "error", the compiler's own first words, and "lock":{"key","since"} where
	 * there are such. */
	json_t *problems;
};

/* Look once. -1 only if the cache could not be read: that is unknown, neither
 * complete nor incomplete. */
int cache_verify(const struct verify_request *request, struct cache_verdict *ret, struct err **err);
void cache_verdict_clear(struct cache_verdict *verdict); /* for AUTO() */

/* Of a job that was stopped while it waited for others to compile: the oldest lock that
 * is still there of the graphs that it waited for. Words on it and on how long that
 * was, and the cure, are yours to free; NULL: there is none. Of the request it needs
 * kind, store and book. */
int cache_find_wait(const struct verify_request *request, char **ret_words, char **ret_hint,
		    struct err **err);

/* Delete what keeps graphs of this run from being compiled again: entries that are
 * empty, damaged or stored failures, or that the compiler itself could not read.
 * Compilers do not replace what is there, so only then does precompiling again help.
 * Inputs, flags and locks stay. Call it when every writer has ended. `ret_removed`
 * gets [{"graph","path","state","keys":[…]}]. */
int cache_repair(const struct verify_request *request, json_t **ret_removed, struct err **err);

#endif
