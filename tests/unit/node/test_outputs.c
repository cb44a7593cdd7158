/* The way of the outputs: which entries of a folder arrive in a far workspace, which are left
 * and with what words, and what the agent makes of a helper that dies or takes too long. */
#include "tests/unit/node/agent_scene.h"

#include <sys/resource.h>

#define KEY "runs/r1/outputs/train/"

/* ---- a pass of the helper ---- */

/* The order of a far workspace, the folder "bucket" of the place. Its outputs lie in "made". */
static json_t *order_far(const struct place *place)
{
	AUTO(auto_free) char *bucket = mem_format("dir:%s/bucket", place->root);
	AUTO(auto_free) char *made = place_path(place, "made");
	json_t *order = order_for(place, "true");

	js_put_str(order, "workspace", bucket);
	js_put_str(order, "outputs", KEY);
	js_put_str(order, "output_dir", made);
	js_put(order, "nodes", json_integer(2));
	return order;
}

static void load_far(struct agent_config *config, const struct place *place)
{
	load(config, place, order_far(place), "0");
	config->object_workspace = true;
}

static void make(const struct place *place, const char *name, const char *text)
{
	AUTO(auto_free) char *path = mem_format("%s/made/%s", place->root, name);

	write_file(path, text, 0600);
}

/* Runs the helper's part; its last line, and how many lines there were. */
static json_t *work(const struct agent_config *config)
{
	AUTO(err_freep) struct err *err = NULL;
	char text[65536];
	json_t *last = NULL;
	int news[2];
	ssize_t len;
	char *line;

	assert_int_equal(pipe(news), 0);
	assert_int_equal(outputs_work(config, news[1]), 0);
	close(news[1]);
	len = read(news[0], text, sizeof text - 1);
	close(news[0]);
	assert_true(len > 0);
	text[len - 1] = '\0'; /* the last newline */
	line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	must(js_parse(line, strlen(line), "news", &last, &err), &err);
	assert_true(js_is(last, "news", "done"));
	return last;
}

static void assert_brought(const struct place *place, const char *name, const char *wanted)
{
	AUTO(auto_free) char *path = mem_format("%s/bucket/" KEY "node-0/%s", place->root, name);
	AUTO(auto_free) char *text = read_file(path, NULL);

	if (!wanted)
		assert_null(text);
	else if (!text || strcmp(text, wanted) != 0)
		fail_msg("'%s' is not there", path);
}

/* Returns why an entry was left, NULL: it is not among those that are named. */
static const char *why_left(const json_t *done, const char *name)
{
	const json_t *row;
	size_t i;

	json_array_foreach (json_object_get(done, "names"), i, row)
		if (js_is(row, "name", name))
			return js_str(row, "why");
	return NULL;
}

static void all_files_arrive_as_they_are(void **state)
{
	struct place *place = *state;
	AUTO(agent_config_release) struct agent_config config = { 0 };
	json_auto_t *done = NULL;

	make(place, "model.bin", "weights");
	make(place, "deep/er/log.txt", "text");
	load_far(&config, place);
	done = work(&config);
	assert_brought(place, "model.bin", "weights");
	assert_brought(place, "deep/er/log.txt", "text");
	assert_int_equal(js_int(done, "files", 0), 2);
	assert_int_equal(js_int(done, "bytes", 0), 7 + 4);
	assert_null(json_object_get(done, "left"));
	assert_null(js_str(done, "why"));
}

static void what_has_arrived_is_counted_again_and_not_sent_again(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	json_auto_t *first = NULL, *second = NULL;

	make(*state, "model.bin", "weights");
	make(*state, "other.bin", "more");
	load_far(&config, *state);
	first = work(&config);
	second = work(&config);
	assert_true(json_equal(first, second));
	assert_int_equal(js_int(second, "files", 0), 2);
}

static void as_many_are_named_as_are_of_use_and_all_are_counted(void **state)
{
	AUTO(auto_free) char *part = mem_alloc(201);
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(auto_free) char *first = NULL;
	json_auto_t *done = NULL;

	memset(part, 'n', 200);
	part[200] = '\0';
	make(*state, "last", "x");
	for (int i = 0; i < 40; i++) {
		AUTO(auto_free)
		char *name =
			mem_format("%s/%s/%s/%s/%s/%s/%02d", part, part, part, part, part, part, i);

		make(*state, name, "x");
		if (!first)
			first = mem_copy(name);
	}
	load_far(&config, *state);
	done = work(&config);
	assert_brought(*state, "last", "x");
	assert_int_equal(js_int(done, "files", 0), 1);
	assert_int_equal(js_int(done, "left", 0), 40);
	assert_int_equal(json_array_size(json_object_get(done, "names")), 16);
	assert_string_equal(why_left(done, first), "has a name too long for an object");
}

/* A start that is not the first leaves alone what the one before has brought. */
static void each_start_has_a_place_of_its_own(void **state)
{
	struct place *place = *state;
	AUTO(auto_free)
	char *second = place_path(place, "bucket/" KEY "node-0.restart-2/model.bin");
	AUTO(agent_config_release) struct agent_config config = { 0 };
	json_auto_t *first = NULL, *again = NULL;

	make(place, "model.bin", "one");
	load_far(&config, place);
	first = work(&config);
	make(place, "model.bin", "two");
	config.restart = 2;
	again = work(&config);
	assert_brought(place, "model.bin", "one");
	assert_true(fs_exists(second));
}

static void a_folder_that_is_gone_is_no_failure_of_the_workspace(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	const json_t *row;
	json_auto_t *done = NULL;

	load_far(&config, *state);
	done = work(&config);
	assert_null(js_str(done, "why"));
	assert_int_equal(js_int(done, "left", 0), 1);
	row = json_array_get(json_object_get(done, "names"), 0);
	assert_has(js_str(row, "why"), "cannot look into '");
	assert_has(js_str(row, "why"), "/made'");
}

static void a_workspace_with_a_file_in_the_way_is_named(void **state)
{
	AUTO(auto_free) char *file = place_path(*state, "bucket/runs/r1/outputs");
	AUTO(agent_config_release) struct agent_config config = { 0 };
	json_auto_t *done = NULL;

	make(*state, "model.bin", "weights");
	write_file(file, "in the way", 0600);
	load_far(&config, *state);
	done = work(&config);
	assert_int_equal(js_int(done, "files", -1), 0);
	assert_int_equal(js_int(done, "left", 0), 1);
	assert_has(js_str(json_array_get(json_object_get(done, "names"), 0), "why"),
		   "runs/r1/outputs");
}

/* ---- the agent ---- */

static void begin(struct agent *agent, const struct place *place, const char *rank)
{
	make(place, "model.bin", "weights");
	scene_open(agent, place, order_far(place), rank, true);
	scene_command(agent);
}

/* Waits until the helper is over, as the agent does. */
static void reap(struct agent *agent)
{
	assert_int_equal(waitpid(agent->outputs.helper.pid, NULL, 0), agent->outputs.helper.pid);
	outputs_gone(agent);
}

static json_t *reported(struct agent *agent)
{
	json_auto_t *all = NULL;

	outputs_report(agent);
	all = message_encode(node_report_message, &agent->report.said);
	return json_incref(json_object_get(all, "outputs"));
}

static void what_was_brought_is_reported(void **state)
{
	struct agent agent;
	json_auto_t *outputs = NULL;

	begin(&agent, *state, "0");
	assert_true(outputs_bring(&agent));
	assert_true(outputs_bring(&agent)); /* it is under way */
	reap(&agent);
	assert_false(outputs_bring(&agent));
	assert_null(agent.outputs.lost);
	assert_brought(*state, "model.bin", "weights");
	outputs = reported(&agent);
	assert_has(js_str(outputs, "url"), "/bucket/" KEY "node-0");
	assert_int_equal(js_int(outputs, "files", 0), 1);
	assert_int_equal(js_int(outputs, "bytes", 0), 7);
	assert_null(js_str(outputs, "why"));
	scene_close(&agent);
}

/* Checks that one entry is left, for this reason. */
static void assert_left(struct agent *agent, const char *why)
{
	json_auto_t *outputs = reported(agent);
	const json_t *row = json_array_get(json_object_get(outputs, "names"), 0);

	assert_int_equal(js_int(outputs, "left", 0), 1);
	assert_has(js_str(row, "why"), why);
}

static void what_was_left_is_reported_by_name(void **state)
{
	AUTO(auto_free) char *file = place_path(*state, "bucket/" KEY "node-0");
	struct agent agent;

	write_file(file, "in the way", 0600);
	begin(&agent, *state, "0");
	assert_true(outputs_bring(&agent));
	reap(&agent);
	assert_left(&agent, "node-0");
	scene_close(&agent);
}

static void nothing_is_brought_where_there_is_nothing_or_another_has_the_claim(void **state)
{
	AUTO(auto_free) char *file = place_path(*state, "made/model.bin");
	struct agent agent;
	json_auto_t *outputs = NULL;
	pid_t command;

	begin(&agent, *state, "0");
	agent.stopped = STOPPED_SUPERSEDED;
	assert_false(outputs_bring(&agent));
	agent.stopped = STOPPED_SIGNAL;
	command = agent.command;
	agent.command = 0; /* it was never started */
	assert_false(outputs_bring(&agent));
	agent.command = command;
	assert_int_equal(unlink(file), 0);
	assert_false(outputs_bring(&agent));
	outputs = reported(&agent);
	assert_null(outputs);
	scene_close(&agent);
}

/* A folder that cannot be looked into may hold what took days to compute. */
static void a_folder_that_cannot_be_read_is_not_taken_for_an_empty_one(void **state)
{
	AUTO(auto_free) char *made = place_path(*state, "made");
	AUTO(err_freep) struct err *err = NULL;
	struct agent agent;

	begin(&agent, *state, "0");
	must(fs_remove_tree(made, &err), &err);
	assert_false(outputs_bring(&agent));
	write_file(made, "no folder", 0600);
	assert_true(outputs_bring(&agent));
	reap(&agent);
	assert_left(&agent, "/made'");
	scene_close(&agent);
}

/* A write beyond the limit kills a helper of this test: unlike the agent's, its process has not
 * ignored the signal. */
static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_helper_that_dies_is_started_again_and_then_given_up(void **state)
{
	struct agent agent;
	json_auto_t *outputs = NULL;

	begin(&agent, *state, "0");
	for (int i = 0; i < 2; i++) {
		limit_files(1);
		assert_true(outputs_bring(&agent));
		limit_files(RLIM_INFINITY);
		reap(&agent);
		assert_null(agent.outputs.lost);
	}
	assert_false(outputs_bring(&agent));
	assert_non_null(agent.outputs.lost);
	assert_string_equal(agent.outputs.lost->message,
			    "cannot upload the outputs: the upload process died");
	assert_has(agent.outputs.lost->hint, "resume the run");
	assert_string_equal(agent.outputs.lost_class, "transient-infra");
	outputs = reported(&agent);
	assert_has(js_str(outputs, "why"), "the upload process died");
	scene_close(&agent);
}

static void the_start_after_a_death_brings_them(void **state)
{
	struct agent agent;

	begin(&agent, *state, "0");
	limit_files(1);
	assert_true(outputs_bring(&agent));
	limit_files(RLIM_INFINITY);
	reap(&agent);
	assert_true(outputs_bring(&agent));
	reap(&agent);
	assert_false(outputs_bring(&agent));
	assert_null(agent.outputs.lost);
	assert_brought(*state, "model.bin", "weights");
	scene_close(&agent);
}

/* Nobody has said that descriptor 0 is a helper's. */
static void the_first_start_closes_nothing(void **state)
{
	struct agent agent;
	struct stat st;

	begin(&agent, *state, "0");
	assert_int_equal(dup2(agent.relay.outlet.fd, 0), 0);
	assert_true(outputs_bring(&agent));
	assert_int_equal(fstat(0, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	reap(&agent);
	scene_close(&agent);
}

static void a_node_that_brings_says_so_at_once(void **state)
{
	struct agent agent;
	AUTO(node_report_release) struct node_report seen = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *path = NULL;
	AUTO(auto_free) char *text = NULL;
	json_auto_t *outputs = NULL;
	size_t len;

	begin(&agent, *state, "1");
	assert_true(outputs_bring(&agent));
	/* Node 0, which waits for it, reads the file that the uploader brings. */
	path = fs_join(agent.config.dir, REPORT_FILE);
	text = read_file(path, &len);
	assert_non_null(text);
	must(node_report_parse(text, len, &seen, &err), &err);
	assert_true(outputs_under_way(&seen));
	reap(&agent);
	outputs = reported(&agent);
	assert_null(js_str(outputs, "state"));
	assert_false(outputs_under_way(&agent.report.said));
	scene_close(&agent);
}

static void another_attempt_that_takes_over_ends_the_upload(void **state)
{
	struct agent agent;

	begin(&agent, *state, "0");
	assert_true(outputs_bring(&agent));
	outputs_kill(&agent);
	reap(&agent);
	assert_false(outputs_bring(&agent));
	scene_close(&agent);
}

/* Nothing is to be brought there, and the report says where it is. */
static void in_a_workspace_that_is_a_folder_they_are_there_already(void **state)
{
	struct agent agent;
	json_auto_t *outputs = NULL;

	begin(&agent, *state, "0");
	agent.config.object_workspace = false;
	assert_false(outputs_bring(&agent));
	outputs = reported(&agent);
	assert_string_equal(js_str(outputs, "url"), agent.config.output);
	scene_close(&agent);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_files_arrive_as_they_are),
		TEST(what_has_arrived_is_counted_again_and_not_sent_again),
		TEST(as_many_are_named_as_are_of_use_and_all_are_counted),
		TEST(each_start_has_a_place_of_its_own),
		TEST(a_folder_that_is_gone_is_no_failure_of_the_workspace),
		TEST(a_workspace_with_a_file_in_the_way_is_named),
		TEST(what_was_brought_is_reported),
		TEST(what_was_left_is_reported_by_name),
		TEST(nothing_is_brought_where_there_is_nothing_or_another_has_the_claim),
		TEST(a_folder_that_cannot_be_read_is_not_taken_for_an_empty_one),
		TEST(a_helper_that_dies_is_started_again_and_then_given_up),
		TEST(the_start_after_a_death_brings_them),
		TEST(the_first_start_closes_nothing),
		TEST(a_node_that_brings_says_so_at_once),
		TEST(another_attempt_that_takes_over_ends_the_upload),
		TEST(in_a_workspace_that_is_a_folder_they_are_there_already),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
