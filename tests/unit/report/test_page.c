/* The promises of jobs/report/page: outside text in HTML, thinned curves, the page as a whole. */
#include "jobs/report/page/page.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "jobs/report/page/html.h"
#include "jobs/report/page/thin.h"

/* ---- outside text ---- */

static void markup_and_controls_become_text(void **state)
{
	AUTO(sb_release) struct sb out = SB_INIT;

	(void)state;
	html_text(&out, "<b a='1' c=\"2\">&\x1b[31m\xe2\x80\xae\xe2\x80\xa8\n\xff");
	assert_string_equal(out.text, "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;\\x1b[31m\\u202e"
				      "\\u2028\\x0a\\xff");
	sb_clear(&out);
	html_text(&out, NULL);
	assert_int_equal(out.len, 0);
	html_lines(&out, "a\nb<");
	assert_string_equal(out.text, "a\nb&lt;");
}

static void json_in_a_page_cannot_end_its_element(void **state)
{
	AUTO(sb_release) struct sb out = SB_INIT;
	json_auto_t *value = json_pack("{s:s}", "k", "</script><!--&\xe2\x80\xa8\xe2\x80\xae");
	json_t *again;
	struct err *err = NULL;

	(void)state;
	html_json(&out, value);
	assert_null(strpbrk(out.text, "<>&"));
	assert_null(strstr(out.text, "\xe2\x80"));
	assert_int_equal(js_parse(out.text, out.len, "the page", &again, &err), 0);
	assert_true(json_equal(value, again));
	json_decref(again);
}

static void a_value_is_shown_as_it_is_written(void **state)
{
	AUTO(sb_release) struct sb out = SB_INIT;
	json_auto_t *list = json_pack("[s, i]", "<a>", 2), *text = json_string("<a>");

	(void)state;
	html_value(&out, text);
	assert_string_equal(out.text, "&lt;a&gt;");
	sb_clear(&out);
	html_value(&out, list);
	assert_string_equal(out.text, "[&quot;&lt;a&gt;&quot;,2]");
}

/* ---- thinned curves ---- */

static double number_at(const json_t *points, size_t i, size_t k)
{
	return json_number_value(json_array_get(json_array_get(points, i), k));
}

static bool has_point(const json_t *points, double x, double y)
{
	for (size_t i = 0; i < json_array_size(points); i++)
		if (number_at(points, i, 0) == x && number_at(points, i, 1) == y)
			return true;
	return false;
}

static void a_short_curve_stays_whole(void **state)
{
	AUTO(thin_release) struct thin thin = { 0 };
	json_auto_t *points;

	(void)state;
	for (int i = THIN_BUCKETS; i-- > 0;) /* in any order */
		thin_add(&thin, 1, i * 7, i % 13);
	points = thin_json(&thin);
	assert_int_equal(json_array_size(points), THIN_BUCKETS);
	for (size_t i = 0; i < THIN_BUCKETS; i++) {
		assert_true(number_at(points, i, 0) == (double)i * 7);
		assert_true(number_at(points, i, 1) == (double)(i % 13));
	}
}

static void a_long_curve_keeps_its_peaks_and_its_ends(void **state)
{
	AUTO(thin_release) struct thin thin = { 0 };
	json_auto_t *points;

	(void)state;
	for (int i = 1; i <= 300000; i++)
		thin_add(&thin, 1, i, i == 123457 ? 50 : i == 299991 ? -50 : sin(i / 1000.0));
	points = thin_json(&thin);
	assert_in_range(json_array_size(points), THIN_BUCKETS / 2, 2 * THIN_BUCKETS + 2);
	assert_true(has_point(points, 123457, 50));
	assert_true(has_point(points, 299991, -50));
	assert_true(number_at(points, 0, 0) == 1);
	assert_true(number_at(points, json_array_size(points) - 1, 0) == 300000);
	for (size_t i = 1; i < json_array_size(points); i++)
		assert_true(number_at(points, i - 1, 0) <= number_at(points, i, 0));
	assert_true(thin_greatest(&thin)->x == 123457);
	assert_true(thin_least(&thin)->x == 299991);
	thin_shrink(&thin, 10);
	assert_in_range(thin.count, 5, 10);
	assert_true(thin_greatest(&thin)->y == 50 && thin_least(&thin)->y == -50);
}

static void what_is_not_finite_is_counted_and_not_drawn(void **state)
{
	AUTO(thin_release) struct thin thin = { 0 };
	json_auto_t *points;

	(void)state;
	thin_add(&thin, 1, 3, NAN);
	thin_add(&thin, 1, 4, INFINITY);
	assert_null(thin_least(&thin));
	thin_add(&thin, 1, -5, 2);
	points = thin_json(&thin);
	assert_int_equal(json_array_size(points), 1);
	assert_true(has_point(points, -5, 2));
	assert_int_equal(thin.points, 3);
	assert_int_equal(thin.odd, 2);
	assert_true(thin.odd_x == 3);
}

/* ---- the page ---- */

static void a_page_of_nothing_is_a_page(void **state)
{
	AUTO(sb_release) struct sb out = SB_INIT;
	json_auto_t *data = json_pack("{s:s, s:[{s:s, s:{}, s:{}}]}", "title", "<x>", "runs", "run",
				      "r", "status", "plan");

	(void)state;
	page_write(data, &out);
	assert_int_equal(strncmp(out.text, PAGE_BEGIN, strlen(PAGE_BEGIN)), 0);
	assert_non_null(strstr(out.text, "<title>&lt;x&gt;</title>"));
	assert_non_null(strstr(out.text, "No time has been accounted for yet"));
	assert_string_equal(out.text + out.len - 8, "</html>\n");
	assert_null(strstr(out.text, "://"));
}

/* Returns a run with late graphs, a check-up and more attempts than are shown. */
static json_t *full_run(void)
{
	json_t *attempts = json_array(), *run;

	for (int i = 1; i <= 70; i++)
		json_array_append_new(attempts, json_pack("{s:s, s:i, s:s}", "phase", "train",
							  "attempt", i, "evidence", "<why>"));
	json_object_set_new(json_array_get(attempts, 0), "health",
			    json_pack("{s:[{s:i, s:s, s:[{s:s, s:s, s:s}], s:{s:{s:f}}}]}", "nodes",
				      "node", 1, "host", "trn-7", "checks", "check", "device",
				      "verdict", "sick", "words", "a counter is not zero",
				      "figures", "all_reduce", "busbw", 31.5));
	run = json_pack("{s:s, s:{s:o, s:{s:i, s:f, s:f, s:[{s:s, s:f, s:i}, {s:s, s:f}]}, "
			"s:{s:f, s:f, s:f}, s:{s:f, s:f, s:{s:f}}}}",
			"run", "r", "status", "attempts", attempts, "jit", "graphs", 2, "seconds",
			40.0, "cost", 8.0, "late", "graph", "MODULE_1", "seconds", 30.0,
			"after_step", 17, "graph", "MODULE_2", "seconds", 10.0, "ledger", "steps",
			60.0, "jit", 40.0, "total", 100.0, "cost", "accrued", 20.0, "kept", 5.0,
			"bins", "steps", 15.0);
	assert_non_null(run);
	return run;
}

static void a_run_is_shown_with_its_graphs_nodes_and_money(void **state)
{
	static const char *const parts[] = {
		">MODULE_1</th><td>after step 17</td><td class=\"n\">30.0 s</td>",
		"<td class=\"n\">6.00</td>",
		">MODULE_2</th><td>before the first step</td>",
		"2 graphs in all, 40.0 s of compilation, 8.00 USD",
		"<td>trn-7</td><td>sick: a counter is not zero</td><td>all_reduce: 31.5 GiB/s</td>",
		"<title>steps: 60.0 %</title>", /* of time */
		"<title>steps: 75.0 %</title>", /* of money */
		"kept between attempts</th>",
		"<th scope=\"row\">train 20</th>",
		"<th scope=\"row\">train 31</th>",
		"10 attempts in the middle are left out",
		"&lt;why&gt;",
	};
	AUTO(sb_release) struct sb out = SB_INIT;
	json_auto_t *data = json_pack("{s:s, s:[o]}", "title", "x", "runs", full_run());

	(void)state;
	page_write(data, &out);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (!strstr(out.text, parts[i]))
			fail_msg("the page lacks %s", parts[i]);
	assert_null(strstr(out.text, ">train 21</th>"));
	assert_null(strstr(out.text, ">train 30</th>"));
}

static void repeats_are_one_entry_and_a_row_without_figures_is_its_reason(void **state)
{
	static const char *const parts[] = {
		"<tr class=\"best\"><th scope=\"row\">b-1</th><td>faster</td><td class=\"n\">2</td>"
		"<td class=\"n\">1.50x</td></tr>",
		"<th scope=\"row\">c-1</th><td colspan=\"3\">not supported: &lt;b&gt;</td></tr>",
		"<th scope=\"col\">verdict</th><th scope=\"col\" class=\"n\">runs</th>",
		"<li><span class=\"key c0\"></span>a-1, a-2</li><li><span class=\"key "
		"c1\"></span>b-1"
		"</li><li><span class=\"key c1 dashed\"></span>b-1 &lt;old&gt;</li>",
		"<section id=\"run-3\">\n<details><summary><h2>Run d",
	};
	AUTO(sb_release) struct sb out = SB_INIT;
	json_auto_t *data =
		json_pack("{s:s, s:{s:[s,s,s,s], s:[[s,s,s,s],[s,s,s,n]], s:i}, "
			  "s:[{s:s, s:s, "
			  "s:[{s:s,s:i,s:[]},{s:s,s:i,s:[]},{s:s,s:i,s:[]},{s:s,s:i,s:b,s:[]}]}], "
			  "s:[{s:s},{s:s},{s:s},{s:s}]}",
			  "title", "x", "comparison", "columns", "run", "verdict", "runs", "speed",
			  "rows", "b-1", "faster", "2", "1.50x", "c-1", "not supported: <b>", "0",
			  "best", 0, "charts", "title", "loss", "x", "step", "lines", "name", "a-1",
			  "color", 0, "points", "name", "b-1", "color", 1, "points", "name", "a-2",
			  "color", 0, "points", "name", "b-1 <old>", "color", 1, "dashed", 1,
			  "points", "runs", "run", "a", "run", "b", "run", "c", "run", "d");

	(void)state;
	assert_non_null(data);
	page_write(data, &out);
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (!strstr(out.text, parts[i]))
			fail_msg("the page lacks %s", parts[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(markup_and_controls_become_text),
		cmocka_unit_test(json_in_a_page_cannot_end_its_element),
		cmocka_unit_test(a_value_is_shown_as_it_is_written),
		cmocka_unit_test(a_short_curve_stays_whole),
		cmocka_unit_test(a_long_curve_keeps_its_peaks_and_its_ends),
		cmocka_unit_test(what_is_not_finite_is_counted_and_not_drawn),
		cmocka_unit_test(a_page_of_nothing_is_a_page),
		cmocka_unit_test(a_run_is_shown_with_its_graphs_nodes_and_money),
		cmocka_unit_test(repeats_are_one_entry_and_a_row_without_figures_is_its_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
