/*
 * What lies in a cache, against what the locks of that cache say of it: which
 * pin holds, and whether other bytes than a lock's own are ones that some job
 * has proved. Each entry is read at most once, however many locks name it.
 */
#ifndef STK_CACHE_PROOF_H
#define STK_CACHE_PROOF_H

#include "jobs/cache/lock.h"

struct proofs;

/* Every usable lock of the store counts. */
int proofs_load(struct store *store, struct proofs **ret, struct err **err);
/* One lock alone does; it is borrowed. */
struct proofs *proofs_of(struct store *store, const struct compile_lock *lock);
void proofs_freep(struct proofs **proofs);

/* The locks that were loaded; borrowed. NULL for proofs_of. */
const struct lock_set *proofs_locks(const struct proofs *proofs);

/* May any lock here pin this graph otherwise than its own lock does? Reads no
 * entry. */
bool proofs_differ(const struct proofs *proofs, const struct lock_graph *graph);

struct judgement {
	enum lock_fault fault; /* of the graph's own pin */
	uint64_t size;         /* found, bytes */
	/* If that is a fault and something is there: the lock that pins exactly
	 * this, and its graph. Borrowed; NULL: no job has proved it. */
	const struct compile_lock *lock;
	const struct lock_graph *graph;
};
int proofs_judge(struct proofs *proofs, const struct compile_kind *kind,
		 const struct lock_graph *graph, struct judgement *ret, struct err **err);

#endif
