/*
 * The spec's limits: which one is reached, and how that is said. Deadline and cost count from
 * the run's creation over all attempts; queue, start and unreachable apply to one attempt. The
 * attempt must have been looked at just before (see flow.h: the order of effects), else they
 * would judge by old news.
 */
#include <stdio.h>

#include "jobs/flow/flow.h"
#include "jobs/flow/internal.h"

struct utc flow_between(int64_t reported_ms, struct utc from, struct utc to)
{
	if (reported_ms > to.ms)
		return to;
	return (struct utc){ reported_ms < from.ms ? from.ms : reported_ms };
}

/* Cost of the machines of the run's jobs until `now`, USD: as billed, if a service reported it,
 * else for as long as they were held. 0 if the price is not known. */
static double cost_until(const struct flow *flow, struct utc now)
{
	const struct flow_policy *policy = &flow->policy;
	struct ledger_view view;
	double usd;

	if (policy->price_per_ms <= 0)
		return 0;
	ledger_at(&flow->ledger, now, &view);
	usd = (double)view.paid_ms * policy->price_per_ms;
	/* Machines of some phases have another price than those of the training. */
	for (enum phase phase = 0; phase < PHASE_COUNT; phase++)
		usd += (double)view.paid_of[phase] *
		       (flow_price_per_ms(policy, phase) - policy->price_per_ms);
	return usd;
}

/* A stretch of time with a limit. */
struct limited {
	struct utc since;  /* ms 0: it does not count now */
	int64_t length_ms; /* 0: the spec has no such limit */
};

static struct limited limited_by(const struct flow *flow, enum run_limit limit)
{
	const struct flow_policy *policy = &flow->policy;
	enum attempt_state state = flow_has_attempts(flow) ? flow->attempt_state : ATTEMPT_NONE;
	struct limited ret = { 0 };

	if (limit == LIMIT_DEADLINE)
		return (struct limited){ flow->created, policy->deadline_ms };
	if (limit == LIMIT_QUEUE) {
		ret.length_ms = policy->queue_ms;
		if (state == ATTEMPT_SUBMITTED)
			ret.since = flow->submitted_at;
	} else if (limit == LIMIT_START) {
		ret.length_ms = policy->start_ms;
		if (state == ATTEMPT_RUNNING && !flow->started)
			ret.since = flow->claimed_at;
	} else if (limit == LIMIT_UNREACHABLE) {
		ret.length_ms = policy->unreachable_ms;
		if (state == ATTEMPT_LOST || state == ATTEMPT_UNCERTAIN)
			ret.since = flow->unobserved_since;
	}
	return ret;
}

/* ---- forecasts ------------------------------------------------------------------- */

#define FORECAST_MAX_S 1e9 /* a speed so low is not a valid speed */

struct utc flow_training_ends(struct utc at, const struct event *ev)
{
	if (!EVENT_HAS(ev, eta) || !(ev->eta >= 0 && ev->eta < FORECAST_MAX_S))
		return (struct utc){ 0 };
	return (struct utc){ at.ms + (int64_t)(ev->eta * 1000) };
}

/* Returns how long after the deadline the run is forecast to end, with what follows the training;
 * not positive: before it, or there is no deadline. */
static int64_t late_ms(const struct flow *flow)
{
	int64_t deadline_ms = flow->policy.deadline_ms;

	if (deadline_ms <= 0 || deadline_ms > INT64_MAX - flow->created.ms)
		return 0;
	return flow->forecast.ends.ms + flow->policy.later_ms - (flow->created.ms + deadline_ms);
}

/* Cost of its machines when the training ends, or at the time when it should have ended. */
static double cost_at_end(const struct flow *flow)
{
	int64_t left_ms = flow->forecast.ends.ms - flow->at.ms;

	return cost_until(flow, flow->at) + (double)left_ms * flow->policy.price_per_ms +
	       flow->policy.later_usd;
}

static bool was_reported(const struct flow *flow, enum run_limit limit)
{
	return (flow->forecast.reported >> limit & 1) != 0;
}

static bool will_be_reached(const struct flow *flow, enum run_limit limit)
{
	const struct flow_policy *policy = &flow->policy;

	if (limit == LIMIT_DEADLINE)
		return late_ms(flow) > 0;
	return policy->cost_usd > 0 && policy->price_per_ms > 0 &&
	       cost_at_end(flow) > policy->cost_usd;
}

/* ---- limits reached --------------------------------------------------------------- */

/* A step that was seen shows it as well as a claim, which may not be read for minutes. */
static bool is_under_way(const struct flow *flow)
{
	return (flow->claimed || flow->forecast.times > 0) &&
	       flow->attempt_state >= ATTEMPT_SUBMITTED && flow->attempt_state <= ATTEMPT_LOST;
}

/* A training is not stopped before its risk was reported, and may end if it is forecast to do so
 * in the last `lead_ms`. A training that should have ended before has disproved its forecast. */
static bool is_let_end(const struct flow *flow, enum run_limit limit, int64_t lead_ms)
{
	const struct flow_policy *policy = &flow->policy;

	if (!is_under_way(flow) || flow->forecast.ends.ms <= 0)
		return false;
	if (will_be_reached(flow, limit))
		return !was_reported(flow, limit);
	if (limit == LIMIT_DEADLINE)
		return late_ms(flow) >= -lead_ms;
	return cost_at_end(flow) >= policy->cost_usd - (double)lead_ms * policy->price_per_ms;
}

/* Returns how long before the end of a limited stretch a training is told to save, or is not
 * begun. */
static int64_t lead_ms(const struct flow *flow, enum run_limit limit, int64_t length)
{
	int64_t lead = flow->policy.lead_ms < length / 2 ? flow->policy.lead_ms : length / 2;

	return flow->state == FLOW_TRAIN && !is_let_end(flow, limit, lead) ? lead : 0;
}

/* The same before the money of limits.cost is spent. */
static int64_t lead_of_cost_ms(const struct flow *flow)
{
	return lead_ms(flow, LIMIT_COST,
		       (int64_t)(flow->policy.cost_usd / flow->policy.price_per_ms));
}

/* Returns when the limit is reached by time alone; INT64_MAX: never. */
static int64_t due_ms(const struct flow *flow, enum run_limit limit)
{
	struct limited limited = limited_by(flow, limit);
	int64_t since = limited.since.ms, length = limited.length_ms;

	/* The nodes' check-up has a limit of its own. */
	if (limit == LIMIT_START && length > 0)
		length += flow->checked ? flow->checkup_ms : flow->policy.health_ms;
	if (since <= 0 || length <= 0 || length > INT64_MAX - since)
		return INT64_MAX;
	/* An attempt that is to end anyway needs no other reason; but it may stay out of sight. */
	if (flow->stop_requested && limit != LIMIT_UNREACHABLE)
		return INT64_MAX;
	return since + length - (limit == LIMIT_DEADLINE ? lead_ms(flow, limit, length) : 0);
}

enum run_limit limit_reached(const struct flow *flow, struct utc now)
{
	const struct flow_policy *policy = &flow->policy;

	if (!flow->stop_requested && policy->cost_usd > 0 && policy->price_per_ms > 0 &&
	    cost_until(flow, now) >=
		    policy->cost_usd - (double)lead_of_cost_ms(flow) * policy->price_per_ms)
		return LIMIT_COST;
	for (enum run_limit limit = LIMIT_NONE; limit < LIMIT_COUNT; limit++)
		if (now.ms >= due_ms(flow, limit))
			return limit;
	return LIMIT_NONE;
}

int64_t limit_next_ms(const struct flow *flow)
{
	int64_t next = INT64_MAX;

	for (enum run_limit limit = LIMIT_NONE; limit < LIMIT_COUNT; limit++) {
		int64_t due = due_ms(flow, limit);

		if (due < next)
			next = due;
	}
	return next;
}

/* "7 d", "90 min": whole units, the largest that is exact. */
static void format_length(int64_t ms, char *to, size_t size)
{
	static const struct {
		int64_t ms;
		const char *name;
	} units[] = { { 86400000, "d" }, { 3600000, "h" }, { 60000, "min" }, { 1000, "s" } };

	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
		if (ms % units[i].ms == 0) {
			snprintf(to, size, "%lld %s", (long long)(ms / units[i].ms), units[i].name);
			return;
		}
	snprintf(to, size, "%lld ms", (long long)ms);
}

/* Says that a training was told in time to save, or has no time to begin; false if there is no
 * lead. */
static bool format_lead(const struct flow *flow, enum run_limit limit, char *to, size_t size)
{
	char lead[40], end[60] = "the run's time is over";
	int64_t ms = 0;

	if (limit == LIMIT_DEADLINE)
		ms = lead_ms(flow, limit, flow->policy.deadline_ms);
	else if (limit == LIMIT_COST)
		ms = lead_of_cost_ms(flow);
	if (ms <= 0)
		return false;
	format_length(ms, lead, sizeof lead);
	if (limit == LIMIT_COST)
		snprintf(end, sizeof end, "the machines have cost %.2f USD", flow->policy.cost_usd);
	snprintf(to, size, "%s %s before %s",
		 is_under_way(flow) ? "the training was asked to save"
				    : "no training starts in the last",
		 lead, end);
	return true;
}

void limit_text(const struct flow *flow, enum run_limit limit, char *to, size_t size)
{
	char length[40];

	if (format_lead(flow, limit, to, size))
		return;
	format_length(limited_by(flow, limit).length_ms, length, sizeof length);
	switch (limit) {
	case LIMIT_DEADLINE:
		snprintf(to, size, "the run was created %s ago", length);
		break;
	case LIMIT_COST:
		snprintf(to, size, "the machines have cost %.2f USD", flow->policy.cost_usd);
		break;
	case LIMIT_QUEUE:
		snprintf(to, size, "%s %lld has waited for %s in the queue",
			 flow_phase_names[flow->phase], (long long)flow->attempt, length);
		break;
	case LIMIT_START:
		snprintf(to, size, "%s %lld has its machines for %s and its command has not begun",
			 flow_phase_names[flow->phase], (long long)flow->attempt, length);
		break;
	case LIMIT_UNREACHABLE:
		snprintf(to, size, "%s %lld could not be seen for %s",
			 flow_phase_names[flow->phase], (long long)flow->attempt, length);
		break;
	case LIMIT_NONE:
	case LIMIT_COUNT:
		to[0] = '\0';
		break;
	}
}

enum run_limit limit_forecast(const struct flow *flow)
{
	static const enum run_limit limits[] = { LIMIT_DEADLINE, LIMIT_COST };

	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
		if (!was_reported(flow, limits[i]) && will_be_reached(flow, limits[i]))
			return limits[i];
	return LIMIT_NONE;
}

/* "90 s", "90 min", "9.5 h": rounded, as an estimate is told. */
static void format_estimate(int64_t ms, char *to, size_t size)
{
	if (ms < 120000)
		snprintf(to, size, "%lld s", (long long)((ms + 999) / 1000));
	else if (ms < 7200000)
		snprintf(to, size, "%lld min", (long long)((ms + 30000) / 60000));
	else
		snprintf(to, size, "%.1f h", (double)ms / 3600000);
}

void limit_forecast_text(const struct flow *flow, char *to, size_t size)
{
	char late[40];

	if (flow->forecast.limit == LIMIT_COST) {
		snprintf(to, size,
			 "at the present pace the run ends at %.2f USD, allowed are %.2f USD",
			 cost_at_end(flow), flow->policy.cost_usd);
		return;
	}
	format_estimate(late_ms(flow), late, sizeof late);
	snprintf(to, size, "at the present pace the %s ends %s after the deadline",
		 flow->policy.later_ms > 0 ? "run" : "training", late);
}
