/* What the tests of loop.h share: a loop, and callbacks that leave a trace. */
#ifndef STK_TESTS_UNIT_BASE_SCENE_H
#define STK_TESTS_UNIT_BASE_SCENE_H

#include "jobs/base/process/loop.h"
#include "tests/unit/base/unit.h"

/* The state that the callbacks of a test share. */
struct scene {
	struct loop *loop;
	struct watch *watches[300];
	int fds[300][2];
	int count;
	struct sb trace; /* the events, a word each */
	int64_t at_ms;
};

static inline int scene_setup(void **state)
{
	struct scene *s = mem_zero(1, sizeof *s);
	struct err *err = NULL;

	s->trace = SB_INIT;
	*state = s;
	return loop_new(&s->loop, &err);
}

static inline int scene_teardown(void **state)
{
	struct scene *s = *state;

	loop_freep(&s->loop);
	sb_release(&s->trace);
	free(s);
	return 0;
}

#define test_scene(f) cmocka_unit_test_setup_teardown(f, scene_setup, scene_teardown)

static inline void run(struct scene *s)
{
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(loop_run(s->loop, &err), 0);
	assert_no_error(err);
}

static inline void quit(void *arg)
{
	struct scene *s = arg;

	loop_quit(s->loop);
}

#define TRACER(name, word)                                                                         \
	static void name(void *arg)                                                                \
	{                                                                                          \
		struct scene *s = arg;                                                             \
                                                                                                   \
		sb_adds(&s->trace, word " ");                                                      \
	}

#endif
