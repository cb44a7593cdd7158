/*
 * Rules 1 to 9: what no fault may break. Each is one function that begins with the rule's own
 * words. They read the story of the run (story.h) and the truth of the world (truth.h, launches.h),
 * and know nothing of how the product decides. The rules with clocks are in clocks.c.
 */
#include "tests/world/rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/flow_names.h"
#include "tests/world/budgets.h"
#include "tests/world/clocks.h"
#include "tests/world/launches.h"
#include "tests/world/losses.h"
#include "tests/world/play.h"
#include "tests/world/story.h"
#include "tests/world/truth.h"

/* A look at the cache, between the claim on its key and that event. */
#define LOOK_AT_CACHE_NS (500 * WORLD_MS)

const char *rules_broken;
char rules_why[512];

static int64_t checked; /* events of the story that were looked at */
static const struct launch *launch_checked;
static uint64_t truth_checked; /* truth_changes */
static int64_t epoch_of_run;

/* The epoch of a driver process, by its own takeover. */
struct driver_epoch {
	const struct process *process;
	int64_t epoch;
};
static struct driver_epoch epochs[512];
static size_t epoch_count;

void rules_next_run(void)
{
	checked = 0;
	launches_next_run();
	launch_checked = NULL;
	epoch_of_run = 0;
	epoch_count = 0;
	truth_reset();
	clocks_reset();
	budgets_reset();
}

void rules_reset(void)
{
	rules_broken = NULL;
	launches_reset();
	promoted_reset();
	clocks_begin();
	rules_next_run();
}

int64_t rules_checked(void)
{
	return checked;
}

void rule_breaks(const char *rule, const char *format, ...)
{
	va_list args;

	if (rules_broken)
		return;
	rules_broken = rule;
	va_start(args, format);
	vsnprintf(rules_why, sizeof rules_why, format, args);
	va_end(args);
}

/* ---- rule 1 ---- */

static bool command_lives(const struct truth_command *command)
{
	return command->process->state == PROCESS_ALIVE && !command->ended_ns;
}

/* Who has been superseded writes nothing more. */
static void check_writers(const struct story *story, const struct story_event *told)
{
	const struct event *ev = &told->event;
	int64_t own = 0;

	(void)story;
	/* Of an event that a reader saw first the writer is not known: it is dead. */
	for (size_t i = 0; i < epoch_count && told->writer; i++)
		if (epochs[i].process == told->writer)
			own = epochs[i].epoch;
	if (ev->kind == EV_DRIVER_TOOK_OVER) {
		epoch_of_run = ev->epoch;
		if (epoch_count < sizeof epochs / sizeof epochs[0])
			epochs[epoch_count++] = (struct driver_epoch){ told->writer, ev->epoch };
	} else if (own > 0 && own < epoch_of_run) {
		rule_breaks("1", "driver epoch %d wrote event %d although %d had taken over",
			    (int)own, (int)ev->seq, (int)epoch_of_run);
	}
}

/* 1. At most one attempt of a phase is effective, across drivers and machines. An attempt that the
 * engine has not reported ended is never replaced. */
static void rule1(const struct story *story)
{
	for (const struct truth_command *a = truth_commands; a; a = a->next) {
		if (!command_lives(a))
			continue;
		for (const struct truth_command *b = a->next; b; b = b->next)
			if (command_lives(b) && strcmp(a->run, b->run) == 0 && a->node == b->node &&
			    (a->attempt != b->attempt || a->phase != b->phase))
				rule_breaks("1", "attempts %d and %d run at once on node %d",
					    (int)a->attempt, (int)b->attempt, a->node);
	}
	for (int64_t s = checked; s < story->count; s++) {
		const struct event *ev = &story->events[s].event;

		check_writers(story, &story->events[s]);
		if (ev->kind != EV_ATTEMPT_INTENDED)
			continue;
		for (const struct launch *launch = launches; launch; launch = launch->next)
			if ((launch->phase != ev->phase || launch->attempt != ev->attempt) &&
			    !launch_is_over(launch->run, launch->phase, launch->attempt))
				rule_breaks("1", "%s %d is intended while %s %d is under way",
					    flow_phase_names[ev->phase], (int)ev->attempt,
					    flow_phase_names[launch->phase], (int)launch->attempt);
		if (ev->attempt > 1 &&
		    story_find(story, EV_ATTEMPT_ENDED, ev->phase, ev->attempt - 1, s) == 0)
			rule_breaks("1", "%s %d is intended and the one before has not ended",
				    flow_phase_names[ev->phase], (int)ev->attempt);
	}
}

/* ---- rule 2 ---- */

/* 2. Every engine job belongs to a journalled intent; one found without an outcome is adopted or
 * stopped, never doubled, never lost. */
static void rule2(const struct story *story)
{
	for (const struct launch *launch = launches; launch && launch != launch_checked;
	     launch = launch->next) {
		int64_t intended = story_find(story, EV_ATTEMPT_INTENDED, launch->phase,
					      launch->attempt, story->count);
		int64_t missing = story_find(story, EV_ATTEMPT_MISSING, launch->phase,
					     launch->attempt, story->count);

		if (intended == 0)
			rule_breaks("2", "%s %d is submitted without an intent",
				    flow_phase_names[launch->phase], (int)launch->attempt);
		for (const struct launch *other = launch->next; other; other = other->next)
			if (other->phase == launch->phase && other->attempt == launch->attempt &&
			    missing == 0 && launch_had_effect(other, launch->at_ns) &&
			    !(launch->job && other->at_ns == launch->at_ns))
				rule_breaks("2", "%s %d is submitted twice",
					    flow_phase_names[launch->phase], (int)launch->attempt);
	}
	for (int64_t s = checked; s < story->count; s++) {
		if (story->events[s].event.kind != EV_RUN_ENDED)
			continue;
		for (const struct launch *launch = launches; launch; launch = launch->next)
			if (!launch_is_over(launch->run, launch->phase, launch->attempt))
				rule_breaks("2", "the run ended and %s %d is still under way",
					    flow_phase_names[launch->phase], (int)launch->attempt);
	}
}

/* ---- rule 3 ---- */

/* Is the cache proved at this place of the journal? */
static bool is_proved(const struct story *story, int64_t seq)
{
	for (int64_t i = seq; i > 0; i--) {
		const struct event *ev = &story->events[i - 1].event;

		if (ev->kind == EV_CACHE_VERIFIED && ev->complete)
			return true;
		if (ev->kind == EV_JIT_EXCEEDED && ev->on_exceed == JIT_RECOMPILE)
			return false;
		if (budget_is_refused(story, ev))
			return false;
		if (ev->kind == EV_CACHE_CHECKED)
			return ev->verdict == CACHE_WARM;
	}
	return false;
}

/* When the last attempt before event `seq` was said to have ended: what is looked at for the next
 * one is looked at after that. */
static int64_t last_end_ns(const struct story *story, int64_t seq)
{
	const struct story_event *ended = story_last(story, EV_ATTEMPT_ENDED, seq);

	return ended ? ended->at_ns : story->events[0].at_ns;
}

bool rules_was_whole(const struct story *story, const struct event *ev)
{
	enum phase phase = EVENT_HAS(ev, stage)               ? ev->stage
			   : flow_phases[ev->phase].has_tasks ? ev->phase
							      : PHASE_TRAIN;

	return setting_graphs_whole(flow_phase_names[phase]) ||
	       losses_of_cache_ns() >= last_end_ns(story, ev->seq);
}

/* An agent said of a training attempt that it could not compare the compiler, or was to bear with
 * it; or one before was refused for it. */
static bool is_tolerated(const struct story *story, int64_t attempt, int64_t seq)
{
	for (int64_t i = 0; i < seq; i++) {
		const struct event *ev = &story->events[i].event;

		if ((ev->kind == EV_COMPILER_CHECKED && ev->attempt == attempt) ||
		    (budget_is_refused(story, ev) && ev->attempt <= attempt))
			return true;
	}
	return false;
}

static void check_compiler(const struct story *story, const struct event *ended)
{
	for (const struct truth_command *c = truth_commands; c; c = c->next)
		if (c->phase == TRUTH_TRAIN && c->attempt == ended->attempt && c->other_compiler &&
		    strcmp(c->run, story->run) == 0 && !c->agent_refused &&
		    !is_tolerated(story, c->attempt, ended->seq))
			rule_breaks("3", "train %d ran with another compiler than phase 1",
				    (int)c->attempt);
}

/* 3. Training starts only on a cache verified complete for its graph key, or without a compile
 * phase, or where the spec says `on_incomplete: train`. */
static void rule3(const struct story *story)
{
	if (!story->policy.compiles || story->policy.train_on_incomplete)
		return;
	for (int64_t s = checked; s < story->count; s++) {
		const struct event *ev = &story->events[s].event;

		if (ev->kind == EV_ATTEMPT_ENDED && ev->phase == PHASE_TRAIN)
			check_compiler(story, ev);
		if (ev->kind == EV_ATTEMPT_INTENDED && ev->phase == PHASE_TRAIN &&
		    !(is_proved(story, s) && rules_was_whole(story, ev)))
			rule_breaks("3", "train %d is intended and the cache is not %s",
				    (int)ev->attempt, is_proved(story, s) ? "whole" : "proved");
	}
}

/* ---- rule 4 ---- */

/* A whole one, if there is any: a job that the service starts again may save a step again. */
const struct truth_save *rules_save_of(int64_t attempt, int64_t step)
{
	const struct truth_save *found = NULL;

	for (const struct truth_save *save = truth_saves; save; save = save->next)
		if (save->command->phase == TRUTH_TRAIN && save->command->attempt == attempt &&
		    save->step == step && (!found || save->whole_ns))
			found = save;
	return found;
}

/* The attempt that a URL of a checkpoint names; 0: none. */
int64_t rules_attempt_of_url(const char *url)
{
	static const char *const before[] = { "/attempt-", "/train-" };

	for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
		const char *at = strstr(url, before[i]);

		if (at)
			return strtoll(at + strlen(before[i]), NULL, 10);
	}
	return 0;
}

static bool is_of_phase_1(int64_t attempt, int64_t step)
{
	for (const struct truth_save *save = truth_saves; save; save = save->next)
		if (save->command->phase == TRUTH_PRECOMPILE && save->step == step &&
		    save->command->attempt == attempt)
			return true;
	return false;
}

/* A checkpoint that is called complete is really whole. */
static void check_whole(const struct event *ev, const char *rule)
{
	const struct truth_save *save = rules_save_of(rules_attempt_of_url(ev->url), ev->step);

	if (!save && is_of_phase_1(rules_attempt_of_url(ev->url), ev->step))
		rule_breaks("4", "%s names step %d (%s), which phase 1 has saved",
			    event_rows[ev->kind].name, (int)ev->step, ev->url);
	else if (!save)
		rule_breaks(rule, "%s names step %d (%s), which nobody has saved",
			    event_rows[ev->kind].name, (int)ev->step, ev->url);
	else if (!save->whole_ns)
		rule_breaks(rule, "%s names step %d (%s), which is not whole",
			    event_rows[ev->kind].name, (int)ev->step, ev->url);
}

/* It goes on from what was chosen since the attempt before was intended. */
static void check_resume(const struct story *story, const struct event *ev)
{
	int64_t before =
		story_find(story, EV_ATTEMPT_INTENDED, PHASE_TRAIN, ev->attempt - 1, ev->seq - 1);
	const struct event *chosen = NULL;

	for (int64_t i = ev->seq - 1; i > before && !chosen; i--)
		if (story->events[i - 1].event.kind == EV_CHECKPOINT_CHOSEN)
			chosen = &story->events[i - 1].event;
	if (ev->attempt == 1) {
		if (EVENT_HAS(ev, resumed_from))
			rule_breaks("4", "the first training resumes from %s", ev->resumed_from);
	} else if (!chosen) {
		rule_breaks("4", "train %d begins and no checkpoint was chosen", (int)ev->attempt);
	} else if (EVENT_HAS(chosen, url) != EVENT_HAS(ev, resumed_from)) {
		rule_breaks("4", "train %d does not begin with what was chosen", (int)ev->attempt);
	} else if (EVENT_HAS(chosen, url) &&
		   (strcmp(chosen->url, ev->resumed_from) != 0 || chosen->step != ev->step)) {
		rule_breaks("4", "train %d resumes from %s and not from %s", (int)ev->attempt,
			    ev->resumed_from, chosen->url);
	}
}

/* Of what the journal knows as complete, the newest that may be trusted is chosen; a newer one that
 * it does not know yet may be found. */
static void check_choice(const struct story *story, const struct event *ev)
{
	int64_t below = budget_trusted_below(story, ev->seq), newest = -1;

	for (int64_t i = 0; i < ev->seq - 1; i++) {
		const struct event *known = &story->events[i].event;

		if (known->kind == EV_CHECKPOINT_COMPLETE && known->step < below &&
		    known->step > newest)
			newest = known->step;
	}
	if (EVENT_HAS(ev, url)) {
		int64_t lost_ns = losses_of_checkpoint_ns(ev->url);

		check_whole(ev, "4");
		if (lost_ns >= 0 && lost_ns < last_end_ns(story, ev->seq))
			rule_breaks("4", "step %d is chosen, which is damaged for %.1f s",
				    (int)ev->step, (double)(now_ns - lost_ns) / 1e9);
	}
	if (EVENT_HAS(ev, rejected)) /* a look showed that one is damaged */
		return;
	if (!EVENT_HAS(ev, url) && newest >= 0)
		rule_breaks("4", "nothing is chosen, although step %d is complete", (int)newest);
	else if (EVENT_HAS(ev, url) && ev->step < newest)
		rule_breaks("4", "step %d is chosen, although step %d is complete", (int)ev->step,
			    (int)newest);
}

/* A training that ignored its checkpoint is not told to save: what it saves continues nothing. */
static bool was_asked_in_vain(const struct story *story, const struct truth_save *save)
{
	for (int64_t s = 0; save->asked && s < story->count; s++) {
		const struct event *ev = &story->events[s].event;

		if (ev->kind == EV_REQUEST_STOP || ev->kind == EV_LIMIT_REACHED ||
		    ev->kind == EV_JIT_EXCEEDED)
			return false;
		if (ev->kind == EV_TRAIN_CONTINUITY && ev->continuity == CONTINUITY_FAILED &&
		    ev->attempt == save->command->attempt)
			return story->policy.stop_on_mismatch &&
			       story->events[s].at_ns < save->began_ns;
	}
	return false;
}

static void check_saves(const struct story *story)
{
	if (losses_by_power())
		rule_breaks("4", "%s was marked, and is not whole after a power cut",
			    losses_by_power());
	for (const struct truth_save *save = truth_saves; save; save = save->next) {
		if (strcmp(save->command->run, story->run) != 0 ||
		    save->command->phase != TRUTH_TRAIN)
			continue;
		if (was_asked_in_vain(story, save))
			rule_breaks("4", "train %d ignored its checkpoint, and was told to save",
				    (int)save->command->attempt);
	}
}

/* 4. A retry starts from the newest *complete* checkpoint of this run, or from its parent or
 * scratch where there is none; never from a partial one, never from one that phase 1 wrote. */
static void rule4(const struct story *story)
{
	for (int64_t s = checked; s < story->count; s++) {
		const struct event *ev = &story->events[s].event;

		if (ev->kind == EV_ATTEMPT_INTENDED && ev->phase == PHASE_TRAIN)
			check_resume(story, ev);
		else if (ev->kind == EV_CHECKPOINT_CHOSEN)
			check_choice(story, ev);
		else if (ev->kind == EV_ATTEMPT_INTENDED && EVENT_HAS(ev, resumed_from))
			rule_breaks("4", "phase 1 resumes from a checkpoint");
	}
	check_saves(story);
	for (const struct truth_command *command = truth_commands; command;
	     command = command->next) {
		int64_t intended = story_find(story, EV_ATTEMPT_INTENDED, PHASE_TRAIN,
					      command->attempt, story->count);
		const struct event *ev = intended ? &story->events[intended - 1].event : NULL;

		if (command->phase == TRUTH_TRAIN && command->resumed_step >= 0 && ev &&
		    EVENT_HAS(ev, resumed_from) && command->resumed_step < ev->step)
			rule_breaks("4", "train %d was to go on from step %d and went on from %d",
				    (int)command->attempt, (int)ev->step,
				    (int)command->resumed_step);
	}
}

/* ---- rule 6 ---- */

/* 6. Unknown is not failed: a job that cannot be seen is not relaunched; only evidence from the
 * engine ends an attempt. */
static void rule6(const struct story *story)
{
	for (int64_t s = checked; s < story->count; s++) {
		const struct event *ev = &story->events[s].event;

		const struct process *lives =
			ev->kind == EV_ATTEMPT_ENDED
				? launch_process(story->run, ev->phase, ev->attempt)
				: NULL;

		if (lives)
			rule_breaks("6", "%s %d is said to have ended, and %s %d of %s lives",
				    flow_phase_names[ev->phase], (int)ev->attempt, lives->name,
				    (int)lives->pid, lives->machine->host);
	}
}

/* ---- rule 7 ---- */

static bool has_launch(const struct event *ev)
{
	for (const struct launch *launch = launches; launch; launch = launch->next)
		if (launch->phase == ev->phase && launch->attempt == ev->attempt)
			return true;
	return false;
}

/* A driver that was stopped within its submission may go on as another one has looked. */
static bool has_job_at(const struct event *ev, int64_t at_ns)
{
	for (const struct launch *launch = launches; launch; launch = launch->next)
		if (launch->phase == ev->phase && launch->attempt == ev->attempt &&
		    launch->at_ns < at_ns && launch_had_effect(launch, WORLD_NEVER))
			return true;
	return false;
}

static bool is_true(const struct story *story, const struct story_event *told)
{
	const struct event *ev = &told->event;

	switch (ev->kind) {
	case EV_ATTEMPT_SUBMITTED:
	case EV_ATTEMPT_CLAIMED:
		return has_launch(ev);
	case EV_ATTEMPT_MISSING:
		return !has_job_at(ev, story_begun_ns(told));
	case EV_CACHE_VERIFIED:
		return !ev->complete || rules_was_whole(story, ev);
	case EV_CACHE_CHECKED:
		return ev->verdict != CACHE_WARM || rules_was_whole(story, ev);
	case EV_LIMIT_REACHED:
		return budget_limit_is_true(story, ev);
	default:
		return true;
	}
}

/* 7. What the journal says happened, happened; what it does not say can be found out again from the
 * engine. */
static void rule7(const struct story *story)
{
	if (story->contradiction)
		rule_breaks("7", "%s", story->contradiction);
	for (int64_t s = checked; s < story->count; s++) {
		const struct event *ev = &story->events[s].event;

		/* A verdict that is told again may have been overtaken since. */
		if (ev->kind == EV_CACHE_VERIFIED &&
		    story_find(story, EV_CACHE_VERIFIED, ev->phase, ev->attempt, s) != 0)
			continue;
		if (ev->kind == EV_CHECKPOINT_COMPLETE)
			check_whole(ev, "7");
		if (!is_true(story, &story->events[s]))
			rule_breaks("7", "%s of %s %d is not true", event_rows[ev->kind].name,
				    flow_phase_names[ev->phase], (int)ev->attempt);
	}
}

/* ---- rule 9 ---- */

/* Is the claim on the graph key taken for what is intended at this place? */
static bool is_claimed_for(const struct story *story, int64_t seq)
{
	for (int64_t i = seq; i > 0; i--)
		switch (story->events[i - 1].event.kind) {
		case EV_CACHE_CLAIMED:
			return true;
		case EV_CACHE_WAITING:
		case EV_ATTEMPT_INTENDED:
		case EV_DRIVER_TOOK_OVER:
			return false;
		default:
			break;
		}
	return false;
}

/* Had a run beside this one filled and proved the cache, under the same key, before this one
 * claimed that? Drivers that see another compiler, or none, have another key. */
static bool was_filled_before(const struct story *story, int64_t seq)
{
	const struct story_event *claimed = story_last(story, EV_CACHE_CLAIMED, seq);
	const struct story *beside = playing->neighbour[0] ? story_of(playing->neighbour) : NULL;

	for (int64_t i = 0; claimed && beside && i < beside->count; i++)
		if (beside->events[i].event.kind == EV_CACHE_VERIFIED &&
		    beside->events[i].event.complete && claimed->event.graph_key &&
		    beside->events[i].event.graph_key &&
		    strcmp(beside->events[i].event.graph_key, claimed->event.graph_key) == 0 &&
		    beside->events[i].at_ns < claimed->made_ns - LOOK_AT_CACHE_NS)
			/* What machines with another compiler have filled is no use to this one. */
			return losses_of_cache_ns() < 0 && setting_cache_whole_for(0) &&
			       !setting_cache_whole_for(1);
	return false;
}

/* 9. Of the runs with one graph key one precompiles at a time, and what it has filled is not filled
 * again: an attempt of phase 1 is intended by who has claimed the key for it and has looked at the
 * cache since. */
static void rule9(const struct story *story)
{
	for (int64_t s = checked; s < story->count; s++) {
		const struct event *ev = &story->events[s].event;

		if (ev->kind != EV_ATTEMPT_INTENDED || ev->phase != PHASE_PRECOMPILE)
			continue;
		if (!is_claimed_for(story, s))
			rule_breaks("9",
				    "precompile %d is intended without a claim on its graph key",
				    (int)ev->attempt);
		else if (ev->attempt == 1 && !story_last(story, EV_ATTEMPT_INTENDED, ev->seq) &&
			 !story_last(story, EV_CACHE_REPAIRED, ev->seq) &&
			 was_filled_before(story, ev->seq))
			rule_breaks("9", "precompile 1 is intended, and another run has filled the "
					 "cache before");
	}
}

static void (*const rules[])(const struct story *story) = {
	rule1, rule2, rule3,  rule4,  rule5,  rule6,  rule7,
	rule8, rule9, rule12, rule13, rule14, rule15, rule16,
};

void rules_check(void)
{
	const struct story *story = story_of(playing->run);

	launches_look();
	if (!story)
		return;
	if (story->count != checked || story->contradiction || launches != launch_checked ||
	    truth_changes != truth_checked)
		for (size_t i = 0; i < sizeof rules / sizeof rules[0] && !rules_broken; i++)
			rules[i](story);
	clocks_check(story);
	checked = story->count;
	launch_checked = launches;
	truth_checked = truth_changes;
}

void rules_check_end(void)
{
	const struct story *story = story_of(playing->run);
	struct flow again;

	if (!story)
		return;
	flow_init(&again, &story->policy);
	for (int64_t i = 0; i < story->count; i++)
		flow_apply(&again, &story->events[i].event);
	if (memcmp(&again, &story->shadow, sizeof again) != 0)
		rule_breaks("7", "the journal played again gives another end");
	clocks_check_end(story);
	promoted_check();
	promoted_check_outputs(story);
}
