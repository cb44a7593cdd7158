/*
 * The user's own rows. Who writes one knows the program better than the table does: it outweighs
 * everybody's word, or the run is repeated, or ended, against what the spec says.
 */
#include "tests/unit/flow/classify.h"

static const struct failure_row own_rows[] = {
	{ .id = "own-lustre",
	  .class = CLASS_TRANSIENT_INFRA,
	  .role = FAILURE_ROOT,
	  .pattern = "lost the ",
	  .if_killed = true,
	  .hint = "wait for {}" },
	{ .id = "own-tuesday",
	  .class = CLASS_USER_CONFIG,
	  .role = FAILURE_ROOT,
	  .pattern = "tuesday",
	  .if_killed = true,
	  .hint = "" },
};

/* Finds the row's text in place of an expression; the match goes on to the end of the line. */
static bool own_find(const void *arg, size_t row, struct failure_line line,
		     struct failure_line *ret_found)
{
	const char *words, *text;

	assert_ptr_equal(arg, own_rows);
	assert_true(row < sizeof own_rows / sizeof own_rows[0]);
	words = own_rows[row].pattern;
	text = memmem(line.text, line.len, words, strlen(words));
	if (!text)
		return false;
	text += strlen(words);
	*ret_found = (struct failure_line){ text, (size_t)(line.text + line.len - text) };
	return true;
}

static const struct failure_own own = {
	.rows = own_rows, .count = 2, .find = own_find, .arg = own_rows
};

static void the_users_row_outweighs_everybody(void **state)
{
	struct failure_evidence e = { .phase = PHASE_TRAIN,
				      .exit_known = true,
				      .exit = 137,
				      .own = &own,
				      .engine_reason = "Host EC2 (instance i-1) terminated.",
				      .agent_class = CLASS_USER_CONFIG,
				      .agent_message = "no" };
	struct failure_classification v =
		classify(e, "MemoryError\nwe lost the lustre\nit is tuesday");

	(void)state;
	assert_string_equal(v.rule, "own-lustre");
	assert_int_equal(v.class, CLASS_TRANSIENT_INFRA);
	assert_string_equal(v.evidence, "we lost the lustre");
	assert_string_equal(v.hint, "wait for lustre");
	assert_string_equal(classify(e, "MemoryError\nit is tuesday").rule, "own-tuesday");
	/* The first line counts, and not the first row. */
	assert_string_equal(classify(e, "it is tuesday\nlost the lustre").rule, "own-tuesday");
	assert_string_equal(classify(e, "MemoryError").rule, "agent");
	assert_string_equal(classify(e, NULL).rule, "agent");
}

static void the_engines_words_are_asked_before_any_log(void **state)
{
	struct failure_evidence e = {
		.phase = PHASE_TRAIN, .node = 1, .own = &own, .engine_reason = "a quota of tuesday"
	};
	struct failure_classification v = classify(e, "lost the lustre");

	(void)state;
	assert_string_equal(v.rule, "own-tuesday");
	assert_string_equal(v.evidence, "a quota of tuesday");
	assert_int_equal(v.node, 1);
	e.engine_reason = NULL;
	assert_string_equal(classify(e, "lost the lustre").rule, "own-lustre");
	e.own = NULL;
	assert_string_equal(classify(e, "lost the lustre").rule, "nothing-known");
}

static void no_row_is_no_word(void **state)
{
	static const struct failure_own none = { .rows = own_rows,
						 .find = own_find,
						 .arg = own_rows };
	struct failure_evidence e = { .exit_known = true, .exit = 1, .own = &none };

	(void)state;
	assert_string_equal(classify(e, "lost the lustre").rule, "nothing-known");
}

struct node {
	const char *log;
	int64_t ended_ms;
	size_t survived;
};

static int node_of(const struct node *nodes, size_t count)
{
	static struct failure_line lines[3][LINES_MAX];
	struct failure_log logs[3] = { 0 };
	struct failure_evidence e = { .exit_known = true, .exit = 1, .own = &own };
	struct failure_classification v;

	for (size_t i = 0; i < count; i++) {
		logs[i].node = (int)i;
		logs[i].ended_ms = nodes[i].ended_ms;
		logs[i].lines = lines[i];
		logs[i].count = split(nodes[i].log, lines[i]);
		logs[i].survived = nodes[i].survived;
	}
	e.logs = guarded_array(GUARDED_LOGS, logs, count * sizeof logs[0]);
	e.log_count = count;
	failure_classify(&e, &v);
	return v.class == CLASS_TRANSIENT_INFRA ? v.node : -1;
}

static void of_several_nodes_the_first_to_end_tells(void **state)
{
	const struct node first[] = { { .log = "lost the x", .ended_ms = 1 },
				      { .log = "lost the y", .ended_ms = 2 } };
	const struct node second[] = { { .log = "lost the x", .ended_ms = 2 },
				       { .log = "lost the y", .ended_ms = 1 } };
	const struct node unknown[] = { { .log = "lost the x" }, { .log = "lost the y" } };
	const struct node other[] = { { .log = "step 1", .ended_ms = 1 },
				      { .log = "lost the y", .ended_ms = 3 },
				      { .log = "step 1", .ended_ms = 2 } };

	(void)state;
	assert_int_equal(node_of(first, 2), 0);
	assert_int_equal(node_of(second, 2), 1);
	assert_int_equal(node_of(unknown, 2), 0);
	assert_int_equal(node_of(other, 3), 1);
}

static void what_the_job_survived_is_no_cause(void **state)
{
	const struct node survived[] = { { .log = "lost the x\nstep 2", .survived = 1 } };
	const struct node again[] = { { .log = "lost the x\nlost the y", .survived = 1 } };

	(void)state;
	assert_int_equal(node_of(survived, 1), -1);
	assert_int_equal(node_of(again, 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_users_row_outweighs_everybody),
		cmocka_unit_test(the_engines_words_are_asked_before_any_log),
		cmocka_unit_test(no_row_is_no_word),
		cmocka_unit_test(of_several_nodes_the_first_to_end_tells),
		cmocka_unit_test(what_the_job_survived_is_no_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
