/* A line for each row of the failure table: a row without one fails here. */
#include "tests/unit/flow/classify.h"

#include "jobs/flow/failure_internal.h"

struct row_case {
	const char *id;
	const char *line; /* of the log, or the engine's words for rows that begin with "eng-" */
	enum failure_class class;
	const char *hint; /* part of it, or NULL */
};

/* clang-format off */
static const struct row_case cases[] = {
/* The tables in the order in which they are asked. */
#include "tests/unit/flow/failure_rows_program.def"
#include "tests/unit/flow/failure_rows_service.def"
#include "tests/unit/flow/failure_rows_device.def"
#include "tests/unit/flow/failure_rows_engine.def"
};
/* clang-format on */

static void each_row_is_reached_by_its_line(void **state)
{
	(void)state;
	assert_null(failure_row_at(sizeof cases / sizeof cases[0]));
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct row_case *c = &cases[i];
		bool engine = strncmp(c->id, "eng-", 4) == 0;
		struct failure_evidence e = { .phase = PHASE_TRAIN, .exit_known = true, .exit = 3 };
		struct failure_classification v;

		assert_non_null(failure_row_at(i));
		assert_string_equal(c->id, failure_row_at(i)->id);
		if (engine)
			e.engine_reason = c->line;
		v = classify(e, engine ? "step 1" : c->line);
		if (strcmp(v.rule, c->id) != 0)
			fail_msg("%s: '%s' is judged by %s", c->id, c->line, v.rule);
		assert_int_equal(v.class, c->class);
		assert_non_null(strstr(v.evidence, c->line));
		if (c->hint)
			assert_non_null(strstr(v.hint, c->hint));
	}
}

/* A streaming log keeps only lines that bear on a failure. */
static void each_line_of_a_log_bears_on_a_failure(void **state)
{
	static struct failure_index index;

	(void)state;
	failure_index_init(&index);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		if (failure_row_at(i)->source == FAILURE_LOG &&
		    !failure_bears(&index, NULL,
				   (struct failure_line){ cases[i].line, strlen(cases[i].line) }))
			fail_msg("%s: '%s' bears on nothing", cases[i].id, cases[i].line);
	}
}

/* An engine's word is not one of a program: any program may print it, and raise it. */
static void a_row_is_asked_about_its_own_source_alone(void **state)
{
	static const enum failure_source sources[] = { FAILURE_LOG, FAILURE_RAISED, FAILURE_ENGINE,
						       FAILURE_SOURCE };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct failure_line line = guarded_end(cases[i].line, strlen(cases[i].line)), found;

		for (size_t k = 0; k < sizeof sources / sizeof sources[0]; k++) {
			const struct failure_row *row = failure_row_find(sources[k], line, &found);

			if (row && row->source != sources[k])
				assert_true(sources[k] == FAILURE_RAISED &&
					    row->source == FAILURE_LOG);
		}
	}
}

static void ids_and_hints_are_sound(void **state)
{
	const struct failure_row *row;

	(void)state;
	for (size_t i = 0; (row = failure_row_at(i)); i++) {
		const char *brace = row->hint;

		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(row->id, failure_row_at(j)->id);
		assert_true(row->pattern[0] != '*' && row->pattern[0] != '\0');
		while ((brace = strchr(brace, '{')) != NULL) {
			bool captured =
				strncmp(brace, "{}", 2) == 0 || strncmp(brace, "{option}", 8) == 0;

			assert_true(captured || strncmp(brace, "{booleans", 9) == 0);
			assert_true(!captured || strpbrk(row->pattern, "*#"));
			brace++;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_row_is_reached_by_its_line),
		cmocka_unit_test(each_line_of_a_log_bears_on_a_failure),
		cmocka_unit_test(a_row_is_asked_about_its_own_source_alone),
		cmocka_unit_test(ids_and_hints_are_sound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
