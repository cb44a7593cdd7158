/* A run with all phases after its training, for the tests that tell of them. */
#ifndef STK_TESTS_FLOW_STAGES_H
#define STK_TESTS_FLOW_STAGES_H

#include "tests/unit/flow/story.h"

#include "jobs/base/exitcode.h"
#include "jobs/flow/internal.h"

#define CANDIDATE "ckpt/30"

static inline struct flow_policy all_stages(void)
{
	struct flow_policy policy = story_policy();

	policy.stages[PHASE_EVALUATE] =
		(struct flow_stage){ .is_asked = true, .nodes = 2, .tasks = 2 };
	policy.stages[PHASE_GATE].is_asked = true;
	policy.stages[PHASE_INFER] =
		(struct flow_stage){ .is_asked = true, .nodes = 3, .tasks = 3 };
	policy.stages[PHASE_PROMOTE].is_asked = true;
	policy.has_baseline = true;
	policy.generation = 4;
	return policy;
}

static inline struct event candidate(const char *url)
{
	struct event ev = event_of(EV_CANDIDATE_CHOSEN);

	EVENT_SET_STR(&ev, url, url);
	EVENT_SET_STR(&ev, reason, url ? NULL : "the training left no complete checkpoint");
	return ev;
}

static inline struct event task(enum phase phase, int64_t attempt, int64_t index)
{
	struct event ev = about(EV_TASK_DONE, phase, attempt);

	EVENT_SET_STR(&ev, task, "a-task");
	EVENT_SET(&ev, index, index);
	return ev;
}

static inline struct event judged(const char *url, int64_t generation, bool passed)
{
	struct event ev = event_of(EV_GATE_JUDGED);

	EVENT_SET_STR(&ev, candidate, url);
	EVENT_SET(&ev, generation, generation);
	EVENT_SET(&ev, passed, passed);
	EVENT_SET_STR(&ev, reason, "accuracy fell from 0.95 to 0.5");
	return ev;
}

static inline struct event promotion(enum event_kind kind, int64_t generation)
{
	struct event ev = event_of(kind);

	EVENT_SET(&ev, generation, generation);
	if (kind == EV_PROMOTE_OVERTAKEN) {
		EVENT_SET_STR(&ev, reason, "run other was promoted meanwhile");
		return ev;
	}
	EVENT_SET_STR(&ev, url, CANDIDATE);
	if (kind == EV_PROMOTE_INTENDED)
		EVENT_SET_STR(&ev, nonce, "n");
	else
		EVENT_SET_STR(&ev, digest, "d");
	return ev;
}

static inline void run_attempt(struct story *s, int64_t ms, enum phase phase, int64_t attempt)
{
	story_at(s, ms, about(EV_ATTEMPT_SUBMITTED, phase, attempt));
	story_at(s, ms, about(EV_ATTEMPT_CLAIMED, phase, attempt));
	story_at(s, ms, about(EV_ATTEMPT_STARTED, phase, attempt));
}

/* A training that has just ended well. */
static inline void trained(struct story *s, const struct flow_policy *policy)
{
	story_begin(s, policy);
	story_at(s, MIN(1), checked(CACHE_WARM));
	run_attempt(s, MIN(1), PHASE_TRAIN, 1);
	story_at(s, MIN(2), checkpoint(1, 30, CANDIDATE));
	story_at(s, MIN(3), ended(PHASE_TRAIN, 1, CLASS_NONE));
}

/* An evaluation of two minutes, from this one on. */
static inline void evaluate(struct story *s, int64_t minute)
{
	run_attempt(s, MIN(minute), PHASE_EVALUATE, 1);
	story_at(s, MIN(minute + 1), task(PHASE_EVALUATE, 1, 0));
	story_at(s, MIN(minute + 2), task(PHASE_EVALUATE, 1, 1));
	story_at(s, MIN(minute + 2), ended(PHASE_EVALUATE, 1, CLASS_NONE));
}

/* … and whose candidate is evaluated. */
static inline void evaluated(struct story *s, const struct flow_policy *policy)
{
	trained(s, policy);
	story_at(s, MIN(3), candidate(CANDIDATE));
	evaluate(s, 4);
}

#endif
