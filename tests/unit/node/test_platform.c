/* Ranks, peers and restarts from what a service tells a container, and the claim where it
 * tells no restarts. */
#include "tests/unit/node/place.h"

#include "jobs/node/claim.h"
#include "jobs/node/network.h"
#include "jobs/node/platform.h"

static void set_batch(const char *index, const char *attempt)
{
	unsetenv("AWS_BATCH_JOB_NODE_INDEX");
	unsetenv("AWS_BATCH_JOB_ATTEMPT");
	unsetenv(ORDER_RESTART);
	if (index)
		setenv("AWS_BATCH_JOB_NODE_INDEX", index, 1);
	if (attempt)
		setenv("AWS_BATCH_JOB_ATTEMPT", attempt, 1);
}

static void a_rank_is_a_number_or_what_batch_says(void **state)
{
	const struct {
		const char *rank, *index, *attempt;
		int nodes, node, restart; /* node -1: refused */
	} rows[] = {
		{ "0", NULL, NULL, 1, 0, 0 },     { "3", NULL, NULL, 4, 3, 0 },
		{ "4", NULL, NULL, 4, -1, 0 },    { "-1", NULL, NULL, 4, -1, 0 },
		{ "", NULL, NULL, 4, -1, 0 },     { "1x", NULL, NULL, 4, -1, 0 },
		{ "batch", NULL, NULL, 1, 0, 0 }, { "batch", NULL, "1", 1, 0, 0 },
		{ "batch", "2", "3", 4, 2, 2 },   { "batch", NULL, "1", 4, -1, 0 },
		{ "batch", "4", "1", 4, -1, 0 },  { "batch", "two", "1", 4, -1, 0 },
		{ "batch", "0", "0", 4, -1, 0 },  { "batch", "0", "again", 4, -1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(platform_release) struct platform found = { 0 };
		AUTO(err_freep) struct err *err = NULL;
		int done;

		set_batch(rows[i].index, rows[i].attempt);
		done = platform_read(rows[i].rank, rows[i].nodes, &found, &err);
		assert_int_equal(done, rows[i].node < 0 ? -1 : 0);
		if (done < 0)
			continue;
		assert_int_equal(found.node, rows[i].node);
		assert_int_equal(found.restart, rows[i].restart);
	}
	set_batch(NULL, NULL);
}

static int read_config(struct place *place, const char *text, int nodes, struct platform *ret,
		       struct err **err)
{
	AUTO(auto_free) char *path = place_path(place, "resourceconfig.json");

	write_file(path, text, 0600);
	return platform_sagemaker(path, nodes, ret, err);
}

#define TWELVE                                                                                     \
	"\"algo-1\",\"algo-10\",\"algo-11\",\"algo-12\",\"algo-2\",\"algo-3\",\"algo-4\","         \
	"\"algo-5\",\"algo-6\",\"algo-7\",\"algo-8\",\"algo-9\""

static void hosts_of_sagemaker_go_by_their_numbers(void **state)
{
	AUTO(platform_release) struct platform found = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	must(read_config(*state,
			 "{\"current_host\":\"algo-10\",\"hosts\":[" TWELVE "],"
			 "\"network_interface_name\":\"eth0\",\"topology\":null}",
			 12, &found, &err),
	     &err);
	assert_int_equal(found.node, 9);
	assert_int_equal(found.restart, -1);
	assert_string_equal(found.hosts[1], "algo-2");
	assert_string_equal(found.hosts[11], "algo-12");
	assert_string_equal(found.interface, "eth0");
	assert_true(found.apart);
}

static void what_the_file_must_not_say_is_named(void **state)
{
	static const char *const texts[] = {
		"",
		"[]",
		"{\"current_host\":\"algo-1\"}",
		"{\"current_host\":\"algo-1\",\"hosts\":[]}",
		"{\"current_host\":\"algo-1\",\"hosts\":\"algo-1\"}",
		"{\"current_host\":\"algo-3\",\"hosts\":[\"algo-1\",\"algo-2\"]}",
		"{\"current_host\":1,\"hosts\":[\"algo-1\",\"algo-2\"]}",
		"{\"current_host\":\"algo-1\",\"hosts\":[\"algo-1\",\"algo-1\"]}",
		"{\"current_host\":\"algo-1\",\"hosts\":[\"algo-1\",\"$(reboot)\"]}",
		"{\"current_host\":\"algo-1\",\"hosts\":[\"algo-1\",\"a\\u0000b\"]}",
		"{\"current_host\":\"algo-1\",\"hosts\":[\"algo-1\",2]}",
		"{\"current_host\":\"algo-1\",\"hosts\":[\"algo-1\",\"-x\"]}",
		"{\"current_host\":\"algo-1\",\"hosts\":[\"algo-1\"]}",
		"{\"current_host\":\"algo-1\",\"hosts\":[\"algo-1\",\"algo-2\",\"algo-3\"]}",
	};

	for (size_t i = 0; i < STK_LENGTH(texts); i++) {
		AUTO(platform_release) struct platform found = { 0 };
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(read_config(*state, texts[i], 2, &found, &err), -1);
		assert_non_null(err);
	}
}

static void an_interface_that_can_be_none_is_passed_over(void **state)
{
	AUTO(platform_release) struct platform found = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	must(read_config(*state,
			 "{\"current_host\":\"algo-1\",\"hosts\":[\"algo-1\"],"
			 "\"network_interface_name\":\"eth0; reboot\"}",
			 1, &found, &err),
	     &err);
	assert_null(found.interface);
}

static void the_route_with_the_lowest_metric_counts(void **state)
{
	AUTO(auto_free) char *path = place_path(*state, "route");
	AUTO(auto_free) char *found = NULL;
	AUTO(auto_free) char *none = NULL;
	AUTO(auto_free) char *own = network_address("lo");

	write_file(path,
		   "Iface\tDestination\tGateway "
		   "\tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
		   "ecs-eth0\t02FEA9A9\t00000000\t0001\t0\t0\t0\tFFFFFFFF\t0\t0\t0\n"
		   "eth1\t00000000\t0100000A\t0003\t0\t0\t512\t00000000\t0\t0\t0\n"
		   "eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
		   "eth2\t00000000\t0100000A\t0002\t0\t0\t1\t00000000\t0\t0\t0\n",
		   0600);
	found = network_route_in(path);
	assert_string_equal(found, "eth0");
	write_file(path, "Iface\tDestination\nrubbish\n", 0600);
	none = network_route_in(path);
	assert_null(none);
	assert_string_equal(own, "127.0.0.1");
}

static void names_that_stay_unknown_are_named(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	char *known[] = { (char *)"127.0.0.1", NULL };
	char *unknown[] = { (char *)"127.0.0.1", (char *)"algo-2.invalid", NULL };

	(void)state;
	must(network_wait(known, 1, 0, &err), &err);
	assert_int_equal(network_wait(unknown, 2, 0, &err), -1);
	assert_int_equal(err->code, EXIT_UNREACHABLE);
	assert_non_null(strstr(err->message, "'algo-2.invalid'"));
}

/* ---- claims where no restarts are told ---- */

struct actor {
	struct task task;
	struct claim claim;
};

static void actor_make(struct actor *actor, struct place *place, int node, const char *token)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *path = place_path(place, PREFIX ORDER_FILE);
	json_t *order = order_for(place, "true");

	js_put(order, "nodes", json_integer(2));
	order_write(place, order);
	must(task_load(path, "0", &actor->task, &err), &err);
	actor->task.platform.restart = -1;
	actor->task.node = node;
	actor->task.token = token;
	claim_init(&actor->claim, &actor->task);
}

static void actor_release(struct actor *actor)
{
	claim_release(&actor->claim);
	task_release(&actor->task);
}

static enum claim_state take(struct actor *actor, struct store *store)
{
	AUTO(err_freep) struct err *err = NULL;
	enum claim_state state;

	must(claim_take(&actor->claim, &actor->task, store, &state, &err), &err);
	return state;
}

static void a_claim_of_an_earlier_start_is_taken_over_and_not_believed(void **state)
{
	AUTO(store_freep) struct store *store = NULL;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(actor_release) struct actor one = { 0 }, peer = { 0 }, again = { 0 }, other = { 0 };
	AUTO(actor_release) struct actor late = { 0 };

	must(store_open(((struct place *)*state)->root, &store, &err), &err);
	actor_make(&peer, *state, 1, "t1");
	assert_int_equal(take(&peer, store), CLAIM_NOT_YET);
	actor_make(&one, *state, 0, "t1");
	assert_int_equal(take(&one, store), CLAIM_OURS);
	/* It was not there before, so whoever wrote it lives. */
	assert_int_equal(take(&peer, store), CLAIM_OURS);
	actor_make(&late, *state, 1, "t1");
	assert_int_equal(take(&late, store), CLAIM_NOT_YET);
	assert_int_equal(take(&late, store), CLAIM_NOT_YET);
	assert_true(claim_shown(&one.task));
	assert_false(claim_shown(&late.task));
	assert_int_equal(claim_show(&one.claim, &one.task, store), 1);
	assert_int_equal(take(&late, store), CLAIM_OURS);
	/* The next start of the same job. */
	actor_make(&again, *state, 0, "t1");
	assert_int_equal(take(&again, store), CLAIM_OURS);
	assert_int_equal(again.claim.restart, 1);
	assert_int_equal(claim_show(&one.claim, &one.task, store), 0);
	assert_false(claim_holds(&one.claim, &one.task, store));
	assert_true(claim_holds(&again.claim, &again.task, store));
	/* Another submission under the same name is not it. */
	actor_make(&other, *state, 0, "t2");
	assert_int_equal(take(&other, store), CLAIM_OTHERS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_is_a_number_or_what_batch_says),
		cmocka_unit_test_setup_teardown(hosts_of_sagemaker_go_by_their_numbers, place_make,
						place_remove),
		cmocka_unit_test_setup_teardown(what_the_file_must_not_say_is_named, place_make,
						place_remove),
		cmocka_unit_test_setup_teardown(an_interface_that_can_be_none_is_passed_over,
						place_make, place_remove),
		cmocka_unit_test_setup_teardown(the_route_with_the_lowest_metric_counts, place_make,
						place_remove),
		cmocka_unit_test(names_that_stay_unknown_are_named),
		cmocka_unit_test_setup_teardown(
			a_claim_of_an_earlier_start_is_taken_over_and_not_believed, place_make,
			place_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
