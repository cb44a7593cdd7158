/* The commands of stoker as processes of the world: see operators.h. */
#include "tests/world/operators.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "jobs/base/mem.h"
#include "jobs/node/agent_main.h"
#include "jobs/run/driver.h"
#include "jobs/run/inputs/inputs.h"
#include "jobs/run/journal/journal.h"
#include "jobs/run/plan/plan.h"
#include "jobs/run/request.h"
#include "jobs/spec/spec.h"
#include "jobs/store/order.h"
#include "tests/world/habits.h"
#include "tests/world/kernel.h"

/* ---- the commands ---- */

static void complain(const struct err *why)
{
	AUTO(auto_free) char *text = err_format(why);

	fprintf(stderr, "stoker: %s\n", text);
}

/* Who types Ctrl-C may have the run be stopped; a service manager's SIGTERM never does. */
static enum interrupt on_interrupt(void *arg, int signo)
{
	(void)arg;
	return signo == SIGINT && habits_stop_on_interrupt() ? INTERRUPT_STOP : INTERRUPT_DETACH;
}

int operator_plan(const char *path, const struct journal *journal, struct plan **ret,
		  struct err **err)
{
	AUTO(spec_freep) struct spec *spec = NULL;
	AUTO(problems_release) struct problems problems = { 0 };

	if (spec_load(path, NULL, NULL, &spec, &problems, err) < 0) {
		AUTO(auto_free) char *words = NULL;

		if (*err)
			return -1;
		words = problem_format(&problems.list[0]);
		return err_set(err, EXIT_SPEC, "%s", words);
	}
	return plan_make(spec, journal, ret, err);
}

int operator_drive(const struct driver_options *given, const char *spec, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(plan_freep) struct plan *plan = NULL;
	struct driver_options options = *given;
	enum exit_code code = EXIT_DEFECT;

	if (journal_open(NULL, JOURNAL_WRITE, &journal, err) < 0 ||
	    (spec && operator_plan(spec, journal, &plan, err) < 0))
		return -1;
	options.plan = plan;
	return driver_run(journal, &options, &code, err) < 0 ? -1 : (int)code;
}

static int find_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	(void)ev, (void)row, (void)err;
	*(bool *)arg = true;
	return 1;
}

/* As the command does it: what a new run is given is fixed before it is created. Returns 0 where
 * there is nothing new. */
static int find_inputs(struct journal *journal, const struct plan *plan, const char *run,
		       json_t **ret, struct err **err)
{
	struct inputs_ask ask = { .plan = plan->json, .run = run, .retrain = true };
	AUTO(auto_free) char *words = NULL;
	bool exists = false;

	if (journal_read(journal, run, 1, find_event, &exists, err) < 0)
		return -1;
	ask.at = clock_utc_now();
	return exists ? 1 : inputs_make(journal, &ask, ret, &words, err);
}

static int find_phase(const char *name, enum phase *ret, struct err **err)
{
	for (int phase = 0; phase < PHASE_COUNT; phase++)
		if (strcmp(flow_phase_names[phase], name) == 0) {
			*ret = (enum phase)phase;
			return 0;
		}
	return err_set(err, EXIT_USAGE, "'%s' is no phase", name);
}

/* One turn of a retraining; `until` NULL: it does not pause. */
static int operator_retrain(const char *run, const char *spec, const char *until, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(plan_freep) struct plan *plan = NULL;
	struct driver_options options = { .run = run, .on_interrupt = on_interrupt };
	enum exit_code code = EXIT_DEFECT;
	json_auto_t *inputs = NULL;
	enum phase phase;
	int found;

	if (until && find_phase(until, &phase, err) < 0)
		return -1;
	if (journal_open(NULL, JOURNAL_WRITE, &journal, err) < 0 ||
	    operator_plan(spec, journal, &plan, err) < 0)
		return -1;
	found = find_inputs(journal, plan, run, &inputs, err);
	if (found <= 0)
		return found < 0 ? -1 : EXIT_DONE;
	options.plan = plan;
	options.inputs = inputs;
	options.pause_after = until ? &phase : NULL;
	return driver_run(journal, &options, &code, err) < 0 ? -1 : (int)code;
}

int operator_run(const char *run, const char *spec, struct err **err)
{
	const struct driver_options options = { .run = run, .on_interrupt = on_interrupt };

	return operator_drive(&options, spec, err);
}

int operator_begin(const char *run, const char *spec, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(plan_freep) struct plan *plan = NULL;
	struct driver_options options = { .run = run };

	if (journal_open(NULL, JOURNAL_WRITE, &journal, err) < 0 ||
	    operator_plan(spec, journal, &plan, err) < 0)
		return -1;
	options.plan = plan;
	return driver_begin(journal, &options, err);
}

int operator_resume(const char *run, struct err **err)
{
	return operator_run(run, NULL, err);
}

static int do_stop(const char *run, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	enum request_result result;

	if (journal_open(NULL, JOURNAL_WRITE, &journal, err) < 0 ||
	    request_stop(journal, run, NULL, &result, err) < 0)
		return -1;
	return 0;
}

static int stoker_main(int argc, char **argv)
{
	AUTO(err_freep) struct err *why = NULL;
	int code = EXIT_USAGE;

	if (argc == 4 && strcmp(argv[1], "run") == 0)
		code = operator_run(argv[2], argv[3], &why);
	else if ((argc == 4 || argc == 5) && strcmp(argv[1], "retrain") == 0)
		code = operator_retrain(argv[2], argv[3], argc == 5 ? argv[4] : NULL, &why);
	else if (argc == 3 && strcmp(argv[1], "resume") == 0)
		code = operator_resume(argv[2], &why);
	else if (argc == 3 && strcmp(argv[1], "stop") == 0)
		code = do_stop(argv[2], &why);
	if (code >= 0)
		return code;
	complain(why);
	return (int)why->code;
}

static int node_main(int argc, char **argv)
{
	return argc == 3 ? agent_main(argv[0], argv[1], argv[2]) : AGENT_EXIT_FAILED;
}

void operators_register(void)
{
	program_register("stoker", stoker_main);
	program_register("stoker-node", node_main);
}
