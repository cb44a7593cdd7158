/* A workspace with an opened local engine, and what tests of it do again and again:
 * orders, submits, waits, looks into the record. */
#ifndef STK_TESTS_UNIT_ENGINE_BENCH_H
#define STK_TESTS_UNIT_ENGINE_BENCH_H

#include "tests/unit/node/place.h"

#include "jobs/engine/local/local_internal.h"

struct bench {
	struct place *place;
	struct engine *engine;
};

static UNUSED int bench_make(void **state)
{
	struct bench *bench = mem_zero(1, sizeof *bench);
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *folder = NULL;
	AUTO(auto_free) char *agent = NULL;

	place_make((void **)&bench->place);
	folder = place_path(bench->place, "agents/x");
	agent = fs_join(folder, "stoker-node");
	must(fs_mkdirs(folder, &err), &err);
	assert_int_equal(symlink(STOKER_NODE, agent), 0);
	must(local_ops.open(&(struct engine_where){ .workspace = bench->place->root },
			    &bench->engine, &err),
	     &err);
	*state = bench;
	return 0;
}

static UNUSED int bench_remove(void **state)
{
	struct bench *bench = *state;

	/* Processes of a test may not live on, whatever it did. */
	assert_int_equal(processes_with(bench->place->root), 0);
	local_ops.close(bench->engine);
	place_remove((void **)&bench->place);
	free(bench);
	return 0;
}

/* An order whose shell has the place in its arguments, so that leftovers show. */
static UNUSED void write_order(struct bench *bench, const char *script, int nodes)
{
	AUTO(auto_free) char *whole = mem_format("%s; exit $?; : %s", script, bench->place->root);
	json_t *order = order_for(bench->place, whole);

	js_put(order, "nodes", json_integer(nodes));
	order_write(bench->place, order);
}

static UNUSED int submit(struct bench *bench, int nodes)
{
	static char *const env[] = { (char *)"PATH=/usr/bin:/bin", (char *)"KEY=s3cret", NULL };
	const struct engine_job job = {
		.name = "stk-r1-train-1",
		.run = "r1",
		.phase = "train",
		.attempt = 1,
		.nodes = nodes,
		.prefix = PREFIX,
		.agent_key = "agents/x/",
		.env = env,
	};
	AUTO(err_freep) struct err *err = NULL;

	return local_ops.submit(bench->engine, &job, &err);
}

static UNUSED int find(struct bench *bench)
{
	AUTO(err_freep) struct err *err = NULL;

	return local_ops.find(bench->engine, "stk-r1-train-1", PREFIX, &err);
}

static UNUSED struct engine_status describe(struct bench *bench)
{
	AUTO(err_freep) struct err *err = NULL;
	struct engine_status status;

	must(local_ops.describe(bench->engine, "stk-r1-train-1", PREFIX, &status, &err), &err);
	return status;
}

static UNUSED struct engine_status wait_for(struct bench *bench, enum engine_state state)
{
	struct engine_status status = { 0 };

	for (int i = 0; i < LOOKS; i++) {
		status = describe(bench);
		if (status.state == state)
			return status;
		pause_ms(10);
	}
	fail_msg("state is %d, not %d: %s", status.state, state, status.reason);
	return status;
}

static UNUSED void stop(struct bench *bench)
{
	AUTO(err_freep) struct err *err = NULL;

	must(local_ops.stop(bench->engine, "stk-r1-train-1", PREFIX, 100, &err), &err);
}

static UNUSED pid_t report_pid(struct bench *bench, int node, const char *who)
{
	json_auto_t *report = report_of(bench->place, PREFIX, node);

	return (pid_t)js_int(json_object_get(report, who), "pid", 0);
}

static UNUSED char *record_path(struct bench *bench)
{
	return place_path(bench->place, PREFIX ENGINE_FILE);
}

static UNUSED json_t *record(struct bench *bench)
{
	AUTO(auto_free) char *path = record_path(bench);
	AUTO(err_freep) struct err *err = NULL;
	json_t *body = NULL;

	must(js_load(path, 1 << 20, &body, &err), &err);
	return body;
}

/* Replace the engine's record. Steals the body. */
static UNUSED void set_record(struct bench *bench, json_t *body)
{
	AUTO(auto_free) char *path = record_path(bench);
	AUTO(auto_free) char *text = js_line(body);

	write_file(path, text, 0600);
	json_decref(body);
}

/* Forget that the agents are our children, as a new process would. */
static UNUSED void submit_and_die(struct bench *bench, int nodes)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(submit(bench, nodes) == 0 ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#endif
