/* The parts of tasks that need no agent: their names, the lines of a shard, metrics.json. */
#include "tests/unit/node/agent_run.h"

#include "jobs/node/tasks/metrics_file.h"
#include "jobs/node/tasks/node_task.h"
#include "jobs/node/tasks/task_manifest.h"

/* ---- names ---- */

static void load_tasks(struct agent_config *config, const struct place *place, const char *tasks)
{
	AUTO(err_freep) struct err *err = NULL;
	json_t *order = order_for(place, "true"), *body = NULL;

	must(js_parse(tasks, strlen(tasks), "tasks", &body, &err), &err);
	js_put(order, "tasks", body);
	load(config, place, order, "0");
}

static void each_task_has_one_name_and_no_other_is_taken_for_it(void **state)
{
	static const struct {
		const char *tasks;
		int64_t count;
		const char *first, *last, *not [8];
	} rows[] = {
		{ "{\"results\":\"r/\",\"candidate\":{\"url\":\"/m\"},\"repeat\":3}",
		  3,
		  "candidate-1",
		  "candidate-3",
		  { "baseline-1", "candidate-0", "candidate-4", "candidate-01", "candidate", "",
		    "shard-0" } },
		{ "{\"results\":\"r/\",\"candidate\":{\"url\":\"/m\"},\"baseline\":{\"url\":\"/"
		  "b\"},"
		  "\"repeat\":2}",
		  4,
		  "candidate-1",
		  "baseline-2",
		  { "baseline-0", "baseline-3", "boseline-1", "candidate-1x", "candidate--1" } },
		{ "{\"results\":\"r/\",\"candidate\":{\"url\":\"/m\"},\"shards\":12}",
		  12,
		  "shard-0",
		  "shard-11",
		  { "shard-12", "shard-00", "shard--0", "shard-1.0", "candidate-1",
		    "shard-99999999999999999999", "shard-\xff" } },
		{ "{\"candidate\":{\"url\":\"/m\"}}", 0, NULL, NULL, { "candidate-1" } },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(agent_config_release) struct agent_config config = { 0 };
		struct node_task task;

		load_tasks(&config, *state, rows[i].tasks);
		assert_int_equal(node_task_count(&config), rows[i].count);
		for (int64_t k = 0; k < rows[i].count; k++) {
			AUTO(auto_free) char *key = NULL;

			node_task_at(&config, k, &task);
			key = mem_format("%s/done.json", task.name);
			assert_int_equal(node_task_find(&config, key), k);
			assert_int_equal(node_task_find(&config, task.name), k);
			if (k == 0)
				assert_string_equal(task.name, rows[i].first);
		}
		if (rows[i].last)
			assert_string_equal(task.name, rows[i].last);
		for (size_t k = 0; rows[i].not [k]; k++)
			if (node_task_find(&config, rows[i].not [k]) != -1)
				fail_msg("'%s' is a task", rows[i].not [k]);
	}
}

/* ---- shards ---- */

static void the_shards_of_any_list_are_the_list(void **state)
{
	AUTO(auto_free) char *from = place_path(*state, "list");
	AUTO(auto_free) char *to = place_path(*state, "shard");
	AUTO(err_freep) struct err *err = NULL;

	for (int lines = 0; lines < 12; lines++)
		for (int shards = 1; shards < 8; shards++) {
			AUTO(sb_release) struct sb all = SB_INIT, joined = SB_INIT;
			int64_t counted = -1;

			for (int i = 0; i < lines; i++)
				sb_addf(&all, "{\"url\":\"/%0*d\"}\n", i * 7000, i);
			if (lines == 11) /* the last one without its end */
				all.text[--all.len] = '\0';
			write_file(from, all.text, 0600);
			must(task_manifest_count(from, &counted, &err), &err);
			assert_int_equal(counted, lines);
			for (int i = 0; i < shards; i++) {
				AUTO(auto_free) char *part = NULL;
				size_t len = 0;

				must(task_manifest_cut(from, lines, i, shards, to, &err), &err);
				part = read_file(to, &len);
				if (lines >= shards)
					assert_true(len > 0);
				sb_add(&joined, part, len);
			}
			assert_string_equal(joined.text, all.text);
		}
}

static void the_first_objects_are_named(void **state)
{
	AUTO(auto_free) char *path = place_path(*state, "list");
	json_auto_t *urls = NULL;

	write_file(path,
		   "{\"url\":\"s3://b/a\"}\nnot "
		   "json\n{\"size\":1}\n{\"url\":\"/c\"}\n{\"url\":\"/d\"}\n",
		   0600);
	urls = task_manifest_urls(path, 2);
	assert_int_equal(json_array_size(urls), 2);
	assert_string_equal(json_string_value(json_array_get(urls, 0)), "s3://b/a");
	assert_string_equal(json_string_value(json_array_get(urls, 1)), "/c");
}

/* ---- metrics.json ---- */

static void a_flat_object_is_read_and_nothing_else(void **state)
{
	static const struct {
		const char *text, *why; /* NULL: it is read */
		const char *values, *invalid;
	} rows[] = {
		{ "{\"a\": 0.1, \"n\": 3}", NULL, "{\"a\":0.1,\"n\":3}", "{}" },
		{ "{}", NULL, "{}", "{}" },
		{ " {\"l\": NaN,\n\"i\": -Infinity, \"NaN\": 1} ", NULL, "{\"NaN\":1}",
		  "{\"l\":\"NaN\",\"i\":\"-Infinity\"}" },
		{ "{\"a\": \"inf\", \"b\": null, \"c\": true}", NULL, "{}",
		  "{\"a\":\"inf\",\"b\":\"null\",\"c\":\"true\"}" },
		{ "{\"a\\\"NaN\": 2}", NULL, "{\"a\\\"NaN\":2}", "{}" },
		{ "", "not valid JSON", NULL, NULL },
		{ "3", "not an object", NULL, NULL },
		{ "[1]", "not an object", NULL, NULL },
		{ "{\"a\": [1]}", "nested: 'a'", NULL, NULL },
		{ "{\"a\": {}}", "nested: 'a'", NULL, NULL },
		{ "{\"a\": 1, \"a\": 2}", "not valid JSON", NULL, NULL },
		{ "{\"a\": 1e999}", "not valid JSON", NULL, NULL },
		{ "{\"\": 1}", "name of 0 bytes", NULL, NULL },
		{ "{\"a\": 1", "not valid JSON", NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(metrics_file_release) struct metrics_file metrics = { 0 };
		AUTO(err_freep) struct err *err = NULL;
		AUTO(auto_free) char *values = NULL, *invalid = NULL;
		int done = metrics_file_parse(rows[i].text, strlen(rows[i].text), &metrics, &err);

		if (rows[i].why) {
			assert_int_equal(done, -1);
			assert_int_equal(err->code, EXIT_RUN_FAILED);
			assert_has(err->message, rows[i].why);
			assert_has(err->hint, "metrics.json");
			continue;
		}
		must(done, &err);
		values = js_line(metrics.values);
		invalid = js_line(metrics.invalid);
		assert_string_equal(values, rows[i].values);
		assert_string_equal(invalid, rows[i].invalid);
	}
}

static void a_file_with_too_many_names_is_refused(void **state)
{
	AUTO(metrics_file_release) struct metrics_file metrics = { 0 };
	AUTO(sb_release) struct sb text = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	sb_adds(&text, "{\"m\": 1");
	for (int i = 0; i < METRICS_FILE_NAMES; i++)
		sb_addf(&text, ", \"m%d\": 1", i);
	sb_adds(&text, "}");
	assert_int_equal(metrics_file_parse(text.text, text.len, &metrics, &err), -1);
	assert_has(err->message, "1001 names");
}

#define in_place(f) cmocka_unit_test_setup_teardown(f, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_place(each_task_has_one_name_and_no_other_is_taken_for_it),
		in_place(the_shards_of_any_list_are_the_list),
		in_place(the_first_objects_are_named),
		in_place(a_flat_object_is_read_and_nothing_else),
		in_place(a_file_with_too_many_names_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
