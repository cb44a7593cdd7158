/* For each row of the failure table an innocent line: one that a healthy program prints with the
 * row's words, or nearly. The row must not take it, and no row may stop a run for it. */
#include "tests/unit/flow/classify.h"

#include <stdlib.h>

struct innocent {
	const char *id;
	const char *line; /* of the log, or the engine's words for rows that begin with "eng-" */
};

/* clang-format off */
static const struct innocent innocents[] = {
/* The tables in the order in which they are asked. */
#include "tests/unit/flow/failure_innocent_program.def"
#include "tests/unit/flow/failure_innocent_service.def"
#include "tests/unit/flow/failure_innocent_device.def"
#include "tests/unit/flow/failure_innocent_engine.def"
};
/* clang-format on */

static bool is_engine(const struct innocent *c)
{
	return strncmp(c->id, "eng-", 4) == 0;
}

/* The line in the middle of ordinary progress, and an end that says nothing. */
static struct failure_classification classify_innocent(const struct innocent *c, int exit)
{
	struct failure_evidence e = { .phase = PHASE_TRAIN, .exit_known = true, .exit = exit };
	char log[1024];
	int len;

	if (is_engine(c)) {
		e.engine_reason = c->line;
		return classify(e, "step 1");
	}
	len = snprintf(log, sizeof log, "step 1 loss 2.5\n%s\n", c->line);
	for (int step = 2; step < 14; step++)
		len += snprintf(log + len, sizeof log - (size_t)len, "step %d loss 2.4\n", step);
	return classify(e, log);
}

/* A step back to an older checkpoint is no better: it is done once, and then the run stops. */
static bool is_harmful(enum failure_class class)
{
	return retry_rows[class].action == ACTION_STOP ||
	       retry_rows[class].action == ACTION_FALL_BACK;
}

static int complain(const struct innocent *c, const struct failure_classification *v, int exit)
{
	if (strcmp(v->rule, c->id) != 0 && !is_harmful(v->class))
		return 0;
	print_error("%s: '%s' (exit %d) is taken by %s: %s\n", c->id, c->line, exit, v->rule,
		    flow_class_names[v->class]);
	return 1;
}

static void no_row_takes_its_innocent_line(void **state)
{
	static const int exits[] = { 1, 137 };
	int taken = 0;

	(void)state;
	assert_null(failure_row_at(sizeof innocents / sizeof innocents[0]));
	for (size_t i = 0; i < sizeof innocents / sizeof innocents[0]; i++) {
		const struct innocent *c = &innocents[i];

		assert_non_null(failure_row_at(i));
		assert_string_equal(c->id, failure_row_at(i)->id);
		for (size_t k = 0; k < sizeof exits / sizeof exits[0]; k++) {
			struct failure_classification v = classify_innocent(c, exits[k]);

			taken += complain(c, &v, exits[k]);
		}
	}
	assert_int_equal(taken, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_row_takes_its_innocent_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
