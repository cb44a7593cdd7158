/* The real stoker-node runs real commands: how they end, how they are stopped,
 * and that nothing of them is left. */
#include "tests/unit/node/agent_run.h"

#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "jobs/base/hash.h"

static void a_command_that_succeeds_is_reported_from_start_to_end(void **state)
{
	AUTO(auto_free) char *src = place_path(*state, PREFIX "node-0/src");
	AUTO(auto_free) char *saved = place_path(*state, PREFIX "node-0/checkpoints");
	AUTO(auto_free) char *made = place_path(*state, PREFIX "node-0/output");
	json_auto_t *body = NULL;
	AUTO(auto_free) char *out = NULL;

	assert_int_equal(run_script(*state, "echo hello; echo oops >&2"), 0);
	body = report(*state);
	assert_state(body, "ended", 0);
	assert_string_equal(js_str(body, "src"), src);
	assert_string_equal(js_str(body, "checkpoint_dir"), saved);
	assert_string_equal(js_str(body, "output_dir"), made);
	assert_has(js_str(body, "master"), "127.0.0.1:");
	assert_null(json_object_get(body, "output_dropped_bytes"));
	assert_null(json_object_get(body, "log_lost"));
	assert_null(json_object_get(body, "oom"));
	assert_null(json_object_get(body, "drain"));
	assert_null(json_object_get(body, "signal"));
	assert_null(json_object_get(body, "stopped"));
	assert_null(json_object_get(body, "error"));
	assert_string_equal(js_str(body, "nonce"), NONCE);
	assert_string_equal(js_str(body, "token"), "tok");
	assert_true(js_int(json_object_get(body, "agent"), "pid", 0) > 1);
	assert_true(js_int(json_object_get(body, "command"), "start", 0) > 0);
	assert_true(js_int(body, "claimed", 0) <= js_int(body, "started", 0));
	assert_true(js_int(body, "started", 0) <= js_int(body, "ended", 0));
	out = output(*state);
	assert_has(out, "::stoker:" NONCE ":: {\"v\":1");
	assert_has(out, "\"state\":\"starting\"");
	assert_has(out, "\"state\":\"running\"");
	assert_has(out, "\nhello\noops\n::stoker:" NONCE ":: {");
	assert_has(out, "\"state\":\"ended\"");
}

static void the_agent_exits_as_its_command_does(void **state)
{
	json_auto_t *body = NULL;

	assert_int_equal(run_script(*state, "exit 3"), 3);
	body = report(*state);
	assert_state(body, "ended", 3);
}

static void a_signal_counts_as_a_shell_counts_it(void **state)
{
	json_auto_t *body = NULL;

	assert_int_equal(run_script(*state, "kill -SEGV $$"), 128 + SIGSEGV);
	body = report(*state);
	assert_state(body, "ended", 128 + SIGSEGV);
	assert_int_equal(js_int(body, "signal", 0), SIGSEGV);
}

static json_t *order_with(const struct place *place, const char *program)
{
	json_t *order = order_for(place, "");

	js_put(order, "command", json_pack("[s]", program));
	return order;
}

static void a_missing_program_ends_with_127_and_what_was_meant(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *bin = place_path(place, "bin/trainer");
	AUTO(auto_free) char *path = mem_format("%s/bin", place->root);
	json_t *order = order_with(place, "triner");
	json_auto_t *body = NULL;
	const json_t *error;

	write_file(bin, "#!/bin/sh\n", 0700);
	js_put(order, "env", json_pack("{s:s}", "PATH", path));
	assert_int_equal(run(place, order), 127);
	body = report(place);
	assert_state(body, "ended", 127);
	error = json_object_get(body, "error");
	assert_has(js_str(error, "message"), "cannot find 'triner' in PATH (");
	assert_string_equal(js_str(error, "hint"), "did you mean 'trainer'?");
	assert_string_equal(js_str(error, "class"), "user-config");
	assert_null(json_object_get(body, "started"));
}

static void a_missing_script_is_said_to_be_missing_in_the_source(void **state)
{
	json_auto_t *body = NULL;

	assert_int_equal(run(*state, order_with(*state, "train/go.sh")), 127);
	body = report(*state);
	assert_has(js_str(json_object_get(body, "error"), "message"),
		   "cannot find 'train/go.sh' in the source");
}

static void what_cannot_be_executed_ends_with_126(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *file = place_path(place, "plain.py");
	AUTO(auto_free) char *garbage = place_path(place, "garbage");
	json_t *order;

	write_file(file, "print(1)\n", 0600);
	write_file(garbage,
		   "\x7f"
		   "ELFxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
		   0700);
	for (int i = 0; i < 3; i++) {
		const char *const programs[] = { file, place->root, garbage };
		json_auto_t *body = NULL;

		order = order_with(place, programs[i]);
		js_put(order, "attempt", json_integer(i + 1));
		assert_int_equal(run(place, order), 126);
		body = report(place);
		assert_state(body, "ended", 126);
		assert_non_null(js_str(json_object_get(body, "error"), "hint"));
	}
}

static void a_missing_interpreter_is_named(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *file = place_path(place, "script");
	json_auto_t *body = NULL;

	write_file(file, "#!/nowhere/python\n", 0700);
	assert_int_equal(run(place, order_with(place, file)), 127);
	body = report(place);
	assert_has(js_str(json_object_get(body, "error"), "hint"), "interpreter");
}

static void sigterm_reaches_the_command_which_ends_its_own_way(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *ready = place_path(place, "ready");
	AUTO(auto_free)
	char *script = mem_format(
		"trap 'echo saved; exit 7' TERM; touch %s; while :; do sleep 0.05; done", ready);
	AUTO(auto_free) char *out = NULL;
	json_auto_t *body = NULL;
	pid_t pid;

	order_write(place, order_for(place, script));
	pid = start(place, PREFIX, 0, plain_env, NULL);
	assert_true(wait_for_file(ready));
	kill(pid, SIGTERM);
	assert_int_equal(end_of(pid), 7);
	body = report(place);
	assert_state(body, "ended", 7);
	assert_string_equal(js_str(body, "stopped"), "signal");
	out = output(place);
	assert_has(out, "saved\n");
}

static void a_command_that_ignores_sigterm_is_killed_after_the_grace(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *ready = place_path(place, "ready");
	AUTO(auto_free)
	char *script = mem_format("trap '' TERM; (setsid sh -c 'trap \"\" TERM; "
				  "exec sleep 1000' &) ; touch %s; "
				  "while :; do sleep 0.05; done; : %s",
				  ready, place->root);
	json_auto_t *body = NULL;
	int64_t began;
	pid_t pid;

	order_write(place, order_for(place, script));
	pid = start(place, PREFIX, 0, plain_env, NULL);
	assert_true(wait_for_file(ready));
	began = clock_mono_now().ms;
	kill(pid, SIGTERM);
	assert_int_equal(end_of(pid), 128 + SIGKILL);
	assert_in_range(clock_mono_now().ms - began, 400, 10000);
	body = report(place);
	assert_state(body, "ended", 128 + SIGKILL);
	assert_string_equal(js_str(body, "stopped"), "signal");
	assert_int_equal(processes_with(place->root), 0);
}

/* AWS Batch kills all of a container 30 seconds after it asked it to end. */
static void what_a_service_will_kill_is_over_before(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *ready = place_path(place, "ready");
	AUTO(auto_free)
	char *script = mem_format("trap '' TERM; touch %s; while :; do sleep 0.05; done", ready);
	json_t *order = order_for(place, script);
	json_auto_t *body = NULL;
	int64_t began;
	pid_t pid;

	js_put(order, "grace_ms", json_integer(60000));
	js_put(order, "stop_ms", json_integer(2000));
	order_write(place, order);
	pid = start(place, PREFIX, 0, plain_env, NULL);
	assert_true(wait_for_file(ready));
	began = clock_mono_now().ms;
	kill(pid, SIGTERM);
	assert_int_equal(end_of(pid), 128 + SIGKILL);
	assert_in_range(clock_mono_now().ms - began, 900, 30000);
	body = report(place);
	assert_state(body, "ended", 128 + SIGKILL);
}

static void a_stopped_command_hears_the_sigterm_too(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *ready = place_path(place, "ready");
	AUTO(auto_free)
	char *script = mem_format("trap 'exit 9' TERM; touch %s; kill -STOP $$; exit 1", ready);
	pid_t pid;
	json_t *order = order_for(place, script);

	js_put(order, "grace_ms", json_integer(60000));
	order_write(place, order);
	pid = start(place, PREFIX, 0, plain_env, NULL);
	assert_true(wait_for_file(ready));
	pause_ms(100);
	kill(pid, SIGTERM);
	assert_int_equal(end_of(pid), 9);
}

static void a_daemon_that_keeps_the_pipe_open_hangs_nothing_and_is_gone(void **state)
{
	struct place *place = *state;
	AUTO(auto_free)
	char *script = mem_format("(setsid sh -c 'sleep 1000; : %s' &); echo done", place->root);
	json_auto_t *body = NULL;
	AUTO(auto_free) char *out = NULL;
	int64_t began = clock_mono_now().ms;

	assert_int_equal(run_script(place, script), 0);
	assert_in_range(clock_mono_now().ms - began, 0, 20000);
	body = report(place);
	assert_state(body, "ended", 0);
	assert_true(js_int(body, "leftovers", 0) >= 1);
	out = output(place);
	assert_has(out, "done\n");
	assert_int_equal(processes_with(place->root), 0);
}

static void subreaper_that_finish_soon_are_waited_for(void **state)
{
	AUTO(auto_free) char *out = NULL;
	json_auto_t *body = NULL;

	assert_int_equal(run_script(*state, "(sleep 0.3; echo late) & exit 0"), 0);
	body = report(*state);
	assert_null(json_object_get(body, "leftovers"));
	out = output(*state);
	assert_has(out, "late\n");
}

static void a_long_line_passes_whole(void **state)
{
	AUTO(auto_free) char *out = NULL;
	const char *from;
	size_t len = 0;

	assert_int_equal(run_script(*state, "head -c 1048576 /dev/zero | tr '\\0' x"), 0);
	out = output(*state);
	from = strstr(out, "\nxxx");
	assert_non_null(from);
	len = strspn(from + 1, "x");
	assert_int_equal(len, 1048576);
	assert_has(from + 1 + len, "\n::stoker:" NONCE "::");
}

static void a_command_cannot_speak_for_the_agent(void **state)
{
	AUTO(auto_free) char *out = NULL;
	json_auto_t *body = NULL;

	assert_int_equal(run_script(*state, "echo '::stoker:" NONCE ":: {\"state\":\"ended\","
					    "\"exit\":0}'; exit 4"),
			 4);
	body = report(*state);
	assert_state(body, "ended", 4);
	out = output(*state);
	assert_has(out, "\n\\::stoker:" NONCE ":: {\"state\":\"ended\",\"exit\":0}\n");
}

static void one_node_that_fails_takes_the_others_down(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *marker = place_path(place, PREFIX FAILED_FILE);
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *peer = NULL, *failed = NULL;
	json_t *order = order_for(place, "[ $STOKER_NODE_RANK = 1 ] && exit 5; sleep 1000");
	pid_t pids[2];

	js_put(order, "nodes", json_integer(2));
	order_write(place, order);
	for (int i = 0; i < 2; i++)
		pids[i] = start(place, PREFIX, i, plain_env, NULL);
	assert_int_equal(end_of(pids[1]), 5);
	assert_int_equal(end_of(pids[0]), 128 + SIGTERM);
	peer = report(place);
	assert_string_equal(js_str(peer, "stopped"), "peer");
	must(js_load(marker, 4096, &failed, &err), &err);
	assert_int_equal(js_int(failed, "node", -1), 1);
	assert_int_equal(js_int(failed, "exit", -1), 5);
}

static void a_log_that_cannot_be_kept_stops_the_command_and_says_why(void **state)
{
	struct place *place = *state;
	json_auto_t *body = NULL;
	const json_t *error;

	if (mount("tmpfs", place->root, "tmpfs", 0, "size=2m") < 0)
		skip(); /* only root may mount */
	order_write(place, order_for(place, "exec yes"));
	assert_int_equal(end_of(start(place, PREFIX, 0, plain_env, NULL)), AGENT_EXIT_FAILED);
	body = report_of(place, PREFIX, 0);
	umount2(place->root, MNT_DETACH);
	assert_state(body, "failed", AGENT_EXIT_FAILED);
	error = json_object_get(body, "error");
	assert_has(js_str(error, "message"), "No space left on device");
	assert_string_equal(js_str(error, "class"), "user-config");
	assert_string_equal(js_str(body, "stopped"), "log");
}

static void a_stdout_that_takes_nothing_is_no_reason_to_stop(void **state)
{
	struct place *place = *state;
	json_auto_t *body = NULL;
	AUTO(auto_free) char *path = place_path(place, PREFIX "node-0/" LOG_FILE);
	AUTO(auto_free) char *log = NULL;

	order_write(place, order_for(place, "echo one; echo two; exit 3"));
	assert_int_equal(end_of(start(place, PREFIX, 0, plain_env, "/dev/full")), 3);
	body = report(place);
	assert_state(body, "ended", 3);
	log = read_file(path, NULL);
	assert_has(log, "\none\ntwo\n");
}

static void a_full_disk_does_not_swallow_the_last_report(void **state)
{
	struct place *place = *state;
	json_auto_t *body = NULL;

	if (mount("tmpfs", place->root, "tmpfs", 0, "size=2m") < 0)
		skip(); /* only root may mount */
	order_write(place, order_for(place, "cat /dev/zero > $STOKER_OUTPUT_DIR/big; exit 6"));
	assert_int_equal(end_of(start(place, PREFIX, 0, plain_env, NULL)), 6);
	body = report_of(place, PREFIX, 0);
	umount2(place->root, MNT_DETACH);
	assert_non_null(body);
	assert_state(body, "ended", 6);
}

/* ---- the agent itself ---- */

/* A service may start a container twice; two would unpack over each other. */
static void a_second_agent_in_the_same_folder_leaves_at_once(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *ran = place_path(place, "ran");
	AUTO(auto_free) char *script = mem_format("touch %s", ran);
	AUTO(auto_free) char *path = place_path(place, PREFIX "node-0/" LOCK_FILE);
	AUTO(auto_close) int lock = -1;

	write_file(path, "", 0600);
	lock = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	assert_int_equal(run_script(place, script), AGENT_EXIT_NOT_MINE);
	assert_false(fs_exists(ran));
	assert_null(report_of(place, PREFIX, 0)); /* it belongs to the other agent */
	assert_int_equal(flock(lock, LOCK_UN), 0);
	assert_int_equal(run_script(place, script), 0);
	assert_true(fs_exists(ran));
}

/* Files of an agent may hold what a command printed of its secrets. */
static void what_an_agent_writes_is_its_owners_alone(void **state)
{
	static const char *const files[] = { "runs/r1/claim/train", PREFIX "node-0/" REPORT_FILE,
					     PREFIX "node-0/" LOG_FILE, PREFIX "node-0/" LOCK_FILE,
					     PREFIX "node-0/" PACE_FILE };
	struct place *place = *state;
	json_t *order = order_for(place, "echo step: 1; until [ -e $STOKER_OUTPUT_DIR/../pace.json "
					 "]; do sleep 0.02; done");

	js_put(order, "metrics",
	       json_pack("[{s:s, s:s}]", "name", "step", "regex", "step: ([0-9]+)"));
	umask(0);
	assert_int_equal(run(place, order), 0);
	umask(022);
	for (size_t i = 0; i < STK_LENGTH(files); i++) {
		AUTO(auto_free) char *path = place_path(place, files[i]);
		struct stat st;

		assert_int_equal(stat(path, &st), 0);
		if ((st.st_mode & 07777) != 0600)
			fail_msg("'%s' has the mode %o", files[i], st.st_mode & 07777);
	}
}

/* A machine with much memory would write them for minutes. */
static void a_command_dumps_core_only_where_the_order_wants_it(void **state)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_CORE, &limit), 0);
	if (limit.rlim_max == 0)
		skip();
	for (int wanted = 0; wanted < 2; wanted++) {
		json_t *order = order_for(*state, "[ $(ulimit -c) = 0 ]");

		js_put(order, "core_dumps", json_boolean(wanted));
		js_put(order, "attempt", json_integer(wanted + 1));
		assert_int_equal(run(*state, order), wanted);
	}
}

static void the_report_says_whether_the_agent_is_the_one_that_was_meant(void **state)
{
	char hex[SHA256_HEX];
	AUTO(err_freep) struct err *err = NULL;
	uint64_t size;

	must(hash_sha256_file(STOKER_NODE, hex, &size, &err), &err);
	for (int i = 0; i < 3; i++) {
		json_t *order = order_for(*state, "true");
		json_auto_t *body = NULL;
		const json_t *build;

		if (i > 0)
			js_put_str(order, "agent", i == 1 ? hex : "0123");
		js_put(order, "attempt", json_integer(i + 1));
		assert_int_equal(run(*state, order), 0);
		body = report(*state);
		build = json_object_get(body, "build");
		assert_int_equal(build != NULL, i > 0);
		if (i > 0) {
			assert_int_equal(js_bool(build, "same", i == 2), i == 1);
			assert_string_equal(js_str(build, "version"), STOKER_VERSION);
		}
	}
}

static void a_node_without_node_0_gives_up_after_its_time(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *ran = place_path(place, "ran");
	AUTO(auto_free) char *script = mem_format("touch %s", ran);
	json_t *order = order_for(place, script);
	json_auto_t *body = NULL;

	js_put(order, "nodes", json_integer(2));
	js_put(order, "claim_wait_ms", json_integer(1000));
	order_write(place, order);
	assert_int_equal(end_of(start(place, PREFIX, 1, plain_env, NULL)), AGENT_EXIT_FAILED);
	body = report_of(place, PREFIX, 1);
	assert_has(json_string_value(js_path(body, "error.message")),
		   "node 0 has not claimed the phase within 1 s");
	assert_string_equal(json_string_value(js_path(body, "error.class")), "transient-infra");
	assert_null(json_object_get(body, "claimed"));
	assert_false(fs_exists(ran));
}

#define T(test) cmocka_unit_test_setup_teardown(test, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_a_service_will_kill_is_over_before),
		T(a_command_that_succeeds_is_reported_from_start_to_end),
		T(the_agent_exits_as_its_command_does),
		T(a_signal_counts_as_a_shell_counts_it),
		T(a_missing_program_ends_with_127_and_what_was_meant),
		T(a_missing_script_is_said_to_be_missing_in_the_source),
		T(what_cannot_be_executed_ends_with_126),
		T(a_missing_interpreter_is_named),
		T(sigterm_reaches_the_command_which_ends_its_own_way),
		T(a_command_that_ignores_sigterm_is_killed_after_the_grace),
		T(a_stopped_command_hears_the_sigterm_too),
		T(a_daemon_that_keeps_the_pipe_open_hangs_nothing_and_is_gone),
		T(subreaper_that_finish_soon_are_waited_for),
		T(a_long_line_passes_whole),
		T(a_command_cannot_speak_for_the_agent),
		T(one_node_that_fails_takes_the_others_down),
		T(a_log_that_cannot_be_kept_stops_the_command_and_says_why),
		T(a_stdout_that_takes_nothing_is_no_reason_to_stop),
		T(a_full_disk_does_not_swallow_the_last_report),
		T(a_second_agent_in_the_same_folder_leaves_at_once),
		T(what_an_agent_writes_is_its_owners_alone),
		T(a_command_dumps_core_only_where_the_order_wants_it),
		T(the_report_says_whether_the_agent_is_the_one_that_was_meant),
		T(a_node_without_node_0_gives_up_after_its_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
