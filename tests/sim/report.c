/* What was reached, as counts; and one schedule as a timeline. */
#include "tests/sim/sim.h"
#include "tests/support/flow_names.h"

#include "jobs/base/auto.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct counts counts;

static bool must_reach; /* a count of zero is a failure */
static bool all_reached;

static void line(uint64_t count, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void line(uint64_t count, const char *fmt, ...)
{
	va_list args;

	printf("%14" PRIu64 "  ", count);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	if (count == 0 && must_reach) {
		printf("   <-- never reached");
		all_reached = false;
	}
	printf("\n");
}

/* Attempt states mean something only in these. */
static bool has_attempt(int state)
{
	return state == FLOW_PRECOMPILE || state == FLOW_TRAIN;
}

static void print_states(void)
{
	printf("\nstates\n");
	for (int s = 0; s < FLOW_STATE_COUNT; s++) {
		if (s == FLOW_NEW) /* before the first event */
			continue;
		if (!has_attempt(s))
			line(counts.states[s][ATTEMPT_NONE], "%s", flow_state_names[s]);
		for (int a = 0; has_attempt(s) && a < ATTEMPT_STATE_COUNT; a++)
			line(counts.states[s][a], "%s/%s", flow_state_names[s],
			     attempt_state_names[a]);
	}
}

/* No journal is damaged in the simulator. */
static bool is_of_salvage(const char *rule)
{
	return strstr(rule, "damage") || strstr(rule, "the journal has lost");
}

static void print_rules(void)
{
	printf("\ntransitions: rows of the machine's table, with the attempt's state before\n");
	for (int r = 0; r < flow_rule_count(); r++) {
		uint64_t sum = 0;

		for (int a = 0; a < ATTEMPT_STATE_COUNT; a++)
			sum += counts.rules[r][a];
		if (is_of_salvage(flow_rule_name(r)))
			continue;
		line(sum, "%s", flow_rule_name(r));
		for (int a = 0; a < ATTEMPT_STATE_COUNT; a++)
			if (counts.rules[r][a] > 0 && counts.rules[r][a] < sum)
				printf("%30" PRIu64 "  %s\n", counts.rules[r][a],
				       attempt_state_names[a]);
	}
}

/* Events that decide nothing, and tell of what is not simulated: logs, outputs, images,
 * environments, a pool of machines, and effects that are refused. */
static bool is_simulated(enum event_kind kind)
{
	static const enum event_kind others[] = {
		EV_ATTEMPT_KEPT,    EV_DRIVER_WAITING, EV_DRIVER_WENT_ON,      EV_CHORE_FAILED,
		EV_IMAGE_MOVED,     EV_OUTPUTS_LEFT,   EV_ENVIRONMENT_CHECKED, EV_LOG_READ,
		EV_METRIC_GIVEN_UP, EV_WORKER_LOST,    EV_CHECKPOINT_REJECTED, EV_ATTEMPT_STALLED,
		EV_ATTEMPT_WENT_ON, EV_TRAIN_STRETCH,  EV_JOURNAL_SALVAGED,    EV_JOURNAL_SETTLED,
	};

	for (size_t i = 0; i < STK_LENGTH(others); i++)
		if (others[i] == kind)
			return false;
	return true;
}

bool counts_print(bool must_reach_all)
{
	must_reach = must_reach_all;
	all_reached = true;
	print_states();
	print_rules();
	printf("\nevents\n");
	for (int i = 0; i < EV_COUNT; i++)
		if (is_simulated((enum event_kind)i))
			line(counts.kinds[i], "%s", event_rows[i].name);
	printf("\nwishes\n");
	for (int i = 0; i < EFFECT_SETTLE; i++) {
		static const char *const names[EFFECT_SETTLE] = { "record",
								  "check cache",
								  "claim the graph key",
								  "find",
								  "submit",
								  "watch",
								  "choose a checkpoint",
								  "drain",
								  "stop",
								  "leave",
								  "verify",
								  "wait",
								  "done" };

		line(counts.effects[i], "%s", names[i]);
	}
	printf("\nfaults\n");
	for (int i = 0; i < FAULT_COUNT; i++)
		line(counts.faults[i], "%s", fault_names[i]);
	line(counts.doubled, "jobs that found the claim taken");
	line(counts.stood_down, "drivers that stood down");
	line(counts.left, "drivers that left what they could not see");
	line(counts.drained, "attempts that saved before they were stopped");
	line(counts.dry, "runs that went on after 20 submits without a machine");
	line(counts.dry_hours, "runs that went on after an hour without a machine");
	line(counts.silences, "jobs seen again after 25 questions without an answer");
	for (int i = LIMIT_NONE + 1; i < LIMIT_COUNT; i++)
		line(counts.limits[i], "limit: %s", flow_limit_names[i]);
	printf("\nledger: events after which a bin was not empty\n");
	for (int i = 0; i < BIN_COUNT; i++)
		if (i != BIN_PROVISION && i != BIN_PULL && i != BIN_HEALTH && i != BIN_EVALUATE &&
		    i != BIN_INFER) /* nothing tells of these yet */
			line(counts.bins[i], "%s", ledger_bin_names[i]);
	printf("\nends\n");
	line(counts.outcomes[OUTCOME_SUCCEEDED][0], "succeeded, exit 0");
	line(counts.outcomes[OUTCOME_FAILED][1], "failed, exit 1");
	line(counts.outcomes[OUTCOME_REFUSED][4], "refused, exit 4");
	line(counts.outcomes[OUTCOME_REFUSED][5], "refused, exit 5");
	line(counts.outcomes[OUTCOME_STOPPED][6], "stopped, exit 6");
	printf("\nschedules %" PRIu64 "\nruns %" PRIu64 "\nevents %" PRIu64
	       "\nevents a schedule, least %" PRIu64 ", mean %" PRIu64 ", most %" PRIu64
	       "\nsteps, each checked against %d rules %" PRIu64 "\ndigest %016" PRIx64 "\n",
	       counts.schedules, counts.runs, counts.events, counts.events_least,
	       counts.schedules ? counts.events / counts.schedules : 0, counts.events_most, RULES,
	       counts.steps, counts.digest);
	return all_reached;
}

const char *driver_name(int who)
{
	return who < 0 ? "user" : who == 0 ? "driver 0" : "driver 1";
}

void trace_line(const struct world *w, const char *who, const char *fmt, ...)
{
	va_list args;

	printf("%3d:%02d:%02d.%03d  %-22s ", (int)(w->now / HOUR), (int)(w->now / 60000 % 60),
	       (int)(w->now / SECOND % 60), (int)(w->now % SECOND), who);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
}

void trace_event(const struct world *w, const char *who, const struct event *ev)
{
	char text[256];
	int len = snprintf(text, sizeof text, "#%d %s", (int)ev->seq, event_rows[ev->kind].name);

	if (EVENT_HAS(ev, phase))
		len += snprintf(text + len, sizeof text - (size_t)len, " %s",
				flow_phase_names[ev->phase]);
	if (EVENT_HAS(ev, attempt))
		len += snprintf(text + len, sizeof text - (size_t)len, " %d", (int)ev->attempt);
	if (EVENT_HAS(ev, class))
		len += snprintf(text + len, sizeof text - (size_t)len, " class %s",
				flow_class_names[ev->class]);
	if (EVENT_HAS(ev, step))
		len += snprintf(text + len, sizeof text - (size_t)len, " step %d", (int)ev->step);
	if (EVENT_HAS(ev, limit))
		len += snprintf(text + len, sizeof text - (size_t)len, " %s",
				flow_limit_names[ev->limit]);
	if (EVENT_HAS(ev, resumed_from))
		snprintf(text + len, sizeof text - (size_t)len, " from %s", ev->resumed_from);
	trace_line(w, who, "%s -> %s/%s", text, flow_state_names[w->shadow.state],
		   attempt_state_names[w->shadow.attempt_state]);
}
