/* What the logs of an attempt tell: numbers, graphs, the pace of steps, and how far they are read.
 */
#include "attempt_fixture.h"

#define MODULE(n) "MODULE_1029021789137921902" n "+3cc9a3cb"
#define MISS(n)                                                                                    \
	"Call compiler with cmd: neuronx-cc compile --target=trn1 --framework=XLA "                \
	"/tmp/model." MODULE(n) ".hlo_module.pb --output /tmp/model." MODULE(n) ".neff\n"
#define FAILED(n)                                                                                  \
	"Failed compilation with ['neuronx-cc', 'compile', '--target=trn1', '/tmp/model." MODULE(  \
		n) ".hlo_module.pb', '--output', '/tmp/model." MODULE(n) ".neff']: ERROR: no\n"
#define EXTRACTED(n)                                                                               \
	"Extracting graphs (/cache/neuronxcc-2.15.128.0+56dc5a86/" MODULE(                         \
		n) "/model.hlo_module.pb) for ahead-of-time parallel compilation. No compilation " \
		   "was done.\n"

#define STEPS_PLAN                                                                                 \
	"{'nodes':1,'steps':{'train':100},'compile':{'kind':'neuron'},'limits':{'price':36},"      \
	"'metrics':[{'name':'step','regex':'step ([0-9]+)'},"                                      \
	"{'name':'loss','regex':'loss ([0-9.]+)'}]}"

#define HOUR_MS ((int64_t)3600 * 1000)

/* ---- position in the logs ---- */

#define MIB ((size_t)1 << 20)

/* More than a turn has room for. */
static void say_much(int node)
{
	char line[1024];

	memset(line, 'x', sizeof line);
	line[sizeof line - 1] = '\n';
	for (size_t len = 0; len < 4 * MIB; len += sizeof line)
		sb_add(&said.logs[node], line, sizeof line);
}

static bool turn(struct attempt_watch *watch, bool ended)
{
	AUTO(err_freep) struct err *err = NULL;
	bool more = false;

	assert_int_equal(reading_turn(watch, false, ended, &more, &err), 0);
	return more;
}

static void what_a_training_is_far_behind_is_skipped_and_recorded(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, STEPS_PLAN);
	uint64_t at, size = 1024 * MIB;

	(void)state;
	say_much(0);
	assert_true(turn(watch, false));
	at = watch->logs[0].tail.offset;
	said.sizes[0] = size;
	watch->logs[0].sized_at.ms = 0; /* asked for a moment ago */
	assert_false(turn(watch, false));
	assert_int_equal(newest_int("log.read", "skipped_bytes"), size - 16 * MIB - at);
	assert_int_equal(newest_int("log.read", "read_bytes"), size - 16 * MIB);
	assert_int_equal(newest_int("log.read", "size_bytes"), size);
	assert_int_equal(newest_int("log.read", "node"), 0);
	assert_recorded(1);
	end();
}

static void a_precompile_reads_all_unless_the_run_is_to_stop(void **state)
{
	struct attempt_watch *watch = begin(PHASE_PRECOMPILE, STEPS_PLAN);

	(void)state;
	say_much(0);
	assert_true(turn(watch, false));
	said.sizes[0] = 1024 * MIB;
	assert_true(turn(watch, false));
	assert_recorded(0);
	driver.flow.stop_requested = true;
	watch->logs[0].sized_at.ms = 0;
	assert_false(turn(watch, true));
	assert_int_equal(newest_int("log.read", "read_bytes"), 1023 * MIB);
	end();
}

static void a_log_that_lags_behind_is_recorded_now_and_then(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, STEPS_PLAN);
	AUTO(err_freep) struct err *err = NULL;
	bool more;

	(void)state;
	say_much(0);
	driver.live = false;
	assert_true(turn(watch, false));
	assert_int_equal(watch->behind_since.ms, 0);
	driver.live = true;
	assert_true(turn(watch, false));
	assert_recorded(0);
	watch->behind_recorded_at.ms -= 10000;
	assert_true(turn(watch, false));
	assert_int_equal(newest_int("log.read", "read_bytes"), watch->logs[0].tail.offset);
	assert_null(newest_value("log.read", "skipped_bytes"));
	say_much(0);
	/* The next time is later; at the end it is not. */
	assert_int_equal(watch->behind_pause_ms, 20000);
	watch->behind_pause_ms = HOUR_MS;
	watch->behind_recorded_at.ms -= 10000;
	assert_true(turn(watch, false));
	assert_recorded(1);
	assert_true(turn(watch, true));
	assert_recorded(2);
	say_much(0);
	watch->behind_recorded_at.ms -= 10000;
	driver.stood_down = true;
	assert_taken_over(reading_turn(watch, false, true, &more, &err), &err);
	say_much(0);
	said.away = true;
	assert_away(reading_turn(watch, false, false, &more, &err), &err);
	end();
}

/* ---- numbers ---- */

static struct utc say_time(struct engine *of, const char *name, const char *prefix, int node,
			   uint64_t offset)
{
	(void)of, (void)name, (void)prefix, (void)node;
	return (struct utc){ 1795000000000 + (int64_t)offset };
}

static void a_step_has_the_time_of_its_line_where_the_service_keeps_it(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, STEPS_PLAN);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	ops.log_time = say_time;
	say(0, "12345 bytes\nstep 7 loss 0.5\n::stoker: loss 9\n");
	read_all(watch);
	assert_int_equal(numbers_record(watch, false, &err), 0);
	assert_int_equal(newest_int("train.progress", "step"), 7);
	assert_int_equal(newest_int("train.progress", "since"), 1795000000012);
	assert_int_equal(newest_int("train.progress", "of"), 100);
	assert_true(js_real(newest_value("train.progress", "metrics"), "loss", 0) == 0.5);
	end();
}

static void steps_without_numbers_are_told_too(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, STEPS_PLAN);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	say(0, "step 1 loss 3\nstep 2\n");
	read_all(watch);
	assert_int_equal(numbers_record(watch, true, &err), 0);
	assert_recorded(2);
	assert_int_equal(newest_int("train.progress", "step"), 2);
	assert_int_equal(json_object_size(newest_value("train.progress", "metrics")), 1);
	assert_int_equal(numbers_record(watch, true, &err), 0);
	assert_recorded(2);
	say(0, "step 3\n");
	read_all(watch);
	driver.stood_down = true;
	assert_taken_over(numbers_record(watch, false, &err), &err);
	end();
}

/* While nobody drove, the agent alone has seen steps. */
static void stretches_of_a_time_without_a_driver_are_recorded(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, STEPS_PLAN);
	struct ledger *ledger = &driver.flow.ledger;
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	ledger->hole_count = 1;
	ledger->holes[0].from.ms = 150;
	ledger->holes[0].to.ms = 400;
	said.beside = mem_copy("{'v':1,'rate':2,'throughput':{'mean':4},"
			       "'stretches':[[100,200,1,5],[900,950,6,9]]}");
	say(0, "step 10 loss 1\n");
	read_all(watch);
	driver.stood_down = true;
	assert_taken_over(numbers_record(watch, false, &err), &err);
	assert_int_equal(numbers_record(watch, false, &err), 0);
	assert_recorded(2);
	assert_true(json_real_value(newest_value("train.progress", "rate")) == 2);
	assert_true(json_number_value(newest_value("train.progress", "eta")) == 45);
	assert_int_equal(js_int(newest_value("train.progress", "throughput"), "mean", 0), 4);
	assert_int_equal(newest_int("train.stretch", "since"), 100);
	assert_int_equal(newest_int("train.stretch", "until"), 200);
	assert_int_equal(newest_int("train.stretch", "first_step"), 1);
	assert_int_equal(newest_int("train.stretch", "step"), 5);
	end();
}

static void the_pace_at_the_end_is_that_of_the_report(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, STEPS_PLAN);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	report(0, "'pace':{'v':1,'rate':5}");
	say(0, "step 50 loss 1\n");
	read_all(watch);
	assert_int_equal(numbers_record(watch, true, &err), 0);
	assert_true(json_number_value(newest_value("train.progress", "eta")) == 10);
	end();
}

/* ---- shown ---- */

static struct {
	int times;
	int64_t step;
	char *numbers;
} shown;

static void show(void *arg, const struct event *ev)
{
	(void)arg;
	shown.times++;
	shown.step = EVENT_HAS(ev, step) ? ev->step : -1;
	free(shown.numbers);
	shown.numbers = js_line(ev->metrics);
	shown.numbers[strcspn(shown.numbers, "\n")] = '\0';
}

static void is_shown(struct attempt_watch *watch, const char *line, int64_t step,
		     const char *numbers)
{
	AUTO(err_freep) struct err *err = NULL;
	int before = shown.times;

	say(0, line);
	read_all(watch);
	watch->shown_at.ms = 0;
	assert_int_equal(progress_record(watch, false, &err), 0);
	assert_int_equal(shown.times, before + 1);
	assert_int_equal(shown.step, step);
	assert_string_equal(shown.numbers, numbers);
	assert_int_equal(progress_record(watch, false, &err), 0); /* nothing new */
	assert_int_equal(shown.times, before + 1);
}

static void the_newest_numbers_are_shown_oftener_than_they_are_recorded(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, STEPS_PLAN);

	(void)state;
	options.on_progress_update = show;
	driver.progress_at.ms = clock_mono_now().ms + HOUR_MS; /* not due */
	is_shown(watch, "loss 8\n", -1, "{\"loss\":8}");
	is_shown(watch, "step 1 loss 2\n", 1, "{\"step\":1,\"loss\":2}");
	/* The loss of step 1 is not that of step 2. */
	is_shown(watch, "step 2\n", 2, "{\"step\":2}");
	assert_recorded(0);
	free(TAKE(shown.numbers));
	end();
}

/* ---- graphs ---- */

static int record_all(struct attempt_watch *watch, struct err **err)
{
	read_all(watch);
	return progress_record(watch, true, err);
}

static void graphs_that_failed_in_phase_1_are_counted(void **state)
{
	struct attempt_watch *watch = begin(PHASE_PRECOMPILE, STEPS_PLAN);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	say(0, MISS("1") FAILED("1") MISS("2"));
	assert_int_equal(record_all(watch, &err), 0);
	assert_int_equal(newest_int("compile.progress", "graphs"), 2);
	assert_int_equal(newest_int("compile.progress", "failed"), 1);
	end();
}

static void graphs_that_come_with_ever_more_steps_have_a_hint(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, STEPS_PLAN);
	AUTO(err_freep) struct err *err = NULL;
	const json_t *late;

	(void)state;
	say(0, MISS("0") "step 1\n" MISS("1") "step 2\n" MISS("2") "step 3\n" MISS("3"));
	assert_int_equal(record_all(watch, &err), 0);
	assert_string_equal(newest("jit.compiled", "hint"), "");
	late = newest_value("jit.compiled", "late");
	assert_int_equal(json_array_size(late), 4);
	assert_null(json_object_get(json_array_get(late, 0), "after_step"));
	assert_int_equal(js_int(json_array_get(late, 1), "after_step", -1), 1);
	say(0, "step 4\n" MISS("4"));
	read_all(watch);
	driver.stood_down = true;
	assert_taken_over(progress_record(watch, true, &err), &err);
	watch->graphs_changed = true;
	assert_int_equal(progress_record(watch, true, &err), 0);
	assert_string_equal(newest("jit.compiled", "hint"),
			    "shapes change from step to step; pad them, or sort them into a few "
			    "sizes");
	assert_int_equal(newest_int("jit.compiled", "graphs"), 5);
	assert_int_equal(json_array_size(newest_value("jit.compiled", "names")), 5);
	/* 36 USD an hour, for no measured second */
	assert_true(json_number_value(newest_value("jit.compiled", "cost")) == 0);
	end();
}

static void a_training_that_computes_nothing_is_told_once(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, STEPS_PLAN);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	say(0, EXTRACTED("1"));
	read_all(watch);
	driver.progress_at.ms = watch->graphs_at.ms = clock_mono_now().ms + HOUR_MS; /* not due */
	driver.stood_down = true;
	assert_taken_over(progress_record(watch, false, &err), &err);
	watch->output_invalid_recorded = false;
	assert_int_equal(progress_record(watch, false, &err), 0);
	assert_string_equal(newest("train.spoiled", "reason"),
			    "the log shows graphs that are extracted and not executed, as in "
			    "phase 1");
	assert_int_equal(progress_record(watch, false, &err), 0);
	assert_recorded(1);
	end();
}

/* ---- patterns ---- */

#define SLOW_PLAN "{'metrics':[{'name':'slow','regex':'(([a-z])+.)+[A-Z]([0-9])+'}]}"

static void say_slow_lines(struct attempt_watch *watch)
{
	char line[4096];

	memset(line, 'a', sizeof line);
	line[sizeof line - 2] = '\n';
	line[sizeof line - 1] = '\0';
	for (int i = 0; i < 200; i++)
		say(0, line);
	read_all(watch);
}

static void a_metric_that_costs_too_much_is_given_up_and_named(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, SLOW_PLAN);
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	say_slow_lines(watch);
	assert_int_equal(progress_record(watch, false, &err), 0);
	assert_string_equal(newest("metric.given_up", "name"), "slow");
	assert_string_equal(newest("metric.given_up", "reason"),
			    "the pattern takes too long on lines of this log");
	assert_true(newest("metric.given_up", "hint")[0] != '\0');
	assert_int_equal(progress_record(watch, false, &err), 0);
	assert_recorded(1);
	end();
	watch = begin(PHASE_TRAIN, SLOW_PLAN);
	say_slow_lines(watch);
	driver.stood_down = true;
	assert_taken_over(progress_record(watch, false, &err), &err);
	end();
}

/* The number that is read of "1,234" is 1: told once, and only where the comma may be within a
 * number. */
static void a_number_that_may_go_on_behind_a_comma_is_told(void **state)
{
	static const struct {
		const char *line, *reason; /* "": nothing is told */
	} rows[] = {
		{ "loss 1,234\n", "'1,234' in the log is read as 1" },
		{ "loss -12,345,678\n", "'12,345' in the log is read as 12" },
		{ "loss 123,456.5\n", "'123,456' in the log is read as 123" },
		{ "loss 1,2345\n", "" },
		{ "loss 1,23\n", "" },
		{ "loss 1, 234\n", "" },
		{ "loss 1.5,234\n", "" },
		{ "loss 1234,567\n", "" },
		{ "loss 1234\n", "" },
		{ "loss nan,234\n", "" },
		{ "loss 1,", "" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct attempt_watch *watch = begin(
			PHASE_TRAIN, "{'metrics':[{'name':'loss','regex':'loss ([-0-9.na]+)'}]}");
		AUTO(err_freep) struct err *err = NULL;

		say(0, rows[i].line);
		say(0, rows[i].line);
		read_all(watch);
		assert_int_equal(progress_record(watch, true, &err), 0);
		assert_int_equal(count_of("metric.doubted"), *rows[i].reason ? 1 : 0);
		if (*rows[i].reason) {
			assert_string_equal(newest("metric.doubted", "name"), "loss");
			assert_string_equal(newest("metric.doubted", "reason"), rows[i].reason);
		}
		assert_int_equal(progress_record(watch, true, &err), 0);
		assert_int_equal(count_of("metric.doubted"), *rows[i].reason ? 1 : 0);
		end();
	}
}

/* ---- first the check-up ---- */

static void no_number_is_recorded_before_the_check_up_of_its_nodes(void **state)
{
	struct attempt_watch *watch =
		begin(PHASE_TRAIN, "{'health':{'ops':[]},'metrics':[{'name':'step','regex':"
				   "'step ([0-9]+)'}]}");
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	report(0, "'health':{'verdict':'healthy','nodes':[{'node':0}]}");
	say(0, "step 1\n");
	read_all(watch);
	said.away = true;
	assert_away(progress_record(watch, false, &err), &err);
	assert_recorded(0);
	assert_int_equal(progress_record(watch, false, &err), 0);
	assert_recorded(2);
	assert_string_equal(js_str(json_array_get(recorded, 0), "event"), "health.checked");
	assert_string_equal(js_str(json_array_get(recorded, 1), "event"), "train.progress");
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_training_is_far_behind_is_skipped_and_recorded),
		cmocka_unit_test(a_precompile_reads_all_unless_the_run_is_to_stop),
		cmocka_unit_test(a_log_that_lags_behind_is_recorded_now_and_then),
		cmocka_unit_test(a_step_has_the_time_of_its_line_where_the_service_keeps_it),
		cmocka_unit_test(steps_without_numbers_are_told_too),
		cmocka_unit_test(stretches_of_a_time_without_a_driver_are_recorded),
		cmocka_unit_test(the_pace_at_the_end_is_that_of_the_report),
		cmocka_unit_test(the_newest_numbers_are_shown_oftener_than_they_are_recorded),
		cmocka_unit_test(graphs_that_failed_in_phase_1_are_counted),
		cmocka_unit_test(graphs_that_come_with_ever_more_steps_have_a_hint),
		cmocka_unit_test(a_training_that_computes_nothing_is_told_once),
		cmocka_unit_test(a_metric_that_costs_too_much_is_given_up_and_named),
		cmocka_unit_test(a_number_that_may_go_on_behind_a_comma_is_told),
		cmocka_unit_test(no_number_is_recorded_before_the_check_up_of_its_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
