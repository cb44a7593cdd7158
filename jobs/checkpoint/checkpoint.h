/*
 * Checkpoints: which ones a directory holds, which of them are complete, which this run may
 * resume from, and how they are copied to another directory.
 *
 * A *root* is the folder in which the checkpoints of one attempt lie side by side. A
 * checkpoint is one entry of it, a folder or (kind `files` only) one file. A link is never a
 * checkpoint: the checkpoint that an attempt resumed from is linked into its root and belongs
 * to another attempt.
 *
 * The root to which complete checkpoints are copied may be a prefix of an object store (S3)
 * instead. Nothing is proved there: its checkpoints were proved in a folder before they were
 * sent. A store has no rename either, so it is the mark, written last, that makes a checkpoint
 * out of objects. The mark holds the tag that the store gave to each object, and one listing
 * tells whether they are unchanged.
 *
 * Complete means proved from listing and headers alone: sizes, the headers and directories
 * that safetensors, zip (torch.save, npz) and npy files carry, JSON that parses, an index
 * whose shards are all there, ranks without gaps, the marker or pointer that the format's
 * writer leaves last. Nothing is ever unpickled. If a format does not tell enough about
 * itself, the checkpoint is compared with the older ones beside it (same names, nothing cut
 * off).
 *
 * A checkpoint counts for resuming only with a *mark*, a file beside it:
 *
 *   <root>/<name>.stoker.json   (0600, written last, only if absent)
 *   <prefix>marks/<name>.stoker.json  in a store, so that marks can be listed
 *                                     without the checkpoints
 *   {"v":1, "run", "attempt", "nonce", "step", "name", "kind",
 *    "url": absolute path or URL of the checkpoint, "at": utc ms, "saving_ms",
 *    "device": type of the machine, "world_size": of the processes that saved it (both absent: not
 *    known),
 *    "files": [{"path": relative to the checkpoint ("" if it is a single file),
 *               "size": bytes, "ends": SHA-256 over its first and last
 *               CKPT_ENDS bytes, over all of it if it is no longer than both,
 *               "tag": in a store, of the object}…]}
 *
 * so the mark reveals later damage to a checkpoint even if its format does not.
 *
 * In a process of its own (a copy takes minutes; nothing here starts processes or threads):
 *
 *     checkpoint_watch_scan(watch, clock_mono_now(), &err);       each heartbeat
 *     while ((c = checkpoint_watch_next(watch))) {               oldest first
 *         with another root: checkpoint_copy(c, root, …)
 *         claim still ours?  checkpoint_mark(root, c, &owner, clock_utc_now(), &err);
 *         checkpoint_watch_take(watch, c->name);
 *     }
 *
 * Paths are absolute. Errors carry EXIT_REFUSED and mean that something could not be read or
 * written, never that a checkpoint is bad. A bad checkpoint has a `why` instead: one
 * lower-case clause naming the file, which contains outside text (escape it before it reaches
 * a terminal).
 */
#ifndef STK_CHECKPOINT_CHECKPOINT_H
#define STK_CHECKPOINT_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/clock.h"
#include "jobs/base/err.h"
#include "jobs/base/hash.h"
#include "jobs/base/text/js.h"

#define CKPT_MARK_SUFFIX ".stoker.json"
#define CKPT_ENDS        ((size_t)16 << 10) /* bytes at each end of a file that a mark pins */

/* ---- kinds: files, hf, nxd, dcp, orbax, megatron, deepspeed, auto ----
 *
 * `auto` recognizes each checkpoint by its content. A checkpoint that no other kind knows is of
 * kind `files` if its name (step, iter, epoch, ckpt, checkpoint, model, state, weight, snapshot,
 * save, or a bare number) or the ending of a file in it says that it is a checkpoint, so that
 * numbered logs are not taken for checkpoints. */

struct ckpt_kind;

const struct ckpt_kind *checkpoint_kind_find(const char *name); /* NULL: unknown kind */
const char *checkpoint_kind_name(const struct ckpt_kind *kind);
/* ---- roots ---- */

struct ckpt_mark;
struct store;

/* Root in which the checkpoints of one attempt lie side by side. All members are borrowed. */
struct ckpt_root {
	const char *path;    /* absolute; in a store: a prefix, "" or ending in a slash */
	int64_t attempt;     /* attempt that owns the root: marks of another attempt are rejected */
	const char *nonce;   /* likewise; NULL: any */
	struct store *store; /* NULL: a folder */
};

/* Returns the path or URL of a checkpoint of this name in the root. The caller frees it. */
char *checkpoint_root_url(const struct ckpt_root *root, const char *name);

/* ---- checkpoints in a folder ---- */

struct ckpt {
	const struct ckpt_kind *kind; /* kind recognized, never `auto` */
	char *name;                   /* owned; name of the entry in its root */
	char *path;                   /* owned: absolute */
	int64_t step;                 /* from its name; never negative */
	uint64_t files, bytes;
	int64_t saving_ms;    /* from the birth of its first file to its last write */
	char tag[SHA256_HEX]; /* digest of names, sizes, times, pointer: differs after any change */
	bool complete;
	bool described; /* kind `files`: a file of it gives the size of another, rightly */
	/* True if its format, its older siblings or its description show that it is complete. False
	 * if only nothing speaks against it, which also holds if its writer was killed. */
	bool positively_verified;
	char *why; /* owned; why it is not complete; NULL if complete (or not looked at) */
};

struct ckpt_list {
	struct ckpt *items; /* owned; the newest (highest step) first */
	size_t count;
};

void checkpoint_release(struct ckpt *ckpt);
void checkpoint_list_release(struct ckpt_list *list); /* for AUTO() */

/* Lists every candidate in `root`, proved. An absent root has none. Entries with names that hold
 * no step, temporary entries, links and marks are not candidates. Reads a header or two of each
 * file: seconds for a checkpoint of 10^5 files. */
int checkpoint_find(const char *root, const struct ckpt_kind *kind, struct ckpt_list *ret,
		    struct err **err);

/* Proves the checkpoint at `path` now; `kind` may be `auto`. If it is gone or its name cannot be
 * a checkpoint's, it is not complete. */
int checkpoint_prove(const char *path, const struct ckpt_kind *kind, struct ckpt *ret,
		     struct err **err);

/* Writes the pointer of this kind in `root` so that it names the checkpoint (its name, as linked
 * or copied there). Replaces a pointer to an earlier step, never to a later one. Does nothing
 * for kinds without a pointer. */
int checkpoint_point(const char *root, const struct ckpt *ckpt, struct err **err);

/* ---- settling ---- */

/* Looks at one root again and again. A checkpoint is settled when it is complete and nothing in
 * it has changed for `quiet_ms` of the caller's clock. */
struct ckpt_watch;

struct ckpt_watch *checkpoint_watch_new(const char *root, const struct ckpt_kind *kind,
					int64_t quiet_ms);
void checkpoint_watch_freep(struct ckpt_watch **watch); /* for AUTO() */
/* Sets a new `quiet_ms`. Taken checkpoints stay taken: at the end of an attempt, when nothing
 * is written any more, only new checkpoints cost anything. */
void checkpoint_watch_quiet(struct ckpt_watch *watch, int64_t quiet_ms);
/* Asks for the next checkpoint soon: a checkpoint that its own format or its siblings vouch for
 * settles after this `quiet_ms`; any other takes as long as before. */
void checkpoint_watch_quiet_verified(struct ckpt_watch *watch, int64_t quiet_ms);
/* Watches the folder of one of several nodes (shards.h): a checkpoint is complete once it has
 * settled and each of its files is whole. The newest taken ones are offered again if they
 * change. */
void checkpoint_watch_parts(struct ckpt_watch *watch);
/* Makes checkpoint_watch_next() return the newest settled checkpoint first, or the oldest again. */
void checkpoint_watch_newest(struct ckpt_watch *watch, bool first);

/* Lists the root and proves the checkpoints that have settled, once for each state of a
 * checkpoint. The proofs of one call take little longer than its listing, so that a call stays
 * short (call again soon while checkpoint_watch_busy()). After an error the watch goes on. */
int checkpoint_watch_scan(struct ckpt_watch *watch, struct mono now, struct err **err);
/* True if more has settled than the last look could prove. */
bool checkpoint_watch_busy(const struct ckpt_watch *watch);
/* Returns the oldest (or newest) settled checkpoint not taken yet, as of the last look; NULL if
 * not found. Borrowed until the next call with this watch. */
const struct ckpt *checkpoint_watch_next(struct ckpt_watch *watch);
/* Takes a checkpoint: it is not offered again and no longer looked at. A name not seen yet is
 * remembered (an agent that starts again takes the checkpoints that have marks already). */
void checkpoint_watch_take(struct ckpt_watch *watch, const char *name);
/* Returns a counter that grows whenever a look finds a change beneath the root, also in
 * temporary and partial checkpoints: a sign that the script is saving. */
uint64_t checkpoint_watch_changes(const struct ckpt_watch *watch);
/* Returns the nth settled candidate that is not complete, newest first, with `why`; NULL behind
 * the last. Borrowed until the next call. For messages. */
const struct ckpt *checkpoint_watch_partial(struct ckpt_watch *watch, size_t n);

/* True if such a candidate is probably passed over for good: a later one is there, or it has not
 * changed for `unchanged_ms`. */
bool checkpoint_watch_passed(const struct ckpt_watch *watch, const struct ckpt *partial,
			     int64_t unchanged_ms);
/* Does not offer a checkpoint for `ms`, unless it changes: it could not be handled, and others
 * wait. */
void checkpoint_watch_later(struct ckpt_watch *watch, const char *name, int64_t ms);
/* Offers all of those again at once. */
void checkpoint_watch_again(struct ckpt_watch *watch);

/* Returns the nth settled entry of the root that looks like a checkpoint but has a name that
 * this kind does not use. Returns false behind the last, and at once if a checkpoint of this
 * kind is complete. For messages; all members are borrowed until the next call. */
struct ckpt_unrecognised {
	const char *name, *tag; /* as of a struct ckpt */
	bool named;             /* has a step, so another kind would take it */
};
bool checkpoint_watch_unrecognised(const struct ckpt_watch *watch, size_t n,
				   struct ckpt_unrecognised *ret);

/* ---- copying a checkpoint to another root, and back ---- */

/* Called now and then; if it returns false, the copy stops with an error. */
typedef bool (*ckpt_copy_fn)(void *arg, uint64_t done, uint64_t total);

/* Copies a checkpoint to another root, which is made if need be. Links, special files and a source
 * that changes meanwhile are refused; nothing outside the checkpoint is read, nothing is written
 * through a link. Empty folders are not copied. `fn` may be NULL. After an error, what was copied
 * stays, and the next copy goes on with it.
 *
 * In a folder the files go to a hidden folder, each whole and durable before it gets its name
 * there. That folder gets its own name when all files are there, so the checkpoint is in the new
 * root as a whole or not at all. An entry of the same name is an error unless it is the same
 * (names, sizes, ends): then nothing is copied.
 *
 * In a store the files get their keys one by one, many at a time: there the mark tells that all
 * have arrived. A manifest in the source folder (sync.h: a hidden file) remembers the objects
 * that have arrived. Objects beneath the name that the checkpoint does not have are removed. */
int checkpoint_copy(const struct ckpt *ckpt, const struct ckpt_root *to, ckpt_copy_fn fn, void *arg,
		    struct err **err);

/* Checks whether the script or the engine has copied it there (`sync: none`). Returns 1 if the
 * root holds the same files by name and size, 0 if not yet, -1 with an error. */
int checkpoint_copy_is_there(const struct ckpt *ckpt, const struct ckpt_root *to, struct err **err);

/* Downloads a marked checkpoint from its store into `folder`, where it gets its name as a whole
 * or not at all. Each file must match the mark by size and ends, and there must be room for all
 * of it (else ENOSPC at once). The download uses what an interrupted one left. Returns 1 if it is
 * there, 0 if it does not match the mark and why (the caller frees it), -1 with an error. */
int checkpoint_fetch(const struct ckpt_mark *mark, const char *folder, char **ret_why,
		     struct err **err);

/* ---- marks ---- */

struct ckpt_owner { /* owner of a checkpoint, as in the claim */
	const char *run, *nonce;
	int64_t attempt;
	const char *device; /* type of the machine; NULL: not known */
	int64_t world_size; /* of the processes that save; 0: not known */
};

struct ckpt_mark {
	char *run, *nonce, *name, *url; /* owned */
	char *root;                     /* owned: as `path` of a root */
	struct store *store;            /* borrowed from the root; NULL: a folder */
	const struct ckpt_kind *kind;   /* never `auto` */
	int64_t attempt;
	int64_t step;       /* -1: of a model (pin.h), in the name of which there need be none */
	int64_t saving_ms;  /* how long its script took to save it; 0: not known */
	char *device;       /* owned; NULL: not known */
	int64_t world_size; /* 0: not known */
	struct utc at;
	json_t *files; /* owned; as in the file */
};

struct ckpt_marks {
	struct ckpt_mark *items; /* owned; highest step first, then highest attempt */
	size_t count;
};

void checkpoint_mark_release(struct ckpt_mark *mark);
void checkpoint_marks_release(struct ckpt_marks *marks); /* for AUTO() */

/* Marks the checkpoint of this name in `root` (in which it lies or to which it was copied) if it
 * proves complete there now. Returns 1 if marked, 0 if it has a mark already (of any attempt),
 * -1 with an error, also if it is not complete. The caller must just have seen that it still
 * holds the claim. In a store the checkpoint must be complete in the folder that it was copied
 * from, and the store must list the same files. */
int checkpoint_mark(const struct ckpt_root *root, const struct ckpt *ckpt,
		    const struct ckpt_owner *owner, struct utc at, struct err **err);

/* Lists the marks in one root with names of a step greater than `above` (-1: all; the others are
 * not read). A file named like a mark that is not valid goes to `rejected` (may be NULL), an
 * array, as {"url": of the mark, "why"}. */
int checkpoint_mark_list(const struct ckpt_root *root, int64_t above, struct ckpt_marks *ret,
			 json_t *rejected, struct err **err);

/* Returns 1 with the mark of checkpoint `name`, 0 if it is absent or not a valid mark, -1 with
 * an error. */
int checkpoint_mark_read(const struct ckpt_root *root, const char *name, struct ckpt_mark *ret,
			 struct err **err);

/* Checks that a marked checkpoint is still there, unchanged (names, sizes, ends; in a store:
 * tags) and complete by the rules of its kind. Returns 1 if so, 0 if not and why (the caller
 * frees it), -1 with an error. Pointers are not checked: they name the newest only. In a store
 * this is one listing. */
int checkpoint_mark_holds(const struct ckpt_mark *mark, char **ret_why, struct err **err);

/* ---- choosing a checkpoint to resume from ---- */

struct ckpt_choice {
	bool found;
	struct ckpt_mark mark; /* if found: the newest that holds */
	json_t *rejected;      /* owned: [{"url","why"}…] of newer ones passed over, in order */
};

void checkpoint_choice_release(struct ckpt_choice *choice); /* for AUTO() */

/* Chooses the newest checkpoint of `run` (highest step; of equal steps that of the latest
 * attempt) in these roots that is marked, has a step less than `below` (INT64_MAX: any), and
 * holds now. Not finding any is not an error. A root that cannot be listed is an error, so that
 * no choice is made from half of the checkpoints. Marks are read from the newest on, until one
 * holds. */
int checkpoint_choose(const struct ckpt_root *roots, size_t count, const char *run, int64_t below,
		      struct ckpt_choice *ret, struct err **err);

/* ---- keeping the newest ---- */

/* Lists marked checkpoints of `run` that may be removed, oldest first, so that the `keep` newest
 * which hold remain, and `in_use` (a path or NULL: the checkpoint that a live attempt resumed
 * from). keep 0: all are kept. On an error the list is empty. */
int checkpoint_surplus(const struct ckpt_root *roots, size_t count, const char *run, int64_t keep,
		       const char *in_use, struct ckpt_marks *ret, struct err **err);

/* Removes a checkpoint with its mark: first the mark, then the name, then the files. An absent
 * one is not an error. A crash leaves at worst a hidden folder, or in a store objects and a note
 * on them, which the next removal in that root clears away. */
int checkpoint_remove(const struct ckpt_mark *mark, struct err **err);

#endif
