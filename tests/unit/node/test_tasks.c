/* Tasks of evaluate and infer by the real agent: which run, with what, what they leave, what a
 * later attempt does again, and how nodes share them. */
#include "tests/unit/node/agent_run.h"

#include "jobs/base/hash.h"

#define NOTE "echo \"$STOKER_MODEL_ROLE $STOKER_REPEAT$STOKER_SHARD\" >>$HOME/ran\n"

/* The whole environment of an agent: HOME is where the commands note what they do. */
static pid_t start_agent(const struct place *place, const char *prefix, int node)
{
	AUTO(auto_free) char *home = mem_format("HOME=%s", place->root);
	char *env[] = { (char *)"PATH=/usr/bin:/bin", home, (char *)ORDER_TOKEN "=tok", NULL };

	return start(place, prefix, node, env, NULL);
}

/* Stores a list of data by its content, and has the order name it. */
static void put_manifest(const struct place *place, json_t *order, const char *text)
{
	char sha[SHA256_HEX];
	AUTO(auto_free) char *name = NULL, *path = NULL;

	hash_sha256_hex(text, strlen(text), sha);
	name = mem_format("%s.jsonl", sha);
	path = place_path(place, name);
	write_file(path, text, 0600);
	js_put_str(order, "data_manifest", path);
}

/* An order of an attempt with tasks, which runs this for each. */
static json_t *order_of(const struct place *place, const char *phase, int attempt,
			const char *script)
{
	AUTO(auto_free) char *prefix = mem_format("runs/r1/%s-%d/", phase, attempt);
	AUTO(auto_free) char *outputs = mem_format("runs/r1/outputs/%s-%d/", phase, attempt);
	AUTO(auto_free) char *results = mem_format("runs/r1/tasks/%s/", phase);
	AUTO(auto_free) char *model = place_path(place, "new/model.bin");
	AUTO(auto_free) char *text = mem_format("set -e\n%s", script);
	json_t *order = order_for(place, text);

	write_file(model, "new weights", 0600);
	js_put_str(order, "phase", phase);
	js_put_str(order, "prefix", prefix);
	js_put_str(order, "outputs", outputs);
	js_put(order, "attempt", json_integer(attempt));
	js_put(order, "tasks",
	       json_pack("{s:s, s:{s:s, s:s}}", "results", results, "candidate", "url", model,
			 "kind", "auto"));
	return order;
}

static json_t *order_evaluate(const struct place *place, int attempt, int repeat,
			      const char *script)
{
	AUTO(auto_free) char *old = place_path(place, "old/model.bin");
	json_t *order = order_of(place, "evaluate", attempt, script), *tasks;

	put_manifest(place, order, "{\"url\":\"/held/out\"}\n");
	write_file(old, "old weights", 0600);
	tasks = json_object_get(order, "tasks");
	js_put(tasks, "repeat", json_integer(repeat));
	js_put(tasks, "baseline", json_pack("{s:s, s:s}", "url", old, "kind", "files"));
	return order;
}

/* Returns an order for so many lines of the manifest, "/data/0" …. */
static json_t *order_infer(const struct place *place, int attempt, int lines, int shards,
			   const char *script)
{
	AUTO(auto_free) char *out = place_path(place, "results/r1");
	AUTO(sb_release) struct sb text = SB_INIT;
	json_t *order = order_of(place, "infer", attempt, script), *tasks;

	for (int i = 0; i < lines; i++)
		sb_addf(&text, "{\"url\":\"/data/%d\"}\n", i);
	put_manifest(place, order, text.text);
	tasks = json_object_get(order, "tasks");
	js_put(tasks, "shards", json_integer(shards));
	js_put_str(tasks, "output", out);
	return order;
}

/* Writes the order, and runs its agents to their end; the exit status of node 0. Steals it. */
static int run_nodes(const struct place *place, json_t *order, int nodes)
{
	AUTO(auto_free) char *prefix = mem_copy(js_str(order, "prefix"));
	pid_t agents[8];
	int first = 0;

	js_put(order, "nodes", json_integer(nodes));
	order_write(place, order);
	for (int i = 0; i < nodes; i++)
		agents[i] = start_agent(place, prefix, i);
	for (int i = 0; i < nodes; i++) {
		int status = end_of(agents[i]);

		first = i == 0 ? status : first;
	}
	return first;
}

static char *text_of(const struct place *place, const char *name)
{
	AUTO(auto_free) char *path = place_path(place, name);

	return read_file(path, NULL);
}

static json_t *json_of(const struct place *place, const char *name)
{
	AUTO(auto_free) char *path = place_path(place, name);
	AUTO(err_freep) struct err *err = NULL;
	json_t *body = NULL;

	must(js_load(path, REPORT_MAX, &body, &err), &err);
	return body;
}

static json_t *done_of(const struct place *place, const char *phase, const char *task)
{
	AUTO(auto_free) char *name = mem_format("runs/r1/tasks/%s/%s/done.json", phase, task);

	return json_of(place, name);
}

static bool is_done(const struct place *place, const char *phase, const char *task)
{
	AUTO(auto_free)
	char *path = mem_format("%s/runs/r1/tasks/%s/%s/done.json", place->root, phase, task);

	return fs_exists(path);
}

static void assert_text(const struct place *place, const char *name, const char *wanted)
{
	AUTO(auto_free) char *text = text_of(place, name);

	if (!text || strcmp(text, wanted) != 0)
		fail_msg("%s: %s", name, text ? text : "(absent)");
}

static void assert_absent(const struct place *place, const char *name)
{
	AUTO(auto_free) char *path = place_path(place, name);

	if (fs_exists(path))
		fail_msg("'%s' is there", path);
}

/* Checks the exit status, and shows the log of node 0 where an agent failed that should not. */
static void assert_exit(const struct place *place, int status, int wanted)
{
	AUTO(auto_free) char *log = text_of(place, LOG);

	if (status != wanted)
		fail_msg("exit %d: %s", status,
			 log ? log + (strlen(log) > 700 ? strlen(log) - 700 : 0) : "");
}

/* ---- evaluate ---- */

/* The candidate writes metrics.json, the baseline prints. */
#define MEASURES                                                                                   \
	NOTE "test -z \"$(ls $STOKER_OUTPUT_DIR)\"\n"                                              \
	     "cat $STOKER_DATA_MANIFEST >$STOKER_OUTPUT_DIR/seen\n"                                \
	     "echo \"with $(cat $STOKER_MODEL)\"\n"                                                \
	     "echo 'accuracy: 0.5'; echo \"accuracy: 0.9$STOKER_REPEAT\"; echo 'loss: nan'\n"      \
	     "if [ $STOKER_MODEL_ROLE = candidate ]; then\n"                                       \
	     "  printf '{\"accuracy\": 0.97, \"loss\": NaN, \"n\": 12}' "                          \
	     ">$STOKER_OUTPUT_DIR/metrics.json\nfi\n"

static json_t *order_measured(const struct place *place, int attempt, const char *script)
{
	json_t *order = order_evaluate(place, attempt, 2, script);

	js_put(order, "metrics",
	       json_pack("[{s:s, s:s}, {s:s, s:s}]", "name", "accuracy", "regex",
			 "accuracy: ([0-9.]+)", "name", "loss", "regex", "loss: (\\S+)"));
	return order;
}

static void pairs_take_turns_and_tell_what_they_measured(void **state)
{
	const struct place *place = *state;
	json_auto_t *candidate = NULL, *baseline = NULL, *body = NULL;
	const json_t *file;
	char hex[SHA256_HEX];

	assert_exit(place, run_nodes(place, order_measured(place, 1, MEASURES), 1), 0);
	assert_text(place, "ran", "candidate 1\nbaseline 1\ncandidate 2\nbaseline 2\n");
	candidate = done_of(place, "evaluate", "candidate-2");
	baseline = done_of(place, "evaluate", "baseline-2");
	assert_string_equal(js_str(candidate, "metrics_from"), "metrics.json");
	assert_true(js_real(json_object_get(candidate, "metrics"), "accuracy", 0) == 0.97);
	assert_string_equal(js_str(json_object_get(candidate, "invalid"), "loss"), "NaN");
	assert_string_equal(js_str(baseline, "metrics_from"), "log");
	assert_true(js_real(json_object_get(baseline, "metrics"), "accuracy", 0) == 0.92);
	assert_string_equal(js_str(json_object_get(baseline, "invalid"), "loss"), "nan");

	/* The baseline's files are where it says, with their sums. */
	file = json_array_get(json_object_get(baseline, "files"), 0);
	assert_string_equal(js_str(file, "file"), "node-0/seen");
	assert_int_equal(js_int(file, "size", 0), 20);
	hash_sha256_hex("{\"url\":\"/held/out\"}\n", 20, hex);
	assert_string_equal(js_str(file, "sha256"), hex);
	assert_text(place, "runs/r1/outputs/evaluate-1/baseline-2/node-0/seen",
		    "{\"url\":\"/held/out\"}\n");

	body = report_of(place, "runs/r1/evaluate-1/", 0);
	assert_int_equal(js_int(json_object_get(body, "tasks"), "done", 0), 4);
	assert_int_equal(js_int(json_object_get(body, "tasks"), "of", 0), 4);
	assert_null(js_str(json_object_get(body, "tasks"), "task"));
}

/* The sums of the model that may be promoted are told once, by the node that had it on its disk. */
static void the_first_task_tells_the_files_of_the_model(void **state)
{
	const struct place *place = *state;
	json_auto_t *first = NULL, *second = NULL;
	const json_t *file;
	char hex[SHA256_HEX];

	assert_exit(place, run_nodes(place, order_measured(place, 1, MEASURES), 1), 0);
	first = done_of(place, "evaluate", "candidate-1");
	second = done_of(place, "evaluate", "candidate-2");
	file = json_array_get(js_path(first, "model.files"), 0);
	hash_sha256_hex("new weights", 11, hex);
	assert_string_equal(js_str(file, "path"), "");
	assert_string_equal(js_str(file, "sha256"), hex);
	assert_null(json_object_get(second, "model"));
}

static void a_later_attempt_runs_only_what_is_not_done(void **state)
{
	const struct place *place = *state;
	json_auto_t *body = NULL, *done = NULL;

	/* candidate-2 fails once, with a status of its own. */
	assert_exit(
		place,
		run_nodes(place,
			  order_measured(place, 1, MEASURES "[ $STOKER_REPEAT = 1 ] || exit 7\n"),
			  1),
		7);
	assert_true(is_done(place, "evaluate", "baseline-1"));
	assert_false(is_done(place, "evaluate", "candidate-2"));
	body = report_of(place, "runs/r1/evaluate-1/", 0);
	assert_state(body, REPORT_ENDED, 7);
	assert_string_equal(js_str(json_object_get(body, "tasks"), "task"), "candidate-2");
	assert_int_equal(js_int(json_object_get(body, "tasks"), "done", 0), 2);
	assert_null(json_object_get(body, "error"));

	assert_exit(place, run_nodes(place, order_measured(place, 2, MEASURES), 1), 0);
	assert_text(place, "ran",
		    "candidate 1\nbaseline 1\ncandidate 2\ncandidate 2\nbaseline 2\n");
	done = done_of(place, "evaluate", "candidate-1");
	assert_int_equal(js_int(done, "attempt", 0), 1);

	/* If all is done, there is nothing to run. */
	assert_exit(place, run_nodes(place, order_measured(place, 3, "exit 9\n"), 1), 0);
}

static void a_metrics_file_that_is_not_flat_ends_the_attempt_with_its_reason(void **state)
{
	static const struct {
		const char *script, *part;
	} rows[] = {
		{ "echo '{\"eval\": {\"loss\": 1}}' >$STOKER_OUTPUT_DIR/metrics.json\n",
		  "candidate-1: metrics.json is nested: 'eval'" },
		{ ">$STOKER_OUTPUT_DIR/metrics.json\n", "is not valid JSON" },
		{ "truncate -s 1G $STOKER_OUTPUT_DIR/metrics.json\n", "is larger than 1 MiB" },
		{ "mkfifo $STOKER_OUTPUT_DIR/metrics.json\n", "is not a regular file" },
		{ "ln -s /etc/passwd $STOKER_OUTPUT_DIR/away\n", "'away' is a link" },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		json_auto_t *body = NULL;
		AUTO(auto_free) char *prefix = mem_format("runs/r1/evaluate-%zu/", i + 1);

		run_nodes(*state, order_measured(*state, (int)i + 1, rows[i].script), 1);
		body = report_of(*state, prefix, 0);
		assert_string_equal(js_str(body, "state"), REPORT_FAILED);
		assert_has(js_str(json_object_get(body, "error"), "message"), rows[i].part);
		assert_string_equal(js_str(json_object_get(body, "error"), "class"), "user-code");
		assert_false(is_done(*state, "evaluate", "candidate-1"));
	}
}

/* A process that a task has started is not there when the next one begins. */
static void nothing_of_a_task_outlives_it(void **state)
{
	const struct place *place = *state;
	AUTO(auto_free)
	char *script = mem_format(
		NOTE "if [ -e $HOME/pid ]; then ! kill -0 $(cat $HOME/pid) 2>/dev/null; fi\n"
		     "trap '' TERM; setsid sh -c 'trap \"\" TERM; exec sleep 1000' & echo $! "
		     ">$HOME/pid\n");

	assert_exit(place, run_nodes(place, order_measured(place, 1, script), 1), 0);
	assert_text(place, "ran", "candidate 1\nbaseline 1\ncandidate 2\nbaseline 2\n");
}

static void a_signal_ends_the_task_that_is_under_way_and_no_other_begins(void **state)
{
	const struct place *place = *state;
	AUTO(auto_free) char *ready = place_path(place, "ready");
	json_auto_t *body = NULL;
	pid_t agent;

	order_write(place, order_measured(place, 1,
					  NOTE "trap 'echo told >>$HOME/ran; exit 5' TERM\n"
					       ">$HOME/ready; while :; do sleep 0.05; done\n"));
	agent = start_agent(place, "runs/r1/evaluate-1/", 0);
	assert_true(wait_for_file(ready));
	assert_true(wait_for_state(place, "runs/r1/evaluate-1/", 0, REPORT_RUNNING));
	assert_int_equal(kill(agent, SIGTERM), 0);
	assert_int_equal(end_of(agent), 5);
	assert_text(place, "ran", "candidate 1\ntold\n");
	assert_false(is_done(place, "evaluate", "candidate-1"));
	body = report_of(place, "runs/r1/evaluate-1/", 0);
	assert_string_equal(js_str(body, "stopped"), STOPPED_SIGNAL);
}

/* ---- infer ---- */

#define APPLIES "cp $STOKER_DATA_MANIFEST $STOKER_OUTPUT_DIR/items\n"

static void each_line_is_in_one_shard_and_the_manifest_comes_last(void **state)
{
	const struct place *place = *state;
	AUTO(auto_free) char *old = place_path(place, "results/r1/shard-1/0.0/items");
	AUTO(auto_free) char *foreign = place_path(place, "results/r1/README");
	json_auto_t *manifest = NULL;
	const json_t *files;

	write_file(old, "of an attempt that was superseded", 0600);
	write_file(foreign, "not ours", 0600);
	assert_exit(place, run_nodes(place, order_infer(place, 2, 5, 3, NOTE APPLIES), 1), 0);
	assert_text(place, "ran", "candidate 0\ncandidate 1\ncandidate 2\n");
	assert_text(place, "results/r1/shard-0/2.0/items",
		    "{\"url\":\"/data/0\"}\n{\"url\":\"/data/1\"}\n");
	assert_text(place, "results/r1/shard-2/2.0/items", "{\"url\":\"/data/4\"}\n");
	assert_absent(place, "results/r1/shard-1/0.0");
	assert_text(place, "results/r1/README", "not ours");
	manifest = json_of(place, "results/r1/manifest.json");
	files = json_object_get(manifest, "files");
	assert_string_equal(js_str(manifest, "run"), "r1");
	assert_int_equal(json_array_size(files), 3);
	assert_string_equal(js_str(json_array_get(files, 1), "file"), "shard-1/2.0/items");
	assert_int_equal(js_int(json_array_get(files, 1), "shard", -1), 1);
}

static void a_shard_that_fails_is_named_with_its_objects(void **state)
{
	const struct place *place = *state;
	json_auto_t *body = NULL;
	const json_t *tasks;

	assert_exit(
		place,
		run_nodes(place,
			  order_infer(place, 1, 4, 2, APPLIES "[ $STOKER_SHARD = 0 ] || exit 3\n"),
			  1),
		3);
	body = report_of(place, "runs/r1/infer-1/", 0);
	tasks = json_object_get(body, "tasks");
	assert_string_equal(js_str(tasks, "task"), "shard-1");
	assert_int_equal(json_array_size(json_object_get(tasks, "objects")), 2);
	assert_string_equal(json_string_value(json_array_get(json_object_get(tasks, "objects"), 0)),
			    "/data/2");
	assert_absent(place, "results/r1/manifest.json");
}

/* A killed attempt leaves outputs, and perhaps done.json of some shards: the next one does the
 * rest, and each file is listed once. */
static void an_attempt_that_was_killed_leaves_no_output_behind(void **state)
{
	const struct place *place = *state;
	AUTO(auto_free) char *ready = place_path(place, "ready");
	json_auto_t *manifest = NULL;
	const json_t *row;
	pid_t agent;
	size_t i;

	order_write(place, order_infer(place, 1, 6, 3,
				       APPLIES "[ $STOKER_SHARD != 1 ] || "
					       "{ >$HOME/ready; sleep 1000; }\n"));
	agent = start_agent(place, "runs/r1/infer-1/", 0);
	assert_true(wait_for_file(ready));
	assert_int_equal(kill(agent, SIGKILL), 0);
	assert_int_equal(end_of(agent), -SIGKILL);
	assert_true(is_done(place, "infer", "shard-0"));
	assert_exit(place, run_nodes(place, order_infer(place, 2, 6, 3, NOTE APPLIES), 1), 0);
	assert_text(place, "ran", "candidate 1\ncandidate 2\n");
	assert_absent(place, "results/r1/shard-1/1.0");
	manifest = json_of(place, "results/r1/manifest.json");
	assert_int_equal(json_array_size(json_object_get(manifest, "files")), 3);
	json_array_foreach (json_object_get(manifest, "files"), i, row) {
		AUTO(auto_free)
		char *path = mem_format("%s/results/r1/%s", place->root, js_str(row, "file"));

		assert_true(fs_exists(path));
	}
}

/* ---- several nodes ---- */

static int count_of(const char *text, const char *line)
{
	int count = 0;

	for (const char *at = text; (at = strstr(at, line)); at++)
		count++;
	return count;
}

static void nodes_share_the_shards_out(void **state)
{
	const struct place *place = *state;
	json_auto_t *manifest = NULL;
	AUTO(auto_free) char *ran = NULL;

	assert_exit(place, run_nodes(place, order_infer(place, 1, 12, 12, NOTE APPLIES), 3), 0);
	ran = text_of(place, "ran");
	for (int i = 0; i < 12; i++) {
		AUTO(auto_free) char *line = mem_format("candidate %d\n", i);

		if (count_of(ran, line) != 1)
			fail_msg("%d is not done once: %s", i, ran);
	}
	manifest = json_of(place, "results/r1/manifest.json");
	assert_int_equal(json_array_size(json_object_get(manifest, "files")), 12);
}

static void nodes_work_on_each_task_together(void **state)
{
	static const char script[] =
		"echo \"$STOKER_NODE_RANK $STOKER_MODEL_ROLE $STOKER_REPEAT\" >>$HOME/ran\n"
		"echo $STOKER_NODE_RANK >$STOKER_OUTPUT_DIR/rank\n"
		/* each waits for the other, so that a task that one node does alone never ends */
		"mkdir -p $HOME/met/$STOKER_MODEL_ROLE-$STOKER_REPEAT/$STOKER_NODE_RANK\n"
		"while [ $(ls $HOME/met/$STOKER_MODEL_ROLE-$STOKER_REPEAT | wc -l) -lt 2 ]; do "
		"sleep 0.02; "
		"done\n"
		"[ $STOKER_NODE_RANK = 0 ] || echo '{\"a\": 1}' >$STOKER_OUTPUT_DIR/metrics.json\n";
	const struct place *place = *state;
	json_auto_t *done = NULL;
	AUTO(auto_free) char *ran = NULL;
	const json_t *files;

	assert_exit(place, run_nodes(place, order_evaluate(place, 1, 2, script), 2), 0);
	ran = text_of(place, "ran");
	assert_int_equal(count_of(ran, "\n"), 8);
	done = done_of(place, "evaluate", "baseline-2");
	files = json_object_get(done, "files");
	assert_int_equal(json_array_size(files), 3);
	assert_string_equal(js_str(json_array_get(files, 0), "file"), "node-0/rank");
	assert_string_equal(js_str(json_array_get(files, 1), "file"), "node-1/metrics.json");
	assert_int_equal(js_int(json_object_get(done, "metrics"), "a", 0), 1);
	assert_text(place, "runs/r1/outputs/evaluate-1/baseline-2/node-1/rank", "1\n");
}

static void a_node_whose_task_fails_ends_the_others(void **state)
{
	const struct place *place = *state;
	json_auto_t *body = NULL;

	run_nodes(place,
		  order_evaluate(place, 1, 1, "[ $STOKER_NODE_RANK = 0 ] || exit 4\nsleep 1000\n"),
		  2);
	body = report_of(place, "runs/r1/evaluate-1/", 0);
	assert_string_equal(js_str(body, "stopped"), STOPPED_PEER);
	json_decref(body);
	body = report_of(place, "runs/r1/evaluate-1/", 1);
	assert_state(body, REPORT_ENDED, 4);
	assert_false(is_done(place, "evaluate", "candidate-1"));
}

#define in_place(f) cmocka_unit_test_setup_teardown(f, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_place(pairs_take_turns_and_tell_what_they_measured),
		in_place(the_first_task_tells_the_files_of_the_model),
		in_place(a_later_attempt_runs_only_what_is_not_done),
		in_place(a_metrics_file_that_is_not_flat_ends_the_attempt_with_its_reason),
		in_place(nothing_of_a_task_outlives_it),
		in_place(a_signal_ends_the_task_that_is_under_way_and_no_other_begins),
		in_place(each_line_is_in_one_shard_and_the_manifest_comes_last),
		in_place(a_shard_that_fails_is_named_with_its_objects),
		in_place(an_attempt_that_was_killed_leaves_no_output_behind),
		in_place(nodes_share_the_shards_out),
		in_place(nodes_work_on_each_task_together),
		in_place(a_node_whose_task_fails_ends_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
