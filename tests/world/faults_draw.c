/* Which faults a schedule has: see faults.h. */
#include <errno.h>
#include <string.h>

#include "jobs/base/mem.h"
#include "jobs/flow/event.h"
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
bool fault_asks_engine(enum call_id id)
{
	return strncmp(call_rows[id].name, "cloud_", strlen("cloud_")) == 0;
}

/* The last row is that of promotions. */
static enum call_id draw_row(void)
{
	return (enum call_id)chance_below(CALL_COUNT - !playing->setting.retrains);
}

/* Calls that ask a service are few, and matter most: half of those that fail, if state or jobs are
 * far. */
static enum call_id draw_call(void)
{
	bool far = (playing->setting.far_workspace || playing->setting.cloud) && chance_one_in(2);
	bool of_engine = far && playing->setting.cloud && chance_one_in(2);
	enum call_id id;

	do
		id = draw_row();
	while (call_rows[id].kind == CALL_OWN || call_rows[id].errors[0] == 0 ||
	       asks_service(id) != far || (of_engine && !fault_asks_engine(id)));
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

/* The service is away for those who ask it for this, or for all: for longer than a lookout for one
 * answer takes, mostly. */
static void draw_service(struct fault *fault)
{
	do
		fault->call = draw_row();
	while (!fault_asks_engine(fault->call));
	fault->error = chance_one_in(8) ? EACCES : EHOSTUNREACH;
	fault->target = TARGET_ANY;
	fault->mode = MODE_CALM;
	fault->done = chance_one_in(3);
	if (!chance_one_in(3))
		fault->span_ns = (30 + chance_below(400)) * WORLD_S;
}

static void draw_call_fault(struct fault *fault)
{
	if (fault->kind == FAULT_SERVICE) {
		draw_service(fault);
		return;
	}
	fault->target = (enum target)chance_below(TARGET_COMMAND); /* ours, or any */
	fault->mode = (enum fault_mode)chance_below(MODE_COUNT);
	if (fault->kind == FAULT_SHORT) {
		fault->mode = MODE_MINUTE;
		return;
	}
	if (fault->kind == FAULT_PLACE) {
		place_draw(fault);
		if (chance_one_in(3)) /* whoever asks */
			fault->target = TARGET_ANY;
		if (chance_one_in(3)) {
			fault->mode = MODE_MINUTE;
			fault->span_ns = (60 + chance_below(180)) * WORLD_S;
		}
		return;
	}
	fault->call = draw_call();
	if (fault_asks_engine(fault->call)) /* drivers do, and nobody else */
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

/* Events at which much is decided, or begins. */
static const enum event_kind turns[] = {
	EV_ATTEMPT_INTENDED,  EV_ATTEMPT_SUBMITTED,   EV_ATTEMPT_UNCERTAIN, EV_ATTEMPT_CLAIMED,
	EV_ATTEMPT_STARTED,   EV_ATTEMPT_LOST,        EV_ATTEMPT_ENDED,     EV_RETRY_SCHEDULED,
	EV_CHECKPOINT_CHOSEN, EV_CHECKPOINT_COMPLETE, EV_LIMIT_REACHED,     EV_REQUEST_STOP,
	EV_JIT_EXCEEDED,      EV_TRAIN_PROGRESS,      EV_DRIVER_TOOK_OVER,  EV_CACHE_CHECKED,
};

/* Faults that people act on. */
static const enum event_kind seen_by_people[] = {
	EV_LIMIT_REACHED, EV_LIMIT_REACHED, EV_JIT_EXCEEDED,   EV_RETRY_SCHEDULED,
	EV_ATTEMPT_LOST,  EV_REQUEST_STOP,  EV_TRAIN_PROGRESS, EV_ATTEMPT_STARTED,
};

static bool is_of_people(enum fault_kind kind)
{
	return kind == FAULT_STOP || kind == FAULT_SIGNAL || kind == FAULT_TAKE_DOWN;
}

static enum event_kind draw_turn(enum fault_kind kind)
{
	return is_of_people(kind) ? seen_by_people[chance_below(STK_LENGTH(seen_by_people))]
				  : turns[chance_below(STK_LENGTH(turns))];
}

static int64_t draw_soon(void)
{
	switch (chance_below(4)) {
	case 0:
		return 0;
	case 1:
		return chance_below(WORLD_S / 10);
	case 2:
		return chance_below(3 * WORLD_S);
	default:
		return chance_below(20 * WORLD_S);
	}
}

/* A third of the faults comes by the clock. The others follow an event, for much of a run's time
 * nothing happens that a fault could meet: any, or one at which the run takes a turn. */
static void draw_time(struct fault *fault)
{
	switch (chance_below(3)) {
	case 0:
		fault->at_ns = 1 + chance_below(playing->calm_from_ns);
		return;
	case 1:
		fault->at_event = 1 + chance_below(EVENTS_WANTED);
		fault->at_ns = chance_below(chance_one_in(2) ? WORLD_S / 10 : 3 * WORLD_S);
		return;
	default:
		fault->after = event_rows[draw_turn(fault->kind)].name;
		fault->at_event = 1 + chance_below(chance_one_in(2) ? 1 : 5);
		fault->at_ns = draw_soon();
		return;
	}
}

static bool goes_on_for_hours(void)
{
	return playing->setting.step_ns > 30 * WORLD_S;
}

/* It kills again and again, often the helpers, which need the most memory; through hours of
 * training every few minutes. */
static void draw_killer(struct fault *fault)
{
	fault->mode = MODE_CALM;
	fault->span_ns += 5 * WORLD_S;
	if (goes_on_for_hours() || chance_one_in(2))
		fault->target = TARGET_HELPER;
	if (goes_on_for_hours())
		fault->span_ns = (300 + chance_below(800)) * WORLD_S;
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
		fault->span_ns = (60 + chance_below(180)) * WORLD_S;
	if (kind == FAULT_KILL && (goes_on_for_hours() || chance_one_in(4)))
		draw_killer(fault);
}

static bool has_place(enum fault_kind kind)
{
	bool cloudy =
		kind == FAULT_TAKE_MACHINE || kind == FAULT_TAKE_DOWN || kind == FAULT_SERVICE;

	return cloudy                 ? playing->setting.cloud
	       : kind == FAULT_BUSY   ? playing->setting.state == STATE_SQLITE
	       : kind == FAULT_OUTAGE ? playing->setting.far_workspace
				      : true;
}

/* How often a family is drawn, in relation to the others. */
static const int weights[FAULT_KINDS] = {
	[FAULT_PLACE] = 8,        [FAULT_CALL] = 6,      [FAULT_SLOW] = 1,    [FAULT_SHORT] = 1,
	[FAULT_KILL] = 4,         [FAULT_PAUSE] = 3,     [FAULT_SUSPEND] = 1, [FAULT_REBOOT] = 1,
	[FAULT_POWER] = 3,        [FAULT_CLOCK] = 1,     [FAULT_OUTAGE] = 2,  [FAULT_DISK_FULL] = 1,
	[FAULT_TAKE_MACHINE] = 4, [FAULT_TAKE_DOWN] = 1, [FAULT_STOP] = 6,    [FAULT_SIGNAL] = 2,
	[FAULT_SUPERSEDE] = 3,    [FAULT_LOSS] = 3,      [FAULT_RIVAL] = 2,   [FAULT_BUSY] = 2,
	[FAULT_SERVICE] = 5,
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
		return strcmp(place_names[fault->place], "drain.json") == 0 ||
		       (strcmp(place_names[fault->place], "lease.json") == 0 && chance_one_in(2));
	case FAULT_SERVICE:
		return chance_one_in(4);
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
	stop->after = first->after;
	stop->at_event = first->at_event;
	stop->at_ns = first->at_ns +
		      chance_below(first->span_ns > 20 * WORLD_S ? first->span_ns : 20 * WORLD_S);
}

/* A person who has stopped a run and sees it go on stops it again, or types Ctrl-C. */
static void draw_again(int times)
{
	const struct fault *first = &faults[fault_count - 1];

	while (times-- > 0 && fault_count < FAULTS_MAX) {
		struct fault *again = &faults[fault_count++];

		*again = *first;
		again->kind = chance_one_in(2) ? FAULT_STOP : FAULT_SIGNAL;
		again->target = TARGET_DRIVER;
		again->at_ns += chance_below(chance_one_in(2) ? 3 * WORLD_S : 30 * WORLD_S);
	}
}

static void draw_at(enum fault_kind kind, enum event_kind at, int64_t times)
{
	struct fault *fault = &faults[fault_count++];

	draw_one(fault, kind);
	fault->after = event_rows[at].name;
	fault->at_event = times;
	fault->at_ns = draw_soon();
}

/* Around turns of the run that come once or twice in it: who has set a limit watches what becomes
 * of it, what is to save just then may be stuck, and a place refuses where an attempt ends. */
static void draw_around_turns(void)
{
	if (fault_count + 4 > FAULTS_MAX)
		return;
	if (playing->setting.deadline_s > 0 && chance_one_in(2))
		draw_at(FAULT_STOP, EV_LIMIT_REACHED, 1);
	if (playing->setting.deadline_s > 0 && chance_one_in(3)) {
		draw_at(FAULT_PAUSE, EV_LIMIT_REACHED, 1);
		faults[fault_count - 1].target = TARGET_AGENT;
	}
	if (chance_one_in(3)) {
		int64_t times = 1 + chance_below(3);

		draw_at(FAULT_PLACE, chance_one_in(2) ? EV_ATTEMPT_STARTED : EV_ATTEMPT_ENDED,
			times);
	}
	if (playing->setting.cloud && chance_one_in(3))
		draw_at(FAULT_SERVICE, EV_ATTEMPT_INTENDED, 1 + chance_below(2));
}

/* Who has begun something dies before it is done. */
static void draw_death(enum event_kind at)
{
	static const enum fault_kind kinds[] = { FAULT_KILL, FAULT_KILL, FAULT_POWER,
						 FAULT_SIGNAL };
	enum fault_kind kind = kinds[chance_below(STK_LENGTH(kinds))];
	struct fault *fault = &faults[fault_count];

	draw_at(kind, at, 1 + chance_below(2));
	fault->at_ns = chance_below(chance_one_in(2) ? WORLD_S / 20 : WORLD_S / 2);
	if (kind == FAULT_KILL && !chance_one_in(4)) {
		fault->target = TARGET_DRIVER;
		fault->mode = MODE_ONCE;
	}
}

/* Around what follows a training: candidates are chosen, tasks done, verdicts told, promotions
 * begun and ended. Drawn beside the rest, which is as it was without. */
static void draw_around_stages(void)
{
	static const enum event_kind at[] = {
		EV_CANDIDATE_CHOSEN, EV_TASK_DONE,    EV_EVALUATE_MEASURED, EV_GATE_JUDGED,
		EV_PROMOTE_INTENDED, EV_PROMOTE_DONE, EV_RUN_PAUSED,        EV_PROMOTE_INTENDED,
	};
	uint64_t kept[CHANCE_STATE];
	int64_t count;

	chance_keep(kept);
	chance_seed(~playing->seed, playing->number);
	count = chance_below(7);
	while (count-- > 0 && fault_count < FAULTS_MAX) {
		enum event_kind event = at[chance_below(STK_LENGTH(at))];
		enum fault_kind kind = draw_kind();

		if (chance_one_in(2))
			draw_death(event);
		else if (has_place(kind))
			draw_at(kind, event, 1 + chance_below(3));
		else
			continue;
		if (faults[fault_count - 1].kind == FAULT_PLACE && chance_one_in(2))
			place_draw_of_stages(&faults[fault_count - 1]);
	}
	chance_go_on(kept);
}

struct fault *fault_add(enum fault_kind kind)
{
	struct fault *fault = &faults[fault_count++];

	*fault = (struct fault){ .kind = kind, .chance = chance_next() };
	return fault;
}

void faults_draw(void)
{
	int families = 1 + (int)chance_below(5);

	fault_count = 0;
	/* In hours each machine kills something for want of memory, now and then. */
	if (goes_on_for_hours() && !playing->setting.calm && chance_one_in(2))
		draw_one(&faults[fault_count++], FAULT_KILL);
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
			if (kind == FAULT_STOP && chance_one_in(2))
				draw_again(1 + (int)chance_below(2));
			if (fault_count < FAULTS_MAX && shows_in_a_stop(&faults[fault_count - 1]))
				draw_stop_in(&faults[fault_count - 1]);
		}
	}
	/* Last, so that what they draw leaves the others as they are. */
	if (!playing->setting.calm)
		draw_around_turns();
	hangs_draw();
	faults_draw_together();
	if (playing->setting.retrains && !playing->setting.calm)
		draw_around_stages();
}
