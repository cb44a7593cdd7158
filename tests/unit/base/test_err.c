/* The promises of err.h: an error keeps its code, words, place and hint. */
#include "jobs/base/err.h"

#include <errno.h>

#include "tests/unit/base/unit.h"

static void an_error_keeps_code_and_message(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_int_equal(err_set(&err, EXIT_SPEC, "unknown field '%s'", "retires"), -1);
	assert_int_equal(err->code, EXIT_SPEC);
	assert_string_equal(err->message, "unknown field 'retires'");
	assert_null(err->hint);
	assert_null(err->file);
	assert_int_equal(err->os_errno, 0);
}

static void context_goes_in_front(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	err_set(&err, EXIT_REFUSED, "disk is full");
	assert_int_equal(err_wrap(&err, "cannot write '%s'", "a"), -1);
	assert_int_equal(err_wrap(&err, "cannot save the run"), -1);
	assert_string_equal(err->message, "cannot save the run: cannot write 'a': disk is full");
}

static void a_message_is_never_a_format(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	err_set(&err, EXIT_REFUSED, "%s", "100%n%s");
	err_wrap(&err, "outer");
	assert_string_equal(err->message, "outer: 100%n%s");
}

static void a_system_error_says_why(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_int_equal(err_system(&err, EXIT_REFUSED, ENOENT, "cannot read '%s'", "x"), -1);
	assert_string_equal(err->message, "cannot read 'x': No such file or directory");
	assert_int_equal(err->os_errno, ENOENT);
}

static void hint_place_field_and_code_can_be_replaced(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	err_set(&err, EXIT_SPEC, "bad");
	for (int i = 1; i <= 2; i++) {
		assert_int_equal(err_hint(&err, "try %d", i), -1);
		assert_int_equal(err_at(&err, "train.yaml", i, 3), -1);
		assert_int_equal(err_field(&err, "retry.attempts"), -1);
		assert_int_equal(err_code(&err, EXIT_GATE), -1);
	}
	assert_string_equal(err->hint, "try 2");
	assert_string_equal(err->file, "train.yaml");
	assert_int_equal(err->line, 2);
	assert_int_equal(err->column, 3);
	assert_string_equal(err->field, "retry.attempts");
	assert_int_equal(err->code, EXIT_GATE);
	assert_int_equal(err_at(&err, NULL, 0, 0), -1);
	assert_int_equal(err_field(&err, NULL), -1);
	assert_null(err->file);
	assert_null(err->field);
}

static void the_line_has_as_much_of_the_place_as_is_known(void **state)
{
	static const struct {
		const char *file;
		int line, column;
		const char *want;
	} rows[] = {
		{ NULL, 0, 0, "bad" },
		{ "a.yaml", 0, 0, "a.yaml: bad" },
		{ "a.yaml", 0, 7, "a.yaml: bad" },
		{ "a.yaml", 14, 0, "a.yaml:14: bad" },
		{ "a.yaml", 14, 3, "a.yaml:14:3: bad" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(err_freep) struct err *err = NULL;
		AUTO(auto_free) char *line = NULL;

		err_set(&err, EXIT_SPEC, "bad");
		err_at(&err, rows[i].file, rows[i].line, rows[i].column);
		line = err_format(err);
		assert_string_equal(line, rows[i].want);
	}
}

static void freeing_nothing_is_fine(void **state)
{
	struct err *err = NULL;

	(void)state;
	err_free(NULL);
	err_freep(&err);
	err_set(&err, EXIT_SPEC, "bad");
	err_freep(&err);
	assert_null(err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_error_keeps_code_and_message),
		cmocka_unit_test(context_goes_in_front),
		cmocka_unit_test(a_message_is_never_a_format),
		cmocka_unit_test(a_system_error_says_why),
		cmocka_unit_test(hint_place_field_and_code_can_be_replaced),
		cmocka_unit_test(the_line_has_as_much_of_the_place_as_is_known),
		cmocka_unit_test(freeing_nothing_is_fine),
	};

	return cmocka_run_group_tests_name("base/err", tests, NULL, NULL);
}
