/* An agent whose clock is the test's: nothing waits, and a timer runs when the test comes to it.
 * Its program is linked so that these take the place of the real ones (tests/CMakeLists.txt). */
#ifndef STK_TESTS_UNIT_NODE_TICKS_H
#define STK_TESTS_UNIT_NODE_TICKS_H

#include "tests/unit/node/agent_scene.h"

#include "jobs/base/process/loop.h"

#define TIMERS_MAX 32
#define UTC_AHEAD  ((int64_t)1000 * 1000 * 1000)

struct timer {
	int64_t at_ms;
	watch_fn fn;
	void *arg;
	bool set;
};

static int64_t ticks_ms;
static struct timer timers[TIMERS_MAX];
static void (*on_pause)(void); /* events elsewhere while the agent waits */

struct mono __wrap_clock_mono_now(void);
struct utc __wrap_clock_utc_now(void);
struct watch *__wrap_loop_after(struct loop *loop, int64_t delay_ms, watch_fn fn, void *arg);
void __wrap_loop_remove(struct loop *loop, struct watch *watch);
void __real_loop_remove(struct loop *loop, struct watch *watch);
void __wrap_cancel_pause_briefly(int64_t ms);

struct mono __wrap_clock_mono_now(void)
{
	return (struct mono){ ticks_ms };
}

struct utc __wrap_clock_utc_now(void)
{
	return (struct utc){ ticks_ms + UTC_AHEAD };
}

struct watch *__wrap_loop_after(struct loop *loop, int64_t delay_ms, watch_fn fn, void *arg)
{
	(void)loop;
	for (size_t i = 0; i < TIMERS_MAX; i++)
		if (!timers[i].set) {
			timers[i] = (struct timer){ ticks_ms + delay_ms, fn, arg, true };
			return (struct watch *)&timers[i];
		}
	fail_msg("too many timers");
	return NULL;
}

void __wrap_loop_remove(struct loop *loop, struct watch *watch)
{
	for (size_t i = 0; i < TIMERS_MAX; i++)
		if ((void *)watch == (void *)&timers[i]) {
			timers[i].set = false;
			return;
		}
	__real_loop_remove(loop, watch);
}

void __wrap_cancel_pause_briefly(int64_t ms)
{
	ticks_ms += ms;
	if (on_pause)
		on_pause();
}

/* The next timer, up to that time; NULL: there is none. */
static struct timer *next_timer(int64_t until_ms)
{
	struct timer *first = NULL;

	for (size_t i = 0; i < TIMERS_MAX; i++)
		if (timers[i].set && timers[i].at_ms <= until_ms &&
		    (!first || timers[i].at_ms < first->at_ms))
			first = &timers[i];
	return first;
}

/* Milliseconds until the next timer; -1: there is none. */
static UNUSED int64_t next_ms(void)
{
	const struct timer *timer = next_timer(INT64_MAX);

	return timer ? timer->at_ms - ticks_ms : -1;
}

/* Returns what has been ordered from the uploader since the last call, one a line; it is carried
 * out. */
static UNUSED char *ordered(struct agent *agent)
{
	struct sb *queue = &agent->uploader.orders.queue;
	char *text = mem_copy(queue->text ? queue->text : "");

	sb_clear(queue);
	return text;
}

static UNUSED size_t count_of(const char *text, const char *part)
{
	size_t count = 0;

	for (const char *at = text; (at = strstr(at, part)); at++)
		count++;
	return count;
}

/* Time passes, and timers run; nobody carries out what is ordered. */
static UNUSED void pass_time_stuck(int64_t ms)
{
	int64_t until = ticks_ms + ms;
	struct timer *timer;

	while ((timer = next_timer(until))) {
		ticks_ms = timer->at_ms > ticks_ms ? timer->at_ms : ticks_ms;
		timer->set = false;
		timer->fn(timer->arg);
	}
	ticks_ms = until;
}

/* The same, but what is ordered is carried out at once; `ret` (NULL: not wanted) gets it. */
static UNUSED void pass_time(struct agent *agent, int64_t ms, struct sb *ret)
{
	int64_t until = ticks_ms + ms;

	do {
		const struct timer *timer = next_timer(until);
		int64_t next = timer ? timer->at_ms : until;
		AUTO(auto_free) char *orders = NULL;

		pass_time_stuck(next > ticks_ms ? next - ticks_ms : 0);
		orders = ordered(agent);
		if (ret)
			sb_adds(ret, orders);
	} while (ticks_ms < until || next_timer(until));
}

static UNUSED int ticks_make(void **state)
{
	memset(timers, 0, sizeof timers);
	on_pause = NULL;
	ticks_ms = 1000 * 1000;
	return place_make(state);
}

#endif
