/*
 * The quotation of a failure, and who stands behind an end: the signal as a launcher tells it,
 * frames and chains, the log that is pointed at. A user sees this and not the log.
 */
#include "tests/unit/flow/classify.h"

#include "jobs/flow/failure_internal.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define TRACEBACK    "Traceback (most recent call last):\n"
#define DURING       "During handling of the above exception, another exception occurred:\n"

/* ---- launchers ----------------------------------------------------- */

static int reported(const char *log)
{
	struct failure_line lines[LINES_MAX];
	struct failure_log said = { .count = split(log, lines) };

	said.lines = guarded_array(GUARDED_LINES, lines, said.count * sizeof lines[0]);
	if (said.count == 1) /* and nothing is read behind an only line */
		((struct failure_line *)said.lines)->text = guarded_end(log, lines[0].len).text;
	return failure_reported_signal(&said);
}

static void the_first_report_of_a_launcher_tells_the_signal(void **state)
{
	static const struct {
		const char *log;
		int signal;
	} rows[] = {
		{ "worker failed (exitcode: -9) local_rank: 0", 9 },
		{ "Worker FAILED (EXITCODE: -9)", 9 },
		{ "failed (exitcode: 9)", 0 },
		{ "failed (exitcode: )", 0 },
		{ "failed (exitcode: -)", 0 },
		{ "failed (exitcode: -64)", 64 },
		{ "failed (exitcode: -65)", 0 },
		{ "failed (exitcode: -640)", 0 },
		{ "exits with return code = -15", 15 },
		{ "exits with return code = -15 (pid: 7)", 15 },
		{ "exits with return code = 1", 0 },
		{ "exited on signal 11 (Segmentation fault)", 11 },
		{ "exited on signal 64 (x)", 64 },
		{ "exited on signal 65 (x)", 0 },
		{ "<Signals.SIGKILL: 9>", 9 },
		{ "<Signals.SIGTERM: 15>", 15 },
		{ "failed (exitcode: -9)\nfailed (exitcode: -11)", 9 },
		{ "failed (exitcode: 1)\nfailed (exitcode: -9)", 0 },
		{ "step 1\nfailed (exitcode: -7)", 7 },
		/* torchrun's summary: those that it ended itself come before the first to fail */
		{ "exitcode  : -9 (pid: 3)", 0 },
		{ "exitcode  : -15 (pid: 3)\nRoot Cause (first observed failure):\n"
		  "exitcode  : -9 (pid: 4)",
		  9 },
		{ "root cause (first observed failure):\nx\nExitcode  : -11", 11 },
		{ "Root Cause (first observed failure):\nexitcode  : 1 (pid: 4)", 0 },
		{ "step 1", 0 },
		{ "", 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		if (reported(rows[i].log) != rows[i].signal)
			fail_msg("'%s': %d, not %d", rows[i].log, reported(rows[i].log),
				 rows[i].signal);
}

/* ---- frames and chains ---------------------------------------------- */

static void what_stands_above_an_exception_is_quoted_as_far_as_it_belongs_to_it(void **state)
{
	static const char *const rows[][2] = {
		{ "  a\n  b\n  c\n  d\n  e\n  f\nSyntaxError: x\n",
		  "  c\n  d\n  e\n  f\nSyntaxError: x" },
		{ "  a\n  b\nSyntaxError: x\n", "  a\n  b\nSyntaxError: x" },
		{ "  a\nb\n  c\nSyntaxError: x\n", "  c\nSyntaxError: x" },
		{ "SyntaxError: x\n", "SyntaxError: x" },
		{ "  a\n(Uncorrectable memory error)\n", "(Uncorrectable memory error)" },
		{ TRACEBACK "  a\n  b\n  c\n  d\n  e\n  f\n  g\nNameError: x\n",
		  "  b\n  c\n  d\n  e\n  f\n  g\nNameError: x" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_string_equal(classify_exit(1, rows[i][0]).evidence, rows[i][1]);
	/* A message below its name is quoted once. */
	assert_string_equal(
		classify_exit(1, TRACEBACK "  a\nRuntimeError:\n  Some tensors share memory\n")
			.evidence,
		"  a\n  Some tensors share memory");
}

static void the_end_of_a_chain_is_quoted_and_nothing_behind_it(void **state)
{
	static const char first[] = TRACEBACK "  a\nMemoryError\n";
	static const struct {
		const char *behind, *quoted;
	} rows[] = {
		{ "", "" },
		{ "ValueError: y\n", "" },
		{ TRACEBACK "  b\nValueError: y\n", "" },
		{ DURING TRACEBACK "  b\nValueError: y\n", DURING "ValueError: y" },
		{ "\n" DURING "\n" TRACEBACK "  b\n\nValueError: y\n", DURING "ValueError: y" },
		{ "  x\n" DURING TRACEBACK "  b\nValueError: y\n", "" },
		{ DURING TRACEBACK "  b\nstep 1\nValueError: y\n", "" },
		{ DURING TRACEBACK "  b\nValueError: y\nKeyError: z\n", DURING "ValueError: y" },
		{ DURING TRACEBACK "  b\nValueError: y\n" TRACEBACK "  c\nKeyError: z\n",
		  DURING "ValueError: y" },
		{ DURING TRACEBACK "  b\nValueError: y\n" DURING TRACEBACK "  c\nKeyError: z\n",
		  DURING "KeyError: z" },
		{ DURING "ValueError: y\n", "" },
	};
	char log[1024], expected[512];

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		snprintf(log, sizeof log, "%s%s", first, rows[i].behind);
		snprintf(expected, sizeof expected, "  a\nMemoryError%s%s",
			 rows[i].quoted[0] ? "\n" : "", rows[i].quoted);
		assert_string_equal(classify_exit(1, log).evidence, expected);
	}
}

/* A long line with a number in the row's words is quoted from its beginning. */
static void a_long_line_is_quoted_from_its_beginning_if_its_words_vary(void **state)
{
	char log[800];

	(void)state;
	snprintf(log, sizeof log, "Total failed compilations: 3 %0300d", 0);
	assert_memory_equal(classify_exit(1, log).evidence, "Total failed compilations: 3 000", 32);
	snprintf(log, sizeof log, "%0300d Total failed compilations: 3", 0);
	assert_memory_equal(classify_exit(1, log).evidence, "0000", 4);
}

/* ---- ends that are not the command's own ------------------------------- */

#define SHOW "'stoker logs r1' shows all that it said"

struct said {
	int node;
	const char *show, *log;
};

static struct failure_classification classify_said(struct failure_evidence e,
						   const struct said *said, size_t count)
{
	static struct failure_line lines[3][LINES_MAX];
	struct failure_log logs[3] = { 0 };
	struct failure_classification v;

	for (size_t i = 0; i < count; i++)
		logs[i] = (struct failure_log){ .node = said[i].node,
						.lines = lines[i],
						.show = said[i].show,
						.count = split(said[i].log, lines[i]) };
	e.logs = guarded_array(GUARDED_LOGS, logs, count * sizeof logs[0]);
	e.log_count = count;
	e.exit_known = true;
	failure_classify(&e, &v);
	return v;
}

/* A failure without a known cure points at the log of the node that failed. */
static void the_log_of_the_failed_node_is_pointed_at(void **state)
{
	struct said nodes[] = { { 0, "show 0", "step 1" },
				{ 1, "show 1", "step 1" },
				{ 2, NULL, "step 1" } };
	struct failure_evidence e = { .exit = 3 };

	(void)state;
	for (int node = 0; node < 4; node++) {
		static const char *const hints[] = { "show 0", "show 1", "", "" };

		e.node = node;
		assert_string_equal(classify_said(e, nodes, 3).hint, hints[node]);
	}
	/* A cure that is known is better, however short. */
	e.node = 0;
	nodes[0].log = "MemoryError";
	assert_string_not_equal(classify_said(e, nodes, 1).hint, "show 0");
	e.agent_class = CLASS_UNKNOWN;
	e.agent_hint = "x";
	assert_string_equal(classify_said(e, nodes, 1).hint, "x");
}

static void an_engine_that_took_the_machines_explains_a_stop_signal(void **state)
{
	static const struct {
		const char *reason;
		enum failure_class class;
	} rows[] = {
		{ "Stopped", CLASS_STOPPED },
		{ "TIMEOUT", CLASS_TIMEOUT_HANG },
		{ "Host EC2 (instance i-1) terminated.", CLASS_SPOT },
		{ "AccessDeniedException", CLASS_UNKNOWN },
		{ "", CLASS_UNKNOWN },
	};
	const struct said node = { 0, SHOW, "step 1" };

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct failure_evidence e = { .stopped = FAILURE_STOPPED_OTHER,
					      .engine_reason = rows[i].reason };

		assert_int_equal(classify_said(e, &node, 1).class, rows[i].class);
	}
}

static void who_ended_it_outweighs_how_it_ended(void **state)
{
	const struct said node = { 0, SHOW, TRACEBACK "NameError: x" };
	struct failure_evidence e = { .exit = 1, .taken_down = true };
	struct failure_classification v;

	(void)state;
	/* somebody else, whatever the engine says of its machines */
	e.engine_reason = "Host EC2 (instance i-1) terminated.";
	v = classify_said(e, &node, 1);
	assert_int_equal(v.class, CLASS_STOPPED);
	assert_string_equal(v.evidence, e.engine_reason);
	/* the driver that asked for it */
	e.engine_reason = NULL;
	e.requested = true;
	v = classify_said(e, &node, 1);
	assert_int_equal(v.class, CLASS_STOPPED);
	assert_string_equal(v.evidence, "NameError: x");
	/* a worker that died, if the attempt was drained for it */
	e = (struct failure_evidence){ .exit = 1, .worker = "the watcher died" };
	assert_int_equal(classify_said(e, &node, 1).class, CLASS_USER_CODE);
	e.stopped = FAILURE_STOPPED_DRAIN;
	assert_int_equal(classify_said(e, &node, 1).class, CLASS_HARDWARE_NODE);
	assert_string_equal(classify_said(e, &node, 1).hint, "");
	e.worker_hint = "look at its log";
	assert_string_equal(classify_said(e, &node, 1).hint, "look at its log");
	/* a limit of compile time */
	e = (struct failure_evidence){ .exit = 1, .stopped = FAILURE_STOPPED_TIMEOUT };
	assert_string_equal(classify_said(e, &node, 1).evidence, "compile.timeout is exceeded");
	/* a command that made its last step, and then hung */
	e = (struct failure_evidence){ .finished = true,
				       .stopped = FAILURE_STOPPED_STALL,
				       .stall = "no progress" };
	assert_int_equal(classify_said(e, &node, 1).class, CLASS_TIMEOUT_HANG);
	e.stopped = FAILURE_STOPPED_WORKER;
	assert_int_equal(classify_said(e, &node, 1).class, CLASS_NONE);
}

/* A refusal for a while is asked again: by the words of the service, whatever its form. */
static void a_refusal_is_judged_by_its_words_first(void **state)
{
	static const struct {
		const char *reason;
		enum failure_refused refused;
		enum failure_class class;
		bool hinted;
	} rows[] = {
		{ "CapacityError: none left", FAILURE_REFUSED_INVALID, CLASS_CAPACITY, false },
		{ "Spot Task was interrupted", FAILURE_REFUSED_INVALID, CLASS_SPOT, false },
		{ "ThrottlingException", FAILURE_REFUSED_DENIED, CLASS_TRANSIENT_INFRA, true },
		{ "no such queue", FAILURE_REFUSED_DENIED, CLASS_QUOTA_PERMISSION, true },
		{ "no such queue", FAILURE_REFUSED_INVALID, CLASS_USER_CONFIG, true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct failure_evidence e = { .engine_reason = rows[i].reason,
					      .refused = rows[i].refused,
					      .refusal_hint = "name another" };
		struct failure_classification v;
		const char *class = flow_class_names[rows[i].class];

		failure_classify(&e, &v);
		assert_int_equal(v.class, rows[i].class);
		assert_int_equal(strcmp(v.hint, "name another") == 0, rows[i].hinted);
		e.refusal_hint = NULL;
		failure_classify(&e, &v);
		assert_true(v.hint[0] == '\0' || !rows[i].hinted);
		/* two refusals for one reason are one cause */
		assert_memory_equal(v.signature, class, strlen(class));
	}
}

static void an_unread_log_is_told_beside_what_is_known(void **state)
{
	const struct said node = { 0, NULL, "x" };
	struct failure_evidence e = { .exit = 1,
				      .agent_class = CLASS_UNKNOWN,
				      .agent_message = "m",
				      .unread = "denied",
				      .unread_hint = "allow it" };

	(void)state;
	assert_string_equal(classify_said(e, &node, 1).evidence, "m; cannot read the log: denied");
	assert_string_equal(classify_said(e, &node, 1).hint, "allow it");
	e.agent_hint = "h";
	assert_string_equal(classify_said(e, &node, 1).hint, "h");
	e.agent_hint = "hint";
	assert_string_equal(classify_said(e, &node, 1).hint, "hint");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_report_of_a_launcher_tells_the_signal),
		cmocka_unit_test(
			what_stands_above_an_exception_is_quoted_as_far_as_it_belongs_to_it),
		cmocka_unit_test(the_end_of_a_chain_is_quoted_and_nothing_behind_it),
		cmocka_unit_test(a_long_line_is_quoted_from_its_beginning_if_its_words_vary),
		cmocka_unit_test(the_log_of_the_failed_node_is_pointed_at),
		cmocka_unit_test(an_engine_that_took_the_machines_explains_a_stop_signal),
		cmocka_unit_test(who_ended_it_outweighs_how_it_ended),
		cmocka_unit_test(a_refusal_is_judged_by_its_words_first),
		cmocka_unit_test(an_unread_log_is_told_beside_what_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
