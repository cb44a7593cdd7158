/* Orders with an address that no store has, or with what an agent of this age does not know: who
 * cannot begin says so, and what can be done without it is done. */
#include "tests/unit/node/agent_run.h"

#include "jobs/node/checkpoints/checkpointer.h"
#include "jobs/node/claim_renewal.h"
#include "jobs/node/upload/uploader.h"

#define NOWHERE "s3://"

/* ---- the checkpointer ---- */

static void put_checkpoint(json_t *order, const char *kind, const char *root)
{
	js_put(order, "checkpoint",
	       json_pack("{s:s, s:s, s:s, s:s, s:s}", "kind", kind, "root", root, "sync", "agent",
			 "keep", "all", "signal", "USR1"));
}

/* Returns what the checkpointer says before it gives up. Steals the order. */
static char *checkpointer_says(const struct place *place, json_t *order)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(claim_release) struct claim claim = { 0 };
	char text[4096] = "";
	int news[2], orders[2];

	load(&config, place, order, "0");
	claim_init(&claim, &config);
	assert_int_equal(pipe(news), 0);
	assert_int_equal(pipe(orders), 0);
	assert_int_equal(checkpointer_work(&config, &claim, news[1], orders[0]), 1);
	assert_true(read(news[0], text, sizeof text - 1) > 0);
	for (int i = 0; i < 2; i++) {
		close(news[i]);
		close(orders[i]);
	}
	return mem_copy(text);
}

static void a_checkpointer_that_cannot_begin_says_why(void **state)
{
	json_t *root = order_for(*state, "true"), *kind = order_for(*state, "true");
	json_t *cache = order_for(*state, "true");
	AUTO(auto_free) char *of_root = NULL;
	AUTO(auto_free) char *of_kind = NULL;
	AUTO(auto_free) char *of_cache = NULL;

	put_checkpoint(root, "files", NOWHERE);
	of_root = checkpointer_says(*state, root);
	assert_has(of_root, "\"trouble\"");
	put_checkpoint(kind, "of-tomorrow", "/saved");
	of_kind = checkpointer_says(*state, kind);
	assert_has(of_kind, "checkpoints of unknown kind of-tomorrow");
	js_put(cache, "compile", json_pack("{s:s, s:s}", "kind", "jax", "cache", NOWHERE));
	of_cache = checkpointer_says(*state, cache);
	assert_has(of_cache, "\"trouble\"");
}

/* ---- the uploader ---- */

static void an_uploader_without_a_workspace_ends_at_once(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(claim_release) struct claim claim = { 0 };
	int news[2], orders[2];

	load(&config, *state, order_for(*state, "true"), "0");
	config.workspace = NOWHERE;
	config.object_workspace = true;
	claim_init(&claim, &config);
	assert_int_equal(pipe(news), 0);
	assert_int_equal(pipe(orders), 0);
	assert_int_equal(uploader_work(&config, &claim, news[1], orders[0]), 1);
	for (int i = 0; i < 2; i++) {
		close(news[i]);
		close(orders[i]);
	}
}

/* ---- the claim on the graph key ---- */

static void a_claim_that_cannot_be_renewed_stops_nothing(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(claim_renewal_release) struct claim_renewal renewal = { 0 };
	json_t *order = order_for(*state, "true");

	js_put(order, "compile",
	       json_pack("{s:s, s:s, s:s}", "kind", "jax", "cache", NOWHERE, "graph_key", "k"));
	load(&config, *state, order, "0");
	claim_renewal_beat(&renewal, &config);
	assert_null(renewal.cache);
	claim_renewal_beat(&renewal, &config);
	assert_null(renewal.cache);
}

/* ---- the order itself ---- */

static void an_order_at_no_address_is_named(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct agent_config config;

	(void)state;
	assert_int_equal(agent_config_load(NOWHERE, "0", &config, &err), -1);
	assert_has(err->message, "cannot read the order 's3://'");
}

static void secrets_and_limits_that_make_no_sense_are_told_before_the_command(void **state)
{
	static const struct {
		const char *member, *json, *words, *class;
	} rows[] = {
		{ "secret_from", "{\"KEY\":\"env:KEY\"}",
		  "no job on AWS can read it from 'env:KEY'", "quota-permission" },
		{ "stall", "{\"mode\":\"fixed\",\"limit_ms\":0}",
		  "'stall.limit_ms' is not positive", "user-config" },
		{ "env", "{\"A\":\"${STOKER_NOWHERE}\"}", "'STOKER_NOWHERE' is not set here",
		  "user-config" },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *ran = place_path(*state, "ran");
		AUTO(auto_free) char *script = mem_format("touch %s", ran);
		json_t *order = order_for(*state, script);
		json_auto_t *body = NULL;
		const json_t *error;

		js_put(order, rows[i].member, json_loads(rows[i].json, 0, NULL));
		js_put(order, "attempt", json_integer((json_int_t)i + 1));
		assert_int_equal(run(*state, order), AGENT_EXIT_FAILED);
		body = report(*state);
		error = json_object_get(body, "error");
		assert_has(js_str(error, "message"), rows[i].words);
		assert_string_equal(js_str(error, "class"), rows[i].class);
		assert_false(fs_exists(ran));
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_checkpointer_that_cannot_begin_says_why),
		TEST(an_uploader_without_a_workspace_ends_at_once),
		TEST(a_claim_that_cannot_be_renewed_stops_nothing),
		TEST(an_order_at_no_address_is_named),
		TEST(secrets_and_limits_that_make_no_sense_are_told_before_the_command),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
