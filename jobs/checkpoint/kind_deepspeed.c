/*
 * `deepspeed`: global_step<N> (or a custom tag) with mp_rank_XX_model_states.pt and, with
 * ZeRO, one file of optimizer state per rank. When all ranks are done, the file `latest`
 * beside it names the tag (deepspeed/runtime/engine.py, save_checkpoint).
 */
#include <fnmatch.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/checkpoint/kind.h"

static bool named_deepspeed(const char *name, bool is_folder, int64_t *ret_step)
{
	return is_folder && checkpoint_name_any(name, true, ret_step);
}

static bool looks_deepspeed(const struct checkpoint_check *check)
{
	for (size_t i = 0; i < check->tree->count; i++) {
		const char *path = check->tree->files[i].path;

		if (strchr(path, '/'))
			continue;
		if (fnmatch("*_model_states.pt", path, 0) == 0 ||
		    fnmatch("*_optim_states.pt", path, 0) == 0)
			return true;
	}
	return false;
}

bool checkpoint_check_deepspeed(struct checkpoint_check *check, const char *prefix)
{
	static const struct {
		const char *pattern;
		bool model;
	} table[] = {
		{ "mp_rank_%_model_states.pt", true },
		{ "zero_pp_rank_%_mp_rank_%_model_states.pt", true },
		{ "zero_pp_rank_%_mp_rank_%_optim_states.pt", false },
		{ "bf16_zero_pp_rank_%_mp_rank_%_optim_states.pt", false },
	};
	uint32_t models = 0;

	for (size_t i = 0; i < STK_LENGTH(table); i++) {
		AUTO(auto_free) char *pattern = mem_format("%s%s", prefix, table[i].pattern);
		uint32_t sides[PATTERN_NUMBERS];

		if (!checkpoint_check_grid(check, pattern, sides))
			return false;
		models += table[i].model && sides[0] > 0;
	}
	return models > 0 ||
	       checkpoint_check_fail(check, "'%smp_rank_00_model_states.pt' is missing", prefix);
}

static bool prove_deepspeed(struct checkpoint_check *check)
{
	return checkpoint_check_deepspeed(check, "");
}

/* With ZeRO each data-parallel rank has files of its own; else the model-parallel ranks alone. */
static int64_t ranks_deepspeed(struct checkpoint_check *check, bool *ret_exact)
{
	static const char *const patterns[] = { "mp_rank_%_model_states.pt",
						"zero_pp_rank_%_mp_rank_%_optim_states.pt",
						"bf16_zero_pp_rank_%_mp_rank_%_optim_states.pt" };
	int64_t ranks = 0;

	*ret_exact = false;
	for (size_t i = 0; i < STK_LENGTH(patterns); i++) {
		uint32_t sides[PATTERN_NUMBERS];
		int64_t all;

		if (!checkpoint_check_grid(check, patterns[i], sides))
			return 0;
		all = i == 0 ? sides[0] : (int64_t)sides[0] * sides[1];
		ranks = all > ranks ? all : ranks;
		*ret_exact |= i > 0 && sides[0] > 0;
	}
	return ranks;
}

const struct ckpt_kind kind_deepspeed = { .name = "deepspeed",
					  .pointer = "latest",
					  .points_by_name = true,
					  .named = named_deepspeed,
					  .looks = looks_deepspeed,
					  .prove = prove_deepspeed,
					  .ranks = ranks_deepspeed };
