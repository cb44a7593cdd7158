/* Shared by the files of checkpoint_coordinator.h. */
#ifndef STK_NODE_CHECKPOINTS_CHECKPOINT_COORDINATOR_INTERNAL_H
#define STK_NODE_CHECKPOINTS_CHECKPOINT_COORDINATOR_INTERNAL_H

#include "jobs/node/checkpoints/checkpoint_coordinator.h"

#define PARTS_TOLD   64
#define SETTLED      3  /* number of heartbeats without a change */
#define SILENT_BEATS 30 /* heartbeats of silence after which a node is no longer waited for */
#define STATE_MAX    ((size_t)1 << 20)

/* Last known state of another node. */
struct coordinator_peer {
	json_t *state; /* owned; NULL: none yet */
	char tag[STORE_TAG];
	struct mono at; /* when `state` last changed */
};

/* Judgement on a checkpoint, on node 0. */
struct joint {
	char *name;       /* owned */
	int64_t *seen;    /* owned: the generation of each node's part */
	uint64_t changes; /* `changes` of our own folder at that time */
	char *why;        /* owned: why it is not marked; NULL: it is */
	bool decided, marked, conflict, unheard, failed;
};

struct checkpoint_coordinator {
	const struct agent_config *config;
	const struct ckpt_root *root;
	const struct ckpt_kind *kind;
	const char *source;
	struct coordinator_hooks hooks;
	struct ckpt_life life;
	json_t *parts, *none, *asked, *removed; /* owned objects, as in the published state */
	json_t *bad;                            /* owned reference */
	json_t *asked_at;                       /* owned: mono ms by name */
	json_t *tags;                           /* owned: tag of what was sent, by name */
	uint64_t moved, changes, beats;
	bool last, cut, unanswered;
	bool away;  /* a service did not answer; it may later */
	char *told; /* owned: the state as last published */
	struct coordinator_peer *peers;
	struct joint *joints;
	size_t joint_count;
	struct mono next, last_at, moved_at;
	struct mono looked,
		awake;    /* once `last`: the last round; the start of rounds without a gap */
	int64_t pause_ms; /* valid once `last` */
};

/* Reports the error to the hooks and frees it; `*why` may be NULL. */
static inline void checkpoint_coordinator_trouble(struct checkpoint_coordinator *coordinator,
						  struct err **why)
{
	if (*why) {
		coordinator->away |= (*why)->code == EXIT_UNREACHABLE;
		coordinator->hooks.trouble(coordinator->hooks.arg, *why);
	}
	err_freep(why);
}

/* Does node 0's part of a round. Returns the number of newly marked checkpoints. */
int checkpoint_coordinator_join(struct checkpoint_coordinator *coordinator);

#endif
