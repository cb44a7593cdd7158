/* Attempts of several nodes live and die as a whole, the first to fail is named, and
 * an attempt that the engine has lost sight of cannot harm the one after it. */
#include "tests/unit/engine/bench.h"

#define SECOND_PREFIX "runs/r1/train-2/"
#define SAVE                                                                                       \
	"save() { d=$STOKER_CHECKPOINT_DIR/step-$1; mkdir -p $d; printf hello > $d/state.bin; "    \
	"printf '{\"state_bytes\":5}' > $d/meta.json; }; "

/* Within so long a dead rank takes the others down: a beat, the grace, some load. */
#define SOON_MS 60000

/* ---- ranks ---- */

static char *word_of(struct bench *bench, const char *name, int node)
{
	AUTO(auto_free) char *file = mem_format("%s-%d", name, node);
	AUTO(auto_free) char *path = place_path(bench->place, file);
	char *text = read_file(path, NULL);

	assert_non_null(text);
	return text;
}

static void every_node_knows_its_rank_and_the_same_master(void **state)
{
	struct bench *bench = *state;
	AUTO(auto_free)
	char *script =
		mem_format("cd %s; r=$STOKER_NODE_RANK; "
			   "echo $STOKER_NODES $PET_NNODES $((PET_NODE_RANK - r)) > nodes-$r; "
			   "echo $MASTER_ADDR:$MASTER_PORT $PET_MASTER_ADDR:$PET_MASTER_PORT "
			   "$STOKER_MASTER_ADDR:$STOKER_MASTER_PORT > master-$r",
			   bench->place->root);
	AUTO(auto_free) char *first = NULL;

	write_order(bench, script, 3);
	assert_int_equal(submit(bench, 3), 0);
	assert_int_equal(wait_for(bench, ENGINE_ENDED).exit, 0);
	first = word_of(bench, "master", 0);
	for (int i = 0; i < 3; i++) {
		AUTO(auto_free) char *nodes = word_of(bench, "nodes", i);
		AUTO(auto_free) char *master = word_of(bench, "master", i);

		assert_string_equal(nodes, "3 3 0\n");
		assert_string_equal(master, first);
	}
}

/* ---- gangs ---- */

static void start_gang(struct bench *bench, const char *script, int nodes)
{
	write_order(bench, script, nodes);
	assert_int_equal(submit(bench, nodes), 0);
	for (int i = 0; i < nodes; i++)
		assert_true(wait_for_state(bench->place, PREFIX, i, "running"));
}

static void a_killed_rank_takes_the_attempt_down_within_seconds(void **state)
{
	struct engine_status status;
	int64_t began;

	start_gang(*state, "sleep 1000", 2);
	began = clock_mono_now().ms;
	assert_int_equal(kill(report_pid(*state, 1, "command"), SIGKILL), 0);
	status = wait_for(*state, ENGINE_ENDED);
	assert_true(clock_mono_now().ms - began < SOON_MS);
	assert_true(status.exit_known);
	assert_int_equal(status.exit, 128 + SIGKILL);
	assert_int_equal(status.node, 1);
}

static void the_first_to_fail_is_named_and_not_those_that_fail_of_it(void **state)
{
	struct bench *bench = *state;
	AUTO(auto_free) char *path = place_path(bench->place, PREFIX FAILED_FILE);
	/* The others fail when the first has been named, however late a node starts. */
	AUTO(auto_free)
	char *script = mem_format("if [ $STOKER_NODE_RANK = 2 ]; then exit 7; fi; "
				  "until [ -e %s ]; do sleep 0.01; done; "
				  "echo connection closed by peer; exit 1",
				  path);
	struct engine_status status;
	json_auto_t *failed = NULL;
	AUTO(err_freep) struct err *err = NULL;

	write_order(bench, script, 3);
	assert_int_equal(submit(bench, 3), 0);
	status = wait_for(bench, ENGINE_ENDED);
	assert_int_equal(status.exit, 7);
	assert_int_equal(status.node, 2);
	must(js_load(path, 4096, &failed, &err), &err);
	assert_int_equal(js_int(failed, "node", -1), 2);
}

/* Kill these of every node at the same moment. */
static void kill_all(struct bench *bench, int nodes, const char *const *whom, size_t count)
{
	pid_t pids[16];
	int n = 0;

	for (int i = 0; i < nodes; i++)
		for (size_t k = 0; k < count; k++)
			pids[n++] = report_pid(bench, i, whom[k]);
	for (int i = 0; i < n; i++)
		kill(pids[i], SIGKILL);
}

static void all_agents_killed_at_once_leave_nothing_behind(void **state)
{
	static const char *const agents[] = { "agent" }, *const all[] = { "agent", "command" };

	for (int i = 0; i < 2; i++) {
		struct bench *bench = *state;
		AUTO(auto_free) char *runs = place_path(bench->place, "runs");
		AUTO(err_freep) struct err *err = NULL;
		struct engine_status status;

		must(fs_remove_tree(runs, &err), &err);
		start_gang(bench, "(setsid sleep 1000 &); sleep 1000", 2);
		kill_all(bench, 2, i == 0 ? agents : all, i == 0 ? 1 : 2);
		status = wait_for(bench, ENGINE_ENDED);
		assert_false(status.exit_known);
		assert_non_null(strstr(status.reason, "died without a report (signal 9)"));
		assert_int_equal(processes_with(bench->place->root), 0);
	}
}

/* ---- checkpoints and drains ---- */

static json_t *saving_order(struct bench *bench, const char *prefix, const char *script)
{
	AUTO(auto_free) char *whole = mem_format("%s; exit $?; : %s", script, bench->place->root);
	AUTO(auto_free)
	char *checkpoints = mem_format("%s/%scheckpoints", bench->place->root, prefix);
	json_t *order = order_for(bench->place, whole);

	js_put_str(order, "prefix", prefix);
	js_put_str(order, "checkpoint_dir", checkpoints);
	js_put(order, "checkpoint",
	       json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "kind", "files", "root", checkpoints,
			 "sync", "agent", "keep", "all", "signal", "USR1", "grace_ms", 15000));
	return order;
}

static void what_ends_while_it_is_drained_does_not_stop_those_that_still_save(void **state)
{
	struct bench *bench = *state;
	AUTO(auto_free) char *ready = place_path(bench->place, "ready");
	AUTO(auto_free) char *drain = place_path(bench->place, PREFIX DRAIN_FILE);
	AUTO(auto_free)
	char *script = mem_format(SAVE "if [ $STOKER_NODE_RANK = 1 ]; then trap 'exit 1' USR1; "
				       "else trap 'sleep 1; save 5' USR1; fi; "
				       "touch %s-$STOKER_NODE_RANK; while :; do sleep 0.05; done",
				  ready);
	json_t *order = saving_order(bench, PREFIX, script);
	json_auto_t *first = NULL, *second = NULL;

	js_put(order, "nodes", json_integer(2));
	order_write(bench->place, order);
	assert_int_equal(submit(bench, 2), 0);
	for (int i = 0; i < 2; i++) {
		AUTO(auto_free) char *file = mem_format("%s-%d", ready, i);

		assert_true(wait_for_file(file));
	}
	write_file(drain, "{\"v\":1}", 0600);
	wait_for(bench, ENGINE_ENDED);
	first = report_of(bench->place, PREFIX, 0);
	second = report_of(bench->place, PREFIX, 1);
	assert_string_equal(js_str(first, "stopped"), "drain");
	assert_true(json_is_true(js_path(first, "drain.marked")));
	assert_string_equal(js_str(second, "stopped"), "drain");
	assert_int_equal(js_int(second, "exit", 0), 1);
}

/* ---- an orphan ---- */

/* The machine looks to the engine as if it had been restarted since. */
static void lose_sight(struct bench *bench)
{
	AUTO(auto_free) char *lock = place_path(bench->place, PREFIX "node-0/" LOCK_FILE);
	json_t *body = record(bench);

	js_put_str(body, "boot", "00000000-0000-0000-0000-000000000000");
	set_record(bench, body);
	assert_int_equal(unlink(lock), 0);
}

static int submit_second(struct bench *bench)
{
	static char *const env[] = { (char *)"PATH=/usr/bin:/bin", NULL };
	const struct engine_job job = {
		.name = "stk-r1-train-2",
		.run = "r1",
		.phase = "train",
		.attempt = 2,
		.nodes = 1,
		.prefix = SECOND_PREFIX,
		.agent_key = "agents/x/",
		.env = env,
	};
	AUTO(err_freep) struct err *err = NULL;
	json_t *order = saving_order(bench, SECOND_PREFIX, SAVE "sleep 1; save 3; exit 0");

	js_put(order, "attempt", json_integer(2));
	js_put_str(order, "job", "stk-r1-train-2");
	js_put_str(order, "nonce", "n2");
	order_write(bench->place, order);
	return local_ops.submit(bench->engine, &job, &err);
}

/* Returns how many of the first attempt's checkpoints are marked, and how many were after this
 * moment. */
static size_t marks_of_first(struct bench *bench, int64_t after_ms, size_t *ret_late)
{
	AUTO(auto_free) char *root = place_path(bench->place, PREFIX "checkpoints");
	DIR *folder = opendir(root);
	struct dirent *entry;
	size_t count = 0;

	*ret_late = 0;
	while (folder && (entry = readdir(folder))) {
		AUTO(auto_free) char *path = fs_join(root, entry->d_name);
		AUTO(err_freep) struct err *err = NULL;
		json_auto_t *mark = NULL;

		if (entry->d_name[0] == '.' || !strstr(entry->d_name, MARK_SUFFIX))
			continue;
		must(js_load(path, 65536, &mark, &err), &err);
		*ret_late += js_int(mark, "at", 0) > after_ms;
		count++;
	}
	if (folder)
		closedir(folder);
	return count;
}

static void an_orphan_stops_itself_and_its_late_checkpoints_are_refused(void **state)
{
	struct bench *bench = *state;
	AUTO(auto_free) char *record = NULL;
	AUTO(auto_free) char *saved = NULL;
	json_auto_t *first = NULL, *second = NULL;
	json_t *order;
	struct engine_status status;
	size_t marked, late, before, saves;
	int64_t claimed;
	pid_t orphan;

	/* The script saves and saves, and does not care for SIGTERM. Its grace is long enough for a
	 * busy machine to let it save within. */
	order = saving_order(bench, PREFIX,
			     SAVE "trap '' TERM; i=0; while :; do i=$((i + 1)); save $i; "
				  "printf . >> $STOKER_CHECKPOINT_DIR/../saved; sleep 0.1; done");
	js_put(order, "grace_ms", json_integer(3000));
	order_write(bench->place, order);
	assert_int_equal(submit(bench, 1), 0);
	for (int i = 0; i < LOOKS && marks_of_first(bench, 0, &late) < 2; i++)
		pause_ms(10);
	orphan = report_pid(bench, 0, "agent");
	lose_sight(bench);
	status = describe(bench);
	assert_int_equal(status.state, ENGINE_ENDED); /* as the engine believes */
	assert_int_equal(kill(orphan, 0), 0);
	before = marks_of_first(bench, 0, &late);
	assert_true(before >= 2);

	assert_int_equal(submit_second(bench), 0);
	assert_true(wait_for_state(bench->place, PREFIX, 0, "not_mine"));
	first = report_of(bench->place, PREFIX, 0);
	assert_string_equal(js_str(first, "stopped"), "superseded");
	assert_true(wait_for_state(bench->place, SECOND_PREFIX, 0, "ended"));
	second = report_of(bench->place, SECOND_PREFIX, 0);
	claimed = js_int(second, "claimed", 0);
	print_message("the orphan was gone %lld ms after the claim (grace 3000 ms, beat 50 ms)\n",
		      (long long)(js_int(first, "ended", 0) - claimed));
	assert_true(js_int(first, "ended", 0) - claimed < SOON_MS);
	/* The script went on saving for the whole of its grace: a dot for each, so that a kill in
	 * the midst of writing loses none. */
	marked = marks_of_first(bench, claimed + 50, &late);
	assert_int_equal(late, 0);
	record = place_path(bench->place, PREFIX "saved");
	saved = read_file(record, &saves);
	assert_true(saves > marked);
	assert_int_equal(js_int(json_object_get(second, "checkpoint"), "step", 0), 3);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

#define T(test) cmocka_unit_test_setup_teardown(test, bench_make, bench_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(every_node_knows_its_rank_and_the_same_master),
		T(a_killed_rank_takes_the_attempt_down_within_seconds),
		T(the_first_to_fail_is_named_and_not_those_that_fail_of_it),
		T(all_agents_killed_at_once_leave_nothing_behind),
		T(what_ends_while_it_is_drained_does_not_stop_those_that_still_save),
		T(an_orphan_stops_itself_and_its_late_checkpoints_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
