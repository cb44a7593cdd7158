/* What a check-up makes of tools that are many, slow or strange, and of what others tell. */
#include "tests/unit/node/clinic.h"

static void as_many_hosts_are_named_as_there_are(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *path = place_path(place, "words");
	json_auto_t *hosts = json_array();
	AUTO(auto_free) char *wrong = NULL;
	AUTO(auto_free) char *words = NULL;
	struct clinic clinic;

	put_tool(place, "nccom-test", "echo \" $* \" > \"$HERE/words\"; printf '" TABLE "'");
	clinic_open(place, &clinic, 60000, 60000);
	for (int i = 0; i < 200; i++) {
		AUTO(auto_free) char *name = mem_format("host-%d", i);

		json_array_append_new(hosts, json_string(name));
	}
	wrong = health_run_nccom(&clinic.c, "all_reduce", 400, hosts, clinic.c.end, "across",
				 clinic.c.figures);
	assert_null(wrong);
	words = read_file(path, NULL);
	assert_non_null(strstr(words, " --hosts host-0 host-1 "));
	assert_non_null(strstr(words, " host-198 host-199 "));
	clinic_close(&clinic);
}

/* Over the cores only where several machines of the type may, and then at a place of their own. */
static void ranks_are_cores_where_machines_of_that_type_can_meet(void **state)
{
	const struct {
		const char *instance, *words;
	} rows[] = {
		{ "ml.trn1.32xlarge", " --nproc_per_node 2 " },
		{ "ml.trn1.2xlarge", " --nproc_per_node 1 " },
		{ "inf2.48xlarge", " --nproc_per_node 1 " },
	};
	AUTO(auto_free) char *path = place_path(*state, "words");

	put_tool(*state, "torchrun", "echo \" $* $NEURON_RT_ROOT_COMM_ID\" > \"$HERE/words\"");
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *wrong = NULL;
		AUTO(auto_free) char *words = NULL;
		struct clinic clinic;

		clinic_open(*state, &clinic, 60000, 60000);
		MESSAGE_SET_TEXT(clinic.config.order, instance, rows[i].instance);
		clinic.c.python = (char[]){ "/bin/false" };
		clinic.c.xla = true;
		wrong = health_run_torch(&clinic.c, 2, 1, "10.0.0.1", 32000, clinic.c.end, "across",
					 clinic.c.figures);
		assert_null(wrong);
		words = read_file(path, NULL);
		assert_non_null(strstr(words, rows[i].words));
		assert_int_equal(strstr(words, " 10.0.0.1:32040\n") != NULL, i == 0);
		clinic_close(&clinic);
	}
}

static void more_devices_than_known_are_told_and_fewer_are_sick(void **state)
{
	const struct {
		const char *shown, *verdict, *words;
	} rows[] = {
		{ "[]", ROW_SICK, "neuron-ls shows 0 of 1 Neuron devices" },
		{ "[{\"nc_count\": 2}]", ROW_OK, "1 devices with 2 cores" },
		{ "[{\"nc_count\": 2}, {\"nc_count\": 2}]", ROW_WARNED,
		  "neuron-ls shows 2 Neuron devices instead of 1" },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *script = mem_format("echo '%s'", rows[i].shown);
		struct clinic clinic;

		put_tool(*state, "neuron-ls", script);
		clinic_open(*state, &clinic, 60000, 60000);
		health_neuron_devices(&clinic.c);
		assert_string_equal(row_of(&clinic, "devices", rows[i].verdict), rows[i].words);
		clinic_close(&clinic);
	}
}

/* ---- time that others took ----------------------------------------------------------- */

static void a_tool_hangs_only_if_it_had_its_time(void **state)
{
	/* Others have taken almost all of the first health.timeout; a part of the second is enough,
	 * so that a slow machine may take the rest. */
	const struct {
		int64_t timeout_ms, left_ms;
		const char *verdict, *words;
	} rows[] = { { 4000, 200, ROW_UNCHECKED,
		       "too little time was left of health.timeout (4.0 s)" },
		     { 100, 1000, ROW_SICK, "hangs" } };
	AUTO(auto_free) char *python = place_path(*state, "bin/python3");

	put_tool(*state, "nccom-test", "exec sleep 60");
	put_tool(*state, "neuron-ls", "exec sleep 60");
	put_tool(*state, "python3", "exec sleep 60");
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct clinic clinic;

		clinic_open(*state, &clinic, rows[i].timeout_ms, rows[i].left_ms);
		health_check_collectives(&clinic.c);
		assert_non_null(
			strstr(row_of(&clinic, "collectives", rows[i].verdict), rows[i].words));
		clinic_close(&clinic);
		clinic_open(*state, &clinic, rows[i].timeout_ms, rows[i].left_ms);
		clinic.c.python = python;
		health_check_tensor(&clinic.c);
		assert_non_null(strstr(row_of(&clinic, "tensor", rows[i].verdict), rows[i].words));
		clinic_close(&clinic);
	}
}

/* ---- causes outside of the node ------------------------------------------------------ */

static void what_does_not_get_to_run_is_no_sick_core(void **state)
{
	const struct {
		const char *tool, *script, *verdict, *words;
	} rows[] = {
		{ "nccom-test", "echo 'libnrt.so.1: no such file' >&2; exit 127", ROW_UNCHECKED,
		  "cannot run nccom-test: nccom-test ended with 127: libnrt.so.1: no such file" },
		{ "nccom-test", "exit 126", ROW_UNCHECKED, "cannot run nccom-test: " },
		{ "nccom-test", "exit 1", ROW_SICK, "all_reduce among its 2 cores: " },
		{ "python3", "exit 255", ROW_UNCHECKED, "exit status 255: " },
		{ "python3", "exit 137", ROW_UNCHECKED, "exit status 137: " },
		{ "python3", "exit 139", ROW_SICK, "was ended by signal 11: " },
	};
	AUTO(auto_free) char *python = place_path(*state, "bin/python3");

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		bool tensor = rows[i].tool[0] == 'p';
		struct clinic clinic;

		put_tool(*state, rows[i].tool, rows[i].script);
		clinic_open(*state, &clinic, 60000, 60000);
		clinic.c.python = python;
		(tensor ? health_check_tensor : health_check_collectives)(&clinic.c);
		assert_non_null(
			strstr(row_of(&clinic, tensor ? "tensor" : "collectives", rows[i].verdict),
			       rows[i].words));
		clinic_close(&clinic);
	}
}

/* The kernel still counts when the workspace has taken all the time. */
static void devices_are_counted_when_no_time_is_left(void **state)
{
	AUTO(auto_free) char *sysfs = place_path(*state, "sysfs");
	AUTO(auto_free) char *device = place_path(*state, "sysfs/neuron0/here");
	struct clinic clinic;

	put_tool(*state, "neuron-ls", "exec sleep 60");
	write_file(device, "", 0600);
	clinic_open(*state, &clinic, 60000, -60000);
	command_env_put(&clinic.c.env, "NEURON_SYSFS_ROOT", sysfs);
	health_neuron_devices(&clinic.c);
	assert_string_equal(row_of(&clinic, "devices", ROW_OK),
			    "1 devices (by the kernel: no time left for neuron-ls)");
	clinic_close(&clinic);
}

/* ---- notes of other nodes ----------------------------------------------------------- */

static void keep(void *arg, const json_t *said)
{
	*(json_t **)arg = json_deep_copy(said);
}

/* Writes the note of another node, or of none of ours: a row without a verdict. */
static void put_note(const struct place *place, int node)
{
	AUTO(auto_free)
	char *path = mem_format("%s/" PREFIX "node-%d/" HEALTH_FILE, place->root, node);
	json_auto_t *note = json_pack("{s:s, s:s, s:i, s:s, s:[{}]}", "nonce", NONCE, "token", "",
				      "restart", 0, "state", "done", "rows");
	AUTO(auto_free) char *text = js_line(note);

	write_file(path, text, 0600);
}

static void a_note_without_a_verdict_is_borne(void **state)
{
	struct place *place = *state;
	json_t *order = order_for(place, "true");
	AUTO(auto_free) char *path = place_path(place, PREFIX ORDER_FILE);
	struct claim claim = { .master_addr = (char[]){ "127.0.0.1" } };
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *said = NULL;
	const int nodes = 9; /* more than are shown whole */

	js_put(order, "nodes", json_integer(nodes));
	js_put(order, "health",
	       json_pack("{s:b, s:b, s:[], s:I}", "full", 1, "device", 0, "ops", "timeout_ms",
			 (json_int_t)20000));
	order_write(place, order);
	for (int i = 1; i < nodes; i++)
		put_note(place, i);
	must(agent_config_load(path, "0", &config, &err), &err);
	must(fs_mkdirs(config.dir, &err), &err);
	health_work(&config, &claim, keep, &said);
	assert_string_equal(js_str(said, "outcome"), HEALTH_HEALTHY);
	assert_int_equal(json_array_size(json_object_get(json_object_get(said, "report"), "nodes")),
			 nodes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(as_many_hosts_are_named_as_there_are, place_make,
						place_remove),
		cmocka_unit_test_setup_teardown(
			ranks_are_cores_where_machines_of_that_type_can_meet, place_make,
			place_remove),
		cmocka_unit_test_setup_teardown(more_devices_than_known_are_told_and_fewer_are_sick,
						place_make, place_remove),
		cmocka_unit_test_setup_teardown(a_tool_hangs_only_if_it_had_its_time, place_make,
						place_remove),
		cmocka_unit_test_setup_teardown(what_does_not_get_to_run_is_no_sick_core,
						place_make, place_remove),
		cmocka_unit_test_setup_teardown(devices_are_counted_when_no_time_is_left,
						place_make, place_remove),
		cmocka_unit_test_setup_teardown(a_note_without_a_verdict_is_borne, place_make,
						place_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
