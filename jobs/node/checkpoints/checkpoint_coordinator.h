/*
 * Coordinates checkpoints of nodes that have no folder in common: the checkpointer's side
 * (checkpointer.h) of the protocol in jobs/checkpoint/shards.h. Nodes communicate only through
 * objects of the root. No node reads them more often than the order's look_ms, except when the
 * command is over or the node is to hurry.
 *
 *   <root>/shards/node-<k>.json  from node k, replaced as a whole when it changes:
 *   {"v":1, "run", "attempt", "restart", "nonce", "token",
 *    "parts": {name: {"generation","step"}} of what it has sent, the newest PARTS_TOLD,
 *    "none": {name: true} of what it was asked for and has no part of,
 *    "bad": {name: why} of parts that have settled and are not whole,
 *    "last": true when its command is over: it has no part of what is not in "parts",
 *    "cut": true when the command did not end by itself: it may have been about to save,
 *    "moved", "changes", "beats": numbers that grow while it sends, or still saves, or node 0
 *    waits for it,
 *    "asked": {name: true}, from node 0: the others are to say whether they have a part,
 *    "removed": {name: true}, from node 0: checkpoints that are no longer kept}
 *
 * A node that has saved sends its part and publishes that. Node 0 lists these objects, reads the
 * new ones, and asks for names that not every node has answered for. A node answers "none" if it
 * has nothing of that name and its folder has been quiet for as long as a checkpoint takes to
 * settle; a checkpoint that node 0 alone saves is marked by that. When all have answered, node 0
 * joins the parts, and marks what is complete. If a part changes later, or another one appears, the
 * mark is withdrawn, and the union is judged again.
 *
 * When its command is over and anything was saved, node 0 waits for the "last" of all other nodes:
 * as long as a node shows that it lives, and SILENT_BEATS heartbeats longer (20 s for a node that
 * has said nothing since the attempt began), without the time in which node 0 itself was stopped.
 * The watchdog (watchdog.h) decides whether a node that lives
 * still makes progress. A checkpoint stays unmarked if a node with a part of it died. The same
 * holds if a node was cut off before it saved its part, unless another one of the same series is
 * marked without that node: a node that never saves has no part in the others either.
 */
#ifndef STK_NODE_CHECKPOINTS_CHECKPOINT_COORDINATOR_H
#define STK_NODE_CHECKPOINTS_CHECKPOINT_COORDINATOR_H

#include "jobs/checkpoint/shards.h"
#include "jobs/node/setup/agent_config.h"
#include "jobs/store/store.h"

struct checkpoint_coordinator;

/* Callbacks into the checkpointer. */
struct coordinator_hooks {
	void *arg;
	/* Returns 1 if the claim is still ours, 0 if not, -1 if not known. */
	int (*holds)(void *arg);
	void (*marked)(void *arg, int64_t step, const char *url);
	void (*trouble)(void *arg, const struct err *why);
};

/* True for several nodes with no folder in common and a root that the agents upload checkpoints
 * to. */
bool checkpoint_coordinator_needed(const struct agent_config *config);

/* `root` is in a store; `source` is the folder that the command saves to. All
 * arguments are borrowed. */
struct checkpoint_coordinator *checkpoint_coordinator_new(const struct agent_config *config,
							  const struct ckpt_root *root,
							  const struct ckpt_kind *kind,
							  const char *source,
							  const struct coordinator_hooks *hooks);
void checkpoint_coordinator_freep(struct checkpoint_coordinator **coordinator);

/* Sends this node's part of the checkpoint. Returns 1 if the part is in the root, or if it
 * conflicts with another node's, which is reported; -1 with an error. */
int checkpoint_coordinator_send(struct checkpoint_coordinator *coordinator, const struct ckpt *ckpt,
				ckpt_copy_fn fn, void *arg, struct err **err);
/* Called when bytes have moved: tells the other nodes now and then that this node lives. */
void checkpoint_coordinator_moved(struct checkpoint_coordinator *coordinator);

/* State of this node's own folder. */
struct coordinator_own {
	uint64_t changes;  /* number of changes so far */
	bool quiet;        /* unchanged for as long as a checkpoint takes to settle */
	bool draining;     /* a drain waits for what was saved */
	const json_t *bad; /* {name: why} of settled checkpoints that are not whole */
};

/* If a look is due: reads the other nodes' states, answers, and on node 0 judges and marks. Errors
 * go to the hooks and are tried again. Returns the number of newly marked checkpoints. */
int checkpoint_coordinator_round(struct checkpoint_coordinator *coordinator,
				 const struct coordinator_own *own);

/* Publishes that the command is over (`cut`: it did not end by itself) and that all parts of this
 * node are sent; `bad` as above. Returns false if that failed; call again later. */
bool checkpoint_coordinator_finish(struct checkpoint_coordinator *coordinator, const json_t *bad,
				   bool cut);
/* True while node 0 has to wait for other nodes; false once the last judgement has been made. */
bool checkpoint_coordinator_waiting(struct checkpoint_coordinator *coordinator);
/* Milliseconds until the next look, after checkpoint_coordinator_finish(). */
int64_t checkpoint_coordinator_pause(const struct checkpoint_coordinator *coordinator);

/* Checkpoint that is not marked. After the last judgement the function below returns the n-th, in
 * no order, and false behind the last one. */
struct coordinator_unmarked {
	const char *name, *why; /* borrowed */
	bool lost;              /* unmarked for another reason than its own format */
	const char *class;      /* failure class; NULL: its error decides */
};
bool checkpoint_coordinator_unmarked(const struct checkpoint_coordinator *coordinator, size_t n,
				     struct coordinator_unmarked *ret);

/* Returns the highest step of any node's part, -1 if there are none. */
int64_t checkpoint_coordinator_newest(const struct checkpoint_coordinator *coordinator);

/* Forgets a checkpoint that `keep` has no room for: removes the notes of its parts, and tells the
 * other nodes. The caller removes its mark and objects. */
void checkpoint_coordinator_removed(struct checkpoint_coordinator *coordinator, const char *name);

#endif
