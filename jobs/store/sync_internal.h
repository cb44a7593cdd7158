/*
 * A sync from within, shared between its files:
 *
 *   sync.c        the main loop, and the end
 *   sync_join.c   the two listings, and the decision about each key
 *   sync_move.c   objects being transferred, and files made durable in groups
 *   sync_stage.c  objects that wait for others of their folder, or for all; the end of a slot
 *   sync_slot.c   slots: lists of them, and their queue; calls none of the others
 *
 * Each key that both sides have, or that is moved, becomes a slot. Slots stay in a queue in
 * key order until they and all before them are finished; from the head of the queue they go to
 * the manifest. The queue is bounded: only so many slots may pass a slow one, then the
 * listings wait. Slots held back for a later stage are not in the queue; the next run
 * remembers them.
 */
#ifndef STK_STORE_SYNC_INTERNAL_H
#define STK_STORE_SYNC_INTERNAL_H

#include "jobs/store/manifest.h"
#include "jobs/store/staged_write.h"
#include "jobs/store/sync.h"
#include "jobs/store/transfer_backend.h"

/* State of an object while it is transferred. */
struct moving {
	struct transfer transfer;
	struct staged_write_file file; /* used on the way down */
	struct stat st;                /* up: of the file, before it was read */
	bool settled;                  /* up: was settled when opened; down: always true */
	bool retried;
};

struct sync_slot {
	struct sync_slot *previous_of_all, *next_of_all;
	struct sync_slot *next;   /* in key order */
	struct sync_slot *beside; /* next in a list: ready, held or landed */
	struct group *group;      /* NULL if there are no stages */
	struct moving *moving;
	bool finished, remember;
	bool known;   /* down: the directory has a file of this key */
	bool ordered; /* is in the queue */
	bool fresh;   /* down: the tag may not tell this content from the next one written */
	uint64_t size;
	struct fs_stamp file; /* valid with `remember` */
	char tag[STORE_TAG];
	char key[];
};

/* A folder in which something moves. It lives while the listings are in it and until everything
 * found there is finished. The root is a group too. */
struct group {
	struct group *parent;
	struct group *previous, *next; /* links in the list of all groups */
	int64_t pending;               /* objects being transferred, and groups below */
	bool closed, released;
	bool failed;  /* an object did not arrive */
	bool lacking; /* an object cannot arrive, or was removed */
	struct sync_slot *held;
	size_t len;
	char prefix[]; /* with its slash; "" for the root */
};

/* A list of slots linked by `beside`. */
struct slots {
	struct sync_slot *first, *last;
	size_t count;
};

struct sync {
	const struct sync_options *options;
	struct sync_sum *sum;
	struct store_dir *local;
	bool down; /* true if the copy goes from the transfer backend to the directory */
	struct transfer_backend *backend;
	struct staged_write *staged; /* NULL on the way up and in a dry run */
	int root, own_root;          /* descriptors of the directory; -1 if it is absent */
	struct manifest *manifest;
	struct utc begun;
	struct err *err; /* first error of a transfer; it ends the sync */

	/* Members of sync_join.c. */
	struct dir_walk *walk;
	struct dir_row local_row;
	struct transfer_backend_row remote_row;
	bool local_at, remote_at;       /* a row has been read and not used yet */
	bool local_ended, remote_ended; /* no more rows follow */
	bool joined;
	/* The last valid key of the remote side, and the lengths of its prefixes that are keys. */
	struct sb above;
	uint16_t above_ends[1025];
	size_t above_count;

	/* Members of sync_slot.c and sync_move.c. */
	struct sync_slot *all;
	struct sync_slot *first, *last; /* in key order */
	size_t ordered;
	struct slots ready, landed; /* waiting to start; whole, but not durable */
	size_t under_way;
	uint64_t landed_bytes;
	struct mono landed_since;
	int64_t landed_wait_ms; /* extra wait for more files, beyond LANDED_MS */

	/* Members of sync_stage.c: the innermost group that the listings are in (NULL before the
	 * first key), and the list of all groups. */
	struct group *group, *groups;
};

/* --- sync_join.c --- */

int sync_join_open(struct sync *sync, struct err **err);
/* Handles the next key. Returns 1 if done, 0 if a listing must arrive first, -1 with an error.
 * At the end it sets sync->joined. */
int sync_join_step(struct sync *sync, struct err **err);
void sync_join_close(struct sync *sync);

/* --- sync_move.c --- */

bool sync_move_has_room(const struct sync *sync); /* for the slot that the next key may need */
/* Reports an object found unchanged; `remember` may be NULL. */
void sync_move_same(struct sync *sync, const char *key, uint64_t size,
		    const struct manifest_row *remember);
void sync_move_refuse(struct sync *sync, const char *key, uint64_t size, const char *why);
/* Adds an object that must move. `remote`: the row to download; NULL: upload. `known`: both sides
 * have the key. */
void sync_move_add(struct sync *sync, const char *key, uint64_t size,
		   const struct transfer_backend_row *remote, bool known, enum sync_stage stage);
/* Starts transfers that are ready, and makes files durable that are due; with `all`, every file
 * that has arrived. Returns 0, or -1 with an error. */
int sync_move_go_on(struct sync *sync, bool all, struct err **err);
bool sync_move_is_idle(const struct sync *sync);

/* --- sync_stage.c --- */

/* Tells that the listings have reached this key: folders that lie behind it are closed. NULL:
 * the end. */
void sync_stage_pass(struct sync *sync, const char *key);
/* Returns the group of a key's folder, opening groups as needed; NULL if there are no stages. */
struct group *sync_stage_group(struct sync *sync, const char *key);
void sync_stage_hold(struct sync_slot *slot, enum sync_stage stage);
/* Ends a slot; its group may end then, and start or end the slots that waited for it. */
void sync_stage_finish(struct sync *sync, struct sync_slot *slot, enum sync_fate fate,
		       const char *why);
void sync_stage_close(struct sync *sync);

/* --- sync_slot.c --- */

void sync_slots_add(struct slots *slots, struct sync_slot *slot);
struct sync_slot *sync_slots_take(struct slots *slots); /* NULL: there is none */
struct sync_slot *sync_slot_new(struct sync *sync, const char *key, uint64_t size);
void sync_slot_order(struct sync *sync, struct sync_slot *slot); /* puts it at the queue's end */
void sync_slot_start(struct sync *sync, struct sync_slot *slot); /* starts once there is room */
/* Counts the fate of an object, and reports it to the caller of the sync. */
void sync_slot_report(struct sync *sync, enum sync_fate fate, const char *key, uint64_t size,
		      const char *why);
/* Ends a slot by itself: sync_stage_finish() tells its group too. */
void sync_slot_finish(struct sync *sync, struct sync_slot *slot, enum sync_fate fate,
		      const char *why);
void sync_slot_close(struct sync *sync); /* drops running transfers */

#endif
