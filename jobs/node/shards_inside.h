/* What the files of shards.h share. */
#ifndef STK_NODE_SHARDS_INSIDE_H
#define STK_NODE_SHARDS_INSIDE_H

#include "jobs/node/shards.h"

#define PARTS_TOLD   64
#define SETTLED      3  /* heartbeats without a change */
#define SILENT_BEATS 30 /* after which nobody is waited for */
#define STATE_MAX    ((size_t)1 << 20)

/* What another node has told last. */
struct peer {
	json_t *state; /* owned; NULL: nothing yet */
	char tag[STORE_TAG];
	struct mono at; /* when that was new */
};

/* What became of a checkpoint, on node 0. */
struct verdict {
	char *name;       /* owned */
	int64_t *seen;    /* owned: the generation of each node's part */
	uint64_t changes; /* in our own folder, then */
	char *why;        /* owned: why it is not marked; NULL: it is */
	bool decided, marked, conflict, unheard, failed;
};

struct shards {
	const struct task *task;
	const struct ckpt_root *root;
	const struct ckpt_kind *kind;
	const char *source;
	struct shards_hooks hooks;
	struct ckpt_life life;
	json_t *parts, *none, *asked, *removed; /* owned objects, as in the state */
	json_t *bad;                            /* owned: a reference */
	json_t *asked_at;                       /* owned: mono ms by name */
	json_t *tags;                           /* owned: what was sent, by name */
	uint64_t moved, changes, beats;
	bool last, cut, unanswered;
	bool away;  /* a service did not answer: later it may */
	char *told; /* owned: the state that is there */
	struct peer *peers;
	struct verdict *verdicts;
	size_t verdict_count;
	struct mono next, last_at, moved_at;
	struct mono looked, awake; /* once `last`: the last round, and since when they follow */
	int64_t pause_ms;          /* once `last` */
};

/* Does a node have a part of it, and which generation; 0: none. */
int64_t shards_generation(const json_t *parts, const char *name);
/* Everything that node 0 alone does in a round: the count of those newly marked. */
int shards_judge(struct shards *shards);
/* Release it; NULL is fine. */
void shards_trouble(struct shards *shards, struct err **why);

#endif
