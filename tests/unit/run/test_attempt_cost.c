/* What is kept of an attempt's machines, and who may say so. */
#include "jobs/run/attempt/watch_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "jobs/base/fs/fs.h"

static int tell_kept(struct engine *engine, const char *name, const char *prefix,
		     int64_t *ret_seconds, struct err **err)
{
	(void)engine;
	(void)prefix;
	(void)err;
	assert_string_equal(name, "stk-r1-train-1");
	*ret_seconds = 5;
	return 1;
}

static int tell_later(struct engine *engine, const char *name, const char *prefix,
		      int64_t *ret_seconds, struct err **err)
{
	(void)engine;
	(void)name;
	(void)prefix;
	*ret_seconds = 0;
	return err_set(err, EXIT_BUSY, "not yet");
}

static void who_was_taken_over_says_nothing_more(void **state)
{
	static const struct engine_ops kept = { .name = "sagemaker", .release = tell_kept };
	static const struct engine_ops later = { .name = "sagemaker", .release = tell_later };
	char dir[] = "/tmp/stoker-bill-XXXXXX";
	AUTO(err_freep) struct err *err = NULL;
	struct driver_options options = { 0 };
	struct engine engine = { &later };
	struct driver driver = { .run = "r1", .options = &options, .engine = &engine };
	struct engine_status held = { .held = { 1000 } };
	struct event other = { .kind = EV_DRIVER_TOOK_OVER, .seq = 1, .at = { 1000 } };
	struct event ev = { .kind = EV_ATTEMPT_CLAIMED };
	int64_t wait_ms = 0;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(journal_open(dir, JOURNAL_WRITE, &driver.journal, &err), 0);
	driver.live = true;
	driver.flow.ledger.ended_phase = PHASE_TRAIN;
	driver.flow.ledger.ended_attempt = 1;
	EVENT_SET_STR(&other, host, "here");
	EVENT_SET(&other, pid, 1);
	EVENT_SET(&other, epoch, 2);
	assert_int_equal(journal_append(driver.journal, "r1", &other, &err), 1);
	/* What the service does not say yet is asked for again. */
	assert_int_equal(attempt_cost_release(&driver, false, &wait_ms, &err), 0);
	assert_true(wait_ms > 0);
	assert_int_equal(attempt_cost_claimed(&driver, &held, &ev, &err), 0);
	assert_false(driver.stood_down);
	/* What it says is not ours to write down. */
	engine.ops = &kept;
	assert_int_equal(attempt_cost_claimed(&driver, &held, &ev, &err), -1);
	assert_int_equal(err->code, EXIT_BUSY);
	assert_true(driver.stood_down);
	journal_freep(&driver.journal);
	assert_int_equal(fs_remove_tree(dir, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_was_taken_over_says_nothing_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
