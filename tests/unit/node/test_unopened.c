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
	       json_pack("{s:s, s:s, s:s, s:s}", "kind", "jax", "cache", NOWHERE, "graph_key", "k",
			 "claim", "c"));
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

/* ---- the agent's own folder ---- */

static void lead_astray(const char *path)
{
	assert_int_equal(symlink("/nowhere/else", path), 0);
}

static void put_file(const char *path)
{
	write_file(path, "", 0600);
}

/* No report is there yet in which it could be said. */
static void an_agent_that_cannot_use_its_folder_says_so_and_runs_nothing(void **state)
{
	static const struct {
		const char *name, *words;
		void (*spoil)(const char *path);
	} rows[] = {
		{ "", "node-0", put_file },
		{ "/" LOCK_FILE, "cannot open '", lead_astray },
		{ "/" LOG_FILE, "cannot open the log '", lead_astray },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *ran = place_path(*state, "ran");
		AUTO(auto_free) char *script = mem_format("touch %s", ran);
		AUTO(auto_free) char *prefix = mem_format("runs/r%zu/train-1/", i);
		AUTO(auto_free) char *name = mem_format("%snode-0%s", prefix, rows[i].name);
		AUTO(auto_free) char *path = place_path(*state, name);
		AUTO(auto_free) char *above = fs_dirname(path);
		AUTO(auto_free) char *said = NULL;
		AUTO(err_freep) struct err *err = NULL;
		json_t *order = order_for(*state, script);

		js_put_str(order, "prefix", prefix);
		must(fs_mkdirs(above, &err), &err);
		rows[i].spoil(path);
		order_write(*state, order);
		assert_int_equal(end_of(start(*state, prefix, 0, plain_env, NULL)),
				 AGENT_EXIT_FAILED);
		said = output(*state);
		assert_has(said, rows[i].words);
		assert_has(said, path);
		assert_false(fs_exists(ran));
	}
}

/* ---- the claim of the attempt ---- */

static void a_claim_that_makes_no_sense_is_told_and_left_as_it_is(void **state)
{
	AUTO(auto_free) char *ran = place_path(*state, "ran");
	AUTO(auto_free) char *script = mem_format("touch %s", ran);
	AUTO(auto_free) char *path = place_path(*state, "runs/r1/claim/train");
	AUTO(auto_free) char *left = NULL;
	json_auto_t *body = NULL;

	write_file(path, "[torn", 0600);
	assert_int_equal(run_script(*state, script), AGENT_EXIT_FAILED);
	body = report(*state);
	assert_has(js_str(json_object_get(body, "error"), "message"), "cannot read the claim");
	assert_false(fs_exists(ran));
	left = read_file(path, NULL);
	assert_string_equal(left, "[torn");
}

/* ---- the compiler ---- */

/* `compiler`: what has filled the cache, NULL: nothing has. Steals it. */
static void run_with_cache(const struct place *place, int attempt, const char *script,
			   json_t *compiler, const char *tolerated, int exit_status)
{
	json_t *order = order_for(place, script);

	js_put(order, "attempt", json_integer(attempt));
	js_put(order, "compile",
	       json_pack("{s:s, s:s, s:s, s:o*, s:s*}", "kind", "jax", "cache", place->root,
			 "program", "/usr/bin/python3", "compiler", compiler, "tolerated",
			 tolerated));
	assert_int_equal(run(place, order), exit_status);
}

static void a_compiler_other_than_the_caches_is_refused_unless_it_is_tolerated(void **state)
{
	AUTO(auto_free) char *ran = place_path(*state, "ran");
	AUTO(auto_free) char *script = mem_format("touch %s", ran);
	json_auto_t *first = NULL, *refused = NULL, *tolerated = NULL;
	json_t *other;
	const json_t *error;
	const char *pair;

	run_with_cache(*state, 1, "true", NULL, NULL, 0);
	first = report(*state);
	other = json_deep_copy(js_path(first, "compiler.found"));
	assert_non_null(js_str(other, "python"));
	js_put_str(other, "python", "2.7");

	run_with_cache(*state, 2, script, json_incref(other), NULL, AGENT_EXIT_FAILED);
	refused = report(*state);
	error = json_object_get(refused, "error");
	assert_has(js_str(error, "message"), "the training would run with python 3");
	assert_has(js_str(error, "message"), "in place of 2.7");
	assert_has(js_str(error, "hint"), "keep the versions from phase 1 on");
	assert_string_equal(js_str(error, "class"), "compile");
	assert_false(fs_exists(ran));
	pair = js_str(json_object_get(refused, "compiler"), "pair");
	assert_non_null(pair);

	run_with_cache(*state, 3, script, other, pair, 0);
	tolerated = report(*state);
	assert_state(tolerated, "ended", 0);
	assert_string_equal(js_str(json_object_get(tolerated, "compiler"), "pair"), pair);
	assert_true(fs_exists(ran));
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
		TEST(an_agent_that_cannot_use_its_folder_says_so_and_runs_nothing),
		TEST(a_claim_that_makes_no_sense_is_told_and_left_as_it_is),
		TEST(a_compiler_other_than_the_caches_is_refused_unless_it_is_tolerated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
