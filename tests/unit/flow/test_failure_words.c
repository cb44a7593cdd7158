/* What is made of texts that no row names: exceptions without a traceback, prefixes of
 * loggers, and words. */
#include "tests/unit/flow/judge.h"

static void an_exception_at_the_end_needs_no_traceback(void **state)
{
	struct failure_verdict v = judge_exit(1, "step 7\n"
						 "ValueError: operands could not be added\n"
						 "E0410 torch.distributed: failed (exitcode: 1)\n");

	(void)state;
	assert_string_equal(v.rule, "py-traceback");
	assert_int_equal(v.class, CLASS_USER_CODE);
	v = judge_exit(1, "ValueError: skipped a sample, will retry\nstep 7\n");
	assert_string_equal(v.rule, "nothing-known");
}

static void a_logger_may_put_its_own_in_front_of_a_traceback(void **state)
{
	struct failure_verdict v =
		judge_exit(1, "09:15:01 [n1] ERROR Traceback (most recent call last):\n"
			      "09:15:01 [n1] ERROR   File \"a.py\", line 1, in f\n"
			      "09:15:02 [n1] ERROR OSError: [Errno 28] No space left on device\n");

	(void)state;
	assert_string_equal(v.rule, "py-space");
	v = judge_exit(1, "7: [rank80]: Traceback (most recent call last):\n"
			  "7: [rank80]:   File \"a.py\", line 1, in f\n"
			  "7: [rank80]: ZeroDivisionError: division by zero\n");
	assert_string_equal(v.rule, "py-traceback");
}

static void what_is_ignored_is_no_cause(void **state)
{
	struct failure_verdict v =
		judge_exit(1, "Exception ignored in: <function A.__del__ at 0x7f30>\n"
			      "Traceback (most recent call last):\n"
			      "  File \"a.py\", line 91, in __del__\n"
			      "AttributeError: 'A' object has no attribute 'b'\n"
			      "Traceback (most recent call last):\n"
			      "  File \"a.py\", line 1, in f\n"
			      "IndexError: list index out of range\n");

	(void)state;
	assert_non_null(strstr(v.evidence, "IndexError"));
	assert_null(strstr(v.evidence, "AttributeError"));
}

static void words_count_where_nothing_else_is_known(void **state)
{
	struct failure_verdict v = judge_exit(1, "Traceback (most recent call last):\n"
						 "  File \"a.py\", line 1, in f\n"
						 "pkg.OddError: the server is unreachable\n");

	(void)state;
	assert_int_equal(v.class, CLASS_TRANSIENT_INFRA);
	v = judge_exit(1, "error: the server is unreachable\n");
	assert_int_equal(v.class, CLASS_TRANSIENT_INFRA);
	/* Nobody complains here; and of a mistake in the code its words mean nothing. */
	v = judge_exit(1, "looking whether the server is unreachable\n");
	assert_string_equal(v.rule, "nothing-known");
	v = judge_exit(1, "Traceback (most recent call last):\n"
			  "  File \"a.py\", line 1, in f\n"
			  "TypeError: the server is unreachable\n");
	assert_int_equal(v.class, CLASS_USER_CODE);
}

/* A line that complains in the words of the row is known by it. */
static void each_row_of_words_is_reached_by_its_words(void **state)
{
	const struct failure_row *row;
	int count = 0;

	(void)state;
	for (size_t i = 0; (row = failure_row_at(i)); i++) {
		char line[128];
		struct failure_verdict v;

		if (row->source != FAILURE_WORDS)
			continue;
		snprintf(line, sizeof line, "the job failed: %s", row->pattern);
		v = judge_exit(3, line);
		if (strcmp(v.rule, row->id) != 0)
			fail_msg("%s: '%s' is judged by %s", row->id, line, v.rule);
		assert_int_equal(v.class, row->class);
		count++;
	}
	assert_true(count > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exception_at_the_end_needs_no_traceback),
		cmocka_unit_test(a_logger_may_put_its_own_in_front_of_a_traceback),
		cmocka_unit_test(what_is_ignored_is_no_cause),
		cmocka_unit_test(words_count_where_nothing_else_is_known),
		cmocka_unit_test(each_row_of_words_is_reached_by_its_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
