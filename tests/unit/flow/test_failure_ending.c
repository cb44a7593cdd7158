/* Attempts that did not end by themselves: who stopped them decides, and the rest is context. */
#include "tests/unit/flow/classify.h"

#include <stdio.h>

#define SHOW "'stoker logs r1' shows all that it said"

static const char code_error[] = "Traceback (most recent call last):\n"
				 "  File \"train.py\", line 1, in <module>\n"
				 "NameError: name 'x' is not defined";

static struct failure_classification classify_end(struct failure_evidence e, const char *log)
{
	struct failure_line lines[LINES_MAX];
	struct failure_log said = { .lines = lines, .show = SHOW };
	struct failure_classification verdict;

	said.count = split(log, lines);
	e.phase = PHASE_TRAIN;
	e.exit_known = true;
	e.logs = &said;
	e.log_count = 1;
	failure_classify(&e, &verdict);
	return verdict;
}

static void a_hang_is_a_hang_whatever_the_command_made_of_the_signal(void **state)
{
	struct failure_evidence e = { .stopped = FAILURE_STOPPED_STALL,
				      .stall = "no progress for 9 s",
				      .exit = 1 };
	struct failure_classification v = classify_end(e, code_error);

	(void)state;
	assert_int_equal(v.class, CLASS_TIMEOUT_HANG);
	assert_string_equal(v.evidence, "no progress for 9 s");
	assert_non_null(strstr(v.hint, "limits.stall"));
	assert_non_null(strstr(v.signature, "timeout-hang/py-mistake/"));
	/* Two that were killed have no cause in common for that. */
	e.exit = 137;
	assert_string_equal(classify_end(e, "").signature, "");
	e.stopped = FAILURE_STOPPED_TIMEOUT;
	e.exit = 0;
	v = classify_end(e, "");
	assert_int_equal(v.class, CLASS_TIMEOUT_HANG);
	assert_non_null(strstr(v.hint, "compile.timeout"));
}

static void a_lock_explains_a_hang_and_nothing_else(void **state)
{
	struct failure_evidence e = { .stopped = FAILURE_STOPPED_STALL,
				      .stall = "no progress for 9 s",
				      .exit = 1,
				      .wait = "it waited for a lock",
				      .wait_hint = "remove it" };
	struct failure_classification v = classify_end(e, code_error), without;

	(void)state;
	assert_string_equal(v.evidence, "no progress for 9 s; it waited for a lock");
	assert_string_equal(v.hint, "remove it");
	e.wait = NULL;
	without = classify_end(e, code_error);
	assert_string_equal(v.signature, without.signature);
	e.wait = "it waited for a lock";
	e.stopped = FAILURE_NOT_STOPPED;
	v = classify_end(e, code_error);
	assert_int_equal(v.class, CLASS_USER_CODE);
	assert_null(strstr(v.evidence, "lock"));
}

static void a_wanted_end_needs_no_cure(void **state)
{
	struct failure_evidence e = { .stopped = FAILURE_STOPPED_DRAIN, .exit = 1 };
	struct failure_classification v = classify_end(e, code_error);

	(void)state;
	assert_int_equal(v.class, CLASS_STOPPED);
	assert_string_equal(v.hint, "");
	assert_non_null(strstr(v.evidence, "NameError"));
	/* The command leaves well because it was asked to. */
	e.exit = 0;
	assert_int_equal(classify_end(e, "").class, CLASS_STOPPED);
	e.finished = true;
	assert_int_equal(classify_end(e, "").class, CLASS_NONE);
	e = (struct failure_evidence){ .requested = true, .exit = 1, .taken_down = true };
	assert_int_equal(classify_end(e, code_error).class, CLASS_STOPPED);
}

static void a_dead_worker_is_its_nodes_fault(void **state)
{
	struct failure_evidence e = { .stopped = FAILURE_STOPPED_WORKER,
				      .worker = "the watcher died three times",
				      .worker_node = 2 };
	struct failure_classification v = classify_end(e, "");

	(void)state;
	assert_int_equal(v.class, CLASS_HARDWARE_NODE);
	assert_string_equal(v.rule, "worker-lost");
	assert_int_equal(v.end_node, 2);
	assert_string_equal(v.evidence, "the watcher died three times");
	assert_string_equal(v.hint, "");
	e.requested = true;
	v = classify_end(e, "");
	assert_int_equal(v.class, CLASS_STOPPED);
	assert_int_equal(v.end_node, 0);
}

static void a_stranger_is_nobody_or_whom_the_engine_names(void **state)
{
	struct failure_evidence e = { .stopped = FAILURE_STOPPED_OTHER };
	struct failure_classification v = classify_end(e, "step 1");

	(void)state;
	assert_int_equal(v.class, CLASS_UNKNOWN);
	assert_string_equal(v.rule, "told-to-stop");
	assert_string_equal(v.hint, SHOW);
	e.engine_reason = "Host EC2 (instance i-1) terminated.";
	v = classify_end(e, "step 1");
	assert_int_equal(v.class, CLASS_SPOT);
	assert_string_equal(v.evidence, e.engine_reason);
	/* A command that failed is told by itself. */
	e.exit = 1;
	e.engine_reason = NULL;
	assert_int_equal(classify_end(e, code_error).class, CLASS_USER_CODE);
}

static void a_job_that_somebody_took_down_was_stopped(void **state)
{
	struct failure_evidence e = { .taken_down = true,
				      .engine_reason = "it was terminated: by hand",
				      .exit = 1 };
	struct failure_classification v = classify_end(e, code_error);

	(void)state;
	assert_int_equal(v.class, CLASS_STOPPED);
	assert_string_equal(v.evidence, e.engine_reason);
	assert_string_equal(v.hint, "");
}

static void a_refusal_is_final_unless_the_words_say_otherwise(void **state)
{
	struct failure_evidence e = { .phase = PHASE_TRAIN,
				      .engine_reason = "no such queue",
				      .refused = FAILURE_REFUSED_DENIED,
				      .refusal_hint = "name another queue" };
	struct failure_classification v;

	(void)state;
	failure_classify(&e, &v);
	assert_int_equal(v.class, CLASS_QUOTA_PERMISSION);
	assert_string_equal(v.hint, "name another queue");
	e.refused = FAILURE_REFUSED_INVALID;
	failure_classify(&e, &v);
	assert_int_equal(v.class, CLASS_USER_CONFIG);
	e.engine_reason = "CapacityError: none left";
	failure_classify(&e, &v);
	assert_int_equal(v.class, CLASS_CAPACITY);
	assert_string_not_equal(v.hint, "name another queue");
}

static void a_log_that_cannot_be_read_is_told_of_a_success_too(void **state)
{
	struct failure_evidence e = { .unread = "denied", .unread_hint = "allow it" };
	struct failure_classification v = classify_end(e, "");

	(void)state;
	assert_int_equal(v.class, CLASS_NONE);
	assert_string_equal(v.evidence, "cannot read the log: denied");
	assert_string_equal(v.hint, "allow it");
	e.exit = 1;
	v = classify_end(e, code_error);
	assert_non_null(strstr(v.evidence, "defined; cannot read the log: denied"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hang_is_a_hang_whatever_the_command_made_of_the_signal),
		cmocka_unit_test(a_lock_explains_a_hang_and_nothing_else),
		cmocka_unit_test(a_wanted_end_needs_no_cure),
		cmocka_unit_test(a_dead_worker_is_its_nodes_fault),
		cmocka_unit_test(a_stranger_is_nobody_or_whom_the_engine_names),
		cmocka_unit_test(a_job_that_somebody_took_down_was_stopped),
		cmocka_unit_test(a_refusal_is_final_unless_the_words_say_otherwise),
		cmocka_unit_test(a_log_that_cannot_be_read_is_told_of_a_success_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
