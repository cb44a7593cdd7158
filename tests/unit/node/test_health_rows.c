/* The word of each check of one node on what its tool prints, ends with or lacks: who is sick, who
 * is only warned, and what could not be checked at all, which never makes a node sick. */
#include "tests/unit/node/clinic.h"

struct row {
	const char *script; /* of the tool; NULL: it is not there */
	const char *verdict, *words;
};

/* ---- a tensor ---- */

#define SAID(json) "echo 'loading'; echo '" json "'; echo '{torn'"

static void a_product_is_judged_by_what_the_program_says(void **state)
{
	static const struct row rows[] = {
		{ SAID("{\"torch\":true,\"framework\":\"torch\",\"cores\":2,\"accelerated\":true}"),
		  ROW_OK, "a product is right on 2 cores (torch)" },
		{ SAID("{\"framework\":\"torch\",\"cores\":1,\"accelerated\":true}"), ROW_WARNED,
		  "a product is right, but on 1 of 2 cores (torch)" },
		{ SAID("{\"framework\":\"jax\",\"cores\":1,\"left_out\":true}"), ROW_SICK,
		  "jax computes on the CPU: the plugin for the 2 cores does not start, or does not "
		  "fit jax" },
		{ SAID("{\"framework\":\"jax\",\"cores\":1}"), ROW_UNCHECKED,
		  "jax is installed, but no plugin for the 2 cores" },
		{ SAID("{\"framework\":\"torch\",\"unable\":\"no module torch_xla\"}"),
		  ROW_UNCHECKED, "no module torch_xla" },
		{ SAID("{\"framework\":\"torch\",\"cores\":2,\"wrong\":[{\"core\":0,\"words\":\"4 "
		       "of 9 are wrong\"},{\"core\":1}]}"),
		  ROW_SICK,
		  "a product with a known answer (torch): core 0: 4 of 9 are wrong; core 1: ?" },
		{ SAID("{}"), ROW_UNCHECKED, "finds neither torch nor jax" },
		{ "echo no JSON", ROW_UNCHECKED, "exit status 0: no JSON" },
		{ "echo 'killed' >&2; kill -9 $$", ROW_UNCHECKED, "exit status 137: killed" },
	};
	AUTO(auto_free) char *python = place_path(*state, "bin/python3");

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct clinic clinic;
		const char *words;

		put_tool(*state, "python3", rows[i].script);
		clinic_open(*state, &clinic, 60000, 60000);
		clinic.c.python = python;
		health_check_tensor(&clinic.c);
		words = row_of(&clinic, "tensor", rows[i].verdict);
		if (!strstr(words, rows[i].words))
			fail_msg("row %zu: %s", i, words);
		assert_int_equal(js_bool(clinic.c.told, "torch", false), i == 0);
		clinic_close(&clinic);
	}
}

static void without_a_python_nothing_is_computed_and_nobody_is_sick(void **state)
{
	AUTO(auto_free) char *nobody = place_path(*state, "bin/python3");
	AUTO(auto_free) char *folder = place_path(*state, "gone");
	struct clinic clinic;

	clinic_open(*state, &clinic, 60000, 60000);
	health_check_tensor(&clinic.c);
	assert_string_equal(row_of(&clinic, "tensor", ROW_UNCHECKED), "Python not found");
	clinic_close(&clinic);
	/* A tool that is no program any more. */
	clinic_open(*state, &clinic, 60000, 60000);
	clinic.c.python = nobody;
	health_check_tensor(&clinic.c);
	assert_non_null(strstr(row_of(&clinic, "tensor", ROW_UNCHECKED), "bin/python3"));
	clinic_close(&clinic);
	/* A folder that is gone: our program cannot be put there. */
	clinic_open(*state, &clinic, 60000, 60000);
	clinic.c.python = nobody;
	free(clinic.c.folder);
	clinic.c.folder = mem_copy(folder);
	health_check_tensor(&clinic.c);
	assert_non_null(strstr(row_of(&clinic, "tensor", ROW_UNCHECKED), "health_tensor.py"));
	clinic_close(&clinic);
}

/* ---- devices ---- */

#define ONE_DEVICE "[{\"neuron_device\": 0, \"nc_count\": 2, \"neuron_processes\": []}]"

/* Several rows may be said: the first is of the devices. */
static const json_t *first_row(const struct clinic *clinic)
{
	return json_array_get(clinic->c.rows, 0);
}

static void devices_are_judged_by_what_neuron_ls_shows(void **state)
{
	static const struct row rows[] = {
		{ "echo '" ONE_DEVICE "'", ROW_OK, "1 devices with 2 cores" },
		{ "echo '[{\"neuron_device\": 0, \"nc_count\": 4, \"neuron_processes\": []}]'",
		  ROW_WARNED, "1 devices, but 4 cores instead of 2" },
		{ "echo 'nrt: driver version mismatch' >&2; exit 3", ROW_SICK,
		  "neuron-ls ended with 3: nrt: driver version mismatch" },
		{ "echo no devices", ROW_UNCHECKED, "cannot read the output of neuron-ls: " },
		{ NULL, ROW_UNCHECKED, "neuron-ls not found, and '" },
	};
	AUTO(auto_free) char *nowhere = place_path(*state, "no-sysfs");
	AUTO(auto_free) char *tool = place_path(*state, "bin/neuron-ls");

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct clinic clinic;
		const char *words;

		if (rows[i].script)
			put_tool(*state, "neuron-ls", rows[i].script);
		else
			assert_int_equal(unlink(tool), 0);
		clinic_open(*state, &clinic, 60000, 60000);
		MESSAGE_SET(clinic.config.order, cores, 2);
		command_env_put(&clinic.c.env, "NEURON_SYSFS_ROOT", nowhere);
		health_neuron_devices(&clinic.c);
		words = js_str(first_row(&clinic), "words");
		if (!js_is(first_row(&clinic), "verdict", rows[i].verdict) ||
		    !strstr(words, rows[i].words))
			fail_msg("row %zu: %s: %s", i, js_str(first_row(&clinic), "verdict"),
				 words);
		assert_int_equal(clinic.c.sick, strcmp(rows[i].verdict, ROW_SICK) == 0);
		clinic_close(&clinic);
	}
}

static void who_uses_a_device_is_named(void **state)
{
	struct clinic clinic;
	const json_t *row;

	put_tool(*state, "neuron-ls",
		 "echo '[{\"neuron_device\": 0, \"nc_count\": 2, \"neuron_processes\": [{\"pid\": "
		 "7, \"command\": \"python x.py\"}, {\"pid\": 8}]}]'");
	clinic_open(*state, &clinic, 60000, 60000);
	health_neuron_devices(&clinic.c);
	assert_int_equal(json_array_size(clinic.c.rows), 2);
	row = json_array_get(clinic.c.rows, 1);
	assert_string_equal(js_str(row, "check"), "processes");
	assert_string_equal(js_str(row, "verdict"), ROW_SICK);
	assert_string_equal(js_str(row, "words"), "device 0 is in use by process 7 (python x.py), "
						  "device 0 is in use by process 8");
	assert_true(clinic.c.sick);
	clinic_close(&clinic);
}

/* An order that does not know how many devices the machine has. */
static void no_device_at_all_is_sick_whatever_was_ordered(void **state)
{
	struct clinic clinic;

	put_tool(*state, "neuron-ls", "echo '[]'");
	clinic_open(*state, &clinic, 60000, 60000);
	clinic.config.order->devices = 0;
	health_neuron_devices(&clinic.c);
	assert_string_equal(row_of(&clinic, "devices", ROW_SICK),
			    "neuron-ls shows no Neuron device");
	clinic_close(&clinic);
}

static void a_tool_that_is_no_program_is_told_and_the_kernel_counts(void **state)
{
	AUTO(auto_free) char *sysfs = place_path(*state, "sysfs");
	AUTO(auto_free) char *device = place_path(*state, "sysfs/neuron0/here");
	AUTO(auto_free) char *other = place_path(*state, "sysfs/neuron_x/here");
	AUTO(auto_free) char *tool = place_path(*state, "bin/neuron-ls");
	struct clinic clinic;
	const char *words;

	write_file(tool, "\177ELF not whole", 0755);
	write_file(device, "", 0600);
	write_file(other, "", 0600);
	clinic_open(*state, &clinic, 60000, 60000);
	command_env_put(&clinic.c.env, "NEURON_SYSFS_ROOT", sysfs);
	health_neuron_devices(&clinic.c);
	words = row_of(&clinic, "devices", ROW_OK);
	assert_non_null(strstr(words, "1 devices (by the kernel: neuron-ls: "));
	clinic_close(&clinic);
	/* The kernel may show fewer as well. */
	clinic_open(*state, &clinic, 60000, 60000);
	command_env_put(&clinic.c.env, "NEURON_SYSFS_ROOT", sysfs);
	clinic.config.order->devices = 2;
	health_neuron_devices(&clinic.c);
	assert_string_equal(row_of(&clinic, "devices", ROW_SICK),
			    "the kernel shows 1 of 2 Neuron devices");
	clinic_close(&clinic);
}

static void put_counter(const struct place *place, const char *device, const char *counter,
			const char *text)
{
	AUTO(auto_free)
	char *path = mem_format("%s/sysfs/%s/stats/hardware/%s", place->root, device, counter);

	write_file(path, text, 0600);
}

static void errors_that_a_device_has_counted_are_named(void **state)
{
	AUTO(auto_free) char *sysfs = place_path(*state, "sysfs");
	struct clinic clinic;
	const json_t *row;

	put_counter(*state, "neuron3", "mem_ecc_uncorrected/total", "2\n");
	put_counter(*state, "neuron3", "sram_ecc_uncorrected", "0\n");
	put_counter(*state, "neuron3", "mem_ecc_repairable_uncorrected", "many\n"); /* no number */
	put_counter(*state, "neuron4", "mem_ecc_repairable_uncorrected", "1\n");
	put_counter(*state, "nothing", "sram_ecc_uncorrected", "9\n");
	clinic_open(*state, &clinic, 60000, 60000);
	command_env_put(&clinic.c.env, "NEURON_SYSFS_ROOT", sysfs);
	health_neuron_counters(&clinic.c);
	assert_int_equal(json_array_size(clinic.c.rows), 2);
	for (size_t i = 0; i < 2; i++) {
		row = json_array_get(clinic.c.rows, i);
		assert_string_equal(js_str(row, "verdict"), ROW_SICK);
		if (strstr(js_str(row, "words"), "device 3"))
			assert_string_equal(js_str(row, "words"),
					    "device 3 has 2 uncorrected errors in its memory: have "
					    "it replaced");
		else
			assert_string_equal(
				js_str(row, "words"),
				"device 4 has 1 uncorrected errors in its memory that a "
				"new load of the driver repairs");
	}
	clinic_close(&clinic);
}

static void counters_that_are_zero_are_told_and_so_is_their_absence(void **state)
{
	AUTO(auto_free) char *sysfs = place_path(*state, "sysfs");
	struct clinic clinic;

	clinic_open(*state, &clinic, 60000, 60000);
	command_env_put(&clinic.c.env, "NEURON_SYSFS_ROOT", sysfs);
	health_neuron_counters(&clinic.c);
	assert_non_null(strstr(row_of(&clinic, "counters", ROW_UNCHECKED), "/sysfs' shows none"));
	clinic_close(&clinic);
	put_counter(*state, "neuron0", "mem_ecc_uncorrected", "0\n");
	put_counter(*state, "neuron0", "sram_ecc_uncorrected", "0\n");
	clinic_open(*state, &clinic, 60000, 60000);
	command_env_put(&clinic.c.env, "NEURON_SYSFS_ROOT", sysfs);
	health_neuron_counters(&clinic.c);
	assert_string_equal(row_of(&clinic, "counters", ROW_OK),
			    "2 counters of uncorrected errors are zero");
	clinic_close(&clinic);
}

/* ---- collectives ---- */

static void a_collective_is_judged_by_what_nccom_test_prints(void **state)
{
	static const struct row rows[] = {
		{ "printf '" TABLE "'", ROW_OK, "all_reduce 7.5 GB/s" },
		/* The file counts before the table. */
		{ "while [ $# -gt 1 ]; do [ $1 = --report-to-json-file ] && printf "
		  "'{\"results\":[{\"size(B)\":4096,\"busbw(GB/s)\":9,\"time(us)\":3}]}' > $2; "
		  "shift; done; printf '" TABLE "'",
		  ROW_OK, "all_reduce 9.0 GB/s" },
		/* An older one knows neither the file nor the comparison of results. */
		{ "case \"$*\" in *--report-to-json-file*) echo 'unrecognized arguments: -c' >&2; "
		  "exit 2;; esac; printf '" TABLE "'",
		  ROW_OK, "all_reduce 7.5 GB/s" },
		{ "echo '1 errors found - test failed'", ROW_SICK,
		  "all_reduce among its 2 cores: nccom-test says: 1 errors found - test failed" },
		{ "echo 'Failure running neuron-bench - x' >&2", ROW_SICK,
		  "nccom-test says: Failure running neuron-bench - x" },
		{ "echo 'a last word' >&2; exit 4", ROW_SICK,
		  "nccom-test ended with 4: a last word" },
		{ "echo nothing of use", ROW_SICK, "nccom-test all_reduce ended with 0, but " },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct clinic clinic;
		const char *words;

		put_tool(*state, "nccom-test", rows[i].script);
		clinic_open(*state, &clinic, 60000, 60000);
		health_check_collectives(&clinic.c);
		words = row_of(&clinic, "collectives", rows[i].verdict);
		if (!strstr(words, rows[i].words))
			fail_msg("row %zu: %s", i, words);
		clinic_close(&clinic);
	}
}

static void without_nccom_test_or_two_cores_none_is_run(void **state)
{
	static const struct {
		bool there;
		int cores;
		const char *words;
	} rows[] = {
		{ false, 2, "nccom-test is not in this image" },
		{ true, 0, "the number of cores is not known" },
		{ true, 1, "only one core" },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct clinic clinic;

		if (rows[i].there)
			put_tool(*state, "nccom-test", "exit 1");
		clinic_open(*state, &clinic, 60000, 60000);
		clinic.c.cores = rows[i].cores;
		health_check_collectives(&clinic.c);
		assert_string_equal(row_of(&clinic, "collectives", ROW_UNCHECKED), rows[i].words);
		clinic_close(&clinic);
	}
}

/* ---- torchrun ---- */

static void an_all_reduce_over_torchrun_is_judged_by_its_last_line(void **state)
{
	static const struct {
		const char *script, *words; /* NULL: it went well */
	} rows[] = {
		{ "echo '{\"busbw\": 2.5, \"time_us\": 10, \"ranks\": 2}'", NULL },
		{ "exit 0", NULL }, /* not the rank that prints */
		{ "echo '{\"wrong\": 3, \"of\": 12, \"expected\": 3.0}'; exit 1",
		  "3 of 12 elements of an all-reduce are wrong: each should be 3" },
		{ "echo 'no route to host' >&2; exit 1",
		  "an all-reduce over torchrun ended with 1: no route to host" },
	};
	AUTO(auto_free) char *python = place_path(*state, "bin/python3");

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *wrong = NULL;
		struct clinic clinic;

		/* torchrun is run as a module of Python if the image has no program of that
		 * name. */
		put_tool(*state, "python3", rows[i].script);
		clinic_open(*state, &clinic, 60000, 60000);
		clinic.c.python = python;
		command_env_put(&clinic.c.env, "PATH", "/nowhere");
		wrong = health_run_torch(&clinic.c, 2, 1, "10.0.0.1", 32000, clinic.c.end, "across",
					 clinic.c.figures);
		if (!rows[i].words)
			assert_null(wrong);
		else
			assert_string_equal(wrong, rows[i].words);
		assert_int_equal(json_object_get(clinic.c.figures, "across") != NULL, i == 0);
		clinic_close(&clinic);
	}
}

static void an_all_reduce_that_cannot_be_run_or_hangs_is_told(void **state)
{
	AUTO(auto_free) char *python = place_path(*state, "bin/python3");
	AUTO(auto_free) char *none = NULL;
	AUTO(auto_free) char *gone = NULL;
	AUTO(auto_free) char *hangs = NULL;
	struct clinic clinic;
	struct mono soon;

	clinic_open(*state, &clinic, 60000, 60000);
	none = health_run_torch(&clinic.c, 2, 1, "10.0.0.1", 1, clinic.c.end, "across",
				clinic.c.figures);
	assert_string_equal(none, "an all-reduce over torchrun: Python not found");
	clinic.c.python = python; /* it is not there */
	command_env_put(&clinic.c.env, "PATH", "/nowhere");
	gone = health_run_torch(&clinic.c, 2, 1, "10.0.0.1", 1, clinic.c.end, "across",
				clinic.c.figures);
	assert_non_null(strstr(gone, "an all-reduce over torchrun: "));
	assert_non_null(strstr(gone, "bin/python3"));
	put_tool(*state, "python3", "exec /bin/sleep 60");
	soon.ms = clock_mono_now().ms + 100;
	hangs = health_run_torch(&clinic.c, 2, 1, "10.0.0.1", 1, soon, "across", clinic.c.figures);
	assert_non_null(strstr(hangs, "an all-reduce over torchrun hangs, stopped after "));
	clinic_close(&clinic);
}

static void nccom_test_over_hosts_is_told_where_it_is_missing(void **state)
{
	AUTO(auto_free) char *wrong = NULL;
	struct clinic clinic;

	clinic_open(*state, &clinic, 60000, 60000);
	wrong = health_run_nccom(&clinic.c, "all_reduce", 2, NULL, clinic.c.end, "across",
				 clinic.c.figures);
	assert_string_equal(wrong, "nccom-test not found");
	clinic_close(&clinic);
}

/* ---- the place ---- */

static void clinic_open_place(struct place *place, struct clinic *clinic, const char *dir)
{
	AUTO(err_freep) struct err *err = NULL;

	clinic_open(place, clinic, 60000, 60000);
	clinic->config.dir = (char *)dir;
	clinic->config.prefix = PREFIX;
	clinic->config.nonce = NONCE;
	clinic->config.token = "";
	must(store_open(place->root, &clinic->c.store, &err), &err);
}

static void a_place_that_cannot_be_looked_at_is_unchecked(void **state)
{
	AUTO(auto_free) char *gone = place_path(*state, "gone");
	AUTO(auto_free) char *file = place_path(*state, "runs");
	struct clinic clinic;
	const json_t *row;
	size_t i;

	write_file(file, "no folder", 0600);
	clinic_open_place(*state, &clinic, gone);
	health_check_place(&clinic.c);
	assert_int_equal(json_array_size(clinic.c.rows), 3);
	assert_false(clinic.c.sick);
	json_array_foreach (clinic.c.rows, i, row) {
		if (js_is(row, "check", "disk"))
			assert_non_null(
				strstr(js_str(row, "words"), "cannot read the free space of '"));
		if (js_is(row, "check", "clock"))
			assert_non_null(strstr(js_str(row, "words"),
					       "the time of the workspace is not known: "));
		assert_int_equal(js_is(row, "verdict", ROW_UNCHECKED),
				 !js_is(row, "check", "memory"));
	}
	store_freep(&clinic.c.store);
	clinic_close(&clinic);
}

/* The room on this machine is not the test's to say. */
static void the_clock_of_a_workspace_nearby_is_ours(void **state)
{
	struct place *place = *state;
	struct clinic clinic;
	const json_t *row;
	size_t i;

	clinic_open_place(place, &clinic, place->root);
	health_check_place(&clinic.c);
	assert_int_equal(json_array_size(clinic.c.rows), 3);
	json_array_foreach (clinic.c.rows, i, row)
		if (js_is(row, "check", "clock"))
			assert_string_equal(js_str(row, "verdict"), ROW_OK);
	store_freep(&clinic.c.store);
	clinic_close(&clinic);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_product_is_judged_by_what_the_program_says),
		TEST(without_a_python_nothing_is_computed_and_nobody_is_sick),
		TEST(devices_are_judged_by_what_neuron_ls_shows),
		TEST(who_uses_a_device_is_named),
		TEST(no_device_at_all_is_sick_whatever_was_ordered),
		TEST(a_tool_that_is_no_program_is_told_and_the_kernel_counts),
		TEST(errors_that_a_device_has_counted_are_named),
		TEST(counters_that_are_zero_are_told_and_so_is_their_absence),
		TEST(a_collective_is_judged_by_what_nccom_test_prints),
		TEST(without_nccom_test_or_two_cores_none_is_run),
		TEST(an_all_reduce_over_torchrun_is_judged_by_its_last_line),
		TEST(an_all_reduce_that_cannot_be_run_or_hangs_is_told),
		TEST(nccom_test_over_hosts_is_told_where_it_is_missing),
		TEST(a_place_that_cannot_be_looked_at_is_unchecked),
		TEST(the_clock_of_a_workspace_nearby_is_ours),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
