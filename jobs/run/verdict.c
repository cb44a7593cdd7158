/*
 * The gate of a run: what its journal says was measured, and the series that its entries compare,
 * judged by jobs/run/judge.h; the verdict is journalled. It is on exactly the candidate of the run,
 * against exactly the promoted version that the run was given.
 */
#include "jobs/run/driver_internal.h"
#include "jobs/run/inputs/inputs.h"
#include "jobs/run/judge.h"

static int on_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct judge *judge = arg;

	(void)row;
	(void)err;
	if (ev && ev->kind == EV_EVALUATE_MEASURED && EVENT_HAS(ev, metrics))
		judge_measure(judge, ev->role, ev->repeat, ev->metrics);
	return 0;
}

static int judge_run(struct driver *driver, struct judge *judge, struct err **err)
{
	if (journal_read(driver->journal, driver->run, 1, on_event, judge, err) < 0 ||
	    judge_compare(judge, driver->journal, driver->run, err) < 0)
		return err_wrap(err, "the gate cannot be judged yet");
	return 0;
}

int verdict_record(struct driver *driver, struct err **err)
{
	const struct flow_policy *policy = &driver->flow.policy;
	bool has_gate = json_array_size(json_object_get(driver->plan, "gate")) > 0;
	AUTO(judge_freep) struct judge *judge = NULL;
	struct event ev = { .kind = EV_GATE_JUDGED };
	AUTO(auto_free) char *reason = NULL;
	json_auto_t *gates = NULL;
	bool passed = true;

	if (has_gate) {
		judge_open(driver->plan, policy->has_baseline, &judge);
		if (judge_run(driver, judge, err) < 0)
			return -1;
		judge_verdict(judge, &passed, &gates, &reason);
	}
	EVENT_SET(&ev, passed, passed);
	EVENT_SET_STR(&ev, candidate, driver->flow.candidate);
	EVENT_SET(&ev, generation, policy->generation);
	EVENT_SET_STR(&ev, baseline, js_str(json_object_get(driver->inputs, "baseline"), "url"));
	EVENT_SET_STR(&ev, digest, js_str(json_object_get(driver->inputs, "pointer"), "digest"));
	if (gates)
		EVENT_SET(&ev, gates, gates);
	/* The data is put aside before the verdict is durable: a later turn must not be offered it
	 * again. */
	if (!passed && inputs_set_aside(driver->plan, driver->inputs, driver->run, reason, err) < 0)
		return -1;
	EVENT_SET_STR(&ev, reason, has_gate ? reason : "the spec has no gate");
	return driver_record(driver, &ev, err);
}
