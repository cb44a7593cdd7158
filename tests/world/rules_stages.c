/*
 * Rules 12 to 16: what follows a training. They read the story of the run alone; each begins with
 * the rule's own words. See rules.c.
 */
#include <string.h>

#include "tests/world/budgets.h"
#include "tests/world/rules.h"
#include "tests/world/story.h"

/* The newest verdict before event `seq`; NULL: none. */
static const struct event *verdict_before(const struct story *story, int64_t seq)
{
	const struct story_event *told = story_last(story, EV_GATE_JUDGED, seq);

	return told ? &told->event : NULL;
}

/* 12. Nothing is promoted without a verdict on exactly this candidate, that lets it pass. */
void rule12(const struct story *story)
{
	promoted_check();
	for (int64_t s = rules_checked(); s < story->count; s++) {
		const struct event *ev = &story->events[s].event;
		const struct event *verdict;

		if (ev->kind == EV_PROMOTE_DONE)
			promoted_check_model(story, ev);
		if (ev->kind != EV_PROMOTE_INTENDED)
			continue;
		verdict = verdict_before(story, ev->seq);
		if (!verdict)
			rule_breaks("12", "%s is promoted and was not judged", ev->url);
		else if (strcmp(verdict->candidate, ev->url) != 0)
			rule_breaks("12", "%s is promoted and %s was judged", ev->url,
				    verdict->candidate);
		else if (!verdict->passed && !story->policy.gate_advises)
			rule_breaks("12", "%s is promoted although the gate said no", ev->url);
	}
}

/* 13. At most one promotion a turn: one intent, and one outcome of it. */
void rule13(const struct story *story)
{
	for (int64_t s = rules_checked(); s < story->count; s++) {
		const struct event *ev = &story->events[s].event;

		if (ev->kind != EV_PROMOTE_INTENDED && ev->kind != EV_PROMOTE_DONE)
			continue;
		if (story_last(story, ev->kind, ev->seq))
			rule_breaks("13", "%s comes a second time", event_rows[ev->kind].name);
		if (ev->kind == EV_PROMOTE_DONE && !story_last(story, EV_PROMOTE_INTENDED, ev->seq))
			rule_breaks("13", "generation %d was promoted and not intended",
				    (int)ev->generation);
	}
}

/* 14. The pointer moves only from the entry that the gate compared with. */
void rule14(const struct story *story)
{
	for (int64_t s = rules_checked(); s < story->count; s++) {
		const struct event *ev = &story->events[s].event;
		const struct event *verdict;

		if (ev->kind != EV_PROMOTE_INTENDED && ev->kind != EV_PROMOTE_DONE)
			continue;
		verdict = verdict_before(story, ev->seq);
		if (verdict && verdict->generation + 1 != ev->generation)
			rule_breaks("14",
				    "generation %d is promoted, and the gate compared with %d",
				    (int)ev->generation, (int)verdict->generation);
		if (verdict && ev->kind == EV_PROMOTE_INTENDED &&
		    EVENT_HAS(verdict, digest) != EVENT_HAS(ev, digest))
			rule_breaks("14", "the promotion follows another entry than was compared "
					  "with");
		else if (verdict && ev->kind == EV_PROMOTE_INTENDED && EVENT_HAS(ev, digest) &&
			 strcmp(verdict->digest, ev->digest) != 0)
			rule_breaks("14",
				    "the promotion follows entry %s, and the gate compared "
				    "with %s",
				    ev->digest, verdict->digest);
	}
}

static bool is_same_task(const struct event *a, const struct event *b)
{
	return a->kind == EV_TASK_DONE && a->phase == b->phase &&
	       (a->index == b->index || strcmp(a->task, b->task) == 0);
}

/* 15. Each task counts once, and a phase that ended well has all of them. */
void rule15(const struct story *story)
{
	for (int64_t s = rules_checked(); s < story->count; s++) {
		const struct event *ev = &story->events[s].event;
		int64_t done = 0;

		if (ev->kind == EV_TASK_DONE)
			for (int64_t i = 0; i < s; i++)
				if (is_same_task(&story->events[i].event, ev))
					rule_breaks("15", "%s of %s counts twice", ev->task,
						    flow_phase_names[ev->phase]);
		if (ev->kind != EV_ATTEMPT_ENDED || ev->class != CLASS_NONE ||
		    !flow_phases[ev->phase].has_tasks)
			continue;
		for (int64_t i = 0; i < s; i++)
			done += story->events[i].event.kind == EV_TASK_DONE &&
				story->events[i].event.phase == ev->phase;
		if (done != story->policy.stages[ev->phase].tasks)
			rule_breaks("15", "%s ended well with %d tasks of %d",
				    flow_phase_names[ev->phase], (int)done,
				    (int)story->policy.stages[ev->phase].tasks);
	}
}

/* Is the cache proved at this place of the journal for the graphs of a stage, under its own key? */
static bool is_proved_for(const struct story *story, int64_t seq, enum phase stage)
{
	for (int64_t i = seq; i > 0; i--) {
		const struct event *ev = &story->events[i - 1].event;

		if (budget_is_refused(story, ev))
			return false;
		if (!EVENT_HAS(ev, stage) || ev->stage != stage)
			continue;
		if (ev->kind == EV_CACHE_VERIFIED)
			return ev->complete;
		if (ev->kind == EV_CACHE_CHECKED)
			return ev->verdict == CACHE_WARM;
	}
	return false;
}

/* 16. A stage that compiles ahead begins only on a cache that is proved for its own graphs, and its
 * phase 1 follows the stage before. */
void rule16(const struct story *story)
{
	for (int64_t s = rules_checked(); s < story->count; s++) {
		const struct event *ev = &story->events[s].event;

		if (ev->kind != EV_ATTEMPT_INTENDED)
			continue;
		if (EVENT_HAS(ev, stage) &&
		    (!story_last(story, EV_CANDIDATE_CHOSEN, ev->seq) ||
		     (ev->stage == PHASE_INFER && !story_last(story, EV_GATE_JUDGED, ev->seq))))
			rule_breaks("16", "precompile %d for %s comes before its time",
				    (int)ev->attempt, flow_phase_names[ev->stage]);
		if (!story->policy.stages[ev->phase].compiles || story->policy.train_on_incomplete)
			continue;
		if (!is_proved_for(story, s, ev->phase) || !rules_was_whole(story, ev))
			rule_breaks("16", "%s %d is intended and its cache is not %s",
				    flow_phase_names[ev->phase], (int)ev->attempt,
				    is_proved_for(story, s, ev->phase) ? "whole" : "proved");
	}
}
