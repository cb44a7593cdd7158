/* The real stoker-node has its nodes checked before the command runs: what comes of each verdict,
 * who hears of it, and what ends a check-up before its end. */
#include "tests/unit/node/agent_run.h"

#include "jobs/node/health/health.h"

#define TABLE  "size(B) busbw(GB/s)\\n4096 7.5\\nAvg bus bandwidth: 7.5GB/s\\n"
#define DEVICE "echo '[{\"neuron_device\": 0, \"nc_count\": 2, \"neuron_processes\": []}]'"

static void put_tool(const struct place *place, const char *name, const char *script)
{
	AUTO(auto_free) char *path = mem_format("%s/bin/%s", place->root, name);
	AUTO(auto_free) char *text = mem_format("#!/bin/sh\n%s\n", script);

	write_file(path, text, 0755);
}

/* The Python of the image: it runs the command, and computes what the check-up asks for.
 * `compute`: what it does then. */
static void put_python(const struct place *place, const char *compute)
{
	AUTO(auto_free)
	char *script = mem_format("case $1 in\n"
				  "*health_tensor.py) %s;;\n"
				  "train) touch %s/ran-$STOKER_NODE_RANK;;\n"
				  "esac",
				  compute, place->root);

	put_tool(place, "python3", script);
}

/* A node on which all is well. */
static void put_all(const struct place *place)
{
	AUTO(auto_free)
	char *counter = place_path(place, "sysfs/neuron0/stats/hardware/mem_ecc_uncorrected");

	write_file(counter, "0\n", 0600);
	put_tool(place, "neuron-ls", DEVICE);
	put_tool(place, "nccom-test", "printf '" TABLE "'");
	put_tool(place, "torchrun",
		 "[ $STOKER_NODE_RANK = 0 ] && echo '{\"busbw\": 2.5, \"time_us\": 9}'; exit 0");
	put_python(place, "echo '{\"torch\":true,\"framework\":\"torch\",\"cores\":2,"
			  "\"accelerated\":true}'");
}

static json_t *order_checked(const struct place *place, int nodes)
{
	AUTO(auto_free) char *path = mem_format("%s/bin:/usr/bin:/bin", place->root);
	AUTO(auto_free) char *sysfs = place_path(place, "sysfs");
	json_t *order = order_for(place, "");

	js_put(order, "command", json_pack("[s, s]", "python3", "train"));
	js_put(order, "env", json_pack("{s:s, s:s}", "PATH", path, "NEURON_SYSFS_ROOT", sysfs));
	js_put(order, "health",
	       json_pack("{s:b, s:[s], s:i, s:i, s:b}", "device", 1, "ops", "all_reduce", "size",
			 4096, "timeout_ms", 60000, "full", 1));
	js_put(order, "nodes", json_integer(nodes));
	js_put(order, "cores", json_integer(2));
	js_put(order, "devices", json_integer(1));
	js_put(order, "instance", json_string("trn1.2xlarge"));
	js_put(order, "claim_wait_ms", json_integer(60000));
	return order;
}

static bool ran(const struct place *place, int node)
{
	AUTO(auto_free) char *path = mem_format("%s/ran-%d", place->root, node);

	return fs_exists(path);
}

/* The words of a check of the only node; NULL: there is none with this verdict. */
static const char *words_of(const json_t *body, const char *check, const char *verdict)
{
	const json_t *rows = js_path(body, "health.nodes"), *row;
	size_t i;

	rows = json_object_get(json_array_get(rows, 0), "checks");
	json_array_foreach (rows, i, row)
		if (js_is(row, "check", check) && js_is(row, "verdict", verdict))
			return js_str(row, "words");
	return NULL;
}

/* ---- check-up of one node ---- */

/* Another attempt has taken the claim while this one was checked. */
static void who_is_superseded_during_its_check_up_runs_nothing(void **state)
{
	AUTO(auto_free) char *claim = place_path(*state, "runs/r1/claim/train");
	AUTO(auto_free)
	char *compute =
		mem_format("echo '{\"attempt\":2,\"holder\":\"other\",\"job\":\"j\"}' > %s; "
			   "echo '{\"torch\":true,\"framework\":\"torch\",\"cores\":2,"
			   "\"accelerated\":true}'",
			   claim);
	json_t *order = order_checked(*state, 1);
	json_auto_t *body = NULL;

	/* The uploader, which looks each beat, does not see it before. */
	js_put(order, "heartbeat_ms", json_integer(3600 * 1000));
	put_all(*state);
	put_python(*state, compute);
	assert_int_equal(run(*state, order), AGENT_EXIT_NOT_MINE);
	body = report(*state);
	assert_state(body, "not_mine", AGENT_EXIT_NOT_MINE);
	assert_false(ran(*state, 0));
}

static void a_node_on_which_all_is_well_runs_the_command(void **state)
{
	AUTO(auto_free) char *baseline = place_path(*state, "health/trn1.2xlarge.json");
	json_auto_t *body = NULL, *kept = NULL;
	AUTO(err_freep) struct err *err = NULL;
	const json_t *figure;

	put_all(*state);
	assert_int_equal(run(*state, order_checked(*state, 1)), 0);
	assert_true(ran(*state, 0));
	body = report(*state);
	assert_state(body, "ended", 0);
	assert_string_equal(json_string_value(js_path(body, "health.verdict")), HEALTH_HEALTHY);
	assert_string_equal(words_of(body, "devices", "ok"), "1 devices with 2 cores");
	assert_string_equal(words_of(body, "counters", "ok"),
			    "1 counters of uncorrected errors are zero");
	assert_string_equal(words_of(body, "tensor", "ok"),
			    "a product is right on 2 cores (torch)");
	assert_string_equal(words_of(body, "collectives", "ok"), "all_reduce 7.5 GB/s");
	/* The next figure is judged by the kept one. */
	must(js_load(baseline, REPORT_MAX, &kept, &err), &err);
	figure = json_object_get(json_object_get(kept, "figures"),
				 "all_reduce of 4096 bytes over 2 ranks");
	assert_true(js_real(figure, "busbw", 0) == 7.5);
}

static void a_sick_node_runs_nothing_and_says_what_to_do(void **state)
{
	AUTO(auto_free)
	char *counter = place_path(*state, "sysfs/neuron0/stats/hardware/mem_ecc_uncorrected");
	json_auto_t *body = NULL;
	const json_t *error;

	put_all(*state);
	write_file(counter, "5\n", 0600);
	assert_int_equal(run(*state, order_checked(*state, 1)), AGENT_EXIT_SICK);
	assert_false(ran(*state, 0));
	body = report(*state);
	assert_state(body, "failed", AGENT_EXIT_SICK);
	error = json_object_get(body, "error");
	assert_string_equal(js_str(error, "class"), "hardware-node");
	assert_has(js_str(error, "message"),
		   "the node is sick: device 0 has 5 uncorrected errors in its memory");
	assert_has(js_str(error, "hint"), "have this one repaired");
	assert_string_equal(json_string_value(js_path(body, "health.verdict")), HEALTH_SICK);
	/* A check that takes time is not made once something is wrong. */
	assert_null(words_of(body, "tensor", "ok"));
}

static void before_a_precompile_only_the_place_is_looked_at(void **state)
{
	json_t *order = order_checked(*state, 1);
	json_auto_t *body = NULL;

	put_all(*state);
	put_tool(*state, "neuron-ls", "exit 1");
	js_put(json_object_get(order, "health"), "full", json_false());
	assert_int_equal(run(*state, order), 0);
	assert_true(ran(*state, 0));
	body = report(*state);
	assert_int_equal(json_array_size(js_path(body, "health.checks")), 3);
}

static void a_check_up_that_cannot_begin_is_nobodys_illness(void **state)
{
	json_t *order = order_checked(*state, 1);
	json_auto_t *body = NULL;
	const json_t *error;

	put_all(*state);
	js_put_str(json_object_get(order, "env"), "BAD", "${STOKER_RESUME_FROM}");
	assert_int_equal(run(*state, order), AGENT_EXIT_FAILED);
	assert_false(ran(*state, 0));
	body = report(*state);
	assert_state(body, "failed", AGENT_EXIT_FAILED);
	error = json_object_get(body, "error");
	assert_has(js_str(error, "message"), "'STOKER_RESUME_FROM' is not set here");
	assert_has(js_str(error, "message"), "env.BAD");
}

/* ---- check-ups that end early ---- */

/* Runs an agent whose check-up hangs in a tool, and gives its process. */
static pid_t begin_hanging(const struct place *place, int nodes)
{
	AUTO(auto_free) char *at = place_path(place, "hangs");
	AUTO(auto_free) char *script = mem_format("touch %s; exec sleep 1000", at);
	pid_t pid;

	put_all(place);
	put_tool(place, "neuron-ls", script);
	order_write(place, order_checked(place, nodes));
	pid = start(place, PREFIX, 0, plain_env, NULL);
	assert_true(wait_for_file(at));
	return pid;
}

static void assert_nothing_lives(const struct place *place)
{
	assert_int_equal(processes_with(place->root), 0);
	assert_false(ran(place, 0));
}

static void a_signal_ends_a_check_up_and_its_tools(void **state)
{
	pid_t agent = begin_hanging(*state, 1);
	json_auto_t *body = NULL;

	assert_int_equal(kill(agent, SIGTERM), 0);
	assert_int_equal(end_of(agent), 128 + SIGTERM);
	assert_nothing_lives(*state);
	body = report(*state);
	assert_string_equal(js_str(body, "stopped"), STOPPED_SIGNAL);
}

static void a_check_up_that_dies_is_a_failure_that_may_pass(void **state)
{
	pid_t agent = begin_hanging(*state, 1), doctor = find_helper(agent, "stoker-doctor");
	json_auto_t *body = NULL;
	const json_t *error;

	assert_true(doctor > 0);
	assert_int_equal(kill(doctor, SIGKILL), 0);
	assert_int_equal(end_of(agent), AGENT_EXIT_FAILED);
	assert_nothing_lives(*state);
	body = report(*state);
	error = json_object_get(body, "error");
	assert_has(js_str(error, "message"), "the check-up of this node did not end");
	assert_string_equal(js_str(error, "class"), "transient-infra");
}

static void an_attempt_that_takes_over_ends_a_check_up(void **state)
{
	AUTO(auto_free) char *path = place_path(*state, "runs/r1/claim/train");
	pid_t agent = begin_hanging(*state, 1);
	json_auto_t *body = NULL;

	write_file(path,
		   "{\"v\":1,\"attempt\":2,\"job\":\"stk-r1-train-2\",\"restart\":0,"
		   "\"holder\":\"someone\"}",
		   0600);
	(void)!end_of(agent);
	assert_nothing_lives(*state);
	body = report(*state);
	assert_string_equal(js_str(body, "stopped"), STOPPED_SUPERSEDED);
}

static void a_drain_ends_a_check_up(void **state)
{
	AUTO(auto_free) char *path = place_path(*state, PREFIX DRAIN_FILE);
	pid_t agent = begin_hanging(*state, 1);
	json_auto_t *body = NULL;

	write_file(path, "{\"v\":1}", 0600);
	(void)!end_of(agent);
	assert_nothing_lives(*state);
	body = report(*state);
	assert_string_equal(js_str(body, "stopped"), "drain");
}

/* ---- two nodes ---- */

static void run_both(const struct place *place, json_t *order, int ret[2])
{
	pid_t pids[2];

	order_write(place, order);
	for (int node = 0; node < 2; node++)
		pids[node] = start(place, PREFIX, node, plain_env, NULL);
	for (int node = 0; node < 2; node++)
		ret[node] = end_of(pids[node]);
}

static void two_nodes_that_are_well_alone_are_tested_together(void **state)
{
	json_auto_t *body = NULL, *other = NULL;
	int ends[2];

	put_all(*state);
	run_both(*state, order_checked(*state, 2), ends);
	assert_int_equal(ends[0], 0);
	assert_int_equal(ends[1], 0);
	assert_true(ran(*state, 0) && ran(*state, 1));
	body = report(*state);
	assert_string_equal(json_string_value(js_path(body, "health.across.how")), "torch");
	assert_true(js_real(js_path(body, "health.across.figures.all_reduce"), "busbw", 0) == 2.5);
	assert_int_equal(json_array_size(js_path(body, "health.nodes")), 2);
	other = report_of(*state, PREFIX, 1);
	assert_string_equal(json_string_value(js_path(other, "health.verdict")), HEALTH_HEALTHY);
}

static void the_sick_one_of_two_says_so_and_the_other_is_stopped(void **state)
{
	json_auto_t *body = NULL, *other = NULL;
	int ends[2];

	put_all(*state);
	/* Node 1 computes wrongly. */
	put_python(*state,
		   "if [ $STOKER_NODE_RANK = 1 ]; then echo '{\"torch\":true,\"framework\":"
		   "\"torch\",\"cores\":2,\"accelerated\":true,\"wrong\":[{\"core\":1,\"words\":"
		   "\"a wrong sum\"}]}'; else echo '{\"torch\":true,\"framework\":\"torch\","
		   "\"cores\":2,\"accelerated\":true}'; fi");
	run_both(*state, order_checked(*state, 2), ends);
	assert_int_equal(ends[1], AGENT_EXIT_SICK);
	assert_int_not_equal(ends[0], 0);
	assert_false(ran(*state, 0) || ran(*state, 1));
	body = report(*state);
	assert_string_equal(js_str(body, "stopped"), STOPPED_PEER);
	assert_string_equal(json_string_value(js_path(body, "health.verdict")), HEALTH_SICK);
	assert_has(json_string_value(js_path(body, "health.words")), "node 1 (");
	assert_has(json_string_value(js_path(body, "health.words")), "core 1: a wrong sum");
	other = report_of(*state, PREFIX, 1);
	assert_string_equal(js_str(json_object_get(other, "error"), "class"), "hardware-node");
}

static void what_fails_on_all_nodes_is_the_fault_of_none(void **state)
{
	json_auto_t *body = NULL;
	const json_t *error;
	int ends[2];

	put_all(*state);
	put_tool(*state, "torchrun", "echo 'no such library' >&2; exit 1");
	run_both(*state, order_checked(*state, 2), ends);
	assert_int_equal(ends[0], AGENT_EXIT_FAILED);
	assert_int_not_equal(ends[1], AGENT_EXIT_SICK);
	body = report(*state);
	error = json_object_get(body, "error");
	assert_string_equal(js_str(error, "class"), "comm");
	assert_has(js_str(error, "message"), "on each of them alone, too");
	assert_has(js_str(error, "message"), "no such library");
	assert_has(js_str(error, "hint"), "what the nodes have in common");
}

static void where_mpirun_and_ssh_reach_all_nccom_test_goes_over_them(void **state)
{
	AUTO(auto_free) char *hosts = place_path(*state, "hosts");
	AUTO(auto_free)
	char *nccom =
		mem_format("case $* in *--hosts*) echo $* >> %s;; esac; printf '" TABLE "'", hosts);
	json_t *order = order_checked(*state, 2);
	AUTO(auto_free) char *text = NULL;
	json_auto_t *body = NULL;
	int ends[2];

	put_all(*state);
	put_tool(*state, "nccom-test", nccom);
	put_tool(*state, "mpirun", "exit 1");
	put_tool(*state, "ssh", "exit 0");
	js_put_str(order, "instance", "trn1.32xlarge");
	run_both(*state, order, ends);
	assert_int_equal(ends[0], 0);
	assert_int_equal(ends[1], 0);
	body = report(*state);
	assert_string_equal(json_string_value(js_path(body, "health.across.how")), "mpi");
	text = read_file(hosts, NULL);
	assert_has(text, "-r 4 -N 2 ");
}

static void without_a_way_between_them_that_is_said_and_they_run(void **state)
{
	json_auto_t *body = NULL;
	int ends[2];

	put_all(*state);
	put_python(*state, "echo '{\"framework\":\"jax\",\"cores\":2,\"accelerated\":true}'");
	/* A node cannot be reached by ssh. */
	put_tool(*state, "mpirun", "exit 1");
	put_tool(*state, "ssh", "exit 255");
	run_both(*state, order_checked(*state, 2), ends);
	assert_int_equal(ends[0], 0);
	assert_int_equal(ends[1], 0);
	body = report(*state);
	assert_has(json_string_value(js_path(body, "health.across.unchecked")),
		   "neither mpirun with ssh nor a torch");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_node_on_which_all_is_well_runs_the_command),
		TEST(who_is_superseded_during_its_check_up_runs_nothing),
		TEST(a_sick_node_runs_nothing_and_says_what_to_do),
		TEST(before_a_precompile_only_the_place_is_looked_at),
		TEST(a_check_up_that_cannot_begin_is_nobodys_illness),
		TEST(a_signal_ends_a_check_up_and_its_tools),
		TEST(a_check_up_that_dies_is_a_failure_that_may_pass),
		TEST(an_attempt_that_takes_over_ends_a_check_up),
		TEST(a_drain_ends_a_check_up),
		TEST(two_nodes_that_are_well_alone_are_tested_together),
		TEST(the_sick_one_of_two_says_so_and_the_other_is_stopped),
		TEST(what_fails_on_all_nodes_is_the_fault_of_none),
		TEST(where_mpirun_and_ssh_reach_all_nccom_test_goes_over_them),
		TEST(without_a_way_between_them_that_is_said_and_they_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
