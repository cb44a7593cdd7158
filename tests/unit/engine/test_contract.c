/* Every function of every engine does what engine.h says, whatever the engine:
 * the same cases run on each row of the registry. */
#include "tests/unit/node/place.h"

#include "jobs/engine/engine.h"

#define JOB "stk-r1-train-1"

/* The agent where a driver would have put it. */
static void publish_agent(const struct place *place)
{
	AUTO(auto_free) char *folder = place_path(place, "agents/x");
	AUTO(auto_free) char *agent = fs_join(folder, "stoker-node");
	AUTO(err_freep) struct err *err = NULL;

	must(fs_mkdirs(folder, &err), &err);
	assert_int_equal(symlink(STOKER_NODE, agent), 0);
}

static struct engine *open_engine(const struct place *place, const char *name)
{
	const struct engine_where where = { .workspace = place->root };
	AUTO(err_freep) struct err *err = NULL;
	struct engine *engine = NULL;

	must(engine_find(name)->open(&where, &engine, &err), &err);
	return engine;
}

static void describe(struct engine *engine, struct engine_status *ret)
{
	AUTO(err_freep) struct err *err = NULL;

	must(engine->ops->describe(engine, JOB, PREFIX, ret, &err), &err);
}

static void wait_for(struct engine *engine, enum engine_state state, struct engine_status *ret)
{
	for (int i = 0; i < LOOKS; i++) {
		describe(engine, ret);
		if (ret->state == state)
			return;
		pause_ms(10);
	}
	fail_msg("%s: state is %d, not %d: %s", engine->ops->name, ret->state, state, ret->reason);
}

static int submit(struct engine *engine)
{
	static char *const env[] = { (char *)"PATH=/usr/bin:/bin", NULL };
	const struct engine_job job = {
		.name = JOB,
		.run = "r1",
		.phase = "train",
		.attempt = 1,
		.nodes = 1,
		.prefix = PREFIX,
		.agent_key = "agents/x/",
		.env = env,
	};
	AUTO(err_freep) struct err *err = NULL;

	return engine->ops->submit(engine, &job, &err);
}

static int find(struct engine *engine)
{
	AUTO(err_freep) struct err *err = NULL;

	return engine->ops->find(engine, JOB, PREFIX, &err);
}

static int stop(struct engine *engine)
{
	AUTO(err_freep) struct err *err = NULL;

	return engine->ops->stop(engine, JOB, PREFIX, 1000, &err);
}

/* Read the log in small pieces until nothing is new. */
static char *logs(struct engine *engine, uint64_t *offset)
{
	struct sb text = SB_INIT;
	size_t before;

	do {
		AUTO(err_freep) struct err *err = NULL;

		before = text.len;
		must(engine->ops->logs(engine, JOB, PREFIX, 0, offset, 7, &text, &err), &err);
		assert_true(text.len - before <= 7);
	} while (text.len > before);
	return sb_take(&text);
}

static const char *const engine_names[] = { "local", "batch", "sagemaker", NULL };

/* Engines of a service are left out: they need one, and tests/aws has them do the same. */
static void for_each_engine(void (*test)(struct place *place, struct engine *engine))
{
	for (size_t i = 0; engine_names[i]; i++) {
		struct place *place;
		struct engine *engine;

		if (engine_find(engine_names[i])->requests)
			continue;
		place_make((void **)&place);
		publish_agent(place);
		engine = open_engine(place, engine_names[i]);
		test(place, engine);
		engine->ops->close(engine);
		place_remove((void **)&place);
	}
}

static void each_engine_has_all_functions(void **state)
{
	(void)state;
	for (size_t i = 0; engine_names[i]; i++) {
		const struct engine_ops *ops = engine_find(engine_names[i]);

		assert_non_null(ops);
		assert_string_equal(ops->name, engine_names[i]);
		assert_true(ops->open && ops->close && ops->check && ops->submit && ops->find &&
			    ops->describe && ops->stop && ops->logs && ops->log_size);
	}
	assert_null(engine_find("nonesuch"));
	assert_null(engine_find(NULL));
}

static void before_submit(struct place *place, struct engine *engine)
{
	AUTO(err_freep) struct err *err = NULL;
	struct engine_status status;
	uint64_t offset = 0;
	AUTO(auto_free) char *text = logs(engine, &offset);
	pid_t pid;

	(void)place;
	must(engine->ops->check(engine, &err), &err);
	assert_int_equal(find(engine), 0);
	assert_int_equal(stop(engine), 0);
	describe(engine, &status);
	assert_int_equal(status.state, ENGINE_UNKNOWN); /* unknown is not ended */
	assert_string_equal(text, "");
	if (engine->ops->wake)
		assert_int_equal(engine->ops->wake(engine, JOB, PREFIX, &pid, 1), 0);
}

static void a_job_that_was_never_submitted_is_not_found_and_not_ended(void **state)
{
	(void)state;
	for_each_engine(before_submit);
}

static void whole_life(struct place *place, struct engine *engine)
{
	struct engine_status status;
	uint64_t offset = 0;
	AUTO(auto_free) char *text = NULL;
	AUTO(auto_free) char *again = NULL;
	pid_t pid = 0;

	order_write(place, order_for(place, "echo one; sleep 0.3; echo two; exit 3"));
	assert_int_equal(submit(engine), 0);
	assert_int_equal(find(engine), 1);
	assert_int_equal(submit(engine), 0); /* found, not repeated */
	if (engine->ops->wake)
		assert_true(engine->ops->wake(engine, JOB, PREFIX, &pid, 1) == 0 || pid > 1);
	wait_for(engine, ENGINE_ENDED, &status);
	assert_true(status.exit_known);
	assert_int_equal(status.exit, 3);
	assert_int_equal(status.node, 0);
	assert_true(status.started.ms > 0);
	assert_int_equal(find(engine), 1); /* there was one */
	assert_int_equal(submit(engine), 0);
	assert_int_equal(stop(engine), 0); /* gone already is fine */
	text = logs(engine, &offset);
	assert_non_null(strstr(text, "one\ntwo\n"));
	assert_null(strstr(strstr(text, "one\n") + 1, "one\n")); /* it ran once */
	assert_int_equal(offset, strlen(text));
	again = logs(engine, &offset);
	assert_string_equal(again, "");
	describe(engine, &status);
	assert_int_equal(status.state, ENGINE_ENDED);
	assert_int_equal(status.exit, 3);
}

static void a_job_lives_once_from_submission_to_its_exit_status(void **state)
{
	(void)state;
	for_each_engine(whole_life);
}

static void is_stopped(struct place *place, struct engine *engine)
{
	AUTO(auto_free) char *ready = place_path(place, "ready");
	AUTO(auto_free)
	char *script =
		mem_format("trap 'exit 9' TERM; touch %s; while :; do sleep 0.05; done", ready);
	struct engine_status status;

	order_write(place, order_for(place, script));
	assert_int_equal(submit(engine), 0);
	wait_for(engine, ENGINE_RUNNING, &status);
	assert_true(wait_for_file(ready));
	assert_int_equal(stop(engine), 0);
	assert_int_equal(stop(engine), 0);
	wait_for(engine, ENGINE_ENDED, &status);
	assert_true(status.exit_known);
	assert_int_equal(status.exit, 9);
}

static void a_running_job_ends_when_it_is_stopped(void **state)
{
	(void)state;
	for_each_engine(is_stopped);
}

static void no_order(struct place *place, struct engine *engine)
{
	(void)place;
	assert_int_equal(submit(engine), -1);
	assert_int_equal(find(engine), 0);
}

static void what_cannot_be_submitted_is_refused_for_certain(void **state)
{
	(void)state;
	for_each_engine(no_order);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_engine_has_all_functions),
		cmocka_unit_test(a_job_that_was_never_submitted_is_not_found_and_not_ended),
		cmocka_unit_test(a_job_lives_once_from_submission_to_its_exit_status),
		cmocka_unit_test(a_running_job_ends_when_it_is_stopped),
		cmocka_unit_test(what_cannot_be_submitted_is_refused_for_certain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
