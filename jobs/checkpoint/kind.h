/*
 * Kinds of checkpoints: the files that one framework leaves behind when a save is over. A new
 * kind is one row in kind.c and at most one file; no other code asks which kind it has.
 *
 * A row judges names and listings. The checks that are the same for each kind are in
 * candidate.c: every file is whole by its own format, indexes and numbered shards have all
 * their files, nothing temporary is left, and nothing is missing beside its older siblings.
 */
#ifndef STK_CHECKPOINT_KIND_H
#define STK_CHECKPOINT_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/text/js.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/checkpoint/tree.h"

/* Checkpoint being proved. */
struct checkpoint_look {
	const struct checkpoint_tree *tree;
	const char *name; /* name of the entry in its root */
	int64_t step;
	char *why; /* owned; why it is not complete; NULL while it may be */
};

struct ckpt_kind {
	const char *name;
	/* File in a root by which scripts of this kind find the newest checkpoint ("latest",
	 * "latest_checkpointed_iteration.txt"); NULL if they need none. Code that links a
	 * checkpoint into a new root writes the pointer there: checkpoint_point(). */
	const char *pointer;
	bool points_by_name; /* the pointer holds the name; else the step */

	/* True if an entry of a root can be a checkpoint by its name; sets its step. */
	bool (*named)(const char *name, bool is_folder, int64_t *ret_step);
	/* For `auto`: true if a folder is of this kind, also while it is partial. NULL: `auto`
	 * itself. */
	bool (*looks)(const struct checkpoint_look *look);
	/* Returns true, or false with look->why. */
	bool (*prove)(struct checkpoint_look *look);
};

/* Returns the kind that `auto` recognizes; `kind` itself if it is another. */
const struct ckpt_kind *kind_of(const struct ckpt_kind *kind, const struct checkpoint_look *look);

/* Sets look->why and returns false. */
bool checkpoint_look_fail(struct checkpoint_look *look, const char *fmt, ...) STK_PRINTF(2, 3);

/* Finds the step in a name: after "step" or "iter", else after "epoch", else the last number
 * that is not a fraction. Temporary names, hidden names and marks have none; nor do files
 * without the ending of a checkpoint file. */
bool checkpoint_name_any(const char *name, bool is_folder, int64_t *ret_step);
/* True if the name is exactly `prefix` and a number. */
bool checkpoint_name_prefixed(const char *name, const char *prefix, int64_t *ret_step);
/* True if the name says that it is a checkpoint ("step-7", "model_7", "7"). `auto` uses this if
 * the content does not tell, because folders of logs are numbered too. */
bool checkpoint_name_tells(const char *name);
/* True if the ending of the name is one that only checkpoints have. */
bool checkpoint_name_of_state(const char *name);
/* True if a writer gives this name to something unfinished. */
bool checkpoint_name_temporary(const char *name);

/* True if `path` is `pattern`, in which each % stands for a number of up to nine digits; the
 * numbers go to `ret` (as many as there are %). */
#define PATTERN_NUMBERS 4
bool checkpoint_pattern_match(const char *pattern, const char *path, uint32_t ret[PATTERN_NUMBERS]);

/* True if the numbers of all files that match fill a grid from 0 on. If false, look->why is set.
 * `ret_sides` are the lengths of its sides, 0 if nothing matches. */
bool checkpoint_look_grid(struct checkpoint_look *look, const char *pattern,
			  uint32_t ret_sides[PATTERN_NUMBERS]);

/* Returns a small file as text, or NULL if it is absent or too large. The caller frees it. */
char *checkpoint_look_text(const struct checkpoint_look *look, const char *path);
/* Returns a JSON object, or NULL if it is absent or not an object (the format of all files is
 * proved elsewhere). */
json_t *checkpoint_look_json(const struct checkpoint_look *look, const char *path);

/* Checks folders with shards of torch.distributed.checkpoint (kind_dcp.c) anywhere in the tree:
 * each must have its metadata and the files that those name. */
bool checkpoint_look_dcp(struct checkpoint_look *look, size_t *ret_folders);
/* Checks DeepSpeed's files beneath `prefix` (kind_deepspeed.c). */
bool checkpoint_look_deepspeed(struct checkpoint_look *look, const char *prefix);

extern const struct ckpt_kind kind_files, kind_hf, kind_nxd, kind_dcp, kind_orbax, kind_megatron,
	kind_deepspeed;

#endif
