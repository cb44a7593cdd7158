/* What the watchdog makes of signs of life and of silence, to the millisecond. */
#include "tests/unit/node/watched.h"

/* ---- silence ---- */

static void a_silence_longer_than_the_limit_ends_the_command(void **state)
{
	AUTO(sb_release) struct sb orders = SB_INIT;
	const struct node_report_stall *stall;
	struct agent agent;
	int64_t last;

	begin(&agent, *state, order_watched(*state, 1), "0");
	step(&agent, 1, 3);
	last = ticks_ms - 1000;
	pass_time(&agent, LIMIT_MS - 1000, &orders);
	assert_null(agent.stopped); /* it is as long as the limit */
	pass_time(&agent, BEAT_MS, &orders);
	assert_string_equal(agent.stopped, STOPPED_STALL);
	stall = &agent.report.said.stall;
	assert_string_equal(stall->doing, "step");
	assert_int_equal(stall->silent_ms, LIMIT_MS + BEAT_MS);
	assert_int_equal(stall->limit_ms, LIMIT_MS);
	assert_int_equal(stall->since, last + UTC_AHEAD);
	/* A node alone has no other to tell. */
	assert_int_equal(count_of(orders.text, FAILED_FILE), 0);
	scene_close(&agent);
}

static void a_step_a_save_or_a_compilation_ends_a_silence(void **state)
{
	struct agent agent;

	begin(&agent, *state, order_watched(*state, 1), "0");
	step(&agent, 1, 3);
	for (int i = 0; i < 3; i++) {
		pass_time(&agent, LIMIT_MS - 5000, NULL);
		step(&agent, 4 + i, 1);
	}
	assert_null(agent.stopped);
	pass_time(&agent, LIMIT_MS - 5000, NULL);
	print(&agent, "words\nstep: 3\n"); /* no step beyond the last one */
	pass_time(&agent, 10000, NULL);
	assert_string_equal(agent.stopped, STOPPED_STALL);
	scene_close(&agent);
}

static void half_a_silence_is_reported_and_taken_back(void **state)
{
	AUTO(sb_release) struct sb orders = SB_INIT;
	const struct node_report *said;
	struct agent agent;
	int64_t last;

	begin(&agent, *state, order_watched(*state, 1), "0");
	said = &agent.report.said;
	step(&agent, 1, 3);
	last = ticks_ms - 1000;
	pass_time(&agent, LIMIT_MS / 2 - 2000, &orders);
	assert_false(said->has_silence);
	assert_int_equal(count_of(orders.text, "\"report\""), 0);
	pass_time(&agent, 10000, &orders);
	assert_true(said->has_silence);
	assert_string_equal(said->silence.doing, "step");
	assert_int_equal(said->silence.since, last + UTC_AHEAD);
	assert_int_equal(said->silence.until, last + UTC_AHEAD + LIMIT_MS);
	assert_int_equal(count_of(orders.text, "\"report\""), 1); /* once, not each beat */
	step(&agent, 4, 1);
	assert_false(said->has_silence);
	/* Another silence is another one. */
	pass_time(&agent, LIMIT_MS / 2, &orders);
	assert_true(said->has_silence);
	assert_int_equal(said->silence.since, ticks_ms - LIMIT_MS / 2 - 1000 + UTC_AHEAD);
	assert_null(agent.stopped);
	scene_close(&agent);
}

static void in_a_drain_a_silence_says_nothing(void **state)
{
	struct agent agent;

	begin(&agent, *state, order_watched(*state, 1), "0");
	step(&agent, 1, 3);
	agent.drain.at_ms = 1;
	pass_time(&agent, 2 * LIMIT_MS, NULL);
	assert_null(agent.stopped);
	assert_false(agent.report.said.has_silence);
	scene_close(&agent);
}

static void where_it_is_off_no_silence_is_too_long(void **state)
{
	static const char *const modes[] = { "off", NULL };

	for (size_t i = 0; i < STK_LENGTH(modes); i++) {
		json_t *order = order_watched(*state, 1);
		struct agent agent;

		json_object_del(order, "stall");
		if (modes[i])
			js_put(order, "stall",
			       json_pack("{s:s, s:i}", "mode", modes[i], "limit_ms", 1));
		memset(timers, 0, sizeof timers);
		begin(&agent, *state, order, "0");
		step(&agent, 1, 3);
		pass_time(&agent, 1000 * (int64_t)LIMIT_MS, NULL);
		assert_null(agent.stopped);
		assert_false(agent.report.said.has_silence);
		scene_close(&agent);
	}
}

/* The limit, if the user sets none, is at least 45 minutes until it is known how long steps
 * take. */
static void the_limit_may_be_found_by_the_steps(void **state)
{
	json_t *order = order_watched(*state, 1);
	struct agent agent;

	js_put(order, "stall", json_pack("{s:s}", "mode", "auto"));
	begin(&agent, *state, order, "0");
	step(&agent, 1, 3);
	pass_time(&agent, 45 * 60 * 1000 - 1000, NULL);
	assert_null(agent.stopped);
	pass_time(&agent, BEAT_MS, NULL);
	assert_string_equal(agent.stopped, STOPPED_STALL);
	scene_close(&agent);
}

static void a_limit_below_a_millisecond_is_an_order_that_makes_no_sense(void **state)
{
	for (int limit = 0; limit < 2; limit++) {
		AUTO(err_freep) struct err *err = NULL;
		json_t *order = order_watched(*state, 1);
		struct agent agent;

		js_put(json_object_get(order, "stall"), "limit_ms", json_integer(limit));
		scene_open(&agent, *state, order, "0", false);
		assert_int_equal(watchdog_init(&agent, &err), limit - 1);
		scene_close(&agent);
	}
}

/* Precompile: it computes a few steps, and compiles on. */
static void in_a_trial_run_all_output_counts(void **state)
{
	json_t *order = order_watched(*state, 1);
	struct agent agent;

	js_put(order, "scratch", json_true());
	begin(&agent, *state, order, "0");
	step(&agent, 1, 3);
	for (int i = 0; i < 40; i++) {
		pass_time(&agent, LIMIT_MS - 5000, NULL);
		print(&agent, "words\n");
	}
	assert_null(agent.stopped);
	scene_close(&agent);
}

/* ---- time ---- */

static void a_command_over_its_time_ends_and_all_hear_of_it(void **state)
{
	AUTO(sb_release) struct sb orders = SB_INIT;
	json_t *order = order_watched(*state, 2);
	struct agent agent;

	js_put(order, "timeout_ms", json_integer(60000));
	begin(&agent, *state, order, "0");
	for (int i = 0; i < 59; i++)
		step(&agent, i, 1);
	assert_null(agent.stopped);
	pass_time(&agent, BEAT_MS, &orders);
	assert_string_equal(agent.stopped, STOPPED_TIMEOUT);
	assert_int_equal(count_of(orders.text, FAILED_FILE), 1);
	assert_has(orders.text, "\"exit\":143");
	scene_close(&agent);
}

/* Nobody looked meanwhile, and the command did not run either. */
static void time_in_which_the_machine_slept_does_not_count(void **state)
{
	json_t *order = order_watched(*state, 1);
	struct agent agent;

	js_put(order, "timeout_ms", json_integer(100000));
	begin(&agent, *state, order, "0");
	step(&agent, 1, 3);
	ticks_ms += 3600 * 1000;
	pass_time(&agent, 0, NULL);
	assert_null(agent.stopped);
	for (int i = 4; i < 99; i++)
		step(&agent, i, 1);
	assert_null(agent.stopped);
	step(&agent, 100, 4);
	assert_string_equal(agent.stopped, STOPPED_TIMEOUT);
	scene_close(&agent);
}

/* A pause that is shorter is the command's as well. */
static void a_short_pause_of_the_agent_counts(void **state)
{
	json_t *order = order_watched(*state, 1);
	struct agent agent;

	js_put(order, "timeout_ms", json_integer(100000));
	begin(&agent, *state, order, "0");
	step(&agent, 1, 3);
	for (int i = 0; i < 4; i++) {
		print(&agent, "words\n");
		ticks_ms += 25000;
		pass_time(&agent, 0, NULL);
	}
	assert_string_equal(agent.stopped, STOPPED_TIMEOUT);
	scene_close(&agent);
}

static void it_looks_each_second_or_each_beat_that_is_shorter(void **state)
{
	for (int beat = 200; beat <= 2000; beat += 1800) {
		json_t *order = order_watched(*state, 1);
		struct agent agent;

		js_put(order, "heartbeat_ms", json_integer(beat));
		begin(&agent, *state, order, "0");
		assert_int_equal(next_ms(), beat < BEAT_MS ? beat : BEAT_MS);
		agent.over = true; /* no more than once again */
		pass_time(&agent, 10 * BEAT_MS, NULL);
		assert_int_equal(next_ms(), -1);
		scene_close(&agent);
	}
}

/* ---- several nodes ---- */

/* News of the others is late by an exchange there, and one here. */
static void with_other_nodes_the_limit_is_two_exchanges_longer(void **state)
{
	AUTO(sb_release) struct sb orders = SB_INIT;
	struct agent agent;
	int64_t more;

	begin(&agent, *state, order_watched(*state, 2), "0");
	more = 2 * agent_config_exchange_ms(&agent.config);
	step(&agent, 1, 3);
	pass_time(&agent, LIMIT_MS + more - 1000, &orders);
	assert_null(agent.stopped);
	pass_time(&agent, BEAT_MS, &orders);
	assert_string_equal(agent.stopped, STOPPED_STALL);
	assert_int_equal(agent.report.said.stall.limit_ms, LIMIT_MS + more);
	/* The other nodes hang as well. */
	assert_int_equal(count_of(orders.text, FAILED_FILE), 1);
	assert_has(orders.text, "\"exit\":143");
	scene_close(&agent);
}

static void node_0_alone_judges_until_it_has_ended(void **state)
{
	json_t *order = order_watched(*state, 2);
	struct agent agent;

	js_put(order, "timeout_ms", json_integer(3000 * 1000));
	begin(&agent, *state, order, "1");
	step(&agent, 1, 3);
	pass_time(&agent, 4000 * 1000, NULL);
	assert_null(agent.stopped);
	agent.watchdog.begun.ms = ticks_ms;
	watchdog_alone(&agent);
	/* This node judges from now on, and all that its command prints counts. */
	for (int i = 0; i < 3; i++) {
		pass_time(&agent, LIMIT_MS, NULL);
		print(&agent, "saving\n");
		watchdog_alone(&agent); /* it is no news */
	}
	assert_null(agent.stopped);
	pass_time(&agent, LIMIT_MS, NULL);
	watchdog_alone(&agent);
	pass_time(&agent, LIMIT_MS, NULL);
	assert_string_equal(agent.stopped, STOPPED_STALL);
	scene_close(&agent);
}

static void who_begins_after_node_0_has_ended_judges_from_the_start(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct agent agent;

	scene_open(&agent, *state, order_watched(*state, 2), "1", false);
	scene_command(&agent);
	must(watchdog_init(&agent, &err), &err);
	agent.head_ended = true;
	watchdog_start(&agent);
	print(&agent, "words\n");
	pass_time(&agent, 2 * LIMIT_MS, NULL);
	assert_string_equal(agent.stopped, STOPPED_STALL);
	scene_close(&agent);
}

static void other_nodes_publish_what_is_new_at_each_exchange(void **state)
{
	AUTO(sb_release) struct sb orders = SB_INIT;
	struct agent agent;
	int64_t exchange;

	begin(&agent, *state, order_watched(*state, 2), "1");
	exchange = agent_config_exchange_ms(&agent.config);
	print(&agent, "words\n");
	pass_time(&agent, BEAT_MS, &orders);
	assert_has(orders.text, "{\"order\":\"progress\",\"text\":"
				"\"{\\\"v\\\":1,\\\"bytes\\\":6,\\\"compile\\\":0}\"}");
	sb_clear(&orders);
	print(&agent, "step: 7\n");
	pass_time(&agent, exchange - BEAT_MS, &orders);
	assert_int_equal(count_of(orders.text ? orders.text : "", "\"progress\""), 0);
	pass_time(&agent, BEAT_MS, &orders);
	assert_has(orders.text, "\\\"step\\\":7,\\\"bytes\\\":14");
	sb_clear(&orders);
	pass_time(&agent, 10 * exchange, &orders);
	assert_int_equal(count_of(orders.text ? orders.text : "", "\"progress\""), 0);
	scene_close(&agent);
	memset(timers, 0, sizeof timers);
	begin(&agent, *state, order_watched(*state, 2), "0");
	print(&agent, "words\n");
	pass_time(&agent, 10 * exchange, &orders);
	assert_int_equal(count_of(orders.text ? orders.text : "", "\"progress\""), 0);
	scene_close(&agent);
}

/* True if node 0 takes the text for a sign of life. */
static bool is_alive(struct agent *agent, int node, const char *text)
{
	const int64_t before = agent->watchdog.stall.last.ms;

	pass_time(agent, 10, NULL);
	watchdog_hear(agent, node, text);
	return agent->watchdog.stall.last.ms == ticks_ms && before < ticks_ms;
}

static void node_0_takes_progress_of_the_others_for_life(void **state)
{
	struct agent agent;

	begin(&agent, *state, order_watched(*state, 3), "0");
	assert_true(is_alive(&agent, 1, "{\"bytes\":1}"));
	assert_false(is_alive(&agent, 1, "{\"bytes\":1}"));
	assert_true(is_alive(&agent, 2, "{\"bytes\":1}"));
	assert_true(is_alive(&agent, 1, "{\"bytes\":1,\"compile\":1}"));
	assert_false(is_alive(&agent, 1, "{\"bytes\":1,\"compile\":1}"));
	assert_true(is_alive(&agent, 1, "{\"step\":0,\"bytes\":2,\"compile\":1}"));
	assert_int_equal(agent.watchdog.stall.step, 0);
	/* Steps alone are progress from then on. */
	assert_false(is_alive(&agent, 1, "{\"step\":0,\"bytes\":3,\"compile\":1}"));
	assert_true(is_alive(&agent, 1, "{\"step\":1,\"bytes\":3,\"compile\":1}"));
	/* A node that is behind is alive as long as it follows. */
	assert_true(is_alive(&agent, 2, "{\"step\":1,\"bytes\":3}"));
	assert_false(is_alive(&agent, 2, "{\"step\":1,\"bytes\":4}"));
	assert_true(is_alive(&agent, 2, "{\"step\":2,\"bytes\":3}"));
	scene_close(&agent);
}

static void words_that_are_no_progress_of_a_node_are_passed_over(void **state)
{
	struct agent agent;

	begin(&agent, *state, order_watched(*state, 3), "0");
	assert_false(is_alive(&agent, 0, "{\"bytes\":1}"));
	assert_false(is_alive(&agent, -1, "{\"bytes\":1}"));
	assert_false(is_alive(&agent, 3, "{\"bytes\":1}"));
	assert_false(is_alive(&agent, 1, "{\"bytes\":"));
	assert_false(is_alive(&agent, 1, NULL));
	assert_true(is_alive(&agent, 1, "{\"bytes\":1}"));
	scene_close(&agent);
}

/* ---- the pace ---- */

static void the_pace_is_published_with_each_new_step(void **state)
{
	AUTO(sb_release) struct sb orders = SB_INIT;
	struct agent agent;

	begin(&agent, *state, order_watched(*state, 1), "0");
	print(&agent, "words\n");
	pass_time(&agent, BEAT_MS, &orders);
	assert_int_equal(orders.len, 0);
	print(&agent, "step: 0\n");
	pass_time(&agent, 3 * BEAT_MS, &orders);
	assert_int_equal(count_of(orders.text, "\"pace\""), 1);
	print(&agent, "step: 1\nstep: 2\n");
	pass_time(&agent, 3 * BEAT_MS, &orders);
	assert_int_equal(count_of(orders.text, "\"pace\""), 2);
	watchdog_report(&agent);
	assert_int_equal(agent.report.said.first_step, 0);
	assert_int_equal(agent.report.said.last_step, 2);
	assert_non_null(agent.report.said.pace);
	scene_close(&agent);
}

static void in_a_far_workspace_the_pace_is_a_file_of_this_machine(void **state)
{
	AUTO(auto_free) char *path = place_path(*state, PREFIX "node-0/" PACE_FILE);
	AUTO(sb_release) struct sb orders = SB_INIT;
	struct agent agent;

	begin(&agent, *state, order_watched(*state, 1), "0");
	agent.config.object_workspace = true;
	print(&agent, "words\n");
	pass_time(&agent, BEAT_MS, &orders);
	assert_false(fs_exists(path));
	print(&agent, "step: 1\n");
	pass_time(&agent, BEAT_MS, &orders);
	assert_true(fs_exists(path));
	assert_int_equal(orders.len, 0);
	scene_close(&agent);
}

static void without_steps_the_report_has_none(void **state)
{
	struct agent agent;

	begin(&agent, *state, order_watched(*state, 1), "0");
	print(&agent, "words\n");
	watchdog_report(&agent);
	assert_false(agent.report.said.has_first_step);
	scene_close(&agent);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, ticks_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_silence_longer_than_the_limit_ends_the_command),
		TEST(a_step_a_save_or_a_compilation_ends_a_silence),
		TEST(half_a_silence_is_reported_and_taken_back),
		TEST(in_a_drain_a_silence_says_nothing),
		TEST(where_it_is_off_no_silence_is_too_long),
		TEST(the_limit_may_be_found_by_the_steps),
		TEST(a_limit_below_a_millisecond_is_an_order_that_makes_no_sense),
		TEST(in_a_trial_run_all_output_counts),
		TEST(a_command_over_its_time_ends_and_all_hear_of_it),
		TEST(time_in_which_the_machine_slept_does_not_count),
		TEST(a_short_pause_of_the_agent_counts),
		TEST(it_looks_each_second_or_each_beat_that_is_shorter),
		TEST(with_other_nodes_the_limit_is_two_exchanges_longer),
		TEST(node_0_alone_judges_until_it_has_ended),
		TEST(who_begins_after_node_0_has_ended_judges_from_the_start),
		TEST(other_nodes_publish_what_is_new_at_each_exchange),
		TEST(node_0_takes_progress_of_the_others_for_life),
		TEST(words_that_are_no_progress_of_a_node_are_passed_over),
		TEST(the_pace_is_published_with_each_new_step),
		TEST(in_a_far_workspace_the_pace_is_a_file_of_this_machine),
		TEST(without_steps_the_report_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
