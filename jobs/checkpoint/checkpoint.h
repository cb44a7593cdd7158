/*
 * Checkpoints: which a directory holds, which of them are whole, which this run
 * may resume from, and how they are brought to another directory.
 *
 * A *root* is the folder in which the checkpoints of one attempt lie side by
 * side; a checkpoint is one entry of it, a folder or (kind `files` only) one
 * file. Names that are links are never checkpoints: the one that an attempt
 * resumed from is linked into its root and belongs to another attempt.
 *
 * The root to which complete ones are copied may be a prefix of an object store
 * (S3) instead. Nothing is proved there: what lies there was proved in a folder
 * before it was sent. There is no renaming either, so it is the mark, written
 * last, that makes a checkpoint out of objects; it holds the tag that the store
 * gave to each of them, and one listing tells whether they are what they were.
 *
 * Complete means proved so from listing and headers alone: sizes, the headers
 * and directories that safetensors, zip (torch.save, npz) and npy files carry, JSON
 * that parses, an index whose shards are all there, ranks without gaps, the
 * marker or pointer that the format's writer leaves last. Nothing is ever
 * unpickled. What a format does not tell about itself is compared with the older
 * checkpoints beside it (same names, nothing cut off).
 *
 * A checkpoint counts for resuming only with a *mark*, a file beside it:
 *
 *   <root>/<name>.stoker.json   (0600, written last, only if there is none)
 *   <prefix>marks/<name>.stoker.json  in a store, so that marks can be listed
 *                                     without what they mark
 *   {"v":1, "run", "attempt", "nonce", "step", "name", "kind",
 *    "url": absolute path or URL of the checkpoint, "at": utc ms, "saving_ms",
 *    "files": [{"path": relative to the checkpoint ("" if it is a single file),
 *               "size": bytes, "ends": SHA-256 over its first and last
 *               CKPT_ENDS bytes, over all of it if it is no longer than both,
 *               "tag": in a store, of the object}…]}
 *
 * so a marked checkpoint that was damaged later is found out by the mark even
 * where its format would not tell.
 *
 * In an agent's loop (nothing here waits, sleeps or starts processes or threads):
 *
 *     ckpt_watch_look(watch, mono_now(), &err);            each heartbeat
 *     while ((c = ckpt_watch_next(watch))) {               oldest first
 *             with another root: ckpt_copy_start(c, root, …), ckpt_copy_step() until 1
 *             claim still ours?  ckpt_mark(root, c, &owner, utc_now(), &err);
 *             ckpt_watch_take(watch, c->name);
 *     }
 *
 * Paths are absolute. Errors carry EXIT_REFUSED and mean that something could
 * not be read or written, never that a checkpoint is bad: that is a `why`, one
 * lower-case clause naming the file, which holds outside text (escape it before
 * it reaches a terminal).
 */
#ifndef STK_CHECKPOINT_CHECKPOINT_H
#define STK_CHECKPOINT_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/clock.h"
#include "jobs/base/err.h"
#include "jobs/base/hash.h"
#include "jobs/base/json.h"

#define CKPT_MARK_SUFFIX ".stoker.json"
#define CKPT_ENDS        ((size_t)16 << 10) /* bytes at each end of a file that a mark pins */

/* ---- kinds: files, hf, nxd, dcp, orbax, megatron, deepspeed, auto ----
 *
 * `auto` recognizes each checkpoint by what it holds; what no other kind knows is
 * one of `files` if its name (step, iter, epoch, ckpt, checkpoint, model, state,
 * weight, snapshot, save, or a bare number) or the ending of a file in it says that
 * it is a checkpoint, so that numbered logs are none. */

struct ckpt_kind;

const struct ckpt_kind *ckpt_kind_find(const char *name); /* NULL: no such kind */
const struct ckpt_kind *ckpt_kind_at(size_t n);           /* NULL behind the last */
const char *ckpt_kind_name(const struct ckpt_kind *kind);
/* The file in a root by which scripts of this kind find the newest checkpoint
 * ("latest", "latest_checkpointed_iteration.txt"); NULL if they need none. Who
 * links a checkpoint into a new root writes it there: ckpt_point(). */
const char *ckpt_kind_pointer(const struct ckpt_kind *kind);

/* ---- roots ---- */

struct ckpt_mark;
struct store;

/* Where the checkpoints of one attempt lie side by side. All of it is borrowed. */
struct ckpt_root {
	const char *path;    /* absolute; in a store: a prefix, "" or ending in a slash */
	int64_t attempt;     /* whose root it is: marks of another attempt are rejected */
	const char *nonce;   /* likewise; NULL: any */
	struct store *store; /* NULL: a folder */
};

#define CKPT_FOLDER(folder) (&(const struct ckpt_root){ .path = (folder) })

/* Where a checkpoint of this name lies in the root: path or URL, yours to free. */
char *ckpt_root_url(const struct ckpt_root *root, const char *name);

/* ---- what a folder holds ---- */

struct ckpt {
	const struct ckpt_kind *kind; /* never `auto`: what it was recognized as */
	char *name;                   /* owned: of the entry in its root */
	char *path;                   /* owned: absolute */
	int64_t step;                 /* from its name; never negative */
	uint64_t files, bytes;
	int64_t saving_ms;    /* from the birth of its first file to its last write */
	char tag[SHA256_HEX]; /* of names, sizes, times and pointer: differs after any change */
	bool complete;
	/* Complete by what its format or its older neighbours say, not only for want of
	 * anything to the contrary: also where its writer was killed. */
	bool vouched;
	char *why; /* owned: why it is not; NULL if complete (or not looked at) */
};

struct ckpt_list {
	struct ckpt *items; /* owned; the newest (highest step) first */
	size_t count;
};

void ckpt_release(struct ckpt *ckpt);
void ckpt_list_release(struct ckpt_list *list); /* for AUTO() */

/* Every candidate in `root`, proved. A root that is not there has none. Entries
 * whose names hold no step, temporary ones, links and marks are no candidates.
 * Reads a header or two of each file: seconds for a checkpoint of 10^5 files. */
int ckpt_find(const char *root, const struct ckpt_kind *kind, struct ckpt_list *ret,
	      struct err **err);

/* The one at `path`, looked at now; `kind` may be `auto`. One that is gone, or
 * whose name cannot be a checkpoint's, is not complete. */
int ckpt_prove(const char *path, const struct ckpt_kind *kind, struct ckpt *ret, struct err **err);

/* Write the pointer of this kind in `root` so that it names the checkpoint (its
 * name, as linked or copied there); replaces an older one, never one that names a
 * later step. Nothing to do for kinds without one. */
int ckpt_point(const char *root, const struct ckpt *ckpt, struct err **err);

/* ---- settling ---- */

/* Looks at one root again and again. A checkpoint is settled when it is complete
 * and nothing in it has changed for `settle_ms` of the caller's clock. */
struct ckpt_watch;

struct ckpt_watch *ckpt_watch_new(const char *root, const struct ckpt_kind *kind,
				  int64_t settle_ms);
void ckpt_watch_freep(struct ckpt_watch **watch); /* for AUTO() */
/* The folder is that of one of several nodes (shards.h): complete is whatever has settled and
 * is whole file by file, and the newest of those taken are offered again if they change. */
void ckpt_watch_parts(struct ckpt_watch *watch);
/* From now on ckpt_watch_next() is the newest of them, or the oldest again. */
void ckpt_watch_newest(struct ckpt_watch *watch, bool first);

/* List what is there and prove what has settled; proofs are made once for each
 * state of a checkpoint, and at most one in a call, so that a call stays short
 * (call again soon while ckpt_watch_busy()). After an error the watch goes on. */
int ckpt_watch_look(struct ckpt_watch *watch, struct mono now, struct err **err);
/* More has settled than the last look could prove. */
bool ckpt_watch_busy(const struct ckpt_watch *watch);
/* The oldest (or newest) settled one not taken yet, as of the last look; NULL if none.
 * Borrowed until the next call with this watch. */
const struct ckpt *ckpt_watch_next(struct ckpt_watch *watch);
/* Done with it: not offered again and no longer looked at. Of a name that has not
 * been seen: remembered for when it is (an agent that starts anew takes what is
 * marked already). */
void ckpt_watch_take(struct ckpt_watch *watch, const char *name);
/* Grows whenever a look finds that anything beneath the root has changed, also in
 * temporary and partial checkpoints: sign of a script that is saving. */
uint64_t ckpt_watch_changes(const struct ckpt_watch *watch);
/* Candidates that have settled and were found not complete, newest first, with
 * `why`; borrowed until the next call. For messages. */
const struct ckpt *ckpt_watch_partial(struct ckpt_watch *watch, size_t n);

/* ---- bringing one to another root, and back ---- */

/* A copy in the making: files go to a hidden folder in the new root, each one
 * whole and durable before it gets its name there; the folder gets its own name
 * when all are there, so the checkpoint is in the new root as a whole or not at all.
 * What an interrupted copy left is used by the next one. Links, special files and
 * a source that changes meanwhile are refused; nothing outside the checkpoint is
 * read, nothing is written through a link. Empty folders do not come along.
 *
 * In a store the files get their keys one by one, many at a time: there the mark tells.
 * What has arrived is remembered beside them (sync.h: a hidden file), so that an
 * interrupted copy is gone on with. Objects beneath its name that it does not have
 * are removed. */
struct ckpt_copy;

/* Called now and then; false: stop, which is an error. */
typedef bool (*ckpt_copy_fn)(void *arg, uint64_t done, uint64_t total);

/* `to` is made if need be. An entry of the same name in a folder is an error unless
 * it is the same (names, sizes, ends): then the copy is done at once. */
int ckpt_copy_start(const struct ckpt *ckpt, const struct ckpt_root *to, struct ckpt_copy **ret,
		    struct err **err);
/* Go on for about `bytes` (1 MiB or more; small files count as 64 KiB): 1 all
 * done and durable, 0 call again, -1 error: drop the copy, start over after the
 * next look (the source may have changed: see the message). */
int ckpt_copy_step(struct ckpt_copy *copy, uint64_t bytes, struct err **err);
/* To a store a step is all of it: `fn` is called meanwhile. */
void ckpt_copy_tell(struct ckpt_copy *copy, ckpt_copy_fn fn, void *arg);
void ckpt_copy_progress(const struct ckpt_copy *copy, uint64_t *ret_done, uint64_t *ret_total);
void ckpt_copy_freep(struct ckpt_copy **copy); /* for AUTO(); what was copied stays for later */

/* Has somebody else brought it there (`sync: none`)? 1 the root holds the same files, by
 * name and size; 0 not yet; -1. */
int ckpt_copy_is_there(const struct ckpt *ckpt, const struct ckpt_root *to, struct err **err);

/* The other way round: fetch a marked checkpoint from its store into `folder`, where it
 * gets its name as a whole or not at all; each file must be what was marked, by size and
 * ends, and there is room for all of it (else ENOSPC at once). What an interrupted fetch left is
 * used. `fn` may be NULL; it is not told how much there is (0). 1 it is there, 0 it is not what was
 * marked and why (yours to free), -1 error. */
int ckpt_fetch(const struct ckpt_mark *mark, const char *folder, ckpt_copy_fn fn, void *arg,
	       char **ret_why, struct err **err);

/* ---- marks ---- */

struct ckpt_owner { /* whose checkpoint it is: as in the claim */
	const char *run, *nonce;
	int64_t attempt;
};

struct ckpt_mark {
	char *run, *nonce, *name, *url; /* owned */
	char *root;                     /* owned: as `path` of a root */
	struct store *store;            /* borrowed from the root; NULL: a folder */
	const struct ckpt_kind *kind;   /* never `auto` */
	int64_t attempt, step;
	int64_t saving_ms; /* how long its script took to save it; 0: not known */
	struct utc at;
	json_t *files; /* owned: as in the file */
};

struct ckpt_marks {
	struct ckpt_mark *items; /* owned; highest step first, then highest attempt */
	size_t count;
};

void ckpt_mark_release(struct ckpt_mark *mark);
void ckpt_marks_release(struct ckpt_marks *marks); /* for AUTO() */

/* Mark the checkpoint of this name in `root` (where it lies or was copied to), if
 * it proves complete there now: 1 marked, 0 it has a mark already (of whomever),
 * -1 error, also if it is not complete. The caller has just seen that the claim
 * is still his. In a store: if it is complete where it was copied from, and the
 * store lists the same files. */
int ckpt_mark(const struct ckpt_root *root, const struct ckpt *ckpt, const struct ckpt_owner *owner,
	      struct utc at, struct err **err);

/* The marks in one root whose names tell of a step greater than `above` (-1: all; the
 * others are not read). What looks like a mark and is none goes to `rejected`
 * (may be NULL), an array, as {"url": of the mark, "why"}. */
int ckpt_mark_list(const struct ckpt_root *root, int64_t above, struct ckpt_marks *ret,
		   json_t *rejected, struct err **err);

/* 1 and the mark of checkpoint `name`, 0 there is none or it is no mark, -1. */
int ckpt_mark_read(const struct ckpt_root *root, const char *name, struct ckpt_mark *ret,
		   struct err **err);

/* Is what was marked there now, unchanged (names, sizes, ends; in a store: tags) and
 * complete by the rules of its kind? 1 yes, 0 no and why (yours to free), -1 error.
 * Pointers are not asked: they name the newest only. In a store this is one listing. */
int ckpt_mark_holds(const struct ckpt_mark *mark, char **ret_why, struct err **err);

/* ---- what to resume from ---- */

struct ckpt_choice {
	bool found;
	struct ckpt_mark mark; /* if found: the newest that holds */
	json_t *rejected;      /* owned: [{"url","why"}…] of newer ones passed over, in order */
};

void ckpt_choice_release(struct ckpt_choice *choice); /* for AUTO() */

/* The newest checkpoint of `run` (highest step; of equal steps that of the latest
 * attempt) in these roots that is marked, of a step less than `below` (INT64_MAX:
 * any), and holds now. Not found is no error; a root that cannot be listed is one
 * (nothing is chosen from half of the truth). Marks are read from the newest on, until
 * one holds. */
int ckpt_choose(const struct ckpt_root *roots, size_t count, const char *run, int64_t below,
		struct ckpt_choice *ret, struct err **err);

/* ---- keeping n ---- */

/* Marked checkpoints of `run` that may be removed, oldest first, so that the `keep`
 * newest which hold remain, and `in_use` (a path or NULL: what a live attempt
 * resumed from). keep 0: all are kept. An error names nothing. */
int ckpt_surplus(const struct ckpt_root *roots, size_t count, const char *run, int64_t keep,
		 const char *in_use, struct ckpt_marks *ret, struct err **err);

/* Remove a checkpoint with its mark: the mark first, then out of sight, then the
 * files; absent is fine. A crash leaves at worst a hidden folder, or in a store
 * objects and a note on them, which the next removal in that root clears away. */
int ckpt_remove(const struct ckpt_mark *mark, struct err **err);

#endif
