/*
 * Decides whether the cache is complete for the graphs of this run. Three sources are used and
 * shown, because each one alone has been seen to be wrong: the end of the job, the content of the
 * cache, and the graphs that the job's logs name.
 *
 * Complete means: the job ended well, its logs name at least one graph and no fewer than its
 * front-end counted, it used the intended cache, every graph named is done in the cache, and the
 * entries have not changed for the quiet period. Other graphs in the same cache are neither counted
 * nor touched.
 *
 * The front-end's reports on single graphs never override the listing: a graph that it reports as
 * failed but that is done in the cache is done, and `remark` says so. The same holds for its exit
 * status, if that is the number of those graphs.
 *
 * cache/verdict: decides whether a cache is complete: entries are proved by their bytes, and
 * listings are read. Entries are never changed here, only deleted.
 */
#ifndef STK_CACHE_VERDICT_CACHE_VERDICT_H
#define STK_CACHE_VERDICT_CACHE_VERDICT_H

#include "jobs/cache/graphs/graph_tally.h"
#include "jobs/cache/kinds/compile_kind.h"
#include "jobs/cache/kinds/pause.h"
#include "jobs/store/store.h"

struct verify_request {
	const struct compile_kind *kind;
	struct store *store; /* the cache */
	const struct graph_tally *tally;
	bool job_ok;           /* the engine reported that the job ended well */
	const char *job_words; /* how it ended, for people: "exit 0"; may be NULL */
	/* Exit status of the job if it ended badly; 0: unknown. */
	int exit_status;
	/* The cache's URL as given to the job; NULL: the URL of `store`. */
	const char *cache_url;

	struct cache_pause pause; /* called before each graph is checked */

	/* 0: the writers have ended, so the first look counts. Otherwise two looks must see the
	 * same: pass the `seen` of the previous look, and how long ago that was by the monotonic
	 * clock (NULL and 0 at the first look). */
	int64_t quiet_ms;
	const char *seen_before;
	int64_t seen_ago_ms;
};

struct cache_verdict {
	bool complete;
	/* No problem yet: look again after so many ms (0: the verdict is final). */
	int64_t again_ms;
	/* Precompiling again can help. False if every problem left is one that the compiler will
	 * meet each time (graphs it never stores). */
	bool retry_helps;
	/* Another attempt would, like this job, wait for a lock that no process seems to hold any
	 * more. */
	bool waits_in_vain;
	/* Another attempt should compile fewer graphs at a time: the compiler failed on some, or
	 * the system killed it for lack of memory. */
	bool fewer_workers;
	int64_t graphs;                        /* named by the logs */
	int64_t done, failed, locked, missing; /* failed: also empty and damaged */
	int64_t made;  /* compiled by this job, according to its logs, or missed and now listed as
			* done */
	char seen[65]; /* digest of the entries seen, for the next look */
	char *reason;  /* why the cache is not complete, in one line; NULL if it is */
	char *hint;    /* how to fix it; may be NULL */
	char *remark;  /* a report that turned out to be wrong; may be NULL */
	/* {"job":{"ended_well","words"},
	 *  "listing":{"url","done","failed","locked","missing","size_bytes"},
	 *  "log":{"named","hits","misses","stored","failed","seconds",…},
	 *  "front_end":{"program","nodes","blocks","nothing_to_do","graphs","good","bad",
	 *               "failed_but_done","workers_died","worker_why","first_error",
	 *               "killed","script_failed","caches":[URL, …]}}; the last one if the kind has
	 * a front-end, without unreported values; and "remark" */
	json_t *evidence;
	/* [{"graph","name","state","what"}], in the order of the logs; with "error", the compiler's
	 * first error message, and "lock":{"key","since"}, if present. */
	json_t *problems;
};

/* Looks once. -1 only if the cache could not be read: then its state is unknown, neither complete
 * nor incomplete. */
int cache_verify(const struct verify_request *request, struct cache_verdict *ret, struct err **err);
void cache_verdict_clear(struct cache_verdict *verdict); /* for AUTO() */

/* Finds, for a job that was stopped while it waited for other processes to compile, the oldest lock
 * still present of the graphs that it waited for. Describes it and the length of the wait in
 * `ret_words`, and the remedy in `ret_hint`; the caller frees both; NULL if there is no lock. Uses
 * only kind, store and book of the request. */
int cache_find_wait(const struct verify_request *request, char **ret_words, char **ret_hint,
		    struct err **err);

/* Deletes the entries that keep graphs of this run from being compiled again: entries that are
 * empty, damaged or stored failures, or that the compiler itself could not read. Compilers do not
 * replace existing entries, so precompiling again helps only after this. Inputs, flags and locks
 * are kept. Call it after every writer has ended. `ret_removed` gets
 * [{"graph","path","state","keys":[…]}]. */
int cache_repair(const struct verify_request *request, json_t **ret_removed, struct err **err);

#endif
