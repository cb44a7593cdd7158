/* What nvidia-smi prints is read by the names of its columns, and nothing is made of what is no
 * figure. */
#include "tests/unit/quoted.h"

#include "jobs/node/health/health_smi.h"

static json_t *parsed(const char *text, const char *column)
{
	AUTO(err_freep) struct err *err = NULL;
	json_t *rows = health_smi_parse(text, strlen(text), column, NULL, &err);

	if (!rows)
		assert_non_null(strstr(err->message, column));
	return rows;
}

static void columns_are_found_by_their_names(void **state)
{
	static const struct {
		const char *text, *column, *rows; /* NULL: there are none to find */
	} tests[] = {
		{ "index, name\n0, A, B\n", "index", "[{'index':'0','name':'A, B'}]" },
		{ "WARNING: old\r\nname, index [x]\r\nA10G , 1\r\n", "index",
		  "[{'name':'A10G','index':'1'}]" },
		{ "index, used [MiB]\n0, 7 MiB\nGPU is lost\n", "used",
		  "[{'index':'0','used':'7 MiB'}]" },
		{ "index, name\n", "index", "[]" },
		{ "No devices were found\n", "index", NULL },
		{ "0, A\n1, B\n", "index", NULL },
		{ "", "index", NULL },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(tests); i++) {
		json_auto_t *rows = parsed(tests[i].text, tests[i].column);
		json_auto_t *wanted = tests[i].rows ? quoted_json(tests[i].rows) : NULL;

		if (wanted ? !json_equal(rows, wanted) : rows != NULL)
			fail_msg("%s", tests[i].text);
	}
}

static void a_field_that_is_not_known_is_named(void **state)
{
	static const char *const others[] = { "", "Field ", "Field \"x", "Field \"x\" is fine" };
	static const char message[] = "Field \"a.b\" is not a valid field to query.\n";
	AUTO(auto_free) char *name = health_smi_unknown(message, strlen(message));

	(void)state;
	assert_string_equal(name, "a.b");
	for (size_t i = 0; i < STK_LENGTH(others); i++)
		assert_null(health_smi_unknown(others[i], strlen(others[i])));
}

/* A driver names the GPU that it lost in front of the others, or behind them. */
static void a_line_aside_is_kept(void **state)
{
	static const struct {
		const char *text, *aside;
	} tests[] = {
		{ "index, name\n0, A\n", NULL },
		{ "GPU1 is gone: Unknown Error\r\nindex, name\n0, A\n",
		  "GPU1 is gone: Unknown Error" },
		{ "first\nindex, name\n0, A\n \t\r\nthe last\n\n", "the last" },
		{ "no, heading\n", "no, heading" },
		{ "", NULL },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(tests); i++) {
		AUTO(auto_free) char *aside = NULL;
		AUTO(err_freep) struct err *err = NULL;
		json_auto_t *rows = health_smi_parse(tests[i].text, strlen(tests[i].text), "index",
						     &aside, &err);

		assert_true((rows == NULL) == (err != NULL));
		if (tests[i].aside ? !aside || strcmp(aside, tests[i].aside) != 0 : aside != NULL)
			fail_msg("%s: %s", tests[i].text, aside ? aside : "none");
	}
}

static void a_broken_gpu_says_so_in_its_row(void **state)
{
	static const char *const others[] = {
		"", "[N/A]", "[Unknown Error]", "GPU is lost", "[GPU is lost", "[GPU is lost] "
	};

	(void)state;
	assert_string_equal(health_smi_broken("[GPU is lost]"), "GPU is lost");
	assert_string_equal(health_smi_broken("[Gpu Requires Reset]"), "GPU requires reset");
	assert_null(health_smi_broken(NULL));
	for (size_t i = 0; i < STK_LENGTH(others); i++)
		assert_null(health_smi_broken(others[i]));
}

static void only_figures_count(void **state)
{
	static const char *const none[] = { "[N/A]",
					    "N/A",
					    "[Not Supported]",
					    "[Unknown Error]",
					    "ERR!",
					    "",
					    "-1",
					    "7 MiB",
					    "No.",
					    "0x10",
					    "[GPU requires reset]" };
	int64_t count = 9;

	(void)state;
	assert_true(health_smi_count("12", &count));
	assert_int_equal(count, 12);
	assert_true(health_smi_count("Yes", &count));
	assert_int_equal(count, 1);
	assert_true(health_smi_count("No", &count));
	assert_int_equal(count, 0);
	assert_false(health_smi_count(NULL, &count));
	for (size_t i = 0; i < STK_LENGTH(none); i++)
		if (health_smi_count(none[i], &count))
			fail_msg("%s", none[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_are_found_by_their_names),
		cmocka_unit_test(a_field_that_is_not_known_is_named),
		cmocka_unit_test(a_line_aside_is_kept),
		cmocka_unit_test(a_broken_gpu_says_so_in_its_row),
		cmocka_unit_test(only_figures_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
