/*
 * Response to a failure: one row for each class says what it calls for, whether it counts
 * against the budgets, and how many retries it gets by itself.
 */
#include "jobs/flow/flow.h"

#include <string.h>

#include "jobs/flow/internal.h"

#define BY_BUDGET (-1)

const struct retry_row retry_rows[CLASS_COUNT] = {
	[CLASS_NONE] = { ACTION_STOP, false, 0, 0 },
	[CLASS_TRANSIENT_INFRA] = { ACTION_RETRY, true, BY_BUDGET, BY_BUDGET },
	/* Only the engine reports these two: it takes and gives machines, and that is paced by
	 * the backoff alone. */
	[CLASS_CAPACITY] = { ACTION_WAIT, false, BY_BUDGET, BY_BUDGET },
	[CLASS_SPOT] = { ACTION_RETRY, false, BY_BUDGET, BY_BUDGET },
	[CLASS_HARDWARE_NODE] = { ACTION_EXCLUDE, true, BY_BUDGET, BY_BUDGET },
	[CLASS_COMM] = { ACTION_RETRY, true, BY_BUDGET, BY_BUDGET },
	[CLASS_USER_CODE] = { ACTION_STOP, true, 0, 0 },
	[CLASS_USER_CONFIG] = { ACTION_STOP, true, 0, 0 },
	[CLASS_QUOTA_PERMISSION] = { ACTION_STOP, true, 0, 0 },
	/* The limit is that of bad input; see is_of_checkpoint(). */
	[CLASS_DATA] = { ACTION_FALL_BACK, true, 1, BY_BUDGET },
	/* Out of memory in parallel compilation goes away; a compiler's refusal does not. */
	[CLASS_COMPILE] = { ACTION_RETRY, true, 1, BY_BUDGET },
	[CLASS_TIMEOUT_HANG] = { ACTION_RETRY, true, BY_BUDGET, BY_BUDGET },
	[CLASS_STOPPED] = { ACTION_STOP, false, 0, 0 },
	[CLASS_UNKNOWN] = { ACTION_RETRY, true, BY_BUDGET, 3 },
};

/* If no instances are available, the wait begins at eight times the first delay. */
#define CAPACITY_DELAY_DOUBLINGS 3

/* Between first and min(max, first * 2^n), drawn from the seed; n is the number of failures before
 * this one. So no pause is shorter than the spec says, and the first is as long as it says. */
static int64_t delay_ms(const struct flow_policy *policy, int64_t seed, int64_t failures)
{
	int64_t max = policy->backoff_max_ms;
	int64_t first = policy->backoff_first_ms < max ? policy->backoff_first_ms : max;
	int64_t ceiling = first;

	if (first <= 0)
		return 0;
	for (int64_t n = 0; n < failures; n++)
		ceiling = ceiling > max / 2 ? max : ceiling * 2;
	return first + (int64_t)(flow_mix(seed, UINT64_C(0xbac0ff), (uint64_t)failures) %
				 ((uint64_t)(ceiling - first) + 1));
}

/* Returns 0 if the event has no signature. */
static uint64_t signature_of(const struct event *ev)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	if (!EVENT_HAS(ev, signature) || ev->signature[0] == '\0')
		return 0;
	for (const char *at = ev->signature; *at; at++)
		hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
	/* The same failure of another task has another signature. */
	for (const char *at = EVENT_HAS(ev, task) ? ev->task : ""; *at; at++)
		hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
	return hash | 1; /* 0 is a free place */
}

void retry_remember(struct flow_budget *budget, const struct event *ev)
{
	uint64_t signature = signature_of(ev);
	size_t slot = 0;

	if (signature == 0)
		return;
	for (size_t i = 0; i < FLOW_CAUSES; i++) {
		if (budget->causes[i].signature == signature) {
			slot = i;
			break;
		}
		if (budget->causes[i].failure < budget->causes[slot].failure)
			slot = i;
	}
	if (budget->causes[slot].signature != signature)
		budget->causes[slot].times = 0;
	budget->causes[slot].signature = signature;
	budget->causes[slot].failure = budget->failures;
	budget->causes[slot].times++;
}

bool retry_had_machines(const struct flow *flow, const struct event *ev)
{
	return flow->claimed || EVENT_HAS(ev, exit) || EVENT_HAS(ev, started);
}

int64_t retry_times(const struct flow *flow, const struct event *ev)
{
	const struct flow_budget *budget = &flow->budget[flow->phase];
	uint64_t signature = signature_of(ev);

	/* In a free place, which has the signature 0, nothing was seen. */
	for (size_t i = 0; i < FLOW_CAUSES; i++)
		if (budget->causes[i].signature == signature)
			return budget->causes[i].times;
	return 0;
}

/* A task that fails three times in one way fails by itself: its input is bad. */
#define SAME_OF_TASK 2

static bool is_same_cause(const struct flow *flow, const struct event *ev)
{
	int64_t same = retry_rows[ev->class].same;

	if (EVENT_HAS(ev, task) && retry_rows[ev->class].counts)
		same = SAME_OF_TASK;

	return same != BY_BUDGET && retry_times(flow, ev) >= same;
}

/* A training that resumed from a checkpoint and saved none since failed on that checkpoint, as
 * far as is known: the one before it may be intact. Bad input has no cure. */
static bool is_of_checkpoint(const struct flow *flow, const struct event *ev)
{
	return ev->class == CLASS_DATA && flow_phases[flow->phase].resumes &&
	       flow->resumed_from[0] != '\0' && !flow->saved;
}

enum retry_end retry_end_after(const struct flow *flow, const struct event *ev)
{
	const struct retry_row *row = &retry_rows[ev->class];
	const struct flow_budget *budget = &flow->budget[flow->phase];

	if (row->limit == 0)
		return RETRY_USELESS;
	if (row->limit != BY_BUDGET && budget->of_class[ev->class] >= row->limit &&
	    !is_of_checkpoint(flow, ev))
		return RETRY_OF_CLASS;
	if (row->counts && budget->failures + 1 >= flow->policy.retry_attempts)
		return RETRY_ATTEMPTS;
	if (is_same_cause(flow, ev))
		return RETRY_SAME_CAUSE;
	if (row->counts &&
	    budget->failures_without_checkpoint + 1 >= flow->policy.retry_without_progress)
		return RETRY_NO_PROGRESS;
	if (flow->policy.attempts > 0 && retry_had_machines(flow, ev) &&
	    flow->machines + 1 >= flow->policy.attempts)
		return RETRY_LIMIT;
	return RETRY_GOES_ON;
}

int64_t retry_wait_ms(const struct flow *flow)
{
	int64_t n = flow->budget[flow->phase].backoff_failures - 1;
	int64_t seed;

	if (flow->last_class == CLASS_CAPACITY)
		n += CAPACITY_DELAY_DOUBLINGS;
	seed = (int64_t)flow_mix(flow->seed, (uint64_t)flow->phase, (uint64_t)flow->attempt);
	return delay_ms(&flow->policy, seed, n);
}
