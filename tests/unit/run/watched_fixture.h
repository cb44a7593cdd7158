/*
 * Looks at an attempt that goes on: an engine that says what `seen` holds, and what was told.
 */
#ifndef TEST_RUN_WATCHED_FIXTURE_H
#define TEST_RUN_WATCHED_FIXTURE_H

#include "attempt_fixture.h"

/* The engine's word of the job at each look. */
static struct engine_status seen;

static inline int describe_seen(struct engine *of, const char *name, const char *prefix,
				struct engine_status *ret, struct err **err)
{
	(void)of;
	assert_string_equal(name, "stk-r1-1");
	assert_memory_equal(prefix, "runs/r1/", 8);
	if (said.away)
		return no_answer(err);
	*ret = seen;
	return 0;
}

static inline struct attempt_watch *begin_seen(enum phase phase, const char *plan,
					       enum engine_state state)
{
	struct attempt_watch *watch;

	watch = begin(phase, plan);
	ops.describe = describe_seen;
	seen = (struct engine_status){ .state = state };
	driver.flow.attempt_state = ATTEMPT_RUNNING;
	return watch;
}

static inline void look(void)
{
	AUTO(err_freep) struct err *err = NULL;

	if (watch_turn(&driver, &err) < 0)
		fail_msg("%s", err->message);
}

/* The names of all events, in their order. */
static inline char *told(void)
{
	struct sb words = SB_INIT;
	const json_t *row;
	size_t i;

	json_array_foreach (recorded, i, row)
		sb_addf(&words, "%s%s", i ? " " : "", js_str(row, "event"));
	return words.len ? sb_take(&words) : mem_copy("");
}

static inline void assert_told(const char *want)
{
	AUTO(auto_free) char *words = told();

	assert_string_equal(words, want);
}

#endif
