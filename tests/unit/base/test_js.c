/* The promises of js.h: strict in, equal bytes out, no secrets in errors. */
#include "jobs/base/text/js.h"
#include "tests/unit/quoted.h"

#include <math.h>

#include "tests/unit/base/unit.h"

static json_t *parsed(const char *text)
{
	AUTO(err_freep) struct err *err = NULL;
	json_t *value = NULL;

	js_parse(text, strlen(text), "the text", &value, &err);
	assert_no_error(err);
	return value;
}

static void any_value_may_stand_at_the_top(void **state)
{
	static const char *const rows[] = { "{}",    "[]",   "3",    "-1.5",
					    "\"x\"", "null", "true", "{\"b\":[1,{}],\"a\":null}" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		json_auto_t *value = parsed(rows[i]);
		AUTO(auto_free) char *line = js_line(value);

		assert_string_equal(line, rows[i]);
	}
}

static void broken_text_is_refused_with_its_place(void **state)
{
	static const struct {
		const char *text, *reason;
	} rows[] = {
		{ "", "(line 1, column 0)" },
		{ "{\n \"a\": x}", "(line 2, column 7)" },
		{ "{\"a\":1,\"a\":2}", "duplicate object key" },
		{ "{} {}", "end of file expected" },
		{ "[1,]", "unexpected token" },
		{ "\"\xff\"", "unable to decode byte 0xff" },
		{ "9223372036854775808", "too big integer" },
		{ "NaN", "invalid token" },
		{ "1e999", "real number overflow" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(err_freep) struct err *err = NULL;
		json_t *value = NULL;

		assert_int_equal(
			js_parse(rows[i].text, strlen(rows[i].text), "the reply", &value, &err),
			-1);
		assert_null(value);
		assert_contains(err->message, "the reply is not valid JSON: ");
		assert_contains(err->message, rows[i].reason);
	}
}

static void errors_never_quote_the_text(void **state)
{
	static const char *const rows[] = {
		"{\"key\": hunter2}",        "{\"a\" hunter2",
		"[\"hunter2\" \"hunter2\"]", "{\"hunter2\":1,\"hunter2\":2}",
		"{\"a\":\"hunter2\n\"}",     "{\"hunter2 near hunter2\": near hunter2",
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(err_freep) struct err *err = NULL;
		json_t *value = NULL;

		assert_int_equal(js_parse(rows[i], strlen(rows[i]), "it", &value, &err), -1);
		assert_null(strstr(err->message, "hunter2"));
	}
}

static void depth_is_bounded(void **state)
{
	AUTO(auto_free) char *deep = mem_alloc(100000);
	AUTO(err_freep) struct err *err = NULL;
	json_t *value = NULL;

	(void)state;
	memset(deep, '[', 100000);
	assert_int_equal(js_parse(deep, 100000, "it", &value, &err), -1);
	assert_contains(err->message, "depth");
}

static void a_file_is_loaded_or_its_place_is_named(void **state)
{
	AUTO(auto_free) char *path = fs_join(*state, "a.json");
	AUTO(err_freep) struct err *err = NULL;
	json_t *value = NULL;

	fs_write_atomic(path, "{\"a\":1}", 7, 0600, &err);
	assert_int_equal(js_load(path, 7, &value, &err), 0);
	assert_int_equal(js_int(value, "a", 0), 1);
	json_decref(value);
	assert_int_equal(js_load(path, 6, &value, &err), -1);
	assert_contains(err->message, "larger than 6 bytes");
	err_freep(&err);
	fs_write_atomic(path, "{\"a\":\n  oops}", 13, 0600, &err);
	assert_int_equal(js_load(path, 100, &value, &err), -1);
	assert_string_equal(err->file, path);
	assert_int_equal(err->line, 2);
	assert_int_equal(err->column, 6);
}

/* The digest of the canonical form below, by sha256sum. */
#define DIGEST "184fd8bcbda588511313c465ad85e6bd9ccdec7a1884f83d5cbe8331f63852a8"

static void equal_values_have_one_canonical_form(void **state)
{
	json_auto_t *a = parsed("{\"b\": 1, \"a\": {\"y\": [1, 2.50], \"x\": \"\\u00e9\\/\"}}");
	json_auto_t *b = parsed("{\"a\":{\"x\":\"é/\",\"y\":[1,2.5]},\"b\":1}");
	AUTO(auto_free) char *line = js_line(a);
	char hex_a[65], hex_b[65];

	(void)state;
	assert_string_equal(line, "{\"b\":1,\"a\":{\"y\":[1,2.5],\"x\":\"é/\"}}");
	js_digest(a, hex_a);
	js_digest(b, hex_b);
	assert_string_equal(hex_a, hex_b);
	assert_string_equal(hex_a, DIGEST);
	json_object_set_new(b, "b", json_integer(2));
	js_digest(b, hex_b);
	assert_string_not_equal(hex_a, hex_b);
}

static void reals_of_up_to_15_digits_survive_the_round_trip(void **state)
{
	static const double rows[] = {
		0.1, 6.25e-05, 1e300, 0.333333333333333, 3.0e-4, -0.0, 1e22
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		json_auto_t *value = json_real(rows[i]);
		AUTO(auto_free) char *line = js_line(value);
		json_auto_t *back = parsed(line);

		assert_true(json_is_real(back));
		assert_true(json_real_value(back) == rows[i]);
	}
}

static void lines_cannot_steer_a_terminal(void **state)
{
	static const char text[] = "a\x1b[31m\x7f\xc2\x9b\xe2\x80\xae\xe2\x80\xa8é世\n";
	json_auto_t *object = json_object();
	AUTO(auto_free) char *line = NULL;
	json_auto_t *back = NULL;

	(void)state;
	js_put_str(object, "k\xc2\x85", text);
	line = js_line(object);
	assert_string_equal(line,
			    "{\"k\\u0085\":\"a\\u001B[31m\\u007f\\u009b\\u202e\\u2028é世\\n\"}");
	back = parsed(line);
	assert_true(json_equal(object, back));
}

static void members_have_fallbacks(void **state)
{
	json_auto_t *o =
		parsed("{\"s\":\"x\",\"i\":7,\"r\":1.5,\"t\":true,\"f\":false,\"n\":null}");

	(void)state;
	assert_string_equal(js_str(o, "s"), "x");
	assert_null(js_str(o, "i"));
	assert_null(js_str(o, "none"));
	assert_null(js_str(NULL, "s"));
	assert_int_equal(js_int(o, "i", 3), 7);
	assert_int_equal(js_int(o, "r", 3), 3);
	assert_int_equal(js_int(o, "s", 3), 3);
	assert_int_equal(js_int(o, "none", -3), -3);
	assert_true(js_real(o, "r", 3) == 1.5);
	assert_true(js_real(o, "i", 3) == 7);
	assert_true(js_real(o, "n", 3) == 3);
	assert_true(js_bool(o, "t", false));
	assert_false(js_bool(o, "f", true));
	assert_true(js_bool(o, "n", true));
	assert_false(js_bool(o, "i", false));
}

static void paths_lead_through_objects(void **state)
{
	json_auto_t *o = parsed("{\"a\":{\"b\":{\"c\":1},\"d\":[5]},\"ab\":2}");

	(void)state;
	assert_int_equal(json_integer_value(js_path(o, "a.b.c")), 1);
	assert_int_equal(json_integer_value(js_path(o, "ab")), 2);
	assert_true(json_is_object(js_path(o, "a.b")));
	assert_null(js_path(o, "a.x.c"));
	assert_null(js_path(o, "a.b.c.d"));
	assert_null(js_path(o, "a.d.0"));
	assert_null(js_path(o, "a."));
	assert_null(js_path(o, ""));
	assert_null(js_path(NULL, "a"));
}

static void nothing_is_left_out(void **state)
{
	json_auto_t *o = json_object();
	AUTO(auto_free) char *line = NULL;

	(void)state;
	js_put(o, "a", NULL);
	js_put_str(o, "b", NULL);
	js_put(o, "nan", json_real(NAN));
	js_put(o, "c", json_null());
	js_put_str(o, "d", "");
	line = js_line(o);
	assert_string_equal(line, "{\"c\":null,\"d\":\"\"}");
}

static void text_is_repaired(void **state)
{
	json_auto_t *o = json_object();
	json_auto_t *fine = js_text("a\xc3\xa9", 3);
	json_auto_t *cut = js_text("a\xc3\xa9", 2);
	json_auto_t *zero = js_text("a\0b", 3);
	json_auto_t *empty = js_text("", 0);

	(void)state;
	assert_string_equal(json_string_value(fine), "aé");
	assert_string_equal(json_string_value(cut), "a\xef\xbf\xbd");
	assert_string_equal(json_string_value(zero), "a\xef\xbf\xbd"
						     "b");
	assert_string_equal(json_string_value(empty), "");
	js_put_str(o, "k\xff", "v\xff");
	assert_string_equal(js_str(o, "k\xef\xbf\xbd"), "v\xef\xbf\xbd");
}

static void a_zero_in_a_string_does_not_make_a_reply_unreadable(void **state)
{
	json_auto_t *value = parsed("{\"log\":\"a\\u0000b\",\"next\":1}");
	AUTO(auto_free) char *line = js_line(value);

	(void)state;
	assert_int_equal(js_int(value, "next", 0), 1);
	assert_string_equal(line, "{\"log\":\"a\\u0000b\",\"next\":1}");
}

static void an_exact_line_reads_back_every_number(void **state)
{
	static const double values[] = { 345.0 / 360, 1.0 / 3,  0.1,          0.003,
					 1e20,        1e-7,     2.0 / 3e-300, 5e-324,
					 1e300 / 7,   -1.0 / 7, 0.1 + 0.2,    4 };
	json_auto_t *list = json_array();
	json_auto_t *plain =
		quoted_json("{'a':[0.1,1e20,-2.5e-7,3,4.0],'b':'1.0000000000000002e5'}");
	AUTO(auto_free) char *plain_line = js_line(plain);
	AUTO(auto_free) char *plain_exact = js_line_exact(plain);
	AUTO(auto_free) char *line = NULL;
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *back = NULL;

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(values); i++)
		json_array_append_new(list, json_pack("{s:f, s:s}", "\\\"1.25e+3\\", values[i],
						      "0.30000000000000004", "\"-1.0,2.5\\"));
	line = js_line_exact(list);
	assert_int_equal(js_parse(line, strlen(line), "line", &back, &err), 0);
	assert_true(json_equal(list, back));
	/* No number has more digits than it needs: neighbours of a long one stay short. */
	assert_non_null(strstr(line, ":0.1,"));
	assert_non_null(strstr(line, ":0.003,"));
	assert_non_null(strstr(line, ":0.9583333333333334,"));
	assert_non_null(strstr(line, ":0.30000000000000004,"));
	assert_non_null(strstr(line, ":1e20,"));
	assert_non_null(strstr(line, ":1e-7,"));
	assert_non_null(strstr(line, ":4.0,"));
	assert_string_equal(plain_line, plain_exact);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exact_line_reads_back_every_number),
		cmocka_unit_test(any_value_may_stand_at_the_top),
		cmocka_unit_test(broken_text_is_refused_with_its_place),
		cmocka_unit_test(errors_never_quote_the_text),
		cmocka_unit_test(depth_is_bounded),
		test_in_scratch(a_file_is_loaded_or_its_place_is_named),
		cmocka_unit_test(equal_values_have_one_canonical_form),
		cmocka_unit_test(reals_of_up_to_15_digits_survive_the_round_trip),
		cmocka_unit_test(lines_cannot_steer_a_terminal),
		cmocka_unit_test(members_have_fallbacks),
		cmocka_unit_test(paths_lead_through_objects),
		cmocka_unit_test(nothing_is_left_out),
		cmocka_unit_test(text_is_repaired),
		cmocka_unit_test(a_zero_in_a_string_does_not_make_a_reply_unreadable),
	};

	return cmocka_run_group_tests_name("base/json", tests, NULL, NULL);
}
