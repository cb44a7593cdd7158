/* The agent's side of an upload of outputs: how long it may take, what is told of it and when it is
 * lost, with a helper that does what the test says. */
#include "tests/unit/node/ticks.h"
#include "tests/unit/quoted.h"

#include <poll.h>

#include "jobs/node/news.h"

#define GRACE_MS  20000
#define SILENT_MS 300000
#define SHOW_MS   15000
#define LEAST_MS  2000

/* ---- the helper ---- */

static const char *says; /* lines, with ' for "; then it waits to be killed, or ends */
static bool ends;

int __wrap_outputs_work(const struct agent_config *config, int news_fd);

int __wrap_outputs_work(const struct agent_config *config, int news_fd)
{
	AUTO(auto_free) char *lines = quoted(says);

	(void)config;
	if (write(news_fd, lines, strlen(lines)) != (ssize_t)strlen(lines))
		return 1;
	while (!ends)
		pause();
	return 0;
}

/* ---- the agent ---- */

static void begin(struct agent *agent, struct place *place, const char *rank, int64_t stop_ms)
{
	AUTO(auto_free) char *made = place_path(place, "made");
	AUTO(auto_free) char *model = place_path(place, "made/model.bin");
	json_t *order = order_for(place, "true");

	write_file(model, "weights", 0600);
	js_put(order, "nodes", json_integer(2));
	js_put(order, "grace_ms", json_integer(GRACE_MS));
	js_put(order, "stop_ms", json_integer(stop_ms));
	js_put_str(order, "outputs", "runs/r1/outputs/train/");
	js_put_str(order, "output_dir", made);
	memset(timers, 0, sizeof timers);
	scene_open(agent, place, order, rank, true);
	scene_command(agent);
	says = "";
	ends = false;
}

/* News of the helper, as the loop would hand it on. */
static void hear(struct agent *agent)
{
	struct pollfd news = { .fd = agent->outputs.helper.news_fd, .events = POLLIN };

	assert_int_equal(poll(&news, 1, -1), 1);
	news_read(&agent->outputs.news);
}

/* The helper has ended, or been killed, and is reaped. */
static void reap(struct agent *agent)
{
	pid_t pid = agent->outputs.helper.pid;

	assert_int_equal(waitpid(pid, NULL, 0), pid);
	outputs_gone(agent);
}

static void bring_to_its_end(struct agent *agent, const char *lines)
{
	says = lines;
	ends = true;
	assert_true(outputs_bring(agent));
	reap(agent);
}

/* ---- presence of outputs ---- */

static void without_outputs_nothing_is_brought(void **state)
{
	for (int i = 0; i < 7; i++) {
		AUTO(auto_free) char *made = place_path(*state, "made");
		AUTO(err_freep) struct err *err = NULL;
		struct agent agent;

		begin(&agent, *state, "0", 0);
		if (i == 0) {
			kill(agent.command, SIGKILL);
			waitpid(agent.command, NULL, 0);
			agent.command = 0;
		}
		if (i == 1)
			agent.config.outputs = NULL;
		if (i == 2)
			agent.config.object_workspace = false;
		if (i == 3)
			agent.stopped = STOPPED_SUPERSEDED;
		if (i >= 4)
			must(fs_remove_tree(made, &err), &err);
		if (i == 5)
			must(fs_mkdirs(made, &err), &err);
		if (i == 6)
			agent.stopped = STOPPED_SIGNAL;
		if (outputs_bring(&agent))
			fail_msg("row %d", i);
		if (i != 2) {
			outputs_report(&agent);
			assert_false(agent.report.said.has_outputs);
		}
		scene_close(&agent);
	}
}

/* ---- result of an upload ---- */

static void what_is_brought_is_counted_with_its_place(void **state)
{
	const struct node_report_outputs *said;
	struct agent agent;

	begin(&agent, *state, "0", 0);
	said = &agent.report.said.outputs;
	bring_to_its_end(&agent, "{'news':'done','files':3,'bytes':70,'renamed':1,'left':2,"
				 "'names':[{'name':'a','why':'is a dangling link'}]}\n");
	assert_false(outputs_bring(&agent)); /* it is over */
	assert_null(agent.outputs.lost);
	assert_int_equal(next_ms(), -1);
	outputs_report(&agent);
	assert_has(said->url, "/runs/r1/outputs/train/node-0");
	assert_int_equal(said->files, 3);
	assert_int_equal(said->bytes, 70);
	assert_int_equal(said->renamed, 1);
	assert_int_equal(said->left, 2);
	assert_string_equal(said->names.items[0].name, "a");
	assert_string_equal(said->names.items[0].why, "is a dangling link");
	assert_null(said->why);
	scene_close(&agent);
}

static void what_was_not_counted_is_not_told(void **state)
{
	const struct node_report_outputs *said;
	struct agent agent;

	begin(&agent, *state, "0", 0);
	said = &agent.report.said.outputs;
	bring_to_its_end(&agent, "{'news':'done'}\n");
	outputs_report(&agent);
	assert_true(agent.report.said.has_outputs);
	assert_false(said->has_files || said->has_bytes || said->has_renamed || said->has_left);
	assert_false(said->has_names);
	scene_close(&agent);
}

/* The command made the outputs where they belong if the workspace is a directory. */
static void in_a_directory_the_place_is_told(void **state)
{
	AUTO(auto_free) char *made = place_path(*state, "made");
	struct agent agent;

	begin(&agent, *state, "0", 0);
	agent.config.object_workspace = false;
	outputs_report(&agent);
	assert_string_equal(agent.report.said.outputs.url, made);
	scene_close(&agent);
}

static void what_is_lost_is_told_with_its_cause(void **state)
{
	struct agent agent;

	begin(&agent, *state, "0", 0);
	bring_to_its_end(&agent, "{'news':'done','why':'denied','hint':'ask','class':"
				 "'quota-permission'}\n");
	assert_string_equal(agent.outputs.lost->message, "cannot upload the outputs: denied");
	assert_string_equal(agent.outputs.lost->hint, "ask");
	assert_string_equal(agent.outputs.lost_class, "quota-permission");
	outputs_report(&agent);
	assert_string_equal(agent.report.said.outputs.why, "cannot upload the outputs: denied");
	scene_close(&agent);
	begin(&agent, *state, "0", 0);
	bring_to_its_end(&agent, "{'news':'done','why':'denied','class':'x'}\n");
	assert_has(agent.outputs.lost->hint, "resume the run");
	scene_close(&agent);
}

static void a_helper_that_dies_is_started_once_more(void **state)
{
	struct agent agent;

	begin(&agent, *state, "0", 0);
	bring_to_its_end(&agent, "{'news':'moving','bytes':1}\n");
	assert_null(agent.outputs.lost);
	bring_to_its_end(&agent, "");
	assert_null(agent.outputs.lost);
	assert_false(outputs_bring(&agent));
	assert_string_equal(agent.outputs.lost->message,
			    "cannot upload the outputs: the upload process died");
	assert_string_equal(agent.outputs.lost_class, "transient-infra");
	scene_close(&agent);
	begin(&agent, *state, "0", 0);
	bring_to_its_end(&agent, "");
	bring_to_its_end(&agent, "{'news':'done','files':1}\n");
	assert_false(outputs_bring(&agent));
	assert_null(agent.outputs.lost);
	scene_close(&agent);
}

static void who_is_superseded_brings_no_more(void **state)
{
	struct agent agent;

	begin(&agent, *state, "0", 0);
	assert_true(outputs_bring(&agent));
	outputs_kill(&agent);
	reap(&agent);
	assert_false(outputs_bring(&agent));
	assert_null(agent.outputs.lost);
	scene_close(&agent);
}

/* ---- time ---- */

static void as_long_as_bytes_move_it_goes_on(void **state)
{
	struct agent agent;

	begin(&agent, *state, "0", 0);
	says = "{'news':'moving','bytes':1}\n";
	assert_true(outputs_bring(&agent));
	assert_true(outputs_bring(&agent)); /* it is under way */
	assert_int_equal(next_ms(), SILENT_MS);
	pass_time(&agent, SILENT_MS - 1, NULL);
	hear(&agent);
	assert_int_equal(next_ms(), SILENT_MS);
	pass_time(&agent, SILENT_MS, NULL);
	reap(&agent);
	assert_string_equal(agent.outputs.lost->message,
			    "cannot upload the outputs: the workspace accepted no data for 5 "
			    "minutes");
	assert_string_equal(agent.outputs.lost_class, "transient-infra");
	assert_false(outputs_bring(&agent));
	scene_close(&agent);
}

static void after_a_signal_it_has_its_share_of_the_time(void **state)
{
	static const struct {
		int64_t stop_ms, after_ms, left_ms;
	} rows[] = {
		{ 12000, 1000, 9000 }, /* five sixths of it */
		{ 12000, 9500, LEAST_MS },
		{ 12000, 60000, LEAST_MS },
		{ 0, 1000, GRACE_MS - 1000 },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct agent agent;

		begin(&agent, *state, "0", rows[i].stop_ms);
		says = "{'news':'moving','bytes':1}\n";
		agent.told_at = clock_mono_now();
		ticks_ms += rows[i].after_ms;
		assert_true(outputs_bring(&agent));
		assert_int_equal(next_ms(), rows[i].left_ms);
		pass_time(&agent, 100, NULL);
		hear(&agent); /* which gives it no more */
		assert_int_equal(next_ms(), rows[i].left_ms - 100);
		pass_time(&agent, rows[i].left_ms, NULL);
		reap(&agent);
		assert_has(agent.outputs.lost->message,
			   "the time between the signal and the end was too short");
		scene_close(&agent);
	}
}

static void a_signal_meanwhile_shortens_it(void **state)
{
	struct agent agent;

	begin(&agent, *state, "0", 0);
	outputs_signalled(&agent);
	assert_int_equal(next_ms(), -1); /* none is under way */
	assert_true(outputs_bring(&agent));
	agent.told_at = clock_mono_now();
	outputs_signalled(&agent);
	assert_int_equal(next_ms(), GRACE_MS);
	scene_close(&agent);
}

/* ---- signs of life meanwhile ---- */

/* Node 0 waits for such a node. */
static void other_nodes_show_that_it_is_under_way(void **state)
{
	const struct node_report_outputs *said;
	AUTO(auto_free) char *first = NULL;
	AUTO(auto_free) char *early = NULL;
	AUTO(auto_free) char *late = NULL;
	struct agent agent;

	begin(&agent, *state, "1", 0);
	said = &agent.report.said.outputs;
	says = "{'news':'moving','bytes':7}\n";
	assert_true(outputs_bring(&agent));
	assert_true(outputs_under_way(&agent.report.said));
	first = ordered(&agent);
	assert_int_equal(count_of(first, "\"report\""), 1);
	ticks_ms += SHOW_MS - 1;
	hear(&agent);
	early = ordered(&agent);
	assert_int_equal(count_of(early, "\"report\""), 0);
	assert_int_equal(said->bytes, 0);
	/* Nothing but the time that has passed is new. */
	kill(agent.outputs.helper.pid, SIGKILL);
	reap(&agent);
	ticks_ms++;
	assert_true(outputs_bring(&agent));
	late = ordered(&agent);
	assert_int_equal(count_of(late, "\"report\""), 1);
	assert_int_equal(said->bytes, 7);
	assert_true(outputs_under_way(&agent.report.said));
	outputs_report(&agent);
	assert_false(outputs_under_way(&agent.report.said));
	scene_close(&agent);
}

static void node_0_shows_nothing_of_it(void **state)
{
	AUTO(auto_free) char *orders = NULL;
	struct agent agent;

	begin(&agent, *state, "0", 0);
	assert_true(outputs_bring(&agent));
	orders = ordered(&agent);
	assert_int_equal(count_of(orders, "\"report\""), 0);
	assert_false(outputs_under_way(&agent.report.said));
	scene_close(&agent);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, ticks_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_outputs_nothing_is_brought),
		TEST(what_is_brought_is_counted_with_its_place),
		TEST(what_was_not_counted_is_not_told),
		TEST(in_a_directory_the_place_is_told),
		TEST(what_is_lost_is_told_with_its_cause),
		TEST(a_helper_that_dies_is_started_once_more),
		TEST(who_is_superseded_brings_no_more),
		TEST(as_long_as_bytes_move_it_goes_on),
		TEST(after_a_signal_it_has_its_share_of_the_time),
		TEST(a_signal_meanwhile_shortens_it),
		TEST(other_nodes_show_that_it_is_under_way),
		TEST(node_0_shows_nothing_of_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
