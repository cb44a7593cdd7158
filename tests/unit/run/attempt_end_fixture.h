/* An attempt that ends, as its engine tells it: see attempt_fixture.h. */
#ifndef TEST_RUN_ATTEMPT_END_FIXTURE_H
#define TEST_RUN_ATTEMPT_END_FIXTURE_H

#include "attempt_fixture.h"

static struct engine_status the_end;

static int describe_end(struct engine *of, const char *name, const char *prefix,
			struct engine_status *ret, struct err **err)
{
	(void)of, (void)name, (void)prefix, (void)err;
	*ret = the_end;
	return 0;
}

static inline struct attempt_watch *begin_end(enum phase phase, const char *plan, int exit_status)
{
	struct attempt_watch *watch = begin(phase, plan);

	ops.describe = describe_end;
	the_end = (struct engine_status){ .state = ENGINE_ENDED,
					  .exit_known = exit_status >= 0,
					  .exit = exit_status < 0 ? 0 : exit_status };
	driver.flow.attempt_state = ATTEMPT_RUNNING;
	driver.flow.started = true;
	return watch;
}

/* The attempt ends, and this is all that attempt.ended tells of it, with ~ where that has '. */
static inline void ends_as(const char *members)
{
	AUTO(auto_free)
	char *text = mem_format("{'phase':'%s','attempt':1,'job':'stk-r1-1',%s}",
				flow_phase_names[driver.watch->phase], members);
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *want = NULL;
	AUTO(auto_free) char *json = quoted(text);

	for (char *at = json; *at; at++)
		if (*at == '~')
			*at = '\'';
	assert_int_equal(js_parse(json, strlen(json), "a test's JSON", &want, &err), 0);
	if (watch_turn(&driver, &err) < 0)
		fail_msg("%s", err->message);
	assert_event("attempt.ended", want);
}

#endif
