/*
 * One schedule: a world is drawn from the seed, then whoever is due acts, one
 * step at a time, until the run has ended and nothing of it moves any more.
 * Users, outages and clocks act too. After a while the faults cease, and then
 * the run has to end.
 */
#include "tests/sim/sim.h"
#include "tests/support/flow_names.h"

#include <stdio.h>
#include <string.h>

#define CALM_AFTER 1500 /* steps with faults */
#define STEPS_MAX  20000

const char *const fault_names[FAULT_COUNT] = {
	"submit refused",
	"submit accepted, reply lost",
	"submit request lost",
	"submit listed late",
	"submit doubled",
	"engine unseen",
	"stop lost",
	"report late",
	"report twice",
	"end reported late",
	"driver crashes",
	"driver paused, other takes over",
	"append fails",
	"append done, writer told it failed",
	"job fails",
	"spot",
	"capacity",
	"restarted by the engine",
	"orphan: reported ended, lives on",
	"cancelled at the engine",
	"cache incomplete, exit 0",
	"cache complete, exit not 0",
	"cache cannot be listed",
	"checkpoint partial",
	"stop requested",
	"drain requested",
	"queued for very long",
	"command never begins",
	"drain ignored by the script",
	"checkpoint ignored by the script",
	"checkpoints cannot be listed",
	"checkpoint damaged later",
	"clock jumps",
	"another run has the graph key",
	"compiler is another one in training",
	"claim on the graph key unreadable",
	"no machine for the first 20 submits",
	"no machine for an hour",
	"25 questions in a row without an answer",
};

/* splitmix64 */
uint64_t rng_next(struct rng *rng)
{
	uint64_t x = rng->state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

int64_t rng_below(struct rng *rng, int64_t n)
{
	return (int64_t)(((rng_next(rng) >> 32) * (uint64_t)n) >> 32);
}

bool strikes(struct world *w, enum fault fault)
{
	if (w->rate[fault] == 0 || w->calm || rng_below(&w->rng, 1024) >= w->rate[fault])
		return false;
	counts.faults[fault]++;
	return true;
}

int64_t some_time(struct world *w, int64_t pace)
{
	int64_t near = 1 + rng_below(&w->rng, pace);

	return rng_below(&w->rng, 16) == 0 ? near * 20 : near;
}

/* ---- drawing a world ------------------------------------------------------------- */

/* Each schedule has its own faults at its own rates: with all of them on all the
 * time, most of them would hide the others. */
static void draw_faults(struct world *w)
{
	static const int rates[] = { 4, 16, 64, 200 };
	uint64_t which = rng_next(&w->rng);

	for (int i = 0; i < FAULT_COUNT; i++) {
		w->rate[i] = 0;
		if ((which >> i & 1) != 0)
			w->rate[i] = rates[rng_below(&w->rng, 4)];
	}
	/* These strike at each of very many steps. */
	w->rate[FAULT_CRASH] /= 4;
	w->rate[FAULT_JOB_FAILS] /= 2;
	w->rate[FAULT_CANCELLED] /= 16;
	w->rate[FAULT_ORPHAN] /= 8;
	w->rate[FAULT_SUBMIT_REFUSED] /= 2;
	w->rate[FAULT_START_HANGS] /= 4;
	w->rate[FAULT_OTHER_COMPILER] *= 2;
	w->rate[FAULT_DESCRIBE_SILENT] /= 4;
}

/* Mostly there is no limit, else one that may be reached or not. */
static int64_t some_limit(struct world *w, int64_t span)
{
	return rng_below(&w->rng, 4) == 0 ? 1 + rng_below(&w->rng, span) : 0;
}

static void draw_limits(struct world *w)
{
	struct flow_policy *p = &w->policy;
	int64_t pace = w->job_pace;

	p->stop_on_mismatch = rng_below(&w->rng, 4) != 0;
	p->jit_graphs = p->compiles ? rng_below(&w->rng, 4) : -1;
	p->jit_action = (enum jit_action)rng_below(&w->rng, JIT_ACTION_COUNT);
	p->compile_workers = rng_below(&w->rng, 9);
	p->drain_ms = rng_below(&w->rng, 4) != 0 ? 1 + rng_below(&w->rng, 40 * pace) : 0;
	p->lead_ms = rng_below(&w->rng, 4) == 0 ? p->drain_ms : 0;
	p->deadline_ms = some_limit(w, 400 * pace);
	p->queue_ms = some_limit(w, 40 * pace);
	p->start_ms = some_limit(w, 40 * pace);
	p->health_ms = some_limit(w, 20 * pace);
	p->unreachable_ms = some_limit(w, 60 * pace);
	p->price_per_ms = rng_below(&w->rng, 2) == 0 ? 0.001 : 0;
	if (p->price_per_ms > 0)
		p->cost_usd = p->price_per_ms * (double)some_limit(w, 200 * pace);
}

static void draw_policy(struct world *w)
{
	static const int64_t paces[] = { 20, 1 * SECOND, 10 * SECOND, 60 * SECOND };
	struct flow_policy *p = &w->policy;

	memset(p, 0, sizeof *p);
	snprintf(p->run, sizeof p->run, "s%llu-%d", (unsigned long long)w->schedule, w->run_number);
	p->compiles = rng_below(&w->rng, 4) != 0;
	p->train_on_incomplete = rng_below(&w->rng, 4) == 0;
	p->nodes = (int)(1 + rng_below(&w->rng, 4));
	p->retry_attempts = 1 + rng_below(&w->rng, 12);
	p->retry_without_progress = 1 + rng_below(&w->rng, 6);
	p->backoff_first_ms = 30 * SECOND;
	p->backoff_max_ms = 900 * SECOND;
	w->engine_dedupes = rng_below(&w->rng, 2) == 0;
	w->cache_whole = rng_below(&w->rng, 4) == 0;
	w->goal = 30 + rng_below(&w->rng, 100);
	w->driver_pace = paces[rng_below(&w->rng, 3)];
	w->job_pace = paces[1 + rng_below(&w->rng, 3)];
	draw_limits(w);
}

int64_t draw_time(struct world *w, enum fault fault, int64_t span)
{
	if (w->rate[fault] == 0 || w->calm)
		return NEVER;
	return w->now + 1 + rng_below(&w->rng, span);
}

static void begin_droughts(struct world *w, int64_t span)
{
	w->silent_left = w->silent_row = w->capacity_ends = 0;
	w->drought_until = 0;
	w->drought_left = strikes(w, FAULT_DROUGHT_SUBMITS) ? DRY_SUBMITS : 0;
	w->drought_waits = rng_below(&w->rng, 2) == 0;
	w->drought_at = NEVER;
	if (w->rate[FAULT_DROUGHT_HOUR] > 0 && !w->calm && rng_below(&w->rng, 3) == 0)
		w->drought_at = rng_below(&w->rng, 2) ? draw_time(w, FAULT_DROUGHT_HOUR, span)
						      : 1; /* later, few jobs begin */
}

static void begin_run(struct world *w)
{
	int64_t span;

	draw_policy(w);
	span = 200 * w->job_pace;
	w->now = 0;
	w->calm = false;
	w->steps = 0;
	w->unseen_until = 0;
	w->count = 0;
	w->arena_len = 0;
	w->job_count = 0;
	w->checkpoint_count = 0;
	w->submit_count = 0;
	w->checked = 0;
	w->epoch_checked = 0;
	w->holding = (struct holding){ .phase = PHASE_COUNT };
	w->held_to_end = false;
	w->unclaimed_mark = NULL;
	w->submits_checked = 0;
	w->start_at = NEVER;
	w->whole_at = 0;
	memset(w->claims, 0, sizeof w->claims);
	memset(w->claims_checked, 0, sizeof w->claims_checked);
	flow_init(&w->shadow, &w->policy);
	for (int i = 0; i < DRIVERS; i++) {
		w->wall_offset[i] = 0;
		w->drivers[i].alive = false;
		w->drivers[i].paused_until = 0;
	}
	w->stop_at = rng_below(&w->rng, 3) ? NEVER : draw_time(w, FAULT_REQUEST_STOP, span);
	w->drain_at = rng_below(&w->rng, 3) ? NEVER : draw_time(w, FAULT_REQUEST_DRAIN, span);
	w->pause_at = draw_time(w, FAULT_PAUSE, span);
	w->jump_at = draw_time(w, FAULT_CLOCK_JUMP, span);
	w->damage_at = draw_time(w, FAULT_CHECKPOINT_DAMAGED, span);
	w->job_offset = 0;
	if (w->rate[FAULT_CLOCK_JUMP] > 0 && rng_below(&w->rng, 2) == 0)
		w->job_offset = rng_below(&w->rng, 2 * HOUR) - HOUR;
	w->unseen_at = draw_time(w, FAULT_ENGINE_UNSEEN, span);
	begin_droughts(w, span);
	key_begin(w);
	TRACE(w, "world", "run %s: %s, engine %s a second submit, cache %s, %d steps",
	      w->policy.run, w->policy.compiles ? "compiles" : "does not compile",
	      w->engine_dedupes ? "finds" : "doubles", w->cache_whole ? "warm" : "cold",
	      (int)w->goal);
	driver_start(w, 0);
}

/* ---- those who act from outside ----------------------------------------------------- */

static void request(struct world *w, enum event_kind kind, enum fault fault)
{
	struct event ev = { .kind = kind };

	if (w->count == 0 || w->shadow.state == FLOW_ENDED)
		return;
	/* The user's clock is not the driver's. */
	ev.at.ms = w->shadow.at.ms + rng_below(&w->rng, 2 * HOUR) - HOUR;
	EVENT_SET_STR(&ev, reason, "because");
	counts.faults[fault]++;
	journal_append(w, w->count + 1, &ev, -1);
}

static void request_drain(struct world *w)
{
	w->drain_at = NEVER;
	request(w, EV_REQUEST_DRAIN, FAULT_REQUEST_DRAIN);
}

static void request_stop(struct world *w)
{
	w->stop_at = NEVER;
	request(w, EV_REQUEST_STOP, FAULT_REQUEST_STOP);
	if (rng_below(&w->rng, 4) == 0)
		w->stop_at = draw_time(w, FAULT_REQUEST_STOP, 20 * w->job_pace);
}

/* One driver stands still for longer than its lease, another takes over. */
static void pause_driver(struct world *w)
{
	w->pause_at = draw_time(w, FAULT_PAUSE, 200 * w->job_pace);
	for (int i = 0; i < DRIVERS; i++) {
		struct driver *d = &w->drivers[i];

		if (!d->alive || d->paused_until != 0 || w->drivers[1 - i].alive)
			continue;
		d->paused_until = w->now + some_time(w, 600 * SECOND);
		w->start_at = w->now + 60 * SECOND;
		counts.faults[FAULT_PAUSE]++;
		TRACE(w, driver_name(i), "is paused");
		return;
	}
}

static void jump_clock(struct world *w)
{
	int who = (int)rng_below(&w->rng, DRIVERS);

	w->jump_at = draw_time(w, FAULT_CLOCK_JUMP, 200 * w->job_pace);
	w->wall_offset[who] = rng_below(&w->rng, 2 * HOUR) - HOUR;
	counts.faults[FAULT_CLOCK_JUMP]++;
	TRACE(w, "world", "the clock of host %d is now off by %d s", who,
	      (int)(w->wall_offset[who] / SECOND));
}

static void damage_checkpoint(struct world *w)
{
	struct checkpoint *c;

	w->damage_at = draw_time(w, FAULT_CHECKPOINT_DAMAGED, 50 * w->job_pace);
	if (w->checkpoint_count == 0)
		return;
	/* Mostly the newest, which is the one that is wanted. */
	c = &w->checkpoints[rng_below(&w->rng, 2) ? w->checkpoint_count - 1
						  : rng_below(&w->rng, w->checkpoint_count)];
	if (!c->complete || c->damaged_at <= w->now)
		return;
	c->damaged_at = w->now;
	counts.faults[FAULT_CHECKPOINT_DAMAGED]++;
	TRACE(w, "world", "%s is damaged", c->url);
}

static void hide_engine(struct world *w)
{
	w->unseen_until = w->now + some_time(w, rng_below(&w->rng, 2) ? HOUR : 60 * SECOND);
	w->unseen_at = draw_time(w, FAULT_ENGINE_UNSEEN, 200 * w->job_pace);
	counts.faults[FAULT_ENGINE_UNSEEN]++;
	TRACE(w, "world", "the engine is not seen for %d s",
	      (int)((w->unseen_until - w->now) / SECOND));
}

static void begin_drought(struct world *w)
{
	w->drought_until = w->now + HOUR + some_time(w, HOUR);
	w->drought_at = NEVER;
	counts.faults[FAULT_DROUGHT_HOUR]++;
	TRACE(w, "world", "there is no machine for %d s",
	      (int)((w->drought_until - w->now) / SECOND));
}

static void start_driver(struct world *w)
{
	w->start_at = NEVER;
	for (int i = 0; i < DRIVERS; i++)
		if (w->drivers[i].alive && w->drivers[i].paused_until == 0)
			return; /* it has its lease */
	for (int i = 0; i < DRIVERS; i++)
		if (!w->drivers[i].alive) {
			TRACE(w, driver_name(i), "starts");
			driver_start(w, i);
			return;
		}
}

static void become_calm(struct world *w)
{
	TRACE(w, "world", "the faults are over");
	w->calm = true;
	w->stop_at = w->drain_at = w->pause_at = w->jump_at = w->unseen_at = w->damage_at = NEVER;
	w->key_at = w->drought_at = NEVER;
	w->drought_left = 0;
	if (w->drought_until > w->now)
		w->drought_until = w->now;
	if (w->key.until != NEVER)
		w->key.until = w->now;
	if (w->unseen_until > w->now)
		w->unseen_until = w->now;
}

/* ---- one step ------------------------------------------------------------------------- */

struct turn {
	int64_t at;
	struct job *job;
	int driver;
	void (*other)(struct world *w);
};

static void offer(struct turn *turn, int64_t at, struct job *job, int driver,
		  void (*other)(struct world *w))
{
	if (at < turn->at)
		*turn = (struct turn){ at, job, driver, other };
}

/* Whoever is due first acts. False: nothing moves any more. */
static bool act(struct world *w)
{
	struct turn turn = { NEVER, NULL, -1, NULL };

	offer(&turn, w->start_at, NULL, -1, start_driver);
	offer(&turn, w->stop_at, NULL, -1, request_stop);
	offer(&turn, w->drain_at, NULL, -1, request_drain);
	offer(&turn, w->pause_at, NULL, -1, pause_driver);
	offer(&turn, w->jump_at, NULL, -1, jump_clock);
	offer(&turn, w->damage_at, NULL, -1, damage_checkpoint);
	offer(&turn, w->unseen_at, NULL, -1, hide_engine);
	offer(&turn, w->key_at, NULL, -1, key_wanted);
	offer(&turn, w->drought_at, NULL, -1, begin_drought);
	offer(&turn, w->key.until, NULL, -1, key_other_ends);
	for (int i = 0; i < w->job_count; i++)
		if (job_alive(&w->jobs[i]))
			offer(&turn, w->jobs[i].next_at, &w->jobs[i], -1, NULL);
	for (int i = 0; i < DRIVERS; i++) {
		const struct driver *d = &w->drivers[i];

		if (d->alive)
			offer(&turn, d->paused_until ? d->paused_until : d->next_at, NULL, i, NULL);
	}
	if (turn.at == NEVER)
		return false;
	if (turn.at > w->now)
		w->now = turn.at;
	if (turn.job)
		job_act(w, turn.job);
	else if (turn.driver >= 0)
		driver_act(w, turn.driver);
	else
		turn.other(w);
	return true;
}

static bool is_over(const struct world *w)
{
	for (int i = 0; i < DRIVERS; i++)
		if (w->drivers[i].alive)
			return false;
	for (int i = 0; i < w->job_count; i++)
		if (job_alive(&w->jobs[i]))
			return false;
	return w->shadow.state == FLOW_ENDED;
}

static bool play_run(struct world *w)
{
	begin_run(w);
	while (!is_over(w)) {
		if (w->steps == CALM_AFTER)
			become_calm(w);
		if (w->steps++ == STEPS_MAX || !act(w)) {
			w->broken = 5;
			snprintf(w->why, sizeof w->why,
				 "the run does not come to an end: it stays in %s/%s",
				 flow_state_names[w->shadow.state],
				 attempt_state_names[w->shadow.attempt_state]);
			break;
		}
		if (w->broken == 0)
			rules_check(w);
		if (w->broken != 0)
			break;
	}
	if (w->broken == 0)
		rules_check_end(w);
	counts.runs++;
	counts.steps += (uint64_t)w->steps;
	return w->broken == 0;
}

bool world_play(struct world *w, int64_t events_min)
{
	uint64_t before = counts.events, events;
	bool whole = true;

	w->broken = 0;
	w->run_number = 0;
	w->rng.state = w->seed * UINT64_C(0x2545f4914f6cdd1d) + w->schedule * UINT64_C(0x9e3779b9);
	w->rng.state = rng_next(&w->rng);
	draw_faults(w);
	do {
		whole = play_run(w);
		w->run_number++;
	} while (whole && counts.events - before < (uint64_t)events_min);
	events = counts.events - before;
	counts.schedules++;
	if (counts.events_least == 0 || events < counts.events_least)
		counts.events_least = events;
	if (events > counts.events_most)
		counts.events_most = events;
	return whole;
}
