/* A spec in memory and how it was answered, for the tests of this box. */
#ifndef STK_TEST_SPEC_FIXTURE_H
#define STK_TEST_SPEC_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/spec/spec.h"

#define HEAD "version: 1\nname: x\ncommand: [python3, train.py]\n"

static inline const char *no_variables(const char *name)
{
	(void)name;
	return NULL;
}

/* Load text that must be valid. */
static inline struct spec *good_spec(const char *text, char *const *sets)
{
	AUTO(problems_release) struct problems problems = { 0 };
	const struct spec_changes changes = { NULL, sets };
	struct spec *spec = NULL;

	if (spec_parse("spec.yaml", text, strlen(text), &changes, no_variables, &spec, &problems) <
	    0) {
		AUTO(auto_free) char *said = problem_format(&problems.list[0]);

		fail_msg("%s", said);
	}
	return spec;
}

/* The first problem's message of text that must be invalid. Yours to free. */
static inline char *bad_spec(const char *text, char *const *sets)
{
	AUTO(problems_release) struct problems problems = { 0 };
	AUTO(spec_freep) struct spec *spec = NULL;
	const struct spec_changes changes = { NULL, sets };

	assert_int_equal(spec_parse("spec.yaml", text, strlen(text), &changes, no_variables, &spec,
				    &problems),
			 -1);
	assert_null(spec);
	assert_true(problems.errors > 0);
	return problem_format(&problems.list[0]);
}

#endif
