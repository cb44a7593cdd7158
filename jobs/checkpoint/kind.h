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

#include "jobs/checkpoint/checkpoint.h"
#include "jobs/checkpoint/checkpoint_check.h"
#include "jobs/checkpoint/checkpoint_name.h"

struct ckpt_kind {
	const char *name;
	/* File in a root by which scripts of this kind find the newest checkpoint ("latest",
	 * "latest_checkpointed_iteration.txt"); NULL if they need none. Code that links a
	 * checkpoint into a new root writes the pointer there: checkpoint_point(). */
	const char *pointer;
	bool points_by_name; /* the pointer holds the name; else the step */

	/* True if an entry of a root can be a checkpoint by its name; sets its step. */
	bool (*named)(const char *name, bool is_folder, int64_t *ret_step);
	/* Returns, for `auto`, true if a folder is of this kind, also while it is partial. NULL:
	 * `auto` itself. */
	bool (*looks)(const struct checkpoint_check *check);
	/* Returns true, or false with check->why. */
	bool (*prove)(struct checkpoint_check *check);
	/* Returns, for a kind whose files depend on the world size, the number of processes that a
	 * complete one is of, by the names of its files, 0 if they do not tell. `ret_exact` is
	 * false if they tell the ranks in parallel alone, of which the processes are a multiple.
	 * NULL: any number of processes can load it. */
	int64_t (*ranks)(struct checkpoint_check *check, bool *ret_exact);
};

/* Returns the kind that `auto` recognizes; `kind` itself if it is another. */
const struct ckpt_kind *kind_of(const struct ckpt_kind *kind, const struct checkpoint_check *check);

/* Checks folders with shards of torch.distributed.checkpoint (kind_dcp.c) anywhere in the tree:
 * each must have its metadata and the files that those name. */
bool checkpoint_check_dcp(struct checkpoint_check *check, size_t *ret_folders);
/* Checks DeepSpeed's files beneath `prefix` (kind_deepspeed.c). */
bool checkpoint_check_deepspeed(struct checkpoint_check *check, const char *prefix);

extern const struct ckpt_kind kind_files, kind_hf, kind_nxd, kind_dcp, kind_orbax, kind_megatron,
	kind_deepspeed;

#endif
