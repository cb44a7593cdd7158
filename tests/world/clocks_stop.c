/*
 * C4. Drain: stop follows at most checkpoint.grace + 5 s after the drain; within 10 s if the drain
 * cannot be told. A second stop, a takeover or another limit neither restarts nor cuts it.
 *
 * C5. Stop ends: once the engine accepts stop calls, the job is over after checkpoint.grace +
 * limits.grace + 30 s and the run ends, though every other write, the journal's excepted, be
 * refused for ever.
 *
 * Counted while a driver has the run and is not suspended; once the engine stops the job, while no
 * process of the job is suspended either.
 */
#include <string.h>

#include "jobs/base/mem.h"
#include "jobs/run/attempt/order.h"
#include "jobs/store/order.h"
#include "tests/world/clocks_rules.h"
#include "tests/world/clocks_time.h"
#include "tests/world/faults.h"
#include "tests/world/launches.h"
#include "tests/world/play.h"
#include "tests/world/rules.h"
#include "tests/world/workspace.h"

static struct {
	bool open;
	enum phase phase;
	int64_t attempt;
	bool drains;     /* the job may save before it is stopped */
	int64_t from_ns; /* the event that began it was made */
	const struct process *by;
	struct stretch untold; /* the driver cannot tell it to save */
	bool told;             /* drain.json is there */
	int64_t told_late_ns;  /* since then, where the engine had refused a stop before; 0: no */
	bool untellable;       /* the workspace has refused something that the driver asked */
	bool told_unknown;     /* drain.json is there, and the driver was told that it is not */
	bool asked;            /* the engine was asked to stop it */
	int64_t waited_ns;     /* since the beginning, for the first such call */
	bool accepted;         /* it said that it would */
	int64_t obeyed_ns;     /* since then */
	int64_t ending_ns;     /* since attempt.ended; 0: it has not ended */
	bool journal_refuses;
} stop;

static void reset(void)
{
	memset(&stop, 0, sizeof stop);
}

static bool ends_the_run(const struct event *ev)
{
	return ev->kind == EV_REQUEST_STOP || ev->kind == EV_REQUEST_DRAIN ||
	       ev->kind == EV_TRAIN_SPOILED ||
	       (ev->kind == EV_LIMIT_REACHED && ev->limit != LIMIT_UNREACHABLE) ||
	       (ev->kind == EV_JIT_EXCEEDED && ev->on_exceed == JIT_STOP) ||
	       (ev->kind == EV_TRAIN_CONTINUITY && ev->continuity == CONTINUITY_FAILED);
}

/* What it computes is worth keeping. */
static bool may_save(const struct event *ev, const struct flow *flow)
{
	return flow->phase == PHASE_TRAIN && flow->claimed && ev->kind != EV_TRAIN_SPOILED &&
	       ev->kind != EV_TRAIN_CONTINUITY;
}

/* When the time for saving began: a training that makes room for phase 1 has it since then. */
static int64_t drain_began_ns(const struct story *story, const struct story_event *told)
{
	const struct story_event *exceeded = story_last(story, EV_JIT_EXCEEDED, told->event.seq);

	return story_begun_ns(story->shadow.recompile && exceeded ? exceeded : told);
}

static void on_event(const struct story *story, int64_t index)
{
	const struct story_event *told = &story->events[index];
	const struct flow *flow = &story->shadow;

	if (told->event.kind == EV_ATTEMPT_ENDED && stop.open) {
		stop.ending_ns = 1;
	} else if (told->event.kind == EV_RUN_ENDED || told->event.kind == EV_ATTEMPT_INTENDED) {
		stop.open = false;
	} else if (!stop.open && ends_the_run(&told->event) && flow->stop_requested &&
		   seen_has_job(story)) {
		reset();
		stop.open = true;
		stop.phase = flow->phase;
		stop.attempt = flow->attempt;
		stop.drains = may_save(&told->event, flow);
		stop.from_ns = drain_began_ns(story, told);
		stop.by = told->writer;
	}
}

static void on_engine(const struct story *story, const struct engine_word *word)
{
	int64_t grace_ns = playing->setting.checkpoint_grace_s * WORLD_S;
	int64_t passed_ns = now_ns - stop.from_ns;

	(void)story;
	if (!stop.open || word->what != WORD_STOP || word->who != seen_driver() ||
	    word->phase != stop.phase || word->attempt != stop.attempt)
		return;
	/* What could not be told to save need not be waited for. */
	if (stop.drains && !stop.asked &&
	    ((stop.told && !stop.told_unknown) || !(stop.untellable || faults_fill_disk())) &&
	    passed_ns < grace_ns - 2 * WORLD_S && !schedule_clock_stepped())
		rule_breaks("C4", "a drain of %d s is cut after %.1f s", (int)(grace_ns / WORLD_S),
			    (double)passed_ns / 1e9);
	stop.asked = true;
	if (word->answered && !stop.accepted) {
		stop.accepted = true;
		stop.obeyed_ns = 0;
	} else if (!word->answered && !stop.accepted) {
		stop.waited_ns = 0;
	}
}

static bool is_told(void)
{
	AUTO(auto_free)
	char *key = mem_format("runs/%s/%s-%lld/" DRAIN_FILE, playing->run,
			       flow_phase_names[stop.phase], (long long)stop.attempt);

	return workspace_has(key);
}

/* Nothing that should act is suspended. */
static bool all_awake(void)
{
	for (const struct process *p = processes; p; p = p->next)
		if (p->state == PROCESS_ALIVE && !time_counts(p))
			return false;
	return true;
}

static void check_told(void)
{
	const struct process *driver = seen_driver();

	if (!stop.told && is_told()) {
		stop.told = true;
		stop.told_late_ns = stop.asked && !stop.accepted ? now_ns : 0;
	}
	if (stop.told || stop.asked || !stop.drains || !driver) {
		stop.untold.who = NULL;
		return;
	}
	if (stop.untold.who != driver)
		stretch_begin(&stop.untold, driver);
	if (stretch_ns(&stop.untold) > figure_ns(C4_UNTOLD))
		rule_breaks("C4", "the job could not be told to save for %.1f s, and goes on",
			    (double)stretch_ns(&stop.untold) / 1e9);
}

/* The job could not be told to save, and was to be stopped at once; the engine refused that, and
 * now it is told: it has the time for saving, and the engine is asked after that. */
static bool saves_after_all(void)
{
	return stop.told_late_ns > 0 &&
	       now_ns - stop.told_late_ns <
		       playing->setting.checkpoint_grace_s * WORLD_S + figure_ns(C4_STOP);
}

static void check_stop(const struct story *story)
{
	int64_t longest = figure_ns(C4_STOP);

	if (stop.drains)
		longest += playing->setting.checkpoint_grace_s * WORLD_S;
	if (!stop.asked && stop.waited_ns > longest)
		rule_breaks("C4", "%s %d is to be stopped for %.1f s and the engine is not asked",
			    flow_phase_names[stop.phase], (int)stop.attempt,
			    (double)stop.waited_ns / 1e9);
	if (stop.asked && !stop.accepted && stop.waited_ns > figure_ns(C5_AGAIN) &&
	    !saves_after_all())
		rule_breaks("C5",
			    "the engine refused to stop %s %d %.1f s ago and is not asked again",
			    flow_phase_names[stop.phase], (int)stop.attempt,
			    (double)stop.waited_ns / 1e9);
	if (stop.accepted &&
	    stop.obeyed_ns > playing->setting.grace_s * WORLD_S + figure_ns(C5_OVER) &&
	    !launch_is_over(story->run, stop.phase, stop.attempt))
		rule_breaks("C5", "the engine stops %s %d for %.1f s and it is not over",
			    flow_phase_names[stop.phase], (int)stop.attempt,
			    (double)stop.obeyed_ns / 1e9);
	if (stop.ending_ns > figure_ns(C5_RUN))
		rule_breaks("C5", "%s %d was stopped and ended %.1f s ago, and the run has not",
			    flow_phase_names[stop.phase], (int)stop.attempt,
			    (double)stop.ending_ns / 1e9);
}

static void on_second(const struct story *story)
{
	const struct process *driver = seen_driver();

	if (!stop.open || !driver || stop.journal_refuses || !time_counts(driver) ||
	    ((stop.accepted || stop.ending_ns) && !all_awake()) ||
	    (story->shadow.attempt_state <= ATTEMPT_UNCERTAIN && !stop.ending_ns))
		return;
	if (stop.ending_ns)
		stop.ending_ns += WORLD_S;
	else if (stop.accepted)
		stop.obeyed_ns += WORLD_S;
	else
		stop.waited_ns += WORLD_S;
	if (!stop.ending_ns)
		check_told();
	check_stop(story);
}

static void on_journal(const struct process *who, enum journal_word word)
{
	if (who == seen_driver() && word != JOURNAL_WAS_READ)
		stop.journal_refuses = word == JOURNAL_REFUSED;
}

/* A driver that has taken over writes nothing before it has found out whether it may: then the stop
 * alone is left, at the end of the time for saving. */
static void on_refusal(const struct refusal *refusal)
{
	if (refusal->who != seen_driver())
		return;
	if (strstr(refusal->about, "work"))
		stop.untellable = true;
	stop.told_unknown |= refusal->done && strstr(refusal->about, DRAIN_FILE);
	if (strstr(refusal->about, "/stoker-probe-"))
		stop.untold.who = NULL;
}

const struct clock_rule clock_stop = {
	.reset = reset,
	.on_event = on_event,
	.on_second = on_second,
	.on_engine = on_engine,
	.on_journal = on_journal,
	.on_refusal = on_refusal,
};
