/*
 * How a log is read: what has the form of an exception, how far a traceback, its message and the
 * end of a log reach, and which rank was first. A border that moves takes a stranger's line for the
 * cause, or misses it.
 */
#include "tests/unit/flow/classify.h"

#include "jobs/flow/failure_internal.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define TRACEBACK    "Traceback (most recent call last):\n"

/* ---- the form of a line -------------------------------------------- */

static bool holds(bool (*form)(struct failure_line line), const char *text)
{
	bool end = form(guarded_end(text, strlen(text)));

	assert_int_equal(form(guarded_begin(text, strlen(text))), end);
	return end;
}

static void an_exception_is_a_name_and_perhaps_its_text(void **state)
{
	static const char *const ends[] = {
		"KeyError: x",
		"KeyboardInterrupt",
		"A",
		"Z: x",
		"A9: x",
		"A_b: x",
		"pkg.error: x",
		"a.b",
		"_x.y: z",
		"a.b9: x",
		"a.b.C",
		"E:",
	};
	static const char *const others[] = {
		"",        "error: x", "z: x",    "a",        "A b",     "a-b: x",  "-a.b: x",
		"9a.b: x", "9A: x",    "a.",      ".a",       ".a.b: x", "a..b: x", "a.9x: y",
		"a.9: x",  "[A: x",    "A[0]: x", "A~: x",    "`A: x",   "@A: x",   "{a.b: x",
		"a{.b: x", "A\xc3: x", "A.: x",   "a.b x: y", "_a: x",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(ends); i++)
		if (!holds(failure_ends_traceback, ends[i]))
			fail_msg("'%s' ends no traceback", ends[i]);
	for (size_t i = 0; i < COUNT(others); i++)
		if (holds(failure_ends_traceback, others[i]))
			fail_msg("'%s' ends a traceback", others[i]);
}

/* Outside of a traceback "INFO: text" has that form too. */
static void an_exception_without_a_traceback_is_known_by_its_name(void **state)
{
	static const char *const raised[] = {
		"KeyError: x",     "ValueError",        "KeyError:",     "pkg.Odd: x",
		"OddException: x", "KeyboardInterrupt", "SystemExit: 1", "ArgumentInvalid: x",
		"ReadTimeout: x",  "PageNotFound: x",   "SetupFailure",  "StepFailed: x",
		"TokenExpired: x", "BusFault: x",       "UserAbort: x",
	};
	static const char *const others[] = {
		"INFO: text",
		"Failures: 3",
		"Errors: 2",
		"KeyError:x",
		"KeyErrorx",
		"DeprecationWarning: x",
		"pkg.UserWarning: x",
		"pkg.Warning: x",
		"A: x",
		"Err: x",
		"KeyError: RETRYING in 3 s",
		"KeyError: will retry",
		"error: x",
		"",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(raised); i++)
		if (!holds(failure_is_raised, raised[i]))
			fail_msg("'%s' is not raised", raised[i]);
	for (size_t i = 0; i < COUNT(others); i++)
		if (holds(failure_is_raised, others[i]))
			fail_msg("'%s' is raised", others[i]);
}

static void a_frame_is_indented_or_in_a_box(void **state)
{
	static const char *const frames[] = { " x", "\tx", "\xe2\x94\x82 x", " ", "\t" };
	static const char *const others[] = { "", "x", "x y", "x\ty", "x\xe2\x94\x82" };

	(void)state;
	for (size_t i = 0; i < COUNT(frames); i++)
		assert_true(holds(failure_is_indented, frames[i]));
	for (size_t i = 0; i < COUNT(others); i++)
		assert_false(holds(failure_is_indented, others[i]));
}

/* Advice names what did not happen. */
static void only_words_in_front_of_advice_are_evidence(void **state)
{
	static const char *const rows[][2] = {
		{ "Broken pipe", "Broken pipe" },
		{ "Broken pipe, retrying", "" },
		{ "RETRYING", "" },
		{ "Broken pipe: please look", "Broken pipe: " },
		{ "Please, this MAY BE it", "Please, this " },
		{ "x you see if this holds", "x " },
		{ "NCCL WARN Broken pipe", "Broken pipe" },
		{ "a WARN Broken pipe", "a " },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct failure_line line =
			failure_witness(guarded_end(rows[i][0], strlen(rows[i][0])));

		assert_int_equal(line.len, strlen(rows[i][1]));
		assert_memory_equal(line.text, rows[i][1], line.len);
	}
}

/* ---- the reach of a traceback ------------------------------------------ */

#define TEXT_MAX 8192

/* A text, so many lines of other processes (their number after each), and another text. */
static const char *around(const char *before, const char *line, size_t count, const char *after)
{
	static char text[TEXT_MAX];
	size_t len = (size_t)snprintf(text, sizeof text, "%s", before);

	for (size_t i = 0; i < count; i++)
		len += (size_t)snprintf(text + len, sizeof text - len, "%s\n", line);
	snprintf(text + len, sizeof text - len, "%s", after);
	return text;
}

static const char frame[] = TRACEBACK "  File \"a.py\", line 1, in f\n";

static void many_lines_of_others_end_a_traceback(void **state)
{
	const char *log = around(frame, "step 1", 51, "NameError: x\n");

	(void)state;
	assert_string_equal(classify_exit(1, log).evidence,
			    "  File \"a.py\", line 1, in f\nNameError: x");
	/* then it is an exception by itself */
	log = around(frame, "step 1", 52, "NameError: x\n");
	assert_string_equal(classify_exit(1, log).evidence, "NameError: x");
	/* blank lines and indented ones are its own */
	log = around(frame, "", 58, "NameError: x\n");
	assert_string_equal(classify_exit(1, log).evidence,
			    "  File \"a.py\", line 1, in f\nNameError: x");
	log = around(frame, "  y", 58, "NameError: x\n");
	assert_string_equal(classify_exit(1, log).evidence,
			    "  y\n  y\n  y\n  y\n  y\n  y\nNameError: x");
}

#define LATE_CAUSE "Uncorrectable memory error is detected, metadata: 0x1\n"

static void the_message_of_an_unknown_exception_is_eight_lines_long(void **state)
{
	static const char odd[] =
		TRACEBACK "  File \"a.py\", line 1, in f\npkg.OddError: see below\n";
	struct failure_classification v = classify_exit(1, around(odd, "x", 7, LATE_CAUSE));

	(void)state;
	assert_string_equal(v.rule, "nrt-memory");
	assert_memory_equal(v.evidence, "  File \"a.py\", line 1, in f\n", 28);
	assert_string_equal(classify_exit(1, around(odd, "x", 8, LATE_CAUSE)).rule, "py-exception");
	/* Words that would stop the run, a symptom of a peer, another exception or what follows do
	 * not count. */
	assert_string_equal(classify_exit(1, around(odd, "(AccessDenied)", 1, "")).rule,
			    "py-exception");
	assert_string_equal(classify_exit(1, around(odd, "Broken pipe", 1, "")).rule,
			    "py-exception");
	assert_string_equal(
		classify_exit(1, around(odd, "a.B: Uncorrectable memory error", 1, "")).rule,
		"py-exception");
	assert_string_equal(
		classify_exit(1, around(odd,
					"During handling of the above exception, another exception "
					"occurred:",
					1, LATE_CAUSE))
			.rule,
		"py-exception");
	/* A compiler's failure is no peer's. */
	assert_string_equal(classify_exit(1, around(odd, "neuronx-cc failed with 70", 1, "")).rule,
			    "ncc-failed");
}

static void the_message_that_is_below_a_name_is_two_lines_long(void **state)
{
	static const char bare[] = "RuntimeError: \n";

	(void)state;
	assert_string_equal(
		classify_exit(1, around(bare, "x", 1, "  Some tensors share memory\n")).rule,
		"ckpt-shared");
	assert_string_equal(
		classify_exit(1, around(bare, "", 5, "  Some tensors share memory\n")).rule,
		"ckpt-shared");
	assert_string_equal(
		classify_exit(1, around(bare, "x", 2, "  Some tensors share memory\n")).rule,
		"py-exception");
	assert_string_equal(
		classify_exit(1, around(bare, "xy", 1, "x\n  Some tensors share memory\n")).rule,
		"py-exception");
	/* a name without a colon has none */
	assert_string_equal(classify_exit(1, "RuntimeError\n  Some tensors share memory\n").rule,
			    "py-exception");
}

static void of_two_tracebacks_the_first_stands_unless_it_is_ignored(void **state)
{
	static const char second[] = TRACEBACK "  File \"b.py\", line 2, in g\nIndexError: y\n";
	struct failure_classification v;

	(void)state;
	v = classify_exit(1, around(frame, "NameError: x", 1, second));
	assert_string_equal(v.evidence, "  File \"a.py\", line 1, in f\nNameError: x");
	v = classify_exit(1, around("Exception ignored in: <function f>\n" TRACEBACK
				    "  File \"a.py\", line 1, in f\n",
				    "NameError: x", 1, second));
	assert_string_equal(v.evidence, "  File \"b.py\", line 2, in g\nIndexError: y");
	/* Far behind a traceback its chain is none. */
	v = classify_exit(
		1, around(TRACEBACK "  File \"a.py\", line 1, in f\nNameError: x\n", "y", 52,
			  "The above exception was the direct cause of the following\n" TRACEBACK
			  "  File \"b.py\", line 2, in g\nMemoryError\n"));
	assert_string_equal(v.rule, "py-mistake");
	v = classify_exit(
		1, around(TRACEBACK "  File \"a.py\", line 1, in f\nNameError: x\n", "y", 3,
			  "The above exception was the direct cause of the following\n" TRACEBACK
			  "  File \"b.py\", line 2, in g\nMemoryError\n"));
	assert_string_equal(v.rule, "py-memory");
}

/* The sentence between binds a failure to the lost peer from which it follows. */
static void a_chain_is_bound_by_its_sentence(void **state)
{
	static const char lost[] = TRACEBACK
		"  File \"a.py\", line 1, in f\nConnectionResetError: Connection reset by peer\n";
	static const char next[] = TRACEBACK "  File \"b.py\", line 2, in g\nTypeError: y\n";

	(void)state;
	assert_string_equal(
		classify_exit(1, around(lost,
					"During handling of the above exception, another exception "
					"occurred:",
					1, next))
			.rule,
		"peer-reset");
	/* a chain ends with a line of another kind, and nothing else is bound to it */
	assert_string_equal(classify_exit(1, around(lost, "step 2", 1, next)).rule, "peer-reset");
	assert_string_equal(classify_exit(1, around(lost, "MemoryError", 1, "")).rule, "py-memory");
	/* a known cause is one, also at the end of a chain */
	assert_string_equal(
		classify_exit(1, around(lost,
					"During handling of the above exception, another exception "
					"occurred:",
					1, TRACEBACK "  File \"b.py\", line 2\nMemoryError\n"))
			.rule,
		"py-memory");
}

/* A logger's prefix is the same on each line, but for the time. */
static void a_loggers_prefix_is_known_on_each_line(void **state)
{
	(void)state;
	assert_string_equal(classify_exit(1,
					  "12:00 E> " TRACEBACK "12:01 E>   File \"a.py\", line 1\n"
					  "12:02 E> MemoryError\n")
				    .rule,
			    "py-memory");
	/* another prefix is another process */
	assert_string_equal(classify_exit(137, "1x:00 E> " TRACEBACK "12:00 E> MemoryError\n").rule,
			    "sigkill");
	assert_string_equal(classify_exit(137, "12:00 E> " TRACEBACK "1x:02 E> MemoryError\n").rule,
			    "sigkill");
}

/* ---- the end of a log ------------------------------------------------------ */

static void an_exception_counts_among_the_last_twenty_lines(void **state)
{
	(void)state;
	assert_string_equal(classify_exit(1, around("pkg.OddError: x\n", "step 1", 19, "")).rule,
			    "py-exception");
	assert_string_equal(classify_exit(1, around("pkg.OddError: x\n", "step 1", 20, "")).rule,
			    "nothing-known");
	/* lines that say nothing do not count */
	assert_string_equal(classify_exit(1, around("pkg.OddError: x\n", "", 40, "y\n")).rule,
			    "py-exception");
	/* the last exception, before the last complaint */
	assert_string_equal(
		classify_exit(1, "pkg.OddError: x\npkg.OtherError: y\nerror: z\n").evidence,
		"pkg.OtherError: y");
	assert_string_equal(classify_exit(1, "error: y\nerror: z\nstep 1\n").evidence, "error: z");
	/* in a killed process it was survived */
	assert_string_equal(classify_exit(137, "pkg.OddError: x\n").rule, "sigkill");
}

static void a_symptom_that_would_stop_the_run_counts_at_the_end_alone(void **state)
{
	static const char image[] = "pyxis: failed to import docker image\n";

	(void)state;
	assert_string_equal(classify_exit(1, around(image, "x", 2, "")).rule, "pyxis-image");
	assert_string_not_equal(classify_exit(1, around(image, "x", 3, "")).rule, "pyxis-image");
	assert_string_equal(classify_exit(1, around(image, "", 9, "x\n")).rule, "pyxis-image");
	/* Another one that calls for a retry weighs more, and of equals the first. */
	assert_string_equal(
		classify_exit(1, "Broken pipe\npyxis: failed to import docker image\n").rule,
		"peer-pipe");
	assert_string_equal(
		classify_exit(1, "pyxis: failed to import docker image\nBroken pipe\n").rule,
		"peer-pipe");
	assert_string_equal(classify_exit(1, "exited unexpectedly\n"
					     "pyxis: failed to import docker image\n")
				    .rule,
			    "pyxis-image");
	assert_string_equal(classify_exit(1, "Broken pipe\nConnection refused\n").rule,
			    "peer-pipe");
	assert_string_equal(classify_exit(1, "Connection refused\nBroken pipe\n").rule,
			    "peer-refused");
}

/* ---- ranks --------------------------------------------------------------------- */

static void the_rank_that_failed_first_tells(void **state)
{
	static const struct {
		const char *log, *rule;
	} rows[] = {
		{ "[rank0]: Connection reset by peer\n[rank1]: " TRACEBACK
		  "[rank1]: RuntimeError: x\n",
		  "peer-reset" },
		{ "[rank0]: Connection reset by peer\n[rank1]: " TRACEBACK
		  "[rank1]: TypeError: x\n",
		  "py-mistake" },
		{ "[rank1]: " TRACEBACK
		  "[rank1]: RuntimeError: x\n[rank0]: Connection reset by peer\n",
		  "py-exception" },
		{ "Connection reset by peer\n[rank1]: " TRACEBACK "[rank1]: TypeError: x\n",
		  "peer-reset" },
		{ "[rank0]: Connection reset by peer\n" TRACEBACK "TypeError: x\n", "peer-reset" },
		{ "[rank0]: exited unexpectedly\n[rank1]: " TRACEBACK "[rank1]: RuntimeError: x\n",
		  "py-exception" },
		{ "[rank0]: Connection reset by peer\n[rank1]: " TRACEBACK "[rank1]: MemoryError\n",
		  "py-memory" },
		{ "[rank0]: exited unexpectedly\n[rank1]: Connection reset by peer\n",
		  "peer-reset" },
		{ "[rank0]: Connection reset by peer\n[rank1]: exited unexpectedly\n",
		  "peer-reset" },
		{ "[rank0]: step 1\n[rank1]: Broken pipe\n[rank0]: Connection refused\n",
		  "peer-pipe" },
		{ "[rank0]: step 1\n[rank1]: MemoryError\n[rank0]: Uncorrectable memory error is "
		  "detected\n",
		  "py-memory" },
		{ "[rank0]: MemoryError\n[rank1]: Uncorrectable memory error is detected\n",
		  "py-memory" },
		{ "[rank0]: MemoryError\n[rank1]: Broken pipe\n", "py-memory" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		if (strcmp(classify_exit(1, rows[i].log).rule, rows[i].rule) != 0)
			fail_msg("%s is judged by %s, not %s", rows[i].log,
				 classify_exit(1, rows[i].log).rule, rows[i].rule);
}

/* Up to 80 ranks are heard each by itself; more prefixes are something else that differs from line
 * to line. */
static void so_many_ranks_are_told_apart(void **state)
{
	static char text[100][64];
	static struct failure_line lines[100];

	(void)state;
	for (size_t ranks = 78; ranks <= 82; ranks++) {
		static const char *const said[] = { TRACEBACK, "  in rank", "IndexError: y" };
		struct failure_log log = { .lines = lines };
		struct failure_evidence e = {
			.exit_known = true, .exit = 1, .logs = &log, .log_count = 1
		};
		struct failure_classification v;

		/* the first two speak by turns */
		for (size_t i = 0; i < 6; i++)
			snprintf(text[log.count++], sizeof text[0], "[rank%zu]: %.33s", i % 2,
				 said[i / 2]);
		for (size_t rank = 2; rank < ranks; rank++)
			snprintf(text[log.count++], sizeof text[0], "[rank%zu]: step", rank);
		for (size_t i = 0; i < log.count; i++)
			lines[i] = (struct failure_line){ text[i], strlen(text[i]) };
		failure_classify(&e, &v);
		assert_string_equal(v.evidence, ranks <= 80
							? "  in rank\nIndexError: y"
							: "  in rank\n  in rank\nIndexError: y");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exception_is_a_name_and_perhaps_its_text),
		cmocka_unit_test(an_exception_without_a_traceback_is_known_by_its_name),
		cmocka_unit_test(a_frame_is_indented_or_in_a_box),
		cmocka_unit_test(only_words_in_front_of_advice_are_evidence),
		cmocka_unit_test(many_lines_of_others_end_a_traceback),
		cmocka_unit_test(the_message_of_an_unknown_exception_is_eight_lines_long),
		cmocka_unit_test(the_message_that_is_below_a_name_is_two_lines_long),
		cmocka_unit_test(of_two_tracebacks_the_first_stands_unless_it_is_ignored),
		cmocka_unit_test(a_chain_is_bound_by_its_sentence),
		cmocka_unit_test(a_loggers_prefix_is_known_on_each_line),
		cmocka_unit_test(an_exception_counts_among_the_last_twenty_lines),
		cmocka_unit_test(a_symptom_that_would_stop_the_run_counts_at_the_end_alone),
		cmocka_unit_test(the_rank_that_failed_first_tells),
		cmocka_unit_test(so_many_ranks_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
