/* Counts of what schedules have reached: see reached.h. */
#include "tests/world/reached.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/flow_names.h"
#include "tests/world/play.h"

/* Names that cannot be reached in this world, and why. */
static const struct unreached {
	const char *what, *why;
} unreached[] = {
#define UNREACHED(what, why) { what, why },
#include "tests/world/unreached.def"
#undef UNREACHED
};

void reached_add_story(struct reached *ret, const struct story *story)
{
	struct ledger_view view;
	struct flow flow;

	flow_init(&flow, &story->policy);
	for (int64_t i = 0; i < story->count; i++) {
		const struct event *ev = &story->events[i].event;
		int rule = flow_rule_find(&flow, ev);
		struct effects effects;

		if (rule >= 0 && rule < REACHED_RULES)
			ret->rules[rule]++;
		ret->kinds[ev->kind]++;
		flow_apply(&flow, ev);
		ret->states[flow.state][flow.attempt_state]++;
		flow_effects(&flow, ev->at, &effects);
		for (int k = 0; k < effects.count; k++)
			ret->effects[effects.list[k].kind]++;
		if (ev->kind == EV_LIMIT_REACHED)
			ret->limits[ev->limit]++;
		if (ev->kind == EV_RUN_ENDED && ev->exit_code >= 0 && ev->exit_code < 128)
			ret->exits[ev->exit_code]++;
	}
	if (story->count == 0)
		return;
	ledger_at(&flow.ledger, story->events[story->count - 1].event.at, &view);
	for (int bin = 0; bin < BIN_COUNT; bin++)
		ret->bins[bin] += view.ms[bin] > 0;
}

void reached_add_faults(struct reached *ret)
{
	for (int i = 0; i < fault_count; i++) {
		const struct fault *fault = &faults[i];

		if (fault->struck == 0)
			continue;
		ret->faults[fault->kind]++;
		if (fault->kind != FAULT_CALL)
			continue;
		ret->modes[fault->mode]++;
		ret->calls[fault->call]++;
		if (fault->error > 0 && fault->error < REACHED_ERRORS)
			ret->errors[fault->error]++;
	}
}

static void add_all(uint64_t *sum, const uint64_t *more, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sum[i] += more[i];
}

void reached_add(struct reached *sum, const struct reached *more)
{
	/* All of it is counts. */
	add_all((uint64_t *)sum, (const uint64_t *)more, sizeof *sum / sizeof(uint64_t));
}

/* ---- as text ---- */

static bool all_there, must_reach;

static const struct unreached *reason_for(const char *what)
{
	for (size_t i = 0; i < STK_LENGTH(unreached); i++)
		if (strcmp(unreached[i].what, what) == 0)
			return &unreached[i];
	return NULL;
}

static void line(uint64_t count, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void line(uint64_t count, const char *format, ...)
{
	const struct unreached *reason;
	char what[200];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof what, format, args);
	va_end(args);
	reason = reason_for(what);
	printf("%12" PRIu64 "  %s", count, what);
	if (count == 0 && reason) {
		printf("  (%s)", reason->why);
	} else if (count == 0 && must_reach) {
		printf("  <-- never reached");
		all_there = false;
	}
	putchar('\n');
}

static void print_flow(const struct reached *r)
{
	for (int s = 0; s < FLOW_STATE_COUNT; s++)
		for (int a = 0; a < ATTEMPT_STATE_COUNT; a++)
			if (s != FLOW_NEW && (state_has_attempts(s) || a == ATTEMPT_NONE))
				line(r->states[s][a], "state %s/%s", flow_state_names[s],
				     attempt_state_names[a]);
	assert(flow_rule_count() <= REACHED_RULES);
	for (int i = 0; i < flow_rule_count(); i++)
		line(r->rules[i], "transition %s", flow_rule_name(i));
	for (int i = 0; i < EV_COUNT; i++)
		line(r->kinds[i], "event %s", event_rows[i].name);
	for (int i = 0; i < EFFECT_KIND_COUNT; i++)
		line(r->effects[i], "effect %s", effect_kind_names[i]);
	for (int i = LIMIT_NONE + 1; i < LIMIT_COUNT; i++)
		line(r->limits[i], "limit %s", flow_limit_names[i]);
	for (int i = 0; i < BIN_COUNT; i++)
		line(r->bins[i], "bin %s", ledger_bin_names[i]);
}

/* Errors that some row of calls.def may return. */
static bool is_error_of_a_row(int error)
{
	for (int id = 0; id < CALL_COUNT; id++)
		for (const int *at = call_rows[id].errors; *at; at++)
			if (*at == error)
				return true;
	return false;
}

static void print_faults(const struct reached *r)
{
	for (int i = 0; i < FAULT_KINDS; i++)
		line(r->faults[i], "fault %s", fault_names[i]);
	for (int i = 0; i < MODE_COUNT; i++)
		line(r->modes[i], "a call fails %s", fault_mode_names[i]);
	for (int i = 0; i < REACHED_ERRORS; i++)
		if (is_error_of_a_row(i))
			line(r->errors[i], "error %s", strerrorname_np(i));
	/* Each call with each of its errors is tried by --points. */
	for (int i = 0; i < CALL_COUNT; i++)
		if (r->calls[i] > 0)
			line(r->calls[i], "call %s fails", call_rows[i].name);
}

bool reached_print(const struct reached *reached, bool must)
{
	static const int codes[] = { 0, 1, 4, 5, 6 };

	must_reach = must;
	all_there = true;
	print_flow(reached);
	for (size_t i = 0; i < STK_LENGTH(codes); i++)
		line(reached->exits[codes[i]], "exit %d", codes[i]);
	print_faults(reached);
	return all_there;
}
