/* Logs that cannot be read or lag behind, and steps that nobody saw, at their limits. The clock is
 * the test's. See jobs/run/attempt/reading.c and numbers.c. */
#include "attempt_clock.h"
#include "attempt_fixture.h"

#include <errno.h>

#define PLAN                                                                                       \
	"{'nodes':%d,'steps':{'train':100},'metrics':[{'name':'step','regex':'step ([0-9]+)'},"    \
	"{'name':'loss','regex':'loss ([0-9.]+)'}]}"

static struct attempt_watch *begin_nodes(int nodes)
{
	AUTO(auto_free) char *plan = mem_format(PLAN, nodes);
	struct attempt_watch *watch;

	now.ms = 1000000;
	watch = begin(PHASE_TRAIN, plan);
	driver.kind = compile_kind_find("none");
	return watch;
}

static void end_nodes(void)
{
	now.ms = 0;
	end();
}

/* ---- logs that cannot be read ---- */

static struct {
	enum exit_code code;
	int os_errno, calls;
} refusal;

static int refuse_log(struct engine *of, const char *name, const char *prefix, int node,
		      uint64_t *offset, size_t max, struct sb *ret, struct err **err)
{
	AUTO(auto_free) char *words = mem_format("log %d is not yours", node);

	(void)of, (void)name, (void)prefix, (void)offset, (void)max, (void)ret;
	refusal.calls++;
	(void)!err_set(err, refusal.code, "%s", words);
	(*err)->os_errno = refusal.os_errno;
	return -1;
}

static int turn(bool ends)
{
	AUTO(err_freep) struct err *err = NULL;
	bool more = true;
	int result = reading_turn(driver.watch, ends, ends, &more, &err);

	if (result < 0)
		assert_non_null(strstr(err->message, "is not yours"));
	return result;
}

static void refuse(enum exit_code code, int os_errno)
{
	ops.logs = refuse_log;
	refusal.code = code;
	refusal.os_errno = os_errno;
	refusal.calls = 0;
}

static void a_log_is_passed_over_at_the_end_alone(void **state)
{
	struct attempt_watch *watch = begin_nodes(2);

	(void)state;
	refuse(EXIT_REFUSED, 0);
	assert_int_equal(turn(false), -1);
	assert_int_equal(turn(false), -1);
	assert_null(watch->unread);
	assert_int_equal(turn(true), 0);
	assert_string_equal(watch->unread->message, "log 0 is not yours"); /* of the first */
	assert_true(watch->logs[0].unread && watch->logs[1].unread);
	refusal.calls = 0;
	assert_int_equal(turn(true), 0);
	assert_int_equal(refusal.calls, 0); /* it is not asked again */
	assert_false(watch_is_ending(&driver));
	end_nodes();
}

static void a_service_that_does_not_answer_is_never_passed_over(void **state)
{
	struct attempt_watch *watch = begin_nodes(1);

	(void)state;
	refuse(EXIT_UNREACHABLE, 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(turn(true), -1);
	assert_null(watch->unread);
	assert_false(watch_is_ending(&driver));
	end_nodes();
}

static void what_may_pass_by_itself_is_tried_three_times(void **state)
{
	struct attempt_watch *watch = begin_nodes(1);

	(void)state;
	refuse(EXIT_REFUSED, EAGAIN);
	assert_int_equal(turn(true), -1);
	assert_true(watch_is_ending(&driver));
	assert_int_equal(turn(true), -1);
	assert_null(watch->unread);
	assert_int_equal(turn(true), 0);
	assert_non_null(watch->unread);
	end_nodes();
}

/* ---- logs that lag behind ---- */

#define MIB ((size_t)1 << 20)

/* More than a turn has room for. */
static void say_much(void)
{
	char line[1024];

	memset(line, 'x', sizeof line);
	line[sizeof line - 1] = '\n';
	for (size_t len = 0; len < 3 * MIB; len += sizeof line)
		sb_add(&said.logs[0], line, sizeof line);
}

static void lags(bool ended, size_t records)
{
	AUTO(err_freep) struct err *err = NULL;
	bool more = false;

	say_much();
	assert_int_equal(reading_turn(driver.watch, false, ended, &more, &err), 0);
	assert_true(more);
	assert_recorded(records);
}

static void a_lag_is_told_after_ten_seconds_and_ever_more_rarely(void **state)
{
	struct attempt_watch *watch = begin_nodes(1);

	(void)state;
	lags(false, 0);
	assert_int_equal(watch->behind_since.ms, 1000000);
	now.ms = 1009999;
	lags(false, 0);
	now.ms = 1010000;
	lags(false, 1);
	assert_int_equal(newest_int("log.read", "read_bytes"), watch->logs[0].tail.offset);
	assert_null(newest_value("log.read", "node"));
	assert_null(newest_value("log.read", "skipped_bytes"));
	now.ms = 1029999;
	lags(false, 1);
	now.ms = 1030000;
	lags(false, 2);
	assert_int_equal(watch->behind_pause_ms, 40000);
	/* but not once the attempt has ended */
	now.ms = 1039999;
	lags(true, 2);
	now.ms = 1040000;
	lags(true, 3);
	/* ten minutes at most */
	watch->behind_pause_ms = 299999;
	now.ms += 299999;
	lags(false, 4);
	assert_int_equal(watch->behind_pause_ms, 599998);
	watch->behind_pause_ms = 300000;
	now.ms += 300000;
	lags(false, 5);
	assert_int_equal(watch->behind_pause_ms, 600000);
	end_nodes();
}

static void who_has_caught_up_begins_anew(void **state)
{
	struct attempt_watch *watch = begin_nodes(1);
	AUTO(err_freep) struct err *err = NULL;
	bool more = true;

	(void)state;
	lags(false, 0);
	assert_false(watch->caught_up || watch->news);
	while (more)
		assert_int_equal(reading_turn(watch, false, false, &more, &err), 0);
	assert_true(watch->caught_up && watch->news);
	assert_int_equal(watch->behind_since.ms, 0);
	assert_int_equal(watch->behind_pause_ms, 0);
	assert_int_equal(watch->heard_at.ms, 1000000);
	end_nodes();
}

static void no_log_waits_behind_another_that_floods(void **state)
{
	struct attempt_watch *watch = begin_nodes(2);

	(void)state;
	sb_adds(&said.logs[1], "step 3\n");
	lags(false, 0);
	assert_int_equal(watch->last_step, 3);
	assert_int_equal(watch->step_node, 1);
	end_nodes();
}

/* ---- steps ---- */

static void a_stretch_is_told_if_it_lies_in_a_time_without_a_driver(void **state)
{
	static const struct {
		int64_t from, to;
		bool told;
	} rows[] = {
		{ 200, 300, false }, { 199, 300, true }, { 50, 100, false },
		{ 50, 101, true },   { 120, 130, true }, { 0, 1000, true },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct attempt_watch *watch = begin_nodes(1);
		struct ledger *ledger = &driver.flow.ledger;
		AUTO(err_freep) struct err *err = NULL;

		ledger->hole_count = 2;
		ledger->holes[0].from.ms = 5000;
		ledger->holes[0].to.ms = 6000;
		ledger->holes[1].from.ms = rows[i].from;
		ledger->holes[1].to.ms = rows[i].to;
		said.beside = mem_copy("{'v':1,'rate':2,'stretches':[[100,200,1,5]]}");
		say_and_read("step 10 loss 1\n");
		assert_int_equal(numbers_record(watch, false, &err), 0);
		assert_int_equal(count_of("train.stretch"), rows[i].told);
		end_nodes();
	}
}

static void a_row_of_an_earlier_step_is_not_told(void **state)
{
	struct attempt_watch *watch = begin_nodes(1);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	say_and_read("step 5 loss 1\n");
	watch->recorded_step = 6;
	assert_int_equal(numbers_record(watch, true, &err), 0);
	assert_recorded(0);
	watch->recorded_step = 5;
	assert_int_equal(numbers_record(watch, true, &err), 0);
	assert_recorded(1);
	assert_int_equal(numbers_record(watch, true, &err), 0);
	assert_recorded(1); /* nor one that is told */
	end_nodes();
}

static void a_step_behind_its_row_is_told_the_next_time(void **state)
{
	struct attempt_watch *watch = begin_nodes(1);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	say_and_read("step 5 loss 1\nstep 6\n");
	assert_int_equal(numbers_record(watch, false, &err), 0);
	assert_int_equal(newest_int("train.progress", "step"), 5);
	assert_true(watch->numbers_changed);
	assert_int_equal(numbers_record(watch, false, &err), 0);
	assert_int_equal(newest_int("train.progress", "step"), 6);
	assert_false(watch->numbers_changed);
	assert_int_equal(numbers_record(watch, false, &err), 0);
	assert_recorded(2);
	end_nodes();
}

static void the_pace_of_the_report_counts_at_the_end_alone(void **state)
{
	struct attempt_watch *watch = begin_nodes(1);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	report(0, "'pace':{'v':1,'rate':5}");
	said.beside = mem_copy("{'v':1,'rate':2}");
	say_and_read("step 1 loss 1\n");
	assert_int_equal(numbers_record(watch, false, &err), 0);
	assert_true(json_real_value(newest_value("train.progress", "rate")) == 2);
	say_and_read("step 2 loss 1\n");
	assert_int_equal(numbers_record(watch, true, &err), 0);
	assert_true(json_real_value(newest_value("train.progress", "rate")) == 5);
	/* without one it is that beside it */
	report(0, "'host':'a'");
	say_and_read("step 3 loss 1\n");
	assert_int_equal(numbers_record(watch, true, &err), 0);
	assert_true(json_real_value(newest_value("train.progress", "rate")) == 2);
	/* and where the agent says nothing any more, the newest that it said */
	free(TAKE(said.beside));
	say_and_read("step 4 loss 1\n");
	assert_int_equal(numbers_record(watch, true, &err), 0);
	assert_true(json_real_value(newest_value("train.progress", "rate")) == 2);
	end_nodes();
}

static int64_t line_ms; /* time of each line; 0: not known */

static struct utc say_time(struct engine *of, const char *name, const char *prefix, int node,
			   uint64_t offset)
{
	(void)of, (void)name, (void)prefix, (void)node, (void)offset;
	return (struct utc){ line_ms };
}

static void a_step_is_dated_by_its_line_if_that_has_a_time(void **state)
{
	struct attempt_watch *watch = begin_nodes(1);

	(void)state;
	ops.log_time = say_time;
	line_ms = 0;
	say_and_read("step 1\n");
	assert_true(watch->stepped_at.ms > 1000);
	assert_false(watch->own_exact);
	line_ms = 1;
	say_and_read("step 2\n");
	assert_int_equal(watch->stepped_at.ms, 1);
	assert_true(watch->own_exact);
	line_ms = 0;
	say_and_read("step 3\n");
	assert_true(watch->stepped_at.ms > 1000);
	assert_true(watch->own_exact);
	/* one that is not larger is no new step */
	line_ms = 5;
	say_and_read("step 3\nstep 2\n");
	assert_true(watch->stepped_at.ms > 1000);
	assert_int_equal(watch->last_step, 3);
	assert_int_equal(watch->first_step, 1);
	end_nodes();
}

static void a_chunk_that_is_full_may_have_more_behind_it(void **state)
{
	struct attempt_watch *watch = begin_nodes(1);
	AUTO(auto_free) char *text = mem_zero((64 << 10) + 1, 1);
	AUTO(err_freep) struct err *err = NULL;
	bool more = true;

	(void)state;
	memset(text, 'x', 64 << 10);
	text[(64 << 10) - 1] = '\n';
	sb_adds(&said.logs[0], text);
	assert_int_equal(reading_turn(watch, false, false, &more, &err), 0);
	assert_false(more);
	assert_int_equal(watch->logs[0].tail.offset, 64 << 10);
	assert_int_equal(watch->logs[0].lines, 1);
	assert_false(watch->logs[0].behind);
	end_nodes();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_log_is_passed_over_at_the_end_alone),
		cmocka_unit_test(a_service_that_does_not_answer_is_never_passed_over),
		cmocka_unit_test(what_may_pass_by_itself_is_tried_three_times),
		cmocka_unit_test(a_lag_is_told_after_ten_seconds_and_ever_more_rarely),
		cmocka_unit_test(who_has_caught_up_begins_anew),
		cmocka_unit_test(no_log_waits_behind_another_that_floods),
		cmocka_unit_test(a_stretch_is_told_if_it_lies_in_a_time_without_a_driver),
		cmocka_unit_test(a_row_of_an_earlier_step_is_not_told),
		cmocka_unit_test(a_step_behind_its_row_is_told_the_next_time),
		cmocka_unit_test(the_pace_of_the_report_counts_at_the_end_alone),
		cmocka_unit_test(a_step_is_dated_by_its_line_if_that_has_a_time),
		cmocka_unit_test(a_chunk_that_is_full_may_have_more_behind_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
