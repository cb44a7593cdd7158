/* The outcome of a submission is journalled later where the journal refused it, and the engine is
 * not asked to start the job once more. */
#include "jobs/run/attempt/watch_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "jobs/base/fs/fs.h"

static void note(void *arg, const struct event *ev, json_t *row)
{
	(void)row;
	*(struct event *)arg = *ev;
}

/* Records what the engine said of a job before. It has no function `submit`. */
static void record_again(bool unsure, enum event_kind kind)
{
	static const struct engine_ops ops = { .name = "local" };
	char dir[] = "/tmp/stoker-submit-XXXXXX";
	AUTO(err_freep) struct err *err = NULL;
	struct event recorded = { 0 };
	struct driver_options options = { .on_event = note, .arg = &recorded };
	struct engine engine = { &ops };
	struct driver driver = { .run = "r1",
				 .options = &options,
				 .engine = &engine,
				 .submitted = true,
				 .submit_unsure = unsure };
	const struct effect effect = {
		.kind = EFFECT_SUBMIT, .phase = PHASE_TRAIN, .attempt = 2, .job = "stk-r1-train-2"
	};
	int64_t wait_ms = 0;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(journal_open(dir, JOURNAL_WRITE, &driver.journal, &err), 0);
	assert_int_equal(submit_job(&driver, &effect, &wait_ms, &err), 0);
	assert_int_equal(recorded.kind, kind);
	assert_int_equal(recorded.attempt, 2);
	assert_int_equal(wait_ms, 0);
	journal_freep(&driver.journal);
	assert_int_equal(fs_remove_tree(dir, &err), 0);
}

static void a_job_that_was_submitted_is_not_submitted_again(void **state)
{
	(void)state;
	record_again(false, EV_ATTEMPT_SUBMITTED);
	record_again(true, EV_ATTEMPT_UNCERTAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_job_that_was_submitted_is_not_submitted_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
