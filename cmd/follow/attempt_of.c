/* Finding an attempt: see attempt_of.h. */
#include "cmd/follow/attempt_of.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/run/plan/aws_account.h"

void attempt_of_enter(struct attempt_of *of, const char *run, const struct event *ev)
{
	of->phase = ev->phase;
	of->attempt = ev->attempt;
	of->ended = false;
	snprintf(of->job, sizeof of->job, "%s", ev->job);
	free(of->prefix);
	of->prefix = mem_format("runs/%s/%s-%lld/", run, flow_phase_names[ev->phase],
				(long long)ev->attempt);
}

struct search {
	const struct args *args;
	const char *run;
	int64_t number; /* -1: the newest */
	struct attempt_of *ret;
};

static int look_at_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct search *search = arg;
	struct attempt_of *ret = search->ret;
	const char *phase = search->args->value[OPT_PHASE];

	(void)row;
	(void)err;
	if (!ev)
		return 0;
	if (ev->kind == EV_RUN_CREATED) {
		ret->plan = json_incref(ev->plan);
		ret->nodes = js_int(ev->plan, "nodes", 1);
	}
	if (ev->kind == EV_ATTEMPT_ENDED && ev->phase == ret->phase && ev->attempt == ret->attempt)
		ret->ended = true;
	if (ev->kind == EV_ATTEMPT_INTENDED &&
	    (!phase || strcmp(phase, flow_phase_names[ev->phase]) == 0) &&
	    (search->number < 0 || ev->attempt == search->number))
		attempt_of_enter(ret, search->run, ev);
	return 0;
}

int attempt_of_absent(const struct args *args, const char *run, struct err **err)
{
	const char *phase = args->value[OPT_PHASE], *number = args->value[OPT_ATTEMPT];

	if (number)
		err_set(err, EXIT_USAGE, "run %s has no attempt %s%s%s", run, number,
			phase ? " of " : "", phase ? phase : "");
	else
		err_set(err, EXIT_USAGE, "run %s has no attempt%s%s yet", run, phase ? " of " : "",
			phase ? phase : "");
	return err_hint(err, "'stoker status %s' shows its attempts", run);
}

int attempt_of_find(const struct args *args, struct journal *journal, const char *run,
		    struct attempt_of *ret, struct err **err)
{
	struct search search = { .args = args, .run = run, .ret = ret };

	if (args_number(args, OPT_ATTEMPT, -1, &search.number, err) < 0 ||
	    journal_read(journal, run, 1, look_at_event, &search, err) < 0)
		return -1;
	return ret->attempt > 0 ? 0 : attempt_of_absent(args, run, err);
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
