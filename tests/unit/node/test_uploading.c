/* The uploader's orders, carried out in a workspace that refuses some of them, and by the agent
 * itself once there is no uploader; and what the agent makes of a refusal. */
#include "tests/unit/node/agent_scene.h"

#include <errno.h>

#include "jobs/node/command/command_end.h"
#include "jobs/node/upload/carry_out.h"

/* ---- orders to the uploader ---- */

/* Keeps what is said. */
static void keep(void *arg, json_t *line)
{
	json_array_append_new(arg, line);
}

struct scene {
	struct agent_config config;
	struct claim claim;
	struct store *store;
	struct carrier carrier;
	json_t *said;
};

static void scene_begin(struct scene *scene, const struct place *place)
{
	*scene = (struct scene){ .said = json_array() };
	load(&scene->config, place, order_for(place, "true"), "0");
	claim_init(&scene->claim, &scene->config);
	scene->store = open_store(place);
	scene->carrier = (struct carrier){
		.config = scene->config,
		.claim = &scene->claim,
		.store = scene->store,
		.say = keep,
		.arg = scene->said,
		.log_fd = -1,
		.times_fd = -1,
	};
}

static void scene_end(struct scene *scene)
{
	carry_out_release(&scene->carrier);
	store_freep(&scene->store);
	claim_release(&scene->claim);
	agent_config_release(&scene->config);
	json_decref(scene->said);
}

/* Carries out the order. Steals it. */
static void give(struct scene *scene, json_t *order, const char *bytes)
{
	carry_out(&scene->carrier, order, bytes, bytes ? strlen(bytes) : 0);
	json_decref(order);
}

static const json_t *only_line(const struct scene *scene, const char *news)
{
	const json_t *line = json_array_get(scene->said, 0);

	assert_int_equal(json_array_size(scene->said), 1);
	assert_true(js_is(line, "news", news));
	return line;
}

/* A folder stands in the way of that file, with something in it. */
static void block(const struct place *place, const char *name)
{
	AUTO(auto_free) char *inner = mem_format("%s/%s%s/file", place->root, PREFIX, name);

	write_file(inner, "in the way", 0600);
}

static void a_report_that_is_refused_is_said_with_its_cause(void **state)
{
	struct scene scene;
	const json_t *line;

	block(*state, "node-0/" REPORT_FILE);
	scene_begin(&scene, *state);
	give(&scene,
	     json_pack("{s:s, s:s, s:s}", "order", "report", "state", "running", "text", "{}"),
	     NULL);
	line = only_line(&scene, "refused");
	assert_string_equal(js_str(line, "state"), "running");
	assert_has(js_str(line, "why"), "cannot write the report");
	assert_has(js_str(line, "why"), "node-0/" REPORT_FILE);
	assert_int_equal(js_int(line, "errno", 0), EISDIR);
	scene_end(&scene);
}

static void a_log_that_cannot_be_opened_is_lost_and_said_once(void **state)
{
	struct scene scene;

	block(*state, "node-0/" LOG_FILE);
	scene_begin(&scene, *state);
	give(&scene, json_pack("{s:s}", "order", "log"), "a line\n");
	give(&scene, json_pack("{s:s}", "order", "log"), "another line\n");
	assert_int_equal(js_int(only_line(&scene, "log-lost"), "errno", 0), EISDIR);
	scene_end(&scene);
}

static void without_its_agent_only_the_log_is_written(void **state)
{
	AUTO(auto_free) char *log_path = place_path(*state, PREFIX "node-0/" LOG_FILE);
	AUTO(auto_free) char *report_path = place_path(*state, PREFIX "node-0/" REPORT_FILE);
	AUTO(auto_free) char *log = NULL;
	json_auto_t *of_log = json_pack("{s:s}", "order", "log");
	json_auto_t *of_report =
		json_pack("{s:s, s:s, s:s}", "order", "report", "state", "running", "text", "{}");
	struct scene scene;

	scene_begin(&scene, *state);
	carry_out_log(&scene.carrier, of_log, "a line\n", 7);
	carry_out_log(&scene.carrier, of_report, NULL, 0);
	log = read_file(log_path, NULL);
	assert_string_equal(log, "a line\n");
	assert_false(fs_exists(report_path));
	assert_int_equal(json_array_size(scene.said), 0);
	scene_end(&scene);
}

static void progress_that_is_refused_is_published_later(void **state)
{
	AUTO(auto_free) char *path = place_path(*state, PREFIX "node-0/" PROGRESS_FILE);
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *text = NULL;
	struct scene scene;

	block(*state, "node-0/" PROGRESS_FILE);
	scene_begin(&scene, *state);
	give(&scene, json_pack("{s:s, s:s}", "order", "progress", "text", "{\"step\":3}"), NULL);
	assert_non_null(scene.carrier.progress);
	must(fs_remove_tree(path, &err), &err);
	carry_out_progress(&scene.carrier);
	assert_null(scene.carrier.progress);
	text = read_file(path, NULL);
	assert_string_equal(text, "{\"step\":3}");
	scene_end(&scene);
}

static void an_order_without_what_it_needs_is_passed_over(void **state)
{
	static const char *const kinds[] = { "flag", "progress", "pace", "of-tomorrow" };
	struct scene scene;

	scene_begin(&scene, *state);
	for (size_t i = 0; i < STK_LENGTH(kinds); i++)
		give(&scene, json_pack("{s:s}", "order", kinds[i]), NULL);
	assert_int_equal(json_array_size(scene.said), 0);
	scene_end(&scene);
}

/* ---- no uploader ---- */

static void what_no_uploader_has_taken_the_agent_does_itself(void **state)
{
	AUTO(auto_free) char *log_path = place_path(*state, PREFIX "node-0/" LOG_FILE);
	AUTO(auto_free) char *report_path = place_path(*state, PREFIX "node-0/" REPORT_FILE);
	AUTO(auto_free) char *flag_path = place_path(*state, PREFIX ENDED_FILE);
	AUTO(auto_free) char *log = NULL;
	AUTO(auto_free) char *report = NULL;
	struct mono end = { clock_mono_now().ms };
	struct agent agent;

	scene_open(&agent, *state, order_for(*state, "true"), "0", false);
	agent.ended_due = agent.ended_asked = true;
	orders_give_bytes(&agent.uploader.orders, "log", "the last line\n", 14);
	uploader_report(&agent.uploader, REPORT_ENDED, "{\"state\":\"ended\"}");
	uploader_flag(&agent.uploader, ENDED_FILE, json_object());
	assert_int_equal(uploader_finish(&agent.uploader, &end, -1), UPLOADER_DEAD);
	uploader_replace(&agent.uploader, &agent.config, &agent.claim, agent.store);
	log = read_file(log_path, NULL);
	assert_string_equal(log, "the last line\n");
	report = read_file(report_path, NULL);
	assert_string_equal(report, "{\"state\":\"ended\"}");
	assert_true(fs_exists(flag_path));
	assert_false(agent.ended_due); /* it has heard of the flag */
	scene_close(&agent);
}

static void an_uploader_that_hangs_is_killed_when_its_time_is_over(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct mono end = { clock_mono_now().ms };
	struct agent agent;
	pid_t pid;

	scene_open(&agent, *state, order_for(*state, "true"), "0", false);
	must(uploader_start(&agent.uploader, &agent.config, &agent.claim, &err), &err);
	pid = agent.uploader.helper.pid;
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(uploader_finish(&agent.uploader, &end, -1), UPLOADER_TOO_LATE);
	assert_int_equal(agent.uploader.helper.pid, 0);
	assert_int_equal(kill(pid, 0), -1);
	scene_close(&agent);
}

/* A signal to stop, which waits to be taken, leaves it so long from then on. Where there is no such
 * bound, it is nobody's here. */
static void a_signal_leaves_an_uploader_its_grace_where_there_is_one(void **state)
{
	for (int bound = 0; bound < 2; bound++) {
		struct mono end = { clock_mono_now().ms + (bound ? 3600 * 1000 : 300) };
		const struct mono before = end;
		AUTO(err_freep) struct err *err = NULL;
		sigset_t stops, others;
		struct agent agent;

		scene_open(&agent, *state, order_for(*state, "true"), "0", false);
		must(uploader_start(&agent.uploader, &agent.config, &agent.claim, &err), &err);
		assert_int_equal(kill(agent.uploader.helper.pid, SIGSTOP), 0);
		sigemptyset(&stops);
		sigaddset(&stops, SIGTERM);
		assert_int_equal(sigprocmask(SIG_BLOCK, &stops, &others), 0);
		raise(SIGTERM);
		assert_int_equal(uploader_finish(&agent.uploader, &end, bound ? 0 : -1),
				 UPLOADER_TOO_LATE);
		assert_int_equal(end.ms < before.ms, bound);
		assert_int_equal(loop_stop_take(), !bound);
		assert_int_equal(sigprocmask(SIG_SETMASK, &others, NULL), 0);
		scene_close(&agent);
	}
}

/* ---- a refused report ---- */

static void hear_refusal(struct agent *agent)
{
	json_auto_t *line = json_pack("{s:s, s:s, s:i}", "news", "refused", "why",
				      "cannot write the report: full", "errno", ENOSPC);

	uploader_news_heed(agent, UPLOADER_REFUSED, line);
}

static void a_first_report_that_is_refused_is_the_agents_failure(void **state)
{
	struct agent agent;

	scene_open(&agent, *state, order_for(*state, "true"), "0", false);
	hear_refusal(&agent);
	assert_string_equal(agent.state, REPORT_FAILED);
	assert_int_equal(agent.exit, AGENT_EXIT_FAILED);
	assert_has(agent.report.said.error.message, "cannot write the report: full");
	scene_close(&agent);
}

static void a_command_of_which_nobody_could_see_is_stopped(void **state)
{
	struct agent agent;

	scene_open(&agent, *state, order_for(*state, "true"), "0", false);
	scene_command(&agent);
	hear_refusal(&agent);
	assert_string_equal(agent.stopped, STOPPED_LOG);
	assert_int_equal(agent.trouble->os_errno, ENOSPC);
	assert_null(agent.state);
	scene_close(&agent);
}

static void a_later_report_that_is_refused_is_made_good_by_the_next_one(void **state)
{
	json_auto_t *shown = json_pack("{s:s, s:s}", "news", "reported", "state", REPORT_RUNNING);
	struct agent agent;

	scene_open(&agent, *state, order_for(*state, "true"), "0", false);
	scene_command(&agent);
	uploader_news_heed(&agent, UPLOADER_REPORTED, shown);
	hear_refusal(&agent);
	assert_null(agent.stopped);
	assert_null(agent.trouble);
	/* The last one has none behind it. */
	agent.state = REPORT_ENDED;
	hear_refusal(&agent);
	assert_has(agent.trouble->message, "full");
	scene_close(&agent);
}

/* ---- graphs and outputs that must be elsewhere at the end ---- */

static void open_ended(struct agent *agent, const struct place *place, bool scratch)
{
	json_t *order = order_for(place, "true");

	js_put(order, "scratch", json_boolean(scratch));
	js_put(order, "compile",
	       json_pack("{s:s, s:s}", "kind", "jax", "cache", "s3://bucket/cache"));
	scene_open(agent, place, order, "0", true);
	agent->over = true;
}

static void a_precompile_with_graphs_that_stay_here_has_failed(void **state)
{
	static const char *const whys[] = { NULL, "cannot write 's3://bucket/cache/x': denied" };

	for (size_t i = 0; i < STK_LENGTH(whys); i++) {
		struct agent agent;

		open_ended(&agent, *state, true);
		if (whys[i]) {
			MESSAGE_MARK(&agent.report.said, cache);
			MESSAGE_SET_TEXT(&agent.report.said.cache, why, whys[i]);
		}
		command_end_conclude(&agent);
		assert_string_equal(agent.state, REPORT_FAILED);
		assert_string_equal(agent.report.said.error.class, "transient-infra");
		assert_has(agent.report.said.error.message,
			   whys[i] ? whys[i]
				   : "cannot upload the compiled graphs to 's3://bucket/cache'");
		scene_close(&agent);
	}
}

/* Some losses stand against a good end, others do not: whoever was stopped keeps its own end. */
static void the_result_is_that_of_the_command_unless_something_stayed_here(void **state)
{
	static const struct {
		const char *stopped;
		int status;
		bool scratch, drains, lost, outputs_lost, trouble, pushed;
		const char *state;
		int exit;
	} rows[] = {
		{ NULL, 0, false, false, false, false, false, true, "ended", 0 },
		{ NULL, 3 << 8, false, false, true, true, false, true, "ended", 3 },
		{ NULL, SIGSEGV, false, false, false, false, false, true, "ended", 128 + SIGSEGV },
		{ NULL, 0, false, false, true, false, false, true, "failed", AGENT_EXIT_FAILED },
		{ NULL, 0, false, false, false, true, false, true, "failed", AGENT_EXIT_FAILED },
		{ NULL, 0, false, false, false, false, true, true, "failed", AGENT_EXIT_FAILED },
		{ NULL, 0, false, true, true, false, false, true, "failed", AGENT_EXIT_FAILED },
		{ STOPPED_WORKER, 0, false, false, false, true, false, true, "failed",
		  AGENT_EXIT_FAILED },
		{ STOPPED_SIGNAL, 0, false, false, true, true, false, true, "ended", 0 },
		{ STOPPED_SUPERSEDED, 0, false, false, true, true, true, true, "not_mine",
		  AGENT_EXIT_NOT_MINE },
		{ NULL, 0, true, false, false, false, false, false, "failed", AGENT_EXIT_FAILED },
		{ NULL, 0, true, false, false, false, false, true, "ended", 0 },
		{ NULL, 3 << 8, true, false, false, false, false, false, "ended", 3 },
		{ STOPPED_SIGNAL, 0, true, false, false, false, false, false, "ended", 0 },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct agent agent;

		open_ended(&agent, *state, rows[i].scratch);
		agent.status = rows[i].status;
		agent.stopped = rows[i].stopped;
		agent.drain.at_ms = rows[i].drains;
		agent.pushed = rows[i].pushed;
		agent.leftovers = i;
		if (rows[i].lost)
			err_set(&agent.lost, EXIT_UNREACHABLE, "'step-7' was not uploaded");
		if (rows[i].outputs_lost)
			err_set(&agent.outputs.lost, EXIT_UNREACHABLE, "outputs were not uploaded");
		if (rows[i].trouble)
			err_set(&agent.trouble, EXIT_REFUSED, "no log");
		command_end_conclude(&agent);
		if (strcmp(agent.state, rows[i].state) != 0 || agent.exit != rows[i].exit)
			fail_msg("row %zu: %s, %d", i, agent.state, agent.exit);
		if (rows[i].drains)
			assert_string_equal(agent.stopped, STOPPED_DRAIN);
		assert_int_equal(agent.report.said.has_signal > 0, WIFSIGNALED(rows[i].status));
		assert_int_equal(agent.report.said.has_leftovers > 0, i > 0);
		assert_int_equal(agent.report.said.leftovers, i);
		scene_close(&agent);
	}
}

static void a_command_with_outputs_that_stay_here_has_failed(void **state)
{
	struct agent agent;

	open_ended(&agent, *state, false);
	err_set(&agent.outputs.lost, EXIT_UNREACHABLE, "cannot upload the outputs: denied");
	agent.outputs.lost_class = mem_copy("quota-permission");
	command_end_conclude(&agent);
	assert_string_equal(agent.state, REPORT_FAILED);
	assert_string_equal(agent.report.said.error.class, "quota-permission");
	assert_has(agent.report.said.error.message, "cannot upload the outputs: denied");
	scene_close(&agent);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_report_that_is_refused_is_said_with_its_cause),
		TEST(a_log_that_cannot_be_opened_is_lost_and_said_once),
		TEST(without_its_agent_only_the_log_is_written),
		TEST(progress_that_is_refused_is_published_later),
		TEST(an_order_without_what_it_needs_is_passed_over),
		TEST(what_no_uploader_has_taken_the_agent_does_itself),
		TEST(an_uploader_that_hangs_is_killed_when_its_time_is_over),
		TEST(a_signal_leaves_an_uploader_its_grace_where_there_is_one),
		TEST(a_first_report_that_is_refused_is_the_agents_failure),
		TEST(a_command_of_which_nobody_could_see_is_stopped),
		TEST(a_later_report_that_is_refused_is_made_good_by_the_next_one),
		TEST(a_precompile_with_graphs_that_stay_here_has_failed),
		TEST(the_result_is_that_of_the_command_unless_something_stayed_here),
		TEST(a_command_with_outputs_that_stay_here_has_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
