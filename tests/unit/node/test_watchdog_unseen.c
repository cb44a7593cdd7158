/* Signs of life that cannot be seen, for a while, or that are seen in the compile cache alone. */
#include "tests/unit/node/watched.h"

#define SUM_MS   20000 /* longest wait for a sum of the cache */
#define STUCK_MS 5000  /* a directory that took no order for so long hangs */

/* ---- a directory that hangs ---- */

/* Checkpoints in the workspace, and what others publish, cannot be seen. */
static void while_the_workspace_hangs_no_silence_counts(void **state)
{
	for (int far = 0; far < 2; far++) {
		AUTO(auto_free) char *orders = NULL;
		struct agent agent;

		memset(timers, 0, sizeof timers);
		begin(&agent, *state, order_watched(*state, 1), "0");
		step(&agent, 1, 3);
		agent.config.object_workspace = far;
		uploader_look(&agent.uploader); /* which nobody takes */
		pass_time_stuck(STUCK_MS + BEAT_MS);
		print(&agent, "step: 4\n");
		pass_time_stuck(2 * LIMIT_MS);
		assert_int_equal(agent.stopped != NULL, far); /* a service is no such thing */
		orders = ordered(&agent);
		assert_int_equal(count_of(orders, "\"pace\""), 0);
		scene_close(&agent);
	}
}

/* ---- the compile cache ---- */

static json_t *order_cached(const struct place *place)
{
	AUTO(auto_free) char *cache = place_path(place, "cache");
	json_t *order = order_watched(place, 1);

	js_put(order, "compile", json_pack("{s:s, s:s}", "kind", "jax", "cache", cache));
	return order;
}

/* The number of the question that is asked among these orders. */
static int64_t asked(const struct sb *orders)
{
	const char *at = orders->text ? strstr(orders->text, "\"for\":") : NULL;

	assert_non_null(at);
	return strtoll(at + strlen("\"for\":"), NULL, 10);
}

/* The silence that begins with step 3, up to its limit: half way the cache is added up, and at the
 * end again. Returns the number of the first question; the second one is the next. */
static int64_t silence_with_cache(struct agent *agent, const struct place *place)
{
	AUTO(sb_release) struct sb half = SB_INIT;
	AUTO(sb_release) struct sb whole = SB_INIT;
	int64_t first;

	begin(agent, place, order_cached(place), "0");
	step(agent, 1, 3);
	pass_time(agent, LIMIT_MS / 2 - 2000, &half);
	assert_int_equal(half.len, 0);
	pass_time(agent, BEAT_MS, &half);
	assert_int_equal(count_of(half.text, "\"sum\""), 1);
	first = asked(&half);
	pass_time(agent, LIMIT_MS / 2, &whole);
	assert_int_equal(count_of(whole.text, "\"sum\""), 0);
	pass_time(agent, BEAT_MS, &whole);
	assert_int_equal(count_of(whole.text, "\"sum\""), 1);
	assert_int_equal(asked(&whole), first + 1);
	assert_null(agent->stopped); /* the answer is waited for */
	return first;
}

static void a_cache_that_has_grown_is_a_sign_of_life(void **state)
{
	struct agent agent;
	int64_t first = silence_with_cache(&agent, *state);

	watchdog_sum(&agent, first, 1000);
	watchdog_sum(&agent, first + 1, 1001);
	pass_time(&agent, LIMIT_MS, NULL);
	assert_null(agent.stopped);
	/* The next silence asks anew. */
	pass_time(&agent, SUM_MS + 2 * BEAT_MS, NULL);
	assert_string_equal(agent.stopped, STOPPED_STALL);
	scene_close(&agent);
}

static void a_cache_that_has_not_grown_is_none(void **state)
{
	static const int64_t rows[][2] = { { 1000, 1000 }, { 0, 1000 } }; /* 0: it was not read */

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct agent agent;
		int64_t first;

		memset(timers, 0, sizeof timers);
		first = silence_with_cache(&agent, *state);
		watchdog_sum(&agent, first, rows[i][0]);
		watchdog_sum(&agent, first + 1, rows[i][1]);
		pass_time(&agent, BEAT_MS, NULL);
		assert_string_equal(agent.stopped, STOPPED_STALL);
		scene_close(&agent);
	}
}

static void an_answer_to_another_silence_or_none_is_waited_for_a_while(void **state)
{
	struct agent agent;
	int64_t first = silence_with_cache(&agent, *state);

	watchdog_sum(&agent, first - 2, 1000);
	watchdog_sum(&agent, first + 3, 1001);
	pass_time(&agent, SUM_MS - BEAT_MS, NULL);
	assert_null(agent.stopped);
	pass_time(&agent, BEAT_MS, NULL);
	assert_string_equal(agent.stopped, STOPPED_STALL);
	scene_close(&agent);
}

/* The cache is elsewhere: nothing is asked. */
static void a_cache_that_is_not_on_this_machine_is_not_looked_at(void **state)
{
	AUTO(sb_release) struct sb orders = SB_INIT;
	json_t *order = order_cached(*state);
	struct agent agent;

	js_put(order, "compile",
	       json_pack("{s:s, s:s}", "kind", "neuron", "cache", "s3://bucket/cache"));
	begin(&agent, *state, order, "0");
	step(&agent, 1, 3);
	pass_time(&agent, LIMIT_MS, &orders);
	assert_int_equal(count_of(orders.text, "\"sum\""), 0);
	assert_string_equal(agent.stopped, STOPPED_STALL);
	scene_close(&agent);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, ticks_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(while_the_workspace_hangs_no_silence_counts),
		TEST(a_cache_that_has_grown_is_a_sign_of_life),
		TEST(a_cache_that_has_not_grown_is_none),
		TEST(an_answer_to_another_silence_or_none_is_waited_for_a_while),
		TEST(a_cache_that_is_not_on_this_machine_is_not_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
