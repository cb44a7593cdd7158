/* What an engine's words mean where a row alone does not say it: what it quotes of the
 * program, and a quota that is in use. */
#include "tests/unit/flow/classify.h"

#include "jobs/flow/failure_internal.h"

static struct failure_classification classify_reason(const char *reason, const char *log)
{
	return classify((struct failure_evidence){ .phase = PHASE_TRAIN, .engine_reason = reason },
			log);
}

static void what_a_program_wrote_is_no_word_of_the_engine(void **state)
{
	/* The words would mean no capacity, denied and over a quota, if the engine said them. */
	struct failure_classification v = classify_reason(
		"AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage "
		"\"CapacityError: AccessDenied LimitExceeded\n\"\nCommand \"python3 train.py\"",
		"Traceback (most recent call last):\n  File \"train.py\", line 1, in <module>\n"
		"NameError: name 'x' is not defined");

	(void)state;
	assert_int_equal(v.class, CLASS_USER_CODE);
	assert_non_null(strstr(v.evidence, "NameError"));
}

static void its_words_count_where_there_is_no_log(void **state)
{
	struct failure_classification v = classify_reason(
		"AlgorithmError: ExecuteUserScriptError:\nExitCode 1\nErrorMessage "
		"\"ModuleNotFoundError: No module named 'deepspeed'\n\"\nCommand \"python3 -m x\"",
		NULL);

	(void)state;
	assert_int_equal(v.class, CLASS_USER_CONFIG);
	assert_string_equal(v.evidence, "ModuleNotFoundError: No module named 'deepspeed'");
}

static void the_exit_that_is_quoted_counts(void **state)
{
	struct failure_evidence e = { .phase = PHASE_TRAIN, .exit_known = true, .exit = 3 };

	(void)state;
	assert_string_equal(classify_reason("AlgorithmError: , exit code: 127", "a").rule,
			    "exit-127");
	assert_string_equal(classify_reason("AlgorithmError: , exit code: 75", "a").rule,
			    "exit-75");
	assert_string_equal(classify_reason("AlgorithmError: , exit code: 137", "a").rule,
			    "sigkill");
	assert_string_equal(
		classify_reason("AlgorithmError: ExecuteUserScriptError:\nExitCode 126", "a").rule,
		"exit-126");
	assert_string_equal(classify_reason("AlgorithmError: Exit Code: 139", "a").rule, "crash");
	/* The agent's own word is nearer, and no number is none. */
	e.engine_reason = "AlgorithmError: , exit code: 127";
	assert_string_not_equal(classify(e, "a").rule, "exit-127");
	assert_string_equal(classify_reason("AlgorithmError: , exit code: 4711", "a").evidence,
			    "no exit status is known\nAlgorithmError: , exit code: 4711\na");
}

/* A status is a number of at most 255 directly behind the words; the first that is one counts. */
static void only_a_status_is_taken_for_one(void **state)
{
	static const struct {
		const char *reason;
		int exit;
	} rows[] = {
		{ "exit code: 0", 0 },
		{ "exit code:7", 7 },
		{ "Exit Code:   12.", 12 },
		{ "exit code: 1:", 1 },
		{ "exit code: 9", 9 },
		{ "exit code: 255", 255 },
		{ "exit code: 256", -1 },
		{ "exit code: 000000003", 3 },
		{ "exit code: 000000003:", 3 },
		{ "exit code: 0000000003", -1 },
		{ "exit code: 0000000030", -1 },
		{ "exit code: 0000000039", -1 },
		{ "exit code: 00000000037", -1 },
		{ "exit code: 4711, exit code: 3", 3 },
		{ "exit code: x, exit code: 3", 3 },
		{ "exit code: -9", -1 },
		{ "exit code: /1", -1 },
		{ "exit code: :1", -1 },
		{ "exit code:", -1 },
		{ "", -1 },
		{ "ExitCode 0", 0 },
		{ "exitcode 9", 9 },
		{ "ExitCode 1, exit code: 0", 0 },
		{ "ExitCode 1, exit code: 256", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (failure_quoted_exit(rows[i].reason) != rows[i].exit)
			fail_msg("'%s': %d, not %d", rows[i].reason,
				 failure_quoted_exit(rows[i].reason), rows[i].exit);
	assert_false(failure_is_quoted(NULL));
	assert_false(failure_is_quoted("AlgorithmErroR: x"));
	assert_true(failure_is_quoted("AlgorithmError: x"));
	/* A command that is said to have ended well, did. */
	assert_string_equal(classify_reason("AlgorithmError: exit code: 0", NULL).rule, "success");
}

/* The quotation ends where the command is named; the service may have cut it off. */
static void the_lines_of_a_quotation_are_those_of_the_program(void **state)
{
	static const struct {
		const char *reason;
		size_t count;
		const char *lines[2];
	} rows[] = {
		{ "ExitCode 1", 0, { NULL } },
		{ "ErrorMessage \"", 0, { NULL } },
		{ "ErrorMessage \"\"\nCommand \"x\"", 0, { NULL } },
		{ "ErrorMessage \"a\nb\n\"\nCommand \"x\"", 2, { "a", "b" } },
		{ "ErrorMessage \"\n\na\n\nb\"\nCommand", 2, { "a", "b" } },
		{ "ErrorMessage \"a\" Command \"x\"", 1, { "a" } },
		{ "ErrorMessage \"a\" Command b\nc", 1, { "a" } },
		{ "ErrorMessage \"a\" Command b\"\nCommand \"x\"", 1, { "a\" Command b" } },
		{ "ErrorMessage \"a\"\nCommand \"x\" Command y", 1, { "a" } },
		{ "ErrorMessage \"a\nb", 2, { "a", "b" } },
		{ "ErrorMessage \"a\nb\nc\nd", 2, { "a", "b" } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct failure_line lines[3] = { { NULL, 77 }, { NULL, 77 }, { NULL, 77 } };
		size_t count = failure_quoted_lines(rows[i].reason, lines, 2);

		assert_int_equal(count, rows[i].count);
		for (size_t k = 0; k < count; k++) {
			assert_int_equal(lines[k].len, strlen(rows[i].lines[k]));
			assert_memory_equal(lines[k].text, rows[i].lines[k], lines[k].len);
		}
		assert_int_equal(lines[count].len, 77);
	}
}

/* A long quotation is read for 64 lines. */
static void a_quotation_is_read_so_far(void **state)
{
	char reason[1024];
	int len = snprintf(reason, sizeof reason, "AlgorithmError: ErrorMessage \"");

	(void)state;
	for (int i = 0; i < 63; i++)
		len += snprintf(reason + len, sizeof reason - (size_t)len, "step %d\n", i);
	snprintf(reason + len, sizeof reason - (size_t)len, "MemoryError\n");
	assert_string_equal(classify_reason(reason, NULL).rule, "py-memory");
	snprintf(reason + len, sizeof reason - (size_t)len, "step\nMemoryError\n");
	assert_string_equal(classify_reason(reason, NULL).rule, "nothing-known");
}

#define QUOTA                                                                                      \
	"CreateTrainingJob: ResourceLimitExceeded: The account-level service limit "               \
	"'ml.trn1.32xlarge for training job usage' is %s Instances, with current utilization of "  \
	"%s Instances and a request delta of %s Instances. Please use AWS Service Quotas."

static struct failure_classification classify_quota(const char *limit, const char *used,
						    const char *more)
{
	char text[400];

	snprintf(text, sizeof text, QUOTA, limit, used, more);
	return classify_reason(text, NULL);
}

static void a_quota_that_becomes_free_is_waited_for(void **state)
{
	struct failure_classification v = classify_quota("8", "8", "2");

	(void)state;
	assert_int_equal(v.class, CLASS_CAPACITY);
	assert_string_equal(v.rule, "eng-quota-in-use");
	assert_non_null(strstr(v.hint, "warm pool"));
	assert_int_equal(classify_quota("2", "1", "2").class, CLASS_CAPACITY);
	/* Never: it is too small, whoever leaves. */
	assert_int_equal(classify_quota("0", "0", "1").class, CLASS_QUOTA_PERMISSION);
	assert_int_equal(classify_quota("4", "2", "8").class, CLASS_QUOTA_PERMISSION);
	assert_int_equal(classify_quota("4", "0", "2").class, CLASS_QUOTA_PERMISSION);
	assert_int_equal(classify_reason("ResourceLimitExceeded: no", NULL).class,
			 CLASS_QUOTA_PERMISSION);
	/* A missing figure says nothing. */
	assert_int_equal(classify_quota("8", "8", "0").class, CLASS_CAPACITY);
	assert_int_equal(classify_quota("8", "8", "8").class, CLASS_CAPACITY);
	assert_int_equal(classify_quota("x", "8", "0").class, CLASS_QUOTA_PERMISSION);
	assert_int_equal(classify_quota("8", "x", "2").class, CLASS_QUOTA_PERMISSION);
	assert_int_equal(classify_quota("8", "8", "x").class, CLASS_QUOTA_PERMISSION);
	assert_false(failure_quota_frees("current utilization of 8, a request delta of 2"));
	assert_false(failure_quota_frees("service limit 'x' is 8, with a request delta of 2"));
	assert_false(failure_quota_frees("service limit 'x' is 8, with current utilization of 8"));
	assert_false(failure_quota_frees("service limit 'x', current utilization of 8 and a "
					 "request delta of 2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_program_wrote_is_no_word_of_the_engine),
		cmocka_unit_test(its_words_count_where_there_is_no_log),
		cmocka_unit_test(the_exit_that_is_quoted_counts),
		cmocka_unit_test(only_a_status_is_taken_for_one),
		cmocka_unit_test(the_lines_of_a_quotation_are_those_of_the_program),
		cmocka_unit_test(a_quotation_is_read_so_far),
		cmocka_unit_test(a_quota_that_becomes_free_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
