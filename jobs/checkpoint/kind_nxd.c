/*
 * `nxd`: files of neuronx_distributed's save_checkpoint (its trainer/checkpoint.py):
 * <tag>/checkpoint first, then {model,optim}/dp_rank_XX_tp_rank_XX_pp_rank_XX.pt, each with a
 * folder of tensors if those are saved one by one, then, after a barrier, <tag>/done. Removal
 * deletes `done` first. A tag is ordered by the step in its name. The library itself goes by
 * the times of `done`, which do not survive a copy.
 */
#include <stdio.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/checkpoint/kind.h"

static bool named_nxd(const char *name, bool is_folder, int64_t *ret_step)
{
	return is_folder && checkpoint_name_any(name, true, ret_step);
}

static bool looks_nxd(const struct checkpoint_check *check)
{
	const struct checkpoint_tree_file *first = checkpoint_tree_find(check->tree, "checkpoint");

	return (first && first->size == 1) ||
	       checkpoint_tree_first(check->tree, "model/dp_rank_") ||
	       checkpoint_tree_first(check->tree, "optim/dp_rank_");
}

/* Checks tensors saved one by one: they are numbered from 0, and belong to a file of ranks. */
static bool prove_tensors(struct checkpoint_check *check)
{
	for (size_t i = 0; i < check->tree->count; i++) {
		const char *path = check->tree->files[i].path;
		const char *folder = strstr(path, ".pt.tensors/");
		AUTO(auto_free) char *other = NULL;
		uint32_t number[PATTERN_NUMBERS];

		if (!folder || !checkpoint_pattern_match("tensor_%.pt",
							 folder + strlen(".pt.tensors/"), number))
			continue;
		other = number[0] == 0 ? mem_format("%.*s.pt", (int)(folder - path), path)
				       : mem_format("%.*s.pt.tensors/tensor_%u.pt",
						    (int)(folder - path), path, number[0] - 1);
		if (!checkpoint_tree_find(check->tree, other))
			return checkpoint_check_fail(check, "'%s' is missing", other);
	}
	return true;
}

static bool prove_nxd(struct checkpoint_check *check)
{
	static const char *const ranks = "dp_rank_%_tp_rank_%_pp_rank_%.pt";
	AUTO(auto_free) char *model = mem_format("model/%s", ranks);
	AUTO(auto_free) char *optim = mem_format("optim/%s", ranks);
	uint32_t of_model[PATTERN_NUMBERS], of_optim[PATTERN_NUMBERS];

	if (!checkpoint_tree_find(check->tree, "done"))
		return checkpoint_check_fail(check, "'done' is missing, which is written last");
	if (!checkpoint_check_grid(check, model, of_model) ||
	    !checkpoint_check_grid(check, optim, of_optim))
		return false;
	if (!checkpoint_tree_first(check->tree, "model/"))
		return checkpoint_check_fail(check, "'model/' is missing");
	if (of_model[0] && of_optim[0] &&
	    (of_model[1] != of_optim[1] || of_model[2] != of_optim[2]))
		return checkpoint_check_fail(
			check, "ranks are missing: 'model/' and 'optim/' do not match");
	return prove_tensors(check);
}

/* Without ZeRO-1 only the first of the data-parallel ranks saves (trainer/checkpoint.py), so that
 * names of one such rank tell tensor and pipeline parallelism alone. */
static int64_t ranks_nxd(struct checkpoint_check *check, bool *ret_exact)
{
	static const char *const patterns[] = { "model/dp_rank_%_tp_rank_%_pp_rank_%.pt",
						"optim/dp_rank_%_tp_rank_%_pp_rank_%.pt" };
	int64_t ranks = 0;

	*ret_exact = false;
	for (size_t i = 0; i < STK_LENGTH(patterns); i++) {
		uint32_t sides[PATTERN_NUMBERS];
		int64_t all;

		if (!checkpoint_check_grid(check, patterns[i], sides))
			return 0;
		all = (int64_t)sides[0] * sides[1] * sides[2];
		ranks = all > ranks ? all : ranks;
		*ret_exact |= sides[0] > 1;
	}
	return ranks;
}

const struct ckpt_kind kind_nxd = { .name = "nxd",
				    .named = named_nxd,
				    .looks = looks_nxd,
				    .prove = prove_nxd,
				    .ranks = ranks_nxd };
