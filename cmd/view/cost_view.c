/* The cost of a plan, before it runs: see cost_view.h. */
#include "cmd/view/cost_view.h"

#include <string.h>

#include "cmd/screen/out.h"
#include "jobs/flow/ledger.h"
#include "jobs/run/plan/plan.h"

/* Cost of an earlier run, if it is comparable with this one. */
struct earlier {
	const json_t *plan; /* the plan to compare with */
	struct ledger ledger;
	bool other; /* not comparable */
	bool succeeded;
	int64_t paid_ms[PHASE_COUNT];
};

static bool equal_text(const json_t *a, const json_t *b, const char *key)
{
	const char *x = js_str(a, key), *y = js_str(b, key);

	return x && y && strcmp(x, y) == 0;
}

static bool is_alike(const json_t *plan, const json_t *other)
{
	/* A debug run is slower than any other. */
	return !json_object_get(plan, "debug") == !json_object_get(other, "debug") &&
	       equal_text(plan, other, "name") && equal_text(plan, other, "engine") &&
	       js_int(plan, "nodes", 1) == js_int(other, "nodes", 1) &&
	       json_equal(json_object_get(plan, "steps"), json_object_get(other, "steps"));
}

static int add_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct earlier *run = arg;
	int64_t before = run->ledger.billed_ms;

	(void)row;
	(void)err;
	if (!ev)
		return 0;
	if (ev->kind == EV_RUN_CREATED)
		run->other = !is_alike(run->plan, ev->plan);
	ledger_add(&run->ledger, ev);
	if (ev->kind == EV_ATTEMPT_ENDED)
		run->paid_ms[run->ledger.payer] += run->ledger.billed_ms - before;
	if (ev->kind == EV_RUN_ENDED)
		run->succeeded = ev->state == OUTCOME_SUCCEEDED;
	return run->other;
}

static void estimate(struct journal *journal, const json_t *plan, bool warm, double per_ms,
		     json_t *cost, struct err **ret_why)
{
	json_auto_t *runs = json_array();
	size_t count;

	if (journal_runs(journal, runs, ret_why) < 0)
		return;
	count = json_array_size(runs);
	for (size_t looked = 0; count > 0 && looked < COST_RUNS_MAX; looked++) {
		AUTO(err_freep) struct err *damaged = NULL;
		const char *id = json_string_value(json_array_get(runs, --count));
		struct earlier run = { .plan = plan };
		int64_t ms;

		if (journal_read(journal, id, 1, add_event, &run, &damaged) < 0 || run.other ||
		    !run.succeeded)
			continue;
		ms = run.paid_ms[PHASE_TRAIN] + (warm ? 0 : run.paid_ms[PHASE_PRECOMPILE]);
		/* The run found the cache warm and shows no cost of phase 1. */
		if (ms == 0 || (!warm && run.paid_ms[PHASE_PRECOMPILE] == 0))
			continue;
		js_put(cost, "estimated", json_real((double)ms * per_ms));
		js_put_str(cost, "as_run", id);
		return;
	}
}

/* Sets the limit that ends the run first. */
static void put_most(const json_t *limits, double per_ms, json_t *cost)
{
	double cap = json_number_value(json_object_get(limits, "cost"));
	double late = (double)js_int(limits, "deadline_ms", 0) * per_ms;
	bool by_time = late > 0 && (cap <= 0 || late < cap);

	if (cap <= 0 && late <= 0)
		return;
	js_put(cost, "at_most", json_real(by_time ? late : cap));
	js_put_str(cost, "limit", by_time ? "limits.deadline" : "limits.cost");
}

json_t *cost_before(struct journal *journal, const json_t *plan, bool warm, struct err **ret_why)
{
	const json_t *limits = json_object_get(plan, "limits");
	double price = json_number_value(json_object_get(limits, "price"));
	double per_hour = price * (double)js_int(plan, "nodes", 1);
	const json_t *machine = json_object_get(plan, "instance");
	json_t *cost = json_object();

	if (price <= 0)
		return cost;
	js_put(cost, "per_hour", json_real(per_hour));
	js_put(cost, "price", json_real(price));
	if (!json_is_number(js_path(plan, "spec.resources.price")))
		js_put(cost, "price_from",
		       json_pack("{s:s*, s:s*, s:s*}", "region", js_str(machine, "region"), "dated",
				 js_str(machine, "dated"), "source", js_str(machine, "source")));
	put_most(limits, per_hour / 3600000, cost);
	estimate(journal, plan, warm || !plan_phase(plan, flow_phase_names[PHASE_PRECOMPILE]),
		 per_hour / 3600000, cost, ret_why);
	return cost;
}

static void print_price(const json_t *plan, const json_t *cost)
{
	const json_t *from = json_object_get(cost, "price_from");
	const char *region = js_str(from, "region"), *dated = js_str(from, "dated");
	const char *source = js_str(from, "source"), *type = js_str(plan, "engine");

	if (json_object_get(plan, "instance"))
		type = js_str(json_object_get(plan, "instance"), "type");
	out_line("cost:    %.2f USD an hour: nodes: %lld, %s at %g USD%s%s%s%s%s%s%s",
		 js_real(cost, "per_hour", 0), (long long)js_int(plan, "nodes", 1), type,
		 js_real(cost, "price", 0), from ? " (" : "", region ? region : "",
		 region && dated ? ", " : "", dated ? dated : "", (region || dated) ? ", " : "",
		 from && source ? source : "", from ? ")" : "");
}

void cmd_print_cost_before(const json_t *plan, const json_t *cost)
{
	const char *of = js_str(js_path(plan, "instance"), "region");
	const char *region = json_string_value(js_path(plan, "spec.aws.region"));

	if (json_object_size(cost) == 0) {
		if (js_path(plan, "instance"))
			out_line("cost:    unknown: the catalogue has no price of %s; "
				 "resources.price sets one",
				 js_str(js_path(plan, "instance"), "type"));
		return;
	}
	print_price(plan, cost);
	if (of && region && strcmp(of, region) != 0 && json_object_get(cost, "price_from"))
		out_line("         the price is that of %s; prices in %s may differ", of, region);
	if (json_object_get(cost, "estimated"))
		out_line("         about %.2f USD, like run %s", js_real(cost, "estimated", 0),
			 js_str(cost, "as_run"));
	if (json_object_get(cost, "at_most"))
		out_line("         at most %.2f USD, by %s", js_real(cost, "at_most", 0),
			 js_str(cost, "limit"));
}
