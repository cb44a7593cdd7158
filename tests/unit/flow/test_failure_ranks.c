/* Logs in which several ranks speak, as launchers mix them, and what launchers say at the end. */
#include "tests/unit/flow/classify.h"

static void frames_are_those_of_the_rank_that_raised(void **state)
{
	struct failure_classification v = classify_exit(
		1, "[1,3]<stderr>:Traceback (most recent call last):\n"
		   "[1,7]<stderr>:Traceback (most recent call last):\n"
		   "[1,3]<stderr>:  File \"a.py\", line 3, in load\n"
		   "[1,7]<stderr>:  File \"dist.py\", line 9, in all_reduce\n"
		   "[1,0]<stdout>:Epoch: 3\n"
		   "[1,7]<stderr>:ConnectionResetError: [Errno 104] Connection reset by peer\n"
		   "[1,3]<stderr>:    row = rows[key]\n"
		   "[1,3]<stderr>:KeyError: 'labels'\n");

	(void)state;
	assert_int_equal(v.class, CLASS_USER_CODE);
	assert_string_equal(v.evidence, "  File \"a.py\", line 3, in load\n"
					"    row = rows[key]\n"
					"KeyError: 'labels'");
}

/* Each launcher's way to say whose a line is. */
static void the_prefixes_of_launchers_are_known(void **state)
{
	static const char *const prefixes[][2] = {
		{ "[rank3]: ", "[rank4]: " },
		{ "[default3]:", "[default4]:" },
		{ " 3: ", " 4: " },
		{ "[1,3]<stderr>:", "[1,4]<stderr>:" },
		{ "[1,mpirank:3,algo-1]<stderr>:", "[1,mpirank:4,algo-1]<stderr>:" },
		{ "Fri Sep 25 16:52:53 2020[3]<stderr>:", "Fri Sep 25 16:52:54 2020[4]<stderr>:" },
		{ "(Worker pid=3, ip=10.0.0.1) ", "(Worker pid=4, ip=10.0.0.1) " },
		{ "\x1b[36m(Worker pid=3, ip=10.0.0.1)\x1b[0m ",
		  "\x1b[36m(Worker pid=4, ip=10.0.0.1)\x1b[0m " },
		{ "worker-1: ", "worker-2: " },
		{ "worker-1: [rank3]: ", "worker-1: [rank4]: " },
		{ "10.0.0.1: ", "10.0.0.2: " },
		{ "trainer-1  | ", "trainer-12 | " },
		{ "2026-11-25T03:14:07.123456Z [rank3]: ",
		  "2026-11-25T03:14:07.223456Z [rank4]: " },
	};
	char log[512];

	(void)state;
	for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
		const char *a = prefixes[i][0], *b = prefixes[i][1];

		snprintf(log, sizeof log,
			 "%sTraceback (most recent call last):\n"
			 "%sTraceback (most recent call last):\n"
			 "%s  File \"b.py\", line 1, in g\n"
			 "%s  File \"a.py\", line 1, in f\n"
			 "%sEOFError: Ran out of input\n"
			 "%sIndexError: 7\n",
			 a, b, b, a, b, a);
		assert_string_equal(classify_exit(1, log).evidence,
				    "  File \"a.py\", line 1, in f\nIndexError: 7");
	}
}

/* The message of PyTorch's CheckpointException holds the traceback of each rank. */
static void what_a_rank_said_inside_an_exception_is_the_cause(void **state)
{
	static const char log[] = "[rank3]: Traceback (most recent call last):\n"
				  "[rank3]:   File \"t.py\", line 9, in save\n"
				  "[rank3]: torch.distributed.checkpoint.api.CheckpointException: "
				  "CheckpointException ranks:dict_keys([3])\n"
				  "[rank3]: Traceback (most recent call last): (RANK 3)\n"
				  "[rank3]:   File \"u.py\", line 214, in reduce_scatter\n"
				  "[rank3]: %s\n"
				  "[rank4]: Traceback (most recent call last):\n"
				  "[rank4]:   File \"t.py\", line 9, in save\n"
				  "[rank4]: RuntimeError: Connection reset by peer\n";
	char text[1024];
	struct failure_classification v;

	(void)state;
	snprintf(text, sizeof text, log, "OSError: [Errno 28] No space left on device: '/c/3'");
	v = classify_exit(1, text);
	assert_int_equal(v.class, CLASS_USER_CONFIG);
	assert_non_null(strstr(v.evidence, "No space left on device"));
	snprintf(text, sizeof text, log, "OddError: 7");
	v = classify_exit(1, text);
	assert_int_equal(v.class, CLASS_UNKNOWN);
	assert_non_null(strstr(v.evidence, "OddError: 7"));
}

/* A mistake of a rank that tells of no lost peer itself is no consequence of one. */
static void a_mistake_of_another_rank_does_not_follow_from_a_lost_peer(void **state)
{
	static const char labelled[] = "3: RX, connection closed by remote peer\n"
				       "5: Traceback (most recent call last):\n"
				       "5:   File \"a.py\", line 3, in g\n"
				       "5: KeyError: 'x'\n";
	static const char unlabelled[] = "RX, connection closed by remote peer\n"
					 "[rank5]: Traceback (most recent call last):\n"
					 "[rank5]:   File \"a.py\", line 3, in g\n"
					 "[rank5]: KeyError: 'x'\n";
	static const char same[] = "5: RX, connection closed by remote peer\n"
				   "3: all is well\n"
				   "5: Traceback (most recent call last):\n"
				   "5:   File \"a.py\", line 3, in g\n"
				   "5: KeyError: 'x'\n";

	(void)state;
	assert_int_equal(classify_exit(1, labelled).class, CLASS_USER_CODE);
	assert_int_equal(classify_exit(1, unlabelled).class, CLASS_COMM);
	assert_int_equal(classify_exit(1, same).class, CLASS_COMM);
}

/* The rank that speaks first need not be the one that failed first. */
static void a_lost_peer_is_the_cause_though_the_other_rank_spoke_before(void **state)
{
	static const char log[] = "[rank5]: all is well\n"
				  "[rank3]: RX, connection closed by remote peer\n"
				  "[rank5]: Traceback (most recent call last):\n"
				  "[rank5]:   File \"a.py\", line 3, in g\n"
				  "[rank5]: %s\n";
	static const char *const raised[][2] = { { "OddError: 7", "RX, connection" },
						 { "KeyError: 'x'", "KeyError: 'x'" } };
	char text[256];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct failure_classification v;

		snprintf(text, sizeof text, log, raised[i][0]);
		v = classify_exit(1, text);
		assert_int_equal(v.class, i ? CLASS_USER_CODE : CLASS_COMM);
		assert_non_null(strstr(v.evidence, raised[i][1]));
	}
}

/* Torchrun ends the others with SIGTERM and lists them before the first to fail. */
static void the_signal_is_that_of_the_first_rank_to_fail(void **state)
{
#define RAISED                                                                                     \
	"Traceback (most recent call last):\n"                                                     \
	"  File \"a.py\", line 3, in g\n"                                                          \
	"KeyError: 'x'\n"
#define SUMMARY(code)                                                                              \
	"Failures:\n[1]:\n  exitcode  : -15 (pid: 8)\n"                                            \
	"Root Cause (first observed failure):\n[0]:\n  exitcode  : " code " (pid: 7)"

	(void)state;
	assert_int_equal(classify_exit(1, RAISED SUMMARY("1")).class, CLASS_USER_CODE);
	assert_int_equal(classify_exit(1, RAISED
				       "failed (exitcode: 1) local_rank: 0 (pid: 7)\n" SUMMARY("1"))
				 .class,
			 CLASS_USER_CODE);
	assert_string_equal(classify_exit(1, RAISED SUMMARY("-9")).rule, "sigkill");
	assert_string_equal(
		classify_exit(1,
			      RAISED "failed (exitcode: -9) local_rank: 0 (pid: 7)\n" SUMMARY("-9"))
			.rule,
		"sigkill");
	assert_string_equal(classify_exit(1, "Connection reset by peer\n" SUMMARY("-11")).rule,
			    "crash");
	/* A watchdog aborts its process because of the peer. */
	assert_string_equal(classify_exit(1, "Connection reset by peer\n" SUMMARY("-6")).rule,
			    "peer-reset");
}

static void what_a_shell_did_not_find_is_no_cause_of_a_kill_or_long_before_the_end(void **state)
{
	(void)state;
	assert_string_equal(classify_exit(1, "sh: 1: nvidia-smi: not found").rule, "sh-not-found");
	assert_string_equal(classify_exit(137, "sh: 1: nvidia-smi: not found").rule, "sigkill");
	assert_int_equal(
		classify_exit(1, "sh: 1: nvidia-smi: not found\nstep 1\nstep 2\nstep 3\n").class,
		CLASS_UNKNOWN);
}

static void what_was_survived_is_quoted_and_no_cause(void **state)
{
	struct failure_line lines[LINES_MAX];
	struct failure_log log = { .lines = lines };
	struct failure_evidence e = {
		.phase = PHASE_TRAIN, .exit_known = true, .exit = 1, .logs = &log, .log_count = 1
	};
	struct failure_classification v;

	(void)state;
	log.count = split(RAISED "step 1\nstep 2\n", lines);
	failure_classify(&e, &v);
	assert_int_equal(v.class, CLASS_USER_CODE);
	log.survived = 4;
	failure_classify(&e, &v);
	assert_string_equal(v.rule, "nothing-known");
	assert_non_null(strstr(v.evidence, "KeyError"));
}

static void lines_that_are_only_indented_are_no_frames(void **state)
{
	(void)state;
	assert_string_equal(classify_exit(1,
					  " iteration 7/ 100 | lm loss: 2.3 |\n"
					  "Uncorrectable memory error is detected, metadata: 0x1\n")
				    .evidence,
			    "Uncorrectable memory error is detected, metadata: 0x1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_those_of_the_rank_that_raised),
		cmocka_unit_test(the_prefixes_of_launchers_are_known),
		cmocka_unit_test(what_a_rank_said_inside_an_exception_is_the_cause),
		cmocka_unit_test(a_mistake_of_another_rank_does_not_follow_from_a_lost_peer),
		cmocka_unit_test(a_lost_peer_is_the_cause_though_the_other_rank_spoke_before),
		cmocka_unit_test(the_signal_is_that_of_the_first_rank_to_fail),
		cmocka_unit_test(
			what_a_shell_did_not_find_is_no_cause_of_a_kill_or_long_before_the_end),
		cmocka_unit_test(what_was_survived_is_quoted_and_no_cause),
		cmocka_unit_test(lines_that_are_only_indented_are_no_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
