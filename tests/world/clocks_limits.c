/*
 * C3. Limits: acted on within 5 s (far: 30 s) of being due, never before. A wall-clock step under a
 * live driver moves none.
 *
 * Due is counted in the world's own time, from when the event was made that it counts from. A
 * driver that takes over has nothing but its wall clock to go by: where one was set, only what a
 * single driver began and acted on is judged.
 */
#include <stdio.h>
#include <string.h>

#include "jobs/store/order.h"
#include "tests/world/budgets.h"
#include "tests/world/clocks_rules.h"
#include "tests/world/clocks_time.h"
#include "tests/world/play.h"
#include "tests/world/rules.h"
#include "tests/world/sqlite.h"

/* The clocks of two hosts differ by a second. */
#define HOSTS_APART_NS (2 * WORLD_S)

static struct {
	int64_t since_ns;         /* it counts from then; 0: it does not count */
	const struct process *by; /* who journalled that */
	struct stretch due;       /* acting on it is due */
} limits[LIMIT_COUNT];

static bool far_away(void)
{
	return playing->setting.state == STATE_BUCKET || playing->setting.far_workspace;
}

static void reset(void)
{
	memset(limits, 0, sizeof limits);
}

static int64_t length_ns(const struct story *story, enum run_limit limit)
{
	const struct flow_policy *p = &story->policy;

	return (limit == LIMIT_DEADLINE ? p->deadline_ms
		: limit == LIMIT_QUEUE  ? p->queue_ms
		: limit == LIMIT_START  ? p->start_ms
					: 0) *
	       WORLD_MS;
}

/* True if this driver can know, to the second, since when the limit counts. */
static bool is_known_to(const struct process *driver, enum run_limit limit)
{
	return driver && (limits[limit].by == driver || !schedule_clock_stepped());
}

static void check_early(const struct story *story, const struct story_event *told)
{
	const struct flow_policy *p = &story->policy;
	enum run_limit limit = told->event.limit;
	int64_t length = length_ns(story, limit), lead = 0, early;

	if (length == 0 || !told->writer || !is_known_to(told->writer, limit))
		return;
	/* Before a deadline a training may be told to save. */
	if (limit == LIMIT_DEADLINE)
		lead = p->lead_ms < p->deadline_ms / 2 ? p->lead_ms : p->deadline_ms / 2;
	early = limits[limit].since_ns + length - lead * WORLD_MS - told->made_ns;
	if (limits[limit].since_ns == 0)
		rule_breaks("C3", "limits.%s is reached and does not count",
			    flow_limit_names[limit]);
	else if (early > (limits[limit].by == told->writer ? 2 * WORLD_MS : HOSTS_APART_NS))
		rule_breaks("C3", "limits.%s is acted on %.1f s early", flow_limit_names[limit],
			    (double)early / 1e9);
}

static void begin(enum run_limit limit, const struct story_event *told)
{
	limits[limit].since_ns = story_begun_ns(told);
	limits[limit].by = told->writer;
	limits[limit].due.who = NULL;
}

static void on_event(const struct story *story, int64_t index)
{
	const struct story_event *told = &story->events[index];

	switch (told->event.kind) {
	case EV_RUN_CREATED:
		begin(LIMIT_DEADLINE, told);
		break;
	case EV_ATTEMPT_INTENDED:
		limits[LIMIT_QUEUE].since_ns = limits[LIMIT_START].since_ns = 0;
		break;
	case EV_ATTEMPT_SUBMITTED:
		begin(LIMIT_QUEUE, told);
		break;
	case EV_ATTEMPT_CLAIMED:
		if (limits[LIMIT_START].since_ns == 0)
			begin(LIMIT_START, told);
		break;
	case EV_LIMIT_REACHED:
		check_early(story, told);
		break;
	default:
		break;
	}
}

static bool counts_now(const struct flow *flow, enum run_limit limit)
{
	if (flow->state <= FLOW_NEW || flow->state >= FLOW_ENDING || flow->stop_requested)
		return false;
	if (limit == LIMIT_DEADLINE)
		return true;
	if (!flow_has_attempts(flow))
		return false;
	return limit == LIMIT_QUEUE ? flow->attempt_state == ATTEMPT_SUBMITTED
				    : flow->attempt_state == ATTEMPT_RUNNING && !flow->started;
}

/* By now even a patient one has noticed: the check-up of the nodes is over as well, and a training
 * that ends by itself before the deadline was let end. Any other is to save before the deadline. */
static bool is_due(const struct story *story, enum run_limit limit)
{
	int64_t length = length_ns(story, limit);

	if (limit == LIMIT_START)
		length += story->policy.health_ms * WORLD_MS;
	if (limit == LIMIT_DEADLINE && story->shadow.state == FLOW_TRAIN &&
	    !schedule_clock_stepped())
		length -= budget_lead_ms(story) * WORLD_MS;
	return length > 0 && limits[limit].since_ns > 0 &&
	       now_ns >= limits[limit].since_ns + length + HOSTS_APART_NS &&
	       counts_now(&story->shadow, limit);
}

static void on_second(const struct story *story)
{
	const struct process *driver = seen_driver();

	for (enum run_limit limit = LIMIT_DEADLINE; limit < LIMIT_COUNT; limit++) {
		struct stretch *due = &limits[limit].due;
		int64_t late;

		if (length_ns(story, limit) == 0)
			continue;
		if (!is_known_to(driver, limit) || !is_due(story, limit)) {
			due->who = NULL;
			continue;
		}
		if (due->who != driver || sqlite_is_held())
			stretch_begin(due, driver);
		late = stretch_ns(due);
		if (late > figure_ns(far_away() ? C3_ACTED_FAR : C3_ACTED))
			rule_breaks("C3", "limits.%s is due for %.1f s and nothing is done",
				    flow_limit_names[limit], (double)late / 1e9);
	}
}

/* It could not be acted on until now. */
static void put_off(enum run_limit limit, const struct process *who)
{
	if (limits[limit].due.who == who)
		stretch_begin(&limits[limit].due, who);
}

/* Nothing can be acted on while it cannot be journalled. */
static void on_journal(const struct process *who, enum journal_word word)
{
	if (word != JOURNAL_REFUSED)
		return;
	for (enum run_limit limit = LIMIT_DEADLINE; limit < LIMIT_COUNT; limit++)
		put_off(limit, who);
}

/* True if it is what a node says of the attempt that is under way. */
static bool is_report(const struct refusal *refusal)
{
	const struct story *story = story_of(playing->run);
	size_t len = strlen(refusal->about), ending = strlen("/" REPORT_FILE);
	char folder[64];

	if (!story || len < ending || strcmp(refusal->about + len - ending, "/" REPORT_FILE) != 0)
		return false;
	snprintf(folder, sizeof folder, "/%s-%lld/", flow_phase_names[story->shadow.phase],
		 (long long)story->shadow.attempt);
	return strstr(refusal->about, folder) != NULL;
}

/* The same while a call of the journal has not come to an end: SQLite tries again by itself, also
 * (on_second) while another program writes. */
static void on_refusal(const struct refusal *refusal)
{
	if (strstr(refusal->about, "state"))
		on_journal(refusal->who, JOURNAL_REFUSED);
	/* Only the nodes' reports and their log tell whether the attempt is claimed, has started,
	 * and why it has ended. While they cannot be read, nobody knows whether it still waits, and
	 * one that runs is not to be ended for having waited (C9: a look that failed is unknown). A
	 * deadline needs no report. */
	if (is_report(refusal) || refusal->id == CALL_cloud_logs) {
		put_off(LIMIT_QUEUE, refusal->who);
		put_off(LIMIT_START, refusal->who);
	}
}

/* An attempt is judged after it was looked at; what may have been submitted is found before it is
 * ended. */
static void on_engine(const struct story *story, const struct engine_word *word)
{
	(void)story;
	if (word->answered || (word->what != WORD_DESCRIBE && word->what != WORD_FIND))
		return;
	for (enum run_limit limit = LIMIT_DEADLINE; limit < LIMIT_COUNT; limit++)
		if (word->what == WORD_FIND || limit == LIMIT_QUEUE || limit == LIMIT_START)
			put_off(limit, word->who);
}

const struct clock_rule clock_limits = {
	.reset = reset,
	.on_event = on_event,
	.on_second = on_second,
	.on_engine = on_engine,
	.on_journal = on_journal,
	.on_refusal = on_refusal,
};
