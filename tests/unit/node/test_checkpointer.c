/* The real stoker-node looks after what real commands save: what is marked, when,
 * where, and what never is. */
#include "tests/unit/node/agent_run.h"

#include "jobs/node/checkpoints/checkpointer.h"

#define SECOND_PREFIX "runs/r1/train-2/"

/* A shell function: `save STEP` writes a whole checkpoint of kind `files`. */
#define SAVE                                                                                       \
	"save() { d=$STOKER_CHECKPOINT_DIR/step-$1; mkdir -p $d; printf hello > $d/state.bin; "    \
	"printf '{\"state_bytes\":5}' > $d/meta.json; }; "
/* `until_there PATH` waits for a file. */
#define UNTIL "until_there() { until [ -e $1 ]; do sleep 0.02; done; }; "

static json_t *order_with_checkpoints(const struct place *place, const char *script,
				      const char *root)
{
	json_t *order = order_for(place, script);
	AUTO(auto_free) char *checkpoints = place_path(place, PREFIX "checkpoints");

	js_put_str(order, "checkpoint_dir", checkpoints);
	js_put(order, "checkpoint",
	       json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "kind", "files", "root",
			 root ? root : checkpoints, "sync", "agent", "keep", "all", "signal",
			 "USR1", "grace_ms", 20000));
	return order;
}

static char *mark_path(const struct place *place, const char *name)
{
	return mem_format("%s/" PREFIX "checkpoints/%s" MARK_SUFFIX, place->root, name);
}

static bool is_marked(const struct place *place, const char *name)
{
	AUTO(auto_free) char *path = mark_path(place, name);

	return fs_exists(path);
}

static void a_checkpoint_is_marked_while_the_command_goes_on(void **state)
{
	struct place *place = *state;
	AUTO(auto_free)
	char *script = mem_format(SAVE UNTIL "save 10; until_there "
					     "$STOKER_CHECKPOINT_DIR/step-10" MARK_SUFFIX);
	AUTO(auto_free) char *path = mark_path(place, "step-10");
	AUTO(auto_free) char *url = mem_format("%s/" PREFIX "checkpoints/step-10", place->root);
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *mark = NULL, *body = NULL;
	const json_t *newest;

	assert_int_equal(run(place, order_with_checkpoints(place, script, NULL)), 0);
	must(js_load(path, 65536, &mark, &err), &err);
	assert_string_equal(js_str(mark, "run"), "r1");
	assert_string_equal(js_str(mark, "nonce"), NONCE);
	assert_string_equal(js_str(mark, "url"), url);
	assert_string_equal(js_str(mark, "kind"), "files");
	assert_int_equal(js_int(mark, "attempt", 0), 1);
	assert_int_equal(js_int(mark, "step", 0), 10);
	assert_int_equal(json_array_size(json_object_get(mark, "files")), 2);
	body = report(place);
	assert_state(body, "ended", 0);
	newest = json_object_get(body, "checkpoint");
	assert_int_equal(js_int(newest, "step", 0), 10);
	assert_string_equal(js_str(newest, "url"), url);
}

/* The command sees no mark for long after a save, and the report tells when it saved. */
static void what_a_benchmark_saves_is_marked_when_the_command_is_over(void **state)
{
	struct place *place = *state;
	AUTO(auto_free)
	char *script = mem_format(SAVE "save 10; until grep -q saves %s/" PREFIX
				       "node-0/report.json; do sleep 0.02; done; sleep 1; "
				       "[ ! -e $STOKER_CHECKPOINT_DIR/step-10" MARK_SUFFIX " ]",
				  place->root);
	json_t *order = order_with_checkpoints(place, script, NULL);
	json_auto_t *body = NULL;
	const json_t *saves, *save;
	int64_t before = clock_utc_now().ms;
	size_t i;

	json_object_set_new(json_object_get(order, "checkpoint"), "postponed", json_true());
	assert_int_equal(run(place, order), 0);
	assert_true(is_marked(place, "step-10"));
	body = report(place);
	assert_int_equal(js_int(json_object_get(body, "checkpoint"), "step", 0), 10);
	saves = js_path(body, "checkpoint.saves");
	assert_true(json_array_size(saves) >= 1);
	json_array_foreach (saves, i, save) {
		int64_t from = json_integer_value(json_array_get(save, 0));
		int64_t to = json_integer_value(json_array_get(save, 1));

		assert_true(before <= from && from <= to && to <= clock_utc_now().ms);
	}
}

/* A drain cannot wait for the end, which waits for it. */
static void what_a_drained_benchmark_saves_is_marked_at_once(void **state)
{
	struct place *place = *state;
	AUTO(auto_free)
	char *script = mem_format(SAVE UNTIL "trap 'save 20' USR1; save 10; until_there "
					     "$STOKER_CHECKPOINT_DIR/step-20" MARK_SUFFIX);
	AUTO(auto_free) char *report_path = place_path(place, PREFIX "node-0/report.json");
	AUTO(auto_free) char *drain = place_path(place, PREFIX DRAIN_FILE);
	json_t *order = order_with_checkpoints(place, script, NULL);
	pid_t agent;

	json_object_set_new(json_object_get(order, "checkpoint"), "postponed", json_true());
	order_write(place, order);
	agent = start(place, PREFIX, 0, plain_env, NULL);
	assert_true(wait_for_file(report_path));
	assert_true(wait_for_state(place, PREFIX, 0, REPORT_RUNNING));
	write_file(drain, "{\"v\":1,\"reason\":\"test\"}", 0600);
	(void)end_of(agent);
	assert_true(is_marked(place, "step-20"));
}

static void what_is_saved_last_is_marked_when_the_command_is_over(void **state)
{
	static const char *const ends[] = { "exit 0", "exit 3", "kill -9 $$" };

	for (size_t i = 0; i < STK_LENGTH(ends); i++) {
		AUTO(auto_free) char *script = mem_format(SAVE "save 1%zu; %s", i, ends[i]);
		AUTO(auto_free) char *name = mem_format("step-1%zu", i);
		json_t *order = order_with_checkpoints(*state, script, NULL);

		js_put(order, "attempt", json_integer((json_int_t)i + 1));
		run(*state, order);
		assert_true(is_marked(*state, name));
	}
}

static void assert_partial_reported(const struct place *place, const char *name, const char *why)
{
	json_auto_t *body = report(place);
	const json_t *partial = json_array_get(js_path(body, "checkpoint.partial"), 0);

	assert_non_null(partial);
	assert_string_equal(js_str(partial, "name"), name);
	assert_has(js_str(partial, "why"), why);
}

/* Nothing says that more files were to come, but the command was killed in the midst of saving. */
static void a_save_that_was_cut_between_two_files_is_not_marked(void **state)
{
	static const char *const ends[] = { "kill -9 $$", "exit 0" };

	for (size_t i = 0; i < STK_LENGTH(ends); i++) {
		AUTO(auto_free)
		char *script = mem_format("d=$STOKER_CHECKPOINT_DIR/step-3%zu; mkdir -p $d; "
					  "printf hello > $d/state.bin; %s",
					  i, ends[i]);
		AUTO(auto_free) char *name = mem_format("step-3%zu", i);
		json_t *order = order_with_checkpoints(*state, script, NULL);

		js_put(order, "attempt", json_integer((json_int_t)i + 1));
		run(*state, order);
		assert_int_equal(is_marked(*state, name), i == 1);
		if (i == 0)
			assert_partial_reported(*state, name, "nothing shows");
	}
}

static void a_partial_checkpoint_is_named_and_not_marked(void **state)
{
	run(*state, order_with_checkpoints(*state,
					   SAVE "save 10; save 20; "
						"rm $STOKER_CHECKPOINT_DIR/step-20/state.bin; "
						"exit 1",
					   NULL));
	assert_true(is_marked(*state, "step-10"));
	assert_false(is_marked(*state, "step-20"));
	assert_partial_reported(*state, "step-20", "state");
}

static void in_precompile_nothing_is_marked(void **state)
{
	struct place *place = *state;
	json_t *order = order_with_checkpoints(place, SAVE "save 10", NULL);
	AUTO(auto_free)
	char *command = mem_format("find %s -name '*" MARK_SUFFIX "' | grep -q .", place->root);

	js_put(order, "scratch", json_true());
	assert_int_equal(run(place, order), 0);
	assert_int_not_equal(system(command), 0);
	/* An empty root gets no mark either. */
	order = order_with_checkpoints(place, SAVE "save 10", "");
	js_put(order, "attempt", json_integer(2));
	assert_int_equal(run(place, order), 0);
	assert_int_not_equal(system(command), 0);
}

static void checkpoints_are_copied_to_the_root_and_marked_there(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *root = place_path(place, "far/attempt-1");
	AUTO(auto_free) char *mark = place_path(place, "far/attempt-1/step-10" MARK_SUFFIX);
	AUTO(auto_free) char *copy = place_path(place, "far/attempt-1/step-20/state.bin");
	AUTO(auto_free)
	char *script = mem_format(SAVE UNTIL "save 10; until_there %s; save 20", mark);
	AUTO(auto_free) char *text = NULL;
	json_auto_t *body = NULL;

	assert_int_equal(run(place, order_with_checkpoints(place, script, root)), 0);
	text = read_file(copy, NULL);
	assert_string_equal(text, "hello");
	assert_false(is_marked(place, "step-10"));
	assert_false(is_marked(place, "step-20"));
	body = report(place);
	assert_has(json_string_value(js_path(body, "checkpoint.url")), "far/attempt-1/step-20");
}

static void a_command_whose_checkpoints_cannot_be_brought_has_not_ended_well(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *file = place_path(place, "far");
	AUTO(auto_free) char *root = place_path(place, "far/attempt-1");
	AUTO(auto_free) char *saved = place_path(place, PREFIX "checkpoints/step-10/state.bin");
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *body = NULL;
	const json_t *error;

	must(fs_write_atomic(file, "x", 1, 0600, &err), &err);
	run(place, order_with_checkpoints(place, SAVE "save 10", root));
	body = report(place);
	assert_state(body, "failed", AGENT_EXIT_FAILED);
	error = json_object_get(body, "error");
	assert_string_equal(js_str(error, "class"), "user-config");
	assert_has(js_str(error, "message"), "step-10");
	assert_true(fs_exists(saved));
}

static void a_drained_command_that_ended_well_is_not_done_without_what_it_saved(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *drain = place_path(place, PREFIX DRAIN_FILE);
	AUTO(auto_free) char *file = place_path(place, "far");
	AUTO(auto_free) char *root = place_path(place, "far/attempt-1");
	AUTO(auto_free)
	char *script = mem_format(SAVE "trap '' USR1; save 10; echo {} > %s", drain);
	json_auto_t *body = NULL;
	const json_t *error;

	write_file(file, "x", 0600);
	run(place, order_with_checkpoints(place, script, root));
	body = report(place);
	assert_state(body, "failed", AGENT_EXIT_FAILED);
	assert_string_equal(js_str(body, "stopped"), "drain");
	error = json_object_get(body, "error");
	assert_has(js_str(error, "message"), "step-10");
}

static void only_as_many_are_kept_as_asked_for(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *root = place_path(place, "far");
	AUTO(auto_free)
	char *script = mem_format(SAVE UNTIL "for i in 1 2 3 4; do save $i; "
					     "until_there %s/step-$i" MARK_SUFFIX "; done",
				  root);
	json_t *order = order_with_checkpoints(place, script, root);

	js_put(json_object_get(order, "checkpoint"), "keep", json_integer(2));
	assert_int_equal(run(place, order), 0);
	for (int i = 1; i <= 4; i++) {
		AUTO(auto_free) char *copy = mem_format("%s/step-%d", root, i);
		AUTO(auto_free)
		char *own = mem_format("%s/" PREFIX "checkpoints/step-%d", place->root, i);

		assert_int_equal(fs_exists(copy), i > 2);
		assert_int_equal(fs_exists(own), i > 2);
	}
}

static void the_resumed_checkpoint_is_found_and_never_marked_as_new(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *old = place_path(place, "old/step-40");
	AUTO(auto_free) char *saved = place_path(place, "old/step-40/state.bin");
	json_t *order = order_with_checkpoints(
		place,
		SAVE "newest=$(ls -d $STOKER_CHECKPOINT_DIR/step-* | tail -1); "
		     "[ $(cat $newest/state.bin) = old ] || exit 5; "
		     "[ $STOKER_RESUME_FROM/state.bin -ef $newest/state.bin ] || exit 6; "
		     "save 50",
		NULL);

	write_file(saved, "old", 0600);
	js_put_str(order, "resume_from", old);
	assert_int_equal(run(place, order), 0);
	assert_false(is_marked(place, "step-40"));
	assert_true(is_marked(place, "step-50"));
	/* A fresh start knows of none. */
	order = order_with_checkpoints(place, "[ -z \"${STOKER_RESUME_FROM+x}\" ]", NULL);
	js_put(order, "attempt", json_integer(2));
	assert_int_equal(run(place, order), 0);
}

/* A checkpoint that no attempt would resume from is told while there is time to mend the script: it
 * goes on until the report says so. */
static void what_no_attempt_resumes_from_is_told_while_the_command_goes_on(void **state)
{
	static const struct {
		const char *kind, *name, *why, *hint;
		int64_t step;
	} rows[] = {
		{ "files", "final", "the name has no step, by which the newest is found",
		  "save each checkpoint under its own name with the step in it", -1 },
		{ "hf", "step-10", "the name does not fit checkpoint.kind 'hf'",
		  "set checkpoint.kind: auto", -1 },
		{ "files", "step-10", "the step is not above 40, from which this attempt resumed",
		  "load STOKER_RESUME_FROM", 10 },
	};
	AUTO(auto_free) char *old = place_path(*state, "old/step-40");
	AUTO(auto_free) char *saved = place_path(*state, "old/step-40/state.bin");

	write_file(saved, "old", 0600);
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		const struct place *place = *state;
		AUTO(auto_free)
		char *script =
			mem_format("d=$STOKER_CHECKPOINT_DIR/%s; rm -rf $STOKER_CHECKPOINT_DIR/*; "
				   "mkdir $d; printf hello > $d/state.bin; "
				   "until grep -q '\"passed\"' %s/" PREFIX "node-0/" REPORT_FILE
				   "; do sleep 0.02; done",
				   rows[i].name, place->root);
		json_t *order = order_with_checkpoints(place, script, NULL);
		json_auto_t *body = NULL;
		const json_t *row;

		js_put(order, "attempt", json_integer((json_int_t)i + 1));
		js_put_str(json_object_get(order, "checkpoint"), "kind", rows[i].kind);
		if (rows[i].step >= 0) {
			js_put_str(order, "resume_from", old);
			js_put(order, "resume_step", json_integer(40));
		}
		run(place, order);
		body = report(place);
		row = json_array_get(js_path(body, "checkpoint.passed"), 0);
		assert_string_equal(js_str(row, "name"), rows[i].name);
		assert_has(js_str(row, "why"), rows[i].why);
		assert_has(js_str(row, "hint"), rows[i].hint);
		assert_int_equal(js_int(row, "step", -1), rows[i].step);
	}
}

/* The same order as attempt 2, which supersedes. */
static pid_t start_second(const struct place *place, const char *script)
{
	json_t *order = order_with_checkpoints(place, script, NULL);
	AUTO(auto_free) char *checkpoints = place_path(place, SECOND_PREFIX "checkpoints");

	js_put(order, "attempt", json_integer(2));
	js_put_str(order, "job", "stk-r1-train-2");
	js_put_str(order, "nonce", "n2");
	js_put_str(order, "prefix", SECOND_PREFIX);
	js_put_str(order, "checkpoint_dir", checkpoints);
	js_put_str(json_object_get(order, "checkpoint"), "root", checkpoints);
	order_write(place, order);
	return start(place, SECOND_PREFIX, 0, plain_env, NULL);
}

static void a_superseded_agent_stops_and_its_late_checkpoint_is_refused(void **state)
{
	struct place *place = *state;
	/* The script saves once more when it is told to stop, and is given the time for it. */
	static const char *const script =
		SAVE "trap told=1 TERM; save 10; until [ \"$told\" ]; do sleep 0.02; done; save 20";
	AUTO(auto_free) char *late = place_path(place, PREFIX "checkpoints/step-20/state.bin");
	json_t *order = order_with_checkpoints(place, script, NULL);
	pid_t first, other;
	json_auto_t *body = NULL;

	js_put(order, "grace_ms", json_integer(20000));
	order_write(place, order);
	first = start(place, PREFIX, 0, plain_env, NULL);
	for (int i = 0; i < LOOKS && !is_marked(place, "step-10"); i++)
		pause_ms(10);
	assert_true(is_marked(place, "step-10"));
	other = start_second(place, SAVE "save 7; exit 0");
	assert_int_equal(end_of(first), AGENT_EXIT_NOT_MINE);
	assert_int_equal(end_of(other), 0);
	body = report(place);
	assert_state(body, "not_mine", AGENT_EXIT_NOT_MINE);
	assert_true(fs_exists(late));
	assert_false(is_marked(place, "step-20"));
	assert_int_equal(js_int(json_object_get(body, "checkpoint"), "step", 0), 10);
	assert_int_equal(processes_with(place->root), 0);
}

static void a_killed_agent_takes_its_checkpointer_along(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *folder = place_path(place, PREFIX);
	AUTO(auto_free) char *order = fs_join(folder, ORDER_FILE);
	pid_t agent;
	json_auto_t *body = NULL;

	order_write(place, order_with_checkpoints(place, "exec sleep 1000", NULL));
	agent = start(place, PREFIX, 0, plain_env, NULL);
	assert_true(wait_for_state(place, PREFIX, 0, "running"));
	/* The agent and its helpers have the same arguments. */
	for (int i = 0; i < LOOKS && processes_with(order) < 3; i++)
		pause_ms(10);
	assert_int_equal(processes_with(order), 3);
	kill(agent, SIGKILL);
	end_of(agent);
	for (int i = 0; i < LOOKS && processes_with(order) > 0; i++)
		pause_ms(10);
	assert_int_equal(processes_with(order), 0);
	body = report(place);
	kill((pid_t)js_int(json_object_get(body, "command"), "pid", 0), SIGKILL);
}

static void a_checkpointer_that_dies_is_replaced(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *go = place_path(place, "go");
	AUTO(auto_free)
	char *script = mem_format(SAVE UNTIL "until_there %s; save 10; until_there "
					     "$STOKER_CHECKPOINT_DIR/step-10" MARK_SUFFIX,
				  go);
	pid_t agent, checkpointer;

	order_write(place, order_with_checkpoints(place, script, NULL));
	agent = start(place, PREFIX, 0, plain_env, NULL);
	/* The command, too, looks like the agent for a moment before it runs. */
	assert_true(wait_for_state(place, PREFIX, 0, "running"));
	checkpointer = checkpointer_of(agent);
	kill(checkpointer, SIGKILL);
	write_file(go, "", 0600);
	assert_int_equal(end_of(agent), 0);
}

/* The agent orders a drain, as far as there is somebody to do it. */
static void a_checkpointer_is_told_to_drain_until_its_last_pass(void **state)
{
	struct checkpointer checkpointer = { .helper = { .news_fd = -1, .orders_fd = -1 } };

	(void)state;
	orders_init(&checkpointer.orders, NULL);
	checkpointer_drain(&checkpointer);
	checkpointer_finish(&checkpointer, false);
	assert_int_equal(checkpointer.orders.queue.len, 0); /* none runs */
	assert_false(checkpointer.last_pass);
	checkpointer.helper.pid = getpid();
	checkpointer_drain(&checkpointer);
	assert_string_equal(checkpointer.orders.queue.text, "{\"order\":\"drain\"}\n");
	checkpointer_finish(&checkpointer, true);
	checkpointer_finish(&checkpointer, false);
	checkpointer_drain(&checkpointer);
	assert_string_equal(checkpointer.orders.queue.text,
			    "{\"order\":\"drain\"}\n{\"order\":\"last\",\"cut\":true}\n");
	orders_release(&checkpointer.orders);
}

static void leftovers_are_found_and_killed_beside_a_checkpointer(void **state)
{
	struct place *place = *state;
	AUTO(auto_free)
	char *script = mem_format(SAVE "(setsid sh -c 'sleep 1000; : %s' &); save 10; exit 4",
				  place->root);
	json_auto_t *body = NULL;

	assert_int_equal(run(place, order_with_checkpoints(place, script, NULL)), 4);
	body = report(place);
	assert_true(js_int(body, "leftovers", 0) >= 1);
	assert_true(is_marked(place, "step-10"));
	assert_int_equal(processes_with(place->root), 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_checkpoint_is_marked_while_the_command_goes_on),
		T(what_a_benchmark_saves_is_marked_when_the_command_is_over),
		T(what_a_drained_benchmark_saves_is_marked_at_once),
		T(what_is_saved_last_is_marked_when_the_command_is_over),
		T(a_save_that_was_cut_between_two_files_is_not_marked),
		T(a_partial_checkpoint_is_named_and_not_marked),
		T(in_precompile_nothing_is_marked),
		T(checkpoints_are_copied_to_the_root_and_marked_there),
		T(a_command_whose_checkpoints_cannot_be_brought_has_not_ended_well),
		T(a_drained_command_that_ended_well_is_not_done_without_what_it_saved),
		T(only_as_many_are_kept_as_asked_for),
		T(the_resumed_checkpoint_is_found_and_never_marked_as_new),
		T(what_no_attempt_resumes_from_is_told_while_the_command_goes_on),
		T(a_superseded_agent_stops_and_its_late_checkpoint_is_refused),
		T(a_killed_agent_takes_its_checkpointer_along),
		T(a_checkpointer_that_dies_is_replaced),
		T(a_checkpointer_is_told_to_drain_until_its_last_pass),
		T(leftovers_are_found_and_killed_beside_a_checkpointer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
