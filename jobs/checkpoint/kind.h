/*
 * Kinds of checkpoints: what one framework leaves behind when a save is over.
 * A new kind is one row in kind.c and at most one file; nothing else asks which
 * kind it has.
 *
 * A row judges names and listings; that every file is whole by its own format,
 * that indexes and numbered shards have all their files, that nothing temporary
 * is left and that nothing is missing beside its older neighbours is asked of
 * each kind alike (proof.c).
 */
#ifndef STK_CHECKPOINT_KIND_H
#define STK_CHECKPOINT_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/json.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/checkpoint/tree.h"

/* One checkpoint under proof. */
struct look {
	const struct tree *tree;
	const char *name; /* of the entry in its root */
	int64_t step;
	char *why; /* owned: why it is not complete; NULL while it may be */
};

struct ckpt_kind {
	const char *name;
	const char *pointer; /* see ckpt_kind_pointer(), or NULL */
	bool points_by_name; /* the pointer holds the name; else the step */

	/* Whether an entry of a root can be a checkpoint by its name, and its step. */
	bool (*named)(const char *name, bool is_folder, int64_t *ret_step);
	/* For `auto`: whether a folder is of this kind, also while it is partial.
	 * NULL: `auto` itself. */
	bool (*looks)(const struct look *look);
	/* True, or false with look->why. */
	bool (*prove)(struct look *look);
};

/* The kind of what `auto` has found; `kind` itself if it is another. */
const struct ckpt_kind *kind_of(const struct ckpt_kind *kind, const struct look *look);

/* Set look->why; false, to be returned. */
bool look_fail(struct look *look, const char *fmt, ...) STK_PRINTF(2, 3);

/* Names: the step after "step" or "iter", else after "epoch", else the last number
 * that is no fraction. Temporary names,
 * hidden ones and marks have none; nor do files that no checkpoint is named like. */
bool name_any(const char *name, bool is_folder, int64_t *ret_step);
/* Exactly `prefix` and a number. */
bool name_prefixed(const char *name, const char *prefix, int64_t *ret_step);
/* A name that says it is a checkpoint ("step-7", "model_7", "7"): what `auto` goes by where
 * the content does not tell; folders of logs are numbered too. */
bool name_tells(const char *name);
/* A file that only checkpoints have, by its ending. */
bool name_of_state(const char *name);
/* A name that a writer gives to what it has not finished. */
bool name_temporary(const char *name);

/* Whether `path` is `pattern`, in which each % stands for a number of up to nine digits;
 * the numbers go to `ret` (as many as there are %). */
#define PATTERN_NUMBERS 4
bool ckpt_pattern_match(const char *pattern, const char *path, uint32_t ret[PATTERN_NUMBERS]);

/* All files that match: do their numbers fill a grid from 0 on? False with
 * look->why. `ret_sides` are the lengths of its sides, 0 if nothing matches. */
bool look_grid(struct look *look, const char *pattern, uint32_t ret_sides[PATTERN_NUMBERS]);

/* A small file as text, NULL if it is not there or too large. Yours to free. */
char *look_text(const struct look *look, const char *path);
/* A JSON object (NULL: not there; the format of all files is proved elsewhere). */
json_t *look_json(const struct look *look, const char *path);

/* Folders with shards of torch.distributed.checkpoint (kind_dcp.c), wherever in
 * the tree: each has its metadata and what that names. */
bool look_dcp(struct look *look, size_t *ret_folders);
/* DeepSpeed's files beneath `prefix` (kind_deepspeed.c). */
bool look_deepspeed(struct look *look, const char *prefix);

extern const struct ckpt_kind kind_files, kind_hf, kind_nxd, kind_dcp, kind_orbax, kind_megatron,
	kind_deepspeed;

#endif
