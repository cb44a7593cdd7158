/*
 * Candidates in a root, and the checks that are the same for all kinds.
 */
#ifndef STK_CHECKPOINT_CANDIDATE_H
#define STK_CHECKPOINT_CANDIDATE_H

#include <stdbool.h>

#include "jobs/checkpoint/kind.h"

/* ---- the entries of a root ---- */

struct root_entry {
	char *name; /* owned */
	int64_t step;
	bool folder;
	bool candidate; /* false: something temporary, or of another purpose */
};

struct root_list {
	struct root_entry *items; /* owned; candidates and other entries, lowest step first */
	size_t count;
};

void root_list_release(struct root_list *list); /* for AUTO() */

/* Lists the files and folders in `root`, without links, marks and temporary files of this
 * project. An absent root is empty. */
int root_read(const char *root, const struct ckpt_kind *kind, struct root_list *ret,
	      struct err **err);
/* Lists names of this project's own files in `root` that begin with `prefix` and end with
 * `suffix`: a NULL-terminated array, sorted (AUTO(auto_strv)). */
int root_own(const char *root, const char *prefix, const char *suffix, char ***ret,
	     struct err **err);

/* ---- one candidate ---- */

/* Lists a candidate and recognizes its kind, without proving it. Returns 1, 0 if it is gone or
 * `auto` would not take it for a checkpoint, -1 with an error. */
int candidate_read(const char *root, const char *name, const struct ckpt_kind *kind,
		   struct checkpoint_tree *ret_tree, struct ckpt *ret, struct err **err);

/* True if the candidate by itself is sound: nothing is temporary, and the rules of its kind, the
 * format of each file, indexes and numbered shards hold. If false, ckpt->why is set. `opaque`
 * (may be NULL) gets a byte for each file: 1 if its format says nothing of its length. */
bool candidate_sound(const struct checkpoint_tree *tree, struct ckpt *ckpt, unsigned char *opaque);

/* Does the same for the part of a checkpoint that one of several nodes has. The rules of its
 * kind are not checked, as they are for the whole. */
bool candidate_part_sound(const struct checkpoint_tree *tree, struct ckpt *ckpt,
			  unsigned char *opaque);

/* Proves a candidate: it must be sound, named by the pointer, and like its older siblings.
 * `older` are up to SIBLINGS related and sound ones, the nearest first. Sets complete and why;
 * returns true if it is sound. */
#define SIBLINGS 2
bool candidate_prove(const char *root, const struct checkpoint_tree *tree, struct ckpt *ckpt,
		     const struct checkpoint_tree *const older[SIBLINGS], size_t older_count);

/* Does the same for a part: it is complete if it is sound. Its older siblings, parts of the same
 * node, only verify it: a node need not save the same each time. */
void candidate_prove_part(const struct checkpoint_tree *tree, struct ckpt *ckpt,
			  const struct checkpoint_tree *const older[SIBLINGS], size_t older_count);

/* Returns the content of this kind's pointer file in `root`, or NULL if it is absent. The caller
 * frees it. */
char *checkpoint_pointer_text(const char *root, const struct ckpt_kind *kind);

/* True if two names in a root are of one family: the same but for their numbers. A script may
 * save best-7 beside step-7; only step-7 tells what a step-8 needs. */
bool sibling_check_related(const char *name, const char *other);

/* True if a candidate is like its older siblings: see sibling_check.c. */
bool sibling_check_agree(struct checkpoint_check *check, const unsigned char *opaque,
			 const struct checkpoint_tree *const older[SIBLINGS], size_t older_count);
/* True if a file of unknown format is shorter than the same one of the older sibling, or has no
 * counterpart there. */
bool sibling_check_shorter(const struct checkpoint_tree *tree, const unsigned char *opaque,
			   const struct checkpoint_tree *older);

#endif
