/* The search for the node to blame among many, whose answers the test gives: which nodes are sick,
 * which two do not get on with each other, and how much time a round takes. */
#include "tests/unit/node/place.h"

#include "jobs/node/health/health_internal.h"

#define NODES_MAX  40
#define PORT       30000
#define TIMEOUT_MS 600000

/* ---- the nodes ---- */

static int nodes;
static bool sick[NODES_MAX];   /* fails in any group */
static int apart[2];           /* fail in one group; -1: none do */
static bool silent[NODES_MAX]; /* reports nothing */
static int64_t takes_ms;       /* a round */
static int gone_after;         /* rounds; a node has left then */
static json_t *orders;         /* of the last round; borrowed */
static int rounds;
static int64_t now_ms;

struct mono __wrap_clock_mono_now(void);
int __wrap_health_tell_all(struct checkup *c, json_t *body, struct err **err);
json_t *__wrap_health_gather(struct checkup *c, int64_t round, struct mono end);
bool __wrap_health_peer_is_gone(struct checkup *c);
char *__wrap_health_run_torch(struct checkup *c, int count, int rank, const char *addr,
			      int64_t port, struct mono end, const char *name, json_t *figures);

struct mono __wrap_clock_mono_now(void)
{
	return (struct mono){ now_ms };
}

static bool has(const json_t *group, int node)
{
	const json_t *member;
	size_t i;

	json_array_foreach (json_object_get(group, "members"), i, member)
		if (json_integer_value(member) == node)
			return true;
	return false;
}

static bool fails(const json_t *group)
{
	for (int node = 0; node < nodes; node++)
		if (sick[node] && has(group, node))
			return true;
	return apart[0] >= 0 && has(group, apart[0]) && has(group, apart[1]);
}

static const json_t *group_of(int node)
{
	const json_t *group;
	size_t i;

	json_array_foreach (json_object_get(orders, "groups"), i, group)
		if (has(group, node))
			return group;
	return NULL;
}

/* Checks what every order has to be. */
int __wrap_health_tell_all(struct checkup *c, json_t *body, struct err **err)
{
	const json_t *group;
	size_t i;

	(void)c, (void)err;
	orders = body;
	rounds++;
	assert_string_equal(js_str(body, "do"), "test");
	assert_string_equal(js_str(body, "how"), "torch");
	assert_int_equal(js_int(body, "round", 0), rounds);
	json_array_foreach (json_object_get(body, "groups"), i, group) {
		const json_t *members = json_object_get(group, "members");
		int first = (int)json_integer_value(json_array_get(members, 0));
		char addr[32];

		snprintf(addr, sizeof addr, "10.0.0.%d", first);
		assert_int_equal(js_int(group, "first", -1), first);
		assert_string_equal(js_str(group, "addr"), addr);
		/* Another one in each round, as the one before may be held by what hangs. */
		assert_int_equal(js_int(group, "port", 0), PORT + first + (rounds - 1) % 24);
		assert_int_equal(json_array_size(json_object_get(group, "hosts")),
				 json_array_size(members));
		assert_string_equal(
			json_string_value(json_array_get(json_object_get(group, "hosts"), 0)),
			addr);
	}
	return 0;
}

char *__wrap_health_run_torch(struct checkup *c, int count, int rank, const char *addr,
			      int64_t port, struct mono end, const char *name, json_t *figures)
{
	const json_t *group = group_of(0);

	(void)c;
	assert_int_equal(count, json_array_size(json_object_get(group, "members")));
	assert_int_equal(
		json_integer_value(json_array_get(json_object_get(group, "members"), (size_t)rank)),
		0);
	assert_string_equal(addr, js_str(group, "addr"));
	assert_int_equal(port, js_int(group, "port", 0));
	assert_int_equal(end.ms, now_ms + js_int(orders, "limit_ms", 0));
	assert_string_equal(name, "across");
	if (fails(group))
		return mem_copy("a wrong sum");
	js_put(figures, "across", json_pack("{s:f}", "busbw", 2.5));
	return NULL;
}

json_t *__wrap_health_gather(struct checkup *c, int64_t round, struct mono end)
{
	json_t *results = json_array();

	assert_int_equal(round, rounds);
	/* The others answer a little later, and later still in a far workspace. */
	assert_int_equal(end.ms, now_ms + js_int(orders, "limit_ms", 0) +
					 (c->config->object_workspace ? 15000 : 5000));
	now_ms += takes_ms;
	for (int node = 0; node < nodes; node++) {
		const json_t *group = group_of(node);

		if (silent[node])
			json_array_append_new(results, json_null());
		else if (!group)
			json_array_append_new(results, json_object());
		else
			json_array_append_new(results,
					      json_pack("{s:{s:b, s:s*}}", "result", "well",
							!fails(group), "words",
							fails(group) ? "a wrong sum" : NULL));
	}
	return results;
}

bool __wrap_health_peer_is_gone(struct checkup *c)
{
	(void)c;
	return rounds >= gone_after;
}

/* ---- node 0 ---- */

struct search {
	struct agent_config config;
	struct order order;
	struct checkup c;
	json_t *told, *found, *report;
};

static int reset(void **state)
{
	memset(sick, 0, sizeof sick);
	memset(silent, 0, sizeof silent);
	apart[0] = apart[1] = -1;
	takes_ms = 1000;
	gone_after = 1000;
	rounds = 0;
	now_ms = 1000 * 1000;
	return place_make(state);
}

static void search_in(struct search *search, struct place *place, int count, int64_t left_ms,
		      bool far)
{
	struct mono end = { now_ms + left_ms };

	nodes = count;
	rounds = 0;
	*search = (struct search){ .told = json_array(), .found = json_array() };
	search->order.health = (struct order_health){ .timeout_ms = TIMEOUT_MS };
	search->config = (struct agent_config){ .order = &search->order,
						.nodes = count,
						.object_workspace = far };
	search->c = (struct checkup){ .config = &search->config,
				      .order = &search->order.health,
				      .folder = place->root,
				      .told = json_object(),
				      .figures = json_object() };
	health_find_kind(&search->c);
	for (int i = 0; i < count; i++) {
		AUTO(auto_free) char *addr = mem_format("10.0.0.%d", i);

		json_array_append_new(search->told, json_pack("{s:b, s:s, s:i}", "torch", 1, "addr",
							      addr, "port", PORT + i));
	}
	search->report = health_test_across(&search->c, search->told, end, search->found);
}

static void search_all(struct search *search, struct place *place, int count)
{
	search_in(search, place, count, 1000 * (int64_t)TIMEOUT_MS, false);
}

static void search_end(struct search *search)
{
	order_release(&search->order);
	json_decref(search->c.told);
	json_decref(search->c.figures);
	json_decref(search->told);
	json_decref(search->found);
	json_decref(search->report);
}

static bool is_found(const struct search *search, int node)
{
	const json_t *row;
	size_t i;

	json_array_foreach (search->found, i, row)
		if (js_int(row, "node", -1) == node)
			return true;
	return false;
}

static const char *words_of(const struct search *search, int node)
{
	const json_t *row;
	size_t i;

	json_array_foreach (search->found, i, row)
		if (js_int(row, "node", -1) == node)
			return js_str(row, "words");
	return "";
}

/* ---- */

static void where_all_get_on_one_round_is_enough(void **state)
{
	for (int count = 1; count <= 9; count += 4) {
		const json_t *round;
		struct search search;

		search_all(&search, *state, count);
		assert_int_equal(rounds, 1);
		assert_int_equal(json_array_size(search.found), 0);
		assert_string_equal(js_str(search.report, "how"), "torch");
		assert_null(js_str(search.report, "failing"));
		round = json_array_get(json_object_get(search.report, "rounds"), 0);
		assert_int_equal(js_int(round, "groups", 0), 1);
		assert_int_equal(js_int(round, "failed", -1), 0);
		assert_non_null(
			json_object_get(json_object_get(search.report, "figures"), "all_reduce"));
		search_end(&search);
	}
}

static void any_node_that_fails_is_found_alone(void **state)
{
	static const int counts[] = { 2, 3, 5, 8, 13 };

	for (size_t i = 0; i < STK_LENGTH(counts); i++)
		for (int bad = 0; bad < counts[i]; bad++) {
			AUTO(auto_free) char *words = NULL;
			struct search search;

			memset(sick, 0, sizeof sick);
			sick[bad] = true;
			search_all(&search, *state, counts[i]);
			if (json_array_size(search.found) != 1 || !is_found(&search, bad))
				fail_msg("node %d of %d is not found", bad, counts[i]);
			words = mem_format("fails the test of collectives alone, too: node %d: a "
					   "wrong sum",
					   bad);
			assert_string_equal(words_of(&search, bad), words);
			assert_null(js_str(search.report, "failing"));
			assert_null(json_object_get(search.report, "figures"));
			search_end(&search);
		}
}

static void several_nodes_that_fail_are_all_found(void **state)
{
	static const int bad[] = { 0, 1, 6, 11 };
	struct search search;

	for (size_t i = 0; i < STK_LENGTH(bad); i++)
		sick[bad[i]] = true;
	search_all(&search, *state, 12);
	assert_int_equal(json_array_size(search.found), STK_LENGTH(bad));
	for (size_t i = 0; i < STK_LENGTH(bad); i++)
		assert_true(is_found(&search, bad[i]));
	search_end(&search);
}

static void who_does_not_answer_has_failed(void **state)
{
	struct search search;

	silent[2] = true;
	search_all(&search, *state, 4);
	assert_int_equal(json_array_size(search.found), 1);
	assert_string_equal(words_of(&search, 2),
			    "fails the test of collectives alone, too: node 2 has not reported the "
			    "result of the test");
	search_end(&search);
}

static void where_each_fails_alone_none_is_to_blame(void **state)
{
	struct search search;

	for (int i = 0; i < 4; i++)
		sick[i] = true;
	search_all(&search, *state, 4);
	assert_int_equal(json_array_size(search.found), 0);
	assert_string_equal(js_str(search.report, "failing"),
			    "an all-reduce between the 4 nodes fails, and on each of them alone, "
			    "too: node 0: a wrong sum");
	search_end(&search);
}

/* The fault is between them: each is tried with a node that gets on with others. */
static void two_that_do_not_get_on_are_told_and_not_blamed(void **state)
{
	static const int pairs[][2] = { { 0, 1 }, { 2, 3 }, { 0, 7 }, { 3, 4 } };

	for (size_t i = 0; i < STK_LENGTH(pairs); i++) {
		struct search search;

		apart[0] = pairs[i][0];
		apart[1] = pairs[i][1];
		search_all(&search, *state, 8);
		assert_int_equal(json_array_size(search.found), 0);
		assert_non_null(strstr(js_str(search.report, "failing"),
				       "between the 8 nodes fails, and no single node is the "
				       "cause: node "));
		search_end(&search);
	}
}

static void rounds_are_told_with_what_failed_in_them(void **state)
{
	/* All four, both halves, then the two of the failed half. */
	static const int wanted[][2] = { { 1, 1 }, { 2, 1 }, { 2, 1 } };
	const json_t *round;
	struct search search;
	size_t i;

	sick[3] = true;
	search_all(&search, *state, 4);
	assert_int_equal(rounds, STK_LENGTH(wanted));
	for (i = 0; i < STK_LENGTH(wanted); i++) {
		round = json_array_get(json_object_get(search.report, "rounds"), i);
		assert_int_equal(js_int(round, "groups", 0), wanted[i][0]);
		assert_int_equal(js_int(round, "failed", -1), wanted[i][1]);
	}
	search_end(&search);
}

/* Half of the time for all of them, and then equal shares of what is left for each round to come,
 * the two crosswise ones among them. */
static void each_round_has_its_share_of_what_is_left(void **state)
{
	enum { LEFT_MS = 900000, TAKES_MS = 90000 };
	static const int shares[] = { 2, 4, 3 };
	int64_t left = LEFT_MS;
	const json_t *round;
	struct search search;
	size_t i;

	takes_ms = TAKES_MS;
	sick[7] = true;
	search_in(&search, *state, 8, LEFT_MS, false);
	json_array_foreach (json_object_get(search.report, "rounds"), i, round) {
		if (i < STK_LENGTH(shares))
			assert_int_equal(js_int(round, "limit_ms", 0), left / shares[i]);
		left -= TAKES_MS;
	}
	assert_int_equal(rounds, 4);
	search_end(&search);
}

/* The others begin later in a far workspace. */
static void a_round_that_would_be_too_short_is_not_begun(void **state)
{
	/* Least: a 32nd of the timeout, and 20 s far away. */
	static const struct {
		int64_t left_ms;
		bool far, begun;
	} rows[] = {
		{ 2 * 18750 + 1000, false, true },
		{ 2 * 18750 + 999, false, false },
		{ 2 * 30000 + 1000, true, true },
		{ 2 * 30000 + 999, true, false },
	};

	sick[1] = true;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct search search;

		search_in(&search, *state, 2, rows[i].left_ms, rows[i].far);
		if (rounds != (rows[i].begun ? 2 : 1))
			fail_msg("row %zu: %d rounds", i, rounds);
		if (!rows[i].begun) {
			assert_int_equal(json_array_size(search.found), 0);
			assert_non_null(
				strstr(js_str(search.report, "failing"),
				       "no single node is the cause within health.timeout"));
		}
		search_end(&search);
	}
}

static void after_a_node_has_left_nobody_is_blamed(void **state)
{
	struct search search;

	sick[3] = true;
	gone_after = 2;
	search_all(&search, *state, 8);
	assert_int_equal(rounds, 2);
	assert_int_equal(json_array_size(search.found), 0);
	search_end(&search);
}

static void without_a_torch_on_all_of_them_it_is_not_tested(void **state)
{
	struct search search;

	search = (struct search){ .told = json_array(), .found = json_array() };
	nodes = 2;
	search.config = (struct agent_config){ .order = &search.order, .nodes = 2 };
	search.c = (struct checkup){ .config = &search.config,
				     .order = &search.order.health,
				     .folder = ((struct place *)*state)->root,
				     .told = json_object(),
				     .figures = json_object() };
	health_find_kind(&search.c);
	json_array_append_new(search.told, json_pack("{s:b}", "torch", 1));
	json_array_append_new(search.told, json_object());
	search.report =
		health_test_across(&search.c, search.told, (struct mono){ now_ms }, search.found);
	assert_int_equal(rounds, 0);
	assert_null(js_str(search.report, "how"));
	assert_non_null(strstr(js_str(search.report, "unchecked"), "neither mpirun with ssh"));
	search_end(&search);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, reset, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(where_all_get_on_one_round_is_enough),
		TEST(any_node_that_fails_is_found_alone),
		TEST(several_nodes_that_fail_are_all_found),
		TEST(who_does_not_answer_has_failed),
		TEST(where_each_fails_alone_none_is_to_blame),
		TEST(two_that_do_not_get_on_are_told_and_not_blamed),
		TEST(rounds_are_told_with_what_failed_in_them),
		TEST(each_round_has_its_share_of_what_is_left),
		TEST(a_round_that_would_be_too_short_is_not_begun),
		TEST(after_a_node_has_left_nobody_is_blamed),
		TEST(without_a_torch_on_all_of_them_it_is_not_tested),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
