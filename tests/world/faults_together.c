/*
 * Troubles that come together, as they do outside: what kills a compiler takes its disk along, and
 * who is killed while it saves is started again. The families of faults_draw.c strike alone, each
 * at its own time, and seldom meet. These follow what the run does, so that one is there when its
 * companion is; the calm waits for them. See faults.h.
 *
 * Each draw is a statement of its own: in which order arguments are drawn, compilers differ.
 */
#include <errno.h>

#include "jobs/base/mem.h"
#include "jobs/flow/event.h"
#include "tests/world/faults.h"
#include "tests/world/kernel.h"
#include "tests/world/play.h"
#include "tests/world/programs.h"

#define MOST   3 /* faults of one trouble */
#define EVERY  2 /* a schedule has one */
#define CALM_S 300, 600

static struct fault *after(enum fault_kind kind, enum event_kind event, int64_t times,
			   int64_t at_ns)
{
	struct fault *fault = fault_add(kind);

	fault->after = event_rows[event].name;
	fault->at_event = times;
	fault->at_ns = at_ns;
	return fault;
}

static struct fault *at_same_time(enum fault_kind kind, const struct fault *first)
{
	struct fault *fault = fault_add(kind);

	fault->after = first->after;
	fault->at_event = first->at_event;
	fault->at_ns = first->at_ns;
	return fault;
}

static int64_t seconds(int64_t least, int64_t most)
{
	return (least + chance_below(most - least + 1)) * WORLD_S;
}

/* ---- the troubles ---- */

/* A compiler dies in a graph, and the cache refuses: from then on, or the driver alone, a moment
 * long. */
static void with_its_cache(void)
{
	const struct setting *s = &playing->setting;
	int64_t at_ns = chance_below(GRAPHS_OF_JOB * s->compile_ns + WORLD_S);
	int64_t times = 1 + chance_below(2);
	enum event_kind event = chance_one_in(2) ? EV_ATTEMPT_SUBMITTED : EV_ATTEMPT_STARTED;
	struct fault *kill = after(FAULT_KILL, event, times, at_ns);
	struct fault *gone = at_same_time(FAULT_PLACE, kill);

	kill->target = TARGET_COMMAND;
	place_draw_of(gone, "/cache/", PLACE_REFUSES_COUNT);
	if (chance_one_in(2)) {
		gone->mode = MODE_MINUTE;
		gone->span_ns = seconds(20, 180);
	} else {
		gone->mode = chance_one_in(2) ? MODE_ONCE : MODE_THRICE;
		gone->target = TARGET_DRIVER;
	}
}

/* A training compiles a graph late, and the cache refuses the driver what is to be noted of it. */
static void with_a_late_graph(void)
{
	struct fault *gone = after(FAULT_PLACE, EV_JIT_COMPILED, 1, 0);

	place_draw_of(gone, "/cache/", PLACE_REFUSES_CHANGES);
	gone->target = TARGET_DRIVER;
	gone->mode = MODE_MINUTE;
	gone->span_ns = seconds(60, 240);
}

/* After a checkpoint: before the next one, or while that is saved, which may take seconds. */
static int64_t around_a_save(void)
{
	const struct setting *s = &playing->setting;
	int64_t apart_ns = s->saves_every * s->step_ns;

	return chance_one_in(2) ? chance_below(2 * apart_ns + WORLD_S)
				: 4 * apart_ns + chance_below(10 * WORLD_S);
}

static struct fault *kill_as_it_saves(void)
{
	int64_t at_ns = around_a_save(), times = 1 + chance_below(4);
	struct fault *kill = after(FAULT_KILL, EV_CHECKPOINT_COMPLETE, times, at_ns);

	kill->target = chance_one_in(3) ? TARGET_AGENT : TARGET_COMMAND;
	return kill;
}

static void while_it_saves(void)
{
	(void)kill_as_it_saves();
}

/* The newest checkpoint is damaged as well, before the training is started again. */
static void with_its_newest(void)
{
	struct fault *loss = at_same_time(FAULT_LOSS, kill_as_it_saves());

	loss->chance &= ~UINT64_C(1); /* of a checkpoint */
	loss->at_ns += chance_below(playing->setting.backoff_first_s * WORLD_S);
}

static void power_as_it_saves(void)
{
	int64_t at_ns = chance_one_in(2) ? chance_below(WORLD_S / 2) : around_a_save();
	int64_t times = 1 + chance_below(4);

	(void)after(FAULT_POWER, EV_CHECKPOINT_COMPLETE, times, at_ns);
}

/* A training fails so late that its limit comes in the pause before the next one, or when the next
 * one has computed nothing yet; or again and again, so that the pauses grow. */
static void before_its_deadline(void)
{
	const struct setting *s = &playing->setting;
	struct fault *kill = fault_add(FAULT_KILL);
	int64_t before_s = chance_below(s->backoff_first_s + 10);

	if (chance_one_in(2))
		before_s += s->checkpoint_grace_s;
	kill->target = TARGET_COMMAND;
	kill->at_ns = (s->deadline_s - before_s) * WORLD_S;
	if (kill->at_ns < WORLD_S || chance_one_in(3)) {
		kill->at_ns = seconds(1, 10);
		kill->mode = MODE_CALM;
		kill->span_ns = seconds(2, 10);
	}
}

/* The agent is stuck for all of a drain and longer, and whoever waits for it stops the run. */
static void stuck_in_a_drain(void)
{
	const struct setting *s = &playing->setting;
	struct fault *stuck = after(FAULT_PAUSE, EV_LIMIT_REACHED, 1, chance_below(WORLD_S / 10));
	struct fault *stop = at_same_time(FAULT_STOP, stuck);

	stuck->target = TARGET_AGENT;
	stuck->span_ns = (s->checkpoint_grace_s + s->grace_s) * WORLD_S + seconds(30, 120);
	stop->at_ns += chance_below(s->checkpoint_grace_s * WORLD_S);
}

/* The service takes no jobs, and answers all else, for longer than a driver waits. */
static void takes_no_jobs(void)
{
	struct fault *service = after(FAULT_SERVICE, EV_ATTEMPT_INTENDED, 1 + chance_below(2), 0);

	service->mode = MODE_CALM;
	service->call = CALL_cloud_submit;
	service->error = EHOSTUNREACH;
	service->chance |= 1; /* this request alone */
	service->span_ns = playing->setting.unreachable_s * WORLD_S + seconds(100, 200);
}

/* A job is claimed and its command does not begin, for its agent is stuck in the check-up; and for
 * a while nobody sees the job. */
static void out_of_sight(void)
{
	const struct setting *s = &playing->setting;
	int64_t at_ns = chance_below(WORLD_S), times = 1 + chance_below(2);
	struct fault *stuck = after(FAULT_PAUSE, EV_ATTEMPT_CLAIMED, times, at_ns);
	struct fault *unseen = at_same_time(s->cloud ? FAULT_SERVICE : FAULT_PLACE, stuck);

	stuck->target = TARGET_AGENT;
	stuck->span_ns = (s->start_s + 4 * s->health_s) * WORLD_S + seconds(60, 180);
	if (s->cloud) {
		unseen->mode = MODE_CALM;
		unseen->call = CALL_cloud_describe;
		unseen->error = EHOSTUNREACH;
		unseen->span_ns = seconds(20, 60);
		return;
	}
	place_draw_of(unseen, "work/", PLACE_REFUSES_LOOKS);
	unseen->mode = MODE_MINUTE;
	unseen->target = TARGET_DRIVER;
}

/* A driver that was away for minutes finds all that the job has said meanwhile, and is stopped. */
static void behind_the_log(void)
{
	int64_t at_ns = seconds(0, 10), times = 1 + chance_below(3);
	struct fault *away = after(FAULT_PAUSE, EV_ATTEMPT_STARTED, times, at_ns);
	struct fault *stop = at_same_time(FAULT_STOP, away);

	away->target = TARGET_DRIVER;
	away->span_ns = seconds(60, 240);
	stop->at_ns += away->span_ns + chance_below(20 * WORLD_S);
}

typedef void (*trouble_fn)(void);
static const trouble_fn anywhere[] = { with_its_cache,  while_it_saves,    while_it_saves,
				       with_its_newest, power_as_it_saves, behind_the_log };

/* Half of those that need something where it is there. */
static trouble_fn draw_trouble(void)
{
	const struct setting *s = &playing->setting;

	if (s->health > 0 && chance_one_in(2))
		return out_of_sight;
	if (s->cloud && chance_one_in(2))
		return takes_no_jobs;
	if (s->deadline_s > 0 && chance_one_in(2))
		return chance_one_in(2) ? before_its_deadline : stuck_in_a_drain;
	if (s->far_workspace && chance_one_in(4))
		return with_a_late_graph;
	return anywhere[chance_below(STK_LENGTH(anywhere))];
}

void faults_draw_together(void)
{
	int64_t calm_ns = seconds(CALM_S);

	if (playing->setting.calm || !chance_one_in(EVERY) || fault_count + MOST > FAULTS_MAX)
		return;
	draw_trouble()();
	if (playing->calm_from_ns < calm_ns)
		playing->calm_from_ns = calm_ns;
}
