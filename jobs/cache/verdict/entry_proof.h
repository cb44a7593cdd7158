/*
 * Compares the entries of a cache with its compile manifests: whether a pin holds, and whether
 * bytes that differ from a manifest's own pin were proved by some job. Each entry is read at most
 * once, however many manifests name it.
 */
#ifndef STK_CACHE_VERDICT_ENTRY_PROOF_H
#define STK_CACHE_VERDICT_ENTRY_PROOF_H

#include "jobs/cache/manifest/compile_manifest.h"

struct entry_proofs;

/* Uses every usable manifest of the store. */
int entry_proofs_load(struct store *store, struct entry_proofs **ret, struct err **err);
/* Uses `lock` alone, which is borrowed. */
struct entry_proofs *entry_proofs_of(struct store *store, const struct compile_manifest *lock);
void entry_proofs_freep(struct entry_proofs **proofs);

/* The manifests that were loaded; borrowed. NULL for entry_proofs_of. */
const struct compile_manifest_set *entry_proofs_locks(const struct entry_proofs *proofs);

/* True if a manifest here pins this graph differently. Reads no entry. */
bool entry_proofs_differ(const struct entry_proofs *proofs, const struct manifest_graph *graph);

struct entry_comparison {
	enum lock_fault fault; /* fault by the graph's own pin */
	uint64_t size;         /* size found, in bytes */
	/* If `fault` is not LOCK_SAME and the entry exists: the manifest that pins exactly its
	 * bytes, and the graph there. Borrowed; NULL: no job has proved them. */
	const struct compile_manifest *lock;
	const struct manifest_graph *graph;
};
int entry_proofs_compare(struct entry_proofs *proofs, const struct compile_kind *kind,
			 const struct manifest_graph *graph, struct entry_comparison *ret,
			 struct err **err);

#endif
