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
static bool looks_hf(const struct checkpoint_check *check)
{
	static const char *const own[] = { "trainer_state.json", "training_args.bin",
					   "optimizer.pt", "scheduler.pt", "rng_state" };
	/* The Trainer's first files; weights alone belong to another writer. */
	static const char *const early[] = { "config.json", "adapter_" };
	int64_t step;

	if (!checkpoint_name_prefixed(check->name, "checkpoint-", &step))
		return false;
	for (size_t i = 0; i < STK_LENGTH(own); i++)
		if (checkpoint_tree_first(check->tree, own[i]))
			return true;
	if (checkpoint_tree_find(check->tree, "optimizer.bin") ||
	    checkpoint_tree_first(check->tree, "random_states_"))
		return false;
	for (size_t i = 0; i < STK_LENGTH(early); i++)
		if (checkpoint_tree_first(check->tree, early[i]))
			return true;
	return false;
}

static bool has_weights(const struct checkpoint_check *check)
{
	for (size_t i = 0; i < check->tree->count; i++) {
		const char *path = check->tree->files[i].path;
		const char *ending = strrchr(path, '.');

		if (ending && (strcmp(ending, ".safetensors") == 0 ||
			       strcmp(ending, ".distcp") == 0 || strcmp(ending, ".h5") == 0 ||
			       strstr(path, "_model") || strstr(path, "model/")))
			return true;
	}
	return false;
}

/* Checks DeepSpeed beneath the Trainer: its folder, and `latest` beside it. */
static bool prove_engine(struct checkpoint_check *check)
{
	AUTO(auto_free) char *latest = checkpoint_check_text(check, "latest");
	AUTO(auto_free) char *prefix = NULL;

	if (!latest) {
		if (checkpoint_tree_first(check->tree, "global_step"))
			return checkpoint_check_fail(check,
						     "'latest' is missing, which is written last");
		return true;
	}
	latest[strcspn(latest, " \r\n\t")] = '\0';
	prefix = mem_format("%s/", latest);
	if (!checkpoint_tree_first(check->tree, prefix))
		return checkpoint_check_fail(check, "'%s' is missing, which 'latest' names",
					     latest);
	return checkpoint_check_deepspeed(check, prefix);
}

static bool prove_hf(struct checkpoint_check *check)
{
	json_auto_t *state = NULL;
	const json_t *step;
	uint32_t ranks[PATTERN_NUMBERS];
	size_t folders;

	if (!checkpoint_tree_find(check->tree, "trainer_state.json"))
		return checkpoint_check_fail(
			check, "'trainer_state.json' is missing, which is written last");
	state = checkpoint_check_json(check, "trainer_state.json");
	step = json_object_get(state, "global_step");
	if (!json_is_number(step))
		return checkpoint_check_fail(check, "'trainer_state.json' holds no global_step");
	/* A model that a run is given may have a name without a step. */
	if (check->step >= 0 && fabs(json_number_value(step) - (double)check->step) >= 1)
		return checkpoint_check_fail(check, "'trainer_state.json' is of step %.0f",
					     json_number_value(step));
	if (!has_weights(check))
		return checkpoint_check_fail(check, "no file of weights is there");
	return checkpoint_check_grid(check, "rng_state_%.pth", ranks) && prove_engine(check) &&
	       checkpoint_check_dcp(check, &folders);
}

const struct ckpt_kind kind_hf = {
	.name = "hf", .named = named_hf, .looks = looks_hf, .prove = prove_hf
};
