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
	/* The service is asked again for a time that it does not say yet. */
	assert_int_equal(attempt_cost_release(&driver, false, &wait_ms, &err), 0);
	assert_true(wait_ms > 0);
	assert_int_equal(attempt_cost_claimed(&driver, &held, &ev, &err), 0);
	assert_false(driver.stood_down);
	/* The service's answer is not ours to write down. */
	engine.ops = &kept;
	assert_int_equal(attempt_cost_claimed(&driver, &held, &ev, &err), -1);
	assert_int_equal(err->code, EXIT_BUSY);
	assert_true(driver.stood_down);
	journal_freep(&driver.journal);
	assert_int_equal(fs_remove_tree(dir, &err), 0);
}

/* The engine's words on the machines of the ended attempt. */
static struct {
	int kept;
	int64_t seconds;
	enum exit_code refused;
} told;

static int tell(struct engine *engine, const char *name, const char *prefix, int64_t *ret_seconds,
		struct err **err)
{
	(void)engine, (void)name, (void)prefix;
	*ret_seconds = told.seconds;
	if (told.kept < 0) {
		err_set(err, told.refused, "the service says no");
		err_hint(err, "allow it");
	}
	return told.kept;
}

static struct event kept; /* the newest attempt.kept */
static bool is_kept;

static void note_kept(void *arg, const struct event *ev, json_t *row)
{
	(void)arg, (void)row;
	is_kept = ev->kind == EV_ATTEMPT_KEPT;
	kept = *ev;
}

/* Asks once more for the same attempt; whether something is recorded. */
static bool is_recorded(struct driver *driver, bool next)
{
	AUTO(err_freep) struct err *err = NULL;
	int64_t wait_ms = 0;

	is_kept = false;
	driver->flow.ledger.kept_reported = false;
	assert_int_equal(attempt_cost_release(driver, next, &wait_ms, &err), 0);
	assert_int_equal(wait_ms, 0);
	return is_kept;
}

static void what_was_kept_is_recorded_with_why_it_was_not_given_back(void **state)
{
	static const struct engine_ops ops = { .name = "sagemaker", .release = tell };
	char dir[] = "/tmp/stoker-bill-XXXXXX";
	AUTO(err_freep) struct err *err = NULL;
	struct driver_options options = { .on_event = note_kept };
	struct engine engine = { &ops };
	struct driver driver = { .run = "r1", .options = &options, .engine = &engine };
	int64_t wait_ms;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(journal_open(dir, JOURNAL_WRITE, &driver.journal, &err), 0);
	driver.flow.ledger.ended_phase = PHASE_TRAIN;
	driver.flow.ledger.ended_attempt = 1;
	assert_false(is_recorded(&driver, false)); /* nothing was kept */
	told.kept = 1;
	told.seconds = 7;
	assert_true(is_recorded(&driver, false));
	assert_true(kept.seconds == 7);
	assert_false(EVENT_HAS(&kept, reason));
	/* The machines stay kept, and are billed unless the next attempt takes them. */
	told.kept = -1;
	told.refused = EXIT_REFUSED;
	assert_true(is_recorded(&driver, false));
	assert_true(kept.seconds == 7);
	assert_string_equal(kept.reason, "the service says no");
	assert_string_equal(kept.hint, "allow it");
	assert_true(is_recorded(&driver, true));
	assert_false(EVENT_HAS(&kept, seconds));
	/* Nothing is known without an answer. */
	told.refused = EXIT_UNREACHABLE;
	driver.flow.ledger.kept_reported = false;
	assert_int_equal(attempt_cost_release(&driver, false, &wait_ms, &err), -1);
	assert_int_equal(err->code, EXIT_UNREACHABLE);
	journal_freep(&driver.journal);
	err_freep(&err);
	assert_int_equal(fs_remove_tree(dir, &err), 0);
}

static void what_the_service_bills_is_in_the_end(void **state)
{
	const struct engine_status status = { .held = { 1000 },
					      .released = { 5000 },
					      .billable_ms = 3000 };
	struct driver driver = { .run = "r1" };
	struct event ev = { .kind = EV_ATTEMPT_ENDED };

	(void)state;
	attempt_cost_ended(&driver, &status, &ev);
	assert_int_equal(ev.held, 1000);
	assert_int_equal(ev.released, 5000);
	assert_int_equal(ev.billable, 3000);
	/* The claim has told since when they are held. */
	driver.flow.claimed = true;
	ev = (struct event){ .kind = EV_ATTEMPT_ENDED };
	attempt_cost_ended(&driver, &(struct engine_status){ .held = { 1000 } }, &ev);
	assert_false(EVENT_HAS(&ev, held));
	assert_false(EVENT_HAS(&ev, released));
	assert_false(EVENT_HAS(&ev, billable));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_was_taken_over_says_nothing_more),
		cmocka_unit_test(what_was_kept_is_recorded_with_why_it_was_not_given_back),
		cmocka_unit_test(what_the_service_bills_is_in_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
