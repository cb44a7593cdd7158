/*
 * Why an attempt failed: logs as they are, for the order of who is believed. The
 * rows of the table have their own test.
 */
#include "tests/unit/flow/classify.h"

static void a_traceback_is_user_code_with_its_last_frames(void **state)
{
	struct failure_classification v =
		classify_exit(1, "step: 1 loss: 0.5\n"
				 "Traceback (most recent call last):\n"
				 "  File \"train.py\", line 90, in <module>\n"
				 "    main()\n"
				 "  File \"train.py\", line 80, in main\n"
				 "    train()\n"
				 "  File \"train.py\", line 70, in train\n"
				 "    step()\n"
				 "  File \"train.py\", line 60, in step\n"
				 "    x = batch['image']\n"
				 "KeyError: 'image'\n");

	(void)state;
	assert_int_equal(v.class, CLASS_USER_CODE);
	assert_string_equal(v.rule, "py-mistake");
	assert_string_equal(v.evidence, "  File \"train.py\", line 80, in main\n"
					"    train()\n"
					"  File \"train.py\", line 70, in train\n"
					"    step()\n"
					"  File \"train.py\", line 60, in step\n"
					"    x = batch['image']\n"
					"KeyError: 'image'");
}

static void a_missing_module_names_itself_and_its_cure(void **state)
{
	struct failure_classification v =
		classify_exit(1, "Traceback (most recent call last):\n"
				 "  File \"train.py\", line 1, in <module>\n"
				 "    import flax\n"
				 "ModuleNotFoundError: No module named 'flax'\n");

	(void)state;
	assert_int_equal(v.class, CLASS_USER_CONFIG);
	assert_non_null(strstr(v.evidence, "import flax"));
	assert_non_null(strstr(v.hint, "install 'flax' in the Python that runs"));
}

static void a_syntax_error_shows_its_line(void **state)
{
	struct failure_classification v = classify_exit(1, "  File \"/w/train.py\", line 3\n"
							   "    x = = 1\n"
							   "        ^\n"
							   "SyntaxError: invalid syntax\n");

	(void)state;
	assert_int_equal(v.class, CLASS_USER_CODE);
	assert_string_equal(v.evidence, "  File \"/w/train.py\", line 3\n"
					"    x = = 1\n"
					"        ^\n"
					"SyntaxError: invalid syntax");
}

static void the_first_of_chained_exceptions_decides_and_the_last_is_shown(void **state)
{
	struct failure_classification v = classify_exit(
		1, "Traceback (most recent call last):\n"
		   "  File \"a.py\", line 1, in f\n"
		   "FileNotFoundError: [Errno 2] No such file or directory: 'x'\n"
		   "\n"
		   "During handling of the above exception, another exception occurred:\n"
		   "\n"
		   "Traceback (most recent call last):\n"
		   "  File \"a.py\", line 3, in g\n"
		   "RuntimeError: cannot load\n"
		   "\n"
		   "The above exception was the direct cause of the following exception:\n"
		   "\n"
		   "Traceback (most recent call last):\n"
		   "  File \"a.py\", line 5, in h\n"
		   "ValueError: no data\n"
		   "bye\n");

	(void)state;
	assert_string_equal(v.rule, "py-no-file");
	assert_string_equal(v.evidence,
			    "  File \"a.py\", line 1, in f\n"
			    "FileNotFoundError: [Errno 2] No such file or directory: 'x'\n"
			    "The above exception was the direct cause of the following exception:\n"
			    "ValueError: no data");
}

static void what_follows_a_lost_peer_is_not_the_users_fault(void **state)
{
	struct failure_classification v = classify_exit(
		1, "Traceback (most recent call last):\n"
		   "  File \"a.py\", line 1, in f\n"
		   "ConnectionResetError: [Errno 104] Connection reset by peer\n"
		   "\n"
		   "During handling of the above exception, another exception occurred:\n"
		   "\n"
		   "Traceback (most recent call last):\n"
		   "  File \"a.py\", line 3, in g\n"
		   "RuntimeError: all_reduce failed\n");

	(void)state;
	assert_int_equal(v.class, CLASS_COMM);
}

static void a_cause_wins_over_an_earlier_symptom_and_a_later_cause(void **state)
{
	struct failure_classification v =
		classify_exit(1, "RX, connection closed by remote peer\n"
				 "Uncorrectable memory error is detected, metadata: 0x1\n"
				 "Traceback (most recent call last):\n"
				 "  File \"a.py\", line 3, in g\n"
				 "RuntimeError: step failed\n");

	(void)state;
	assert_string_equal(v.rule, "nrt-memory");
}

/* An exception that is raised behind a lost peer mostly follows from it; one that a row knows is a
 * cause. */
static void an_exception_behind_a_lost_peer_is_no_cause(void **state)
{
	struct failure_classification v =
		classify_exit(1, "Traceback (most recent call last):\n"
				 "  File \"a.py\", line 1, in f\n"
				 "BrokenPipeError: [Errno 32] Broken pipe\n"
				 "Traceback (most recent call last):\n"
				 "  File \"a.py\", line 3, in g\n"
				 "AttributeError: 'NoneType' object has no attribute 'x'\n");

	(void)state;
	assert_string_equal(v.rule, "peer-pipe");
	v = classify_exit(1, "BrokenPipeError: [Errno 32] Broken pipe\n"
			     "ModuleNotFoundError: No module named 'flax'\n");
	assert_string_equal(v.rule, "py-module");
}

static void advice_and_warnings_are_no_evidence(void **state)
{
	static const char *const lines[] = {
		"This may be caused by RESOURCE_EXHAUSTED on the device",
		"hint: look for AccessDenied in the bucket's log",
		"UserWarning: Too many open files, slowing down",
		"Connection reset by peer, retrying in 3 s",
		"(NON-FATAL, Ignoring) NEURON_HW_ERR=X",
		"If you see No space left on device, clean up",
	};

	(void)state;
	for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
		assert_string_equal(classify_exit(3, lines[i]).rule, "nothing-known");
}

static void an_unknown_exception_gives_way_to_a_known_one_in_its_chain(void **state)
{
	static const char chain[] =
		"Traceback (most recent call last):\n"
		"  File \"a.py\", line 1, in f\n"
		"KeyError: 'cached'\n"
		"\n"
		"During handling of the above exception, another exception occurred:\n"
		"\n"
		"Traceback (most recent call last):\n"
		"  File \"a.py\", line 3, in g\n"
		"%s\n"
		"MemoryError\n";
	char log[512];

	(void)state;
	snprintf(log, sizeof log, chain, "requests.exceptions.SSLError: cut");
	assert_int_equal(classify_exit(1, log).class, CLASS_TRANSIENT_INFRA);
	snprintf(log, sizeof log, chain, "ValueError: cut");
	assert_non_null(strstr(classify_exit(1, log).evidence, "KeyError: 'cached'"));
	assert_int_equal(classify_exit(1, log).class, CLASS_USER_CODE);
	snprintf(log, sizeof log, chain, "BrokenPipeError: [Errno 32] Broken pipe");
	assert_int_equal(classify_exit(1, log).class, CLASS_USER_CODE);
}

static void of_symptoms_one_that_calls_for_a_retry_weighs_more(void **state)
{
	(void)state;
	assert_string_equal(classify_exit(1, "sh: 1: nvidia-smi: not found\n"
					     "failed (exitcode: 1) local_rank: 0\n"
					     "Connection closed by peer [10.0.0.1]:7")
				    .rule,
			    "peer-closed-gloo");
}

static void foreign_lines_inside_a_traceback_do_not_end_it(void **state)
{
	struct failure_classification v =
		classify_exit(1, "[rank1]: Traceback (most recent call last):\n"
				 "step 12 loss 0.3 (rank 0)\n"
				 "[rank1]:   File \"a.py\", line 3, in g\n"
				 "[rank1]:     return 1 / 0\n"
				 "12:00:01 still here\n"
				 "[rank1]: ZeroDivisionError: division by zero\n");

	(void)state;
	assert_string_equal(v.rule, "py-mistake");
	assert_string_equal(v.evidence, "  File \"a.py\", line 3, in g\n"
					"    return 1 / 0\n"
					"ZeroDivisionError: division by zero");
}

static void a_progress_bar_does_not_hide_the_cause(void **state)
{
	(void)state;
	assert_string_equal(classify_exit(1, " 10%|#  |\r 20%|## |\rMemoryError\r\n").rule,
			    "py-memory");
}

struct exit_case {
	int exit;
	int signal;
	const char *log;
	const char *rule;
	enum failure_class class;
};

static const struct exit_case exits[] = {
	{ 0, 0, "Traceback (most recent call last):\n  x\nKeyError: 1", "success", CLASS_NONE },
	{ 1, 0, "", "nothing-known", CLASS_UNKNOWN },
	{ 2, 0, "bye", "nothing-known", CLASS_UNKNOWN },
	{ 3, 0, "", "nothing-known", CLASS_UNKNOWN },
	{ 75, 0, "KeyError: 1", "exit-75", CLASS_TRANSIENT_INFRA },
	{ 86, 0, "", "nothing-known", CLASS_UNKNOWN },
	{ 87, 0, "", "nothing-known", CLASS_UNKNOWN },
	{ 126, 0, "sh: 1: ./t: Permission denied", "exit-126", CLASS_USER_CONFIG },
	{ 127, 0, "sh: 1: torchrun: not found", "exit-127", CLASS_USER_CONFIG },
	{ 137, 0, "step 3", "sigkill", CLASS_UNKNOWN },
	{ 0, 9, "step 3", "sigkill", CLASS_UNKNOWN },
	{ -9, 0, "step 3", "sigkill", CLASS_UNKNOWN },
	{ 143, 0, "", "killed", CLASS_UNKNOWN },
	{ 139, 0, "Fatal Python error: Segmentation fault", "py-crash", CLASS_UNKNOWN },
	{ 139, 0, "Connection reset by peer", "crash", CLASS_UNKNOWN },
	{ 134, 0, "", "crash", CLASS_UNKNOWN },
	{ 135, 0, "", "crash", CLASS_UNKNOWN },
	{ 134, 0, "Watchdog caught collective operation timeout", "nccl-watchdog", CLASS_COMM },
	{ 247, 0, "", "sigkill", CLASS_UNKNOWN },
	{ 245, 0, "", "crash", CLASS_UNKNOWN },
	{ 255, 0, "", "nothing-known", CLASS_UNKNOWN },
	{ 127, 0, "Connection reset by peer", "peer-reset", CLASS_COMM },
	{ 136, 0, "", "crash", CLASS_UNKNOWN },
	{ 134, 0, "std::bad_alloc", "cc-memory", CLASS_USER_CONFIG },
	/* killed from outside: a traceback in the log was survived */
	{ 137, 0, "Traceback (most recent call last):\n  x\nKeyError: 1", "sigkill",
	  CLASS_UNKNOWN },
	{ 137, 0, "Out of memory: Killed process 3 (python3)", "kernel-oom", CLASS_USER_CONFIG },
	{ 143, 0, "Connection reset by peer", "peer-reset", CLASS_COMM },
};

static void exits_and_signals_mean_what_the_table_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof exits / sizeof exits[0]; i++) {
		const struct exit_case *c = &exits[i];
		struct failure_classification v =
			classify((struct failure_evidence){ .phase = PHASE_TRAIN,
							    .exit_known = true,
							    .exit = c->exit,
							    .signal = c->signal },
				 c->log);

		assert_string_equal(v.rule, c->rule);
		assert_int_equal(v.class, c->class);
		assert_true((v.evidence[0] == '\0') == (c->class == CLASS_NONE));
	}
}

static void no_exit_status_is_unknown_and_not_a_failure_of_the_user(void **state)
{
	struct failure_classification v =
		classify((struct failure_evidence){ .phase = PHASE_TRAIN }, "step 1\nstep 2");

	(void)state;
	assert_int_equal(v.class, CLASS_UNKNOWN);
	assert_string_equal(v.evidence, "no exit status is known\nstep 1\nstep 2");
}

static void the_agent_is_believed_first_then_the_engine_then_the_log(void **state)
{
	struct failure_evidence e = { .phase = PHASE_TRAIN, .exit_known = true, .exit = 1 };
	struct failure_classification v;

	(void)state;
	assert_string_equal(classify(e, "MemoryError").rule, "py-memory");
	e.engine_reason = "Host EC2 (instance i-1) terminated.";
	assert_string_equal(classify(e, "MemoryError").rule, "eng-host-gone");
	e.agent_class = CLASS_USER_CONFIG;
	e.agent_message = "cannot unpack the source: No space left on device";
	v = classify(e, "MemoryError");
	assert_string_equal(v.rule, "agent");
	assert_int_equal(v.class, CLASS_USER_CONFIG);
	assert_string_equal(v.evidence, e.agent_message);
	assert_non_null(strstr(v.hint, "free space"));
	e.agent_hint = "empty /tmp";
	assert_string_equal(classify(e, "MemoryError").hint, "empty /tmp");
	/* The agent's word counts even where the command ended well. */
	e.exit = 0;
	assert_int_equal(classify(e, NULL).class, CLASS_USER_CONFIG);
}

static void out_of_memory_while_compiling_is_worth_another_try(void **state)
{
	struct failure_evidence e = { .phase = PHASE_PRECOMPILE, .exit_known = true, .exit = 1 };

	(void)state;
	assert_int_equal(classify(e, "MemoryError").class, CLASS_COMPILE);
	e.engine_reason = "OUT_OF_MEMORY";
	assert_int_equal(classify(e, "").class, CLASS_COMPILE);
}

struct node_text {
	int signal;
	int64_t ended_ms, first_ms; /* of the first line; the others follow by the second */
	const char *log;
};

static struct failure_classification classify_nodes(const struct node_text *nodes, size_t count)
{
	static struct failure_line lines[4][LINES_MAX];
	static int64_t at_ms[4][LINES_MAX];
	struct failure_log logs[4] = { 0 };
	struct failure_evidence e = { .phase = PHASE_TRAIN,
				      .exit_known = true,
				      .exit = 1,
				      .logs = logs,
				      .log_count = count };
	struct failure_classification v;

	for (size_t i = 0; i < count; i++) {
		logs[i].node = (int)i;
		logs[i].signal = nodes[i].signal;
		logs[i].ended_ms = nodes[i].ended_ms;
		logs[i].lines = lines[i];
		logs[i].count = split(nodes[i].log, lines[i]);
		for (size_t k = 0; nodes[i].first_ms > 0 && k < logs[i].count; k++)
			at_ms[i][k] = nodes[i].first_ms + (int64_t)k * 1000;
		logs[i].at_ms = nodes[i].first_ms > 0 ? at_ms[i] : NULL;
	}
	failure_classify(&e, &v);
	return v;
}

static void the_first_cause_over_all_nodes_decides(void **state)
{
	const struct node_text by_role[] = { { .log = "Connection reset by peer" },
					     { .log = "MemoryError" } };
	const struct node_text by_line[] = {
		{ .first_ms = 9000, .ended_ms = 5, .log = "MemoryError" },
		{ .first_ms = 7000, .ended_ms = 9, .log = "step 1\n(AccessDenied)" },
	};
	const struct node_text by_end[] = { { .ended_ms = 9000, .log = "MemoryError" },
					    { .ended_ms = 8000, .log = "(AccessDenied)" } };
	const struct node_text by_place[] = { { .log = "MemoryError" },
					      { .log = "(AccessDenied)" } };
	const struct node_text stopped[] = {
		{ .signal = 15,
		  .ended_ms = 1,
		  .log = "Traceback (most recent call last):\nKeyError: 1" },
		{ .ended_ms = 2, .log = "Traceback (most recent call last):\nIndexError: 2" },
	};
	struct failure_classification v;

	(void)state;
	v = classify_nodes(by_role, 2);
	assert_string_equal(v.rule, "py-memory");
	assert_int_equal(v.node, 1);
	v = classify_nodes(by_line, 2);
	assert_string_equal(v.rule, "aws-denied");
	assert_int_equal(v.node, 1);
	assert_string_equal(classify_nodes(by_end, 2).rule, "aws-denied");
	assert_int_equal(classify_nodes(by_place, 2).node, 0);
	assert_non_null(strstr(classify_nodes(stopped, 2).evidence, "IndexError"));
}

static void the_kernels_word_on_memory_decides_where_it_can(void **state)
{
	struct failure_evidence e = {
		.phase = PHASE_TRAIN, .exit_known = true, .exit = 137, .out_of_memory = true
	};
	struct failure_classification v = classify(e, "step 3");

	(void)state;
	assert_string_equal(v.rule, "oom");
	assert_int_equal(v.class, CLASS_USER_CONFIG);
	assert_non_null(strstr(v.hint, "smaller batch"));
	assert_non_null(strstr(v.evidence, "the kernel killed a process for lack of memory\n"));
	e.phase = PHASE_PRECOMPILE;
	v = classify(e, "[F137] neuronx-cc was forcibly killed");
	assert_int_equal(v.class, CLASS_COMPILE);
	assert_non_null(strstr(v.hint, "fewer workers"));
	/* A child was killed, the command ended of something else. */
	e.phase = PHASE_TRAIN;
	e.exit = 1;
	assert_string_equal(classify(e, "(AccessDenied)").rule, "aws-denied");
	assert_string_equal(classify(e, "Broken pipe").rule, "oom");
}

static void a_full_disk_is_named_by_its_mount(void **state)
{
	struct failure_evidence e = {
		.phase = PHASE_TRAIN, .exit_known = true, .exit = 1, .agent_mount = "/ckpt"
	};
	struct failure_classification v =
		classify(e, "OSError: [Errno 28] No space left on device");

	(void)state;
	assert_int_equal(v.class, CLASS_USER_CONFIG);
	assert_non_null(strstr(v.hint, "no space is left on /ckpt:"));
	assert_null(strstr(classify(e, "MemoryError").hint, "/ckpt"));
}

static void signatures_are_equal_for_the_same_failure_alone(void **state)
{
	static const char *const same[][2] = {
		{ "RuntimeError: [rank3] shape 17x4 at 0x7f00a1b2c3d4",
		  "RuntimeError: [rank1] shape 18x4 at 0x7f11a1b2c3ff" },
		{ "FileNotFoundError: '/run/a1/ckpt/step.pt'",
		  "FileNotFoundError: '/run/b2/x/step.pt'" },
		{ "KeyError: 'x' (pid 12, 10:02:03)", "KeyError: 'x' (pid 4711, 23:59:00)" },
	};
	static const char *const other[][2] = {
		{ "KeyError: 'image'", "KeyError: 'label'" },
		{ "OSError: [Errno 17] x", "OSError: [Errno 18] x" },
		{ "FileNotFoundError: '/run/a.pt'", "FileNotFoundError: '/run/b.pt'" },
		{ "ValueError: x", "TypeError: x" },
	};
	char text[2][256];

	(void)state;
	for (size_t i = 0; i < 7; i++) {
		const char *const *pair = i < 3 ? same[i] : other[i - 3];
		struct failure_classification a, b;

		for (int k = 0; k < 2; k++)
			snprintf(text[k], sizeof text[k], "%s\n  File \"t.py\", line %d\n%s",
				 "Traceback (most recent call last):", k, pair[k]);
		a = classify_exit(1, text[0]);
		b = classify_exit(1, text[1]);
		if (i < 3)
			assert_string_equal(a.signature, b.signature);
		else
			assert_string_not_equal(a.signature, b.signature);
	}
	/* If an end has no cause, the last lines are chance, the status is not. */
	assert_string_equal(classify_exit(3, "loss a").signature,
			    classify_exit(3, "loss b").signature);
	assert_string_not_equal(classify_exit(3, "x").signature, classify_exit(4, "x").signature);
	assert_string_equal(classify_exit(0, "").signature, "");
	assert_memory_equal(classify_exit(1, "MemoryError").signature, "user-config/py-memory/",
			    22);
}

static void outside_text_is_made_harmless(void **state)
{
	static char long_line[40000];
	struct failure_classification v = classify_exit(
		1, "RuntimeError: \x1b]0;evil\x07 \xff\xfe \xc2\x9b \xe2\x82\xac MemoryError: x");
	struct failure_line line = { long_line, sizeof long_line };
	struct failure_log log = { .lines = &line, .count = 1 };
	struct failure_evidence e = { .exit_known = true, .exit = 3, .logs = &log, .log_count = 1 };

	(void)state;
	for (const char *c = v.evidence; *c; c++)
		assert_true((unsigned char)*c >= 0x20 || *c == '\n');
	assert_non_null(strstr(v.evidence, "?]0;evil? ?? ?? \xe2\x82\xac"));
	/* Beyond the bound nothing is looked at; a NUL is a byte like others. */
	memset(long_line, 'x', sizeof long_line);
	long_line[10] = '\0';
	memcpy(long_line + 20000, "RESOURCE_EXHAUSTED", 18);
	failure_classify(&e, &v);
	assert_string_equal(v.rule, "nothing-known");
	memcpy(long_line + 10000, "RESOURCE_EXHAUSTED", 18);
	failure_classify(&e, &v);
	assert_string_equal(v.rule, "xla-memory");
	assert_true(strlen(v.evidence) < 500);
}

static void the_words_that_decided_are_quoted_however_late_in_their_line(void **state)
{
	char line[1200];
	struct failure_classification v;

	(void)state;
	snprintf(line, sizeof line, "Failed compilation with ['neuronx-cc', '%0800d']: %s", 0,
		 "ERROR [NCC_EVRF001] An unsupported operator was used");
	v = classify_exit(1, line);
	assert_string_equal(v.evidence, "... [NCC_EVRF001] An unsupported operator was used");
	/* A short one is whole. */
	v = classify_exit(1, "ERROR: [NCC_EVRF001] An unsupported operator was used");
	assert_string_equal(v.evidence, "ERROR: [NCC_EVRF001] An unsupported operator was used");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_traceback_is_user_code_with_its_last_frames),
		cmocka_unit_test(the_words_that_decided_are_quoted_however_late_in_their_line),
		cmocka_unit_test(a_missing_module_names_itself_and_its_cure),
		cmocka_unit_test(a_syntax_error_shows_its_line),
		cmocka_unit_test(the_first_of_chained_exceptions_decides_and_the_last_is_shown),
		cmocka_unit_test(what_follows_a_lost_peer_is_not_the_users_fault),
		cmocka_unit_test(a_cause_wins_over_an_earlier_symptom_and_a_later_cause),
		cmocka_unit_test(an_exception_behind_a_lost_peer_is_no_cause),
		cmocka_unit_test(advice_and_warnings_are_no_evidence),
		cmocka_unit_test(an_unknown_exception_gives_way_to_a_known_one_in_its_chain),
		cmocka_unit_test(of_symptoms_one_that_calls_for_a_retry_weighs_more),
		cmocka_unit_test(foreign_lines_inside_a_traceback_do_not_end_it),
		cmocka_unit_test(a_progress_bar_does_not_hide_the_cause),
		cmocka_unit_test(exits_and_signals_mean_what_the_table_says),
		cmocka_unit_test(no_exit_status_is_unknown_and_not_a_failure_of_the_user),
		cmocka_unit_test(the_agent_is_believed_first_then_the_engine_then_the_log),
		cmocka_unit_test(out_of_memory_while_compiling_is_worth_another_try),
		cmocka_unit_test(the_first_cause_over_all_nodes_decides),
		cmocka_unit_test(the_kernels_word_on_memory_decides_where_it_can),
		cmocka_unit_test(a_full_disk_is_named_by_its_mount),
		cmocka_unit_test(signatures_are_equal_for_the_same_failure_alone),
		cmocka_unit_test(outside_text_is_made_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
