/*
 * What retries, time and money come to, counted from the journal alone and in
 * another way than the machine counts them: rules 5 and 8.
 */
#include "tests/world/budgets.h"

#include <stdio.h>
#include <string.h>

#include "tests/world/play.h"
#include "tests/world/rules.h"

int64_t budget_trusted_below(const struct story *story, int64_t seq)
{
	int64_t known = -1, below = INT64_MAX, attempt = 0;

	for (int64_t i = 0; i < seq - 1; i++) {
		const struct event *ev = &story->events[i].event;

		if (ev->kind == EV_ATTEMPT_INTENDED && ev->phase == PHASE_TRAIN) {
			attempt = ev->attempt;
		} else if (ev->kind == EV_CHECKPOINT_CHOSEN) {
			known = EVENT_HAS(ev, step) ? ev->step : -1;
		} else if (ev->kind == EV_CHECKPOINT_COMPLETE && ev->attempt == attempt &&
			   ev->step > known) {
			known = ev->step;
			if (known >= below)
				below = INT64_MAX;
		} else if (ev->kind == EV_RETRY_SCHEDULED && ev->phase == PHASE_TRAIN &&
			   ev->action == ACTION_FALL_BACK && known >= 0) {
			below = known;
		}
	}
	return below;
}

static bool is_cured_by_retry(enum failure_class class)
{
	return class != CLASS_USER_CODE && class != CLASS_USER_CONFIG &&
	       class != CLASS_QUOTA_PERMISSION && class != CLASS_STOPPED;
}

static bool counts_as_failure(enum failure_class class)
{
	return class != CLASS_NONE && class != CLASS_SPOT && class != CLASS_CAPACITY;
}

#define CAUSES  16
#define RETRIES 3 /* of an unknown failure, for one signature */

struct budget {
	int64_t failures, failures_without_checkpoint;
	const char *causes[CAUSES]; /* signatures, since the last checkpoint, */
	int64_t alike[CAUSES];      /* and the number of failures of each */
	bool too_often; /* one that no row knows was seen more often than it is retried */
};

/* An attempt that ended because its compiler is not the lock's. */
bool budget_is_refused(const struct story *story, const struct event *ev)
{
	/* News that is told again is none. */
	return ev->kind == EV_ATTEMPT_ENDED && EVENT_HAS(ev, changed) &&
	       story_find(story, EV_ATTEMPT_ENDED, ev->phase, ev->attempt, ev->seq - 1) == 0;
}

/* Did this training attempt end so that phase 1 could run again? */
static bool made_room(const struct story *story, const struct event *ended)
{
	if (budget_is_refused(story, ended))
		return true;
	if (ended->phase != PHASE_TRAIN || ended->class != CLASS_STOPPED)
		return false;
	for (int64_t i = 0; i < ended->seq - 1; i++)
		if (story->events[i].event.kind == EV_JIT_EXCEEDED &&
		    story->events[i].event.attempt == ended->attempt &&
		    story->events[i].event.on_exceed == JIT_RECOMPILE)
			return true;
	return false;
}

static void forget_in_a_row(struct budget *b)
{
	b->failures_without_checkpoint = 0;
	b->too_often = false;
	memset(b->alike, 0, sizeof b->alike);
	memset(b->causes, 0, sizeof b->causes);
}

/* The place of a signature; CAUSES: it has none, or there are too many. */
static size_t cause_of(struct budget *b, const struct event *ev)
{
	size_t i = 0;

	if (!EVENT_HAS(ev, signature) || ev->signature[0] == '\0')
		return CAUSES;
	while (i < CAUSES && b->causes[i] && strcmp(b->causes[i], ev->signature) != 0)
		i++;
	if (i < CAUSES)
		b->causes[i] = ev->signature;
	return i;
}

static void count_failure(struct budget *b, const struct event *ev)
{
	size_t cause;

	if (ev->class == CLASS_NONE)
		forget_in_a_row(b);
	if (!counts_as_failure(ev->class))
		return;
	b->failures++;
	b->failures_without_checkpoint++;
	cause = cause_of(b, ev);
	if (cause < CAUSES) {
		b->too_often |= ev->class == CLASS_UNKNOWN && b->alike[cause] >= RETRIES;
		b->alike[cause]++;
	}
}

/* A cache that is proved, or that has to be filled again: what went wrong in phase 1
 * before is of no account. */
static bool begins_anew(const struct story *story, const struct event *ev)
{
	return (ev->kind == EV_CACHE_VERIFIED && ev->complete) || budget_is_refused(story, ev) ||
	       (ev->kind == EV_CACHE_CHECKED && ev->verdict == CACHE_COLD) ||
	       (ev->kind == EV_JIT_EXCEEDED && ev->on_exceed == JIT_RECOMPILE);
}

/* What a phase has used up before event `seq`. A verdict that is told while phase 1 runs again
 * is of the attempt before: it changes nothing. */
static struct budget budget_before(const struct story *story, enum phase phase, int64_t seq)
{
	struct budget b = { 0 };
	int64_t last = 0, attempt = 0, known = -1;
	bool open = false; /* its newest attempt has not ended */

	for (int64_t i = 0; i < seq - 1; i++) {
		const struct event *ev = &story->events[i].event;

		if (ev->kind == EV_ATTEMPT_INTENDED && ev->phase == phase) {
			attempt = ev->attempt;
			open = true;
		} else if (ev->kind == EV_ATTEMPT_ENDED && ev->phase == phase &&
			   ev->attempt > last) {
			last = ev->attempt;
			open = last < attempt;
			if (!made_room(story, ev))
				count_failure(&b, ev);
		} else if (phase == PHASE_PRECOMPILE && !open && begins_anew(story, ev)) {
			b = (struct budget){ 0 };
		} else if (ev->kind == EV_TASK_DONE && ev->phase == phase) {
			b.failures_without_checkpoint = 0; /* what a task failed of stays */
		} else if (ev->kind == EV_CHECKPOINT_CHOSEN) {
			known = EVENT_HAS(ev, step) ? ev->step : -1;
		} else if (ev->kind == EV_CHECKPOINT_COMPLETE && phase == PHASE_TRAIN &&
			   ev->attempt == attempt && ev->step > known) {
			known = ev->step;
			forget_in_a_row(&b);
		}
	}
	return b;
}

/* Attempts that got no machine, or lost it, are nobody's failure: a run that ends because its
 * budget is used up has used it up. */
static void check_budget_used(const struct story *story, const struct event *ev)
{
	struct budget b;

	if (EVENT_HAS(ev, class) && ev->state == OUTCOME_FAILED && !counts_as_failure(ev->class) &&
	    ev->class != CLASS_NONE)
		rule_breaks("5", "the run failed for want of a machine (%s)",
			    flow_class_names[ev->class]);
	if (!EVENT_HAS(ev, phase) || !EVENT_HAS(ev, reason))
		return;
	b = budget_before(story, ev->phase, ev->seq);
	if (strstr(ev->reason, "retry.attempts is used up") &&
	    b.failures < story->policy.retry_attempts)
		rule_breaks("5", "%s ends with retry.attempts left", flow_phase_names[ev->phase]);
	if (strstr(ev->reason, "retry.without_progress is used up") &&
	    b.failures_without_checkpoint < story->policy.retry_without_progress)
		rule_breaks("5", "%s ends with retry.without_progress left",
			    flow_phase_names[ev->phase]);
}

/* Has the task in which the last attempt before event `seq` failed done so three times, for one
 * cause? Then its input is bad, and no retry cures that. */
static bool is_bad_task(const struct story *story, int64_t seq)
{
	const struct story_event *told = story_last(story, EV_ATTEMPT_ENDED, seq);
	const struct event *last = told ? &told->event : NULL;
	int times = 0;

	if (!last || !EVENT_HAS(last, task) || !EVENT_HAS(last, signature))
		return false;
	for (int64_t i = 0; i < seq - 1; i++) {
		const struct event *ev = &story->events[i].event;

		times += ev->kind == EV_ATTEMPT_ENDED && ev->phase == last->phase &&
			 EVENT_HAS(ev, task) && strcmp(ev->task, last->task) == 0 &&
			 EVENT_HAS(ev, signature) && strcmp(ev->signature, last->signature) == 0;
	}
	return times >= 3;
}

/* A failure that retries may cure ends a run only once these are used up. */
static void check_retries_left(const struct story *story, const struct event *ev)
{
	const struct flow_policy *p = &story->policy;
	struct budget b;
	int64_t attempts = 0;

	for (int64_t s = 0; s < ev->seq; s++)
		attempts += story->events[s].event.kind == EV_ATTEMPT_INTENDED;
	if (ev->state != OUTCOME_FAILED || !EVENT_HAS(ev, phase) || !EVENT_HAS(ev, class) ||
	    strncmp(ev->reason, "limits.", 7) == 0 || strstr(ev->reason, "is not complete") ||
	    is_bad_task(story, ev->seq) || (p->attempts > 0 && attempts >= p->attempts) ||
	    (ev->class != CLASS_TRANSIENT_INFRA && ev->class != CLASS_COMM &&
	     ev->class != CLASS_HARDWARE_NODE && ev->class != CLASS_TIMEOUT_HANG &&
	     ev->class != CLASS_UNKNOWN))
		return;
	b = budget_before(story, ev->phase, ev->seq);
	if (!b.too_often && b.failures < p->retry_attempts &&
	    b.failures_without_checkpoint < p->retry_without_progress)
		rule_breaks("5", "the run ended after %s and %s could be retried",
			    flow_class_names[ev->class], flow_phase_names[ev->phase]);
}

static void check_end(const struct story *story, const struct event *ev)
{
	bool named = (ev->state == OUTCOME_SUCCEEDED && ev->exit_code == 0) ||
		     (ev->state == OUTCOME_FAILED && ev->exit_code == 1) ||
		     (ev->state == OUTCOME_REFUSED && (ev->exit_code == 4 || ev->exit_code == 5)) ||
		     (ev->state == OUTCOME_STOPPED && ev->exit_code == 6);
	bool limited = false;

	if (!named)
		rule_breaks("5", "the run ended %s with exit code %d",
			    flow_outcome_names[ev->state], (int)ev->exit_code);
	if (!EVENT_HAS(ev, reason) || ev->reason[0] == '\0')
		rule_breaks("5", "the run ended and nobody knows why");
	check_budget_used(story, ev);
	check_retries_left(story, ev);
	for (int64_t i = 0; i < ev->seq - 1; i++)
		limited |= story->events[i].event.kind == EV_LIMIT_REACHED &&
			   story->events[i].event.limit != LIMIT_UNREACHABLE;
	if (!limited && EVENT_HAS(ev, reason) && strncmp(ev->reason, "limits.", 7) == 0)
		rule_breaks("5", "the run ended at a limit that the journal does not know");
}

static bool ends_the_run(const struct event *ev)
{
	return ev->kind == EV_REQUEST_STOP || ev->kind == EV_REQUEST_DRAIN ||
	       (ev->kind == EV_JIT_EXCEEDED && ev->on_exceed == JIT_STOP) ||
	       ev->kind == EV_TRAIN_SPOILED ||
	       (ev->kind == EV_LIMIT_REACHED && ev->limit != LIMIT_UNREACHABLE);
}

static void check_retry(const struct story *story, const struct event *ev)
{
	int64_t ended =
		story_find(story, EV_ATTEMPT_ENDED, ev->phase, ev->attempt - 1, ev->seq - 1);
	struct budget b = budget_before(story, ev->phase, ev->seq);
	const char *phase = flow_phase_names[ev->phase];

	if (ended > 0 && !is_cured_by_retry(story->events[ended - 1].event.class) &&
	    !made_room(story, &story->events[ended - 1].event))
		rule_breaks("5", "%s is retried after %s", phase,
			    flow_class_names[story->events[ended - 1].event.class]);
	if (b.failures >= story->policy.retry_attempts && b.failures > 0)
		rule_breaks("5", "%s is retried beyond retry.attempts", phase);
	if (b.failures_without_checkpoint >= story->policy.retry_without_progress &&
	    b.failures_without_checkpoint > 0)
		rule_breaks("5", "%s is retried beyond retry.without_progress", phase);
	if (b.too_often)
		rule_breaks("5", "%s is retried after the same unknown cause too often", phase);
}

/* For one difference between two compilers phase 1 runs again once, in a row. */
static void check_refusals(const struct story *story, int64_t s)
{
	const struct event *last = NULL;

	for (int64_t i = 0; i < s; i++)
		if (budget_is_refused(story, &story->events[i].event) &&
		    story->events[i].event.attempt < story->events[s].event.attempt)
			last = &story->events[i].event;
	if (last && strcmp(last->signature, story->events[s].event.signature) == 0)
		rule_breaks("5",
			    "train %d is refused for a compiler for which phase 1 has run already",
			    (int)story->events[s].event.attempt);
}

/* By the time of the event before, at which it was not decided yet. */
static void check_time(const struct story *story, int64_t s)
{
	const struct flow_policy *p = &story->policy;
	int64_t lead = p->lead_ms < p->deadline_ms / 2 ? p->lead_ms : p->deadline_ms / 2;

	if (story->events[s].event.phase == PHASE_TRAIN && p->deadline_ms > 0 &&
	    story->events[s - 1].event.at.ms - story->events[0].event.at.ms >=
		    p->deadline_ms - lead)
		rule_breaks("5", "train %d is intended where it could only save",
			    (int)story->events[s].event.attempt);
}

/* 5. What retrying cannot cure (user code, spec, permission) is not retried;
 * every path ends in a named state. */
void rule5(const struct story *story)
{
	for (int64_t s = rules_checked(); s < story->count; s++) {
		const struct event *ev = &story->events[s].event;

		if (ev->kind == EV_RUN_ENDED)
			check_end(story, ev);
		if (budget_is_refused(story, ev))
			check_refusals(story, s);
		if (ev->kind != EV_ATTEMPT_INTENDED)
			continue;
		check_time(story, s);
		if (ev->attempt > 1)
			check_retry(story, ev);
		for (int64_t i = 0; i < s; i++)
			if (ends_the_run(&story->events[i].event))
				rule_breaks("5", "%s %d is intended after %s",
					    flow_phase_names[ev->phase], (int)ev->attempt,
					    event_rows[story->events[i].event.kind].name);
	}
}

/* When the first such event of that attempt was written; 0: never. */
static int64_t time_of(const struct story *story, enum event_kind kind, const struct event *of,
		       int64_t seq)
{
	for (int64_t i = 0; i < seq; i++)
		if (story->events[i].event.kind == kind &&
		    story->events[i].event.phase == of->phase &&
		    story->events[i].event.attempt == of->attempt)
			return story->events[i].event.at.ms;
	return 0;
}

/* How long the check-up of the attempt's nodes took, as its agent told; before that, how
 * long it may take. */
static int64_t checkup_of(const struct story *story, const struct event *of, int64_t seq)
{
	int64_t most = story->policy.health_ms;

	for (int64_t i = 0; i < seq; i++) {
		const struct event *ev = &story->events[i].event;

		if (ev->kind == EV_HEALTH_CHECKED && ev->phase == of->phase &&
		    ev->attempt == of->attempt)
			return ev->finished - ev->since < most ? ev->finished - ev->since : most;
	}
	return most;
}

/* When a training that goes on ends, by its newest step before event `seq`; 0: nothing says. */
static int64_t forecast_of(const struct story *story, const struct event *of, int64_t seq)
{
	int64_t ends = 0;
	bool there = false;

	for (int64_t i = 0; i < seq; i++) {
		const struct event *ev = &story->events[i].event;

		if (ev == of || (ev->attempt == of->attempt && ev->kind == EV_ATTEMPT_ENDED)) {
			there = false;
			ends = 0;
		} else if (ev->kind == EV_ATTEMPT_SUBMITTED && ev->attempt == of->attempt)
			there = true;
		else if (there && ev->kind == EV_TRAIN_PROGRESS && ev->attempt == of->attempt)
			ends = EVENT_HAS(ev, eta) ? ev->at.ms + (int64_t)(ev->eta * 1000) : 0;
	}
	return of->phase == PHASE_TRAIN ? ends : 0;
}

/* Had somebody been told of it before? */
static bool was_at_risk(const struct story *story, enum run_limit limit, int64_t seq)
{
	for (int64_t i = 0; i < seq; i++)
		if (story->events[i].event.kind == EV_RUN_AT_RISK &&
		    story->events[i].event.limit == limit)
			return true;
	return false;
}

/* The last of the time and of the money is for saving, of what does not end in it anyway. */
static int64_t lead_of(const struct story *story, const struct event *of, const struct event *ev,
		       double paid)
{
	int64_t ends = of ? forecast_of(story, of, ev->seq - 1) : 0;
	const struct flow_policy *p = &story->policy;
	int64_t length = ev->limit == LIMIT_DEADLINE ? p->deadline_ms
						     : (int64_t)(p->cost_usd / p->price_per_ms);
	int64_t lead = p->lead_ms < length / 2 ? p->lead_ms : length / 2;
	double late_ms;

	if (ends == 0)
		return lead;
	late_ms = ev->limit == LIMIT_DEADLINE
			  ? (double)(ends - story->events[0].event.at.ms - p->deadline_ms)
			  : (double)(ends - ev->at.ms) + (paid - p->cost_usd) / p->price_per_ms;
	if (late_ms > -1e-3)
		return was_at_risk(story, ev->limit, ev->seq - 1) ? lead : 0;
	return late_ms < 1e-3 - (double)lead ? lead : 0;
}

int64_t budget_lead_ms(const struct story *story)
{
	const struct event now = { .limit = LIMIT_DEADLINE, .seq = story->count + 1 };
	const struct story_event *of = story_last(story, EV_ATTEMPT_INTENDED, 0);

	return lead_of(story, of ? &of->event : NULL, &now, 0);
}

bool budget_limit_is_true(const struct story *story, const struct event *ev)
{
	const struct flow_policy *p = &story->policy;
	const struct event *of = NULL;
	int64_t since, seq = ev->seq - 1, t = ev->at.ms;
	struct ledger_view view;
	double paid;

	/* A clock may be set back between the decision and its record. */
	if (schedule_clock_stepped())
		return true;
	for (int64_t i = 0; i < seq; i++)
		if (story->events[i].event.kind == EV_ATTEMPT_INTENDED)
			of = &story->events[i].event;
	switch (ev->limit) {
	case LIMIT_DEADLINE:
		return p->deadline_ms > 0 && t - story->events[0].event.at.ms >=
						     p->deadline_ms - lead_of(story, of, ev, 0);
	case LIMIT_COST:
		ledger_at(&story->shadow.ledger, ev->at, &view);
		paid = (double)view.paid_ms * p->price_per_ms;
		return paid + (double)lead_of(story, of, ev, paid) * p->price_per_ms >=
		       p->cost_usd - 1e-9;
	case LIMIT_QUEUE:
		since = of ? time_of(story, EV_ATTEMPT_SUBMITTED, of, seq) : 0;
		return since > 0 && t - since >= p->queue_ms &&
		       time_of(story, EV_ATTEMPT_CLAIMED, of, seq) == 0;
	case LIMIT_START:
		since = of ? time_of(story, EV_ATTEMPT_CLAIMED, of, seq) : 0;
		return since > 0 && t - since >= p->start_ms + checkup_of(story, of, seq) &&
		       time_of(story, EV_ATTEMPT_STARTED, of, seq) == 0;
	case LIMIT_UNREACHABLE:
		return of && t - of->at.ms >= p->unreachable_ms && p->unreachable_ms > 0;
	default:
		return false;
	}
}

/* ---- time and money ------------------------------------------------------------ */

/* Machines of one attempt after the other, held from `start` on. */
struct holding {
	enum phase phase;
	int64_t attempt, t, low, start, newest, back_at;
	bool open, held;
	int64_t least, most; /* milliseconds held by those that have ended */
};
static struct holding holding;
static bool held_to_end;

void budgets_reset(void)
{
	holding = (struct holding){ 0 };
	held_to_end = false;
}

static int64_t between(int64_t x, int64_t low, int64_t high)
{
	return x < low ? low : x > high ? high : x;
}

/* A driver that was there saw the end; one that came later goes by the agent's clock,
 * which may be wrong. */
static void release(struct holding *h, const struct event *ev)
{
	int64_t least = h->t, most = h->t;

	/* The service says that it had machines, although nobody saw its claim. */
	if (!h->held && EVENT_HAS(ev, held)) {
		h->held = true;
		h->start = between(ev->held, h->low, h->t);
	}
	if (EVENT_HAS(ev, released)) {
		least = most = between(ev->released, h->start, h->t);
		/* By a clock that is not the driver's: then what the driver saw counts as well. */
		if (schedule_clock_stepped())
			most = h->t;
	} else if (EVENT_HAS(ev, finished) && ev->finished < h->back_at) {
		least = between(ev->finished, h->start, h->t);
		most = h->newest >= h->back_at ? h->t : between(h->newest, least, h->t);
	}
	if (h->held) {
		h->least += least - h->start;
		h->most += most - h->start;
	}
	h->held = h->open = false;
}

static void hold(struct holding *h, const struct event *ev)
{
	bool mine = h->open && ev->attempt == h->attempt;

	if (ev->at.ms > h->t)
		h->t = ev->at.ms;
	switch (ev->kind) {
	case EV_ATTEMPT_INTENDED:
		h->phase = ev->phase;
		h->attempt = ev->attempt;
		h->low = h->newest = h->t;
		h->open = true;
		break;
	case EV_ATTEMPT_MISSING:
		if (mine && ev->phase == h->phase && !h->held)
			h->low = h->t;
		break;
	case EV_ATTEMPT_CLAIMED:
		if (!mine || ev->phase != h->phase || h->held)
			break;
		h->held = true;
		h->start = EVENT_HAS(ev, since) ? between(ev->since, h->low, h->t) : h->t;
		/* Of a job that the service has started again it knows the last start only. */
		if (EVENT_HAS(ev, held))
			h->start = between(ev->held, h->low, h->start);
		break;
	case EV_ATTEMPT_ENDED:
		if (mine && ev->phase == h->phase)
			release(h, ev);
		break;
	case EV_DRIVER_TOOK_OVER:
		h->back_at = h->t;
		break;
	default:
		break;
	}
	h->newest = h->t;
}

static void check_held(const struct ledger_view *view)
{
	struct holding h = holding;

	if (h.held) {
		h.least += h.t - h.start;
		h.most += h.t - h.start;
	}
	if (view->held_total_ms < h.least || view->held_total_ms > h.most)
		rule_breaks("8", "jobs held machines for %lld ms, the ledger says %lld",
			    (long long)h.most, (long long)view->held_total_ms);
	/* No service of this world bills anything else. */
	if (view->paid_ms != view->held_total_ms || view->billed_ms != -1)
		rule_breaks("8", "%lld ms are paid for", (long long)view->paid_ms);
}

/* 8. The ledger's bins add up to the wall clock, and its cost to the cost. */
void rule8(const struct story *story)
{
	static const enum ledger_bin free_of_cost[] = { BIN_QUEUE, BIN_VERIFY, BIN_BACKOFF,
							BIN_IDLE };
	struct ledger_view view;
	int64_t sum = 0, t;

	if (story->count == rules_checked())
		return;
	for (int64_t s = rules_checked(); s < story->count && !held_to_end; s++) {
		hold(&holding, &story->events[s].event);
		held_to_end = story->events[s].event.kind == EV_RUN_ENDED;
	}
	t = holding.t;
	ledger_at(&story->shadow.ledger, (struct utc){ t }, &view);
	for (int bin = 0; bin < BIN_COUNT; bin++) {
		sum += view.ms[bin];
		if (view.ms[bin] < 0 || view.held_ms[bin] < 0 || view.held_ms[bin] > view.ms[bin])
			rule_breaks("8", "%s has %lld ms, %lld of them held", ledger_bin_names[bin],
				    (long long)view.ms[bin], (long long)view.held_ms[bin]);
	}
	if (sum != t - story->events[0].event.at.ms || view.total_ms != sum)
		rule_breaks("8", "the bins hold %lld ms and the run has taken %lld", (long long)sum,
			    (long long)(t - story->events[0].event.at.ms));
	for (size_t i = 0; i < sizeof free_of_cost / sizeof free_of_cost[0]; i++)
		/* A service gives machines back later than their command ended, by its own clock.
		 */
		if (view.held_ms[free_of_cost[i]] > 0 && !playing->setting.cloud)
			rule_breaks("8", "a job held machines in %s",
				    ledger_bin_names[free_of_cost[i]]);
	check_held(&view);
}
