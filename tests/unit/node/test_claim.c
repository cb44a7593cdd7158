/* Of all who believe they are to run a phase, one does. */
#include "tests/unit/node/place.h"

#include "jobs/node/claim.h"

struct actor {
	struct agent_config config;
	struct claim claim;
};

/* `restart` -1: the service tells none. */
static void actor_make(struct actor *actor, struct place *place, int64_t attempt, int64_t restart,
		       int node, const char *token)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *path = place_path(place, PREFIX ORDER_FILE);
	AUTO(auto_free) char *job = mem_format("stk-r1-train-%lld", (long long)attempt);
	json_t *order = order_for(place, "true");

	js_put(order, "attempt", json_integer(attempt));
	js_put(order, "nodes", json_integer(4));
	js_put_str(order, "job", job);
	order_write(place, order);
	must(agent_config_load(path, "0", &actor->config, &err), &err);
	actor->config.platform.restart = restart;
	actor->config.restart = restart < 0 ? 0 : restart;
	actor->config.node = node;
	actor->config.token = token;
	claim_init(&actor->claim, &actor->config);
}

static void actor_release(struct actor *actor)
{
	claim_release(&actor->claim);
	agent_config_release(&actor->config);
}

static enum claim_state take(struct actor *actor, struct store *store)
{
	AUTO(err_freep) struct err *err = NULL;
	enum claim_state state;

	must(claim_take(&actor->claim, &actor->config, store, &state, &err), &err);
	return state;
}

static bool holds(struct actor *actor, struct store *store)
{
	return claim_holds(&actor->claim, &actor->config, store);
}

static void only_a_higher_attempt_supersedes(void **state)
{
	AUTO(store_freep) struct store *store = open_store(*state);
	AUTO(actor_release) struct actor one = { 0 }, two = { 0 }, twin = { 0 };

	actor_make(&one, *state, 1, 0, 0, "t1");
	actor_make(&twin, *state, 1, 0, 0, "t1");
	actor_make(&two, *state, 2, 0, 0, "t2");
	assert_int_equal(take(&one, store), CLAIM_OURS);
	assert_int_equal(take(&one, store), CLAIM_OURS); /* a repeat changes nothing */
	assert_int_equal(take(&twin, store), CLAIM_OTHERS);
	assert_true(holds(&one, store));
	assert_int_equal(take(&two, store), CLAIM_OURS);
	assert_false(holds(&one, store));
	assert_true(holds(&two, store));
	assert_int_equal(take(&one, store), CLAIM_OTHERS);
}

static void only_a_higher_restart_of_the_same_job_supersedes(void **state)
{
	AUTO(store_freep) struct store *store = open_store(*state);
	AUTO(actor_release) struct actor first = { 0 }, again = { 0 }, other = { 0 };

	actor_make(&first, *state, 3, 0, 0, "t");
	actor_make(&again, *state, 3, 1, 0, "t");
	actor_make(&other, *state, 3, 2, 0, "t");
	other.config.job = "stk-other-train-3";
	assert_int_equal(take(&first, store), CLAIM_OURS);
	assert_int_equal(take(&other, store), CLAIM_OTHERS);
	assert_int_equal(take(&again, store), CLAIM_OURS);
	assert_false(holds(&first, store));
	assert_int_equal(take(&first, store), CLAIM_OTHERS);
}

static void other_nodes_wait_for_a_claim_that_names_their_own_job(void **state)
{
	AUTO(store_freep) struct store *store = open_store(*state);
	AUTO(actor_release) struct actor old = { 0 }, head = { 0 }, peer = { 0 }, ghost = { 0 };

	actor_make(&old, *state, 1, 0, 0, "t1");
	actor_make(&head, *state, 2, 0, 0, "t2");
	actor_make(&peer, *state, 2, 0, 3, "t2");
	actor_make(&ghost, *state, 2, 0, 3, "t2-submitted-twice");
	assert_int_equal(take(&peer, store), CLAIM_NOT_YET);
	assert_int_equal(take(&old, store), CLAIM_OURS);
	assert_int_equal(take(&peer, store), CLAIM_NOT_YET);
	assert_int_equal(take(&head, store), CLAIM_OURS);
	assert_int_equal(take(&peer, store), CLAIM_OURS);
	assert_string_equal(peer.claim.master_addr, head.claim.master_addr);
	assert_int_equal(peer.claim.master_port, head.claim.master_port);
	assert_in_range(peer.claim.master_port, 1024, 65535);
	assert_int_equal(take(&ghost, store), CLAIM_OTHERS);
}

static void a_claim_that_cannot_be_read_is_not_lost(void **state)
{
	AUTO(store_freep) struct store *store = open_store(*state);
	AUTO(actor_release) struct actor one = { 0 };
	AUTO(auto_free) char *path = place_path(*state, "runs/r1/claim/train");

	actor_make(&one, *state, 1, 0, 0, "t");
	assert_int_equal(take(&one, store), CLAIM_OURS);
	write_file(path, "{", 0600);
	assert_true(holds(&one, store));
	unlink(path);
	assert_true(holds(&one, store));
}

/* Another tool, or an older stoker, may have left this there. */
static void only_a_claim_that_names_our_start_is_ours(void **state)
{
	static const struct {
		const char *claim;
		int node;
		enum claim_state state;
	} rows[] = {
		{ "{\"attempt\":2,\"job\":\"stk-r1-train-2\",\"restart\":1,\"token\":\"t\"}", 1,
		  CLAIM_OURS },
		{ "{\"attempt\":1,\"job\":\"stk-r1-train-2\",\"restart\":1,\"token\":\"t\"}", 1,
		  CLAIM_NOT_YET },
		{ "{\"attempt\":3,\"job\":\"stk-r1-train-2\",\"restart\":1,\"token\":\"t\"}", 1,
		  CLAIM_OTHERS },
		{ "{\"attempt\":2,\"job\":\"stk-r1-train-3\",\"restart\":0,\"token\":\"t\"}", 1,
		  CLAIM_OTHERS },
		{ "{\"attempt\":2,\"job\":\"stk-r1-train-2\",\"restart\":0,\"token\":\"t\"}", 1,
		  CLAIM_NOT_YET },
		{ "{\"attempt\":2,\"job\":\"stk-r1-train-2\",\"token\":\"t\"}", 1, CLAIM_NOT_YET },
		{ "{\"attempt\":2,\"job\":\"stk-r1-train-2\",\"restart\":2,\"token\":\"t\"}", 1,
		  CLAIM_OTHERS },
		{ "{\"attempt\":2,\"job\":\"stk-r1-train-2\",\"restart\":1}", 1, CLAIM_OTHERS },
		{ "{\"attempt\":2,\"restart\":1,\"token\":\"t\"}", 1, CLAIM_OTHERS },
		{ "{}", 1, CLAIM_NOT_YET },
		{ "{}", 0, CLAIM_OURS },
		{ "{\"attempt\":2,\"restart\":0,\"token\":\"t\"}", 0, CLAIM_OTHERS },
		{ "{\"attempt\":2,\"job\":\"stk-r1-train-2\",\"restart\":1,\"token\":\"t\"}", 0,
		  CLAIM_OTHERS },
		{ "{\"attempt\":2,\"job\":\"stk-r1-train-2\",\"restart\":0,\"token\":\"t\"}", 0,
		  CLAIM_OURS },
		{ "{\"attempt\":2,\"job\":\"stk-r1-train-2\",\"token\":\"t\"}", 0, CLAIM_OURS },
	};
	AUTO(auto_free) char *path = place_path(*state, "runs/r1/claim/train");
	AUTO(store_freep) struct store *store = open_store(*state);

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(actor_release) struct actor actor = { 0 };

		actor_make(&actor, *state, 2, 1, rows[i].node, "t");
		write_file(path, rows[i].claim, 0600);
		if (take(&actor, store) != rows[i].state)
			fail_msg("row %zu", i);
	}
}

static void what_others_read_in_a_claim_is_what_its_node_is(void **state)
{
	AUTO(auto_free) char *path = place_path(*state, "runs/r1/claim/train");
	AUTO(store_freep) struct store *store = open_store(*state);
	AUTO(actor_release) struct actor head = { 0 }, peer = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *body = NULL;
	char host[256] = "";
	int64_t begun = clock_utc_now().ms;

	gethostname(host, sizeof host - 1);
	actor_make(&head, *state, 2, 1, 0, "t");
	actor_make(&peer, *state, 2, 1, 2, "t");
	assert_int_equal(take(&head, store), CLAIM_OURS);
	must(js_load(path, REPORT_MAX, &body, &err), &err);
	assert_int_equal(js_int(body, "v", 0), 1);
	assert_int_equal(js_int(body, "attempt", 0), 2);
	assert_int_equal(js_int(body, "restart", 0), 1);
	assert_string_equal(js_str(body, "job"), "stk-r1-train-2");
	assert_string_equal(js_str(body, "nonce"), NONCE);
	assert_string_equal(js_str(body, "token"), "t");
	assert_string_equal(js_str(body, "host"), host);
	assert_string_equal(js_str(body, "holder"), head.claim.holder);
	assert_true(js_int(body, "at", 0) >= begun);
	/* Below the ports that the kernel gives to passing connections. */
	assert_in_range(js_int(body, "master_port", 0), 20000, 31999);
	assert_int_equal(take(&peer, store), CLAIM_OURS);
	assert_int_equal(peer.claim.restart, 1);
	assert_true(peer.claim.taken_ms >= begun);
	assert_int_equal(claim_restart(&peer.claim, &peer.config, store), 1);
}

/* The service's number counts, where it tells one. */
static void the_start_of_a_job_is_that_of_its_claim(void **state)
{
	AUTO(auto_free) char *path = place_path(*state, "runs/r1/claim/train");
	AUTO(store_freep) struct store *store = open_store(*state);
	AUTO(actor_release) struct actor told = { 0 }, untold = { 0 };

	actor_make(&told, *state, 1, 3, 0, "t");
	actor_make(&untold, *state, 1, -1, 1, "t");
	assert_int_equal(claim_restart(&told.claim, &told.config, store), 3);
	assert_true(claim_restart(&untold.claim, &untold.config, store) == INT64_MAX);
	write_file(path, "{\"attempt\":1,\"job\":\"stk-r1-train-1\",\"restart\":2,\"token\":\"t\"}",
		   0600);
	assert_int_equal(claim_restart(&told.claim, &told.config, store), 3);
	assert_int_equal(claim_restart(&untold.claim, &untold.config, store), 2);
	write_file(path, "{\"attempt\":1,\"job\":\"stk-r1-train-1\",\"token\":\"t\"}", 0600);
	assert_int_equal(claim_restart(&untold.claim, &untold.config, store), 0);
	write_file(path, "{\"attempt\":1,\"job\":\"other\",\"restart\":2,\"token\":\"t\"}", 0600);
	assert_true(claim_restart(&untold.claim, &untold.config, store) == INT64_MAX);
	write_file(path, "{", 0600);
	assert_true(claim_restart(&untold.claim, &untold.config, store) == INT64_MAX);
}

/* Nodes of one machine meet there; others need an address that they reach. */
static void the_master_is_where_the_order_says(void **state)
{
	AUTO(store_freep) struct store *store = open_store(*state);
	AUTO(actor_release) struct actor here = { 0 }, ordered = { 0 };
	AUTO(actor_release) struct actor alone = { 0 };

	actor_make(&here, *state, 1, 0, 0, "t");
	assert_int_equal(take(&here, store), CLAIM_OURS);
	assert_string_equal(here.claim.master_addr, "127.0.0.1");
	actor_make(&ordered, *state, 2, 0, 0, "t");
	MESSAGE_SET_TEXT(ordered.config.order, master_addr, "10.1.2.3");
	ordered.config.platform.apart = true;
	assert_int_equal(take(&ordered, store), CLAIM_OURS);
	assert_string_equal(ordered.claim.master_addr, "10.1.2.3");
	actor_make(&alone, *state, 3, 0, 0, "t");
	alone.config.platform.apart = true;
	alone.config.nodes = 1;
	assert_int_equal(take(&alone, store), CLAIM_OURS);
	assert_string_equal(alone.claim.master_addr, "127.0.0.1");
}

/* ---- writes that go wrong ---- */

/* The service's ways to treat the write of a claim. */
enum service { WRITES, WRITES_AND_FAILS, FAILS, WRITES_ANOTHERS_AND_FAILS, IS_LATE };

static enum service service;
static int writes;

int __wrap_store_json_replace(struct store *store, const char *key, const char *tag,
			      const json_t *body, struct err **err);
int __real_store_json_replace(struct store *store, const char *key, const char *tag,
			      const json_t *body, struct err **err);

int __wrap_store_json_replace(struct store *store, const char *key, const char *tag,
			      const json_t *body, struct err **err)
{
	json_auto_t *other = json_pack("{s:s, s:i, s:s}", "holder", "another", "attempt", 9, "job",
				       "stk-r1-train-9");

	writes++;
	if (service == IS_LATE)
		return 0;
	if (service == WRITES)
		return __real_store_json_replace(store, key, tag, body, err);
	if (service == WRITES_AND_FAILS)
		assert_int_equal(__real_store_json_replace(store, key, tag, body, err), 1);
	if (service == WRITES_ANOTHERS_AND_FAILS)
		assert_int_equal(__real_store_json_replace(store, key, tag, other, err), 1);
	return err_set(err, EXIT_UNREACHABLE, "no answer");
}

/* An answer that does not come leaves open what was done. */
static void a_write_without_an_answer_counts_if_a_look_shows_it(void **state)
{
	static const struct {
		enum service service;
		bool ours;
	} rows[] = { { WRITES_AND_FAILS, true },
		     { FAILS, false },
		     { WRITES_ANOTHERS_AND_FAILS, false } };
	AUTO(auto_free) char *path = place_path(*state, "runs/r1/claim/train");
	AUTO(store_freep) struct store *store = open_store(*state);

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(actor_release) struct actor one = { 0 };
		AUTO(err_freep) struct err *err = NULL;
		enum claim_state got = CLAIM_NOT_YET;
		int done;

		unlink(path);
		actor_make(&one, *state, 1, 0, 0, "t");
		service = rows[i].service;
		done = claim_take(&one.claim, &one.config, store, &got, &err);
		service = WRITES;
		assert_int_equal(done, rows[i].ours ? 0 : -1);
		if (rows[i].ours) {
			assert_null(err);
			assert_int_equal(got, CLAIM_OURS);
			assert_non_null(one.claim.master_addr);
		} else {
			assert_string_equal(err->message, "cannot write the claim: no answer");
			assert_int_equal(err->code, EXIT_UNREACHABLE);
		}
	}
}

static void a_claim_that_keeps_changing_is_an_error(void **state)
{
	AUTO(store_freep) struct store *store = open_store(*state);
	AUTO(actor_release) struct actor one = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	enum claim_state got;

	actor_make(&one, *state, 1, 0, 0, "t");
	service = IS_LATE;
	writes = 0;
	assert_int_equal(claim_take(&one.claim, &one.config, store, &got, &err), -1);
	service = WRITES;
	assert_int_equal(writes, 20);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_non_null(strstr(err->message, "which keeps changing"));
}

static void of_many_processes_at_once_one_takes_it(void **state)
{
	struct place *place = *state;
	int winners = 0;

	for (int i = 0; i < 16; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			struct store *store = open_store(place);
			struct actor one = { 0 };
			bool won;

			actor_make(&one, place, 1, 0, 0, "t");
			won = take(&one, store) == CLAIM_OURS;
			_exit(won ? 1 : 0);
		}
		assert_true(pid > 0);
	}
	for (int i = 0; i < 16; i++) {
		int status;

		assert_true(wait(&status) > 0);
		assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
		winners += WEXITSTATUS(status);
	}
	assert_int_equal(winners, 1);
}

/* ---- claims where no restarts are told ---- */

static void a_claim_of_an_earlier_start_is_taken_over_and_not_believed(void **state)
{
	AUTO(store_freep) struct store *store = open_store(*state);
	AUTO(actor_release) struct actor one = { 0 }, peer = { 0 }, again = { 0 }, other = { 0 };
	AUTO(actor_release) struct actor late = { 0 };

	actor_make(&peer, *state, 1, -1, 1, "t1");
	assert_int_equal(take(&peer, store), CLAIM_NOT_YET);
	actor_make(&one, *state, 1, -1, 0, "t1");
	assert_int_equal(take(&one, store), CLAIM_OURS);
	/* The claim was not there before, so whoever wrote it lives. */
	assert_int_equal(take(&peer, store), CLAIM_OURS);
	actor_make(&late, *state, 1, -1, 1, "t1");
	assert_int_equal(take(&late, store), CLAIM_NOT_YET);
	assert_int_equal(take(&late, store), CLAIM_NOT_YET);
	assert_true(claim_shown(&one.config));
	assert_false(claim_shown(&late.config));
	assert_int_equal(claim_show(&one.claim, &one.config, store), 1);
	assert_int_equal(take(&late, store), CLAIM_OURS);
	/* The next start of the same job. */
	actor_make(&again, *state, 1, -1, 0, "t1");
	assert_int_equal(take(&again, store), CLAIM_OURS);
	assert_int_equal(again.claim.restart, 1);
	assert_int_equal(claim_show(&one.claim, &one.config, store), 0);
	assert_false(claim_holds(&one.claim, &one.config, store));
	assert_true(claim_holds(&again.claim, &again.config, store));
	/* The agent shows again and again that it lives, and each time it can be seen. */
	for (int beat = 1; beat <= 2; beat++) {
		AUTO(auto_free) char *path = place_path(*state, "runs/r1/claim/train");
		AUTO(err_freep) struct err *err = NULL;
		json_auto_t *body = NULL;

		assert_int_equal(claim_show(&again.claim, &again.config, store), 1);
		must(js_load(path, REPORT_MAX, &body, &err), &err);
		assert_int_equal(js_int(body, "beat", 0), beat);
	}
	/* Another submission under the same name is not it. */
	actor_make(&other, *state, 1, -1, 0, "t2");
	assert_int_equal(take(&other, store), CLAIM_OTHERS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_a_higher_attempt_supersedes, place_make,
						place_remove),
		cmocka_unit_test_setup_teardown(only_a_higher_restart_of_the_same_job_supersedes,
						place_make, place_remove),
		cmocka_unit_test_setup_teardown(
			other_nodes_wait_for_a_claim_that_names_their_own_job, place_make,
			place_remove),
		cmocka_unit_test_setup_teardown(a_claim_that_cannot_be_read_is_not_lost, place_make,
						place_remove),
		cmocka_unit_test_setup_teardown(only_a_claim_that_names_our_start_is_ours,
						place_make, place_remove),
		cmocka_unit_test_setup_teardown(what_others_read_in_a_claim_is_what_its_node_is,
						place_make, place_remove),
		cmocka_unit_test_setup_teardown(the_start_of_a_job_is_that_of_its_claim, place_make,
						place_remove),
		cmocka_unit_test_setup_teardown(the_master_is_where_the_order_says, place_make,
						place_remove),
		cmocka_unit_test_setup_teardown(a_write_without_an_answer_counts_if_a_look_shows_it,
						place_make, place_remove),
		cmocka_unit_test_setup_teardown(a_claim_that_keeps_changing_is_an_error, place_make,
						place_remove),
		cmocka_unit_test_setup_teardown(of_many_processes_at_once_one_takes_it, place_make,
						place_remove),
		cmocka_unit_test_setup_teardown(
			a_claim_of_an_earlier_start_is_taken_over_and_not_believed, place_make,
			place_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
