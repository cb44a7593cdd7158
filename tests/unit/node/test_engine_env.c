/* Ranks, peers and restarts from what a service tells a container. */
#include "tests/unit/node/place.h"

#include "jobs/node/setup/engine_env.h"
#include "jobs/node/setup/network.h"

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
		AUTO(engine_env_release) struct engine_env found = { 0 };
		AUTO(err_freep) struct err *err = NULL;
		int done;

		set_batch(rows[i].index, rows[i].attempt);
		done = engine_env_read(rows[i].rank, rows[i].nodes, &found, &err);
		assert_int_equal(done, rows[i].node < 0 ? -1 : 0);
		if (done < 0)
			continue;
		assert_int_equal(found.node, rows[i].node);
		assert_int_equal(found.restart, rows[i].restart);
	}
	set_batch(NULL, NULL);
}

static int read_config(struct place *place, const char *text, int nodes, struct engine_env *ret,
		       struct err **err)
{
	AUTO(auto_free) char *path = place_path(place, "resourceconfig.json");

	write_file(path, text, 0600);
	return engine_env_sagemaker(path, nodes, ret, err);
}

#define TWELVE                                                                                     \
	"\"algo-1\",\"algo-10\",\"algo-11\",\"algo-12\",\"algo-2\",\"algo-3\",\"algo-4\","         \
	"\"algo-5\",\"algo-6\",\"algo-7\",\"algo-8\",\"algo-9\""

static void hosts_of_sagemaker_go_by_their_numbers(void **state)
{
	AUTO(engine_env_release) struct engine_env found = { 0 };
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
		AUTO(engine_env_release) struct engine_env found = { 0 };
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(read_config(*state, texts[i], 2, &found, &err), -1);
		assert_non_null(err);
	}
}

static void an_interface_that_can_be_none_is_passed_over(void **state)
{
	AUTO(engine_env_release) struct engine_env found = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	must(read_config(*state,
			 "{\"current_host\":\"algo-1\",\"hosts\":[\"algo-1\"],"
			 "\"network_interface_name\":\"eth0; reboot\"}",
			 1, &found, &err),
	     &err);
	assert_null(found.interface);
}

static char *folder_with(struct place *place, const char *name, const char *text)
{
	AUTO(auto_free) char *path = place_path(place, name);

	write_file(path, text, 0600);
	return mem_copy(place->root);
}

static void the_route_with_the_lowest_metric_counts(void **state)
{
	AUTO(auto_free) char *path = place_path(*state, "route");
	AUTO(auto_free) char *found = NULL;
	AUTO(auto_free) char *none = NULL;
	AUTO(auto_free) char *own = NULL;
	AUTO(err_freep) struct err *err = NULL;
	struct engine_env anywhere = { 0 };
	char lo[] = "lo";
	struct engine_env local = { .interface = lo };
	AUTO(auto_free)
	char *folder =
		folder_with(*state, "route",
			    "Iface\tDestination\tGateway "
			    "\tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
			    "ecs-eth0\t02FEA9A9\t00000000\t0001\t0\t0\t0\tFFFFFFFF\t0\t0\t0\n"
			    "eth1\t00000000\t0100000A\t0003\t0\t0\t512\t00000000\t0\t0\t0\n"
			    "eth0\t00000000\t0100000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
			    "eth2\t00000000\t0100000A\t0002\t0\t0\t1\t00000000\t0\t0\t0\n");

	found = network_interface(&anywhere, folder);
	assert_string_equal(found, "eth0");
	write_file(path, "Iface\tDestination\nrubbish\n", 0600);
	none = network_interface(&anywhere, folder);
	assert_null(none);
	own = network_reached(&local, folder, &err);
	assert_string_equal(own, "127.0.0.1");
}

#define NOWHERE "00000000000000000000000000000000"

static void where_there_is_no_other_the_route_of_ipv6_counts(void **state)
{
	AUTO(auto_free) char *to_all = mem_format("%s 00 %s 00", NOWHERE, NOWHERE);
	AUTO(auto_free)
	char *text = mem_format(
		"fd000000000000000000000000000000 40 %s 00 %s 00000100 00000001 0 00000001 eth0\n"
		"%s fe800000000000000000000000000001 00000400 00000003 00000000 00000003 ens6\n"
		"%s fe800000000000000000000000000001 00000100 00000003 00000000 00000003 ens5\n"
		"%s %s ffffffff 00000001 00000000 00200200       lo\n",
		NOWHERE, NOWHERE, to_all, to_all, to_all, NOWHERE);
	AUTO(auto_free) char *folder = folder_with(*state, "ipv6_route", text);
	const struct engine_env anywhere = { 0 };
	AUTO(auto_free) char *found = network_interface(&anywhere, folder);

	assert_string_equal(found, "ens5");
}

/* The one that SageMaker names is not there, as on machines of another generation. */
static void an_interface_without_an_address_is_passed_over(void **state)
{
	struct engine_env platform = { .apart = true, .interface = (char *)"eth9" };
	char *hosts[] = { (char *)"algo-1", (char *)"algo-2", NULL };
	AUTO(auto_free)
	char *folder = folder_with(*state, "route", "lo 00000000 00000000 0003 0 0 0 00000000\n");
	AUTO(auto_free) char *nothing = place_path(*state, "nothing");
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *by_route = network_interface(&platform, folder);
	AUTO(auto_free) char *address = network_reached(&platform, folder, &err);
	AUTO(auto_free) char *name = NULL;
	AUTO(auto_free) char *none = NULL;

	assert_string_equal(by_route, "lo");
	assert_string_equal(address, "127.0.0.1");
	none = network_reached(&platform, nothing, &err);
	assert_null(none);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_non_null(strstr(err->message, "cannot reach node 0: 'eth9' has no address"));
	assert_non_null(strstr(err->message, "its interfaces are lo"));
	platform.hosts = hosts;
	platform.host_count = 2;
	name = network_reached(&platform, nothing, &err);
	assert_string_equal(name, "algo-1");
}

static void an_address_and_a_port_are_told_apart(void **state)
{
	static const struct {
		const char *address, *joined;
	} rows[] = {
		{ "10.0.0.1", "10.0.0.1:7" },
		{ "algo-1", "algo-1:7" },
		{ "fd00::2", "[fd00::2]:7" },
	};
	AUTO(auto_free) char *own = network_towards("127.0.0.1");
	AUTO(auto_free) char *none = network_towards("algo-2.invalid");

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *joined = network_join(rows[i].address, 7);

		assert_string_equal(joined, rows[i].joined);
	}
	assert_string_equal(own, "127.0.0.1");
	assert_null(none);
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
		cmocka_unit_test_setup_teardown(where_there_is_no_other_the_route_of_ipv6_counts,
						place_make, place_remove),
		cmocka_unit_test_setup_teardown(an_interface_without_an_address_is_passed_over,
						place_make, place_remove),
		cmocka_unit_test(an_address_and_a_port_are_told_apart),
		cmocka_unit_test(names_that_stay_unknown_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
