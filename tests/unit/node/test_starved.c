/* A machine that gives the agent no descriptor or no process: what it says, what it tries again,
 * and that it leaves nothing open. */
#include "tests/unit/node/agent_scene.h"

#include <errno.h>
#include <sys/resource.h>

#include "jobs/node/command/command_start.h"
#include "jobs/node/command/command_watch.h"
#include "jobs/node/health/health_tool.h"
#include "jobs/node/worker_news.h"

/* ---- hunger ---- */

static int count_open(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* Limits the descriptors that are to be had from now on; -1: as many as before. */
static void leave_descriptors(int count)
{
	static struct rlimit before;
	struct rlimit limit;
	int free_fd;

	if (count < 0) {
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		return;
	}
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	/* The lowest that are free count, wherever they are. */
	limit = before;
	for (free_fd = 0; count >= 0; free_fd++)
		if (fcntl(free_fd, F_GETFD) < 0)
			count--;
	limit.rlim_cur = (rlim_t)free_fd - 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static json_t *order_far(const struct place *place)
{
	AUTO(auto_free) char *bucket = mem_format("dir:%s/bucket", place->root);
	AUTO(auto_free) char *made = place_path(place, "made");
	json_t *order = order_for(place, "true");

	js_put_str(order, "workspace", bucket);
	js_put_str(order, "outputs", "runs/r1/outputs/train/");
	js_put_str(order, "output_dir", made);
	js_put(order, "checkpoint",
	       json_pack("{s:s, s:s, s:s, s:s, s:s}", "kind", "files", "root", bucket, "sync",
			 "agent", "keep", "all", "signal", "USR1"));
	js_put(order, "health",
	       json_pack("{s:b, s:b, s:[], s:i, s:i}", "full", 1, "device", 0, "ops", "size", 1,
			 "timeout_ms", 60000));
	return order;
}

static void begin(struct agent *agent, const struct place *place)
{
	AUTO(auto_free) char *made = place_path(place, "made/model.bin");

	write_file(made, "weights", 0600);
	scene_open(agent, place, order_far(place), "0", true);
	scene_command(agent);
}

/* ---- starters of helpers ---- */

static int fetch_nothing(const struct agent_config *config, struct err **err)
{
	(void)config;
	(void)err;
	return 0;
}

static void on_fetched(void *arg, struct err *why)
{
	(void)arg;
	err_free(why);
}

static int start_prefetch(struct agent *agent, struct err **err)
{
	return prefetch_start(&agent->prefetch, &agent->config, fetch_nothing, agent->loop,
			      on_fetched, agent, err);
}

static int start_checkpointer(struct agent *agent, struct err **err)
{
	return checkpointer_start(&agent->checkpointer, &agent->config, &agent->claim, agent->loop,
				  worker_news_of_checkpointer, agent, err);
}

static int start_uploader(struct agent *agent, struct err **err)
{
	return workers_start_uploader(agent, err);
}

static int start_outputs(struct agent *agent, struct err **err)
{
	if (outputs_bring(agent))
		return 0;
	return agent->outputs.lost ? err_again(err, agent->outputs.lost) : 0;
}

static int open_pipe(struct agent *agent, struct err **err)
{
	int write_fd;

	if (command_watch_open(agent, &write_fd, err) < 0)
		return -1;
	close(write_fd);
	command_watch_close(agent);
	return 0;
}

static int run_tool(struct agent *agent, struct err **err)
{
	char *const argv[] = { (char *)"/bin/true", NULL };
	AUTO(health_tool_release) struct tool_result result = { 0 };
	struct mono end = { clock_mono_now().ms + 60000 };

	return health_tool_run(&agent->env, "/", argv, end, &result, err);
}

static const struct starter {
	const char *name;
	int (*start)(struct agent *agent, struct err **err);
	int descriptors; /* that its two ends of pipes need, and all of both */
	bool forks;
} starters[] = {
	{ "prefetch", start_prefetch, 4, true },
	{ "checkpointer", start_checkpointer, 4, true },
	{ "uploader", start_uploader, 4, true },
	{ "outputs", start_outputs, 4, true },
	{ "pipe of the command", open_pipe, 2, false },
	{ "tool", run_tool, 4, false },
};

static void without_descriptors_nothing_starts_and_nothing_is_left_open(void **state)
{
	for (size_t i = 0; i < STK_LENGTH(starters); i++) {
		for (int left = 0; left < starters[i].descriptors; left += 2) {
			struct agent agent;
			AUTO(err_freep) struct err *err = NULL;
			int before, done;

			begin(&agent, *state);
			before = count_open();
			leave_descriptors(left);
			done = starters[i].start(&agent, &err);
			leave_descriptors(-1);
			if (done >= 0)
				fail_msg("%s starts with %d descriptors", starters[i].name, left);
			assert_has(err->message, "cannot make a pipe");
			if (count_open() != before)
				fail_msg("%s leaves %d open", starters[i].name,
					 count_open() - before);
			scene_close(&agent);
		}
	}
}

static void with_descriptors_all_of_them_start(void **state)
{
	for (size_t i = 0; i < STK_LENGTH(starters); i++) {
		struct agent agent;
		AUTO(err_freep) struct err *err = NULL;

		begin(&agent, *state);
		must(starters[i].start(&agent, &err), &err);
		scene_close(&agent);
	}
}

/* Starts the agent, in a process of its own, as a user that may have no process more. */
static int start_without_processes(const struct starter *starter, const struct place *place)
{
	const struct rlimit none = { 0, 0 };
	struct agent agent;
	AUTO(err_freep) struct err *err = NULL;
	int before;

	begin(&agent, place);
	/* The process ends without scene_close(). */
	kill(agent.command, SIGKILL);
	waitpid(agent.command, NULL, 0);
	if (setrlimit(RLIMIT_NPROC, &none) < 0 || (geteuid() == 0 && setuid(65534) < 0))
		return 2;
	before = count_open();
	if (starter->start(&agent, &err) >= 0)
		return 3;
	if (!err || !strstr(err->message, "cannot start a process"))
		return 4;
	return count_open() == before ? 0 : 5;
}

static void without_processes_nothing_starts_and_nothing_is_left_open(void **state)
{
	for (size_t i = 0; i < STK_LENGTH(starters); i++) {
		pid_t pid;

		if (!starters[i].forks)
			continue;
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			_exit(start_without_processes(&starters[i], *state));
		if (end_of(pid) != 0)
			fail_msg("%s", starters[i].name);
	}
}

/* ---- starts that are tried again ---- */

static void a_worker_that_cannot_start_is_a_death_and_tried_again(void **state)
{
	struct agent agent;

	begin(&agent, *state);
	leave_descriptors(0);
	workers_keep(&agent);
	workers_keep_uploader(&agent);
	leave_descriptors(-1);
	assert_int_equal(agent.checkpointer.helper.pid, 0);
	assert_int_equal(agent.uploader.helper.pid, 0);
	assert_int_equal(agent.workers.kinds[WORKER_CHECKPOINTER].status, -1);
	assert_int_equal(agent.workers.kinds[WORKER_UPLOADER].status, -1);
	assert_null(agent.workers.lost);
	workers_keep(&agent);
	workers_keep_uploader(&agent);
	assert_true(agent.checkpointer.helper.pid > 0);
	assert_true(agent.uploader.helper.pid > 0);
	scene_close(&agent);
}

static void workers_that_never_start_are_reported_and_all_nodes_drain(void **state)
{
	AUTO(auto_free) char *path = place_path(*state, "bucket/" PREFIX DRAIN_FILE);
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *drain = NULL;
	struct agent agent;

	begin(&agent, *state);
	leave_descriptors(0);
	for (int i = 0; i <= WORKER_RESTARTS && !agent.workers.lost; i++)
		workers_keep(&agent);
	leave_descriptors(-1);
	workers_keep(&agent);
	assert_non_null(agent.workers.lost);
	assert_has(agent.workers.lost->message, "(stoker-ckpt) died ");
	assert_has(agent.workers.lost->message, "cannot start a process");
	assert_string_equal(agent.report.said.worker.name, "checkpointer");
	assert_true(agent.drain.at_ms > 0);
	must(js_load(path, REPORT_MAX, &drain, &err), &err);
	assert_string_equal(js_str(drain, "reason"), agent.workers.lost->message);
	scene_close(&agent);
}

static void never_called(void *agent)
{
	(void)agent;
	fail_msg("the command was started");
}

/* The step, which the loop repeats, is what starts it. */
static void a_check_up_that_cannot_start_is_the_agents_failure(void **state)
{
	struct agent agent;

	begin(&agent, *state);
	leave_descriptors(0);
	health_start(&agent, never_called);
	leave_descriptors(-1);
	assert_string_equal(agent.state, REPORT_FAILED);
	assert_int_equal(agent.exit, AGENT_EXIT_FAILED);
	assert_has(agent.report.said.error.message, "cannot make a pipe");
	scene_close(&agent);
}

/* A single descriptor is enough for reading a file. */
static void a_command_without_a_pipe_for_its_output_is_the_agents_failure(void **state)
{
	AUTO(auto_free) char *ran = place_path(*state, "ran");
	AUTO(auto_free) char *script = mem_format("touch %s", ran);
	struct agent agent;
	int before;

	scene_open(&agent, *state, order_for(*state, script), "0", true);
	before = count_open();
	leave_descriptors(1);
	command_start(&agent);
	leave_descriptors(-1);
	assert_string_equal(agent.state, REPORT_FAILED);
	assert_int_equal(agent.exit, AGENT_EXIT_FAILED);
	assert_has(agent.report.said.error.message, "cannot make a pipe");
	assert_int_equal(agent.command, 0);
	assert_int_equal(count_open(), before);
	assert_false(fs_exists(ran));
	scene_close(&agent);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_descriptors_nothing_starts_and_nothing_is_left_open),
		TEST(with_descriptors_all_of_them_start),
		TEST(without_processes_nothing_starts_and_nothing_is_left_open),
		TEST(a_worker_that_cannot_start_is_a_death_and_tried_again),
		TEST(workers_that_never_start_are_reported_and_all_nodes_drain),
		TEST(a_check_up_that_cannot_start_is_the_agents_failure),
		TEST(a_command_without_a_pipe_for_its_output_is_the_agents_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
