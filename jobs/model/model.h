/*
 * Promoted models: which one is in use, and the chain of all that ever were.
 *
 * A model folder is a store: a directory or a prefix in a bucket (`promote.url`). In it:
 *
 *   current.json               the pointer: {"v":1, "name", "generation", "digest": of its entry,
 *                              "run", "model": URL, "outputs": URL (absent: none), "seen": SHA-256
 *                              of the version's cumulative list (absent: see the entry)}; written
 *                              only in place of the pointer that was read
 *   entries/<generation>.json  one promotion or rollback, from 1, without gaps; written only if
 *                              absent, never changed, never deleted
 *   versions/<run>/            the files that entries of this run name, so that removing the run
 *                              takes nothing away:
 *     model/<attempt>/<name>   the model: one file, or a folder
 *     data/<sha256>.jsonl      data manifest, cumulative list, hold-out's manifest
 *     evidence/<what>-<sha256, 16 digits>.<ending>   journal, patch, manifest of the outputs
 *
 * An entry (bounded by MODEL_ENTRY_MAX) is
 *   {"v":1, "name": of the spec, "generation", "before": digest of the entry before (absent: the
 *    first), "action": "promote" | "rollback", "nonce", "at": UTC, "by": {"user","host"},
 *    "reason", "forced": true, "of": generation that a rollback goes back to, "removed": [runs
 * whose model files are deleted from now on, or earlier], "run", "version": {…}} and its digest is
 * the SHA-256 of its bytes. "version" says what the model is and where it comes from;
 * model_version.h lists its members. It is the same in each entry of a run's version.
 *
 * The entry is the commit. Whoever finds an entry beyond the pointer moves the pointer on, and
 * every reader takes the newest entry for what is promoted, wherever the pointer stands. Two
 * machines that promote at once write the same key: one wins, and the other finds an entry with
 * another nonce.
 *
 * Every step can be repeated, by another process too, as long as nonce and generation are the same
 * (they are in the run's journal: promote.intended). A write with a lost reply is looked up in the
 * chain.
 *
 * Errors: EXIT_REFUSED, with `damage` for an object that is not what was written (it is named with
 * its URL and a cure); EXIT_UNREACHABLE: a service does not answer. All calls wait for the store.
 * Texts in entries are foreign: escape them before they reach a terminal.
 *
 * model: promoted versions and their lineage. Nothing here knows runs, journals or gates.
 */
#ifndef STK_MODEL_MODEL_H
#define STK_MODEL_MODEL_H

#include "jobs/base/hash.h"
#include "jobs/base/text/js.h"
#include "jobs/store/store.h"

#define MODEL_FORMAT    1
#define MODEL_ENTRY_MAX ((size_t)64 << 20) /* bytes */

struct model;

/* Opens the model folder at `url`; nothing is read or made yet. `name`: the spec's; a folder whose
 * entries have another name is EXIT_REFUSED. NULL: any name. */
int model_open(const char *url, const char *name, struct model **ret, struct err **err);
void model_freep(struct model **model);           /* for AUTO() */
const char *model_url(const struct model *model); /* borrowed; absolute, no slash at its end */

/* An entry as read. All zero: there is none. */
struct model_entry {
	int64_t generation; /* 0: none */
	char digest[SHA256_HEX];
	json_t *body; /* owned; the object above, its form checked */
};
void model_entry_release(struct model_entry *entry); /* for AUTO() */

/* The URL of the model that an entry names (a folder or a file), and of a file that its version
 * names by "file" (borrowed from nothing; the caller frees it). NULL if it has none. */
char *model_entry_url(const struct model *model, const struct model_entry *entry);
char *model_file_url(const struct model *model, const char *file);

/* Reads the newest entry: that of the pointer, and those beyond it. Returns 1, 0 if nothing was
 * ever promoted there, -1. With `mend` a pointer that is behind is moved on; a reader without the
 * right to write passes false. */
int model_head(struct model *model, bool mend, struct model_entry *ret, struct err **err);

/* The cumulative list of a version: all data that its model and the ancestors of it were given. */
struct model_seen {
	char *url; /* owned; NULL: the version has none */
	char sha256[SHA256_HEX];
};
void model_seen_release(struct model_seen *seen); /* for AUTO() */

/* Like model_head(), with the cumulative list of the newest entry. If the pointer tells of the
 * list, the entry itself is not read, which spares a request: its body is NULL until
 * model_entry_fill(). */
int model_head_seen(struct model *model, struct model_entry *ret, struct model_seen *ret_seen,
		    struct err **err);
int model_entry_fill(struct model *model, struct model_entry *entry, struct err **err);

/* Reads an entry. Returns 1, 0 if absent, -1 (also: not an entry, of another generation or name, of
 * a newer format). */
int model_entry_read(struct model *model, int64_t generation, struct model_entry *ret,
		     struct err **err);

/* Calls `fn` for the entries from the newest (`head`) to the first. Each must have the digest that
 * the one after it names, else EXIT_GATE. `fn` returns 0 to go on, 1 to stop, -1 to fail. */
typedef int (*model_entry_fn)(void *arg, const struct model_entry *entry, struct err **err);
int model_each(struct model *model, const struct model_entry *head, model_entry_fn fn, void *arg,
	       struct err **err);

/* ---- promotion ---- */

/* Called now and then while files are copied; false stops the copy with EXIT_UNREACHABLE. */
typedef bool (*model_progress_fn)(void *arg, uint64_t done_bytes, uint64_t total_bytes);

/* A model that is to be brought below versions/<run>/model/. */
struct model_source {
	const char *run;
	int64_t attempt; /* the attempt that wrote it */
	const char *url; /* absolute path or URL of the file or folder */
	/* [{"path": relative to it, "" if it is one file, "size", "sha256" (absent: not known),
	 * "tag" (in a bucket; absent: not known)}…]; NULL: what is listed there now */
	const json_t *files;
};

/* Copies it; within S3 by the server, without a byte coming here unless a SHA-256 is not known
 * otherwise. What is there already is not copied again. Every file is proved by its SHA-256 after
 * the copy, and a source that differs from `files` is EXIT_GATE. `ret`, a new reference: "model" of
 * a version without its "kind" and "step". `fn` may be NULL. */
int model_bring(struct model *model, const struct model_source *source, model_progress_fn fn,
		void *arg, json_t **ret, struct err **err);

/* Stores bytes, or the object at `url`, as a file of the version: in `folder` ("data" or
 * "evidence") under `what` ("" for data) and its digest. `ret`, a new reference: {"file": key,
 * "size", "sha256"}. `want`: the digest that it must have; NULL: any. */
int model_keep_bytes(struct model *model, const char *run, const char *what, const char *ending,
		     const void *bytes, size_t len, json_t **ret, struct err **err);
int model_keep_object(struct model *model, const char *run, const char *url, const char *want,
		      json_t **ret, struct err **err);

/* An entry that is to be written. */
struct model_draft {
	int64_t generation; /* the generation that the entry will have: one more than that of
			       `before` */
	const char *before; /* digest of the entry before; "": the first */
	const char *nonce;  /* of this promotion, the same in each try */
	const char *run;    /* of the version */
	const char *reason; /* NULL: none */
	bool forced;
	int64_t of; /* > 0: a rollback to this generation */
	/* The number of versions that keep their model files, the promoted one and the one before
	 * always; 0: all do. */
	int64_t keep;
	const json_t *version;
};

enum model_fate {
	MODEL_PROMOTED = 1, /* ours is in the chain, and the pointer is on it or beyond */
	MODEL_OVERTAKEN = 0 /* another promotion has the generation: `ret` is its entry */
};

/* Writes the entry, then moves the pointer. Returns a fate, or -1: nothing is decided, or not
 * known; call it again with the same draft. */
int model_commit(struct model *model, const struct model_draft *draft, struct model_entry *ret,
		 struct err **err);

/* True if the model files of this run's version are deleted, or may be at any moment. They never
 * come back, so such a version is neither promoted again nor gone back to. */
bool model_entry_removes(const struct model_entry *head, const char *run);
/* Deletes the model files of versions that `entry`, the newest, lists as removed. Can be repeated;
 * entries, manifests and evidence stay. */
int model_remove_old(struct model *model, const struct model_entry *entry, struct err **err);

/* Appends an entry that goes back to the version of `generation` (0: the newest earlier one of
 * another run). Returns a fate with the new entry or, if that version is current already,
 * MODEL_SAME with the newest entry, -1. EXIT_NOT_FOUND: there is no such generation; EXIT_REFUSED:
 * its model files are removed. After an error it may be done: only the chain tells. */
enum { MODEL_SAME = 2 };
int model_roll_back(struct model *model, int64_t generation, const char *reason,
		    struct model_entry *ret, struct err **err);

/* ---- verification ---- */

struct model_verification {
	/* Called for each object that differs: its key in the folder, or a URL, and why. */
	void (*on_difference)(void *arg, const char *object, const char *why);
	/* Called for what cannot be checked here (outputs in a bucket, seen from a copy): not a
	 * difference. */
	void (*on_unchecked)(void *arg, const char *object, const char *why);
	void *arg;
	const char *head; /* digest that some entry must have; NULL: none */
};

struct model_verified {
	int64_t entries, objects;
	uint64_t bytes;
	int64_t differences, unchecked;
	char head[SHA256_HEX]; /* of the newest entry */
};

/* Recomputes every digest: the chain from the newest entry to the first, the pointer, each file
 * that an entry names, and the outputs that lie outside of the folder, as far as they can be
 * reached. A copy of the folder is enough: from a directory no bucket is asked. Returns 0 with
 * `ret`, whatever differs; -1 if something in the folder cannot be read. */
int model_verify(struct model *model, const struct model_verification *how,
		 struct model_verified *ret, struct err **err);

#endif
