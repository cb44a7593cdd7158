/*
 * `hf`: checkpoint-<step> of Hugging Face's Trainer (transformers/trainer.py,
 * _save_checkpoint): the model, then optimizer, scheduler and the random number state of each
 * rank, then trainer_state.json by rank 0. The save is not atomic; the folder with the highest
 * number may well be unfinished.
 */
#include <math.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/checkpoint/kind.h"

static bool named_hf(const char *name, bool is_folder, int64_t *ret_step)
{
	return is_folder && checkpoint_name_prefixed(name, "checkpoint-", ret_step);
}

/* Accelerate and other libraries use the same folder names for contents of their own. */
static bool looks_hf(const struct checkpoint_look *look)
{
	static const char *const own[] = { "trainer_state.json", "training_args.bin",
					   "optimizer.pt", "scheduler.pt", "rng_state" };
	/* The Trainer's first files; weights alone belong to another writer. */
	static const char *const early[] = { "config.json", "adapter_" };
	int64_t step;

	if (!checkpoint_name_prefixed(look->name, "checkpoint-", &step))
		return false;
	for (size_t i = 0; i < STK_LENGTH(own); i++)
		if (checkpoint_tree_first(look->tree, own[i]))
			return true;
	if (checkpoint_tree_find(look->tree, "optimizer.bin") ||
	    checkpoint_tree_first(look->tree, "random_states_"))
		return false;
	for (size_t i = 0; i < STK_LENGTH(early); i++)
		if (checkpoint_tree_first(look->tree, early[i]))
			return true;
	return false;
}

static bool has_weights(const struct checkpoint_look *look)
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

/* Checks DeepSpeed beneath the Trainer: its folder, and `latest` beside it. */
static bool prove_engine(struct checkpoint_look *look)
{
	AUTO(auto_free) char *latest = checkpoint_look_text(look, "latest");
	AUTO(auto_free) char *prefix = NULL;

	if (!latest) {
		if (checkpoint_tree_first(look->tree, "global_step"))
			return checkpoint_look_fail(look,
						    "'latest' is missing, which is written last");
		return true;
	}
	latest[strcspn(latest, " \r\n\t")] = '\0';
	prefix = mem_format("%s/", latest);
	if (!checkpoint_tree_first(look->tree, prefix))
		return checkpoint_look_fail(look, "'%s' is missing, which 'latest' names", latest);
	return checkpoint_look_deepspeed(look, prefix);
}

static bool prove_hf(struct checkpoint_look *look)
{
	json_auto_t *state = NULL;
	const json_t *step;
	uint32_t ranks[PATTERN_NUMBERS];
	size_t folders;

	if (!checkpoint_tree_find(look->tree, "trainer_state.json"))
		return checkpoint_look_fail(
			look, "'trainer_state.json' is missing, which is written last");
	state = checkpoint_look_json(look, "trainer_state.json");
	step = json_object_get(state, "global_step");
	if (!json_is_number(step))
		return checkpoint_look_fail(look, "'trainer_state.json' holds no global_step");
	if (fabs(json_number_value(step) - (double)look->step) >= 1)
		return checkpoint_look_fail(look, "'trainer_state.json' is of step %.0f",
					    json_number_value(step));
	if (!has_weights(look))
		return checkpoint_look_fail(look, "no file of weights is there");
	return checkpoint_look_grid(look, "rng_state_%.pth", ranks) && prove_engine(look) &&
	       checkpoint_look_dcp(look, &folders);
}

const struct ckpt_kind kind_hf = {
	.name = "hf", .named = named_hf, .looks = looks_hf, .prove = prove_hf
};
