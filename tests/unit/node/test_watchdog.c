/* The real stoker-node watches real commands: hangs are stopped, long silences that
 * have a reason are not, and a drain waits for what it asked for. */
#include "tests/unit/node/agent_run.h"

#include "jobs/cache/manifest/compile_manifest.h"

/* Limits of the silence between steps: one that is to be exceeded, and one that is not, longer than
 * a busy machine keeps a script from its next line. */
#define LIMIT_MS 1500
#define LONG_MS  6000
#define HOUR_MS  (60 * 60 * 1000)

#define MISS                                                                                       \
	"echo \"PERSISTENT COMPILATION CACHE MISS for 'jit_f' with key "                           \
	"'jit_f-0123456789012345678901234567890123456789012345678901234567890123'\"; "
#define STEPS "steps() { i=$1; while [ $i -le $2 ]; do echo \"step: $i\"; i=$((i + 1)); done; }; "
#define SAVE                                                                                       \
	"save() { d=$STOKER_CHECKPOINT_DIR/step-$1; mkdir -p $d; printf hello > $d/state.bin; "    \
	"printf '{\"state_bytes\":5}' > $d/meta.json; }; "

static json_t *watched_order(const struct place *place, const char *script)
{
	json_t *order = order_for(place, script);
	AUTO(auto_free) char *checkpoints = place_path(place, PREFIX "checkpoints");

	js_put_str(order, "checkpoint_dir", checkpoints);
	js_put(order, "checkpoint",
	       json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "kind", "files", "root", checkpoints,
			 "sync", "agent", "keep", "all", "signal", "USR1", "grace_ms", 15000));
	js_put(order, "stall", json_pack("{s:s, s:i}", "mode", "fixed", "limit_ms", LIMIT_MS));
	js_put(order, "metrics",
	       json_pack("[{s:s, s:s}, {s:s, s:s}]", "name", "loss", "regex", "loss: ([0-9.]+)",
			 "name", "step", "regex", "step: ([0-9]+)"));
	js_put(order, "compile", json_pack("{s:s}", "kind", "jax"));
	return order;
}

/* The order with another limit of silence. */
static json_t *within(json_t *order, int64_t limit_ms)
{
	js_put(json_object_get(order, "stall"), "limit_ms", json_integer(limit_ms));
	return order;
}

/* ---- stalls ---- */

static void assert_stalled(const json_t *body, const char *doing)
{
	const json_t *stall = json_object_get(body, "stall");

	assert_state(body, "ended", 128 + SIGTERM);
	assert_string_equal(js_str(body, "stopped"), "stall");
	assert_string_equal(js_str(stall, "doing"), doing);
	assert_int_equal(js_int(stall, "limit_ms", 0), LIMIT_MS);
	assert_in_range(js_int(stall, "silent_ms", 0), LIMIT_MS, LIMIT_MS + 60000);
	assert_true(js_int(stall, "since", 0) <= js_int(body, "ended", 0) - LIMIT_MS);
}

static void a_hang_after_step_50_is_stopped_within_its_limit(void **state)
{
	json_auto_t *body = NULL;

	run(*state, watched_order(*state, STEPS "steps 1 50; exec sleep 1000"));
	body = report(*state);
	assert_stalled(body, "step");
	assert_int_equal(js_int(body, "first_step", 0), 1);
	assert_int_equal(js_int(body, "last_step", 0), 50);
}

static void output_without_a_larger_step_is_no_progress(void **state)
{
	json_auto_t *body = NULL;

	run(*state,
	    watched_order(*state, STEPS "steps 1 50; while :; do echo step: 50; echo step: 7; "
					"echo waiting for peers; sleep 0.05; done"));
	body = report(*state);
	assert_stalled(body, "step");
}

static void assert_left_alone_within(struct place *place, int64_t limit_ms, const char *script)
{
	json_auto_t *body = NULL;

	assert_int_equal(run(place, within(watched_order(place, script), limit_ms)), 0);
	body = report(place);
	assert_state(body, "ended", 0);
	assert_null(json_object_get(body, "stopped"));
}

/* Checks that a healthy script that does this for longer than the limit is left alone. */
static void assert_left_alone(struct place *place, const char *script)
{
	assert_left_alone_within(place, LIMIT_MS, script);
}

static void a_long_start_is_no_stall(void **state)
{
	assert_left_alone(*state, STEPS "sleep 2; echo loading; sleep 2; steps 1 5");
}

static void a_long_compilation_is_no_stall(void **state)
{
	assert_left_alone(*state, STEPS MISS "sleep 2; steps 1 50; " MISS "sleep 3; steps 51 60");
}

static void a_long_save_is_no_stall(void **state)
{
	assert_left_alone(*state, STEPS "steps 1 50; d=$STOKER_CHECKPOINT_DIR/step-50; mkdir $d; "
					"printf x > $d/state.npz; sleep 2.5; "
					"i=0; while [ $i -lt 8 ]; do printf xx >> $d/state.npz; "
					"i=$((i + 1)); sleep 0.2; done; rm -r $d; steps 51 60");
}

/* A command that is silent after step 50 and until the test says `go` writes there meanwhile. */
static json_t *silent_order(const struct place *place, const char *where)
{
	AUTO(auto_free) char *cache = place_path(place, "cache");
	AUTO(auto_free)
	char *script = mem_format(STEPS "mkdir -p %s/sub %s/%s; steps 1 50; until [ -e %s/go ]; do "
					"echo x >> %s/%s; sleep 0.02; done; steps 51 60",
				  cache, cache, LOCK_FOLDER, place->root, cache, where);
	json_t *order = watched_order(place, script);

	js_put_str(json_object_get(order, "compile"), "cache", cache);
	return order;
}

/* Returns when the silence began that the report tells of; 0: it tells of none. */
static int64_t silent_since(const struct place *place)
{
	json_auto_t *body = report_of(place, PREFIX, 0);

	return js_int(json_object_get(body, "silence"), "since", 0);
}

static void a_cache_that_grows_is_a_sign_of_life(void **state)
{
	const struct place *place = *state;
	AUTO(auto_free) char *go = place_path(place, "go");
	json_auto_t *body = NULL;
	int64_t first = 0;
	pid_t pid;

	order_write(place, within(silent_order(place, "sub/entry"), LONG_MS));
	pid = start(place, PREFIX, 0, plain_env, NULL);
	for (int i = 0; i < LOOKS && !(first = silent_since(place)); i++)
		pause_ms(10);
	assert_true(first > 0);
	/* The silence is over, and another one has begun, without a line. */
	for (int i = 0; i < LOOKS && silent_since(place) < first + LONG_MS / 2; i++)
		pause_ms(10);
	assert_true(silent_since(place) >= first + LONG_MS / 2);
	write_file(go, "", 0600);
	assert_int_equal(end_of(pid), 0);
	body = report(place);
	assert_state(body, "ended", 0);
	assert_null(json_object_get(body, "stopped"));
}

static void locks_in_a_cache_are_no_sign_of_life(void **state)
{
	json_auto_t *body = NULL;

	run(*state, silent_order(*state, LOCK_FOLDER "/lock"));
	body = report(*state);
	assert_stalled(body, "step");
}

static void a_progress_bar_is_no_false_alarm(void **state)
{
	assert_left_alone_within(*state, LONG_MS,
				 STEPS "steps 1 50; i=0; while [ $i -lt 70 ]; do "
				       "printf '\\rEvaluating %d of 70' $i; i=$((i + 1)); "
				       "sleep 0.1; done; echo; steps 51 60");
}

static void steps_are_found_in_progress_bars(void **state)
{
	json_auto_t *body = NULL;

	assert_left_alone_within(
		*state, LONG_MS,
		"i=1; while [ $i -le 70 ]; do printf '\\r[#####] step: %d/70 ' $i; "
		"i=$((i + 1)); sleep 0.1; done; echo");
	body = report(*state);
	assert_int_equal(js_int(body, "last_step", 0), 70);
}

static void a_hang_after_a_whole_checkpoint_is_a_hang_between_steps(void **state)
{
	json_auto_t *body = NULL;

	run(*state, watched_order(*state, STEPS SAVE "steps 1 50; save 50; exec sleep 1000"));
	body = report(*state);
	assert_stalled(body, "step");
	assert_int_equal(js_int(json_object_get(body, "checkpoint"), "step", 0), 50);
}

static void without_a_limit_nothing_is_a_stall(void **state)
{
	json_t *order = watched_order(*state, STEPS "steps 1 50; sleep 2.5");

	js_put(order, "stall", json_pack("{s:s}", "mode", "off"));
	assert_int_equal(run(*state, order), 0);
}

static void a_trial_run_may_compile_on_after_its_steps(void **state)
{
	json_t *order = watched_order(*state, STEPS "steps 1 10; sleep 2.5");

	js_put(order, "scratch", json_true());
	assert_int_equal(run(*state, order), 0);
}

static void a_metric_that_is_no_pattern_is_said(void **state)
{
	json_t *order = watched_order(*state, "exit 0");
	json_auto_t *body = NULL;

	js_put(order, "metrics", json_pack("[{s:s, s:s}]", "name", "step", "regex", "step: ("));
	assert_int_equal(run(*state, order), AGENT_EXIT_FAILED);
	body = report(*state);
	assert_has(json_string_value(js_path(body, "error.message")), "the metric 'step'");
}

/* Two agents of one order. */
static void run_two(const struct place *place, json_t *order, int ends[2])
{
	pid_t pids[2];

	js_put(order, "nodes", json_integer(2));
	order_write(place, order);
	for (int i = 0; i < 2; i++)
		pids[i] = start(place, PREFIX, i, plain_env, NULL);
	for (int i = 0; i < 2; i++)
		ends[i] = end_of(pids[i]);
}

static void steps_may_be_told_by_any_node_and_a_stall_takes_all_down(void **state)
{
	json_auto_t *first = NULL, *second = NULL;
	AUTO(auto_free) char *failed = place_path(*state, PREFIX FAILED_FILE);
	int ends[2];

	run_two(*state,
		within(watched_order(*state,
				     "echo hello; [ $STOKER_NODE_RANK = 0 ] && exec sleep 1000; "
				     "i=0; while [ $i -lt 70 ]; do echo step: $i; i=$((i + 1)); "
				     "sleep 0.1; done; exec sleep 1000"),
		       LONG_MS),
		ends);
	first = report_of(*state, PREFIX, 0);
	second = report_of(*state, PREFIX, 1);
	assert_string_equal(js_str(first, "stopped"), "stall");
	assert_string_equal(js_str(second, "stopped"), "peer");
	assert_int_equal(js_int(second, "last_step", 0), 69);
	assert_true(fs_exists(failed));
}

/* ---- drains ---- */

static void ask_to_drain(const struct place *place)
{
	AUTO(auto_free) char *path = place_path(place, PREFIX DRAIN_FILE);

	write_file(path, "{\"v\":1,\"reason\":\"limits.deadline\",\"at\":1}", 0600);
}

static bool flag(const json_t *body, const char *member)
{
	return json_is_true(js_path(body, member));
}

/* Start it, wait until it made the file `ready`, ask, and see how it ends. */
static json_t *drained(struct place *place, json_t *order, int *ret_exit)
{
	AUTO(auto_free) char *ready = place_path(place, "ready");
	pid_t pid;

	order_write(place, order);
	pid = start(place, PREFIX, 0, plain_env, NULL);
	assert_true(wait_for_file(ready));
	ask_to_drain(place);
	*ret_exit = end_of(pid);
	return report(place);
}

static json_t *drain_order(struct place *place, const char *script)
{
	AUTO(auto_free) char *whole = mem_format("READY=%s/ready; %s", place->root, script);

	/* However slowly it is drained, that is what ends it. */
	return within(watched_order(place, whole), HOUR_MS);
}

static void a_drain_asks_for_a_checkpoint_waits_for_it_and_stops(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *inner = place_path(place, "inner.sh");
	/* The shell around it would die of the signal. */
	AUTO(auto_free) char *outer = mem_format("sh %s $READY; exit 9", inner);
	json_auto_t *body = NULL;
	int end;

	/* The checkpoint that was saved before is not what was asked for. */
	write_file(inner,
		   SAVE "trap 'sleep 0.4; save 15' USR1; echo step: 12; save 10; touch $1; "
			"while :; do sleep 0.05; done",
		   0600);
	body = drained(place, drain_order(place, outer), &end);
	assert_string_equal(js_str(body, "stopped"), "drain");
	assert_true(flag(body, "drain.signalled"));
	assert_true(flag(body, "drain.marked"));
	assert_int_equal(js_int(json_object_get(body, "checkpoint"), "step", 0), 15);
	assert_int_equal(end, 128 + SIGTERM);
}

static void a_command_that_does_not_know_the_signal_is_stopped_and_not_waited_for(void **state)
{
	json_t *order = drain_order(*state, "touch $READY; while :; do sleep 0.05; done");
	json_auto_t *body = NULL;
	int end;

	js_put(json_object_get(order, "checkpoint"), "grace_ms", json_integer(3600000));
	body = drained(*state, order, &end);
	assert_int_equal(end, 128 + SIGTERM);
	assert_string_equal(js_str(body, "stopped"), "drain");
	assert_false(flag(body, "drain.signalled"));
	assert_false(flag(body, "drain.marked"));
}

static void a_command_that_saves_and_leaves_was_drained(void **state)
{
	int end;
	json_auto_t *body =
		drained(*state,
			drain_order(*state, SAVE "trap 'save 5; exit 0' USR1; touch $READY; "
						 "while :; do sleep 0.05; done"),
			&end);

	assert_int_equal(end, 0);
	assert_state(body, "ended", 0);
	assert_string_equal(js_str(body, "stopped"), "drain");
	assert_true(flag(body, "drain.marked"));
	assert_int_equal(js_int(json_object_get(body, "checkpoint"), "step", 0), 5);
}

static void without_a_signal_the_next_checkpoint_is_waited_for(void **state)
{
	json_t *order = drain_order(*state, SAVE "trap 'touch $READY.usr1' USR1; touch $READY; "
						 "sleep 0.5; save 5; while :; do sleep 0.05; done");
	AUTO(auto_free) char *usr1 = place_path(*state, "ready.usr1");
	json_auto_t *body = NULL;
	int end;

	js_put_str(json_object_get(order, "checkpoint"), "signal", "none");
	body = drained(*state, order, &end);
	assert_false(flag(body, "drain.signalled"));
	assert_true(flag(body, "drain.marked"));
	assert_false(fs_exists(usr1));
}

static void a_drained_precompile_stops_at_once(void **state)
{
	json_t *order = drain_order(*state, "touch $READY; while :; do sleep 0.05; done");
	json_auto_t *body = NULL;
	int end;

	js_put(order, "scratch", json_true());
	body = drained(*state, order, &end);
	assert_int_equal(end, 128 + SIGTERM);
	assert_string_equal(js_str(body, "stopped"), "drain");
}

static void all_nodes_of_a_drained_attempt_stop_and_none_has_failed(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *failed = place_path(place, PREFIX FAILED_FILE);
	AUTO(auto_free) char *go = place_path(place, "ready");
	/* The other rank does not live on without its peer. */
	json_t *order =
		drain_order(place, SAVE "if [ $STOKER_NODE_RANK = 0 ]; then "
					"trap 'save 5; touch $READY.gone; exit 3' USR1; "
					"touch $READY; while :; do sleep 0.05; done; fi; "
					"until [ -e $READY.gone ]; do sleep 0.01; done; exit 1");
	pid_t pids[2];

	js_put(order, "nodes", json_integer(2));
	order_write(place, order);
	for (int i = 0; i < 2; i++)
		pids[i] = start(place, PREFIX, i, plain_env, NULL);
	assert_true(wait_for_file(go));
	ask_to_drain(place);
	for (int i = 0; i < 2; i++) {
		json_auto_t *body = NULL;

		end_of(pids[i]);
		body = report_of(place, PREFIX, i);
		assert_string_equal(js_str(body, "stopped"), "drain");
		assert_int_equal(flag(body, "drain.marked"), i == 0);
	}
	assert_false(fs_exists(failed));
}

#define T(test) cmocka_unit_test_setup_teardown(test, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_hang_after_step_50_is_stopped_within_its_limit),
		T(output_without_a_larger_step_is_no_progress),
		T(a_long_start_is_no_stall),
		T(a_long_compilation_is_no_stall),
		T(a_long_save_is_no_stall),
		T(a_cache_that_grows_is_a_sign_of_life),
		T(locks_in_a_cache_are_no_sign_of_life),
		T(a_progress_bar_is_no_false_alarm),
		T(steps_are_found_in_progress_bars),
		T(a_hang_after_a_whole_checkpoint_is_a_hang_between_steps),
		T(without_a_limit_nothing_is_a_stall),
		T(a_trial_run_may_compile_on_after_its_steps),
		T(a_metric_that_is_no_pattern_is_said),
		T(steps_may_be_told_by_any_node_and_a_stall_takes_all_down),
		T(a_drain_asks_for_a_checkpoint_waits_for_it_and_stops),
		T(a_command_that_does_not_know_the_signal_is_stopped_and_not_waited_for),
		T(a_command_that_saves_and_leaves_was_drained),
		T(without_a_signal_the_next_checkpoint_is_waited_for),
		T(a_drained_precompile_stops_at_once),
		T(all_nodes_of_a_drained_attempt_stop_and_none_has_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
