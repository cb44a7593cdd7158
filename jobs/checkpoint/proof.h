/*
 * Candidates in a root, and the proof that is the same for all kinds.
 */
#ifndef STK_CHECKPOINT_PROOF_H
#define STK_CHECKPOINT_PROOF_H

#include <stdbool.h>

#include "jobs/checkpoint/kind.h"

/* ---- the entries of a root ---- */

struct root_entry {
	char *name; /* owned */
	int64_t step;
	bool folder;
	bool candidate; /* else something temporary, or of another purpose */
};

struct root_list {
	struct root_entry *items; /* candidates and others; lowest step first */
	size_t count;
};

void root_list_release(struct root_list *list); /* for AUTO() */

/* Files and folders in `root`; no links, no marks, no temporary files of this
 * project. A root that is not there has none. */
int root_read(const char *root, const struct ckpt_kind *kind, struct root_list *ret,
	      struct err **err);
/* Names of this project's own files in `root` that begin with `prefix` and end with
 * `suffix`: a NULL-terminated array, sorted (AUTO(auto_strv)). */
int root_own(const char *root, const char *prefix, const char *suffix, char ***ret,
	     struct err **err);

/* ---- one candidate ---- */

/* List it and recognize its kind; not proved yet. 1, 0 it is gone or nothing that
 * `auto` would take for a checkpoint, -1. */
int candidate_read(const char *root, const char *name, const struct ckpt_kind *kind,
		   struct tree *ret_tree, struct ckpt *ret, struct err **err);

/* By itself: nothing temporary, the rules of its kind, each file by its format,
 * indexes and numbered shards. False with ckpt->why. `opaque` (may be NULL) gets a byte for each
 * file: 1 if its format says nothing of its length. */
bool candidate_sound(const struct tree *tree, struct ckpt *ckpt, unsigned char *opaque);

/* The same of what one of several nodes has of it: the rules of its kind are for the whole. */
bool candidate_part_sound(const struct tree *tree, struct ckpt *ckpt, unsigned char *opaque);

/* All of it: sound, named by the pointer, and like its older neighbours, which are
 * sound themselves and related (up to NEIGHBOURS, the nearest first). Sets complete and why;
 * returns whether it is sound. */
#define NEIGHBOURS 2
bool candidate_prove(const char *root, const struct tree *tree, struct ckpt *ckpt,
		     const struct tree *const older[NEIGHBOURS], size_t older_count);

/* What the pointer of this kind in `root` says, NULL if there is none. Yours to free. */
char *pointer_text(const char *root, const struct ckpt_kind *kind);

/* Whether two names in a root are of one family: the same but for their numbers.
 * A script may save best-7 beside step-7; only the latter say what a step-8 needs. */
bool neighbours_related(const char *name, const char *other);

/* Like its older neighbours: see neighbours.c. */
bool neighbours_agree(struct look *look, const unsigned char *opaque,
		      const struct tree *const older[NEIGHBOURS], size_t older_count);

#endif
