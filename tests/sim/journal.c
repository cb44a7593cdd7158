/*
 * The journal of a simulated run: numbered, append-only, written only if the
 * number is free. What is appended is durable at once; what the writer is told
 * may be otherwise.
 */
#include "tests/sim/sim.h"

#include <stdio.h>
#include <string.h>

void machine_apply(const struct world *w, struct flow *flow, const struct event *ev)
{
	flow_apply(flow, ev);
	if (w->plant && w->plant->machine)
		w->plant->machine(flow, ev);
}

static const char *keep(struct world *w, const char *text)
{
	size_t len = strlen(text) + 1;
	char *at = w->arena + w->arena_len;

	if (w->arena_len + len > ARENA_MAX)
		return "";
	memcpy(at, text, len);
	w->arena_len += len;
	return at;
}

/* The journal's copy owns its strings. */
static void keep_strings(struct world *w, struct event *ev)
{
	static int strings[EVF_COUNT], count; /* the fields that are text */

	if (count == 0)
		for (int id = 0; id < EVF_COUNT; id++)
			if (event_fields[id].type == EVT_STR)
				strings[count++] = id;
	for (int i = 0; i < count; i++) {
		const char **text = (const char **)((char *)ev + event_fields[strings[i]].offset);

		if (ev->present & FIELD_SET_OF(strings[i]))
			*text = keep(w, *text);
	}
}

static void count_event(const struct world *w, const struct event *ev)
{
	const uint64_t parts[] = { (uint64_t)ev->kind,  (uint64_t)ev->at.ms,
				   (uint64_t)ev->phase, (uint64_t)ev->attempt,
				   (uint64_t)ev->class, (uint64_t)ev->step,
				   (uint64_t)ev->until, (uint64_t)ev->exit_code };
	int rule = flow_rule_find(&w->shadow, ev);

	counts.events++;
	counts.kinds[ev->kind]++;
	if (ev->kind == EV_LIMIT_REACHED)
		counts.limits[ev->limit]++;
	if (rule >= 0)
		counts.rules[rule][w->shadow.attempt_state]++;
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		counts.digest = (counts.digest ^ parts[i]) * UINT64_C(0x100000001b3);
}

static void append(struct world *w, const struct event *ev)
{
	struct event *kept = &w->events[w->count];

	*kept = *ev;
	kept->seq = ++w->count;
	keep_strings(w, kept);
	count_event(w, kept);
	machine_apply(w, &w->shadow, kept);
	counts.states[w->shadow.state][w->shadow.attempt_state]++;
	if (kept->kind == EV_RUN_ENDED && kept->exit_code >= 0 && kept->exit_code < 8)
		counts.outcomes[kept->state][kept->exit_code]++;
}

enum append journal_append(struct world *w, int64_t seq, const struct event *ev, int who)
{
	const char *name = driver_name(who);

	if (seq != w->count + 1)
		return APPEND_TAKEN;
	if (who >= 0 && strikes(w, FAULT_APPEND_FAILS)) {
		TRACE(w, name, "cannot append %s", event_rows[ev->kind].name);
		return APPEND_FAILED;
	}
	if (w->count == EVENTS_MAX || w->arena_len > ARENA_MAX - 8192) {
		w->broken = 5;
		snprintf(w->why, sizeof w->why, "the run does not come to an end");
		return APPEND_FAILED;
	}
	w->writer[w->count] = who < 0                           ? -1
			      : ev->kind == EV_DRIVER_TOOK_OVER ? ev->epoch
								: w->drivers[who].epoch;
	append(w, ev);
	if (w->trace)
		trace_event(w, name, &w->events[w->count - 1]);
	if (who >= 0 && strikes(w, FAULT_APPEND_AMBIGUOUS)) {
		TRACE(w, name, "is told that the append failed");
		return APPEND_FAILED;
	}
	return APPEND_DONE;
}

int64_t journal_find(const struct world *w, enum event_kind kind, enum phase phase, int64_t attempt,
		     int64_t seq)
{
	for (int64_t i = seq; i > 0; i--) {
		const struct event *ev = &w->events[i - 1];

		if (ev->kind == kind && ev->phase == phase && ev->attempt == attempt)
			return i;
	}
	return 0;
}
