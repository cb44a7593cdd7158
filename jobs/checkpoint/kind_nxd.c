/*
 * `nxd`: what neuronx_distributed's save_checkpoint writes (its
 * trainer/checkpoint.py): <tag>/checkpoint first, then {model,optim}/
 * dp_rank_XX_tp_rank_XX_pp_rank_XX.pt, with a folder of tensors each if they are
 * saved one by one, then, behind a barrier, <tag>/done. Removal takes `done` first.
 * A tag counts by the step in its name: the times of `done`, by which the library
 * itself goes, do not survive a copy.
 */
#include <stdio.h>
#include <string.h>

#include "jobs/base/text.h"
#include "jobs/checkpoint/kind.h"

static bool named_nxd(const char *name, bool is_folder, int64_t *ret_step)
{
	return is_folder && name_any(name, true, ret_step);
}

static bool looks_nxd(const struct look *look)
{
	const struct tree_file *first = ckpt_tree_find(look->tree, "checkpoint");

	return (first && first->size == 1) || ckpt_tree_first(look->tree, "model/dp_rank_") ||
	       ckpt_tree_first(look->tree, "optim/dp_rank_");
}

/* Tensors saved one by one are numbered from 0, and belong to a file of ranks. */
static bool prove_tensors(struct look *look)
{
	for (size_t i = 0; i < look->tree->count; i++) {
		const char *path = look->tree->files[i].path;
		const char *folder = strstr(path, ".pt.tensors/");
		AUTO(auto_free) char *other = NULL;
		uint32_t number[PATTERN_NUMBERS];

		if (!folder ||
		    !ckpt_pattern_match("tensor_%.pt", folder + strlen(".pt.tensors/"), number))
			continue;
		other = number[0] == 0 ? mem_format("%.*s.pt", (int)(folder - path), path)
				       : mem_format("%.*s.pt.tensors/tensor_%u.pt",
						    (int)(folder - path), path, number[0] - 1);
		if (!ckpt_tree_find(look->tree, other))
			return look_fail(look, "'%s' is missing", other);
	}
	return true;
}

static bool prove_nxd(struct look *look)
{
	static const char *const ranks = "dp_rank_%_tp_rank_%_pp_rank_%.pt";
	AUTO(auto_free) char *model = mem_format("model/%s", ranks);
	AUTO(auto_free) char *optim = mem_format("optim/%s", ranks);
	uint32_t of_model[PATTERN_NUMBERS], of_optim[PATTERN_NUMBERS];

	if (!ckpt_tree_find(look->tree, "done"))
		return look_fail(look, "'done' is missing, which is written last");
	if (!look_grid(look, model, of_model) || !look_grid(look, optim, of_optim))
		return false;
	if (!ckpt_tree_first(look->tree, "model/"))
		return look_fail(look, "'model/' is missing");
	if (of_model[0] && of_optim[0] &&
	    (of_model[1] != of_optim[1] || of_model[2] != of_optim[2]))
		return look_fail(look, "ranks are missing: 'model/' and 'optim/' do not match");
	return prove_tensors(look);
}

const struct ckpt_kind kind_nxd = {
	.name = "nxd", .named = named_nxd, .looks = looks_nxd, .prove = prove_nxd
};
