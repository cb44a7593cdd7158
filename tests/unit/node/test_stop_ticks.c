/* How a command and what it left behind are stopped, and who has how much time, to the
 * millisecond. */
#include "tests/unit/node/ticks.h"

#include <errno.h>

#include "jobs/node/checkpoints/last_pass.h"
#include "jobs/node/command/command_end.h"
#include "jobs/node/command/command_stop.h"

#define GRACE_MS      20000
#define KILL_EVERY_MS 50
#define KILL_ROUNDS   100
#define LEFTOVERS_MS  1000
#define LOOK_MS       10000
#define SILENT_MS     300000 /* of the last pass */
#define LEAST_MS      2000
#define NO_MS         ((int64_t)3600 * 1000)

static json_t *order_stopped(const struct place *place, int nodes)
{
	AUTO(auto_free) char *root = place_path(place, "far");
	json_t *order = order_for(place, "true");

	js_put(order, "nodes", json_integer(nodes));
	js_put(order, "grace_ms", json_integer(GRACE_MS));
	js_put(order, "checkpoint",
	       json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "kind", "files", "root", root, "sync",
			 "agent", "keep", "all", "signal", "USR1", "grace_ms", 7000));
	return order;
}

/* A process that a signal to stop does not end, in a group of its own. */
static pid_t deaf(void)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		signal(SIGTERM, SIG_IGN);
		if (write(ready[1], "", 1) == 1)
			for (;;)
				pause();
		_exit(0);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

/* Steals the order. */
static void begin(struct agent *agent, const struct place *place, json_t *order)
{
	scene_open(agent, place, order, "0", false);
	agent->command = deaf();
}

/* True if the process has ended by now, or will without anybody's doing: by a signal that is on its
 * way. */
static bool is_killed(pid_t pid)
{
	siginfo_t how = { 0 };

	/* SIGKILL needs no time that the process could use. */
	for (int i = 0; i < 50 && !how.si_pid; i++) {
		assert_int_equal(waitid(P_PID, (id_t)pid, &how, WEXITED | WNOWAIT | WNOHANG), 0);
		if (!how.si_pid)
			pause_ms(2);
	}
	return how.si_pid == pid;
}

/* ---- the command ---- */

static void a_command_has_its_grace_and_is_killed_then(void **state)
{
	struct agent agent;

	begin(&agent, *state, order_stopped(*state, 1));
	command_stop(&agent, STOPPED_DRAIN);
	assert_string_equal(agent.stopped, STOPPED_DRAIN);
	assert_int_equal(next_ms(), GRACE_MS);
	pass_time(&agent, GRACE_MS - 1, NULL);
	assert_int_equal(agent.kill_rounds, 0);
	pass_time(&agent, 1, NULL);
	assert_int_equal(agent.kill_rounds, 1);
	assert_true(is_killed(agent.command));
	scene_close(&agent);
}

static void it_is_killed_again_and_again_and_then_more_seldom(void **state)
{
	struct agent agent;

	begin(&agent, *state, order_stopped(*state, 1));
	command_stop(&agent, STOPPED_DRAIN);
	pass_time(&agent, GRACE_MS, NULL);
	for (int i = 1; i <= KILL_ROUNDS; i++) {
		assert_int_equal(agent.kill_rounds, i);
		assert_int_equal(next_ms(), KILL_EVERY_MS);
		pass_time(&agent, KILL_EVERY_MS, NULL);
	}
	for (int i = 1; i < 3; i++) {
		assert_int_equal(agent.kill_rounds, KILL_ROUNDS + i);
		assert_int_equal(next_ms(), LEFTOVERS_MS);
		pass_time(&agent, LEFTOVERS_MS, NULL);
	}
	scene_close(&agent);
}

/* The service kills all after stop_ms: a half of it is the command's. */
static void a_signal_leaves_no_more_than_the_service_does(void **state)
{
	static const struct {
		int64_t stop_ms, waits_ms;
	} rows[] = { { 0, GRACE_MS }, { 10000, 5000 }, { 100000, GRACE_MS } };

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		json_t *order = order_stopped(*state, 1);
		struct agent agent;

		memset(timers, 0, sizeof timers);
		js_put(order, "stop_ms", json_integer(rows[i].stop_ms));
		begin(&agent, *state, order);
		agent.told_at = clock_mono_now();
		command_stop(&agent, STOPPED_SIGNAL);
		assert_int_equal(next_ms(), rows[i].waits_ms);
		scene_close(&agent);
	}
}

static void a_signal_during_a_stop_shortens_what_is_left(void **state)
{
	static const struct {
		int64_t after_ms, stop_ms, left_ms; /* left: once the signal has come */
	} rows[] = {
		{ 1000, 10000, 5000 },
		{ 18000, 10000, 2000 }, /* the grace is over earlier */
		{ 1000, 0, 19000 },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		json_t *order = order_stopped(*state, 1);
		struct agent agent;

		memset(timers, 0, sizeof timers);
		js_put(order, "stop_ms", json_integer(rows[i].stop_ms));
		begin(&agent, *state, order);
		command_stop(&agent, STOPPED_DRAIN);
		pass_time(&agent, rows[i].after_ms, NULL);
		agent.told_at = clock_mono_now();
		command_stop(&agent, STOPPED_SIGNAL);
		assert_string_equal(agent.stopped, STOPPED_DRAIN); /* the first cause counts */
		assert_int_equal(next_ms(), rows[i].left_ms);
		scene_close(&agent);
	}
}

static void who_is_superseded_has_no_other_cause(void **state)
{
	struct agent agent;

	begin(&agent, *state, order_stopped(*state, 1));
	command_stop(&agent, STOPPED_DRAIN);
	command_stop(&agent, STOPPED_SUPERSEDED);
	assert_string_equal(agent.stopped, STOPPED_SUPERSEDED);
	assert_true(agent.outputs.over); /* nothing of it is brought */
	command_stop(&agent, STOPPED_PEER);
	assert_string_equal(agent.stopped, STOPPED_SUPERSEDED);
	scene_close(&agent);
}

static void without_a_command_a_stop_is_the_end(void **state)
{
	static const struct {
		const char *why, *state;
		int exit;
	} rows[] = {
		{ STOPPED_SUPERSEDED, REPORT_NOT_MINE, AGENT_EXIT_NOT_MINE },
		{ STOPPED_SIGNAL, REPORT_ENDED, 128 + SIGTERM },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct agent agent;

		scene_open(&agent, *state, order_stopped(*state, 1), "0", false);
		command_stop(&agent, rows[i].why);
		assert_string_equal(agent.state, rows[i].state);
		assert_int_equal(agent.exit, rows[i].exit);
		assert_int_equal(next_ms(), -1);
		agent.stopped = NULL;
		command_stop(&agent, STOPPED_DRAIN); /* it is over */
		assert_null(agent.stopped);
		scene_close(&agent);
	}
}

static void a_stop_reaches_a_command_that_is_stopped(void **state)
{
	struct agent agent;

	scene_open(&agent, *state, order_stopped(*state, 1), "0", false);
	scene_command(&agent);
	assert_int_equal(kill(agent.command, SIGSTOP), 0);
	command_stop(&agent, STOPPED_DRAIN);
	assert_true(is_killed(agent.command));
	scene_close(&agent);
}

/* ---- processes that the command leaves behind ---- */

static void processes_that_outlive_the_command_have_a_second_each_time(void **state)
{
	struct agent agent;
	pid_t heir;

	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
	begin(&agent, *state, order_stopped(*state, 1));
	heir = deaf();
	agent.over = true;
	command_stop_leftovers(&agent);
	assert_int_equal(next_ms(), LEFTOVERS_MS);
	pass_time(&agent, LEFTOVERS_MS, NULL);
	assert_true(agent.leftovers >= 1);
	assert_int_equal(agent.kill_rounds, 0);
	assert_int_equal(next_ms(), LEFTOVERS_MS);
	pass_time(&agent, LEFTOVERS_MS, NULL);
	assert_int_equal(agent.kill_rounds, 1);
	assert_true(is_killed(heir));
	waitpid(heir, NULL, 0);
	scene_close(&agent);
}

/* ---- the end of the command ---- */

static void the_end_is_told_after_a_last_look_for_a_drain(void **state)
{
	static const struct {
		int nodes;
		bool far, looks;
	} rows[] = { { 1, false, true }, { 2, true, true }, { 1, true, false } };

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *orders = NULL;
		struct agent agent;

		memset(timers, 0, sizeof timers);
		begin(&agent, *state, order_stopped(*state, rows[i].nodes));
		agent.config.object_workspace = rows[i].far;
		command_end_begin(&agent, 0);
		assert_true(agent.over);
		assert_int_equal(agent.report.said.ended, ticks_ms + UTC_AHEAD);
		assert_int_equal(agent.looking, rows[i].looks);
		orders = ordered(&agent);
		assert_int_equal(count_of(orders, "\"look\""), rows[i].looks);
		scene_close(&agent);
	}
}

static int heard;

static void on_heard(struct agent *agent)
{
	(void)agent;
	heard++;
}

/* Others may have failed because this node was drained. */
static void how_it_ended_is_told_to_the_others_unless_somebody_ended_it(void **state)
{
	static const struct {
		const char *stopped;
		int status, drain;
		bool failed, ended; /* flags */
	} rows[] = {
		{ NULL, 0, 0, false, true },
		{ NULL, 3 << 8, 0, true, false },
		{ NULL, SIGKILL, 0, true, false },
		{ STOPPED_LOG, 3 << 8, 0, true, false },
		{ STOPPED_SIGNAL, 3 << 8, 0, false, false },
		{ NULL, 3 << 8, 1, false, false },
		{ NULL, 0, 1, false, false },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *early = NULL;
		AUTO(sb_release) struct sb orders = SB_INIT;
		struct agent agent;

		memset(timers, 0, sizeof timers);
		heard = 0;
		begin(&agent, *state, order_stopped(*state, 2));
		agent.heard = on_heard;
		agent.stopped = rows[i].stopped;
		agent.drain.at_ms = rows[i].drain;
		command_end_begin(&agent, rows[i].status);
		early = ordered(&agent);
		assert_int_equal(count_of(early, "\"flag\""), 0);
		loop_remove(agent.loop, agent.kill_timer);
		/* An uploader that does not answer is not waited for without end. */
		pass_time(&agent, LOOK_MS - 1, &orders);
		assert_int_equal(heard, 0);
		pass_time(&agent, 1, &orders);
		assert_int_equal(heard, 1);
		assert_false(agent.looking);
		assert_int_equal(count_of(orders.text, FAILED_FILE), rows[i].failed);
		assert_int_equal(count_of(orders.text, ENDED_FILE), rows[i].ended);
		if (rows[i].failed)
			assert_has(orders.text,
				   rows[i].status == SIGKILL ? "\"exit\":137" : "\"exit\":3");
		command_end_looked(&agent); /* an answer that comes late is none */
		assert_int_equal(heard, 1);
		scene_close(&agent);
	}
}

static void an_end_that_is_due_is_asked_for_once_at_a_time(void **state)
{
	AUTO(auto_free) char *first = NULL;
	AUTO(auto_free) char *second = NULL;
	struct agent agent;

	begin(&agent, *state, order_stopped(*state, 2));
	command_end_tell(&agent);
	agent.ended_due = true;
	command_end_tell(&agent);
	command_end_tell(&agent);
	first = ordered(&agent);
	assert_int_equal(count_of(first, ENDED_FILE), 1);
	agent.ended_asked = false; /* it could not be set */
	command_end_tell(&agent);
	second = ordered(&agent);
	assert_int_equal(count_of(second, ENDED_FILE), 1);
	scene_close(&agent);
}

static void a_command_was_cut_off_if_it_could_not_end_itself(void **state)
{
	static const struct {
		const char *stopped;
		int status, kill_rounds;
		bool heirs_left, cut;
	} rows[] = {
		{ NULL, 0, 0, false, false },
		{ NULL, 3 << 8, 0, false, true },
		{ STOPPED_SIGNAL, 3 << 8, 0, false, false },
		{ STOPPED_SIGNAL, 0, 1, false, true },
		{ STOPPED_SIGNAL, SIGKILL, 0, true, true },
		{ STOPPED_SIGNAL, SIGTERM, 0, false, true },
		{ STOPPED_SIGNAL, SIGTERM, 0, true, false },
	};
	struct agent agent;

	begin(&agent, *state, order_stopped(*state, 1));
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		agent.stopped = rows[i].stopped;
		agent.status = rows[i].status;
		agent.kill_rounds = rows[i].kill_rounds;
		agent.heirs_left = rows[i].heirs_left;
		if (command_end_was_cut_off(&agent) != rows[i].cut)
			fail_msg("row %zu", i);
	}
	scene_close(&agent);
}

static void a_pass_is_lacking_while_what_was_saved_counts(void **state)
{
	static const struct {
		const char *stopped;
		bool kept, lost, lacks;
	} rows[] = {
		{ NULL, false, false, true },           { STOPPED_DRAIN, false, false, true },
		{ STOPPED_WORKER, false, false, true }, { STOPPED_SIGNAL, false, false, false },
		{ NULL, true, false, false },           { NULL, false, true, false },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct agent agent;

		begin(&agent, *state, order_stopped(*state, 1));
		agent.stopped = rows[i].stopped;
		agent.kept = rows[i].kept;
		if (rows[i].lost)
			err_set(&agent.lost, EXIT_UNREACHABLE, "lost");
		if (command_end_lacks_pass(&agent) != rows[i].lacks)
			fail_msg("row %zu", i);
		scene_close(&agent);
	}
}

/* ---- the last pass ---- */

static void the_last_pass_ends_after_five_minutes_without_news(void **state)
{
	struct agent agent;

	begin(&agent, *state, order_stopped(*state, 1));
	last_pass_extend(&agent);
	assert_int_equal(next_ms(), -1); /* none is under way */
	agent.checkpointer.last_pass = true;
	last_pass_extend(&agent);
	assert_int_equal(next_ms(), -1); /* none runs */
	agent.checkpointer.helper.pid = deaf();
	last_pass_extend(&agent);
	for (int i = 0; i < 3; i++) {
		pass_time(&agent, SILENT_MS - 1, NULL);
		assert_false(agent.checkpointer_stuck);
		last_pass_extend(&agent);
	}
	pass_time(&agent, SILENT_MS, NULL);
	assert_true(agent.checkpointer_stuck);
	assert_true(is_killed(agent.checkpointer.helper.pid));
	agent.checkpointer.helper.pid = 0;
	scene_close(&agent);
}

static void after_a_signal_the_last_pass_has_its_share_of_the_time(void **state)
{
	static const struct {
		int64_t stop_ms, after_ms, left_ms;
	} rows[] = {
		{ 8000, 1000, 5000 },     /* three quarters of it */
		{ 8000, 5500, LEAST_MS }, /* it begins late, and has a little all the same */
		{ 0, 1000, GRACE_MS - 1000 },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		json_t *order = order_stopped(*state, 1);
		struct agent agent;

		memset(timers, 0, sizeof timers);
		js_put(order, "stop_ms", json_integer(rows[i].stop_ms));
		begin(&agent, *state, order);
		agent.told_at = clock_mono_now();
		ticks_ms += rows[i].after_ms;
		agent.checkpointer.last_pass = true;
		agent.checkpointer.helper.pid = deaf();
		last_pass_extend(&agent);
		assert_int_equal(next_ms(), rows[i].left_ms);
		pass_time(&agent, 100, NULL);
		last_pass_extend(&agent); /* news gives it no more */
		assert_int_equal(next_ms(), rows[i].left_ms - 100);
		ticks_ms += NO_MS;
		last_pass_extend(&agent);
		assert_int_equal(next_ms(), 0);
		kill(agent.checkpointer.helper.pid, SIGKILL);
		scene_close(&agent);
	}
}

/* ---- a drain ---- */

static void save_now(int signo)
{
	(void)signo;
}

static void a_drain_waits_for_a_checkpoint_where_one_is_asked_for(void **state)
{
	static const struct {
		const char *signal;
		bool handled, root, scratch, over;
		int64_t waits_ms;
		bool signalled;
	} rows[] = {
		{ "USR1", true, true, false, false, 7000, true },
		{ "SIGUSR1", true, true, false, false, 7000, true },
		{ "USR1", false, true, false, false, 0, false },
		{ "none", false, true, false, false, 7000, false },
		{ NULL, false, true, false, false, 7000, false },
		{ "USR1", true, false, false, false, 0, false },
		{ "USR1", true, true, true, false, 0, false },
		{ "USR1", true, true, false, true, 0, false },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		json_t *order = order_stopped(*state, 1);
		json_t *checkpoint = json_object_get(order, "checkpoint");
		struct agent agent;

		memset(timers, 0, sizeof timers);
		if (rows[i].signal)
			js_put_str(checkpoint, "signal", rows[i].signal);
		else
			json_object_del(checkpoint, "signal");
		if (!rows[i].root)
			json_object_del(order, "checkpoint");
		js_put(order, "scratch", json_boolean(rows[i].scratch));
		scene_open(&agent, *state, order, "0", false);
		if (rows[i].handled)
			signal(SIGUSR1, save_now);
		scene_command(&agent);
		signal(SIGUSR1, SIG_DFL);
		agent.over = rows[i].over;
		drain_begin(&agent);
		drain_begin(&agent); /* it has begun */
		if (next_ms() != rows[i].waits_ms || agent.drain.signalled != rows[i].signalled)
			fail_msg("row %zu: %d after %lld ms", i, agent.drain.signalled,
				 (long long)next_ms());
		pass_time(&agent, rows[i].waits_ms, NULL);
		assert_string_equal(agent.stopped, STOPPED_DRAIN);
		drain_report(&agent);
		assert_true(agent.report.said.has_drain);
		assert_int_equal(agent.report.said.drain.signalled, rows[i].signalled);
		assert_false(agent.report.said.drain.marked);
		scene_close(&agent);
	}
}

static void all_nodes_are_told_that_what_was_asked_for_is_saved(void **state)
{
	for (int nodes = 1; nodes <= 2; nodes++) {
		AUTO(auto_free) char *orders = NULL;
		struct agent agent;

		memset(timers, 0, sizeof timers);
		begin(&agent, *state, order_stopped(*state, nodes));
		drain_report(&agent);
		assert_false(agent.report.said.has_drain);
		drain_begin(&agent);
		drain_saved(&agent);
		orders = ordered(&agent);
		assert_int_equal(count_of(orders, DRAINED_FILE), nodes - 1);
		assert_string_equal(agent.stopped, STOPPED_DRAIN);
		drain_report(&agent);
		assert_true(agent.report.said.drain.marked);
		assert_int_equal(agent.report.said.drain.at, ticks_ms + UTC_AHEAD);
		scene_close(&agent);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, ticks_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_command_has_its_grace_and_is_killed_then),
		TEST(it_is_killed_again_and_again_and_then_more_seldom),
		TEST(a_signal_leaves_no_more_than_the_service_does),
		TEST(a_signal_during_a_stop_shortens_what_is_left),
		TEST(who_is_superseded_has_no_other_cause),
		TEST(without_a_command_a_stop_is_the_end),
		TEST(a_stop_reaches_a_command_that_is_stopped),
		TEST(processes_that_outlive_the_command_have_a_second_each_time),
		TEST(the_end_is_told_after_a_last_look_for_a_drain),
		TEST(how_it_ended_is_told_to_the_others_unless_somebody_ended_it),
		TEST(an_end_that_is_due_is_asked_for_once_at_a_time),
		TEST(a_command_was_cut_off_if_it_could_not_end_itself),
		TEST(a_pass_is_lacking_while_what_was_saved_counts),
		TEST(the_last_pass_ends_after_five_minutes_without_news),
		TEST(after_a_signal_the_last_pass_has_its_share_of_the_time),
		TEST(a_drain_waits_for_a_checkpoint_where_one_is_asked_for),
		TEST(all_nodes_are_told_that_what_was_asked_for_is_saved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
