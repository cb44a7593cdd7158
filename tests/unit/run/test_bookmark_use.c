/* A bookmark in the logs of an attempt, as a driver uses it that takes over: see
 * jobs/run/journal/bookmark.c. */
#include "bookmark_fixture.h"

/* ---- going on ---- */

static void another_driver_goes_on_where_it_was(void **state)
{
	struct attempt_watch *watch = read_much();
	const struct utc stepped_at = watch->stepped_at;
	struct failure_line lines[CAUSE_LINES];
	json_auto_t *row = NULL;
	int64_t row_step;
	size_t causes;

	(void)state;
	watch->step_node = 1;
	watch->output_invalid = true;
	causes = first_cause_get(watch->cause, 0, SIZE_MAX, lines);
	bookmark_put(watch, true);
	watch = another_driver();
	assert_int_equal(watch->logs[0].tail.offset, said.logs[0].len - strlen("half of"));
	assert_int_equal(watch->logs[1].tail.offset, said.logs[1].len);
	assert_false(watch->logs[0].tail.dropping);
	assert_false(watch->logs[0].tail.returned);
	assert_true(watch->logs[1].tail.returned);
	assert_int_equal(watch->logs[0].step, 7);
	assert_int_equal(watch->logs[1].step, -1);
	assert_int_equal(watch->first_step, 3);
	assert_int_equal(watch->last_step, 7);
	assert_int_equal(watch->stepped_at.ms, stepped_at.ms);
	assert_int_equal(watch->step_node, 1);
	assert_int_equal(watch->hits_recorded, 5);
	assert_int_equal(watch->graphs_at.ms, 1);
	assert_int_equal(watch->hits, 0);
	assert_int_equal(watch->misses, 1);
	assert_int_equal(js_int(watch->late, MODULE, -9), 3);
	assert_true(watch->news);
	assert_int_equal(watch->marked_bytes,
			 watch->logs[0].tail.offset + watch->logs[1].tail.offset);
	assert_true(watch->marked_at.ms > 0);
	row = metrics_row(watch->metrics, &row_step);
	assert_int_equal(row_step, 7);
	assert_true(js_real(row, "loss", 0) == 0.25);
	assert_int_equal(watch->logs[1].lines, 3);
	assert_string_equal(watch->logs[1].last[1], "two");
	/* the window of the cause, and behind it the newest lines */
	assert_true(watch->logs[0].lines > LAST_LINES);
	assert_true(causes > 3);
	assert_int_equal(first_cause_get(watch->cause, 0, SIZE_MAX, lines), causes);
	assert_int_equal(lines[0].len, strlen("step 3 loss 1.5"));
	/* The half line is whole then, and is no second one. */
	say(0, " a line\nstep 8 loss 0.125\n");
	read_all(watch);
	assert_int_equal(watch->last_step, 8);
	assert_int_equal(watch->first_step, 3);
	assert_int_equal(watch->misses, 1);
	assert_string_equal(watch->logs[0].last[(watch->logs[0].lines - 2) % LAST_LINES],
			    "half of a line");
	end();
}

/* Compile time of the graphs that were compiled is known, too. */
static void counts_are_those_of_the_graphs(void **state)
{
	struct attempt_watch *watch = begin(PHASE_PRECOMPILE, PLAN);
	AUTO(graph_tally_freep) struct graph_tally *tally = NULL;
	struct graph_tally_counts counts;
	json_auto_t *book = NULL;
	json_auto_t *value = NULL;

	(void)state;
	say(0, MISS);
	say(0, "Using a cached neff at /cache/neuronxcc-2.15.128.0+56dc5a86/"
	       "MODULE_10290217891379219022+3cc9a3cb/model.neff\n");
	say_much(0, LEAST);
	read_all(watch);
	bookmark_put(watch, true);
	value = kept();
	/* no seconds were told: they come with the book */
	json_array_set_new(
		json_array_get(json_object_get(json_object_get(value, "book"), "graphs"), 0), 4,
		json_real(12.5));
	put_json(value);
	watch = another_driver();
	book = graph_tally_keep(watch->tally);
	tally = graph_tally_restore(book, driver.kind);
	graph_tally_counts(tally, &counts);
	assert_int_equal(counts.hits, 1);
	assert_int_equal(watch->hits, 1);
	assert_int_equal(watch->misses, 1);
	assert_true(counts.seconds == 12.5);
	assert_true(watch->seconds == 12.5);
	assert_int_equal(json_object_size(watch->late), 0);
	end();
}

/* If the bookmark is of another program, run, attempt or job, or not what was written, all is read
 * from the start. */
static void what_is_not_of_this_attempt_is_not_used(void **state)
{
	static const struct {
		const char *member, *value; /* in quotes of quoted.h; NULL: it is not there */
	} rows[] = {
		{ "form", "1" },
		{ "form", "3" },
		{ "form", NULL },
		{ "maker", "'00'" },
		{ "maker", NULL },
		{ "run", "'r2'" },
		{ "phase", "'precompile'" },
		{ "attempt", "2" },
		{ "attempt", NULL },
		{ "job", "'stk-r1-2'" },
		{ "kind", "'none'" },
		{ "logs", "[]" },
		{ "logs", NULL },
		{ "logs", "[{'offset':1}]" },
		{ "logs", "[{'offset':1},{'offset':1},{'offset':1}]" },
		{ "logs", "[{'offset':1},{'offset':-1}]" },
		{ "logs", "[{'offset':1},{}]" },
		{ "logs", "[{},{'offset':1}]" },
		{ "logs", "[{'offset':1},{'offset':-1,'place':1}]" },
		{ "late", NULL },
		{ "late", "[]" },
		{ "book", NULL },
		{ "book", "{'form':0}" },
	};
	struct attempt_watch *watch = read_much();
	json_auto_t *value = NULL;

	(void)state;
	bookmark_put(watch, true);
	value = kept();
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		json_auto_t *other = json_deep_copy(value);

		if (rows[i].value)
			json_object_set_new(other, rows[i].member, quoted_json(rows[i].value));
		else
			json_object_del(other, rows[i].member);
		put_json(other);
		watch = another_driver();
		if (watch->logs[0].tail.offset != 0 || watch->logs[1].tail.offset != 0 ||
		    watch->marked_at.ms != 0 || watch->last_step != -1 || watch->news)
			fail_msg("row %zu is used", i);
	}
	put("{");
	assert_int_equal(another_driver()->logs[0].tail.offset, 0);
	forget();
	assert_int_equal(another_driver()->logs[0].tail.offset, 0);
	put_json(value);
	assert_true(another_driver()->logs[0].tail.offset > LEAST);
	end();
}

/* A log that was started again is shorter than what was read of it. */
static void a_log_that_is_shorter_than_what_was_read_is_read_again(void **state)
{
	struct attempt_watch *watch = read_much();
	const uint64_t read = said.logs[0].len - strlen("half of");

	(void)state;
	bookmark_put(watch, true);
	said.sizes[0] = read - 1;
	assert_int_equal(another_driver()->logs[0].tail.offset, 0);
	said.sizes[0] = read;
	assert_int_equal(another_driver()->logs[0].tail.offset, read);
	said.sizes[1] = 1; /* each of them counts */
	watch = another_driver();
	assert_int_equal(watch->logs[0].tail.offset, 0);
	assert_int_equal(watch->logs[1].tail.offset, 0);
	said.sizes[1] = 0;
	said.away = true; /* nor is it passed over what cannot be seen */
	assert_int_equal(another_driver()->logs[0].tail.offset, 0);
	said.away = false;
	assert_int_equal(another_driver()->logs[0].tail.offset, read);
	end();
}

/* A log of which nothing was read need not be there. */
static void what_was_not_read_need_not_be_there(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, PLAN);

	(void)state;
	say_much(0, LEAST);
	read_all(watch);
	bookmark_put(watch, true);
	watch = another_driver();
	assert_int_equal(watch->logs[0].tail.offset, LEAST);
	assert_true(watch->news);
	end();
}

static int say_no_size(struct engine *of, const char *name, const char *prefix, int node,
		       uint64_t *ret, struct err **err)
{
	(void)of, (void)name, (void)prefix, (void)node, (void)err;
	*ret = 100 * MIB;
	return 0;
}

/* The size need not be known either; that of a log that was read must be. */
static void a_size_that_is_not_known_shows_nothing(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, PLAN);
	json_auto_t *value = NULL;

	(void)state;
	say_much(0, LEAST);
	read_all(watch);
	bookmark_put(watch, true);
	ops.log_size = say_no_size;
	assert_int_equal(another_driver()->logs[0].tail.offset, 0);
	value = kept();
	js_put(json_array_get(json_object_get(value, "logs"), 0), "offset", json_integer(0));
	put_json(value);
	assert_true(another_driver()->news); /* it is used */
	end();
}

/* ---- logs of a service ---- */

static int asked, goes_on;
static uint64_t went_on_at[NODES_MAX];

static json_t *say_place(struct engine *of, const char *name, const char *prefix, int node)
{
	(void)of;
	assert_string_equal(name, "stk-r1-1");
	assert_non_null(prefix);
	asked++;
	return node == 0 ? json_pack("{s:s}", "token", "t0") : NULL;
}

static void go_on(struct engine *of, const char *name, const char *prefix, int node,
		  uint64_t offset, const json_t *place)
{
	(void)of;
	assert_string_equal(name, "stk-r1-1");
	assert_non_null(prefix);
	assert_string_equal(js_str(place, "token"), "t0");
	went_on_at[node] = offset;
	goes_on++;
}

static void a_service_is_told_the_place_in_its_log(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, PLAN);

	(void)state;
	ops.log_place = say_place;
	ops.log_go_on = go_on;
	asked = goes_on = 0;
	say_much(0, LEAST);
	say(1, "one\n");
	read_all(watch);
	bookmark_put(watch, true);
	assert_int_equal(asked, 2);
	said.sizes[0] = 1; /* the place is enough: no size is asked for */
	watch = another_driver();
	assert_int_equal(watch->logs[0].tail.offset, LEAST);
	assert_int_equal(goes_on, 1);
	assert_int_equal(went_on_at[0], LEAST);
	ops.log_go_on = NULL;
	assert_int_equal(another_driver()->logs[0].tail.offset, LEAST);
	assert_int_equal(goes_on, 1);
	end();
}

/* ---- members that are not there ---- */

static void what_is_not_told_is_as_at_the_beginning(void **state)
{
	static const char *const left_out[] = { "first_step", "last_step", "stepped_at",
						"step_node",  "hits_told", "graphs_told",
						"metrics" };
	struct attempt_watch *watch = read_much();
	json_auto_t *value = NULL;
	json_t *log;

	(void)state;
	watch->step_node = 1;
	bookmark_put(watch, true);
	value = kept();
	for (size_t i = 0; i < STK_LENGTH(left_out); i++)
		json_object_del(value, left_out[i]);
	log = json_array_get(json_object_get(value, "logs"), 0);
	json_object_del(log, "step");
	json_object_del(log, "dropping");
	json_object_del(log, "returned");
	put_json(value);
	watch = another_driver();
	assert_true(watch->logs[0].tail.offset > LEAST);
	assert_int_equal(watch->first_step, -1);
	assert_int_equal(watch->last_step, -1);
	assert_int_equal(watch->stepped_at.ms, 0);
	assert_int_equal(watch->step_node, 0);
	assert_int_equal(watch->hits_recorded, 0);
	assert_int_equal(watch->graphs_at.ms, 0);
	assert_int_equal(watch->logs[0].step, -1);
	assert_false(watch->logs[0].tail.dropping);
	assert_false(watch->logs[0].tail.returned);
	end();
}

/* Values that are no lines are not taken for any; and without as many newest lines as there can be,
 * those of the cause are among them. */
static void lines_are_texts(void **state)
{
	struct attempt_watch *watch = read_much();
	json_auto_t *value = NULL;
	json_t *log;

	(void)state;
	bookmark_put(watch, true);
	value = kept();
	log = json_array_get(json_object_get(value, "logs"), 0);
	json_object_set_new(log, "cause", quoted_json("[1,'RuntimeError: no',null]"));
	json_array_set_new(json_object_get(log, "last"), 5, json_integer(1));
	put_json(value);
	watch = another_driver();
	assert_int_equal(watch->logs[0].lines, 1 + LAST_LINES - 1);
	json_object_set_new(log, "last", quoted_json("['RuntimeError: no', 'b']"));
	put_json(value);
	watch = another_driver();
	assert_int_equal(watch->logs[0].lines, 2);
	assert_string_equal(watch->logs[0].last[1], "b");
	end();
}

/* ---- bookmarks on a local disk ---- */

static void beside_a_database_it_is_a_file(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, PLAN);
	AUTO(auto_free) char *url = mem_format("sqlite:%s/disk", dir);
	AUTO(auto_free) char *folder = mem_format("%s/disk/runs/r1", dir);
	AUTO(auto_free) char *path = fs_join(folder, "reading.json");
	AUTO(err_freep) struct err *err = NULL;
	struct stat st;

	(void)state;
	assert_int_equal(fs_mkdirs(folder, &err), 0); /* where the lock of the driver lies */
	journal_freep(&driver.journal);
	assert_int_equal(journal_open(url, JOURNAL_WRITE, &driver.journal, &err), 0);
	say_much(0, LEAST);
	read_all(watch);
	bookmark_put(watch, true);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(another_driver()->logs[0].tail.offset, LEAST);
	assert_int_equal(fs_remove_tree(path, &err), 0);
	assert_int_equal(another_driver()->logs[0].tail.offset, 0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_driver_goes_on_where_it_was),
		cmocka_unit_test(counts_are_those_of_the_graphs),
		cmocka_unit_test(what_is_not_of_this_attempt_is_not_used),
		cmocka_unit_test(a_log_that_is_shorter_than_what_was_read_is_read_again),
		cmocka_unit_test(what_was_not_read_need_not_be_there),
		cmocka_unit_test(a_size_that_is_not_known_shows_nothing),
		cmocka_unit_test(a_service_is_told_the_place_in_its_log),
		cmocka_unit_test(what_is_not_told_is_as_at_the_beginning),
		cmocka_unit_test(lines_are_texts),
		cmocka_unit_test(beside_a_database_it_is_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
