/* The local engine loses, doubles and confuses nothing: the deaths of
 * submitters, agents and commands, reused pids, restarts of the machine. */
#include "tests/unit/engine/bench.h"

#include <sys/file.h>
#include <sys/mount.h>

static void a_job_outlives_its_submitter_and_its_exit_status_is_kept(void **state)
{
	struct engine_status status;

	write_order(*state, "sleep 0.3; exit 42", 1);
	submit_and_die(*state, 1);
	assert_int_equal(find(*state), 1);
	wait_for(*state, ENGINE_RUNNING);
	status = wait_for(*state, ENGINE_ENDED);
	assert_true(status.exit_known);
	assert_int_equal(status.exit, 42);
}

static void nothing_of_the_caller_leaks_into_the_command(void **state)
{
	struct bench *bench = *state;
	AUTO(auto_free) char *dump = place_path(bench->place, "env");
	AUTO(auto_free) char *script = mem_format("cp /proc/self/environ %s", dump);
	AUTO(auto_free) char *env = NULL;
	size_t len = 0;

	setenv("XLA_FLAGS", "--leak", 1);
	write_order(bench, script, 1);
	assert_int_equal(submit(bench, 1), 0);
	unsetenv("XLA_FLAGS");
	assert_int_equal(wait_for(bench, ENGINE_ENDED).exit, 0);
	env = read_file(dump, &len);
	assert_non_null(memmem(env, len, "STOKER_RUN=r1", 13));
	assert_null(memmem(env, len, "XLA_FLAGS", 9));
	/* A secret that the order does not name stays with the agent. */
	assert_null(memmem(env, len, "s3cret", 6));
}

static void no_secret_is_written_down(void **state)
{
	struct bench *bench = *state;
	AUTO(auto_free) char *command = mem_format("grep -rq s3cret %s/runs", bench->place->root);
	json_t *order = order_for(bench->place, "test \"$KEY\" = \"$(echo terc3s | rev)\"");

	js_put(order, "secrets", json_pack("[s]", "KEY"));
	order_write(bench->place, order);
	assert_int_equal(submit(bench, 1), 0);
	assert_int_equal(wait_for(bench, ENGINE_ENDED).exit, 0);
	assert_int_equal(WEXITSTATUS(system(command)), 1);
}

static void what_a_killed_agent_leaves_is_killed_before_it_is_called_ended(void **state)
{
	struct engine_status status;

	/* One process in the command's group, one in a session of its own. */
	write_order(*state, "(setsid sleep 1000 &); sleep 1000", 1);
	assert_int_equal(submit(*state, 1), 0);
	wait_for(*state, ENGINE_RUNNING);
	pause_ms(100);
	assert_int_equal(kill(report_pid(*state, 0, "agent"), SIGKILL), 0);
	for (;;) {
		pid_t command = report_pid(*state, 0, "command");

		status = describe(*state);
		if (status.state == ENGINE_ENDED) {
			struct proc_id id;

			/* Gone, or a zombie that waits for init. */
			assert_true(proc_identify(command, &id) < 0 || !proc_alive(&id));
			break;
		}
		pause_ms(10);
	}
	assert_false(status.exit_known);
	assert_string_equal(status.reason, "the agent of node 0 died without a report (signal 9)");
	assert_int_equal(processes_with(((struct bench *)*state)->place->root), 0);
}

static void an_agent_killed_at_any_moment_leaves_nothing(void **state)
{
	struct bench *bench = *state;
	AUTO(auto_free) char *runs = place_path(bench->place, "runs");
	int unknown = 0;

	for (long us = 0; us < 90000; us += 3000) {
		AUTO(err_freep) struct err *err = NULL;
		struct timespec time = { 0, us * 1000 };
		struct engine_status status;
		pid_t pid;

		must(fs_remove_tree(runs, &err), &err);
		write_order(bench, "(setsid sleep 1000 &); sleep 0.02", 1);
		assert_int_equal(submit(bench, 1), 0);
		assert_int_equal(local_ops.wake(bench->engine, "stk-r1-train-1", PREFIX, &pid, 1),
				 1);
		nanosleep(&time, NULL);
		kill(pid, SIGKILL);
		status = wait_for(bench, ENGINE_ENDED);
		unknown += !status.exit_known;
		assert_int_equal(processes_with(bench->place->root), 0);
	}
	assert_true(unknown > 10);
}

static void an_agent_that_cannot_start_says_why_in_the_log(void **state)
{
	struct bench *bench = *state;
	AUTO(auto_free) char *agent = place_path(bench->place, "agents/x/stoker-node");
	struct engine_status status;

	unlink(agent);
	write_file(agent, "#!/bin/sh\necho 'no loader \x1b[2J here' >&2; exit 127\n", 0600);
	write_order(bench, "true", 1);
	assert_int_equal(submit(bench, 1), 0); /* made executable on the way */
	status = wait_for(bench, ENGINE_ENDED);
	assert_false(status.exit_known);
	assert_non_null(strstr(status.reason, "(exit 127); last line: no loader \\x1b[2J here"));
}

static void a_reused_pid_is_not_taken_for_the_agent(void **state)
{
	struct bench *bench = *state;
	struct engine_status status;
	struct proc_id unrecognised;
	pid_t pid;
	json_t *body;
	json_t *agent;

	write_order(bench, "exit 0", 1);
	assert_int_equal(submit(bench, 1), 0);
	wait_for(bench, ENGINE_ENDED);
	/* The pid now belongs to someone else, started later. */
	pid = fork();
	if (pid == 0) {
		pause_ms(100000);
		_exit(0);
	}
	assert_int_equal(proc_identify(pid, &unrecognised), 0);
	body = record(bench);
	agent = json_array_get(json_object_get(body, "agents"), 0);
	js_put(agent, "pid", json_integer(pid));
	js_put(agent, "start", json_integer((json_int_t)unrecognised.start_ticks - 1));
	set_record(bench, body);
	status = describe(bench);
	assert_int_equal(status.state, ENGINE_ENDED);
	assert_int_equal(status.exit, 0);
	stop(bench);
	stop(bench);
	unrecognised.start_ticks--;
	assert_false(local_scan_signal(&unrecognised, SIGKILL));
	assert_false(local_scan_reap(&unrecognised, &status.exit));
	unrecognised.start_ticks++;
	assert_true(proc_alive(&unrecognised));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* A record as a submitter leaves it that died right after it wrote it, or right
 * after it started the agents. */
static void set_starting(struct bench *bench)
{
	json_t *body = record(bench);

	js_put_str(body, "state", "starting");
	js_put(body, "agents", json_array());
	js_put(json_object_get(body, "submitter"), "start", json_integer(1));
	js_put(json_object_get(body, "submitter"), "pid", json_integer(1));
	set_record(bench, body);
}

static void agents_that_no_record_names_are_found(void **state)
{
	struct engine_status status;

	write_order(*state, "sleep 1000", 1);
	assert_int_equal(submit(*state, 1), 0);
	wait_for(*state, ENGINE_RUNNING);
	set_starting(*state);
	assert_int_equal(find(*state), 1);
	assert_int_equal(describe(*state).state, ENGINE_RUNNING);
	assert_int_equal(submit(*state, 1), 0); /* found, not doubled */
	stop(*state);
	status = wait_for(*state, ENGINE_ENDED);
	assert_int_equal(status.exit, 128 + SIGTERM);
}

static void a_submission_that_started_nothing_is_not_found_and_can_be_repeated(void **state)
{
	struct bench *bench = *state;
	AUTO(auto_free) char *node = place_path(bench->place, PREFIX "node-0");
	AUTO(auto_free) char *claim = place_path(bench->place, "runs/r1/claim");
	AUTO(err_freep) struct err *err = NULL;

	write_order(bench, "exit 5", 1);
	assert_int_equal(submit(bench, 1), 0);
	wait_for(bench, ENGINE_ENDED);
	set_starting(bench);
	assert_int_equal(find(bench), 1); /* its report shows that it ran */
	must(fs_remove_tree(node, &err), &err);
	must(fs_remove_tree(claim, &err), &err);
	assert_int_equal(find(bench), 0);
	assert_int_equal(submit(bench, 1), 0);
	assert_int_equal(wait_for(bench, ENGINE_ENDED).exit, 5);
}

/* /proc of this machine says nothing of another one's. */
static void what_may_have_been_started_elsewhere_is_not_said_to_be_missing(void **state)
{
	struct bench *bench = *state;
	AUTO(auto_free) char *node = place_path(bench->place, PREFIX "node-0");
	AUTO(auto_free) char *claim = place_path(bench->place, "runs/r1/claim");
	AUTO(auto_free) char *lock = place_path(bench->place, PREFIX "node-0/" LOCK_FILE);
	AUTO(err_freep) struct err *err = NULL;
	struct local *local = (struct local *)bench->engine;
	json_t *body;
	int fd;

	write_order(bench, "exit 5", 1);
	assert_int_equal(submit(bench, 1), 0);
	wait_for(bench, ENGINE_ENDED);
	set_starting(bench);
	body = record(bench);
	js_put_str(body, "boot", "00000000-0000-0000-0000-000000000000");
	js_put_str(body, "host", "elsewhere");
	/* The attempt's files are there: nowhere that can be read from here. */
	js_put_str(body, "work", "/nonexistent");
	set_record(bench, body);
	assert_int_equal(find(bench), 1); /* its report shows that it ran */
	must(fs_remove_tree(node, &err), &err);
	must(fs_remove_tree(claim, &err), &err);
	/* The folder is of one machine only, and nobody holds a lock in it. */
	assert_int_equal(find(bench), 0);
	must(fs_mkdirs(node, &err), &err);
	fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(find(bench), 1);
	close(fd);
	/* The cache is that of a workspace whose files are not known to be here. */
	local->cache = workspace_cache_new(local->store);
	assert_int_equal(local_ops.find(bench->engine, "stk-r1-train-1", PREFIX, &err), -1);
	assert_non_null(strstr(err->message, "may have been started on 'elsewhere'"));
	assert_int_equal(submit(bench, 1), 1); /* nor is another one started */
	/* Many machines have the same name: this one was not merely restarted. */
	body = record(bench);
	js_put_str(body, "host", local->host);
	set_record(bench, body);
	err_freep(&err);
	assert_int_equal(local_ops.find(bench->engine, "stk-r1-train-1", PREFIX, &err), -1);
	assert_non_null(strstr(err->message, "may have been started on"));
}

static void a_lost_record_is_unseen_and_not_ended(void **state)
{
	struct bench *bench = *state;
	AUTO(auto_free) char *path = record_path(bench);

	write_order(bench, "sleep 1000", 1);
	assert_int_equal(submit(bench, 1), 0);
	wait_for(bench, ENGINE_RUNNING);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(describe(bench).state, ENGINE_UNKNOWN);
	assert_int_equal(find(bench), 1);
	assert_int_equal(submit(bench, 1), 0); /* nothing new is started */
	stop(bench);                           /* found by its order */
	assert_true(waitpid(-1, NULL, 0) > 1);
	write_file(path, "{\"v\":1", 0600);
	assert_int_equal(describe(bench).state, ENGINE_UNKNOWN);
	assert_int_equal(find(bench), -1);
	assert_int_equal(submit(bench, 1), 1);
}

static void after_a_restart_of_the_machine_it_has_ended(void **state)
{
	struct bench *bench = *state;
	struct engine_status status;
	AUTO(auto_free) char *report = place_path(bench->place, PREFIX "node-0/" REPORT_FILE);
	json_t *body;

	write_order(bench, "exit 5", 1);
	assert_int_equal(submit(bench, 1), 0);
	wait_for(bench, ENGINE_ENDED);
	body = record(bench);
	js_put_str(body, "boot", "00000000-0000-0000-0000-000000000000");
	set_record(bench, json_incref(body));
	assert_int_equal(describe(bench).exit, 5); /* the report was written before */
	unlink(report);
	status = describe(bench);
	assert_int_equal(status.state, ENGINE_ENDED);
	assert_false(status.exit_known);
	assert_non_null(strstr(status.reason, "was restarted"));
	json_decref(body);
}

static void what_runs_in_another_container_is_unseen_until_its_locks_are_free(void **state)
{
	struct bench *bench = *state;
	AUTO(auto_free) char *path = place_path(bench->place, PREFIX "node-0/" LOCK_FILE);
	AUTO(err_freep) struct err *err = NULL;
	struct engine_status status;
	json_t *body;
	int fd;

	write_order(bench, "exit 5", 1);
	assert_int_equal(submit(bench, 1), 0);
	wait_for(bench, ENGINE_ENDED);
	body = record(bench);
	js_put_str(body, "pidns", "pid:[1]");
	set_record(bench, body);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	status = describe(bench);
	assert_int_equal(status.state, ENGINE_UNKNOWN);
	assert_int_equal(local_ops.stop(bench->engine, "stk-r1-train-1", PREFIX, 1, &err), -1);
	close(fd);
	assert_int_equal(describe(bench).state, ENGINE_ENDED);
}

static void no_zombie_stays_behind(void **state)
{
	write_order(*state, "exit 0", 2);
	assert_int_equal(submit(*state, 2), 0);
	wait_for(*state, ENGINE_ENDED);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* ECHILD */
}

static void one_failing_node_ends_the_attempt_and_is_named(void **state)
{
	struct engine_status status;

	write_order(*state, "[ $STOKER_NODE_RANK = 1 ] && exit 6; sleep 1000", 3);
	assert_int_equal(submit(*state, 3), 0);
	status = wait_for(*state, ENGINE_ENDED);
	assert_true(status.exit_known);
	assert_int_equal(status.exit, 6);
	assert_int_equal(status.node, 1);
}

static void one_killed_agent_takes_the_attempt_down_and_is_named(void **state)
{
	struct engine_status status;

	write_order(*state, "sleep 1000", 2);
	assert_int_equal(submit(*state, 2), 0);
	assert_true(wait_for_state(((struct bench *)*state)->place, PREFIX, 1, "running"));
	assert_int_equal(kill(report_pid(*state, 1, "agent"), SIGKILL), 0);
	status = wait_for(*state, ENGINE_ENDED);
	assert_false(status.exit_known);
	assert_int_equal(status.node, 1);
	assert_non_null(strstr(status.reason, "agent of node 1"));
}

static void nodes_that_end_well_wait_for_each_other(void **state)
{
	struct engine_status status;

	write_order(*state, "[ $STOKER_NODE_RANK = 1 ] && sleep 0.5; exit 0", 2);
	assert_int_equal(submit(*state, 2), 0);
	status = wait_for(*state, ENGINE_ENDED);
	assert_int_equal(status.exit, 0);
	assert_int_equal(status.node, 0);
}

static void an_agent_that_does_not_stop_is_killed_after_grace_and_margin(void **state)
{
	struct bench *bench = *state;
	struct engine_status status;
	pid_t agent;
	json_t *body;

	write_order(bench, "sleep 1000", 1);
	assert_int_equal(submit(bench, 1), 0);
	wait_for(bench, ENGINE_RUNNING);
	agent = report_pid(bench, 0, "agent");
	kill(agent, SIGSTOP); /* it cannot forward anything now */
	stop(bench);
	assert_int_equal(describe(bench).state, ENGINE_STOPPING);
	stop(bench);
	assert_int_equal(describe(bench).state, ENGINE_STOPPING);
	body = record(bench); /* rather than wait for the margin */
	js_put(json_object_get(body, "stop"), "at",
	       json_integer(clock_mono_now().ms - STOP_MARGIN_MS - 200));
	set_record(bench, body);
	stop(bench);
	status = wait_for(bench, ENGINE_ENDED);
	assert_false(status.exit_known);
}

static void the_bundled_loader_is_used_where_there_is_one(void **state)
{
	struct bench *bench = *state;
	AUTO(auto_free) char *loader = place_path(bench->place, "agents/x/lib/loader");
	AUTO(auto_free) char *seen = place_path(bench->place, "seen");
	AUTO(auto_free)
	char *script = mem_format("#!/bin/sh\necho \"$1 $2\" > %s\nshift 2\nexec \"$@\"\n", seen);
	AUTO(auto_free)
	char *wanted = mem_format("--library-path %s/agents/x/lib\n", bench->place->root);
	AUTO(auto_free) char *got = NULL;

	write_file(loader, script, 0600); /* as a store without modes brings it */
	write_order(bench, "exit 3", 1);
	assert_int_equal(submit(bench, 1), 0);
	assert_int_equal(wait_for(bench, ENGINE_ENDED).exit, 3);
	got = read_file(seen, NULL);
	assert_string_equal(got, wanted);
}

static void a_workspace_that_cannot_be_written_is_refused(void **state)
{
	struct bench *bench = *state;
	AUTO(auto_free) char *file = place_path(bench->place, "file");
	AUTO(auto_free) char *beneath = place_path(bench->place, "file/workspace");
	AUTO(auto_free) char *full = place_path(bench->place, "mounted");
	AUTO(auto_free) char *mounted = place_path(bench->place, "mounted/a/b");
	AUTO(err_freep) struct err *err = NULL;

	write_file(file, "", 0600);
	for (int i = 0; i < 2; i++) {
		const struct engine_where where = { .workspace = i == 0 ? beneath : mounted };
		struct engine *engine = NULL;

		must(fs_mkdirs(full, &err), &err);
		if (i == 1 && mount("tmpfs", full, "tmpfs", MS_RDONLY, "size=1m") < 0)
			return; /* only root may mount */
		must(local_ops.open(&where, &engine, &err), &err);
		assert_int_equal(local_ops.check(engine, &err), -1);
		assert_int_equal(err->code, EXIT_REFUSED);
		err_freep(&err);
		local_ops.close(engine);
	}
	umount2(full, MNT_DETACH);
}

static void files_of_the_engine_are_private(void **state)
{
	struct bench *bench = *state;
	static const char *const names[] = { ENGINE_FILE, "node-0/" LOG_FILE, "node-0/" REPORT_FILE,
					     "node-0/" LOCK_FILE };

	umask(0);
	write_order(bench, "exit 0", 1);
	assert_int_equal(submit(bench, 1), 0);
	wait_for(bench, ENGINE_ENDED);
	umask(022);
	for (size_t i = 0; i < STK_LENGTH(names); i++) {
		AUTO(auto_free) char *folder = place_path(bench->place, PREFIX);
		AUTO(auto_free) char *path = fs_join(folder, names[i]);
		struct stat st;

		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 0777, 0600);
	}
}

#define T(test) cmocka_unit_test_setup_teardown(test, bench_make, bench_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_job_outlives_its_submitter_and_its_exit_status_is_kept),
		T(nothing_of_the_caller_leaks_into_the_command),
		T(no_secret_is_written_down),
		T(what_a_killed_agent_leaves_is_killed_before_it_is_called_ended),
		T(an_agent_killed_at_any_moment_leaves_nothing),
		T(an_agent_that_cannot_start_says_why_in_the_log),
		T(a_reused_pid_is_not_taken_for_the_agent),
		T(agents_that_no_record_names_are_found),
		T(a_submission_that_started_nothing_is_not_found_and_can_be_repeated),
		T(what_may_have_been_started_elsewhere_is_not_said_to_be_missing),
		T(a_lost_record_is_unseen_and_not_ended),
		T(after_a_restart_of_the_machine_it_has_ended),
		T(what_runs_in_another_container_is_unseen_until_its_locks_are_free),
		T(no_zombie_stays_behind),
		T(one_failing_node_ends_the_attempt_and_is_named),
		T(one_killed_agent_takes_the_attempt_down_and_is_named),
		T(nodes_that_end_well_wait_for_each_other),
		T(an_agent_that_does_not_stop_is_killed_after_grace_and_margin),
		T(the_bundled_loader_is_used_where_there_is_one),
		T(a_workspace_that_cannot_be_written_is_refused),
		T(files_of_the_engine_are_private),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
