/*
 * A sync from within, shared between its files:
 *
 *   sync.c        the turns, and the end
 *   sync_join.c   the two listings, and what is to be done about each key
 *   sync_move.c   objects under way, and files made durable in groups
 *   sync_stage.c  what must wait for others of its folder, or for all
 *
 * Each key that both sides have, or that is moved, becomes a slot. Slots stand in a queue
 * in key order until they and all before them are done with; from its head they go to the
 * manifest. The queue is bounded: behind a slow one so many others may pass, then the
 * listings wait. What is held back for a later stage stands outside, and is remembered by
 * the next run.
 */
#ifndef STK_STORE_SYNC_INSIDE_H
#define STK_STORE_SYNC_INSIDE_H

#include "jobs/store/landing.h"
#include "jobs/store/manifest.h"
#include "jobs/store/mover.h"
#include "jobs/store/sync.h"

/* Of an object only while it moves. */
struct moving {
	struct transfer transfer;
	struct landing_file file; /* down */
	struct stat st;           /* up: the file, before it was read */
	bool settled;             /* up: when it was opened; down: always */
	bool retried;
};

struct slot {
	struct slot *previous_of_all, *next_of_all;
	struct slot *next;   /* in key order */
	struct slot *beside; /* of those waiting to start, held, or to be made durable */
	struct group *group; /* NULL: there are no stages */
	struct moving *moving;
	bool finished, remember;
	bool known;   /* down: the directory has a file of this key */
	bool ordered; /* stands in the queue */
	bool fresh;   /* down: the tag may not tell it from what is written next */
	uint64_t size;
	struct manifest_file file; /* with `remember` */
	char tag[STORE_TAG];
	char key[];
};

/* A folder in which something moves, as long as the listings are in it and until all that
 * was found there is done with. The root is one too. */
struct group {
	struct group *parent;
	struct group *previous, *next; /* of all there are */
	int64_t pending;               /* objects under way, and groups below */
	bool closed, released;
	bool failed;  /* an object did not arrive */
	bool lacking; /* one cannot, or was taken away */
	struct slot *held;
	size_t len;
	char prefix[]; /* with its slash; "": the root */
};

/* By `beside`. */
struct slots {
	struct slot *first, *last;
	size_t count;
};

struct sync {
	const struct sync_options *options;
	struct sync_sum *sum;
	struct store_dir *near;
	bool down; /* from the mover to the directory */
	struct mover *mover;
	struct landing *landing; /* down, and not dry */
	int root, own_root;      /* of the directory, open; -1: it is not there */
	struct manifest *manifest;
	struct utc begun;
	struct err *err; /* the first one of a transfer: it ends all */

	/* sync_join.c */
	struct dir_walk *walk;
	struct dir_row near_row;
	struct mover_row far_row;
	bool near_at, far_at;       /* a row is at hand */
	bool near_ended, far_ended; /* and no more come */
	bool joined;
	/* The last good key of the far side, and where in it keys end that are its beginning. */
	struct sb above;
	uint16_t above_ends[1025];
	size_t above_count;

	/* sync_move.c */
	struct slot *all;
	struct slot *first, *last; /* in key order */
	size_t ordered;
	struct slots ready, landed; /* may start; are whole, but not durable */
	size_t under_way;
	uint64_t landed_bytes;
	struct mono landed_since;
	int64_t landed_wait_ms; /* for more of them, beyond what one always waits */

	/* sync_stage.c: the innermost that the listings are in; NULL: none yet */
	struct group *group, *groups;
};

/* --- sync_join.c --- */

int join_open(struct sync *sync, struct err **err);
/* Look at the next key: 1 done, 0 a listing must come first, -1. At the end sync->joined. */
int join_step(struct sync *sync, struct err **err);
void join_close(struct sync *sync);

/* --- sync_move.c --- */

bool move_has_room(const struct sync *sync); /* for what the next key may need */
/* Found unchanged; `remember` may be NULL. */
void move_same(struct sync *sync, const char *key, uint64_t size,
	       const struct manifest_row *remember);
void move_refuse(struct sync *sync, const char *key, uint64_t size, const char *why);
/* Must move. `far`: the row that is to come down; NULL: up. `known`: both sides have it. */
void move_add(struct sync *sync, const char *key, uint64_t size, const struct mover_row *far,
	      bool known, enum sync_stage stage);
void move_start(struct sync *sync, struct slot *slot); /* as soon as there is room */
/* A slot's end. */
void move_finish(struct sync *sync, struct slot *slot, enum sync_fate fate, const char *why);
/* Start what is ready, make durable what is due; `all`: what there is. -1: the near side. */
int move_go_on(struct sync *sync, bool all, struct err **err);
bool move_is_idle(const struct sync *sync);
void move_close(struct sync *sync); /* what is under way is dropped */

/* --- sync_stage.c --- */

/* The listings have come to this key: folders that lie behind are closed. NULL: the end. */
void stage_pass(struct sync *sync, const char *key);
/* The folder of a key, among those open. */
struct group *stage_group(struct sync *sync, const char *key);
void stage_hold(struct slot *slot, enum sync_stage stage);
/* One of the group is done with. */
void stage_done(struct sync *sync, struct group *group, bool failed, bool lacking);
void stage_close(struct sync *sync);

#endif
