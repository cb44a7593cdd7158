/*
 * How the agents of nodes that have no folder in common bring a checkpoint together: the
 * keeper's part (keeper.h) of the protocol in jobs/checkpoint/shards.h. All that passes
 * between nodes are objects of the root, and nobody asks more often than the order's look_ms,
 * except when the command is over or the node is to hurry.
 *
 *   <root>/shards/node-<k>.json  from node k, replaced as a whole when it changes:
 *   {"v":1, "run", "attempt", "restart", "nonce", "token",
 *    "parts": {name: {"generation","step"}} of what it has sent, the newest PARTS_TOLD,
 *    "none": {name: true} of what it was asked for and has no part of,
 *    "bad": {name: why} of parts that have settled and are not whole,
 *    "last": true when its command is over: it has no part of what is not in "parts",
 *    "cut": true when that was not its own end: it may have been about to save,
 *    "moved", "changes", "beats": numbers that grow while it sends, or still saves, or node 0
 *    waits for it,
 *    "asked": {name: true}, from node 0: what others are to say of whether they have a part,
 *    "removed": {name: true}, from node 0: what is to be kept no more}
 *
 * A node that has saved sends its part and tells so. Node 0 lists these objects, reads the
 * ones that are new, and asks for names that not every node has said something about. Who has
 * nothing of that name, and whose folder has been quiet for as long as a checkpoint takes to
 * settle, says so: that is how what node 0 alone saves comes to be marked. When all have
 * answered, node 0 joins the parts, and marks what is complete. Should a part change later, or
 * one come up after all, the mark is withdrawn, and the union judged anew.
 *
 * When its command is over, node 0 waits for the last word of all others, if anything was saved:
 * as long as one shows that it lives, and SILENT_BEATS heartbeats longer, those not counted in
 * which node 0 itself was stopped; whether what a node does still leads anywhere is for its
 * watchdog to say (watchdog.h). Who died on the way leaves what it had a part of unmarked. So
 * does who was cut off before it saved what others have saved, unless it has let one of its like
 * pass that is marked without it: a node that never saves has no part in the others either.
 */
#ifndef STK_NODE_SHARDS_H
#define STK_NODE_SHARDS_H

#include "jobs/checkpoint/shards.h"
#include "jobs/node/task.h"
#include "jobs/store/store.h"

struct shards;

/* What the keeper does for it. */
struct shards_hooks {
	void *arg;
	/* Is the claim still ours? 1, 0 no, -1 not known. */
	int (*holds)(void *arg);
	void (*marked)(void *arg, int64_t step, const char *url);
	void (*trouble)(void *arg, const struct err *why);
};

/* Several nodes, no folder in common, a root that the agents bring checkpoints to: then this
 * is how they do. */
bool shards_needed(const struct task *task);

/* `root` is in a store; `source` is where the command saves. All of it is borrowed. */
struct shards *shards_new(const struct task *task, const struct ckpt_root *root,
			  const struct ckpt_kind *kind, const char *source,
			  const struct shards_hooks *hooks);
void shards_freep(struct shards **shards);

/* Bring this node's part of it. 1 it is there, or in conflict with another node's, which is
 * told; -1. */
int shards_send(struct shards *shards, const struct ckpt *ckpt, ckpt_copy_fn fn, void *arg,
		struct err **err);
/* Bytes have moved: tell others now and then that this node lives. */
void shards_moved(struct shards *shards);

/* How things stand in this node's own folder. */
struct shards_own {
	uint64_t changes;  /* grows with each */
	bool quiet;        /* for as long as a checkpoint takes to settle */
	bool hurry;        /* somebody waits for what was saved */
	const json_t *bad; /* {name: why} of what has settled there and is not whole */
};

/* If it is time: hear the others, answer, and on node 0 judge and mark. What goes wrong is told
 * to the hooks and tried again. The count of those newly marked. */
int shards_look(struct shards *shards, const struct shards_own *own);

/* The command is over (`cut`: not by its own end) and all that this node has is sent; `bad` as
 * above. False: others could not be told; again later. */
bool shards_finish(struct shards *shards, const json_t *bad, bool cut);
/* Is there anything to wait for? On node 0 only. False: the last judgement has been made. */
bool shards_waiting(struct shards *shards);
/* Milliseconds until the next look, after shards_finish(). */
int64_t shards_pause(const struct shards *shards);

/* After that: what is not marked, in no order; false behind the last one. */
struct shards_unmarked {
	const char *name, *why; /* borrowed */
	bool lost;              /* it is not for its format that it is none */
	const char *class;      /* who can cure that; NULL: its error tells */
};
bool shards_unmarked(const struct shards *shards, size_t n, struct shards_unmarked *ret);

/* `keep` has no room for it any more: its mark and objects are gone. */
void shards_removed(struct shards *shards, const char *name);

#endif
