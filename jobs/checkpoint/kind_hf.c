/*
 * `hf`: checkpoint-<step> of Hugging Face's Trainer (transformers/trainer.py,
 * _save_checkpoint): the model, then optimizer, scheduler and the state of the
 * random numbers of each rank, then trainer_state.json by rank 0. Not atomic; the
 * folder with the highest number may well be one that was never finished.
 */
#include <math.h>
#include <string.h>

#include "jobs/base/text.h"
#include "jobs/checkpoint/kind.h"

static bool named_hf(const char *name, bool is_folder, int64_t *ret_step)
{
	return is_folder && name_prefixed(name, "checkpoint-", ret_step);
}

/* Accelerate and others use the same folder names for contents of their own. */
static bool looks_hf(const struct look *look)
{
	static const char *const own[] = { "trainer_state.json", "training_args.bin",
					   "optimizer.pt", "scheduler.pt", "rng_state" };
	/* Its first files; weights alone are somebody else's. */
	static const char *const early[] = { "config.json", "adapter_" };
	int64_t step;

	if (!name_prefixed(look->name, "checkpoint-", &step))
		return false;
	for (size_t i = 0; i < STK_LENGTH(own); i++)
		if (ckpt_tree_first(look->tree, own[i]))
			return true;
	if (ckpt_tree_find(look->tree, "optimizer.bin") ||
	    ckpt_tree_first(look->tree, "random_states_"))
		return false;
	for (size_t i = 0; i < STK_LENGTH(early); i++)
		if (ckpt_tree_first(look->tree, early[i]))
			return true;
	return false;
}

static bool has_weights(const struct look *look)
{
	for (size_t i = 0; i < look->tree->count; i++) {
		const char *path = look->tree->files[i].path;
		const char *ending = strrchr(path, '.');

		if (ending && (strcmp(ending, ".safetensors") == 0 ||
			       strcmp(ending, ".distcp") == 0 || strcmp(ending, ".h5") == 0 ||
			       strstr(path, "_model") || strstr(path, "model/")))
			return true;
	}
	return false;
}

/* DeepSpeed beneath the Trainer: its folder, and `latest` beside it. */
static bool prove_engine(struct look *look)
{
	AUTO(auto_free) char *latest = look_text(look, "latest");
	AUTO(auto_free) char *prefix = NULL;

	if (!latest) {
		if (ckpt_tree_first(look->tree, "global_step"))
			return look_fail(look, "'latest' is missing, which is written last");
		return true;
	}
	latest[strcspn(latest, " \r\n\t")] = '\0';
	prefix = mem_format("%s/", latest);
	if (!ckpt_tree_first(look->tree, prefix))
		return look_fail(look, "'%s' is missing, which 'latest' names", latest);
	return look_deepspeed(look, prefix);
}

static bool prove_hf(struct look *look)
{
	json_auto_t *state = NULL;
	const json_t *step;
	uint32_t ranks[PATTERN_NUMBERS];
	size_t folders;

	if (!ckpt_tree_find(look->tree, "trainer_state.json"))
		return look_fail(look, "'trainer_state.json' is missing, which is written last");
	state = look_json(look, "trainer_state.json");
	step = json_object_get(state, "global_step");
	if (!json_is_number(step))
		return look_fail(look, "'trainer_state.json' holds no global_step");
	if (fabs(json_number_value(step) - (double)look->step) >= 1)
		return look_fail(look, "'trainer_state.json' is of step %.0f",
				 json_number_value(step));
	if (!has_weights(look))
		return look_fail(look, "no file of weights is there");
	return look_grid(look, "rng_state_%.pth", ranks) && prove_engine(look) &&
	       look_dcp(look, &folders);
}

const struct ckpt_kind kind_hf = {
	.name = "hf", .named = named_hf, .looks = looks_hf, .prove = prove_hf
};
