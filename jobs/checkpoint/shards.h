/*
 * Checkpoints of several nodes that have no folder in common: each saves its part of one, and
 * all that they share is the root, which then is in a store.
 *
 * A part is what one node has beneath one name. Its node sends the files to where the whole
 * lies, and tells of them in a note:
 *
 *   <root>/shards/<name>/node-<k>.json
 *   {"v":1, "run", "attempt", "restart", "nonce", "token", "node", "name", "step",
 *    "generation": from 1, one more each time that the part is another, "single": it is one
 *    file, "sent": all of it is there, "saving_ms", "trouble": why it is not (absent: it is),
 *    "files": [{"path","size","ends": as in a mark, "tag": of the object once sent,
 *    "opaque": its format tells nothing of its length, "shared": another node had brought the
 *    same one}…]}
 *
 * It is written before the first file is sent, so that whatever is interrupted is known to
 * be this node's, and again when all are there. A file that another node has brought under the
 * same name is left as it is: with the same bytes it is part of both, with others the part has
 * a conflict and the checkpoint is not marked.
 *
 * Node 0 joins the parts of all nodes: the union of their files is judged by the rules of its
 * kind as one folder would be, held against what the store lists, and marked. Files of other
 * nodes were proved there, one by one; those that a kind reads into (metadata, indexes) are
 * fetched to be read.
 */
#ifndef STK_CHECKPOINT_SHARDS_H
#define STK_CHECKPOINT_SHARDS_H

#include "jobs/checkpoint/checkpoint.h"

#define SHARDS_PREFIX "shards/"

/* Whose notes count: those of other lives of the job do not. All of it is borrowed. */
struct ckpt_life {
	struct ckpt_owner owner;
	const char *token;
	int64_t restart;
};

/* Put this life into an object, and see whether one is of it. */
void ckpt_life_put(const struct ckpt_life *life, json_t *object);
bool ckpt_life_is(const struct ckpt_life *life, const json_t *object);

/* Send this node's part and tell of it; the note is a new reference. 1 all of it is there, 0
 * it has trouble, -1 error. `fn` may be NULL. */
int ckpt_part_send(const struct ckpt_root *root, const struct ckpt *ckpt,
		   const struct ckpt_life *life, int node, ckpt_copy_fn fn, void *arg, json_t **ret,
		   struct err **err);

/* The note of a node in this life: 1 and a new reference, 0 none, -1. */
int ckpt_part_read(const struct ckpt_root *root, const char *name, const struct ckpt_life *life,
		   int node, json_t **ret, struct err **err);

/* Notes of a checkpoint that is removed go too. */
int ckpt_parts_remove(const struct ckpt_root *root, const char *name, struct err **err);

/* What the parts are together. */
struct ckpt_join {
	struct ckpt ckpt; /* complete, or why not */
	json_t *files;    /* owned: as in a mark */
	/* Not complete for a reason that is none of its format's: nodes do not agree, or what
	 * they sent is not what lies there. */
	bool conflict;
};

void ckpt_join_release(struct ckpt_join *join); /* for AUTO() */

/* Judge the union of these notes (each of another node, all of `name`); `folder` is node 0's
 * own checkpoint folder, for its pointer and scratch space. 0, -1. */
int ckpt_join(const struct ckpt_root *root, const char *folder, const struct ckpt_kind *kind,
	      const char *name, const json_t *notes, struct ckpt_join *ret, struct err **err);

/* Mark what was joined, in place of an older mark of other files: as ckpt_mark(). */
int ckpt_join_mark(const struct ckpt_root *root, const struct ckpt_join *join,
		   const struct ckpt_owner *owner, struct utc at, struct err **err);

/* It counts no more; absent is fine. */
int ckpt_mark_withdraw(const struct ckpt_root *root, const char *name, struct err **err);

#endif
