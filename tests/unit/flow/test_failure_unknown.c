/* Texts that no row names: exceptions without a traceback, prefixes of loggers, complaints. */
#include "tests/unit/flow/classify.h"

static void assert_rule(const char *rule, const char *log)
{
	assert_string_equal(classify_exit(1, log).rule, rule);
}

static void an_exception_at_the_end_needs_no_traceback(void **state)
{
	struct failure_classification v =
		classify_exit(1, "step 7\n"
				 "RuntimeError: operands could not be added\n"
				 "E0410 torch.distributed: failed (exitcode: 1)\n");

	(void)state;
	assert_string_equal(v.rule, "py-exception");
	assert_int_equal(v.class, CLASS_UNKNOWN);
	assert_non_null(strstr(v.evidence, "operands"));
	assert_rule("nothing-known", "ValueError: skipped a sample, will retry\nstep 7\n");
}

static void a_logger_may_put_its_own_in_front_of_a_traceback(void **state)
{
	(void)state;
	assert_rule("py-space",
		    "09:15:01 [n1] ERROR Traceback (most recent call last):\n"
		    "09:15:01 [n1] ERROR   File \"a.py\", line 1, in f\n"
		    "09:15:02 [n1] ERROR OSError: [Errno 28] No space left on device\n");
	assert_rule("py-mistake", "7: [rank80]: Traceback (most recent call last):\n"
				  "7: [rank80]:   File \"a.py\", line 1, in f\n"
				  "7: [rank80]: ZeroDivisionError: division by zero\n");
}

static void an_exception_may_say_it_in_the_lines_behind_its_own(void **state)
{
	struct failure_classification v = classify_exit(
		1, "Traceback (most recent call last):\n"
		   "  File \"a.py\", line 1, in f\n"
		   "RuntimeError:\n"
		   "        Some tensors share memory, this will lead to duplicates\n");

	(void)state;
	assert_string_equal(v.rule, "ckpt-shared");
	assert_non_null(strstr(v.evidence, "share memory"));
	assert_rule("ckpt-shared", "RuntimeError: \n\n"
				   "    Some tensors share memory\n");
	assert_rule("py-exception", "RuntimeError: gone\n"
				    "    Some tensors share memory\n");
	assert_rule("py-exception", "RuntimeError:");
}

static void a_warning_may_be_all_that_is_said_of_the_end(void **state)
{
	struct failure_classification v =
		classify_exit(1, "submitit WARNING (2022-07-12) - Caught signal SIGHUP on n1: "
				 "this job is preempted.\n");

	(void)state;
	assert_int_equal(v.class, CLASS_UNKNOWN);
	assert_non_null(strstr(v.hint, "the engine reports none"));
	assert_rule("nothing-known",
		    "WARNING (2022-07-12): a node that is preempted ends the job\n");
}

static void what_is_ignored_is_no_cause(void **state)
{
	struct failure_classification v =
		classify_exit(1, "Exception ignored in: <function A.__del__ at 0x7f30>\n"
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

static void words_decide_nothing(void **state)
{
	struct failure_classification v =
		classify_exit(1, "Traceback (most recent call last):\n"
				 "  File \"a.py\", line 1, in f\n"
				 "pkg.OddError: server unreachable, connection gone\n");

	(void)state;
	assert_string_equal(v.rule, "py-exception");
	assert_int_equal(v.class, CLASS_UNKNOWN);
	/* A complaint is shown, and is no verdict. */
	v = classify_exit(1, "error: gateway unreachable\nstep 7 of 20\n");
	assert_int_equal(v.class, CLASS_UNKNOWN);
	assert_string_equal(v.rule, "complaint");
	assert_string_equal(v.evidence, "error: gateway unreachable");
	v = classify_exit(1, "step 7 of 20\n");
	assert_string_equal(v.rule, "nothing-known");
	assert_int_equal(v.class, CLASS_UNKNOWN);
	/* The status that programs give that were called in a wrong way is unknown, too. */
	v = classify_exit(2, "step 7 of 20\n");
	assert_int_equal(v.class, CLASS_UNKNOWN);
}

/* Any program prints such words: a scheduler of requests, a ring buffer. */
static void only_an_engine_says_spot_or_capacity(void **state)
{
	static const char *const logs[] = {
		"WARNING scheduler: the request was preempted by PreemptionMode.RECOMPUTE\n",
		"Insufficient capacity in ring buffer\n",
		"botocore.exceptions.ClientError: (InsufficientInstanceCapacity)\n",
	};
	struct failure_evidence engine = { .phase = PHASE_TRAIN };

	(void)state;
	for (size_t i = 0; i < sizeof logs / sizeof logs[0]; i++) {
		assert_int_equal(classify_exit(1, logs[i]).class, CLASS_UNKNOWN);
		assert_int_equal(classify_exit(137, logs[i]).class, CLASS_UNKNOWN);
	}
	assert_string_equal(classify_exit(137, logs[0]).rule, "sigkill");
	engine.engine_reason = "Host EC2 (instance i-1) terminated.";
	assert_int_equal(classify(engine, "").class, CLASS_SPOT);
}

static void a_notebook_names_the_exception_before_its_traceback(void **state)
{
	(void)state;
	assert_rule("data-image",
		    "UnidentifiedImageError                Traceback (most recent call last)\n"
		    "Cell In[13], line 3\n"
		    "      1 # merge\n");
	assert_rule("py-space",
		    "UnidentifiedImageError                Traceback (most recent call last)\n"
		    "Cell In[13], line 3\n"
		    "OSError: [Errno 28] No space left on device\n");
}

static void a_device_that_did_not_start_is_told_by_a_warning(void **state)
{
	(void)state;
	assert_rule("gpu-unknown-words",
		    "/l/torch/cuda/__init__.py:82: UserWarning: CUDA initialization: "
		    "CUDA unknown error - this may be due to an environment\n"
		    "CUDA available: False\n");
	/* The warning is nothing on a machine without a driver. */
	assert_rule("nothing-known",
		    "/l/torch/cuda/__init__.py:82: UserWarning: CUDA initialization: "
		    "Found no NVIDIA driver on your system.\n"
		    "step 7 of 20\n");
}

/* The AWS CLI ends with 254 where a service refused it. */
static void an_exit_status_near_the_last_is_no_signal(void **state)
{
	struct failure_classification v =
		classify_exit(254, "An error occurred (ThrottlingException) when calling the "
				   "ListTrainingJobs operation: Rate exceeded\n");

	(void)state;
	assert_string_equal(v.rule, "aws-throttled");
}

/* Exceptions that Python raises by itself are mistakes in the code. */
static void a_plain_mistake_is_the_codes_whatever_it_says(void **state)
{
	struct failure_classification v = classify_exit(1, "Traceback (most recent call last):\n"
							   "  File \"a.py\", line 1, in f\n"
							   "ZeroDivisionError: division by zero\n");

	(void)state;
	assert_int_equal(v.class, CLASS_USER_CODE);
	v = classify_exit(1, "Traceback (most recent call last):\n"
			     "  File \"a.py\", line 1, in f\n"
			     "AttributeError: 'Foo' object has no attribute 'bar'\n");
	assert_int_equal(v.class, CLASS_USER_CODE);
}

static void an_assertion_is_known_by_what_it_asks_for(void **state)
{
	struct failure_classification v =
		classify_exit(1, "Traceback (most recent call last):\n"
				 "  File \"a.py\", line 1, in f\n"
				 "    assert args.vocab_file is not None\n"
				 "           ^^^^^^^^^^^^^^^\n"
				 "AssertionError\n");

	(void)state;
	assert_string_equal(v.rule, "asks-arguments");
	assert_int_equal(v.class, CLASS_USER_CONFIG);
}

static void any_bytes_are_judged(void **state)
{
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof text - 1; i++)
		text[i] = (char)(i * 37 % 255 + 1);
	text[sizeof text - 1] = '\0';
	classify_exit(1, text);
	classify_exit(1, "ERROR A b HTTPError OSError aB Ab AB ABc Error");
	classify_exit(1,
		      "errorrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exception_at_the_end_needs_no_traceback),
		cmocka_unit_test(a_logger_may_put_its_own_in_front_of_a_traceback),
		cmocka_unit_test(an_exception_may_say_it_in_the_lines_behind_its_own),
		cmocka_unit_test(a_warning_may_be_all_that_is_said_of_the_end),
		cmocka_unit_test(what_is_ignored_is_no_cause),
		cmocka_unit_test(words_decide_nothing),
		cmocka_unit_test(only_an_engine_says_spot_or_capacity),
		cmocka_unit_test(a_notebook_names_the_exception_before_its_traceback),
		cmocka_unit_test(a_device_that_did_not_start_is_told_by_a_warning),
		cmocka_unit_test(an_exit_status_near_the_last_is_no_signal),
		cmocka_unit_test(a_plain_mistake_is_the_codes_whatever_it_says),
		cmocka_unit_test(an_assertion_is_known_by_what_it_asks_for),
		cmocka_unit_test(any_bytes_are_judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
