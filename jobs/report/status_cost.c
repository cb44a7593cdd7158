/*
 * What the machines of a run cost, from events: see status_internal.h. The ledger tells how long
 * they were held, whatever they are; evaluation and inference may have others than the training,
 * so the ledger's time is split by the phase whose machines they were.
 */
#include "jobs/report/status_internal.h"

#define HOUR_MS 3600000.0

/* A stage without a number or price of its own has the training's. */
void status_cost_begin(struct status *status, const json_t *plan)
{
	double price = js_real(json_object_get(plan, "limits"), "price", 0);
	int64_t nodes = js_int(plan, "nodes", 1);

	status->price_per_hour = price * (double)nodes;
	for (enum phase phase = 0; phase < PHASE_COUNT; phase++) {
		struct status_machines *machines = &status->machines[phase];
		const json_t *section = flow_phases[phase].has_tasks
						? json_object_get(plan, flow_phase_names[phase])
						: NULL;

		machines->nodes = js_int(section, "nodes", nodes);
		machines->per_hour = js_real(section, "price", price) * (double)machines->nodes;
	}
}

/* Time that an event adds to the bins, or takes out of them, is that of the attempt before it. */
void status_cost_add(struct status *status, const struct event *ev)
{
	const struct ledger *ledger = &status->ledger;
	const struct ledger before = *ledger;
	struct status_machines *machines = &status->machines[before.payer];

	ledger_add(&status->ledger, ev);
	for (int bin = 0; bin < BIN_COUNT; bin++)
		machines->held_ms[bin] += ledger->held_ms[bin] - before.held_ms[bin];
	machines->billed_ms += ledger->billed_ms - before.billed_ms;
	status->machines[before.ended_payer].kept_ms += ledger->kept_ms - before.kept_ms;
}

/* Returns the cost in USD of this many milliseconds on all machines of the phase. */
static double usd(const struct status *status, enum phase phase, int64_t ms)
{
	return status->machines[phase].per_hour * (double)ms / HOUR_MS;
}

/* Time on a phase's machines up to the view: what is open is the newest attempt's. */
static int64_t held_ms(const struct status *status, const struct ledger_view *view,
		       enum phase phase, int bin)
{
	int64_t ms = status->machines[phase].held_ms[bin];

	if (phase == status->ledger.payer)
		ms += view->held_ms[bin] - status->ledger.held_ms[bin];
	return ms;
}

static double usd_of_bin(const struct status *status, const struct ledger_view *view, int bin)
{
	double sum = 0;

	for (enum phase phase = 0; phase < PHASE_COUNT; phase++)
		sum += usd(status, phase, held_ms(status, view, phase, bin));
	return sum;
}

/* Cost of the machines by bin, zeros left out: with `kept` it adds up to `accrued`. */
static json_t *bins_json(const struct status *status, const struct ledger_view *view,
			 double *ret_total)
{
	json_t *bins = json_object();

	*ret_total = 0;
	for (int bin = 0; bin < BIN_COUNT; bin++) {
		double cost = usd_of_bin(status, view, bin);

		if (view->held_ms[bin] > 0)
			js_put(bins, ledger_bin_names[bin], json_real(cost));
		*ret_total += cost;
	}
	return bins;
}

json_t *status_cost_json(const struct status *status, struct utc now,
			 const struct ledger_view *view)
{
	int64_t left_ms = status->ends.ms > now.ms ? status->ends.ms - now.ms : 0;
	double paid = 0, kept = 0, billed = 0, held;
	json_t *cost, *bins;

	if (status->price_per_hour <= 0)
		return NULL;
	for (enum phase phase = 0; phase < PHASE_COUNT; phase++) {
		paid += usd(status, phase, view->paid_of[phase]);
		kept += usd(status, phase, status->machines[phase].kept_ms);
		billed += usd(status, phase, status->machines[phase].billed_ms);
	}
	bins = bins_json(status, view, &held);
	cost = json_object();
	if (status->ended)
		js_put(cost, "estimated", json_real(paid));
	else if (status->ends.ms > 0)
		js_put(cost, "estimated", json_real(paid + usd(status, PHASE_TRAIN, left_ms)));
	js_put(cost, "accrued", json_real(held + kept));
	if (view->billed_ms >= 0)
		js_put(cost, "billable", json_real(billed + kept));
	if (view->kept_ms > 0)
		js_put(cost, "kept", json_real(kept));
	js_put(cost, "bins", bins);
	js_put(cost, "per_hour", json_real(status->price_per_hour));
	return cost;
}

/* The part of the run's time that went to machines of this stage; NULL: none did. */
static json_t *stage_tally(const struct status *status, const struct ledger_view *view,
			   enum phase phase)
{
	const struct status_machines *machines = &status->machines[phase];
	int64_t held[BIN_COUNT], sum = machines->kept_ms + machines->billed_ms;
	json_t *ret;

	for (int bin = 0; bin < BIN_COUNT; bin++) {
		held[bin] = held_ms(status, view, phase, bin);
		sum += held[bin];
	}
	if (sum <= 0)
		return NULL;
	ret = json_object();
	js_put(ret, "nodes", json_integer(machines->nodes));
	js_put(ret, "price", json_real(machines->per_hour));
	js_put(ret, "held", status_bins_json(held));
	js_put(ret, "kept", json_integer(machines->kept_ms));
	js_put(ret, "billed", json_integer(machines->billed_ms + machines->kept_ms));
	return ret;
}

json_t *status_stages_tally(const struct status *status, const struct ledger_view *view)
{
	json_t *stages = json_object();

	for (enum phase phase = 0; phase < PHASE_COUNT; phase++)
		if (flow_phases[phase].has_tasks)
			js_put(stages, flow_phase_names[phase], stage_tally(status, view, phase));
	if (json_object_size(stages) > 0)
		return stages;
	json_decref(stages);
	return NULL;
}
