/* An attempt without an agent of ours, watched from outside: when it is stopped, what is known of
 * that later, and what is said beforehand of such runs. */
#include "faulty_store.h"

#include "attempt_fixture.h"
#include "jobs/run/attempt/order.h"
#include "jobs/run/attempt/toolkit_monitor.h"
#include "jobs/run/plan/plan.h"
#include "jobs/store/order.h"

#define TOOLKIT "'engine':'sagemaker','spec':{'sagemaker':{'launcher':'toolkit'}}"
/* Lines may be six seconds late with one node: the limit is over as soon as a step is known. */
#define STALL "'stall':{'mode':'fixed','limit_ms':-7000}"
#define STEPS "'metrics':[{'name':'step','regex':'step ([0-9]+)'}]"
#define PLAN  "{" TOOLKIT "," STALL "," STEPS ",'compile':{'kind':'neuron','timeout_ms':1000}}"

static const struct engine_status runs = { .state = ENGINE_RUNNING };

static void step(struct attempt_watch *watch)
{
	AUTO(err_freep) struct err *err = NULL;
	bool more;

	sb_adds(&said.logs[0], "step 1\n");
	assert_int_equal(reading_turn(watch, false, false, &more, &err), 0);
	assert_false(more);
}

static void check(struct attempt_watch *watch, const struct engine_status *status, int stops)
{
	AUTO(err_freep) struct err *err = NULL;

	if (toolkit_monitor_check(watch, status, &err) < 0)
		fail_msg("%s", err->message);
	assert_int_equal(said.stops, stops);
}

/* The note that the next driver would find; NULL: none. The caller frees it. */
static json_t *stopped_file(void)
{
	AUTO(auto_free) char *path = mem_format("%s/ws/runs/r1/train-1/stopped.json", dir);
	AUTO(err_freep) struct err *err = NULL;
	json_t *value = NULL;

	if (fs_exists(path))
		assert_int_equal(js_load(path, 4096, &value, &err), 0);
	return value;
}

static void put_stopped(const char *text)
{
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(store_put(driver.workspace, "runs/r1/train-1/stopped.json", text,
				   strlen(text), &err),
			 0);
}

static struct attempt_watch *another_driver(void)
{
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(watch_open(&driver, PHASE_TRAIN, 1, "stk-r1-1", &err), 0);
	return driver.watch;
}

static void a_silent_attempt_is_stopped_by_each_driver_until_it_has_ended(void **state)
{
	const struct engine_status ended = { .state = ENGINE_ENDED };
	struct attempt_watch *watch = begin(PHASE_TRAIN, PLAN);
	json_auto_t *stopped = NULL;

	(void)state;
	step(watch);
	check(watch, &runs, 1);
	stopped = stopped_file();
	assert_string_equal(js_str(stopped, "stopped"), STOPPED_STALL);
	assert_string_equal(js_str(json_object_get(stopped, "stall"), "doing"), "step");
	assert_int_equal(js_int(json_object_get(stopped, "stall"), "limit_ms", 0), -1000);
	check(watch, &runs, 2);
	check(another_driver(), &runs, 3);
	check(driver.watch, &ended, 3);
	end();
}

static void nothing_is_silent_before_it_runs_and_is_read(void **state)
{
	const struct engine_status starts = { .state = ENGINE_STARTING };
	struct attempt_watch *watch = begin(PHASE_TRAIN, PLAN);
	json_auto_t *none = NULL;

	(void)state;
	toolkit_monitor_go_on(watch->monitor, 5); /* another driver has read so far */
	check(watch, &runs, 0);
	step(watch);
	check(watch, &starts, 0);
	watch->behind_since = clock_mono_now();
	check(watch, &runs, 0);
	none = stopped_file();
	assert_null(none);
	end();
}

static void a_phase_1_that_takes_too_long_is_stopped(void **state)
{
	struct attempt_watch *watch = begin(PHASE_PRECOMPILE, PLAN);
	struct engine_status late = runs;

	(void)state;
	step(watch); /* any output is progress in phase 1 */
	late.started.ms = driver_now(&driver).ms;
	late.started.ms -= 60000;
	check(watch, &late, 1);
	end();
}

/* A training has its own limits, and without a limit or a beginning nothing is late. */
static void nothing_else_takes_too_long(void **state)
{
	static const struct {
		enum phase phase;
		int64_t limit_ms, started_ms;
		int stops;
	} rows[] = {
		{ PHASE_PRECOMPILE, 1000, 1, 1 },
		{ PHASE_TRAIN, 1000, 1, 0 },
		{ PHASE_PRECOMPILE, 0, 1, 0 },
		{ PHASE_PRECOMPILE, 1000, 0, 0 },
		{ PHASE_PRECOMPILE, INT64_C(9000000000000), 1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct engine_status status = { .state = ENGINE_RUNNING,
						.started = { rows[i].started_ms } };
		struct attempt_watch *watch;

		watch = begin(rows[i].phase, "{" TOOLKIT "," STEPS ",'compile':{'kind':'neuron'}}");
		js_put(json_object_get(driver.plan, "compile"), "timeout_ms",
		       json_integer(rows[i].limit_ms));
		step(watch);
		check(watch, &status, rows[i].stops);
		end();
	}
}

static void with_agents_there_is_nothing_to_watch_from_outside(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, "{'engine':'local'," STALL "," STEPS "}");

	(void)state;
	assert_null(watch->monitor);
	step(watch);
	check(watch, &runs, 0);
	end();
}

static void a_stall_limit_may_be_off_or_learnt(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, "{" TOOLKIT "," STEPS "}");

	(void)state;
	step(watch);
	check(watch, &runs, 0);
	end();
	watch = begin(PHASE_TRAIN, "{" TOOLKIT ",'stall':{'mode':'auto'}," STEPS "}");
	step(watch);
	check(watch, &runs, 0);
	end();
}

/* ---- objects that cannot be written or read ---- */

static int look(struct attempt_watch *watch, struct err **err)
{
	return toolkit_monitor_check(watch, &runs, err);
}

static void no_stop_is_asked_for_before_its_reason_is_written(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, PLAN);
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *work = mem_format("%s/ws", dir);
	struct faulty_store *store = faulty_new(work);

	(void)state;
	store_freep(&driver.workspace);
	driver.workspace = &store->base;
	step(watch);
	store->unreadable = true;
	assert_int_equal(look(watch, &err), -1);
	assert_string_equal(err->message, "the network is gone");
	err_freep(&err);
	store->unreadable = false;
	store->faults[0] = FAULT_REQUEST_LOST;
	assert_int_equal(look(watch, &err), -1);
	assert_string_equal(err->message, "the network is gone");
	err_freep(&err);
	assert_int_equal(said.stops, 0);
	said.away = true;
	assert_away(look(watch, &err), &err); /* the reason is there now */
	check(watch, &runs, 1);
	end();
	watch = begin(PHASE_PRECOMPILE, PLAN);
	driver.flow.at.ms = 1;
	store_freep(&driver.workspace);
	store = faulty_new(work);
	driver.workspace = &store->base;
	store->faults[0] = FAULT_REQUEST_LOST;
	step(watch);
	assert_int_equal(toolkit_monitor_check(watch,
					       &(struct engine_status){ .state = ENGINE_RUNNING,
									.started = { 1 } },
					       &err),
			 -1);
	assert_string_equal(err->message, "the network is gone");
	end();
}

static void a_damaged_reason_is_an_error(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, PLAN);
	AUTO(node_report_release) struct node_report none = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	put_stopped("{");
	assert_int_equal(look(watch, &err), -1);
	assert_non_null(strstr(err->message, "stopped.json"));
	err_freep(&err);
	put_stopped("{\"stopped\":5}");
	report(0, "'exit':1");
	assert_int_equal(attempt_report(watch, 0, &none, &err), -1);
	assert_non_null(strstr(err->message, "stopped"));
	end();
}

/* ---- report of an attempt ---- */

static void a_report_says_why_the_driver_stopped_it(void **state)
{
	struct attempt_watch *watch = begin(PHASE_TRAIN, PLAN);
	AUTO(node_report_release) struct node_report before = { 0 };
	AUTO(node_report_release) struct node_report after = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_int_equal(attempt_report(watch, 0, &before, &err), 0);
	report(0, "'exit':1");
	assert_int_equal(attempt_report(watch, 0, &before, &err), 1);
	assert_null(before.stopped);
	put_stopped("{\"v\":1,\"stopped\":\"stall\",\"stall\":{\"doing\":\"step\","
		    "\"silent_ms\":9,\"limit_ms\":8,\"since\":7}}");
	watch = another_driver();
	assert_int_equal(attempt_report(watch, 0, &after, &err), 1);
	assert_int_equal(after.exit, 1);
	assert_string_equal(after.stopped, "stall");
	assert_true(after.has_stall);
	assert_string_equal(after.stall.doing, "step");
	assert_int_equal(after.stall.silent_ms, 9);
	node_report_release(&after);
	after = (struct node_report){ 0 };
	put_stopped("{");
	assert_int_equal(attempt_report(another_driver(), 0, &after, &err), -1);
	assert_non_null(strstr(err->message, "stopped.json"));
	end();
}

static void a_pattern_that_does_not_compile_is_named(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	(void)begin(PHASE_TRAIN, PLAN);
	json_object_set_new(json_array_get(json_object_get(driver.plan, "metrics"), 0), "regex",
			    json_string("step ("));
	assert_int_equal(watch_open(&driver, PHASE_TRAIN, 2, "stk-r1-2", &err), -1);
	assert_int_equal(err->code, EXIT_SPEC);
	assert_null(driver.watch);
	end();
}

/* ---- beforehand ---- */

static void what_such_a_run_does_without_is_said(void **state)
{
	json_auto_t *compiles = quoted_json("{" TOOLKIT ",'compile':{}}");
	json_auto_t *trains = quoted_json("{" TOOLKIT "}");
	json_auto_t *has_agent = quoted_json("{'engine':'sagemaker','spec':{'sagemaker':{}}}");
	json_auto_t *more = toolkit_limits_not_held(compiles);
	json_auto_t *less = toolkit_limits_not_held(trains);
	size_t count = json_array_size(less);

	(void)state;
	assert_null(toolkit_limits_not_held(has_agent));
	assert_non_null(strstr(json_string_value(json_array_get(less, 0)), "no claim"));
	assert_int_equal(json_array_size(more), count + 1);
	assert_non_null(strstr(json_string_value(json_array_get(more, count)), "compiler"));
}

#define SENT_PLAN(launcher, command)                                                               \
	"{'engine':'sagemaker','nodes':1,'workspace':'s3://bucket/w','source':{'bundle':'s/"       \
	"x.tar.gz',"                                                                               \
	"'links':[]},'secrets':{},'metrics':[],'stall':{'mode':'auto'},'checkpoint':{'kind':"      \
	"'auto','sync':'none','grace_ms':1,'on_mismatch':'stop'},'phases':[{'phase':'train',"      \
	"'command':" command ",'env':{}}],'spec':{'image':'image:1','command':" command            \
	",'hyperparameters':{'api_key':'s3cr3t'},'resources':{'instance':'ml.trn1.2xlarge',"       \
	"'nodes':1},'sagemaker':{'role':'arn:aws:iam::123456789012:role/r','work_dir':"            \
	"'/tmp/stoker'" launcher "}}}"

/* The order of the training, with what is sent for it. */
static json_t *sent(const char *text)
{
	json_auto_t *plan = quoted_json(text);
	json_auto_t *orders = order_planned(plan);
	AUTO(err_freep) struct err *err = NULL;

	if (sends_of_order(plan, orders, &err) < 0)
		fail_msg("%s", err->message);
	assert_int_equal(json_array_size(orders), 1);
	return json_incref(json_array_get(orders, 0));
}

static void the_request_for_an_order_is_shown(void **state)
{
	json_auto_t *order = sent(SENT_PLAN("", "['train','x']"));
	const json_t *first = json_array_get(json_object_get(order, "sends"), 0);

	(void)state;
	assert_string_equal(js_str(first, "operation"), "CreateTrainingJob");
	assert_string_equal(js_str(json_object_get(first, "body"), "TrainingJobName"),
			    "stk-<id>-train-1");
	assert_int_equal(json_array_size(json_object_get(order, "command")), 2);
	assert_non_null(json_object_get(order, "checkpoint"));
}

static void without_an_agent_only_the_request_is_shown_and_what_runs(void **state)
{
	json_auto_t *order = sent(SENT_PLAN(",'launcher':'toolkit'", "['python','train.py']"));
	json_auto_t *words = json_incref(json_object_get(order, "command"));
	AUTO(auto_free) char *line = js_line(words);

	(void)state;
	assert_int_equal(json_object_size(order), 3);
	assert_non_null(json_object_get(order, "sends"));
	assert_string_equal(js_str(order, "phase"), "train");
	assert_non_null(strstr(line, "train.py"));
	assert_null(strstr(line, "s3cr3t"));
}

static void an_engine_that_sends_nothing_adds_nothing(void **state)
{
	json_auto_t *plan = quoted_json("{'engine':'local'}");
	json_auto_t *unknown = quoted_json("{'engine':'another'}");
	json_auto_t *orders = quoted_json("[{'phase':'train'}]");
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_int_equal(sends_of_order(plan, orders, &err), 0);
	assert_int_equal(sends_of_order(unknown, orders, &err), 0);
	assert_int_equal(json_object_size(json_array_get(orders, 0)), 1);
	assert_null(sends_command_as_run(plan, "train"));
}

static void refuses(json_t *plan, const char *words)
{
	json_auto_t *orders = order_planned(plan);
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(sends_of_order(plan, orders, &err), -1);
	if (!strstr(err->message, words))
		fail_msg("'%s' is not in '%s'", words, err->message);
}

static void a_request_that_cannot_be_made_is_an_error(void **state)
{
	json_auto_t *plan = quoted_json(SENT_PLAN(",'launcher':'toolkit'", "['python','-c','x']"));
	json_auto_t *nowhere = quoted_json(SENT_PLAN("", "['train']"));

	(void)state;
	refuses(plan, "toolkit");
	json_object_set_new(nowhere, "workspace", json_string("s3://b"));
	refuses(nowhere, "names no bucket");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_silent_attempt_is_stopped_by_each_driver_until_it_has_ended),
		cmocka_unit_test(nothing_is_silent_before_it_runs_and_is_read),
		cmocka_unit_test(a_phase_1_that_takes_too_long_is_stopped),
		cmocka_unit_test(nothing_else_takes_too_long),
		cmocka_unit_test(with_agents_there_is_nothing_to_watch_from_outside),
		cmocka_unit_test(a_stall_limit_may_be_off_or_learnt),
		cmocka_unit_test(no_stop_is_asked_for_before_its_reason_is_written),
		cmocka_unit_test(a_damaged_reason_is_an_error),
		cmocka_unit_test(a_report_says_why_the_driver_stopped_it),
		cmocka_unit_test(a_pattern_that_does_not_compile_is_named),
		cmocka_unit_test(what_such_a_run_does_without_is_said),
		cmocka_unit_test(the_request_for_an_order_is_shown),
		cmocka_unit_test(without_an_agent_only_the_request_is_shown_and_what_runs),
		cmocka_unit_test(an_engine_that_sends_nothing_adds_nothing),
		cmocka_unit_test(a_request_that_cannot_be_made_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
