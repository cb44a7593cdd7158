/*
 * The compile lock: the list of graphs that a verified precompile produced for
 * a graph key, written beside the cache as `stoker/<graph key>.json`:
 *
 *     {"v":1,"graph_key","name","kind","created","run","compiler":{…},
 *      "ingredients":{…},
 *      "graphs":[{"key","path","size","sha256"|"etag","late",
 *                "proved":{"run","at"}}]}
 *
 * A later run is warm only if every graph of it is still there and unchanged.
 * Directories are judged by size and SHA-256, other stores by size and tag; a pin that was
 * carried here from a store of another kind by what it says all the same (content.h).
 *
 * Locks of several graph keys may name one graph, and a compiler that has to
 * compile it again does not give the same bytes again. So what one job has proved
 * holds for all: whoever writes a lock refreshes the pins of the others that hold
 * no more (`proved` then says who did), and whoever finds its own pin outdated
 * takes over that of a lock which pins exactly what lies there. Bytes that no
 * lock pins are proved by nobody and are never taken over.
 *
 * The cache is shared with other programs, so a lock is outside text too: one
 * that does not parse, names another key or a path that is no entry of its graph, or
 * was filled by another compiler than its key names, is treated as absent, and named. Nothing but
 * `stoker/` is ever written; entries are only deleted, by lock_repair.
 */
#ifndef STK_CACHE_LOCK_H
#define STK_CACHE_LOCK_H

#include "jobs/base/clock.h"
#include "jobs/base/hash.h"
#include "jobs/cache/book.h"
#include "jobs/cache/graph_key.h"
#include "jobs/cache/kind.h"
#include "jobs/cache/pause.h"
#include "jobs/store/store.h"

#define LOCK_FOLDER "stoker"
#define LOCK_PREFIX LOCK_FOLDER "/"

struct lock_graph {
	char *key, *path;
	uint64_t size;
	char digest[STORE_TAG]; /* SHA-256, or the store's tag */
	bool tagged;            /* digest is a tag ("etag") */
	bool late;              /* a training run had to compile it */

	/* Whose job has proved these bytes, where it was not that of the run which
	 * wrote the lock; NULL, 0: it was. */
	char *proved_by;
	struct utc proved_at;
};

struct compile_lock {
	char graph_key[SHA256_HEX];
	char *name; /* of the spec */
	const struct compile_kind *kind;
	struct utc created;
	char *run;
	json_t *compiler;    /* the kind's fingerprint */
	json_t *ingredients; /* of the graph key, secrets hidden */
	struct lock_graph *graphs;
	size_t count;
};

void compile_lock_freep(struct compile_lock **lock);
json_t *compile_lock_json(const struct compile_lock *lock);

/* What a new lock is made from. The graph key is that of the ingredients. */
struct lock_facts {
	const struct compile_kind *kind;
	struct store *store; /* the cache */
	const char *name, *run;
	struct utc now;
	const json_t *compiler, *ingredients; /* borrowed */
	struct cache_pause pause;             /* before each graph is looked at */
};

/* After a complete verdict: pin every graph that the book names, and write the
 * lock. Late graphs of an older lock for this key are kept where they are still
 * unchanged. Then the locks of other keys are refreshed, as lock_refresh_others.
 * `ret` and `ret_refreshed` may be NULL. */
int lock_write(const struct lock_facts *facts, const struct graph_book *book,
	       struct compile_lock **ret, json_t **ret_refreshed, struct err **err);

/* Bring one lock up to date: pins that hold no more are replaced by those of
 * other locks of this cache that do. Safe against others doing the same.
 * `ret_taken` gets how many; 0 also if there is no such lock. */
int lock_refresh(struct store *store, const char *graph_key, int64_t *ret_taken, struct err **err);

/* The other way round, after a job has proved what `lock` pins: the other locks
 * that name the same graphs, where their own pins hold no more. One that cannot
 * be refreshed now will refresh itself (lock_refresh), so that is no error:
 * [{"graph_key","name","graphs": how many}] or, of such a one, "failed": why. */
int lock_refresh_others(struct store *store, const struct compile_lock *lock, json_t **ret,
			struct err **err);

/* Which compiler filled the cache: the one that was found where phase 1 began, unless the
 * entries lie in the folder of another version, because it was replaced while they were
 * compiled. What is compared of a version is all before its '+'. */
enum lock_writer {
	WRITER_SAME,  /* as found, as far as places tell */
	WRITER_OTHER, /* all entries are of one other version: `compiler` now names it */
	WRITER_MIXED  /* of several: no lock can name it */
};
/* `compiler` is changed in place. */
enum lock_writer lock_settle_writer(const struct compile_kind *kind, const struct graph_book *book,
				    json_t *compiler);

/* A graph key tells of a compiler too. NULL, or, yours to free, how the lock's own
 * compiler, or the places of its entries, speak against that of its key: then what it
 * pins is not what a run of that key would look for. */
char *lock_compiler_fault(const struct compile_lock *lock);

/* The ingredients of the graph key that a cache filled by `compiler` belongs to: those of
 * the plan, with that compiler where the plan's own is known to be another. What only
 * one of both tells of is no difference. A new reference. */
json_t *lock_ingredients(const json_t *planned, const json_t *compiler);

/* Remove the lock of `graph_key` if `run` wrote it. */
int lock_withdraw(struct store *store, const char *graph_key, const char *run, struct err **err);

/* 1 loaded; 0 absent, and if a file is there that cannot be trusted, the reason
 * in `ret_damage` (yours to free, else NULL); -1 the store failed. */
int lock_load(struct store *store, const char *graph_key, struct compile_lock **ret,
	      char **ret_damage, struct err **err);

/* Without reading it: 1 and the tag of what lies there, which changes with it; 0 absent;
 * -1 the store failed. */
int lock_tag(struct store *store, const char *graph_key, char ret_tag[STORE_TAG], struct err **err);

/* One graph of a lock that is not as the lock says. */
enum lock_fault {
	LOCK_SAME,
	LOCK_MISSING,
	LOCK_TRUNCATED, /* another size */
	LOCK_CHANGED,   /* same size, other content */
	LOCK_SPOILT,    /* unchanged, but the compiler will not take it: its marker is gone,
			 * or somebody holds its lock */
};
const char *lock_fault_name(enum lock_fault fault); /* "ok", "missing", … */

struct lock_problem {
	size_t graph; /* index into lock->graphs */
	enum lock_fault fault;
	uint64_t size; /* found */
};

struct lock_report {
	bool warm; /* every graph is there and unchanged */
	struct lock_problem *problems;
	size_t count;
	size_t behind; /* not as the lock says, but as another one does: lock_refresh */
};
void lock_report_clear(struct lock_report *report); /* for AUTO() */

/* Compare a lock with the cache, reading every entry that it names, and what lies
 * beside it where a graph has several objects. What is behind is no problem, but
 * does not make a warm lock either. */
int lock_check(struct store *store, const struct compile_lock *lock, struct lock_report *ret,
	       struct err **err);
/* Whether a graph that is as it was pinned lacks what makes it one that the compiler
 * takes (LOCK_SPOILT). */
int lock_graph_spoilt(struct store *store, const struct compile_kind *kind,
		      const struct lock_graph *graph, bool *ret, struct err **err);
/* One graph, against its pin alone. */
int lock_check_graph(struct store *store, const struct lock_graph *graph, enum lock_fault *ret,
		     uint64_t *ret_size, struct err **err);
/* What is wrong with one graph, in words; yours to free. */
char *lock_fault_words(const struct lock_graph *graph, enum lock_fault fault, uint64_t size);
/* [{"graph","path","state","what"}] */
json_t *lock_problems_json(const struct compile_lock *lock, const struct lock_report *report);

/* Delete the truncated, changed and spoilt entries that this lock names: compilers do
 * not replace what is there, so a bad entry stays bad until it is removed. Looks
 * again right before: what any lock of the cache pins as it is now stays.
 * `ret_removed` gets [{"graph","path","state"}]. */
int lock_repair(struct store *store, const struct compile_lock *lock,
		const struct lock_report *report, json_t **ret_removed, struct err **err);

/* After a successful training run: graphs that it had to compile and that are
 * now done in the cache join the lock of `graph_key`, marked late; those that
 * were in it and had got lost are pinned as they are now. Other locks are
 * refreshed then. Safe against others doing the same. Of the facts it needs kind,
 * store, run and time. `ret_joined` gets how many; 0 also if there is no such
 * lock. */
int lock_join_late(const struct lock_facts *facts, const char *graph_key,
		   const struct graph_book *book, int64_t *ret_joined, struct err **err);

/* The lock that explains a cold start best: of the same spec name if there is
 * one, with the fewest changed ingredients, the newest of these. 1 found, 0 no
 * lock at all. */
int lock_find_nearest(struct store *store, const char *name, const json_t *ingredients,
		      struct compile_lock **ret, struct err **err);

/* Every usable lock of a cache, and the names of those that are not. */
struct lock_set {
	struct compile_lock **locks; /* by graph key */
	size_t count;
	json_t *damaged; /* [{"lock","what"}] */
};
int lock_set_load(struct store *store, struct lock_set *ret, struct err **err);
void lock_set_clear(struct lock_set *set); /* for AUTO() */

#endif
