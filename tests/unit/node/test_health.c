/* What Neuron's tools print, of several ages, whole, torn and senseless. */
#include "tests/unit/node/place.h"

#include "jobs/node/health/health_parse.h"

#define TABLE(text) text, sizeof(text) - 1

static void devices_are_counted_and_strangers_named(void **state)
{
	static const char text[] =
		"[INFO] a greeting [of 2]\n"
		"[{\"neuron_device\": 0, \"nc_count\": 2, \"neuron_processes\": []},\n"
		" {\"neuron_device\": 1, \"bdf\": \"00:1e.0\", \"nc_count\": 2, \"later\": {},\n"
		"  \"neuron_processes\": [{\"pid\": 42, \"command\": \"python x.py\"}]}]";
	AUTO(health_neuron_ls_release) struct neuron_ls ls = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	const json_t *one;

	(void)state;
	assert_int_equal(health_neuron_ls_parse(TABLE(text), &ls, &err), 0);
	assert_int_equal(ls.devices, 2);
	assert_int_equal(ls.cores, 4);
	assert_int_equal(json_array_size(ls.processes), 1);
	one = json_array_get(ls.processes, 0);
	assert_int_equal(js_int(one, "device", -1), 1);
	assert_int_equal(js_int(one, "pid", 0), 42);
	assert_string_equal(js_str(one, "command"), "python x.py");
}

static void what_is_no_list_of_devices_is_an_error(void **state)
{
	static const char *const texts[] = { "", "no devices found", "{}", "[1]", "[{}", "[[]]" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(texts); i++) {
		AUTO(health_neuron_ls_release) struct neuron_ls ls = { 0 };
		AUTO(err_freep) struct err *err = NULL;

		if (health_neuron_ls_parse(texts[i], strlen(texts[i]), &ls, &err) == 0)
			fail_msg("'%s' was taken for devices", texts[i]);
		assert_non_null(err);
	}
}

struct table {
	const char *text;
	double size, busbw, time_us; /* busbw -1: no figures in it */
};

/* Headings of the pages of nccom-test, and of versions before there were percentiles. */
static const struct table tables[] = {
	{ "    size(B)  count(elems)  type  time:avg(us)  algbw(GB/s)  busbw(GB/s)\n"
	  "   33554432       8388608  fp32        768.21        40.69        40.70\n"
	  "Avg bus bandwidth:\t40.6901GB/s\n",
	  33554432, 40.70, 768.21 },
	{ "size(B) count(elems) type time(us) algbw(GB/s) busbw(GB/s)\n"
	  "1024 256 fp32 6 0.165 0.160\n"
	  "1048576 262144 fp32 90 11.0 20.6\n"
	  "Avg bus bandwidth: 10.3800GB/s\n",
	  1048576, 20.6, 90 },
	{ "size(B) count(elems) total_input_size(B) total_output_size(B) type time:avg(us) "
	  "time:p50(us) algbw(GB/s) busbw(GB/s) algorithm\r\n"
	  "4096 1024 4096 8192 fp32 10.5 10.1 0.4 0.7 ring\r\n"
	  "Avg bus bandwidth:    0.7000GB/s\r\n",
	  4096, 0.7, 10.5 },
	{ "size(B) type time(us)\n4096 fp32 10\nAvg bus bandwidth:\t3.5GB/s\n", 4096, 3.5, 10 },
	{ "", 0, -1, 0 },
	{ "Avg bus bandwidth:\t40.6901GB/s\n", 0, -1, 0 },
	{ "size(B) busbw(GB/s)\n4096 7.5\n", 0, -1, 0 }, /* it broke off */
	{ "size(B) busbw(GB/s)\n4096 nan\nAvg bus bandwidth:\tnanGB/s\n", 0, -1, 0 },
	{ "size(B) busbw(GB/s)\n4096 Failure running neuron-bench - log file /tmp/x.log\n"
	  "1 errors found - test failed\n",
	  0, -1, 0 },
	{ "size(B) busbw(GB/s)\n-1 -7\nAvg bus bandwidth:\t-7GB/s\n", 0, -1, 0 },
};

typedef int parse_fn(const char *text, size_t len, struct nccom_row *ret, struct err **err);

static void read_all(const struct table *rows, size_t count, parse_fn *parse)
{
	for (size_t i = 0; i < count; i++) {
		const struct table *row = &rows[i];
		AUTO(err_freep) struct err *err = NULL;
		struct nccom_row found = { 0 };
		int done = parse(row->text, strlen(row->text), &found, &err);

		if ((done == 0) != (row->busbw >= 0))
			fail_msg("text %zu: %s", i, err ? err->message : "has figures");
		if (done < 0)
			continue;
		assert_true(found.size == row->size);
		assert_true(found.busbw == row->busbw);
		assert_true(found.time_us == row->time_us);
	}
}

static void a_table_is_read_by_the_names_of_its_columns(void **state)
{
	(void)state;
	read_all(tables, STK_LENGTH(tables), health_nccom_parse_table);
}

static void a_report_is_read_by_the_names_of_its_members(void **state)
{
	static const struct table reports[] = {
		{ "{\"results\":[{\"size(B)\":1024,\"count(elems)\":256,\"type\":\"fp32\","
		  "\"algbw(GB/s)\":0.165,\"busbw(GB/s)\":0.160,\"time:avg(us)\":6.19}]}",
		  1024, 0.160, 6.19 },
		{ "{\"results\":[{\"size(B)\":2048,\"busbw(GB/s)\":3,\"time(us)\":7},"
		  "{\"size(B)\":1024,\"busbw(GB/s)\":9}],\"config\":{}}",
		  2048, 3, 7 },
		{ "{\"results\":[]}", 0, -1, 0 },
		{ "{\"results\":[{\"size(B)\":1024}]}", 0, -1, 0 },
		{ "{\"results\":[{\"size(B)\":1024,\"busbw(GB/s)\":-3}]}", 0, -1, 0 },
		{ "{\"results\":{}}", 0, -1, 0 },
		{ "[]", 0, -1, 0 },
		{ "", 0, -1, 0 },
	};

	(void)state;
	read_all(reports, STK_LENGTH(reports), health_nccom_parse_json);
}

static void a_failure_is_known_by_its_words(void **state)
{
	static const struct {
		const char *text, *words;
	} rows[] = {
		{ "Neuron DKMS Driver is not running! Read the guide\n",
		  "Neuron DKMS Driver is not running! Read the guide" },
		{ "size(B)\n   4096 Failure running neuron-bench - log file /tmp/x.log\n",
		  "4096 Failure running neuron-bench - log file /tmp/x.log" },
		{ "a\n1 errors found - test failed", "1 errors found - test failed" },
		{ "Avg bus bandwidth:\t40.6901GB/s\n", NULL },
		{ "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free)
		char *words = health_nccom_failure(rows[i].text, strlen(rows[i].text));

		assert_int_equal(words != NULL, rows[i].words != NULL);
		if (words)
			assert_string_equal(words, rows[i].words);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(devices_are_counted_and_strangers_named),
		cmocka_unit_test(what_is_no_list_of_devices_is_an_error),
		cmocka_unit_test(a_table_is_read_by_the_names_of_its_columns),
		cmocka_unit_test(a_report_is_read_by_the_names_of_its_members),
		cmocka_unit_test(a_failure_is_known_by_its_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
