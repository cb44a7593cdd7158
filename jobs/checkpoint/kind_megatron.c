/*
 * `megatron`: iter_<7 digits> of Megatron-LM (megatron/training/checkpointing.py): either a
 * distributed checkpoint (metadata.json, common.pt and torch's shards), or a folder per rank,
 * mp_rank_TT[_PPP[_EEE]], with model_optim_rng.pt in it. When all is written,
 * latest_checkpointed_iteration.txt beside them names the iteration.
 */
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/checkpoint/kind.h"

static bool named_megatron(const char *name, bool is_folder, int64_t *ret_step)
{
	return is_folder && strlen(name) >= strlen("iter_0000000") &&
	       checkpoint_name_prefixed(name, "iter_", ret_step);
}

static bool looks_megatron(const struct checkpoint_check *check)
{
	int64_t step;

	return named_megatron(check->name, true, &step);
}

/* Pipeline and expert rank are in the names only if there is more than one of them. */
static bool prove_ranks(struct checkpoint_check *check)
{
	static const struct {
		const char *folder;
		unsigned numbers;
	} table[] = { { "mp_rank_%", 1 }, { "mp_rank_%_%", 2 }, { "mp_rank_%_%_%", 3 } };
	static const char *const files[] = { "model_optim_rng.pt", "distrib_optim.pt" };
	bool found = false;

	for (size_t i = 0; i < STK_LENGTH(table) * STK_LENGTH(files); i++) {
		unsigned numbers = table[i / STK_LENGTH(files)].numbers;
		const char *file = files[i % STK_LENGTH(files)];
		AUTO(auto_free)
		char *pattern = mem_format("%s/%s", table[i / STK_LENGTH(files)].folder, file);
		uint32_t sides[PATTERN_NUMBERS];

		if (!checkpoint_check_grid(check, pattern, sides))
			return false;
		for (unsigned k = 1; sides[0] > 0 && k < numbers; k++)
			if (sides[k] < 2)
				return checkpoint_check_fail(
					check, "ranks are missing: '%s' are all of one", pattern);
		found = found || (sides[0] > 0 && file == files[0]);
	}
	return found || checkpoint_check_fail(check, "no rank has written '%s'", files[0]);
}

static bool prove_megatron(struct checkpoint_check *check)
{
	json_auto_t *metadata = NULL;
	size_t folders;

	if (checkpoint_tree_first(check->tree, "mp_rank_"))
		return prove_ranks(check);
	if (!checkpoint_tree_find(check->tree, "metadata.json"))
		return checkpoint_check_fail(check, "'metadata.json' is missing");
	metadata = checkpoint_check_json(check, "metadata.json");
	if (!js_str(metadata, "sharded_backend"))
		return checkpoint_check_fail(check, "'metadata.json' names no format");
	if (!checkpoint_check_dcp(check, &folders))
		return false;
	if (strcmp(js_str(metadata, "sharded_backend"), "torch_dist") == 0 && folders == 0)
		return checkpoint_check_fail(check,
					     "'.metadata' is missing, which is written last");
	return check->tree->count > 1 ||
	       checkpoint_check_fail(check, "nothing but 'metadata.json' is there");
}

/* A folder per rank tells tensor and pipeline parallelism; a distributed checkpoint tells nothing.
 */
static int64_t ranks_megatron(struct checkpoint_check *check, bool *ret_exact)
{
	uint32_t sides[PATTERN_NUMBERS];

	*ret_exact = false;
	if (!checkpoint_check_grid(check, "mp_rank_%_%_%/model_optim_rng.pt", sides))
		return 0;
	if (sides[0] == 0 && !checkpoint_check_grid(check, "mp_rank_%_%/model_optim_rng.pt", sides))
		return 0;
	if (sides[0] > 0)
		return (int64_t)sides[0] * sides[1];
	return checkpoint_check_grid(check, "mp_rank_%/model_optim_rng.pt", sides) ? sides[0] : 0;
}

const struct ckpt_kind kind_megatron = { .name = "megatron",
					 .pointer = "latest_checkpointed_iteration.txt",
					 .named = named_megatron,
					 .looks = looks_megatron,
					 .prove = prove_megatron,
					 .ranks = ranks_megatron };
