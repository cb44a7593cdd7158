/*
 * The compile manifest: the list of graphs that a verified precompile produced for
 * a graph key, written beside the cache as `stoker/<graph key>.json`:
 *
 *     {"v":1,"graph_key","name","kind","created","run","compiler":{…},
 *      "ingredients":{…},"image",
 *      "graphs":[{"key","path","size","sha256"|"etag","late",
 *                "proved":{"run","at"}}]}
 *
 * A later run is warm only if every graph in its manifest is still there and unchanged. Directories
 * are judged by size and SHA-256, other stores by size and tag; a pin that was copied from a store
 * of another kind is compared as content.h says.
 *
 * Manifests of several graph keys may name one graph, and a compiler does not produce the same
 * bytes when it compiles a graph again. So a proof by one job counts for all: a run that writes a
 * manifest refreshes the outdated pins of the other manifests (`proved` then names the run), and a
 * run whose own pin is outdated takes over that of a manifest which pins exactly the present bytes.
 * Bytes that no manifest pins are not proved and are never taken over.
 *
 * The cache is shared with other programs, so a manifest is untrusted input: if it does not parse,
 * names another key or a path that is not an entry of its graph, or was filled by another compiler
 * than its key names, it is treated as absent, and reported. Only objects below `stoker/` are ever
 * written; entries are never written, and deleted only by compile_manifest_repair.
 *
 * cache/manifest: the compile manifest of a graph key, that is, the graphs that a verified
 * precompile has left in the cache, and the claims beside it. Manifests are written, read, checked
 * and refreshed here; whether a cache is complete is decided in cache/verdict.
 */
#ifndef STK_CACHE_MANIFEST_COMPILE_MANIFEST_H
#define STK_CACHE_MANIFEST_COMPILE_MANIFEST_H

#include "jobs/base/clock.h"
#include "jobs/base/hash.h"
#include "jobs/cache/graphs/graph_key.h"
#include "jobs/cache/graphs/graph_tally.h"
#include "jobs/cache/kinds/compile_kind.h"
#include "jobs/cache/kinds/pause.h"
#include "jobs/store/store.h"

#define LOCK_FOLDER "stoker"
#define LOCK_PREFIX LOCK_FOLDER "/"

struct manifest_graph {
	char *key, *path;
	uint64_t size;
	char digest[STORE_TAG]; /* SHA-256, or the store's tag */
	bool tagged;            /* digest is a tag ("etag") */
	bool late;              /* a training run had to compile it */

	/* Run that proved these bytes and when, if it is not the run that wrote the manifest; else
	 * NULL, 0. */
	char *proved_by;
	struct utc proved_at;
};

struct compile_manifest {
	char graph_key[SHA256_HEX];
	char *name; /* name of the spec */
	const struct compile_kind *kind;
	struct utc created;
	char *run;
	json_t *compiler;    /* the kind's fingerprint */
	json_t *ingredients; /* ingredients of the graph key, secrets hidden */
	char *image;         /* as the spec had it, with its tag; NULL: none */
	struct manifest_graph *graphs;
	size_t count;
};

void compile_manifest_freep(struct compile_manifest **lock);

/* Inputs of a new manifest. Its graph key is that of the ingredients. */
struct lock_facts {
	const struct compile_kind *kind;
	struct store *store; /* the cache */
	const char *name, *run;
	const char *image; /* NULL: none */
	struct utc now;
	const json_t *compiler, *ingredients; /* borrowed */
	struct cache_pause pause;             /* called before each graph is checked */
};

/* After a complete verdict, pins every graph that the tally names, and writes the manifest. Late
 * graphs of an older manifest for this key are kept if they are still unchanged. Then the manifests
 * of other keys are refreshed, as by compile_manifest_refresh_others. `ret` and `ret_refreshed` may
 * be NULL. */
int compile_manifest_write(const struct lock_facts *facts, const struct graph_tally *tally,
			   struct compile_manifest **ret, json_t **ret_refreshed, struct err **err);

/* Refreshes one manifest: outdated pins are replaced by those of other manifests of this cache that
 * hold. Safe if other processes do the same. `ret_taken` gets the number of pins replaced; 0 also
 * if the manifest does not exist. */
int compile_manifest_refresh(struct store *store, const char *graph_key, int64_t *ret_taken,
			     struct err **err);

/* The reverse, after a job has proved the pins of `lock`: refreshes the outdated pins of other
 * manifests that name the same graphs. A manifest that cannot be refreshed now will be refreshed by
 * its own run (compile_manifest_refresh), so that is not an error: [{"graph_key","name","graphs":
 * number}] or, for such a manifest, "failed": reason. */
int compile_manifest_refresh_others(struct store *store, const struct compile_manifest *lock,
				    json_t **ret, struct err **err);

/* Compiler that filled the cache: the one found at the beginning of phase 1, unless the entries lie
 * in the folder of another version, because the compiler was replaced while they were compiled.
 * Versions are compared up to their '+'. */
enum lock_writer {
	WRITER_SAME,  /* the compiler found, as far as places tell */
	WRITER_OTHER, /* another version wrote all entries: `compiler` now names it */
	WRITER_MIXED  /* several versions: a manifest cannot name them */
};
/* Changes `compiler` in place. */
enum lock_writer compile_manifest_name_writer(const struct compile_kind *kind,
					      const struct graph_tally *tally, json_t *compiler);

/* Checks the compiler in the graph key against the manifest's own compiler and the places of its
 * entries. Returns NULL if they agree, else a description, which the caller frees: then the
 * manifest does not pin the graphs that a run of that key would look for. */
char *compile_manifest_compiler_fault(const struct compile_manifest *lock);

/* The ingredients of the graph key for a cache filled by `compiler`: those of the plan, with
 * `compiler` if it is known to differ from the plan's. Members known on one side only do not count
 * as a difference. A new reference. */
json_t *compile_manifest_ingredients(const json_t *planned, const json_t *compiler);

/* Removes the manifest of `graph_key` if `run` wrote it. */
int compile_manifest_withdraw(struct store *store, const char *graph_key, const char *run,
			      struct err **err);

/* Returns 1 if loaded; 0 if absent or, with the reason in `ret_damage`, not usable; -1 if the store
 * failed. The caller frees `ret_damage`, which is NULL otherwise. */
int compile_manifest_load(struct store *store, const char *graph_key, struct compile_manifest **ret,
			  char **ret_damage, struct err **err);

/* Finds the manifest without reading it: 1 and its tag, which changes with it; 0 absent; -1 the
 * store failed. */
int compile_manifest_tag(struct store *store, const char *graph_key, char ret_tag[STORE_TAG],
			 struct err **err);

/* Differences between a graph and its pin in a manifest. */
enum lock_fault {
	LOCK_SAME,
	LOCK_MISSING,
	LOCK_TRUNCATED, /* different size */
	LOCK_CHANGED,   /* same size, different content */
	LOCK_SPOILT,    /* unchanged, but the compiler will not use it: its marker is gone, or it is
			 * locked */
};
const char *compile_manifest_fault_name(enum lock_fault fault); /* "ok", "missing", … */

struct lock_problem {
	size_t graph; /* index into lock->graphs */
	enum lock_fault fault;
	uint64_t size; /* size found */
};

struct lock_report {
	bool warm; /* every graph is present and unchanged */
	struct lock_problem *problems;
	size_t count;
	size_t behind; /* graphs that differ from this manifest, but match another one:
			* compile_manifest_refresh */
};
void compile_manifest_report_clear(struct lock_report *report); /* for AUTO() */

/* Compares a manifest with the cache, reading every entry that it names, and the other objects of
 * graphs that have several. Graphs counted in `behind` are not problems, but the manifest is not
 * warm either. */
int compile_manifest_check(struct store *store, const struct compile_manifest *lock,
			   struct lock_report *ret, struct err **err);
/* The same without reading content: in a directory, only sizes and the other objects of a graph are
 * checked. For a cache that was proved before and may have lost entries since. */
int compile_manifest_check_sizes(struct store *store, const struct compile_manifest *lock,
				 struct lock_report *ret, struct err **err);
/* Tells whether a graph that matches its pin is unusable for the compiler (LOCK_SPOILT). */
int compile_manifest_graph_spoilt(struct store *store, const struct compile_kind *kind,
				  const struct manifest_graph *graph, bool *ret, struct err **err);
/* Compares one graph with its pin alone. */
int compile_manifest_check_graph(struct store *store, const struct manifest_graph *graph,
				 enum lock_fault *ret, uint64_t *ret_size, struct err **err);
/* Description of the fault of one graph; the caller frees it. */
char *compile_manifest_fault_words(const struct manifest_graph *graph, enum lock_fault fault,
				   uint64_t size);
/* [{"graph","path","state","what"}] */
json_t *compile_manifest_problems_json(const struct compile_manifest *lock,
				       const struct lock_report *report);

/* Deletes the truncated, changed and spoilt entries that this manifest names: compilers do not
 * replace an existing entry, so a bad one stays until it is removed. Checks each again right
 * before: an entry that any manifest of the cache pins as it is now is kept. `ret_removed` gets
 * [{"graph","path","state"}]. */
int compile_manifest_repair(struct store *store, const struct compile_manifest *lock,
			    const struct lock_report *report, json_t **ret_removed,
			    struct err **err);

/* After a successful training run, adds the graphs that it had to compile and that are now done in
 * the cache to the manifest of `graph_key`, marked late; graphs that were in it and had got lost
 * are pinned as they are now. Then other manifests are refreshed. Safe if other processes do the
 * same. Uses only kind, store, run and time of the facts. `ret_joined` gets the number of graphs; 0
 * also if the manifest does not exist. */
int compile_manifest_join_late(const struct lock_facts *facts, const char *graph_key,
			       const struct graph_tally *tally, int64_t *ret_joined,
			       struct err **err);

/* The manifest that explains a cold start best: one of the same spec name is preferred, then one
 * made by the same rules, then the fewest changed ingredients, then the newest. Returns 1 if found,
 * 0 if there is no manifest. */
int compile_manifest_find_nearest(struct store *store, const char *name, const json_t *ingredients,
				  struct compile_manifest **ret, struct err **err);

/* Every usable manifest of a cache, and the names of unusable ones. */
struct compile_manifest_set {
	struct compile_manifest **locks; /* by graph key */
	size_t count;
	json_t *damaged; /* [{"lock","what"}] */
};
int compile_manifest_set_load(struct store *store, struct compile_manifest_set *ret,
			      struct err **err);
void compile_manifest_set_clear(struct compile_manifest_set *set); /* for AUTO() */

#endif
