/* The lines in which a job first went wrong, out of a log that goes on and on. */
#include "jobs/run/attempt/first_cause.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/base/auto.h"

#define CAUSE "NRT: Uncorrectable memory error is detected, metadata: 0x1"

struct log {
	struct first_cause *cause;
	size_t number;
	struct mono now;
};

static void say(struct log *log, const char *line)
{
	first_cause_line(log->cause, 0, line, strlen(line), log->number++, log->now);
}

static void say_many(struct log *log, int count)
{
	char line[40];

	for (int i = 0; i < count; i++) {
		snprintf(line, sizeof line, "batch %d of many", i);
		say(log, line);
	}
}

static size_t lines_of(const struct log *log, struct failure_line *ret)
{
	return first_cause_get(log->cause, 0, SIZE_MAX, ret);
}

static bool keeps(const struct log *log, const char *text)
{
	struct failure_line lines[CAUSE_LINES];
	size_t count = lines_of(log, lines);

	for (size_t i = 0; i < count; i++)
		if (lines[i].len == strlen(text) && memcmp(lines[i].text, text, lines[i].len) == 0)
			return true;
	return false;
}

static void the_first_lines_stay_with_those_around_them(void **state)
{
	AUTO(first_cause_freep) struct first_cause *cause = first_cause_new(2, true, NULL);
	struct log log = { .cause = cause };
	struct failure_line lines[CAUSE_LINES];

	(void)state;
	say_many(&log, 100);
	say(&log, CAUSE);
	/* Thirty-one other ranks tell of it. */
	for (int rank = 0; rank < 31; rank++) {
		say(&log, "Traceback (most recent call last):");
		say_many(&log, 20);
		say(&log, "RuntimeError: step failed");
	}
	say_many(&log, 900);
	assert_true(keeps(&log, CAUSE));
	assert_true(keeps(&log, "batch 99 of many"));
	assert_false(keeps(&log, "batch 91 of many"));
	assert_true(keeps(&log, "RuntimeError: step failed"));
	assert_int_equal(lines_of(&log, lines), CAUSE_LINES);
	assert_int_equal(lines[CAUSE_BEFORE].len, strlen(CAUSE));
	assert_int_equal(first_cause_get(cause, 0, 100, lines), CAUSE_BEFORE);
	assert_int_equal(first_cause_get(cause, 1, SIZE_MAX, lines), 0);
}

static void steps_behind_it_show_that_it_was_survived(void **state)
{
	AUTO(first_cause_freep) struct first_cause *cause = first_cause_new(2, true, NULL);
	struct log log = { .cause = cause };

	(void)state;
	say(&log, CAUSE);
	/* Another node's log may be read late: at once its steps say nothing. */
	first_cause_step(cause, 1, log.now);
	first_cause_step(cause, 1, log.now);
	first_cause_step(cause, 0, log.now);
	log.now.ms += 100;
	first_cause_step(cause, 0, log.now);
	assert_true(keeps(&log, CAUSE));
	log.now.ms += 100;
	first_cause_step(cause, 0, log.now);
	assert_false(keeps(&log, CAUSE));
}

/* Python's stdout comes out of its buffer when the process ends, behind the words on stderr. */
static void steps_out_of_a_buffer_show_nothing(void **state)
{
	AUTO(first_cause_freep) struct first_cause *cause = first_cause_new(1, true, NULL);
	struct log log = { .cause = cause };

	(void)state;
	say(&log, CAUSE);
	log.now.ms += 30000;
	for (int i = 0; i < 100; i++) {
		say(&log, "step: 7");
		first_cause_step(cause, 0, log.now);
	}
	assert_true(keeps(&log, CAUSE));
	for (int i = 0; i < 900; i++)
		say(&log, "tokens a second: 7");
	for (int i = 0; i < 2; i++)
		first_cause_step(cause, 0, log.now);
	assert_false(keeps(&log, CAUSE));
}

static void without_a_buffer_steps_that_are_read_at_once_count_singly(void **state)
{
	AUTO(first_cause_freep) struct first_cause *cause = first_cause_new(1, false, NULL);
	struct log log = { .cause = cause };

	(void)state;
	say(&log, CAUSE);
	for (int i = 0; i < 3; i++)
		first_cause_step(cause, 0, log.now);
	assert_false(keeps(&log, CAUSE));
}

/* All nodes end the step that they were in when the first died, however long it takes. */
static void one_slow_step_shows_nothing(void **state)
{
	AUTO(first_cause_freep) struct first_cause *cause = first_cause_new(4, true, NULL);
	struct log log = { .cause = cause };

	(void)state;
	say(&log, CAUSE);
	log.now.ms += 60000;
	for (size_t node = 0; node < 4; node++)
		first_cause_step(cause, node, log.now);
	assert_true(keeps(&log, CAUSE));
	log.now.ms += 60000;
	first_cause_step(cause, 0, log.now);
	assert_false(keeps(&log, CAUSE));
}

static void lines_or_time_without_another_forget_it(void **state)
{
	AUTO(first_cause_freep) struct first_cause *cause = first_cause_new(1, true, NULL);
	struct log log = { .cause = cause };

	(void)state;
	say(&log, CAUSE);
	say_many(&log, 1000);
	assert_true(keeps(&log, CAUSE));
	say_many(&log, 1);
	assert_false(keeps(&log, CAUSE));
	say(&log, CAUSE);
	log.now.ms += 3600001;
	say_many(&log, 1);
	assert_false(keeps(&log, CAUSE));
}

/* The rule holds also for lines that are still among the newest. */
static void the_lines_before_the_third_step_were_survived(void **state)
{
	AUTO(first_cause_freep) struct first_cause *cause = first_cause_new(2, true, NULL);
	struct log log = { .cause = cause };

	(void)state;
	say_many(&log, 3);
	say(&log, CAUSE);
	first_cause_step(cause, 0, log.now);
	say(&log, "step 1");
	log.now.ms += 100;
	first_cause_step(cause, 0, log.now);
	say(&log, "step 2");
	assert_int_equal(first_cause_survived(cause, 0), 0);
	log.now.ms += 100;
	first_cause_step(cause, 0, log.now);
	say(&log, "step 3");
	assert_int_equal(first_cause_survived(cause, 0), 6);
	assert_int_equal(first_cause_survived(cause, 1), 0);
	say(&log, CAUSE);
	assert_true(keeps(&log, CAUSE));
}

static void a_single_cause_has_eight_lines_before_and_forty_behind(void **state)
{
	AUTO(first_cause_freep) struct first_cause *cause = first_cause_new(1, true, NULL);
	struct log log = { .cause = cause };
	struct failure_line lines[CAUSE_LINES];

	(void)state;
	say_many(&log, 100);
	say(&log, CAUSE);
	say_many(&log, 100);
	assert_int_equal(lines_of(&log, lines), 8 + 1 + 40);
	for (int i = 0; i < 49; i++) {
		char want[40];

		snprintf(want, sizeof want, "batch %d of many", i < 8 ? 92 + i : i - 9);
		if (i == 8)
			snprintf(want, sizeof want, "%.30s", CAUSE);
		assert_memory_equal(lines[i].text, want, strlen(want));
	}
	/* a second one, whose lines before it are those since then */
	say(&log, CAUSE);
	assert_int_equal(lines_of(&log, lines), 49 + 8 + 1);
	assert_memory_equal(lines[49].text, "batch 92 of many", 16);
	assert_int_equal(first_cause_get(cause, 0, 92, lines), 0);
	assert_int_equal(first_cause_get(cause, 0, 93, lines), 1);
}

static void where_fewer_lines_came_before_these_are_kept(void **state)
{
	AUTO(first_cause_freep) struct first_cause *cause = first_cause_new(1, true, NULL);
	struct log log = { .cause = cause };
	struct failure_line lines[CAUSE_LINES];
	char line[5000];

	(void)state;
	say_many(&log, 3);
	say(&log, CAUSE);
	assert_int_equal(lines_of(&log, lines), 4);
	assert_memory_equal(lines[0].text, "batch 0 of many", 15);
	/* a long one in part */
	memset(line, 'x', sizeof line);
	line[4097] = '\0';
	say(&log, line);
	assert_int_equal(lines_of(&log, lines), 5);
	assert_int_equal(lines[4].len, 4096);
	line[4095] = '\0';
	say(&log, line);
	assert_int_equal(lines_of(&log, lines), 6);
	assert_int_equal(lines[5].len, 4095);
}

static void an_hour_is_not_too_long(void **state)
{
	AUTO(first_cause_freep) struct first_cause *cause = first_cause_new(1, true, NULL);
	struct log log = { .cause = cause };

	(void)state;
	say(&log, CAUSE);
	log.now.ms += 3600000;
	say_many(&log, 1);
	assert_true(keeps(&log, CAUSE));
	/* from the newest that bears on it */
	say(&log, CAUSE);
	log.now.ms += 3600000;
	say_many(&log, 1);
	assert_true(keeps(&log, CAUSE));
}

/* Two steps of one log, a second apart, ten seconds behind it. */
static void slow_steps_count_from_their_times(void **state)
{
	static const struct {
		int64_t first_ms, second_ms;
		bool survived;
	} rows[] = {
		{ 9000, 10000, true },
		{ 9001, 10000, false },
		{ 8000, 9999, false },
		{ 9000, 9999, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		AUTO(first_cause_freep) struct first_cause *cause = first_cause_new(2, true, NULL);
		struct log log = { .cause = cause };

		say(&log, CAUSE);
		log.now.ms = rows[i].first_ms;
		first_cause_step(cause, 1, log.now);
		log.now.ms = rows[i].second_ms;
		first_cause_step(cause, 1, log.now);
		assert_int_equal(keeps(&log, CAUSE), !rows[i].survived);
		assert_int_equal(first_cause_survived(cause, 0), rows[i].survived);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_lines_stay_with_those_around_them),
		cmocka_unit_test(steps_behind_it_show_that_it_was_survived),
		cmocka_unit_test(one_slow_step_shows_nothing),
		cmocka_unit_test(steps_out_of_a_buffer_show_nothing),
		cmocka_unit_test(without_a_buffer_steps_that_are_read_at_once_count_singly),
		cmocka_unit_test(lines_or_time_without_another_forget_it),
		cmocka_unit_test(the_lines_before_the_third_step_were_survived),
		cmocka_unit_test(a_single_cause_has_eight_lines_before_and_forty_behind),
		cmocka_unit_test(where_fewer_lines_came_before_these_are_kept),
		cmocka_unit_test(an_hour_is_not_too_long),
		cmocka_unit_test(slow_steps_count_from_their_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
