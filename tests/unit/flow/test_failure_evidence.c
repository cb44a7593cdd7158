/*
 * Several speak, and one is believed: nodes, the agent, the engine, an exit status, the kernel.
 * And what is told to the user then: the quotation, and a cure with the words of this failure.
 */
#include "tests/unit/flow/classify.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define NO_TIMES     (-1) /* as if the agent had none for the lines */

struct said {
	int node, signal;
	int64_t at_ms, ended_ms; /* at_ms: of each line; 0: not known */
	const char *log;
};

static struct failure_classification classify_said(struct failure_evidence e,
						   const struct said *said, size_t count)
{
	static struct failure_line lines[3][LINES_MAX];
	static int64_t at_ms[3][LINES_MAX];
	struct failure_log logs[3] = { 0 };
	struct failure_classification v;

	for (size_t i = 0; i < count; i++) {
		logs[i] = (struct failure_log){ .node = said[i].node,
						.signal = said[i].signal,
						.ended_ms = said[i].ended_ms,
						.lines = lines[i],
						.count = split(said[i].log, lines[i]),
						.at_ms = said[i].at_ms == NO_TIMES ? NULL
										   : at_ms[i] };
		for (size_t k = 0; k < logs[i].count; k++)
			at_ms[i][k] = said[i].at_ms;
	}
	e.logs = guarded_array(GUARDED_LOGS, logs, count * sizeof logs[0]);
	e.log_count = count;
	failure_classify(&e, &v);
	return v;
}

static struct failure_evidence exited(int exit)
{
	return (struct failure_evidence){ .phase = PHASE_TRAIN, .exit_known = true, .exit = exit };
}

/* ---- the cure ------------------------------------------------------------------- */

static void a_cure_names_the_users_own_setting(void **state)
{
	static const struct {
		const char *log, *hint;
	} rows[] = {
		{ "t.py: error: unrecognized arguments: --warmup 10 --x 1",
		  "the script does not take '--warmup 10 --x 1': remove hyperparameters.warmup" },
		{ "t.py: error: unrecognized arguments: --lr=3",
		  "the script does not take '--lr=3': remove hyperparameters.lr" },
		{ "t.py: error: unrecognized arguments: -lr,x",
		  "the script does not take '-lr,x': remove hyperparameters.lr" },
		{ "t.py: error: unrecognized arguments:  - lr\tx",
		  "the script does not take ' - lr\tx': remove hyperparameters.lr" },
		{ "t.py: error: unrecognized arguments: =3",
		  "the script does not take '=3': remove hyperparameters." },
		{ "t.py: error: unrecognized arguments: --",
		  "the script does not take '--': remove hyperparameters." },
		{ "t.py: error: unrecognized arguments: x",
		  "the script does not take 'x': remove hyperparameters.x" },
		{ "t.py: error: argument --lr: invalid float value: 'abc'",
		  "the script refuses the value for --lr: correct hyperparameters.lr" },
		{ "t.py: error: unrecognized arguments: True",
		  "a, b: the script takes a flag without a value: write hyperparameter_style: "
		  "{booleans: flag}" },
	};
	struct failure_evidence e = exited(2);

	(void)state;
	e.booleans = "a, b";
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_string_equal(classify(e, rows[i].log).hint, rows[i].hint);
	/* No boolean in the spec, or none whose name is known */
	e.booleans = "";
	assert_memory_equal(classify(e, rows[COUNT(rows) - 1].log).hint, "an argument: the", 16);
	e.booleans = NULL;
	assert_memory_equal(classify(e, rows[COUNT(rows) - 1].log).hint, "an argument: the", 16);
}

static void a_full_disk_is_named_and_no_other_failure(void **state)
{
	static const char cure[] =
		"no space is left on /ckpt: free space there, or write to another file system";
	static const char full[] = "OSError: [Errno 28] No space left on device";
	struct failure_evidence e = exited(1);

	(void)state;
	e.agent_mount = "/ckpt";
	assert_string_equal(classify(e, full).hint, cure);
	assert_string_equal(classify(e, "OSError: [Errno 122] Disk quota exceeded").hint, cure);
	assert_null(strstr(classify(e, "ModuleNotFoundError: No module named 'x'").hint, "/ckpt"));
	/* the words, but of another class: an unknown failure is only quoted */
	e.exit = 3;
	assert_null(
		strstr(classify(e, "error: 'No space left on devices' is a song").hint, "song:"));
	e.exit = 1;
	assert_string_equal(classify(e, "step 1").hint, "");
	e.agent_mount = "";
	assert_string_not_equal(classify(e, full).hint, cure);
	assert_null(strstr(classify(e, full).hint, "no space is left on :"));
	e.agent_mount = NULL;
	assert_non_null(strstr(classify(e, full).hint, "space"));
}

/* ---- the quotation of an end ---------------------------------------------------- */

static void the_last_five_lines_that_say_something_are_quoted(void **state)
{
	struct failure_classification v =
		classify(exited(3), "one\ntwo\n\n[rank0]: three\n \nfour\nfive\nsix\n\n");

	(void)state;
	assert_string_equal(v.evidence, "exit status 3\ntwo\nthree\nfour\nfive\nsix");
	assert_int_equal(v.decisive_bytes, strlen("exit status 3"));
	assert_string_equal(classify(exited(3), "x").evidence, "exit status 3\nx");
	assert_string_equal(classify(exited(3), "\n\n").evidence, "exit status 3");
	assert_string_equal(classify(exited(3), NULL).evidence, "exit status 3");
}

static void the_engines_words_are_quoted_with_the_end(void **state)
{
	struct failure_evidence e = exited(3);

	(void)state;
	e.engine_reason = "it is over";
	assert_string_equal(classify(e, "x").evidence, "exit status 3\nit is over\nx");
	assert_int_equal(classify(e, "x").decisive_bytes, strlen("exit status 3\nit is over"));
	e.engine_reason = "";
	assert_string_equal(classify(e, "x").evidence, "exit status 3\nx");
}

static void the_log_of_the_node_that_ended_is_quoted(void **state)
{
	const struct said nodes[] = { { .node = 0, .log = "zero" },
				      { .node = 1, .log = "one" },
				      { .node = 2, .log = "two" } };
	struct failure_evidence e = exited(3);

	(void)state;
	for (int node = 0; node < 3; node++) {
		static const char *const quoted[] = { "exit status 3\nzero", "exit status 3\none",
						      "exit status 3\ntwo" };

		e.node = node;
		assert_string_equal(classify_said(e, nodes, 3).evidence, quoted[node]);
	}
	/* A node without a log: of several, none is taken for it; an only one is. */
	e.node = 7;
	assert_string_equal(classify_said(e, nodes, 2).evidence, "exit status 3");
	assert_string_equal(classify_said(e, nodes, 2).rule, "nothing-known");
	assert_string_equal(classify_said(e, nodes, 1).evidence, "exit status 3\nzero");
}

/* ---- exits and signals ---------------------------------------------------------- */

static void an_exit_status_tells_of_a_signal_where_it_can(void **state)
{
	static const struct {
		int exit;
		const char *rule, *evidence;
	} rows[] = {
		{ 127, "exit-127", "exit status 127" },
		{ 3, "nothing-known", "exit status 3" },
		{ 209, "nothing-known", "exit status 209" },
		{ 128, "nothing-known", "exit status 128" },
		{ 129, "killed", "killed by signal 1 (SIGHUP)" },
		{ 130, "killed", "killed by signal 2 (SIGINT)" },
		{ 132, "crash", "killed by signal 4 (SIGILL)" },
		{ 136, "crash", "killed by signal 8 (SIGFPE)" },
		{ 137, "sigkill", "killed by signal 9 (SIGKILL)" },
		{ 138, "killed", "killed by signal 10 (unnamed)" },
		{ 159, "crash", "killed by signal 31 (SIGSYS)" },
		{ 160, "nothing-known", "exit status 160" },
		{ -1, "killed", "killed by signal 1 (SIGHUP)" },
		{ -64, "killed", "killed by signal 64 (unnamed)" },
		{ -65, "nothing-known", "exit status -65" },
		{ 224, "nothing-known", "exit status 224" },
		{ 225, "crash", "killed by signal 31 (SIGSYS)" },
		{ 246, "nothing-known", "exit status 246" },
		{ 247, "sigkill", "killed by signal 9 (SIGKILL)" },
		{ 251, "crash", "killed by signal 5 (SIGTRAP)" },
		{ 252, "nothing-known", "exit status 252" },
	};
	struct failure_evidence e = { .exit = 137 };

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct failure_classification v = classify(exited(rows[i].exit), NULL);

		assert_string_equal(v.rule, rows[i].rule);
		assert_string_equal(v.evidence, rows[i].evidence);
	}
	/* A status that nobody saw is none, and a signal is nearer than a status. */
	assert_string_equal(classify(e, NULL).evidence, "no exit status is known");
	e.exit = 127;
	assert_string_equal(classify(e, NULL).rule, "nothing-known");
	e = exited(127);
	e.signal = 1;
	assert_string_equal(classify(e, NULL).evidence, "killed by signal 1 (SIGHUP)");
	e = exited(75);
	e.exit_known = false;
	e.signal = 9;
	assert_string_equal(classify(e, NULL).evidence, "killed by signal 9 (SIGKILL)");
}

static void an_end_says_what_to_do(void **state)
{
	static const struct {
		int exit;
		const char *hint;
	} rows[] = {
		{ 75, "" },
		{ 126, "a program of `command` cannot be executed: check its rights and what it "
		       "was built for" },
		{ 127, "a program of `command` is not found: install it where the job runs, or "
		       "correct its name" },
		{ 137, "the process was killed from outside; check first if memory was short" },
		{ 139, "the program crashed: run it under a debugger, or with "
		       "PYTHONFAULTHANDLER=1 in `env`" },
		{ 138, "" },
		{ 136, "the program crashed: run it under a debugger, or with "
		       "PYTHONFAULTHANDLER=1 in `env`" },
		{ 143, "" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_string_equal(classify(exited(rows[i].exit), "x").hint, rows[i].hint);
	/* A word of the log is worth more than nothing. */
	assert_non_null(strstr(classify(exited(137), "the job is preempted.\n").hint,
			       "the engine reports none"));
}

/* A complaint, or a status that a launcher made of a signal, does not hide the signal. */
static void a_signal_is_seen_through_launchers_and_complaints(void **state)
{
	static const struct {
		int exit, signal;
		const char *log, *rule;
	} rows[] = {
		{ 1, 0, "error: gateway lost", "complaint" },
		{ 3, 0, "error: gateway lost\nstep 2", "complaint" },
		{ 0, 1, "error: gateway lost", "killed" },
		{ 0, 15, "error: gateway lost", "killed" },
		{ 0, 11, "error: gateway lost", "crash" },
		{ 1, 0, "worker failed (exitcode: -9) local_rank: 0", "sigkill" },
		{ 1, 0, "worker failed (exitcode: -11) local_rank: 0", "crash" },
		{ 1, 0, "worker failed (exitcode: -6) local_rank: 0", "torchrun-exit" },
		{ 1, 0, "worker failed (exitcode: 1) local_rank: 0", "torchrun-exit" },
		{ 0, 15, "worker failed (exitcode: -9) local_rank: 0", "killed" },
		{ 0, 1, "Traceback (most recent call last):\n  x\nKeyError: 1", "killed" },
		{ 0, 11, "Traceback (most recent call last):\n  x\nKeyError: 1", "py-mistake" },
		{ 127, 0, "Connection refused", "peer-refused" },
		{ 126, 0, "Connection refused", "exit-126" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct failure_evidence e = exited(rows[i].exit);
		struct failure_classification v;

		e.signal = rows[i].signal;
		v = classify(e, rows[i].log);
		if (strcmp(v.rule, rows[i].rule) != 0)
			fail_msg("%d, signal %d, '%s': %s, not %s", rows[i].exit, rows[i].signal,
				 rows[i].log, v.rule, rows[i].rule);
	}
}

/* ---- the agent, and the kernel -------------------------------------------------- */

static void the_agents_word_has_a_cure_where_a_row_agrees(void **state)
{
	struct failure_evidence e = exited(1);

	(void)state;
	e.agent_class = CLASS_USER_CONFIG;
	e.agent_message = "MemoryError";
	assert_string_not_equal(classify(e, "x").hint, "");
	e.agent_class = CLASS_HARDWARE_NODE;
	assert_string_equal(classify(e, "x").hint, "");
	assert_int_equal(classify(e, "x").class, CLASS_HARDWARE_NODE);
	e.agent_message = "it does not start";
	assert_string_equal(classify(e, "x").hint, "");
	e.agent_hint = "start it";
	assert_string_equal(classify(e, "x").hint, "start it");
	/* An exception that is not one of a log does not count. */
	e.agent_hint = NULL;
	e.agent_class = CLASS_UNKNOWN;
	e.agent_message = "";
	assert_string_equal(classify(e, "x").evidence, "exit status 1\nx");
	assert_string_equal(classify(e, "x").rule, "agent");
	e.agent_message = NULL;
	assert_string_equal(classify(e, "x").evidence, "exit status 1\nx");
}

static void a_right_that_the_agent_lacks_is_not_tried_again(void **state)
{
	struct failure_evidence e = exited(70);

	(void)state;
	e.agent_message =
		"cannot read the claim: AccessDenied: User: a is not authorized to perform: "
		"s3:ListBucket on resource: \"arn:aws:s3:::b\"";
	e.agent_hint = "allow it";
	e.agent_class = CLASS_UNKNOWN;
	assert_int_equal(classify(e, "x").class, CLASS_QUOTA_PERMISSION);
	assert_string_equal(classify(e, "x").hint, "allow it");
	e.agent_class = CLASS_TRANSIENT_INFRA;
	assert_int_equal(classify(e, "x").class, CLASS_QUOTA_PERMISSION);
	/* Where the agent knows better, and where it says something else. */
	e.agent_class = CLASS_USER_CONFIG;
	assert_int_equal(classify(e, "x").class, CLASS_USER_CONFIG);
	e.agent_class = CLASS_TRANSIENT_INFRA;
	e.agent_message = "cannot read the claim: SlowDown";
	assert_int_equal(classify(e, "x").class, CLASS_TRANSIENT_INFRA);
}

static void lack_of_memory_gives_way_to_a_cause_of_its_own(void **state)
{
	static const struct {
		enum phase phase;
		int exit;
		const char *log, *rule;
	} rows[] = {
		{ PHASE_TRAIN, 1, "step 1", "oom" },
		{ PHASE_TRAIN, 1, "Connection reset by peer", "oom" },
		{ PHASE_TRAIN, 1, "Traceback (most recent call last):\nKeyError: 1", "py-mistake" },
		{ PHASE_TRAIN, 136, "Out of memory: Killed process 3 (python3)", "kernel-oom" },
		{ PHASE_TRAIN, 138, "Out of memory: Killed process 3 (python3)", "kernel-oom" },
		{ PHASE_TRAIN, 137, "Out of memory: Killed process 3 (python3)", "oom" },
		{ PHASE_PRECOMPILE, 1, "MemoryError", "oom" },
		{ PHASE_TRAIN, 1, "MemoryError", "py-memory" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct failure_evidence e = exited(rows[i].exit);
		struct failure_classification v;

		e.phase = rows[i].phase;
		e.out_of_memory = true;
		v = classify(e, rows[i].log);
		if (strcmp(v.rule, rows[i].rule) != 0)
			fail_msg("%d, '%s': %s", rows[i].exit, rows[i].log, v.rule);
		e.out_of_memory = false;
		assert_string_not_equal(classify(e, rows[i].log).rule, "oom");
	}
}

/* ---- several nodes -------------------------------------------------------------- */

/* If two nodes have a cause each, the first one in time tells; by the end of the command where
 * lines have no time, and by their order where nothing is known. */
static void of_two_causes_the_earlier_one_tells(void **state)
{
	static const struct {
		int64_t at[2], ended[2];
		int node;
	} rows[] = {
		{ { 2000, 1000 }, { 0, 0 }, 1 },     { { 1000, 2000 }, { 0, 0 }, 0 },
		{ { 1000, 1000 }, { 0, 0 }, 0 },     { { 2, 1 }, { 0, 0 }, 1 },
		{ { 1, 2 }, { 0, 0 }, 0 },           { { 2000, 1000 }, { 5, 9 }, 1 },
		{ { 1000, 2000 }, { 9, 5 }, 0 },     { { 0, 0 }, { 9, 5 }, 1 },
		{ { 0, 0 }, { 5, 9 }, 0 },           { { 0, 0 }, { 5, 5 }, 0 },
		{ { 0, 0 }, { 2, 1 }, 1 },           { { 0, 0 }, { 1, 2 }, 0 },
		{ { 0, 0 }, { 0, 5 }, 0 },           { { 0, 0 }, { 5, 0 }, 0 },
		{ { 0, 0 }, { 0, 0 }, 0 },           { { 0, 1 }, { 5, 9 }, 0 },
		{ { 0, 9000 }, { 9, 5 }, 1 },        { { 1, 0 }, { 9, 5 }, 1 },
		{ { 9000, 0 }, { 5, 9 }, 0 },        { { NO_TIMES, 9000 }, { 9, 5 }, 1 },
		{ { NO_TIMES, 9000 }, { 5, 9 }, 0 }, { { 9000, NO_TIMES }, { 5, 9 }, 0 },
		{ { 1, NO_TIMES }, { 9, 5 }, 1 },    { { NO_TIMES, NO_TIMES }, { 9, 5 }, 1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct said nodes[] = {
			{ 0, 0, rows[i].at[0], rows[i].ended[0], "step 1\nMemoryError" },
			{ 1, 0, rows[i].at[1], rows[i].ended[1], "MemoryError" },
		};

		if (classify_said(exited(1), nodes, 2).node != rows[i].node)
			fail_msg("row %zu: node %d", i, classify_said(exited(1), nodes, 2).node);
	}
}

/* A cause outweighs a lost peer, that a complaint, and that the mere news of the end, whoever was
 * first. */
static void the_stronger_evidence_tells_whoever_was_first(void **state)
{
	static const char *const by_strength[] = { "SignalException: got 15", "error: gateway lost",
						   "Connection reset by peer", "MemoryError" };

	(void)state;
	for (size_t weak = 0; weak < COUNT(by_strength); weak++) {
		for (size_t strong = weak + 1; strong < COUNT(by_strength); strong++) {
			struct said nodes[] = { { 0, 0, 1, 1, by_strength[weak] },
						{ 1, 0, 2, 2, by_strength[strong] } };

			assert_int_equal(classify_said(exited(1), nodes, 2).node, 1);
			nodes[0].log = by_strength[strong];
			nodes[1].log = by_strength[weak];
			nodes[1].at_ms = nodes[1].ended_ms = 0;
			assert_int_equal(classify_said(exited(1), nodes, 2).node, 0);
			nodes[0].at_ms = 3;
			nodes[1].at_ms = 1;
			assert_int_equal(classify_said(exited(1), nodes, 2).node, 0);
		}
	}
}

/* A process that is killed from outside had survived what its log says: no cause, on its node
 * alone. */
static void a_kill_is_of_one_node(void **state)
{
	static const char raised[] = "Traceback (most recent call last):\n  x\nKeyError: 1";
	struct said nodes[] = { { .node = 0, .log = raised }, { .node = 1, .log = raised } };
	struct failure_evidence e = exited(0);

	(void)state;
	e.signal = 15;
	assert_int_equal(classify_said(e, nodes, 2).node, 1);
	assert_string_equal(classify_said(e, nodes, 2).rule, "py-mistake");
	nodes[1].signal = 1;
	assert_string_equal(classify_said(e, nodes, 2).rule, "killed");
	nodes[1].signal = 11;
	assert_string_equal(classify_said(e, nodes, 2).rule, "py-mistake");
	e.signal = 1;
	assert_string_equal(classify_said(e, nodes, 1).rule, "killed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cure_names_the_users_own_setting),
		cmocka_unit_test(a_full_disk_is_named_and_no_other_failure),
		cmocka_unit_test(the_last_five_lines_that_say_something_are_quoted),
		cmocka_unit_test(the_engines_words_are_quoted_with_the_end),
		cmocka_unit_test(the_log_of_the_node_that_ended_is_quoted),
		cmocka_unit_test(an_exit_status_tells_of_a_signal_where_it_can),
		cmocka_unit_test(an_end_says_what_to_do),
		cmocka_unit_test(a_signal_is_seen_through_launchers_and_complaints),
		cmocka_unit_test(the_agents_word_has_a_cure_where_a_row_agrees),
		cmocka_unit_test(a_right_that_the_agent_lacks_is_not_tried_again),
		cmocka_unit_test(lack_of_memory_gives_way_to_a_cause_of_its_own),
		cmocka_unit_test(of_two_causes_the_earlier_one_tells),
		cmocka_unit_test(the_stronger_evidence_tells_whoever_was_first),
		cmocka_unit_test(a_kill_is_of_one_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
