/* Finding an attempt: see attempt_of.h. */
#include "cmd/follow/attempt_of.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/run/plan/aws_account.h"

int attempt_of_ask(struct attempt_of *of, const struct args *args, const char *run,
		   struct err **err)
{
	of->run = run;
	of->wanted_phase = args->value[OPT_PHASE];
	return args_number(args, OPT_ATTEMPT, -1, &of->wanted, err);
}

bool attempt_of_is_wanted(const struct attempt_of *of, const struct event *ev)
{
	return ev->kind == EV_ATTEMPT_INTENDED &&
	       (!of->wanted_phase || strcmp(of->wanted_phase, flow_phase_names[ev->phase]) == 0) &&
	       (of->wanted < 0 || ev->attempt == of->wanted);
}

void attempt_of_add(struct attempt_of *of, const struct event *ev)
{
	if (ev->kind == EV_RUN_CREATED) {
		of->plan = json_incref(ev->plan);
		of->nodes = js_int(ev->plan, "nodes", 1);
	}
	if (!attempt_of_is_wanted(of, ev))
		return;
	of->phase = ev->phase;
	of->attempt = ev->attempt;
	snprintf(of->job, sizeof of->job, "%s", ev->job);
	free(of->prefix);
	of->prefix = mem_format("runs/%s/%s-%lld/", of->run, flow_phase_names[ev->phase],
				(long long)ev->attempt);
}

int attempt_of_absent(const struct attempt_of *of, struct err **err)
{
	const char *phase = of->wanted_phase ? of->wanted_phase : "";
	const char *between = of->wanted_phase ? " of " : "";

	if (of->wanted >= 0)
		err_set(err, EXIT_USAGE, "run %s has no attempt %lld%s%s", of->run,
			(long long)of->wanted, between, phase);
	else
		err_set(err, EXIT_USAGE, "run %s has no attempt%s%s yet", of->run, between, phase);
	return err_hint(err, "'stoker status %s' shows its attempts", of->run);
}

static int add_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	(void)row;
	(void)err;
	if (ev)
		attempt_of_add(arg, ev);
	return 0;
}

int attempt_of_find(struct attempt_of *of, struct journal *journal, struct err **err)
{
	if (journal_read(journal, of->run, 1, add_event, of, err) < 0)
		return -1;
	return of->attempt > 0 ? 0 : attempt_of_absent(of, err);
}

int attempt_of_check_node(const struct attempt_of *of, int64_t node, struct err **err)
{
	if (node < of->nodes)
		return 0;
	err_set(err, EXIT_USAGE, "run %s has no node %lld", of->run, (long long)node);
	return err_hint(err, "nodes are counted from 0");
}

int attempt_of_open(struct attempt_of *of, struct err **err)
{
	const struct engine_ops *ops = engine_find(js_str(of->plan, "engine"));
	struct engine_where where = { .workspace = js_str(of->plan, "workspace"),
				      .plan = of->plan };

	if (!ops)
		return err_set(err, EXIT_REFUSED, "engine '%s' is not part of this version",
			       js_str(of->plan, "engine"));
	return aws_account_enter_region(of->plan, err) < 0 ? -1
							   : ops->open(&where, &of->engine, err);
}

void attempt_of_release(struct attempt_of *of)
{
	if (of->engine)
		of->engine->ops->close(of->engine);
	free(of->prefix);
	json_decref(of->plan);
}
