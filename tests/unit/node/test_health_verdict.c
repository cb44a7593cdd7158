/* Which checks a check-up makes, and what comes of what they say: for this node, for all of them,
 * and in the report. The checks themselves are the test's, and so are the other nodes. */
#include "tests/unit/node/agent_run.h"

#include "jobs/node/claim.h"
#include "jobs/node/health/health_internal.h"

#define TIMEOUT_MS    60000
#define CLAIM_WAIT_MS 50000

/* ---- the checks ---- */

static char made[16];    /* the checks that were made, in their order, by a letter */
static char breaks;      /* the one that finds the node sick */
static bool knows_torch; /* the one of a tensor finds it out */

void __wrap_health_check_place(struct checkup *c);
void __wrap_health_neuron_devices(struct checkup *c);
void __wrap_health_neuron_counters(struct checkup *c);
void __wrap_health_check_tensor(struct checkup *c);
void __wrap_health_find_torch(struct checkup *c);
void __wrap_health_check_collectives(struct checkup *c);

static void check(struct checkup *c, char letter, const char *name)
{
	size_t len = strlen(made);

	made[len] = letter;
	made[len + 1] = '\0';
	if (letter == breaks)
		health_checkup_say(c, name, ROW_SICK, "%s is broken", name);
	else
		health_checkup_say(c, name, ROW_OK, "%s is fine", name);
}

void __wrap_health_check_place(struct checkup *c)
{
	check(c, 'p', "disk");
}

void __wrap_health_neuron_devices(struct checkup *c)
{
	check(c, 'd', "devices");
}

void __wrap_health_neuron_counters(struct checkup *c)
{
	check(c, 'c', "counters");
}

void __wrap_health_check_tensor(struct checkup *c)
{
	check(c, 't', "tensor");
	if (knows_torch)
		js_put(c->told, "torch", json_true());
}

void __wrap_health_find_torch(struct checkup *c)
{
	check(c, 'f', "torch");
}

void __wrap_health_check_collectives(struct checkup *c)
{
	check(c, 'o', "collectives");
}

/* ---- the other nodes ---- */

static int64_t now_ms;
static json_t *told;       /* the words of all nodes; borrowed */
static const char *across; /* the result of the test between nodes; NULL: it is not made */
static int gone_from;      /* the question at which a node is gone */
static int asked_gone, spoke, tested;
static json_t *verdict;          /* the verdict that all were told; owned */
static const char *const *given; /* orders of node 0, one a look; NULL at their end */
static char joined[8];

struct mono __wrap_clock_mono_now(void);
int __wrap_health_tell_own(struct checkup *c, const char *state, struct err **err);
int __wrap_health_tell_all(struct checkup *c, json_t *body, struct err **err);
json_t *__wrap_health_gather(struct checkup *c, int64_t round, struct mono end);
bool __wrap_health_peer_is_gone(struct checkup *c);
void __wrap_health_let_the_sick_speak(struct checkup *c);
json_t *__wrap_health_read_orders(struct checkup *c);
void __wrap_health_wait_a_moment(const struct checkup *c, int64_t *pause_ms);
json_t *__wrap_health_test_across(struct checkup *c, const json_t *nodes, struct mono end,
				  json_t *sick);
void __wrap_health_join_round(struct checkup *c, const json_t *orders);
json_t *__wrap_health_compare_nodes(struct checkup *c, const json_t *nodes,
				    const struct baseline *baseline, json_t *warned);
json_t *__real_health_compare_nodes(struct checkup *c, const json_t *nodes,
				    const struct baseline *baseline, json_t *warned);
void __wrap_health_compare_across(struct checkup *c, const json_t *report,
				  const struct baseline *baseline, json_t *warned);
void __wrap_health_remember_figures(struct checkup *c, const json_t *nodes, const json_t *report);

struct mono __wrap_clock_mono_now(void)
{
	return (struct mono){ now_ms };
}

int __wrap_health_tell_own(struct checkup *c, const char *state, struct err **err)
{
	(void)err;
	assert_string_equal(state, "done");
	assert_int_equal(js_int(c->told, "node", -1), c->config->node);
	assert_non_null(js_str(c->told, "host"));
	assert_in_range(js_int(c->told, "port", 0), 32000, 32699);
	assert_non_null(json_object_get(c->told, "rows"));
	return 0;
}

int __wrap_health_tell_all(struct checkup *c, json_t *body, struct err **err)
{
	(void)c, (void)err;
	verdict = json_incref(body);
	return 0;
}

json_t *__wrap_health_gather(struct checkup *c, int64_t round, struct mono end)
{
	assert_int_equal(round, 0);
	assert_int_equal(end.ms, c->begun.ms + CLAIM_WAIT_MS);
	return json_incref(told);
}

bool __wrap_health_peer_is_gone(struct checkup *c)
{
	(void)c;
	return ++asked_gone >= gone_from;
}

void __wrap_health_let_the_sick_speak(struct checkup *c)
{
	(void)c;
	spoke++;
}

json_t *__wrap_health_read_orders(struct checkup *c)
{
	AUTO(err_freep) struct err *err = NULL;
	json_t *orders = NULL;

	(void)c;
	if (!*given)
		return NULL;
	if (**given)
		must(js_parse(*given, strlen(*given), "orders", &orders, &err), &err);
	given++;
	return orders;
}

void __wrap_health_wait_a_moment(const struct checkup *c, int64_t *pause_ms)
{
	(void)c, (void)pause_ms;
	now_ms += 1000;
}

json_t *__wrap_health_test_across(struct checkup *c, const json_t *nodes, struct mono end,
				  json_t *sick)
{
	(void)nodes, (void)sick;
	tested++;
	assert_int_equal(end.ms, now_ms + c->order->timeout_ms);
	return *across ? json_pack("{s:s}", "failing", across) : json_object();
}

void __wrap_health_join_round(struct checkup *c, const json_t *orders)
{
	size_t len = strlen(joined);

	(void)c;
	joined[len] = (char)('0' + js_int(orders, "round", 0));
	joined[len + 1] = '\0';
}

/* ---- figures ---- */

static bool is_slow; /* node 0, compared with what it was before */
static int compared, remembered;

json_t *__wrap_health_compare_nodes(struct checkup *c, const json_t *nodes,
				    const struct baseline *baseline, json_t *warned)
{
	json_t *sick = __real_health_compare_nodes(c, nodes, baseline, warned);

	assert_non_null(baseline->key); /* it is loaded */
	if (is_slow)
		json_array_append_new(sick, health_sick_row(nodes, 0, "it is slow"));
	return sick;
}

void __wrap_health_compare_across(struct checkup *c, const json_t *report,
				  const struct baseline *baseline, json_t *warned)
{
	(void)c, (void)report, (void)baseline;
	compared++;
	json_array_append_new(warned, json_string("slow between them"));
}

void __wrap_health_remember_figures(struct checkup *c, const json_t *nodes, const json_t *report)
{
	(void)c, (void)nodes;
	assert_int_equal(report != NULL, tested);
	remembered++;
}

/* ---- a check-up ---- */

static json_t *said; /* the agent's news; owned */

static void keep(void *arg, const json_t *line)
{
	(void)arg;
	assert_null(said); /* once */
	said = json_deep_copy(line);
}

struct wish {
	int nodes, node;
	bool full, device, ops;
};

static int reset(void **state)
{
	static const char *const nothing[] = { NULL };

	made[0] = joined[0] = '\0';
	breaks = '\0';
	knows_torch = is_slow = false;
	now_ms = 1000 * 1000;
	told = NULL;
	across = "";
	gone_from = 1000;
	asked_gone = spoke = tested = 0;
	given = nothing;
	return place_make(state);
}

static void forget(void)
{
	json_decref(said);
	json_decref(verdict);
	said = verdict = NULL;
	made[0] = joined[0] = '\0';
	asked_gone = spoke = tested = compared = remembered = 0;
	now_ms = 1000 * 1000;
}

static int forget_all(void **state)
{
	forget();
	return place_remove(state);
}

static void check_up(struct place *place, struct wish wish)
{
	AUTO(auto_free) char *rank = mem_format("%d", wish.node);
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(claim_release) struct claim claim = { 0 };
	json_t *order = order_for(place, "true");

	js_put(order, "nodes", json_integer(wish.nodes));
	js_put(order, "claim_wait_ms", json_integer(CLAIM_WAIT_MS));
	js_put(order, "health",
	       json_pack("{s:b, s:b, s:[], s:i, s:i}", "full", wish.full, "device", wish.device,
			 "ops", "size", 1, "timeout_ms", TIMEOUT_MS));
	if (wish.ops)
		js_put(json_object_get(order, "health"), "ops", json_pack("[s]", "all_reduce"));
	forget();
	load(&config, place, order, rank);
	claim_init(&claim, &config);
	claim.master_addr = mem_copy("127.0.0.1");
	health_work(&config, &claim, keep, NULL);
	assert_non_null(said);
}

static const char *outcome(void)
{
	return js_str(said, "outcome");
}

static void checks_that_take_time_are_made_where_they_can_tell_something(void **state)
{
	static const struct {
		struct wish wish;
		char breaks;
		bool knows_torch;
		const char *made;
	} rows[] = {
		{ { 1, 0, false, true, true }, 0, false, "p" },
		{ { 1, 0, true, true, true }, 0, false, "pdcto" },
		{ { 1, 0, true, true, false }, 0, false, "pdct" },
		{ { 1, 0, true, false, true }, 0, false, "po" },
		{ { 1, 0, true, false, false }, 0, false, "p" },
		{ { 2, 1, true, true, true }, 0, false, "pdctfo" },
		{ { 2, 1, true, true, true }, 0, true, "pdcto" },
		{ { 2, 1, true, true, false }, 0, false, "pdct" },
		{ { 2, 1, true, true, true }, 't', false, "pdct" },
		{ { 1, 0, true, true, true }, 'd', false, "pdc" },
		{ { 1, 0, true, true, true }, 'c', false, "pdc" },
		{ { 1, 0, true, false, true }, 'p', false, "p" },
		{ { 1, 0, true, true, true }, 't', false, "pdct" },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		breaks = rows[i].breaks;
		knows_torch = rows[i].knows_torch;
		gone_from = 1;
		check_up(*state, rows[i].wish);
		if (strcmp(made, rows[i].made) != 0)
			fail_msg("row %zu: %s", i, made);
	}
}

static void one_node_speaks_for_itself(void **state)
{
	static const struct {
		bool full;
		char breaks;
		const char *outcome, *verdict, *message;
	} rows[] = {
		{ true, 0, HEALTH_HEALTHY, HEALTH_HEALTHY, NULL },
		{ true, 'd', HEALTH_SICK, HEALTH_SICK, "the node is sick: devices is broken" },
		{ false, 0, HEALTH_HEALTHY, "unknown", NULL },
		{ false, 'p', HEALTH_SICK, HEALTH_SICK, "disk is broken" },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		const json_t *report;

		breaks = rows[i].breaks;
		check_up(*state, (struct wish){ 1, 0, rows[i].full, true, true });
		report = json_object_get(said, "report");
		assert_string_equal(outcome(), rows[i].outcome);
		assert_string_equal(js_str(report, "verdict"), rows[i].verdict);
		if (rows[i].message)
			assert_has(js_str(said, "message"), rows[i].message);
		else
			assert_null(js_str(said, "message"));
		assert_true(js_int(report, "began", 0) > 0);
		assert_true(js_int(report, "ended", 0) >= js_int(report, "began", 0));
		/* The report has the checks of this node, or those of each of them. */
		assert_int_equal(json_object_get(report, "checks") != NULL, !rows[i].full);
		assert_int_equal(json_object_get(report, "nodes") != NULL, rows[i].full);
		assert_null(verdict); /* there is nobody to tell */
		assert_int_equal(spoke, 0);
		assert_int_equal(tested, 0);
	}
}

/* ---- node 0 of two ---- */

static json_t *node_said(const char *host, const char *check, const char *verdict_of_it)
{
	return json_pack("{s:s, s:i, s:[{s:s, s:s, s:s}], s:{}}", "host", host, "devices", 1,
			 "rows", "check", check, "verdict", verdict_of_it, "words", "it is so",
			 "figures");
}

static void node_0_decides_for_all(void **state)
{
	static const struct {
		const char *check, *of_0, *of_1; /* what both have said of it */
		const char *across;
		const char *outcome, *verdict, *message;
		int tested, spoke;
	} rows[] = {
		{ "disk", ROW_OK, ROW_OK, "", HEALTH_HEALTHY, HEALTH_HEALTHY, NULL, 1, 0 },
		{ "disk", ROW_WARNED, ROW_UNCHECKED, "", HEALTH_HEALTHY, HEALTH_HEALTHY, NULL, 1,
		  0 },
		{ "disk", ROW_OK, ROW_OK, "no way", HEALTH_FAILING, HEALTH_FAILING, "no way", 1,
		  0 },
		{ "disk", ROW_OK, ROW_SICK, "", HEALTH_OTHER, HEALTH_SICK,
		  "node 1 (h1) is sick: it is so", 0, 1 },
		{ "disk", ROW_SICK, ROW_OK, "", HEALTH_SICK, HEALTH_SICK,
		  "node 0 (h0) is sick: it is so", 0, 0 },
		{ "disk", ROW_SICK, ROW_SICK, "", HEALTH_SICK, HEALTH_SICK,
		  "node 0 (h0) is sick: it is so; node 1 (h1) is sick: it is so", 0, 0 },
		{ "tensor", ROW_SICK, ROW_SICK, "", HEALTH_FAILING, HEALTH_FAILING,
		  "it is so; the same on all 2 nodes", 0, 0 },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		const json_t *report;
		json_auto_t *both =
			json_pack("[o, o]", node_said("h0", rows[i].check, rows[i].of_0),
				  node_said("h1", rows[i].check, rows[i].of_1));

		told = both;
		across = rows[i].across;
		check_up(*state, (struct wish){ 2, 0, true, true, true });
		report = json_object_get(said, "report");
		if (strcmp(outcome(), rows[i].outcome) != 0 || tested != rows[i].tested ||
		    spoke != rows[i].spoke)
			fail_msg("row %zu: %s, %d, %d", i, outcome(), tested, spoke);
		if (rows[i].message)
			assert_has(js_str(said, "message"), rows[i].message);
		assert_string_equal(js_str(verdict, "do"), "verdict");
		assert_string_equal(js_str(verdict, "verdict"), rows[i].verdict);
		assert_string_equal(js_str(report, "verdict"), rows[i].verdict);
		assert_int_equal(json_array_size(json_object_get(report, "nodes")), 2);
		assert_int_equal(json_object_get(report, "across") != NULL, rows[i].tested);
		assert_int_equal(compared, rows[i].tested);
		assert_int_equal(json_array_size(json_object_get(report, "warned")),
				 rows[i].tested);
		/* Figures of a node that is not well are not learnt. */
		assert_int_equal(remembered, strcmp(rows[i].verdict, HEALTH_HEALTHY) == 0);
	}
}

static void without_collectives_the_way_between_nodes_is_not_tested(void **state)
{
	json_auto_t *both = json_pack("[o, o]", node_said("h0", "disk", ROW_OK),
				      node_said("h1", "disk", ROW_OK));

	told = both;
	check_up(*state, (struct wish){ 2, 0, true, true, false });
	assert_string_equal(outcome(), HEALTH_HEALTHY);
	assert_int_equal(tested, 0);
	assert_int_equal(remembered, 1);
}

/* A slow figure of one node alone may be what is usual from now on; of several, the others are not
 * slow. */
static void figures_of_a_node_that_is_alone_and_only_slow_are_remembered(void **state)
{
	json_auto_t *both = json_pack("[o, o]", node_said("h0", "disk", ROW_OK),
				      node_said("h1", "disk", ROW_OK));

	told = both;
	is_slow = true;
	for (int nodes = 1; nodes <= 2; nodes++) {
		check_up(*state, (struct wish){ nodes, 0, true, true, true });
		assert_string_equal(outcome(), HEALTH_SICK);
		assert_int_equal(remembered, nodes == 1);
	}
	breaks = 'd';
	check_up(*state, (struct wish){ 1, 0, true, true, true });
	assert_int_equal(remembered, 0); /* it is not only slow */
}

/* The other node failed for a cause of its own, which is what has to be told. */
static void after_a_node_has_left_there_is_no_verdict(void **state)
{
	for (gone_from = 1; gone_from <= 2; gone_from++) {
		json_auto_t *both = json_pack("[o, o]", node_said("h0", "disk", ROW_OK),
					      node_said("h1", "disk", ROW_SICK));

		told = both;
		check_up(*state, (struct wish){ 2, 0, true, true, true });
		assert_string_equal(outcome(), HEALTH_OTHER);
		assert_string_equal(js_str(json_object_get(said, "report"), "verdict"), "unknown");
		assert_null(verdict);
		assert_int_equal(spoke, 0);
	}
}

/* The others' checks that are as they should be would fill the report. */
static void of_many_nodes_only_what_is_not_well_is_shown(void **state)
{
	for (int count = 8; count <= 9; count++) {
		json_auto_t *all = json_array();
		const json_t *nodes, *one;

		for (int i = 0; i < count; i++)
			json_array_append_new(all,
					      node_said("h", "disk", i == 3 ? ROW_WARNED : ROW_OK));
		json_object_set_new(json_array_get(all, 3), "figures", json_pack("{s:i}", "x", 1));
		told = all;
		check_up(*state, (struct wish){ count, 0, true, true, true });
		nodes = json_object_get(json_object_get(said, "report"), "nodes");
		assert_int_equal(json_array_size(nodes), count);
		for (int i = 0; i < count; i++) {
			one = json_array_get(nodes, (size_t)i);
			assert_int_equal(js_int(one, "node", -1), i);
			assert_string_equal(js_str(one, "host"), "h");
			assert_int_equal(json_array_size(json_object_get(one, "checks")),
					 count == 8 || i == 3);
			assert_int_equal(json_object_get(one, "figures") != NULL, i == 3);
		}
	}
}

/* ---- another node ---- */

static void another_node_does_what_node_0_orders_until_its_verdict(void **state)
{
	static const char *const orders[] = { "",
					      "{\"do\":\"test\",\"round\":1}",
					      "{\"do\":\"test\",\"round\":1}",
					      "{\"do\":\"test\",\"round\":3}",
					      "{\"do\":\"verdict\",\"verdict\":\"healthy\"}",
					      NULL };

	given = orders;
	check_up(*state, (struct wish){ 2, 1, true, true, true });
	assert_string_equal(joined, "13"); /* each once */
	assert_string_equal(outcome(), HEALTH_HEALTHY);
	assert_null(json_object_get(json_object_get(said, "report"), "nodes"));
	assert_non_null(json_object_get(json_object_get(said, "report"), "checks"));
	assert_null(verdict);
}

static void it_takes_the_verdict_for_what_it_says_of_it(void **state)
{
	static const struct {
		const char *orders, *outcome;
		int spoke;
	} rows[] = {
		{ "{\"do\":\"verdict\",\"verdict\":\"sick\",\"words\":\"w\",\"sick\":[{\"node\":1}]"
		  "}",
		  HEALTH_SICK, 0 },
		{ "{\"do\":\"verdict\",\"verdict\":\"sick\",\"words\":\"w\",\"sick\":[{\"node\":0}]"
		  "}",
		  HEALTH_OTHER, 1 },
		{ "{\"do\":\"verdict\",\"verdict\":\"failing\",\"words\":\"w\"}", HEALTH_OTHER, 1 },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		const char *const orders[] = { rows[i].orders, NULL };

		given = orders;
		check_up(*state, (struct wish){ 2, 1, true, true, true });
		assert_string_equal(outcome(), rows[i].outcome);
		assert_string_equal(js_str(said, "message"), "w");
		assert_int_equal(spoke, rows[i].spoke);
	}
}

static void without_a_verdict_it_leaves(void **state)
{
	/* The wait is as long as the others may begin later, and three check-ups. */
	const int64_t longest = CLAIM_WAIT_MS + 3 * TIMEOUT_MS + 2 * 30000;
	const struct agent_config one = { .nodes = 1,
					  .order = &(struct order){ .health.timeout_ms = 7 } };

	check_up(*state, (struct wish){ 2, 1, true, true, true });
	assert_string_equal(outcome(), HEALTH_OTHER);
	assert_int_equal(now_ms, 1000 * 1000 + longest);
	assert_int_equal(spoke, 0);
	gone_from = 3;
	check_up(*state, (struct wish){ 2, 1, true, true, true });
	assert_string_equal(outcome(), HEALTH_OTHER);
	assert_int_equal(now_ms, 1000 * 1000 + 2000);
	assert_int_equal(health_longest_ms(&one), 30007);
}

/* A node that is found sick fails only after the verdict: it is heard first. */
static void a_verdict_counts_though_somebody_is_gone(void **state)
{
	static const char *const orders[] = { "{\"do\":\"verdict\",\"verdict\":\"healthy\"}",
					      NULL };

	gone_from = 1;
	given = orders;
	check_up(*state, (struct wish){ 2, 1, true, true, true });
	assert_string_equal(outcome(), HEALTH_HEALTHY);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, reset, forget_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(checks_that_take_time_are_made_where_they_can_tell_something),
		TEST(one_node_speaks_for_itself),
		TEST(node_0_decides_for_all),
		TEST(without_collectives_the_way_between_nodes_is_not_tested),
		TEST(figures_of_a_node_that_is_alone_and_only_slow_are_remembered),
		TEST(after_a_node_has_left_there_is_no_verdict),
		TEST(of_many_nodes_only_what_is_not_well_is_shown),
		TEST(another_node_does_what_node_0_orders_until_its_verdict),
		TEST(it_takes_the_verdict_for_what_it_says_of_it),
		TEST(without_a_verdict_it_leaves),
		TEST(a_verdict_counts_though_somebody_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
