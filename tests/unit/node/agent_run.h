/* Runs the real stoker-node on an order of a test's place and says how it went. */
#ifndef STK_TESTS_UNIT_NODE_AGENT_RUN_H
#define STK_TESTS_UNIT_NODE_AGENT_RUN_H

#include "tests/unit/node/place.h"

#include "jobs/node/setup/agent_config.h"
#include "jobs/store/store.h"

#define LOG "out"

/* Start an agent, its output to the file "out" of the place, or to `out_path`.
 * `env` is its whole environment. */
static UNUSED pid_t start(const struct place *place, const char *prefix, int node, char *const *env,
			  const char *out_path)
{
	AUTO(auto_free) char *folder = place_path(place, prefix);
	AUTO(auto_free) char *order = fs_join(folder, ORDER_FILE);
	AUTO(auto_free) char *name = mem_format(LOG "-%d", node);
	AUTO(auto_free) char *own = place_path(place, node == 0 ? LOG : name);
	AUTO(auto_close)
	int out = open(out_path ? out_path : own, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	AUTO(err_freep) struct err *err = NULL;
	char rank[16];
	char *argv[] = { (char *)STOKER_NODE, order, rank, NULL };
	struct proc_start what = {
		.program = STOKER_NODE, .argv = argv, .envp = env, .in = -1, .out = out, .err = out
	};
	pid_t pid;

	snprintf(rank, sizeof rank, "%d", node);
	must(proc_spawn(&what, &pid, &err), &err);
	return pid;
}

static UNUSED char *const plain_env[] = { (char *)"PATH=/usr/bin:/bin", (char *)"HOME=/root",
					  (char *)ORDER_TOKEN "=tok", NULL };

static UNUSED int end_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Run an order to its end; the agent's exit status. Steals the order. */
static UNUSED int run(const struct place *place, json_t *order)
{
	order_write(place, order);
	return end_of(start(place, PREFIX, 0, plain_env, NULL));
}

static UNUSED int run_script(const struct place *place, const char *script)
{
	return run(place, order_for(place, script));
}

static UNUSED char *output(const struct place *place)
{
	AUTO(auto_free) char *path = place_path(place, LOG);

	return read_file(path, NULL);
}

static UNUSED json_t *report(const struct place *place)
{
	json_t *body = report_of(place, PREFIX, 0);

	assert_non_null(body);
	return body;
}

static UNUSED void assert_state(const json_t *body, const char *state, int64_t exit_status)
{
	assert_string_equal(js_str(body, "state"), state);
	assert_int_equal(js_int(body, "exit", -1), exit_status);
}

static UNUSED void assert_has(const char *text, const char *part)
{
	if (!text || !strstr(text, part))
		fail_msg("'%s' is not in: %s", part, text ? text : "(nothing)");
}

/* The order written and read as an agent of this rank does. Steals the order. */
static UNUSED void load(struct agent_config *config, const struct place *place, json_t *order,
			const char *rank)
{
	AUTO(auto_free) char *path = place_path(place, PREFIX ORDER_FILE);
	AUTO(err_freep) struct err *err = NULL;

	order_write(place, order);
	must(agent_config_load(path, rank, config, &err), &err);
	must(fs_mkdirs(config->dir, &err), &err);
}

/* The helper of an agent, as ps(1) shows it; 0: none. */
static UNUSED pid_t find_helper(pid_t agent, const char *helper)
{
	AUTO(auto_free) char *line = mem_format("%s\n", helper);
	AUTO(auto_free) char *path = mem_format("/proc/%d/task/%d/children", agent, agent);
	AUTO(auto_fclose) FILE *file = fopen(path, "re");
	long pid;

	while (file && fscanf(file, "%ld", &pid) == 1) {
		AUTO(auto_free) char *name = mem_format("/proc/%ld/comm", pid);
		AUTO(auto_fclose) FILE *comm = fopen(name, "re");
		char text[32] = "";

		if (comm && fread(text, 1, sizeof text - 1, comm) > 0 && strcmp(text, line) == 0)
			return (pid_t)pid;
	}
	return 0;
}

static UNUSED pid_t find_checkpointer(pid_t agent)
{
	return find_helper(agent, "stoker-ckpt");
}

/* The same, waited for. */
static UNUSED pid_t checkpointer_of(pid_t agent)
{
	pid_t checkpointer = 0;

	for (int i = 0; i < LOOKS && !(checkpointer = find_checkpointer(agent)); i++)
		pause_ms(10);
	assert_true(checkpointer > 0);
	return checkpointer;
}

#endif
