/*
 * What follows a failure: one row a class says what it calls for, whether it
 * counts against the budgets, and how many retries it gets by itself.
 */
#include "jobs/flow/flow.h"

#include <string.h>

#include "jobs/flow/inside.h"

struct retry_row {
	enum action action;
	bool counts;
	int limit; /* retries of this class in a phase; -1: as the budgets say */
};

static const struct retry_row rows[CLASS_COUNT] = {
	[CLASS_NONE] = { ACTION_STOP, false, 0 },
	[CLASS_TRANSIENT_INFRA] = { ACTION_RETRY, true, -1 },
	[CLASS_CAPACITY] = { ACTION_WAIT, false, -1 },
	[CLASS_SPOT] = { ACTION_RETRY, false, -1 },
	[CLASS_HARDWARE_NODE] = { ACTION_EXCLUDE, true, -1 },
	[CLASS_COMM] = { ACTION_RETRY, true, -1 },
	[CLASS_USER_CODE] = { ACTION_STOP, true, 0 },
	[CLASS_USER_CONFIG] = { ACTION_STOP, true, 0 },
	[CLASS_QUOTA_PERMISSION] = { ACTION_STOP, true, 0 },
	/* A bad checkpoint is cured by the one before it; bad input by nothing. */
	[CLASS_DATA] = { ACTION_FALL_BACK, true, 1 },
	/* Out of memory in parallel compilation goes away; a compiler's no does not. */
	[CLASS_COMPILE] = { ACTION_RETRY, true, 1 },
	[CLASS_TIMEOUT_HANG] = { ACTION_RETRY, true, -1 },
	[CLASS_STOPPED] = { ACTION_STOP, false, 0 },
	[CLASS_UNKNOWN] = { ACTION_RETRY, true, -1 },
};

/* When no instances are to be had, the wait begins at eight times the first delay. */
#define CAPACITY_PATIENCE 3

enum action retry_action(enum failure_class class)
{
	return rows[class].action;
}

bool retry_counts(enum failure_class class)
{
	return rows[class].counts;
}

int64_t retry_limit(enum failure_class class)
{
	return rows[class].limit;
}

int64_t retry_delay_ms(const struct flow_policy *policy, int64_t seed, int64_t failures)
{
	int64_t ceiling = policy->backoff_first_ms;

	for (int64_t n = 0; n < failures && ceiling < policy->backoff_max_ms; n++) {
		if (ceiling <= 0)
			break;
		ceiling =
			ceiling > policy->backoff_max_ms / 2 ? policy->backoff_max_ms : ceiling * 2;
	}
	if (ceiling > policy->backoff_max_ms)
		ceiling = policy->backoff_max_ms;
	if (ceiling <= 0)
		return 0;
	return (int64_t)(flow_mix(seed, UINT64_C(0xbac0ff), (uint64_t)failures) %
			 ((uint64_t)ceiling + 1));
}

uint64_t retry_signature(const struct event *ev)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	if (!EVENT_HAS(ev, signature) || ev->signature[0] == '\0')
		return 0;
	for (const char *at = ev->signature; *at; at++)
		hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
	return hash != 0 ? hash : 1;
}

/* A service that is down says the same each time, and so do machines that are lost;
 * only the budgets judge them. */
static bool is_same_cause(const struct flow *flow, const struct event *ev)
{
	uint64_t signature = retry_signature(ev);

	return rows[ev->class].counts && ev->class != CLASS_TRANSIENT_INFRA &&
	       ev->class != CLASS_HARDWARE_NODE && signature != 0 &&
	       signature == flow->budget[flow->phase].signature;
}

enum retry_end retry_end_after(const struct flow *flow, const struct event *ev)
{
	const struct retry_row *row = &rows[ev->class];

	if (row->limit == 0)
		return RETRY_USELESS;
	if (row->limit > 0 && flow->budget[flow->phase].of_class[ev->class] >= row->limit)
		return RETRY_OF_CLASS;
	if (is_same_cause(flow, ev))
		return RETRY_SAME_CAUSE;
	if (row->counts && flow->budget[flow->phase].failures + 1 >= flow->policy.retry_attempts)
		return RETRY_ATTEMPTS;
	if (row->counts &&
	    flow->budget[flow->phase].fruitless + 1 >= flow->policy.retry_without_progress)
		return RETRY_NO_PROGRESS;
	return RETRY_GOES_ON;
}

int64_t retry_wait_ms(const struct flow *flow)
{
	int64_t n = flow->budget[flow->phase].setbacks - 1;
	int64_t seed;

	/* A reclaimed machine says nothing against the next one: at once, unless
	 * the attempts since the last checkpoint were all taken away. */
	if (flow->last_class == CLASS_SPOT && n <= 0)
		return 0;
	if (flow->last_class == CLASS_CAPACITY)
		n += CAPACITY_PATIENCE;
	seed = (int64_t)flow_mix(flow->seed, (uint64_t)flow->phase, (uint64_t)flow->attempt);
	return retry_delay_ms(&flow->policy, seed, n);
}
