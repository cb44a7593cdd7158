/* What an engine's words mean where a row alone does not say it: what it quotes of the
 * program, and a quota that is in use. */
#include "tests/unit/flow/classify.h"

static struct failure_classification classify_reason(const char *reason, const char *log)
{
	return classify((struct failure_evidence){ .phase = PHASE_TRAIN, .engine_reason = reason },
			log);
}

static void what_a_program_wrote_is_no_word_of_the_engine(void **state)
{
	/* It would be out of capacity, denied and over a quota, if the engine said it. */
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
	/* What the agent saw itself is nearer, and no number is none. */
	e.engine_reason = "AlgorithmError: , exit code: 127";
	assert_string_not_equal(classify(e, "a").rule, "exit-127");
	assert_string_equal(classify_reason("AlgorithmError: , exit code: 4711", "a").evidence,
			    "no exit status is known\nAlgorithmError: , exit code: 4711\na");
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
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_program_wrote_is_no_word_of_the_engine),
		cmocka_unit_test(its_words_count_where_there_is_no_log),
		cmocka_unit_test(the_exit_that_is_quoted_counts),
		cmocka_unit_test(a_quota_that_becomes_free_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
