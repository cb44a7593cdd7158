/* Which checkpoint a start that is not the first goes on from: what node 0 chooses, and how long
 * the others wait for it, by a clock that the test sets. And how often a claim is renewed by it. */
#include "tests/unit/node/agent_run.h"
#include "tests/unit/node/marked.h"
#include "tests/unit/node/pauses.h"

#include "jobs/cache/manifest/key_claim.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/node/checkpoints/resume.h"
#include "jobs/node/claim_renewal.h"
#include "jobs/node/node_flag.h"

#define CLAIM_WAIT_MS 60000

static const struct place *here;

static int reset(void **state)
{
	now_ms = 1000 * 1000;
	pause_count = 0;
	on_pause = NULL;
	if (place_make(state) < 0)
		return -1;
	here = *state;
	return 0;
}

/* ---- checkpoints ---- */

struct wish {
	int nodes, node;
	int64_t restart;
	int resume_step; /* of the order; 0: from nothing */
	bool scratch, rootless;
};

static void load_wish(struct agent_config *config, const struct place *place, struct wish wish)
{
	AUTO(auto_free) char *root = mem_format("dir:%s/far", place->root);
	AUTO(auto_free) char *rank = mem_format("%d", wish.node);
	json_t *order = order_for(place, "true");

	js_put(order, "nodes", json_integer(wish.nodes));
	js_put(order, "claim_wait_ms", json_integer(CLAIM_WAIT_MS));
	js_put(order, "scratch", json_boolean(wish.scratch));
	if (!wish.rootless)
		js_put(order, "checkpoint",
		       json_pack("{s:s, s:s, s:s, s:s, s:s}", "kind", "files", "root", root, "sync",
				 "agent", "keep", "all", "signal", "USR1"));
	if (wish.resume_step) {
		js_put_str(order, "resume_from", "/older/step");
		js_put(order, "resume_step", json_integer(wish.resume_step));
	}
	load(config, place, order, rank);
	config->restart = wish.restart;
}

static char *shared_path(void)
{
	return place_path(here, PREFIX "resume.json");
}

static char *own_path(int node)
{
	return mem_format("%s/" PREFIX "node-%d/resume.json", here->root, node);
}

static void node_0_takes_the_newest_that_is_not_older_than_its_orders(void **state)
{
	static const struct {
		int marked[2], order; /* steps; 0: none */
		int step;
	} rows[] = {
		{ { 10, 20 }, 0, 20 },  { { 10, 20 }, 15, 20 }, { { 10, 20 }, 20, 20 },
		{ { 10, 20 }, 21, 21 }, { { 0, 0 }, 0, 0 },     { { 0, 0 }, 7, 7 },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(agent_config_release) struct agent_config config = { 0 };
		AUTO(auto_free) char *far = place_path(*state, "far");
		AUTO(auto_free) char *own = own_path(0);
		AUTO(auto_free) char *wanted = NULL;
		AUTO(err_freep) struct err *err = NULL;
		bool ours = rows[i].step == rows[i].order;

		for (int n = 0; n < 2; n++)
			if (rows[i].marked[n])
				mark_step(*state, rows[i].marked[n]);
		load_wish(&config, *state, (struct wish){ 2, 0, 1, rows[i].order, false, false });
		must(resume_agree(&config, &err), &err);
		wanted = mem_format("/far/step-%d", rows[i].step);
		if (!rows[i].step) {
			assert_null(config.order->resume_from);
		} else {
			assert_int_equal(config.order->resume_step, rows[i].step);
			assert_has(config.order->resume_from,
				   ours && rows[i].marked[1] != rows[i].step ? "/older/step"
									     : wanted);
		}
		assert_true(fs_exists(own)); /* for its agent */
		must(fs_remove_tree(far, &err), &err);
	}
}

static void one_node_alone_tells_nobody(void **state)
{
	for (int nodes = 1; nodes <= 2; nodes++) {
		AUTO(agent_config_release) struct agent_config config = { 0 };
		AUTO(auto_free) char *shared = shared_path();
		AUTO(err_freep) struct err *err = NULL;

		load_wish(&config, *state, (struct wish){ nodes, 0, 1, 0, false, false });
		must(resume_agree(&config, &err), &err);
		assert_int_equal(fs_exists(shared), nodes > 1);
	}
}

static void a_first_start_and_a_precompile_have_nothing_to_agree_on(void **state)
{
	static const struct {
		struct wish wish;
		bool needed;
	} rows[] = {
		{ { 2, 0, 0, 0, false, false }, false }, { { 2, 0, 1, 0, true, false }, false },
		{ { 2, 0, 1, 0, false, true }, false },  { { 2, 0, 1, 0, false, false }, true },
		{ { 2, 0, 2, 0, false, false }, true },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(agent_config_release) struct agent_config config = { 0 };
		AUTO(auto_free) char *own = own_path(0);
		AUTO(err_freep) struct err *err = NULL;

		load_wish(&config, *state, rows[i].wish);
		assert_int_equal(resume_needed(&config), rows[i].needed);
		must(resume_agree(&config, &err), &err);
		must(resume_adopt(&config, &err), &err);
		assert_int_equal(fs_exists(own), rows[i].needed);
	}
}

/* ---- the others ---- */

static int64_t chosen_at;

static void choose_then(void)
{
	AUTO(auto_free) char *path = shared_path();

	if (chosen_at && now_ms - 1000 * 1000 >= chosen_at)
		write_file(path,
			   "{\"v\":1,\"restart\":1,\"resume_from\":\"/far/step-30\","
			   "\"resume_step\":30}",
			   0600);
}

static void the_others_look_ever_more_seldom_until_it_is_there(void **state)
{
	static const int64_t wanted[] = { 100, 200, 400, 800, 1600, 3200, 5000, 5000 };
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	load_wish(&config, *state, (struct wish){ 2, 1, 1, 5, false, false });
	chosen_at = 13000;
	on_pause = choose_then;
	must(resume_agree(&config, &err), &err);
	assert_int_equal(pause_count, STK_LENGTH(wanted));
	for (size_t i = 0; i < pause_count; i++)
		assert_int_equal(pauses[i], wanted[i]);
	assert_string_equal(config.order->resume_from, "/far/step-30");
	assert_int_equal(config.order->resume_step, 30);
}

static void they_wait_no_longer_than_for_the_claim(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	load_wish(&config, *state, (struct wish){ 2, 1, 1, 0, false, false });
	assert_int_equal(resume_agree(&config, &err), -1);
	assert_int_equal(err->code, EXIT_UNREACHABLE);
	assert_has(err->message, "has not named the checkpoint to resume from within 60 s");
	assert_in_range(now_ms, 1000 * 1000 + CLAIM_WAIT_MS, 1000 * 1000 + CLAIM_WAIT_MS + 5000);
}

static void fail_then(void)
{
	AUTO(auto_free) char *path = place_path(here, PREFIX FAILED_FILE);

	if (pause_count == 2)
		write_file(path, "{\"v\":1,\"restart\":0}", 0600);
	if (pause_count == 4)
		write_file(path, "{\"v\":1,\"restart\":1}", 0600);
}

static void who_fails_in_this_start_ends_the_wait(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	load_wish(&config, *state, (struct wish){ 2, 1, 1, 0, false, false });
	on_pause = fail_then;
	assert_int_equal(resume_agree(&config, &err), -1);
	assert_has(err->message, "another node has failed");
	assert_int_equal(err->code, EXIT_UNREACHABLE);
	assert_int_equal(pause_count, 4);
}

/* ---- the claim on a graph key ---- */

static json_t *order_claimed(const struct place *place, const char *without)
{
	AUTO(auto_free) char *cache = place_path(place, "cache");
	json_t *order = order_for(place, "true");

	js_put(order, "nodes", json_integer(2));
	js_put(order, "compile",
	       json_pack("{s:s, s:s, s:s, s:s}", "kind", "jax", "cache", cache, "graph_key", "key",
			 "claim", "c"));
	if (without)
		json_object_del(json_object_get(order, "compile"), without);
	return order;
}

/* The claim as it stands there. Yours to free. */
static char *claim_of(const struct place *place)
{
	AUTO(auto_free) char *path = place_path(place, "cache/" KEY_CLAIM_PREFIX "key.json");

	return read_file(path, NULL);
}

static void take_claim(const struct place *place, const char *nonce)
{
	AUTO(auto_free) char *cache = place_path(place, "cache");
	AUTO(key_claim_clear) struct key_claim mine = { 0 };
	AUTO(store_freep) struct store *store = NULL;
	AUTO(err_freep) struct err *err = NULL;

	must(store_open(cache, &store, &err), &err);
	key_claim_init(&mine, store, "key", "r1", nonce);
	assert_int_equal(key_claim_try(&mine, &err), 1);
}

/* True if a beat has renewed the claim. */
static bool renews(const struct place *place, struct claim_renewal *renewal,
		   const struct agent_config *config)
{
	AUTO(auto_free) char *before = claim_of(place);
	AUTO(auto_free) char *after = NULL;

	claim_renewal_beat(renewal, config);
	after = claim_of(place);
	return strcmp(before, after) != 0;
}

static void a_claim_is_renewed_each_twenty_seconds(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(claim_renewal_release) struct claim_renewal renewal = { 0 };

	take_claim(*state, "c");
	load(&config, *state, order_claimed(*state, NULL), "0");
	for (int i = 0; i < 3; i++) {
		assert_true(renews(*state, &renewal, &config));
		now_ms += 19999;
		assert_false(renews(*state, &renewal, &config));
		now_ms++;
	}
}

static void only_node_0_renews_what_the_order_says(void **state)
{
	static const char *const without[] = { "cache", "graph_key", "claim" };

	take_claim(*state, "c");
	for (size_t i = 0; i <= STK_LENGTH(without); i++) {
		AUTO(agent_config_release) struct agent_config config = { 0 };
		AUTO(claim_renewal_release) struct claim_renewal renewal = { 0 };
		bool other = i == STK_LENGTH(without);

		load(&config, *state, order_claimed(*state, other ? NULL : without[i]),
		     other ? "1" : "0");
		assert_false(renews(*state, &renewal, &config));
	}
}

static void the_claim_of_another_run_is_left_alone(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(claim_renewal_release) struct claim_renewal renewal = { 0 };

	take_claim(*state, "another");
	load(&config, *state, order_claimed(*state, NULL), "0");
	assert_false(renews(*state, &renewal, &config));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, reset, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(node_0_takes_the_newest_that_is_not_older_than_its_orders),
		TEST(one_node_alone_tells_nobody),
		TEST(a_first_start_and_a_precompile_have_nothing_to_agree_on),
		TEST(the_others_look_ever_more_seldom_until_it_is_there),
		TEST(they_wait_no_longer_than_for_the_claim),
		TEST(who_fails_in_this_start_ends_the_wait),
		TEST(a_claim_is_renewed_each_twenty_seconds),
		TEST(only_node_0_renews_what_the_order_says),
		TEST(the_claim_of_another_run_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
