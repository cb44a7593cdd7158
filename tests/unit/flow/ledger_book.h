/* What the tests of the ledger share: one that is fed event by event, and the events
 * that they write most. */
#ifndef STK_TESTS_UNIT_FLOW_LEDGER_BOOK_H
#define STK_TESTS_UNIT_FLOW_LEDGER_BOOK_H

#include "tests/unit/flow/story.h"

/* A ledger fed event by event; after each of them the bins add up. */
struct book {
	struct ledger ledger;
	struct utc begun;
};

static inline void adds_up(const struct book *b, struct utc now)
{
	struct ledger_view view;
	int64_t sum = 0, held = 0;

	ledger_at(&b->ledger, now, &view);
	for (int bin = 0; bin < BIN_COUNT; bin++) {
		assert_true(view.ms[bin] >= 0);
		assert_true(view.held_ms[bin] >= 0 && view.held_ms[bin] <= view.ms[bin]);
		sum += view.ms[bin];
		held += view.held_ms[bin];
	}
	assert_int_equal(sum, now.ms - b->begun.ms);
	assert_int_equal(sum, view.total_ms);
	assert_int_equal(held, view.held_total_ms);
}

static inline void add(struct book *b, int64_t ms, struct event ev)
{
	ev.at.ms = ms;
	ledger_add(&b->ledger, &ev);
	if (ev.kind == EV_RUN_CREATED)
		b->begun = ev.at;
	adds_up(b, ev.at);
	if (b->ledger.stage != STAGE_OVER)
		adds_up(b, (struct utc){ ms + 12345 });
}

static inline int64_t bin_at(const struct book *b, int64_t ms, enum ledger_bin which)
{
	struct ledger_view view;

	ledger_at(&b->ledger, (struct utc){ ms }, &view);
	return view.ms[which];
}

static inline int64_t bin(const struct book *b, enum ledger_bin which)
{
	return bin_at(b, b->ledger.at.ms, which);
}

static inline int64_t held(const struct book *b)
{
	struct ledger_view view;

	ledger_at(&b->ledger, b->ledger.at, &view);
	return view.held_total_ms;
}

static inline struct event progress(int64_t attempt, int64_t step)
{
	struct event ev = event_of(EV_TRAIN_PROGRESS);

	EVENT_SET(&ev, attempt, attempt);
	EVENT_SET(&ev, step, step);
	return ev;
}

static inline struct event intended(enum phase phase, int64_t attempt, int64_t step)
{
	struct event ev = about(EV_ATTEMPT_INTENDED, phase, attempt);

	if (step >= 0) {
		EVENT_SET_STR(&ev, resumed_from, "ckpt");
		EVENT_SET(&ev, step, step);
	}
	return ev;
}

static inline struct event retry(int64_t until)
{
	struct event ev = event_of(EV_RETRY_SCHEDULED);

	EVENT_SET(&ev, phase, PHASE_TRAIN);
	EVENT_SET(&ev, delay, 1);
	EVENT_SET(&ev, until, until);
	EVENT_SET(&ev, action, ACTION_RETRY);
	return ev;
}

static inline struct event left(void)
{
	struct event ev = event_of(EV_DRIVER_LEFT);

	EVENT_SET(&ev, epoch, 1);
	return ev;
}

static inline struct event claimed_since(int64_t attempt, int64_t since)
{
	struct event ev = about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, attempt);

	EVENT_SET(&ev, since, since);
	return ev;
}

static inline void begin_run(struct book *b)
{
	memset(b, 0, sizeof *b);
	add(b, 1000, created());
	add(b, 1000, took_over(1));
}

/* A run whose cache is warm, all in its first moment: nothing is submitted yet. */
static inline void intend_training(struct book *b)
{
	begin_run(b);
	add(b, 1000, checked(CACHE_WARM));
	add(b, 1000, intended(PHASE_TRAIN, 1, -1));
}

/* Created at 1000, its training attempt 1 running since 2000, steps from 3000 on. */
static inline void begin_training(struct book *b)
{
	begin_run(b);
	add(b, 1100, checked(CACHE_WARM));
	add(b, 1100, intended(PHASE_TRAIN, 1, -1));
	add(b, 1200, about(EV_ATTEMPT_SUBMITTED, PHASE_TRAIN, 1));
	add(b, 2000, about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 1));
	add(b, 2100, about(EV_ATTEMPT_STARTED, PHASE_TRAIN, 1));
	add(b, 3000, progress(1, 1));
}

/* Something that says nothing about time but that a driver was there. */
static inline struct event word(void)
{
	struct event ev = event_of(EV_NOTIFY_SENT);

	EVENT_SET(&ev, rule, 1);
	EVENT_SET(&ev, about, 1);
	return ev;
}

static inline struct event compiling(int64_t attempt)
{
	struct event ev = event_of(EV_COMPILE_PROGRESS);

	EVENT_SET(&ev, attempt, attempt);
	return ev;
}

/* The precompile attempt 1 runs since 2000. */
static inline void begin_precompile(struct book *b)
{
	begin_run(b);
	add(b, 1000, checked(CACHE_COLD));
	add(b, 1000, intended(PHASE_PRECOMPILE, 1, -1));
	add(b, 1000, about(EV_ATTEMPT_CLAIMED, PHASE_PRECOMPILE, 1));
	add(b, 2000, about(EV_ATTEMPT_STARTED, PHASE_PRECOMPILE, 1));
}

/* The training attempt 1 began its command at 1000, and has shown no step. */
static inline void begin_silent(struct book *b)
{
	begin_run(b);
	add(b, 1000, checked(CACHE_WARM));
	add(b, 1000, intended(PHASE_TRAIN, 1, -1));
	add(b, 1000, about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 1));
	add(b, 1000, about(EV_ATTEMPT_STARTED, PHASE_TRAIN, 1));
}

/* The attempts before reached step 101 with 10 ms a step; the next one begins at 20000. */
static inline void begin_again(struct book *b, int64_t from)
{
	begin_silent(b);
	add(b, 2000, progress(1, 1));
	add(b, 3000, progress(1, 101));
	add(b, 3000, ended(PHASE_TRAIN, 1, CLASS_HARDWARE_NODE));
	add(b, 20000, intended(PHASE_TRAIN, 2, from));
	add(b, 20000, about(EV_ATTEMPT_CLAIMED, PHASE_TRAIN, 2));
	add(b, 20000, about(EV_ATTEMPT_STARTED, PHASE_TRAIN, 2));
}

#endif
