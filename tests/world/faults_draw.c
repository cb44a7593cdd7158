/* Which faults a schedule has: see faults.h. */
#include <errno.h>
#include <string.h>

#include "tests/world/faults.h"
#include "tests/world/hangs.h"
#include "tests/world/kernel.h"
#include "tests/world/play.h"

#define HOUR_NS (3600 * WORLD_S)

/* True for a call that asks a service, by the errors that only a service gives. */
static bool asks_service(enum call_id id)
{
	return call_rows[id].errors[0] == EHOSTUNREACH;
}

/* Of the service that runs the jobs. */
static bool asks_engine(enum call_id id)
{
	return strncmp(call_rows[id].name, "cloud_", strlen("cloud_")) == 0;
}

/* Calls that ask a service are few, and matter most: half of those that fail, if state or jobs are
 * far. */
static enum call_id draw_call(void)
{
	bool far = (playing->setting.far_workspace || playing->setting.cloud) && chance_one_in(2);
	bool of_engine = far && playing->setting.cloud && chance_one_in(2);
	enum call_id id;

	do
		id = (enum call_id)chance_below(CALL_COUNT);
	while (call_rows[id].kind == CALL_OWN || call_rows[id].errors[0] == 0 ||
	       asks_service(id) != far || (of_engine && !asks_engine(id)));
	return id;
}

static int draw_error(enum call_id id)
{
	int64_t count = 0;

	while (call_rows[id].errors[count])
		count++;
	return call_rows[id].errors[chance_below(count)];
}

/* A span: mostly seconds, sometimes minutes, rarely longer than an hour. */
static int64_t draw_span(void)
{
	switch (chance_below(30)) {
	case 0:
		return 1 + chance_below(2 * HOUR_NS);
	case 1:
	case 2:
	case 3:
	case 4:
		return 1 + chance_below(300 * WORLD_S);
	default:
		return 1 + chance_below(20 * WORLD_S);
	}
}

static void draw_call_fault(struct fault *fault)
{
	fault->target = (enum target)chance_below(TARGET_COMMAND); /* ours, or any */
	fault->mode = (enum fault_mode)chance_below(MODE_COUNT);
	if (fault->kind == FAULT_SHORT) {
		fault->mode = MODE_MINUTE;
		return;
	}
	if (fault->kind == FAULT_PLACE) {
		place_draw(fault);
		return;
	}
	fault->call = draw_call();
	if (asks_engine(fault->call)) /* drivers do, and nobody else */
		fault->target = chance_one_in(2) ? TARGET_ANY : TARGET_DRIVER;
	if (fault->kind == FAULT_CALL) {
		fault->error = draw_error(fault->call);
		fault->done = call_rows[fault->call].kind == CALL_CHANGES && chance_one_in(4);
		/* Each takes a signal: nobody sends them for a minute. */
		if (fault->error == EINTR && fault->mode > MODE_THRICE)
			fault->mode = MODE_THRICE;
	} else {
		fault->mode = chance_one_in(2) ? MODE_ONCE : MODE_THRICE;
	}
}

static void draw_clock(struct fault *fault)
{
	static const int64_t steps[] = { 1, 60, 3600, INT64_C(10) * 365 * 86400 };
	int64_t step = steps[chance_below(4)] * WORLD_S;

	fault->span_ns = chance_one_in(2) ? step : -step;
}

/* Half of the faults come by the clock. The others follow an event, for much of a run's time
 * nothing happens that a fault could meet. */
static void draw_time(struct fault *fault)
{
	if (chance_one_in(2)) {
		fault->at_ns = 1 + chance_below(playing->calm_from_ns);
		return;
	}
	fault->at_event = 1 + chance_below(EVENTS_WANTED);
	fault->at_ns = chance_below(chance_one_in(2) ? WORLD_S / 10 : 3 * WORLD_S);
}

/* It kills again and again, often the helpers, which need the most memory; through hours of
 * training every few minutes. */
static void draw_killer(struct fault *fault)
{
	fault->mode = MODE_CALM;
	fault->span_ns += 5 * WORLD_S;
	if (chance_one_in(2))
		fault->target = TARGET_HELPER;
	if (playing->setting.step_ns > 30 * WORLD_S)
		fault->span_ns = (300 + chance_below(600)) * WORLD_S;
}

static void draw_one(struct fault *fault, enum fault_kind kind)
{
	*fault = (struct fault){ .kind = kind };
	draw_time(fault);
	fault->span_ns = draw_span();
	fault->chance = chance_next();
	if (kind <= FAULT_IN_CALLS)
		draw_call_fault(fault);
	else if (kind == FAULT_CLOCK)
		draw_clock(fault);
	else if (kind == FAULT_SIGNAL)
		fault->target = TARGET_DRIVER;
	else if (kind == FAULT_KILL || kind == FAULT_PAUSE)
		fault->target = (enum target)chance_below(TARGET_COUNT);
	if (kind == FAULT_OUTAGE)
		fault->mode = chance_one_in(2) ? MODE_ONCE : MODE_MINUTE;
	/* Longer than a lease is valid: who sleeps may find another one in its place. */
	if ((kind == FAULT_PAUSE || kind == FAULT_SUSPEND || kind == FAULT_OUTAGE) &&
	    chance_one_in(3))
		fault->span_ns = (60 + chance_below(120)) * WORLD_S;
	if (kind == FAULT_KILL && chance_one_in(4))
		draw_killer(fault);
}

static bool has_place(enum fault_kind kind)
{
	bool cloudy = kind == FAULT_TAKE_MACHINE || kind == FAULT_TAKE_DOWN;

	return cloudy                 ? playing->setting.cloud
	       : kind == FAULT_BUSY   ? playing->setting.state == STATE_SQLITE
	       : kind == FAULT_OUTAGE ? playing->setting.far_workspace
				      : true;
}

/* How often a family is drawn, in relation to the others. */
static const int weights[FAULT_KINDS] = {
	[FAULT_PLACE] = 6,        [FAULT_CALL] = 6,      [FAULT_SLOW] = 1,    [FAULT_SHORT] = 1,
	[FAULT_KILL] = 4,         [FAULT_PAUSE] = 3,     [FAULT_SUSPEND] = 1, [FAULT_REBOOT] = 1,
	[FAULT_POWER] = 3,        [FAULT_CLOCK] = 1,     [FAULT_OUTAGE] = 2,  [FAULT_DISK_FULL] = 1,
	[FAULT_TAKE_MACHINE] = 2, [FAULT_TAKE_DOWN] = 1, [FAULT_STOP] = 6,    [FAULT_SIGNAL] = 2,
	[FAULT_SUPERSEDE] = 2,    [FAULT_LOSS] = 2,      [FAULT_RIVAL] = 2,   [FAULT_BUSY] = 2,
};

static enum fault_kind draw_kind(void)
{
	int64_t sum = 0, at;
	int kind = 0;

	for (int i = 0; i < FAULT_KINDS; i++)
		sum += weights[i];
	for (at = chance_below(sum); at >= weights[kind]; kind++)
		at -= weights[kind];
	return (enum fault_kind)kind;
}

static bool is_of_people(enum fault_kind kind)
{
	return kind == FAULT_STOP || kind == FAULT_SIGNAL || kind == FAULT_TAKE_DOWN;
}

/* Where something goes wrong, or somebody has begun to act, people act soon: within seconds of one
 * of the faults drawn before. */
static void follow(struct fault *fault, int before)
{
	const struct fault *first = before > 0 ? &faults[chance_below(before)] : NULL;

	if (!first)
		return;
	fault->at_event = first->at_event;
	fault->at_ns = first->at_ns + chance_below(chance_one_in(2) ? WORLD_S : 10 * WORLD_S);
}

/* What only shows where a run is to end: a job that cannot be told to save, or to stop, or whose
 * agent is not there for long. */
static bool shows_in_a_stop(const struct fault *fault)
{
	switch (fault->kind) {
	case FAULT_PLACE:
		return strcmp(place_names[fault->place], "drain.json") == 0;
	case FAULT_CALL:
		return fault->call == CALL_cloud_stop;
	case FAULT_PAUSE:
	case FAULT_OUTAGE:
		return fault->span_ns > 60 * WORLD_S && chance_one_in(4);
	default:
		return false;
	}
}

/* A user stops the run while that lasts. */
static void draw_stop_in(const struct fault *first)
{
	struct fault *stop = &faults[fault_count++];

	*stop = (struct fault){ .kind = FAULT_STOP };
	stop->at_event = first->at_event;
	stop->at_ns = first->at_ns + chance_below(20 * WORLD_S);
}

void faults_draw(void)
{
	int families = 1 + (int)chance_below(5);

	fault_count = 0;
	for (int family = 0; family < families && !playing->setting.calm; family++) {
		enum fault_kind kind = draw_kind();
		int times = 1 + (int)chance_below(8);

		if (!has_place(kind))
			continue;
		if (kind == FAULT_STOP || kind == FAULT_TAKE_DOWN)
			times = 1 + (int)chance_below(3);
		while (times-- > 0 && fault_count < FAULTS_MAX) {
			draw_one(&faults[fault_count], kind);
			if (is_of_people(kind) && chance_one_in(2))
				follow(&faults[fault_count], fault_count);
			fault_count++;
			if (fault_count < FAULTS_MAX && shows_in_a_stop(&faults[fault_count - 1]))
				draw_stop_in(&faults[fault_count - 1]);
		}
	}
	hangs_draw();
}
