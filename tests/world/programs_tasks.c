/* The commands of an evaluation and of an inference: one task each. See programs.h. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/auto.h"
#include "jobs/base/mem.h"
#include "tests/world/kernel_internal.h"
#include "tests/world/play.h"
#include "tests/world/programs.h"
#include "tests/world/truth.h"

#define GOOD 0.9
#define BAD  0.1

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "";
}

static int fail(const struct traits *traits)
{
	if (traits->last_words)
		program_say(2, "%s\n", traits->last_words);
	return traits->exit;
}

static void name_task(struct truth_command *truth)
{
	if (truth->phase == TRUTH_INFER)
		snprintf(truth->task, sizeof truth->task, "shard-%.20s", variable("STOKER_SHARD"));
	else
		snprintf(truth->task, sizeof truth->task, "%.20s-%.20s",
			 variable("STOKER_MODEL_ROLE"), variable("STOKER_REPEAT"));
}

/* The values differ a little from one repeat to the next, as real ones do. */
static int measure(const struct traits *traits, const char *folder)
{
	bool bad = strcmp(variable("STOKER_MODEL_ROLE"), "candidate") == 0 &&
		   setting_is_refused(playing);
	double accuracy = (bad ? BAD : GOOD) + 0.001 * (double)(chance_below(10));
	AUTO(auto_free) char *text = mem_format("{\"accuracy\": %.4f}", accuracy);

	if (traits->leaves_metrics)
		return program_write_file(folder, "metrics.json", text, strlen(text)) ? 0 : 1;
	program_say(1, "accuracy: %.4f\n", accuracy);
	return 0;
}

static int infer(const struct truth_command *truth, const char *folder)
{
	AUTO(auto_free)
	char *text = mem_format("%s of step %lld\n", truth->task, (long long)truth->model_step);

	return program_write_file(folder, "rows.csv", text, strlen(text)) ? 0 : 1;
}

/* A model that is not whole cannot be loaded. */
int programs_task_main(void)
{
	struct truth_command *truth = truth_command_new(truth_phase_of(variable("STOKER_PHASE")));
	const char *folder = variable("STOKER_OUTPUT_DIR"), *model = variable("STOKER_MODEL");
	struct traits traits;
	int status;

	name_task(truth);
	programs_traits(&traits, false, truth->attempt, truth->node);
	if (traits.ignores_stop)
		signal(SIGTERM, SIG_IGN);
	truth->model_step = programs_step_of(model);
	if (truth->model_step < 0) {
		program_say(2, "RuntimeError: the model '%s' is unreadable\n", model);
		return 1;
	}
	program_say(1, "%s\n", truth->task);
	if (traits.fails_at == 0)
		return fail(&traits);
	program_rest(traits.task_ns / 2 + chance_below(traits.task_ns + 1));
	if (traits.fails_at > 0 && traits.fails_at % 3 == 0)
		return fail(&traits);
	while (traits.hangs_at >= 0 && traits.hangs_at % 3 == 0)
		program_rest(3600 * WORLD_S);
	status = truth->phase == TRUTH_INFER ? infer(truth, folder) : measure(&traits, folder);
	truth->ended_ns = now_ns;
	truth_changes++;
	return status;
}
