/* What the nodes of a check-up tell each other through the workspace, how long they wait for it,
 * and whose word does not count; by a clock that the test sets. */
#include "tests/unit/node/pauses.h"
#include "tests/unit/node/place.h"

#include "jobs/node/health/health_internal.h"
#include "jobs/node/node_flag.h"

#define NODES      3
#define TIMEOUT_MS 60000

static const struct place *here;

/* ---- nodes ---- */

struct side {
	struct agent_config config;
	struct order order;
	struct checkup c;
};

static void side_open(struct side *side, const struct place *place, int node, bool far)
{
	AUTO(err_freep) struct err *err = NULL;

	*side = (struct side){ 0 };
	side->order.health = (struct order_health){ .timeout_ms = TIMEOUT_MS };
	side->config = (struct agent_config){ .order = &side->order,
					      .nodes = NODES,
					      .node = node,
					      .nonce = NONCE,
					      .token = "t",
					      .prefix = PREFIX,
					      .restart = 2,
					      .object_workspace = far };
	side->c = (struct checkup){ .config = &side->config,
				    .order = &side->order.health,
				    .told = json_pack("{s:i}", "node", node) };
	must(store_open(place->root, &side->c.store, &err), &err);
}

static void side_close(struct side *side)
{
	store_freep(&side->c.store);
	json_decref(side->c.told);
	order_release(&side->order);
}

/* Tells the node's state in this round; 0: before the first one. */
static void tell(struct side *side, int64_t round, const char *state)
{
	AUTO(err_freep) struct err *err = NULL;

	if (round)
		js_put(side->c.told, "round", json_integer(round));
	must(health_tell_own(&side->c, state, &err), &err);
}

static void open_all(struct side sides[NODES], const struct place *place, bool far)
{
	here = place;
	for (int i = 0; i < NODES; i++)
		side_open(&sides[i], place, i, far);
}

static void close_all(struct side sides[NODES])
{
	for (int i = 0; i < NODES; i++)
		side_close(&sides[i]);
}

static int reset(void **state)
{
	now_ms = 1000 * 1000;
	pause_count = 0;
	on_pause = NULL;
	return place_make(state);
}

/* Returns whose words are among those that were gathered: "1" or "." for each node. */
static const char *heard(const json_t *nodes)
{
	static char text[NODES + 1];

	assert_int_equal(json_array_size(nodes), NODES);
	for (int i = 0; i < NODES; i++)
		text[i] = json_is_null(json_array_get(nodes, (size_t)i)) ? '.' : '1';
	return text;
}

/* ---- */

static void what_all_have_told_is_gathered_at_once(void **state)
{
	struct side sides[NODES];

	for (int64_t round = 0; round <= 2; round++) {
		json_auto_t *nodes = NULL;

		open_all(sides, *state, false);
		for (int i = 0; i < NODES; i++)
			tell(&sides[i], round, "done");
		nodes = health_gather(&sides[0].c, round, (struct mono){ now_ms });
		assert_string_equal(heard(nodes), "111");
		for (int i = 0; i < NODES; i++)
			assert_int_equal(js_int(json_array_get(nodes, (size_t)i), "node", -1), i);
		assert_int_equal(pause_count, 0);
		close_all(sides);
	}
}

static void words_of_another_round_or_state_are_waited_for(void **state)
{
	struct side sides[NODES];
	json_auto_t *nodes = NULL;

	open_all(sides, *state, false);
	tell(&sides[0], 2, "done");
	tell(&sides[1], 1, "done"); /* of the round before */
	tell(&sides[2], 2, "begun");
	nodes = health_gather(&sides[0].c, 2, (struct mono){ now_ms + 1000 });
	assert_string_equal(heard(nodes), "1..");
	assert_int_equal(now_ms, 1000 * 1000 + 50 + 75 + 112 + 168 + 200 + 200 + 200);
	close_all(sides);
}

/* An engine may have started the job before, or another one beside it. */
static void words_of_another_start_do_not_count(void **state)
{
	for (int i = 0; i < 6; i++) {
		struct side sides[NODES];
		json_auto_t *nodes = NULL;

		open_all(sides, *state, false);
		tell(&sides[0], 0, "done");
		tell(&sides[1], 0, "done");
		if (i == 0)
			sides[2].config.restart = 1;
		if (i == 1)
			sides[2].config.token = "other";
		if (i == 2)
			sides[2].config.nonce = "other";
		if (i < 4)
			tell(&sides[2], 0, "done");
		if (i >= 4) {
			AUTO(auto_free)
			char *path = place_path(*state, PREFIX "node-2/" HEALTH_FILE);

			write_file(path,
				   i == 4 ? "{\"v\":1," : "{\"state\":\"done\",\"restart\":2}",
				   0600);
		}
		nodes = health_gather(&sides[0].c, 0, (struct mono){ now_ms });
		if (strcmp(heard(nodes), i == 3 ? "111" : "11.") != 0)
			fail_msg("row %d: %s", i, heard(nodes));
		close_all(sides);
	}
}

static struct side *late;

static void begin_late(void)
{
	if (now_ms - 1000 * 1000 >= 30000 && late) {
		AUTO(err_freep) struct err *err = NULL;

		must(health_tell_own(&late->c, "begun", &err), &err);
		late = NULL;
	}
}

/* The slowest to begin has as long as any other from then on. */
static void once_all_have_begun_each_has_the_whole_time(void **state)
{
	for (int far = 0; far < 2; far++) {
		AUTO(auto_free) char *runs = place_path(*state, "runs");
		int64_t more = 2 * (far ? 5000 : 2500), begun;
		AUTO(err_freep) struct err *err = NULL;
		struct side sides[NODES];
		json_auto_t *nodes = NULL;

		now_ms = 1000 * 1000;
		open_all(sides, *state, far);
		tell(&sides[0], 0, "done");
		tell(&sides[1], 0, "done");
		late = &sides[2];
		on_pause = begin_late;
		nodes = health_gather(&sides[0].c, 0, (struct mono){ now_ms + 40000 });
		assert_string_equal(heard(nodes), "11.");
		begun = 1000 * 1000 + 30000;
		assert_in_range(now_ms, begun + TIMEOUT_MS + more,
				begun + TIMEOUT_MS + more + 2 * 5000);
		close_all(sides);
		must(fs_remove_tree(runs, &err), &err);
	}
}

/* All have begun a round, and its end is what node 0 has said. */
static void in_a_round_the_end_stays_where_it_is(void **state)
{
	struct side sides[NODES];
	json_auto_t *nodes = NULL;

	open_all(sides, *state, false);
	tell(&sides[0], 1, "done");
	tell(&sides[1], 1, "done");
	late = &sides[2];
	on_pause = begin_late;
	nodes = health_gather(&sides[0].c, 1, (struct mono){ now_ms + 40000 });
	assert_in_range(now_ms, 1040000, 1040200);
	close_all(sides);
}

static void who_has_failed_is_not_waited_for(void **state)
{
	static const char *const flags[] = { "{\"v\":1,\"restart\":1}", "{\"v\":1,\"restart\":2}" };

	for (int i = 0; i < 2; i++) {
		AUTO(auto_free) char *path = place_path(*state, PREFIX FAILED_FILE);
		struct side sides[NODES];
		json_auto_t *nodes = NULL;

		now_ms = 1000 * 1000;
		open_all(sides, *state, false);
		tell(&sides[0], 0, "done");
		write_file(path, flags[i], 0600);
		assert_int_equal(health_peer_is_gone(&sides[0].c), i);
		nodes = health_gather(&sides[0].c, 0, (struct mono){ now_ms + 40000 });
		assert_string_equal(heard(nodes), "1..");
		assert_int_equal(now_ms == 1000 * 1000, i); /* one of an earlier start is none */
		close_all(sides);
	}
}

/* ---- orders ---- */

static void what_node_0_orders_all_read(void **state)
{
	json_auto_t *orders = json_pack("{s:s}", "do", "test"), *got = NULL;
	AUTO(err_freep) struct err *err = NULL;
	struct side sides[NODES];

	open_all(sides, *state, false);
	assert_null(health_read_orders(&sides[1].c));
	must(health_tell_all(&sides[0].c, orders, &err), &err);
	got = health_read_orders(&sides[1].c);
	assert_string_equal(js_str(got, "do"), "test");
	assert_int_equal(js_int(got, "v", 0), 1);
	sides[2].config.restart = 3;
	assert_null(health_read_orders(&sides[2].c));
	close_all(sides);
}

/* ---- waiting ---- */

static void a_wait_gets_longer_and_is_longer_far_away(void **state)
{
	static const int64_t near[] = { 50, 75, 112, 168, 200, 200 };
	static const int64_t away[] = { 1000, 1500, 2250, 3375, 5000, 5000 };
	const struct agent_config here_config = { 0 }, far_config = { .object_workspace = true };
	const struct checkup c = { .config = &here_config }, d = { .config = &far_config };
	int64_t pause = 0;

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(near); i++) {
		health_wait_a_moment(&c, &pause);
		assert_int_equal(pauses[i], near[i]);
	}
	pause = 0;
	pause_count = 0;
	for (size_t i = 0; i < STK_LENGTH(away); i++) {
		health_wait_a_moment(&d, &pause);
		assert_int_equal(pauses[i], away[i]);
	}
}

static void fail_then(void)
{
	AUTO(auto_free) char *path = place_path(here, PREFIX FAILED_FILE);

	if (now_ms - 1000 * 1000 >= 3000)
		write_file(path, "{\"v\":1,\"restart\":2}", 0600);
}

/* The sick node's own words say more than those of the one that was stopped for it. */
static void the_sick_one_has_a_while_to_say_so(void **state)
{
	static const int64_t limits[] = { 10000, 30000 };

	for (int far = 0; far < 2; far++) {
		struct side sides[NODES];

		now_ms = 1000 * 1000;
		open_all(sides, *state, far);
		health_let_the_sick_speak(&sides[0].c);
		assert_in_range(now_ms, 1000 * 1000 + limits[far],
				1000 * 1000 + limits[far] + 5000);
		close_all(sides);
	}
	now_ms = 1000 * 1000;
	on_pause = fail_then;
	{
		struct side sides[NODES];

		open_all(sides, *state, false);
		health_let_the_sick_speak(&sides[0].c);
		assert_in_range(now_ms, 1003000, 1003200);
		now_ms = 0;
		health_let_the_sick_speak(&sides[0].c);
		assert_int_equal(now_ms, 0);
		close_all(sides);
	}
}

/* A place that refuses is no service that is away: it is not asked again. */
static void words_that_are_refused_are_an_error_at_once(void **state)
{
	AUTO(auto_free) char *folder = place_path(*state, PREFIX "node-0");
	AUTO(err_freep) struct err *err = NULL;
	struct side side;

	side_open(&side, *state, 0, false);
	write_file(folder, "in the way", 0600);
	assert_int_equal(health_tell_own(&side.c, "done", &err), -1);
	assert_non_null(err);
	err_freep(&err);
	assert_int_equal(health_tell_own(&side.c, "begun", &err), -1);
	assert_int_equal(pause_count, 0);
	side_close(&side);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, reset, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_all_have_told_is_gathered_at_once),
		TEST(words_of_another_round_or_state_are_waited_for),
		TEST(words_of_another_start_do_not_count),
		TEST(once_all_have_begun_each_has_the_whole_time),
		TEST(in_a_round_the_end_stays_where_it_is),
		TEST(who_has_failed_is_not_waited_for),
		TEST(what_node_0_orders_all_read),
		TEST(a_wait_gets_longer_and_is_longer_far_away),
		TEST(the_sick_one_has_a_while_to_say_so),
		TEST(words_that_are_refused_are_an_error_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
