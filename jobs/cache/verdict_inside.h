/*
 * Between verdict.c (looking), verdict_judge.c (what follows from it) and
 * verdict_words.c (telling it): what was seen. Nobody else needs it.
 */
#ifndef STK_CACHE_VERDICT_INSIDE_H
#define STK_CACHE_VERDICT_INSIDE_H

#include "jobs/cache/entry.h"
#include "jobs/cache/verdict.h"

/* One named graph against the cache. */
struct look {
	char *key; /* in listings */
	enum entry_state state;
	uint64_t bytes;
	const char *why; /* static words on the state; may be NULL */
	bool hopeless;   /* the compiler will never store it */
	char path[256];  /* of the compiled graph; "" if there is none */
	char tag[STORE_TAG];
	char *error;            /* the compiler's first words on it; may be NULL */
	struct entry_lock lock; /* of one that is locked */
	int64_t lock_age_ms;
	bool lock_is_old; /* nobody seems to hold it any more */
};

/* What all looks together came to, beside what the verdict counts. */
struct sight {
	uint64_t bytes;
	int64_t failed_but_done; /* said to be failed, and done */
	int64_t old_locks;       /* that nobody seems to hold: waiting for them is no use */
	char *lock;              /* key of the oldest of all; NULL: none */
	int64_t lock_age_ms;
	json_t *locks; /* the keys of all, in the order of the graphs; NULL: none */
};

/* verdict_words.c. What is wrong with one graph, in one line; yours to free. */
char *verdict_what(const struct graph_book *book, const struct book_graph *graph,
		   const struct look *look);
json_t *verdict_evidence(const struct verify_request *request, const struct cache_verdict *verdict,
			 const struct sight *sight);
/* A cache in use that is another than was meant; NULL: none. Borrowed. */
const char *verdict_other_cache(const struct verify_request *request);
/* What to do about the locks, whether somebody may hold them or nobody does: all of them in
 * one command, so that nobody meets them one run after the other. At most UNLOCK_HINT_MAX
 * bytes; yours to free. */
#define UNLOCK_HINT_MAX 4000
char *verdict_unlock_hint(const struct verify_request *request, const struct sight *sight);

/* verdict.c. Adds the lock of a graph. */
void verdict_note_lock(struct sight *sight, const struct entry_lock *lock, int64_t age_ms);
int64_t verdict_lock_age_ms(const struct entry_lock *lock); /* never less than 0 */
void sight_clear(struct sight *sight);                      /* for AUTO() */

/* verdict_judge.c: reason, hint, remark, and whether it is complete. */
void verdict_judge(const struct verify_request *request, const struct sight *sight,
		   struct cache_verdict *ret);

#endif
