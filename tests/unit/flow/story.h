/*
 * A run told as a story: a test says what happens and when, the machine's own
 * records are appended for it, and what comes out is read as text.
 *
 *     struct story s;
 *
 *     story_begin(&s, &policy);
 *     story_at(&s, MIN(1), checked(CACHE_WARM));
 *     STORY(&s, "00:00 new -> planned\n"
 *               "00:00   check the cache\n"
 *               ...);
 *
 * A line of the text is a change of state, or (indented) what the machine now
 * effects for. Effects that stay the same are not repeated.
 */
#ifndef STK_TESTS_FLOW_STORY_H
#define STK_TESTS_FLOW_STORY_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/flow/flow.h"
#include "tests/support/flow_names.h"

#define MIN(minutes) ((int64_t)(minutes)*60000)

struct story {
	struct flow flow;
	struct effects effects;
	char text[16384];
	size_t len;
	char last[512]; /* the effects last told */
	struct event journal[256];
	int journalled;
	char strings[65536]; /* of journalled events */
	size_t strings_len;
	struct {
		int64_t step;
		const char *url;
	} marked[32]; /* checkpoints in the store, complete */
	int marked_count;
	const char *key_holder; /* another run that has the graph key, NULL: none */
	struct utc now;
};

static inline void story_tell(struct story *s, int64_t ms, const char *line)
{
	int n = snprintf(s->text + s->len, sizeof s->text - s->len, "%02d:%02d %s\n",
			 (int)(ms / 3600000), (int)(ms / 60000 % 60), line);

	assert_true(n > 0 && (size_t)n < sizeof s->text - s->len);
	s->len += (size_t)n;
}

static inline const char *story_keep(struct story *s, const char *text)
{
	size_t len = strlen(text) + 1;
	char *at = s->strings + s->strings_len;

	assert_true(s->strings_len + len <= sizeof s->strings);
	memcpy(at, text, len);
	s->strings_len += len;
	return at;
}

/* The journal owns what it holds, as a real one does. */
static inline const struct event *story_journal(struct story *s, const struct event *ev)
{
	struct event *copy = &s->journal[s->journalled++];

	assert_true(s->journalled <= 256);
	*copy = *ev;
	copy->seq = s->journalled;
	for (int id = 0; id < EVF_COUNT; id++)
		if (event_fields[id].type == EVT_STR && (ev->present & FIELD_SET_OF(id)) != 0) {
			const char **text = (const char **)((char *)copy + event_fields[id].offset);

			*text = story_keep(s, *text);
		}
	return copy;
}

static inline void story_effect(const struct effect *w, char *text, size_t size)
{
	const struct event *ev = &w->event;
	const char *phase = flow_phase_names[w->phase];
	int attempt = (int)w->attempt;

	switch (w->kind) {
	case EFFECT_RECORD:
		if (ev->kind == EV_ATTEMPT_INTENDED && EVENT_HAS(ev, resumed_from))
			snprintf(text, size, "record %s %s %d resume=%s", event_rows[ev->kind].name,
				 phase, attempt, ev->resumed_from);
		else if (ev->kind == EV_ATTEMPT_INTENDED)
			snprintf(text, size, "record %s %s %d", event_rows[ev->kind].name, phase,
				 attempt);
		else if (ev->kind == EV_RETRY_SCHEDULED)
			snprintf(text, size, "record %s %s %s (%s)", event_rows[ev->kind].name,
				 phase, flow_action_names[ev->action], ev->reason);
		else if (ev->kind == EV_LIMIT_REACHED || ev->kind == EV_RUN_AT_RISK)
			snprintf(text, size, "record %s %s (%s)", event_rows[ev->kind].name,
				 flow_limit_names[ev->limit], ev->reason);
		else if (ev->kind == EV_RUN_PAUSED)
			snprintf(text, size, "record %s %s", event_rows[ev->kind].name,
				 flow_phase_names[ev->phase]);
		else if (ev->kind == EV_JIT_EXCEEDED)
			snprintf(text, size, "record %s %s (%s)", event_rows[ev->kind].name,
				 flow_jit_action_names[ev->on_exceed], ev->reason);
		else
			snprintf(text, size, "record %s %s %d: %s", event_rows[ev->kind].name,
				 flow_outcome_names[ev->state], (int)ev->exit_code, ev->reason);
		break;
	case EFFECT_CHECK_CACHE:
		snprintf(text, size, "check the cache");
		break;
	case EFFECT_CLAIM_KEY:
		snprintf(text, size, "claim the graph key%s", w->recheck ? ", and look again" : "");
		break;
	case EFFECT_FIND:
		snprintf(text, size, "find %s %d", phase, attempt);
		break;
	case EFFECT_SUBMIT:
		snprintf(text, size, "submit %s%s%s", w->job, w->resumed_from ? " resume=" : "",
			 w->resumed_from ? w->resumed_from : "");
		break;
	case EFFECT_WATCH:
		snprintf(text, size, "watch %s %d", phase, attempt);
		break;
	case EFFECT_CHOOSE_CHECKPOINT:
		snprintf(text, size, "choose a checkpoint");
		break;
	case EFFECT_DRAIN:
		snprintf(text, size, "drain %s %d", phase, attempt);
		break;
	case EFFECT_STOP:
		snprintf(text, size, "stop %s %d", phase, attempt);
		break;
	case EFFECT_LEAVE:
		snprintf(text, size, "leave");
		break;
	case EFFECT_VERIFY:
		snprintf(text, size, "verify the cache");
		break;
	case EFFECT_WAIT:
		snprintf(text, size, "wait");
		break;
	case EFFECT_CHOOSE_CANDIDATE:
	case EFFECT_JUDGE:
	case EFFECT_PROMOTE:
		snprintf(text, size, "%s", effect_kind_names[w->kind]);
		break;
	case EFFECT_DONE:
		snprintf(text, size, "done");
		break;
	case EFFECT_SETTLE:
		snprintf(text, size, "settle");
		break;
	case EFFECT_KIND_COUNT:
		break;
	}
}

static inline void story_tell_effects(struct story *s, int64_t ms)
{
	char all[512] = "", one[200], line[256];
	size_t len = 0;

	for (int i = 0; i < s->effects.count; i++) {
		story_effect(&s->effects.list[i], one, sizeof one);
		len += (size_t)snprintf(all + len, sizeof all - len, "%s;", one);
	}
	if (strcmp(all, s->last) == 0)
		return;
	snprintf(s->last, sizeof s->last, "%s", all);
	for (int i = 0; i < s->effects.count; i++) {
		story_effect(&s->effects.list[i], one, sizeof one);
		snprintf(line, sizeof line, "  %s", one);
		story_tell(s, ms, line);
	}
}

static inline void story_apply(struct story *s, const struct event *ev)
{
	enum flow_state from = s->flow.state;
	enum attempt_state was = s->flow.attempt_state;
	const struct event *kept = story_journal(s, ev);
	char line[100];

	flow_apply(&s->flow, kept);
	flow_effects(&s->flow, kept->at, &s->effects);
	if (s->flow.state != from) {
		snprintf(line, sizeof line, "%s -> %s", flow_state_names[from],
			 flow_state_names[s->flow.state]);
		story_tell(s, kept->at.ms, line);
	} else if (s->flow.attempt_state != was) {
		snprintf(line, sizeof line, "%s %d %s", flow_phase_names[s->flow.phase],
			 (int)s->flow.attempt, attempt_state_names[s->flow.attempt_state]);
		story_tell(s, kept->at.ms, line);
	}
	story_tell_effects(s, kept->at.ms);
}

static inline struct event key_event(enum event_kind kind)
{
	struct event ev = { .kind = kind };

	EVENT_SET_STR(&ev, graph_key, "0123");
	if (kind == EV_CACHE_WAITING)
		EVENT_SET_STR(&ev, holder, "other");
	return ev;
}

/* Returns the driver's answer to what the store holds. */
static inline struct event story_choice(const struct story *s, int64_t below)
{
	struct event ev = { .kind = EV_CHECKPOINT_CHOSEN, .at = s->flow.at };
	int best = -1;

	for (int i = 0; i < s->marked_count; i++)
		if (s->marked[i].step < below &&
		    (best < 0 || s->marked[i].step >= s->marked[best].step))
			best = i;
	if (best >= 0) {
		EVENT_SET(&ev, step, s->marked[best].step);
		EVENT_SET_STR(&ev, url, s->marked[best].url);
	}
	return ev;
}

/* Append what the machine wants recorded, until it wants something else. What is
 * looked at on the way shows nothing new, and the graph key is free or another's. */
static inline void story_settle(struct story *s)
{
	for (int i = 0; i < s->effects.count; i++) {
		const struct effect *effect = &s->effects.list[i];

		if (effect->kind == EFFECT_CHOOSE_CHECKPOINT) {
			struct event ev = story_choice(s, effect->below);

			ev.at = s->now;
			story_apply(s, &ev);
		} else if (effect->kind == EFFECT_CLAIM_KEY && !s->key_holder) {
			struct event ev = key_event(EV_CACHE_CLAIMED);

			ev.at = s->now;
			story_apply(s, &ev);
		} else if (effect->kind == EFFECT_RECORD) {
			story_apply(s, &effect->event);
		} else {
			continue;
		}
		i = -1;
	}
}

static inline void story_at(struct story *s, int64_t ms, struct event ev)
{
	ev.at.ms = ms;
	s->now.ms = ms;
	if (ev.kind == EV_CHECKPOINT_COMPLETE && s->marked_count < 32) {
		s->marked[s->marked_count].step = ev.step;
		s->marked[s->marked_count++].url = story_keep(s, ev.url);
	}
	story_apply(s, &ev);
	story_settle(s);
}

/* Time passes and nothing happens. */
static inline void story_wait(struct story *s, int64_t ms)
{
	s->now.ms = ms;
	flow_effects(&s->flow, s->now, &s->effects);
	story_tell_effects(s, ms);
	story_settle(s);
}

static inline struct event event_of(enum event_kind kind)
{
	return (struct event){ .kind = kind };
}

static inline struct event created(void)
{
	struct event ev = event_of(EV_RUN_CREATED);

	EVENT_SET_STR(&ev, name, "m5");
	EVENT_SET_STR(&ev, engine, "fake");
	EVENT_SET(&ev, plan, NULL);
	EVENT_SET_STR(&ev, plan_digest, "00");
	EVENT_SET(&ev, seed, 42);
	return ev;
}

static inline struct event checked(enum cache_state verdict)
{
	struct event ev = event_of(EV_CACHE_CHECKED);

	EVENT_SET(&ev, verdict, verdict);
	return ev;
}

static inline struct event about(enum event_kind kind, enum phase phase, int64_t attempt)
{
	struct event ev = event_of(kind);

	EVENT_SET(&ev, phase, phase);
	EVENT_SET(&ev, attempt, attempt);
	if ((event_rows[kind].required >> EVF_job & 1) != 0)
		EVENT_SET_STR(&ev, job, "as-it-was-called");
	if (kind == EV_ATTEMPT_INTENDED)
		EVENT_SET_STR(&ev, nonce, "0123456789abcdefghjkmnpqrs");
	return ev;
}

static inline struct event ended(enum phase phase, int64_t attempt, enum failure_class class)
{
	struct event ev = about(EV_ATTEMPT_ENDED, phase, attempt);

	EVENT_SET(&ev, class, class);
	return ev;
}

static inline struct event verified(int64_t attempt, bool complete, const char *reason)
{
	struct event ev = event_of(EV_CACHE_VERIFIED);

	EVENT_SET(&ev, attempt, attempt);
	EVENT_SET(&ev, complete, complete);
	EVENT_SET_STR(&ev, reason, reason);
	return ev;
}

static inline struct event checkpoint(int64_t attempt, int64_t step, const char *url)
{
	struct event ev = event_of(EV_CHECKPOINT_COMPLETE);

	EVENT_SET(&ev, attempt, attempt);
	EVENT_SET(&ev, step, step);
	EVENT_SET_STR(&ev, url, url);
	return ev;
}

static inline struct event took_over(int64_t epoch)
{
	struct event ev = event_of(EV_DRIVER_TOOK_OVER);

	EVENT_SET_STR(&ev, host, "here");
	EVENT_SET(&ev, pid, 1);
	EVENT_SET(&ev, epoch, epoch);
	return ev;
}

static inline struct event stop(const char *reason)
{
	struct event ev = event_of(EV_REQUEST_STOP);

	EVENT_SET_STR(&ev, reason, reason);
	return ev;
}

static inline struct flow_policy story_policy(void)
{
	return (struct flow_policy){ .run = "r1",
				     .compiles = true,
				     .nodes = 1,
				     .retry_attempts = 20,
				     .retry_without_progress = 5,
				     .backoff_first_ms = MIN(1),
				     .backoff_max_ms = MIN(4) };
}

static inline void story_begin(struct story *s, const struct flow_policy *policy)
{
	memset(s, 0, sizeof *s);
	flow_init(&s->flow, policy);
	story_at(s, 0, created());
}

/* The usual way to a running training, told elsewhere. */
static inline void story_begin_training(struct story *s, const struct flow_policy *policy)
{
	story_begin(s, policy);
	story_at(s, 0, checked(CACHE_WARM));
	story_at(s, 0, about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 1));
	story_at(s, 0, about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 1));
	s->len = 0;
	s->text[0] = '\0';
}

/* Begins at minute 1, for tests in which no time may be 0: the question of the cache is
 * answered. */
static inline void story_begin_late(struct story *s, const struct flow_policy *policy)
{
	memset(s, 0, sizeof *s);
	flow_init(&s->flow, policy);
	story_at(s, MIN(1), created());
	story_at(s, MIN(1), checked(CACHE_WARM));
}

/* Does the same as story_begin_training(), from minute 1 on; its command has begun. */
static inline void story_train_late(struct story *s, const struct flow_policy *policy)
{
	story_begin_late(s, policy);
	story_at(s, MIN(1), about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 1));
	story_at(s, MIN(1), about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 1));
	story_at(s, MIN(1), about(EV_ATTEMPT_STARTED, PHASE_TRAIN, 1));
	s->len = 0;
	s->text[0] = '\0';
}

/* The story so far is exactly this; and the journal alone tells the same. */
#define STORY(s, expected)                                                                         \
	do {                                                                                       \
		assert_string_equal((s)->text, expected);                                          \
		story_replays(s);                                                                  \
	} while (0)

static inline void story_replays(const struct story *s)
{
	struct flow again;

	flow_init(&again, &s->flow.policy);
	for (int i = 0; i < s->journalled; i++)
		flow_apply(&again, &s->journal[i]);
	assert_memory_equal(&again, &s->flow, sizeof again);
}

#endif
