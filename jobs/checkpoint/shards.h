/*
 * Checkpoints of several nodes that have no folder in common: each node saves its part, and
 * all that they share is the root, which then is in a store.
 *
 * A part is the files that one node has beneath one name. The node uploads the files to the
 * place of the whole checkpoint, and describes them in a note:
 *
 *   <root>/shards/<name>/node-<k>.json
 *   {"v":1, "run", "attempt", "restart", "nonce", "token", "node", "name", "step",
 *    "generation": from 1, one more each time that the part is another, "single": it is one
 *    file, "sent": all of it is there, "saving_ms", "trouble": why it is not (absent: it is),
 *    "files": [{"path","size","ends": as in a mark, "tag": of the object once sent,
 *    "opaque": its format tells nothing of its length, "shared": another node had uploaded
 *    the same one}…]}
 *
 * The note is written before the first file is sent, so that the files of an interrupted
 * upload are known to be this node's, and again when all are there. A file that another node
 * has uploaded under the same name is left as it is: with the same bytes it is part of both;
 * with other bytes the part has a conflict and the checkpoint is not marked.
 *
 * Node 0 joins the parts of all nodes: the union of their files is judged by the rules of its
 * kind as one folder would be, compared with the store's listing, and marked. Files of other
 * nodes were proved on those nodes, one by one; files that a kind reads (metadata, indexes)
 * are downloaded.
 */
#ifndef STK_CHECKPOINT_SHARDS_H
#define STK_CHECKPOINT_SHARDS_H

#include "jobs/checkpoint/checkpoint.h"

#define SHARDS_PREFIX "shards/"

/* Life of a job (one start of it): only notes of the same life count. All members are borrowed. */
struct ckpt_life {
	struct ckpt_owner owner;
	const char *token;
	int64_t restart;
};

/* Write a life into an object, and check that an object is of this life. */
void checkpoint_life_put(const struct ckpt_life *life, json_t *object);
bool checkpoint_life_is(const struct ckpt_life *life, const json_t *object);

/* Uploads this node's part and writes its note, which is a new reference. Returns 1 if all of it
 * is there, 0 if it has trouble, -1 with an error. `fn` may be NULL. */
int checkpoint_part_send(const struct ckpt_root *root, const struct ckpt *ckpt,
			 const struct ckpt_life *life, int node, ckpt_copy_fn fn, void *arg,
			 json_t **ret, struct err **err);

/* Reads the note of a node in this life. Returns 1 with a new reference, 0 if not found, -1 with
 * an error. */
int checkpoint_part_read(const struct ckpt_root *root, const char *name,
			 const struct ckpt_life *life, int node, json_t **ret, struct err **err);

/* Removes the notes of a checkpoint that is removed. */
int checkpoint_parts_remove(const struct ckpt_root *root, const char *name, struct err **err);

/* Result of joining the parts. */
struct ckpt_join {
	struct ckpt ckpt; /* complete, or why not */
	json_t *files;    /* owned; as in a mark */
	/* True if it is not complete for a reason other than its format: nodes do not agree, or
	 * the store does not hold what they sent. */
	bool conflict;
};

void checkpoint_join_release(struct ckpt_join *join); /* for AUTO() */

/* Judges the union of these notes (each of another node, all of `name`). `folder` is node 0's
 * own checkpoint folder, for its pointer and scratch space. Returns 0 or -1. */
int checkpoint_join(const struct ckpt_root *root, const char *folder, const struct ckpt_kind *kind,
		    const char *name, const json_t *notes, struct ckpt_join *ret, struct err **err);

/* Marks a joined checkpoint as checkpoint_mark() does, in place of an older mark of other files. */
int checkpoint_join_mark(const struct ckpt_root *root, const struct ckpt_join *join,
			 const struct ckpt_owner *owner, struct utc at, struct err **err);

/* Removes a mark, so that its checkpoint no longer counts. An absent one is not an error. */
int checkpoint_mark_withdraw(const struct ckpt_root *root, const char *name, struct err **err);

#endif
