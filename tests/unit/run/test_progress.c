/* How often graphs and numbers of an attempt are told, and each member of what is told; how far
 * behind a log may be. The clock is the test's. See jobs/run/attempt/progress.c, numbers.c and
 * reading.c. */
#undef TEST_DATA
#define TEST_DATA SOURCE_ROOT "/tests/unit/cache"
#include "tests/unit/cache/support.h"

#include "faulty_store.h"

#include "attempt_clock.h"
#include "attempt_fixture.h"

#define PLAN                                                                                       \
	"{'nodes':1,'steps':{'train':100},'compile':{'kind':'jax'},'limits':{'price':36},"         \
	"'metrics':[{'name':'step','regex':'step ([0-9]+)'},"                                      \
	"{'name':'loss','regex':'loss ([0-9.]+)'}]}"

static int besides; /* times that an agent was asked for its pace */

static int count_beside(struct engine *of, const char *name, const char *prefix, int node,
			const char *file, json_t **ret, struct err **err)
{
	assert_string_equal(file, "pace.json");
	besides++;
	return say_beside(of, name, prefix, node, file, ret, err);
}

static struct attempt_watch *begin_at(enum phase phase)
{
	struct attempt_watch *watch;

	now.ms = 1000000;
	watch = begin(phase, PLAN);
	ops.beside = count_beside;
	besides = 0;
	driver.kind = jax();
	return watch;
}

static void record(bool at_end)
{
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(progress_record(driver.watch, at_end, &err), 0);
}

/* All that the newest event of this name tells of attempt 1. */
static void tells(const char *event, const char *members)
{
	AUTO(auto_free) char *text = mem_format("{%s}", members);
	json_auto_t *want = quoted_json(text);

	js_put(want, "attempt", json_integer(1));
	assert_event(event, want);
}

/* ---- graphs ---- */

static void graphs_of_phase_1_are_told_every_two_seconds(void **state)
{
	(void)state;
	begin_at(PHASE_PRECOMPILE);
	record(false);
	assert_recorded(0);
	say_and_read(MISS("jit_f", KEY_F));
	record(false);
	tells("compile.progress", "'graphs':1,'hits':0,'compiled':1,'seconds':0.0");
	say_and_read(FINISHED("f", "2.5") WRITING("jit_f", KEY_F));
	now.ms += 1999;
	record(false);
	assert_recorded(1);
	now.ms++;
	record(false);
	tells("compile.progress", "'graphs':1,'hits':0,'compiled':1,'seconds':2.5");
	record(false);
	now.ms += 5000;
	record(false);
	assert_recorded(2); /* nothing is new */
	say_and_read(HIT("jit_g", KEY_G));
	record(false);
	tells("compile.progress", "'graphs':2,'hits':1,'compiled':1,'seconds':2.5");
	/* at the end at once */
	say_and_read(HIT("jit_h", KEY_H));
	record(true);
	assert_recorded(4);
	record(true);
	assert_recorded(4);
	now.ms = 0;
	end();
}

static void no_graph_at_all_is_told_at_the_end(void **state)
{
	(void)state;
	begin_at(PHASE_PRECOMPILE);
	record(true);
	tells("compile.progress", "'graphs':0,'hits':0,'compiled':0,'seconds':0.0");
	end();
	begin_at(PHASE_TRAIN);
	record(true);
	tells("jit.compiled",
	      "'phase':'train','graphs':0,'hits':0,'seconds':0.0,'cost':0.0,'names':[]");
	end();
	/* but not of what has no cache */
	begin_at(PHASE_TRAIN);
	driver.kind = compile_kind_find("none");
	record(true);
	assert_recorded(0);
	now.ms = 0;
	end();
}

static void graphs_of_a_training_are_told_with_what_they_cost(void **state)
{
	(void)state;
	begin_at(PHASE_TRAIN);
	driver.progress_at.ms = now.ms; /* no numbers */
	say_and_read(MISS("jit_f", KEY_F) FINISHED("f", "100"));
	record(false);
	tells("jit.compiled",
	      "'phase':'train','graphs':1,'hits':0,'seconds':100.0,'cost':1.0,'names':['" KEY_F
	      "'],'late':[{'graph':'" KEY_F "','seconds':100.0}]");
	now.ms += 2000;
	say_and_read("step 3\n" MISS("jit_g", KEY_G) "step 4\n");
	record(false);
	tells("jit.compiled",
	      "'phase':'train','graphs':2,'hits':0,'seconds':100.0,'cost':1.0,'names':['" KEY_F
	      "','" KEY_G "'],'late':[{'graph':'" KEY_F "','seconds':100.0},{'graph':'" KEY_G
	      "','after_step':3}]");
	/* a hit is no news */
	now.ms += 2000;
	say_and_read(HIT("jit_h", KEY_H));
	record(false);
	assert_int_equal(count_of("jit.compiled"), 2);
	end();
	/* without a price */
	begin_at(PHASE_TRAIN);
	json_object_del(driver.plan, "limits");
	say_and_read(MISS("jit_f", KEY_F) FINISHED("f", "100"));
	record(false);
	tells("jit.compiled", "'phase':'train','graphs':1,'hits':0,'seconds':100.0,'names':['" KEY_F
			      "'],'late':[{'graph':'" KEY_F "','seconds':100.0}]");
	now.ms = 0;
	end();
}

/* The number of hits then says whether the cache was cold. */
static void hits_count_at_the_end_where_no_phase_1_ran(void **state)
{
	(void)state;
	for (int compiles = 0; compiles < 2; compiles++) {
		begin_at(PHASE_TRAIN);
		driver.flow.policy.compiles = compiles;
		say_and_read(MISS("jit_f", KEY_F));
		record(false);
		say_and_read(HIT("jit_g", KEY_G));
		record(true);
		assert_int_equal(count_of("jit.compiled"), compiles ? 1 : 2);
		if (!compiles)
			assert_int_equal(newest_int("jit.compiled", "hits"), 1);
		record(true);
		assert_int_equal(count_of("jit.compiled"), compiles ? 1 : 2);
		end();
	}
	now.ms = 0;
}

static void no_more_than_twenty_names_are_told(void **state)
{
	(void)state;
	begin_at(PHASE_TRAIN);
	for (int i = 0; i < 25; i++) {
		AUTO(auto_free)
		char *line = mem_format("PERSISTENT COMPILATION CACHE MISS for 'jit_f' with key "
					"'jit_f-%064d'\n",
					i);

		say_and_read(line);
	}
	record(false);
	assert_int_equal(newest_int("jit.compiled", "graphs"), 25);
	assert_int_equal(json_array_size(newest_value("jit.compiled", "names")), 20);
	assert_int_equal(json_array_size(newest_value("jit.compiled", "late")), 25);
	now.ms = 0;
	end();
}

static void shapes_that_change_with_each_step_have_a_hint(void **state)
{
	(void)state;
	for (int places = 3; places <= 4; places++) {
		begin_at(PHASE_TRAIN);
		for (int i = 0; i < places; i++) {
			AUTO(auto_free)
			char *line = mem_format(
				"step %d\nPERSISTENT COMPILATION CACHE MISS for 'jit_f' with key "
				"'jit_f-%064d'\nstep %d\n",
				2 * i + 1, i, 2 * i + 2);

			say_and_read(line);
		}
		record(true);
		assert_int_equal(newest_value("jit.compiled", "hint") != NULL, places == 4);
		end();
	}
	/* several after one step are one place */
	begin_at(PHASE_TRAIN);
	say_and_read("step 1\n");
	for (int i = 0; i < 5; i++) {
		AUTO(auto_free)
		char *line = mem_format("PERSISTENT COMPILATION CACHE MISS for 'jit_f' with key "
					"'jit_f-%064d'\n",
					i);

		say_and_read(line);
	}
	record(true);
	assert_null(newest_value("jit.compiled", "hint"));
	now.ms = 0;
	end();
}

/* ---- numbers ---- */

static void numbers_are_told_every_ten_seconds(void **state)
{
	(void)state;
	begin_at(PHASE_TRAIN);
	driver.kind = compile_kind_find("none");
	say_and_read("step 1 loss 2\n");
	driver.watch->stepped_at.ms = 7;
	record(false);
	tells("train.progress", "'step':1,'since':7,'of':100,'metrics':{'step':1,'loss':2}");
	driver.progress_at.ms = now.ms;
	now.ms += 9999;
	say_and_read("step 2 loss 1.5\n");
	record(false);
	assert_recorded(1);
	now.ms++;
	record(false);
	assert_recorded(2);
	assert_int_equal(newest_int("train.progress", "step"), 2);
	/* at the end at once */
	say_and_read("step 3 loss 1\n");
	record(true);
	assert_recorded(3);
	assert_int_equal(newest_int("train.progress", "step"), 3);
	now.ms = 0;
	end();
}

static void lines_that_an_earlier_driver_has_told_are_no_news(void **state)
{
	(void)state;
	begin_at(PHASE_TRAIN);
	say_and_read("step 1 loss 2\n" MISS("jit_f", KEY_F));
	driver.watch->news = false;
	record(false);
	assert_recorded(0);
	driver.watch->news = true;
	record(false);
	assert_int_equal(count_of("train.progress"), 1);
	assert_int_equal(count_of("jit.compiled"), 1);
	now.ms = 0;
	end();
}

static void the_pace_gives_the_rest_of_the_time(void **state)
{
	(void)state;
	begin_at(PHASE_TRAIN);
	driver.kind = compile_kind_find("none");
	said.beside = mem_copy("{'v':1,'rate':2,'throughput':{'mean':4}}");
	say_and_read("step 10 loss 1\n");
	driver.watch->stepped_at.ms = 7;
	record(false);
	tells("train.progress", "'step':10,'since':7,'of':100,'rate':2.0,'eta':45.0,'metrics':{"
				"'step':10,'loss':1},'throughput':{'mean':4}");
	assert_int_equal(besides, 1);
	/* at the last step, and behind it */
	driver.progress_at.ms = now.ms - 10000;
	say_and_read("step 100 loss 1\n");
	driver.watch->stepped_at.ms = 8;
	record(false);
	tells("train.progress", "'step':100,'since':8,'of':100,'rate':2.0,'eta':0.0,'metrics':{"
				"'step':100,'loss':1},'throughput':{'mean':4}");
	driver.progress_at.ms = now.ms - 10000;
	say_and_read("step 101 loss 1\n");
	record(false);
	assert_null(newest_value("train.progress", "eta"));
	/* the agent is not asked for each of them */
	assert_int_equal(besides, 1);
	now.ms = 0;
	end();
}

static void ask_for_pace(int64_t after_ms)
{
	now.ms += after_ms;
	say_and_read("step 1\n");
	driver.watch->numbers_changed = true;
	driver.progress_at.ms = 0;
	driver.watch->recorded_step = -1;
	record(false);
}

static void the_agent_is_asked_for_its_pace_now_and_then(void **state)
{
	AUTO(auto_free) char *folder = NULL;

	(void)state;
	for (int remote = 0; remote < 2; remote++) {
		int64_t every_ms = remote ? 15000 : 500;

		begin_at(PHASE_TRAIN);
		driver.kind = compile_kind_find("none");
		if (remote) {
			folder = mem_format("%s/far", dir);
			store_freep(&driver.workspace);
			driver.workspace = &faulty_new(folder)->base;
		}
		said.beside = mem_copy("{'v':1,'rate':2}");
		ask_for_pace(0);
		assert_int_equal(besides, 1);
		ask_for_pace(every_ms - 1);
		assert_int_equal(besides, 1);
		ask_for_pace(1);
		assert_int_equal(besides, 2);
		end();
	}
	now.ms = 0;
}

/* ---- shown ---- */

static int shows;

static void count_shows(void *arg, const struct event *ev)
{
	(void)arg, (void)ev;
	shows++;
}

static void numbers_are_shown_every_half_second(void **state)
{
	(void)state;
	begin_at(PHASE_TRAIN);
	options.on_progress_update = count_shows;
	driver.progress_at.ms = now.ms + 1000000;
	shows = 0;
	record(false);
	assert_int_equal(shows, 0);
	say_and_read("step 1\n");
	record(false);
	assert_int_equal(shows, 1);
	say_and_read("step 2\n");
	now.ms += 499;
	record(false);
	assert_int_equal(shows, 1);
	now.ms++;
	record(false);
	assert_int_equal(shows, 2);
	say_and_read("step 3\n");
	driver.watch->news = false;
	now.ms += 500;
	record(false);
	assert_int_equal(shows, 2);
	now.ms = 0;
	end();
}

/* ---- position in a log ---- */

#define MIB (INT64_C(1) << 20)

static int sizes_asked;

static int count_size(struct engine *of, const char *name, const char *prefix, int node,
		      uint64_t *ret, struct err **err)
{
	sizes_asked++;
	return say_size(of, name, prefix, node, ret, err);
}

static void turn(bool ended)
{
	AUTO(err_freep) struct err *err = NULL;
	bool more;

	assert_int_equal(reading_turn(driver.watch, false, ended, &more, &err), 0);
}

/* The log is so much longer than what is read of it. */
static struct node_log *behind_by(enum phase phase, int64_t bytes)
{
	struct node_log *log = &begin_at(phase)->logs[0];

	ops.log_size = count_size;
	sizes_asked = 0;
	say_and_read("x\n");
	log->behind = true;
	said.sizes[0] = (uint64_t)(2 + bytes);
	return log;
}

static void only_what_is_far_behind_is_skipped(void **state)
{
	static const struct {
		enum phase phase;
		int64_t behind;
		bool ended, stops;
		int64_t left; /* of it; -1: all */
	} rows[] = {
		{ PHASE_TRAIN, 256 * MIB, false, false, -1 },
		{ PHASE_TRAIN, 256 * MIB + 1, false, false, 16 * MIB },
		{ PHASE_PRECOMPILE, 256 * MIB + 1, false, false, -1 },
		{ PHASE_PRECOMPILE, 1 * MIB + 1, true, true, 1 * MIB },
		{ PHASE_PRECOMPILE, 1 * MIB, true, true, -1 },
		{ PHASE_TRAIN, 1 * MIB + 1, false, true, -1 },
		{ PHASE_TRAIN, 1 * MIB + 1, true, false, -1 },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct node_log *log = behind_by(rows[i].phase, rows[i].behind);

		driver.flow.stop_requested = rows[i].stops;
		turn(rows[i].ended);
		assert_int_equal(sizes_asked, 1);
		if (rows[i].left < 0) {
			assert_int_equal(count_of("log.read"), 0);
			assert_int_equal(log->tail.offset, 2);
		} else {
			assert_int_equal(log->tail.offset, 2 + rows[i].behind - rows[i].left);
			assert_int_equal(newest_int("log.read", "skipped_bytes"),
					 rows[i].behind - rows[i].left);
			assert_int_equal(newest_int("log.read", "read_bytes"), log->tail.offset);
			assert_int_equal(newest_int("log.read", "size_bytes"), 2 + rows[i].behind);
			assert_int_equal(newest_int("log.read", "node"), 0);
		}
		end();
	}
	now.ms = 0;
}

static void the_size_of_a_log_is_asked_for_once_a_second(void **state)
{
	struct node_log *log = behind_by(PHASE_TRAIN, 5);

	(void)state;
	turn(false);
	assert_int_equal(sizes_asked, 1);
	log->behind = true;
	now.ms += 999;
	turn(false);
	assert_int_equal(sizes_asked, 1);
	log->behind = true;
	now.ms++;
	turn(false);
	assert_int_equal(sizes_asked, 2);
	assert_false(log->behind);
	now.ms += 5000;
	turn(false); /* nor of one that is read */
	assert_int_equal(sizes_asked, 2);
	now.ms = 0;
	end();
}

/* A line without an end is one at the end of its log. */
static void the_last_line_counts_without_its_newline(void **state)
{
	(void)state;
	begin_at(PHASE_TRAIN);
	say_and_read("step 1\nstep 2");
	assert_int_equal(driver.watch->last_step, 1);
	assert_false(driver.watch->whole);
	reading_end(driver.watch);
	assert_int_equal(driver.watch->last_step, 2);
	assert_int_equal(driver.watch->first_step, 1);
	assert_true(driver.watch->whole);
	now.ms = 0;
	end();
}

static void what_an_agent_says_is_no_line_of_the_command(void **state)
{
	struct attempt_watch *watch = begin_at(PHASE_TRAIN);

	(void)state;
	say_and_read("\n::stoker:n:: step 9\nstep 3\n");
	assert_int_equal(watch->last_step, 3);
	assert_int_equal(watch->logs[0].lines, 1);
	end();
	/* and in phase 1 nothing is computed */
	watch = begin_at(PHASE_PRECOMPILE);
	say_and_read("step 3\n");
	assert_int_equal(watch->last_step, -1);
	assert_false(watch->numbers_changed);
	assert_int_equal(watch->logs[0].lines, 1);
	now.ms = 0;
	end();
}

static void a_long_line_is_kept_in_part_and_sixty_of_them(void **state)
{
	struct attempt_watch *watch = begin_at(PHASE_TRAIN);
	AUTO(auto_free) char *line = mem_zero(5002, 1);

	(void)state;
	memset(line, 'x', 5000);
	line[5000] = '\n';
	say_and_read(line);
	assert_int_equal(watch->logs[0].last_len[0], 4096);
	line[4095] = '\n';
	line[4096] = '\0';
	say_and_read(line);
	assert_int_equal(watch->logs[0].last_len[1], 4095);
	for (int i = 0; i < 58; i++)
		say_and_read("y\n");
	assert_int_equal(watch->logs[0].last_len[0], 4096);
	say_and_read("zz\n");
	assert_int_equal(watch->logs[0].last_len[0], 2);
	assert_int_equal(watch->logs[0].last_len[1], 4095);
	assert_int_equal(watch->logs[0].lines, 61);
	now.ms = 0;
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(graphs_of_phase_1_are_told_every_two_seconds),
		cmocka_unit_test(no_graph_at_all_is_told_at_the_end),
		cmocka_unit_test(graphs_of_a_training_are_told_with_what_they_cost),
		cmocka_unit_test(hits_count_at_the_end_where_no_phase_1_ran),
		cmocka_unit_test(no_more_than_twenty_names_are_told),
		cmocka_unit_test(shapes_that_change_with_each_step_have_a_hint),
		cmocka_unit_test(numbers_are_told_every_ten_seconds),
		cmocka_unit_test(lines_that_an_earlier_driver_has_told_are_no_news),
		cmocka_unit_test(the_pace_gives_the_rest_of_the_time),
		cmocka_unit_test(the_agent_is_asked_for_its_pace_now_and_then),
		cmocka_unit_test(numbers_are_shown_every_half_second),
		cmocka_unit_test(only_what_is_far_behind_is_skipped),
		cmocka_unit_test(the_size_of_a_log_is_asked_for_once_a_second),
		cmocka_unit_test(the_last_line_counts_without_its_newline),
		cmocka_unit_test(what_an_agent_says_is_no_line_of_the_command),
		cmocka_unit_test(a_long_line_is_kept_in_part_and_sixty_of_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
