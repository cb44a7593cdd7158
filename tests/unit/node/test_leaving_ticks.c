/* Node 0 leaves last where its end is the end of all: whom it waits for, and how long. */
#include "tests/unit/node/ticks.h"

#include <sys/resource.h>

#include "jobs/node/main_node_exit.h"
#include "jobs/node/node_flag.h"

#define NODES     3
#define LOOK_MS   30000
#define GRACE_MS  20000
#define SILENT_MS 600000
#define STOP_MS   60000 /* beyond the grace */

static const struct place *here;
static int64_t begun_ms;

/* ---- the other nodes ---- */

static void put(int node, const char *name, const char *text)
{
	AUTO(auto_free) char *path = mem_format("%s/" PREFIX "node-%d/%s", here->root, node, name);

	write_file(path, text, 0600);
}

static void says(int node, const char *state)
{
	AUTO(auto_free) char *text = mem_format("{\"v\":1,\"state\":\"%s\"}", state);

	put(node, REPORT_FILE, text);
}

/* Writes that the node's outputs are on their way: the number of bytes grows. */
static void brings(int node, int64_t bytes)
{
	AUTO(auto_free)
	char *text = mem_format("{\"v\":1,\"state\":\"running\",\"outputs\":{\"state\":\"moving\","
				"\"bytes\":%lld}}",
				(long long)bytes);

	put(node, REPORT_FILE, text);
}

/* Ends both at these times, once each; below 0: never. */
static int64_t ends_at[NODES];

static void end_then(void)
{
	for (int node = 1; node < NODES; node++)
		if (ends_at[node] >= 0 && ticks_ms - begun_ms >= ends_at[node]) {
			says(node, REPORT_ENDED);
			ends_at[node] = -1;
		}
}

/* ---- node 0 ---- */

static void begin(struct agent *agent, struct place *place)
{
	json_t *order = order_for(place, "true");

	here = place;
	js_put(order, "nodes", json_integer(NODES));
	js_put(order, "grace_ms", json_integer(GRACE_MS));
	js_put(order, "look_ms", json_integer(LOOK_MS));
	scene_open(agent, place, order, "0", true);
	agent->config.platform.apart = true;
	agent->state = REPORT_ENDED;
	begun_ms = ticks_ms;
	on_pause = end_then;
	for (int node = 1; node < NODES; node++) {
		says(node, REPORT_RUNNING);
		ends_at[node] = -1;
	}
}

/* Returns how long node 0 waits. */
static int64_t waits(struct agent *agent)
{
	main_node_exit_wait(agent);
	return ticks_ms - begun_ms;
}

static void once_all_have_ended_it_leaves(void **state)
{
	static const char *const ends[] = { REPORT_ENDED, REPORT_FAILED, REPORT_NOT_MINE };

	for (size_t i = 0; i < STK_LENGTH(ends); i++) {
		struct agent agent;

		begin(&agent, *state);
		says(1, ends[i]);
		says(2, REPORT_ENDED);
		assert_int_equal(waits(&agent), 0);
		scene_close(&agent);
	}
}

/* Node 0 looks after 250 ms, and each time after twice as long, up to the usual pause. */
static void it_waits_for_the_last_one_and_looks_ever_more_seldom(void **state)
{
	static const struct {
		int64_t ends_ms, waits_ms;
	} rows[] = {
		{ 1, 250 },      { 250, 250 },     { 251, 750 },     { 4000, 7750 },
		{ 8000, 15750 }, { 16000, 31750 }, { 32000, 61750 }, { 62000, 91750 },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct agent agent;

		begin(&agent, *state);
		says(1, REPORT_ENDED);
		ends_at[2] = rows[i].ends_ms;
		assert_int_equal(waits(&agent), rows[i].waits_ms);
		scene_close(&agent);
	}
}

static void where_it_is_not_the_end_of_all_it_leaves_at_once(void **state)
{
	for (int i = 0; i < 7; i++) {
		struct agent agent;

		begin(&agent, *state);
		if (i == 0)
			agent.config.node = 1;
		if (i == 1)
			agent.config.nodes = 1;
		if (i == 2)
			agent.config.object_workspace = false;
		if (i == 3)
			agent.config.platform.apart = false;
		if (i == 4) { /* the service names the nodes, and lets each end by itself */
			agent.config.platform.hosts = mem_zero(2, sizeof(char *));
			agent.config.platform.hosts[0] = mem_copy("one");
			agent.config.platform.host_count = 1;
		}
		if (i == 5)
			agent.told_at = clock_mono_now();
		if (i == 6)
			agent.state = REPORT_NOT_MINE;
		if (waits(&agent) != 0)
			fail_msg("row %d", i);
		scene_close(&agent);
	}
}

/* ---- nodes that are silent ---- */

static void who_shows_no_sign_of_life_is_not_waited_for(void **state)
{
	struct agent agent;

	begin(&agent, *state);
	assert_in_range(waits(&agent), SILENT_MS, SILENT_MS + LOOK_MS);
	scene_close(&agent);
}

/* A moment that comes once in so long. */
static bool is_nth(int64_t every_ms)
{
	return (ticks_ms - begun_ms) % every_ms == 0;
}

static void live(void)
{
	AUTO(auto_free) char *text = mem_format("{\"at\":%lld}", (long long)ticks_ms);

	if (is_nth(SILENT_MS - LOOK_MS) && ticks_ms - begun_ms < 10 * SILENT_MS)
		put(2, ALIVE_FILE, text);
}

/* Any object of its own that changes is one. */
static void who_shows_that_it_lives_is_waited_for(void **state)
{
	struct agent agent;

	begin(&agent, *state);
	says(1, REPORT_ENDED);
	on_pause = live;
	assert_in_range(waits(&agent), 10 * SILENT_MS, 11 * SILENT_MS + LOOK_MS);
	scene_close(&agent);
}

/* Nothing can be opened for a while. */
static void be_away(void)
{
	static struct rlimit before;
	struct rlimit none;
	int64_t since = ticks_ms - begun_ms;

	if (since == 1000) {
		assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
		none = before;
		none.rlim_cur = 0;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	}
	if (since == 3 * SILENT_MS) {
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		says(1, REPORT_ENDED);
		says(2, REPORT_ENDED);
	}
}

/* All nodes would end otherwise because a service is away. */
static void a_workspace_that_cannot_be_listed_is_nobodys_silence(void **state)
{
	struct agent agent;

	begin(&agent, *state);
	on_pause = be_away;
	assert_in_range(waits(&agent), 3 * SILENT_MS, 3 * SILENT_MS + LOOK_MS);
	scene_close(&agent);
}

static void what_is_no_nodes_own_is_no_sign_of_life(void **state)
{
	struct agent agent;

	begin(&agent, *state);
	says(1, REPORT_ENDED);
	says(2, REPORT_ENDED);
	put(0, REPORT_FILE, "{\"v\":1,\"state\":\"running\"}");
	put(NODES, REPORT_FILE, "{\"v\":1,\"state\":\"running\"}");
	assert_int_equal(waits(&agent), 0);
	scene_close(&agent);
}

/* ---- a failed attempt ---- */

static void after_a_failure_it_waits_until_the_others_were_stopped(void **state)
{
	for (int stopped = 0; stopped < 2; stopped++) {
		struct agent agent;

		begin(&agent, *state);
		agent.exit = stopped ? 0 : 1;
		agent.stopped = stopped ? STOPPED_STALL : NULL;
		assert_in_range(waits(&agent), GRACE_MS + STOP_MS, GRACE_MS + STOP_MS + LOOK_MS);
		scene_close(&agent);
	}
}

static void bring_for_a_while(void)
{
	int64_t since = ticks_ms - begun_ms;

	if (since >= 10 * SILENT_MS)
		says(2, REPORT_ENDED);
	else if (is_nth(SILENT_MS / 2))
		brings(2, since);
}

static void who_brings_its_outputs_has_longer(void **state)
{
	struct agent agent;

	begin(&agent, *state);
	agent.exit = 1;
	brings(2, 0);
	on_pause = bring_for_a_while;
	assert_in_range(waits(&agent), 10 * SILENT_MS, 10 * SILENT_MS + LOOK_MS);
	scene_close(&agent);
}

static void who_does_not_get_on_with_that_has_not(void **state)
{
	struct agent agent;

	begin(&agent, *state);
	agent.exit = 1;
	brings(2, 7);
	assert_in_range(waits(&agent), SILENT_MS, SILENT_MS + LOOK_MS);
	scene_close(&agent);
}

/* ---- */

static void be_told(void)
{
	if (ticks_ms - begun_ms == 1000)
		raise(SIGTERM);
}

static void a_signal_ends_the_wait(void **state)
{
	struct agent agent;
	sigset_t stops, others;

	begin(&agent, *state);
	sigemptyset(&stops);
	sigaddset(&stops, SIGTERM);
	assert_int_equal(sigprocmask(SIG_BLOCK, &stops, &others), 0);
	on_pause = be_told;
	assert_int_equal(waits(&agent), 1000);
	assert_int_equal(sigprocmask(SIG_SETMASK, &others, NULL), 0);
	scene_close(&agent);
}

/* The others see to their own end from then on; no uploader is left to tell them. */
static void the_others_hear_that_it_has_ended_if_they_have_not(void **state)
{
	for (int due = 0; due < 2; due++) {
		AUTO(auto_free) char *path = place_path(*state, PREFIX ENDED_FILE);
		struct agent agent;

		begin(&agent, *state);
		agent.ended_due = due;
		ends_at[1] = ends_at[2] = 0;
		assert_int_equal(waits(&agent), 250);
		assert_int_equal(fs_exists(path), due);
		assert_false(agent.ended_due);
		scene_close(&agent);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, ticks_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(once_all_have_ended_it_leaves),
		TEST(it_waits_for_the_last_one_and_looks_ever_more_seldom),
		TEST(where_it_is_not_the_end_of_all_it_leaves_at_once),
		TEST(who_shows_no_sign_of_life_is_not_waited_for),
		TEST(who_shows_that_it_lives_is_waited_for),
		TEST(a_workspace_that_cannot_be_listed_is_nobodys_silence),
		TEST(what_is_no_nodes_own_is_no_sign_of_life),
		TEST(after_a_failure_it_waits_until_the_others_were_stopped),
		TEST(who_brings_its_outputs_has_longer),
		TEST(who_does_not_get_on_with_that_has_not),
		TEST(a_signal_ends_the_wait),
		TEST(the_others_hear_that_it_has_ended_if_they_have_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
