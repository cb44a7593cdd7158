/*
 * `megatron`: iter_<7 digits> of Megatron-LM (megatron/training/checkpointing.py).
 * Either a distributed checkpoint (metadata.json, common.pt and torch's shards), or
 * a folder a rank, mp_rank_TT[_PPP[_EEE]], with model_optim_rng.pt in it. When all is
 * written, latest_checkpointed_iteration.txt beside them names the iteration.
 */
#include <string.h>

#include "jobs/base/text.h"
#include "jobs/checkpoint/kind.h"

static bool named_megatron(const char *name, bool is_folder, int64_t *ret_step)
{
	return is_folder && strlen(name) >= strlen("iter_0000000") &&
	       name_prefixed(name, "iter_", ret_step);
}

static bool looks_megatron(const struct look *look)
{
	int64_t step;

	return named_megatron(look->name, true, &step);
}

static bool prove_ranks(struct look *look)
{
	static const char *const patterns[] = {
		"mp_rank_%/model_optim_rng.pt",     "mp_rank_%_%/model_optim_rng.pt",
		"mp_rank_%_%_%/model_optim_rng.pt", "mp_rank_%/distrib_optim.pt",
		"mp_rank_%_%/distrib_optim.pt",     "mp_rank_%_%_%/distrib_optim.pt"
	};
	uint32_t sides[PATTERN_NUMBERS];
	uint32_t found = 0;

	for (size_t i = 0; i < STK_LENGTH(patterns); i++) {
		if (!look_grid(look, patterns[i], sides))
			return false;
		found |= i < 3 ? sides[0] : 0;
	}
	return found != 0 || look_fail(look, "no rank has written 'model_optim_rng.pt'");
}

static bool prove_megatron(struct look *look)
{
	json_auto_t *metadata = NULL;
	size_t folders;

	if (ckpt_tree_first(look->tree, "mp_rank_"))
		return prove_ranks(look);
	if (!ckpt_tree_find(look->tree, "metadata.json"))
		return look_fail(look, "'metadata.json' is missing");
	metadata = look_json(look, "metadata.json");
	if (!js_str(metadata, "sharded_backend"))
		return look_fail(look, "'metadata.json' names no format");
	if (!look_dcp(look, &folders))
		return false;
	if (strcmp(js_str(metadata, "sharded_backend"), "torch_dist") == 0 && folders == 0)
		return look_fail(look, "'.metadata' is missing, which is written last");
	return look->tree->count > 1 || look_fail(look, "nothing but 'metadata.json' is there");
}

const struct ckpt_kind kind_megatron = { .name = "megatron",
					 .pointer = "latest_checkpointed_iteration.txt",
					 .named = named_megatron,
					 .looks = looks_megatron,
					 .prove = prove_megatron };
