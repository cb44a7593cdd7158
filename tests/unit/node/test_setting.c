/* What the real stoker-node gives a command before it runs: the claim, a fresh
 * source, folders, and exactly the promised environment. */
#include "tests/unit/node/agent_run.h"

#include "jobs/source/archive.h"
#include "jobs/store/store.h"

/* The environment of `env -0` as sorted lines. */
static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *sorted_env(const char *path)
{
	struct sb all = SB_INIT;
	char *lines[200];
	size_t len = 0, count = 0;
	AUTO(auto_free) char *text = read_file(path, &len);

	assert_non_null(text);
	for (size_t at = 0; at < len && count < 200; at += strlen(text + at) + 1)
		lines[count++] = text + at;
	qsort(lines, count, sizeof *lines, compare);
	for (size_t i = 0; i < count; i++)
		sb_addf(&all, "%s\n", lines[i]);
	return sb_take(&all);
}

static void the_environment_is_exactly_what_was_promised(void **state)
{
	struct place *place = *state;
	char *const env[] = { (char *)"PATH=/usr/bin:/bin",
			      (char *)"HOME=/home/x",
			      (char *)"XLA_FLAGS=--leak",
			      (char *)"LD_LIBRARY_PATH=/leak",
			      (char *)"LANG=C.UTF-8",
			      (char *)"KEY=s3cret",
			      (char *)"PYTHONPATH=/leak",
			      (char *)ORDER_TOKEN "=tok",
			      NULL };
	AUTO(auto_free) char *dump = place_path(place, "env");
	json_t *order = order_for(place, "");
	AUTO(auto_free) char *got = NULL;
	AUTO(auto_free) char *report_text = NULL;
	AUTO(auto_free) char *report_path = place_path(place, PREFIX "node-0/" REPORT_FILE);
	AUTO(auto_free) char *wanted = NULL;
	json_auto_t *body = NULL;
	const char *port;

	js_put(order, "command", json_pack("[s,s,s]", "cp", "/proc/self/environ", dump));
	js_put(order, "env",
	       json_pack("{s:s, s:s, s:s, s:s}", "A", "run ${STOKER_RUN}, $HOME, ${HOME}",
			 "STOKER_HP_LR", "3.0e-4", "EMPTY", "", "B", "${STOKER_HP_LR}"));
	js_put(order, "secrets", json_pack("[s]", "KEY"));
	js_put(order, "cores", json_integer(32));
	js_put(order, "init_from", json_string("/models/parent"));
	order_write(place, order);
	assert_int_equal(end_of(start(place, PREFIX, 0, env, NULL)), 0);
	body = report(place);
	port = strchr(js_str(body, "master"), ':') + 1;
	got = sorted_env(dump);
	wanted = mem_format(
		"A=run r1, $HOME, ${HOME}\nB=3.0e-4\nEMPTY=\nHOME=/home/x\nKEY=s3cret\n"
		"LANG=C.UTF-8\nMASTER_ADDR=127.0.0.1\nMASTER_PORT=%s\nNEURON_RT_EXEC_TIMEOUT=600\n"
		"PATH=/usr/bin:/bin\n"
		"PET_MASTER_ADDR=127.0.0.1\nPET_MASTER_PORT=%s\nPET_NNODES=1\nPET_NODE_RANK=0\n"
		"STOKER_ATTEMPT=1\nSTOKER_CHECKPOINT_DIR=%s/" PREFIX "node-0/checkpoints\n"
		"STOKER_CORES=32\nSTOKER_HP_LR=3.0e-4\nSTOKER_INIT_FROM=/models/parent\n"
		"STOKER_MASTER_ADDR=127.0.0.1\nSTOKER_MASTER_PORT=%s\nSTOKER_NODES=1\n"
		"STOKER_NODE_RANK=0\nSTOKER_OUTPUT_DIR=%s/" PREFIX "node-0/output\n"
		"STOKER_PHASE=train\nSTOKER_RUN=r1\nSTOKER_TOKEN=tok\n",
		port, port, place->root, port, place->root);
	assert_string_equal(got, wanted);
	report_text = read_file(report_path, NULL);
	assert_null(strstr(report_text, "s3cret"));
}

static void a_secret_that_did_not_come_is_named(void **state)
{
	json_t *order = order_for(*state, "touch ran");
	json_auto_t *body = NULL;

	js_put(order, "secrets", json_pack("[s]", "WANDB_API_KEY"));
	assert_int_equal(run(*state, order), AGENT_EXIT_FAILED);
	body = report(*state);
	assert_state(body, "failed", AGENT_EXIT_FAILED);
	assert_has(js_str(json_object_get(body, "error"), "message"), "'WANDB_API_KEY'");
}

static void references_in_the_command_are_expanded(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *out = NULL;
	json_t *order = order_for(place, "");

	js_put(order, "command",
	       json_pack("[s,s,s,s,s,s,s]", "printf", "[%s]", "rank=${STOKER_NODE_RANK}",
			 "${STOKER_RESUME_FROM:-from scratch}", "$STOKER_RUN ${HOME} $$",
			 "${STOKER_bad}${STOKER_",
			 "$${STOKER_RUN}|$$${STOKER_RUN}|$$$${STOKER_RUN}|$$${STOKER_|$"));
	assert_int_equal(run(place, order), 0);
	out = output(place);
	assert_has(out, "[rank=0][from scratch][$STOKER_RUN ${HOME} $$][${STOKER_bad}${STOKER_]"
			"[${STOKER_RUN}|$r1|$${STOKER_RUN}|$${STOKER_|$]");
}

static void a_reference_to_what_is_not_set_is_an_error_that_names_it(void **state)
{
	json_t *order = order_for(*state, "echo ${STOKER_RESUME_FROM}");
	json_auto_t *body = NULL;
	const json_t *error;

	assert_int_equal(run(*state, order), AGENT_EXIT_FAILED);
	body = report(*state);
	assert_state(body, "failed", AGENT_EXIT_FAILED);
	error = json_object_get(body, "error");
	assert_has(js_str(error, "message"), "'STOKER_RESUME_FROM' is not set");
	assert_has(js_str(error, "hint"), "${STOKER_RESUME_FROM:-text}");
	assert_string_equal(js_str(error, "class"), "user-config");
}

static void write_claim(const struct place *place, int attempt)
{
	AUTO(auto_free) char *path = place_path(place, "runs/r1/claim/train");
	AUTO(auto_free)
	char *text = mem_format("{\"v\":1,\"attempt\":%d,\"job\":\"stk-r1-train-%d\",\"restart\":0,"
				"\"holder\":\"someone\"}",
				attempt, attempt);

	write_file(path, text, 0600);
}

static void without_the_claim_nothing_runs(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *ran = place_path(place, "ran");
	AUTO(auto_free) char *script = mem_format("touch %s", ran);
	json_auto_t *body = NULL;

	write_claim(place, 1); /* the same attempt, submitted twice */
	assert_int_equal(run_script(place, script), AGENT_EXIT_NOT_MINE);
	body = report(place);
	assert_state(body, "not_mine", AGENT_EXIT_NOT_MINE);
	assert_false(fs_exists(ran));
}

static void an_older_claim_is_superseded(void **state)
{
	json_t *order = order_for(*state, "true");

	write_claim(*state, 1);
	js_put(order, "attempt", json_integer(2));
	assert_int_equal(run(*state, order), 0);
}

static void a_superseded_agent_stops_its_command(void **state)
{
	struct place *place = *state;
	AUTO(auto_free)
	char *script = mem_format("while :; do sleep 0.05; done; : %s", place->root);
	json_auto_t *body = NULL;
	pid_t pid;

	order_write(place, order_for(place, script));
	pid = start(place, PREFIX, 0, plain_env, NULL);
	assert_true(wait_for_state(place, PREFIX, 0, "running"));
	write_claim(place, 2);
	assert_int_equal(end_of(pid), AGENT_EXIT_NOT_MINE);
	body = report(place);
	assert_state(body, "not_mine", AGENT_EXIT_NOT_MINE);
	assert_string_equal(js_str(body, "stopped"), "superseded");
	assert_int_equal(processes_with(place->root), 0);
}

static void two_agents_never_share_a_folder(void **state)
{
	struct place *place = *state;
	json_auto_t *body = NULL;
	pid_t first, second;

	order_write(place, order_for(place, "sleep 1000"));
	first = start(place, PREFIX, 0, plain_env, NULL);
	assert_true(wait_for_state(place, PREFIX, 0, "running"));
	second = start(place, PREFIX, 0, plain_env, NULL);
	assert_int_equal(end_of(second), AGENT_EXIT_NOT_MINE);
	body = report(place);
	assert_string_equal(js_str(body, "state"), "running");
	kill(first, SIGTERM);
	assert_int_equal(end_of(first), 128 + SIGTERM);
}

static int fill_text(void *arg, const struct archive_member *member, struct archive_sink *sink,
		     struct err **err)
{
	(void)arg;
	return archive_sink_add(sink, member->path, member->size, err);
}

/* Put a bundle with the files a.txt and train/b.txt, which hold their own names,
 * into the store. */
static void put_bundle(const struct place *place, const char *key)
{
	const struct archive_member members[] = {
		{ .path = "a.txt", .mode = 0100644, .size = 5 },
		{ .path = "train/b.txt", .mode = 0100644, .size = 11 },
	};
	AUTO(auto_free) char *path = place_path(place, "bundle.tmp");
	AUTO(store_freep) struct store *store = NULL;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_close) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	must(archive_pack(fd, members, 2, fill_text, NULL, &err), &err);
	must(store_open(place->root, &store, &err), &err);
	must(store_upload(store, path, key, &err), &err);
}

static void each_start_has_a_fresh_source_and_its_links(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *data = place_path(place, "elsewhere/data/set");
	AUTO(auto_free) char *target = place_path(place, "elsewhere/data");
	AUTO(auto_free) char *stale = place_path(place, PREFIX "node-0/src/stale");
	AUTO(auto_free) char *out = NULL;
	json_t *order = order_for(place, "cat a.txt train/b.txt data/set train/in/data/set; ls");

	put_bundle(place, "sources/x");
	write_file(data, "numbers", 0600);
	write_file(stale, "old", 0600);
	js_put(order, "source", json_string("sources/x"));
	js_put(order, "links",
	       json_pack("[[s,s],[s,s]]", "data/", target, "train/in/data", target));
	assert_int_equal(run(place, order), 0);
	out = output(place);
	assert_has(out, "a.txttrain/b.txtnumbersnumbersa.txt\ndata\ntrain\n");
	assert_null(strstr(out, "stale"));
}

static void links_stay_inside_the_source(void **state)
{
	static const char *const names[] = { "/etc/x", "../x", "a/../../x", "." };

	for (size_t i = 0; i < STK_LENGTH(names); i++) {
		json_t *order = order_for(*state, "true");
		json_auto_t *body = NULL;

		js_put(order, "attempt", json_integer((json_int_t)i + 1));
		js_put(order, "links", json_pack("[[s,s]]", names[i], "/tmp"));
		assert_int_equal(run(*state, order), AGENT_EXIT_FAILED);
		body = report(*state);
		assert_state(body, "failed", AGENT_EXIT_FAILED);
		assert_has(js_str(json_object_get(body, "error"), "message"), names[i]);
	}
}

static void a_bundle_that_is_garbage_or_gone_fails_the_agent(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *garbage = place_path(place, "sources/garbage");

	write_file(garbage, "this is no archive", 0600);
	for (int i = 0; i < 2; i++) {
		json_t *order = order_for(place, "true");
		json_auto_t *body = NULL;

		js_put(order, "attempt", json_integer(i + 1));
		js_put(order, "source", json_string(i ? "sources/none" : "sources/garbage"));
		assert_int_equal(run(place, order), AGENT_EXIT_FAILED);
		body = report(place);
		assert_state(body, "failed", AGENT_EXIT_FAILED);
		assert_has(js_str(json_object_get(body, "error"), "message"),
			   i ? "sources/none" : "cannot unpack the source");
	}
}

static void precompile_writes_into_scratch_which_is_thrown_away(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *scratch = place_path(place, PREFIX "node-0/scratch");
	AUTO(auto_free) char *out = NULL;
	json_t *order = order_for(place, "echo $STOKER_CHECKPOINT_DIR; "
					 "touch $STOKER_CHECKPOINT_DIR/zeros $STOKER_OUTPUT_DIR/x");

	js_put(order, "scratch", json_true());
	assert_int_equal(run(place, order), 0);
	assert_false(fs_exists(scratch));
	out = output(place);
	assert_has(out, "node-0/scratch/checkpoints\n");
}

static void the_checkpoint_to_resume_from_is_linked_where_scripts_look(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *file = place_path(place, "old/step-40/weights");
	AUTO(auto_free) char *from = place_path(place, "old/step-40");
	AUTO(auto_free) char *out = NULL;
	json_t *order = order_for(place, "cat $STOKER_CHECKPOINT_DIR/step-40/weights "
					 "$STOKER_RESUME_FROM/weights");

	write_file(file, "w40 ", 0600);
	js_put_str(order, "resume_from", from);
	assert_int_equal(run(place, order), 0);
	out = output(place);
	assert_has(out, "w40 w40 ");
}

static void all_nodes_start_after_node_0_and_know_its_address(void **state)
{
	struct place *place = *state;
	json_auto_t *first = NULL, *second = NULL;
	json_t *order = order_for(place, "echo rank $STOKER_NODE_RANK of $PET_NNODES");
	pid_t pids[2];

	js_put(order, "nodes", json_integer(2));
	order_write(place, order);
	pids[1] = start(place, PREFIX, 1, plain_env, NULL);
	assert_true(wait_for_state(place, PREFIX, 1, "starting"));
	pause_ms(300);
	second = report_of(place, PREFIX, 1);
	assert_string_equal(js_str(second, "state"), "starting");
	json_decref(second);
	pids[0] = start(place, PREFIX, 0, plain_env, NULL);
	assert_int_equal(end_of(pids[0]), 0);
	assert_int_equal(end_of(pids[1]), 0);
	first = report_of(place, PREFIX, 0);
	second = report_of(place, PREFIX, 1);
	assert_string_equal(js_str(first, "master"), js_str(second, "master"));
}

static void an_order_that_makes_no_sense_is_refused_in_words(void **state)
{
	static const char *const orders[] = { "{", "[]", "{\"v\":2}", "{\"v\":1,\"command\":[]}",
					      "{\"v\":1,\"command\":[1]}" };
	AUTO(auto_free) char *path = place_path(*state, PREFIX ORDER_FILE);
	AUTO(auto_free) char *out = NULL;

	for (size_t i = 0; i < STK_LENGTH(orders); i++) {
		write_file(path, orders[i], 0600);
		assert_int_equal(end_of(start(*state, PREFIX, 0, plain_env, NULL)),
				 AGENT_EXIT_FAILED);
	}
	out = output(*state);
	assert_has(out, "stoker-node: ");
}

#define T(test) cmocka_unit_test_setup_teardown(test, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_environment_is_exactly_what_was_promised),
		T(a_secret_that_did_not_come_is_named),
		T(references_in_the_command_are_expanded),
		T(a_reference_to_what_is_not_set_is_an_error_that_names_it),
		T(without_the_claim_nothing_runs),
		T(an_older_claim_is_superseded),
		T(a_superseded_agent_stops_its_command),
		T(two_agents_never_share_a_folder),
		T(each_start_has_a_fresh_source_and_its_links),
		T(links_stay_inside_the_source),
		T(a_bundle_that_is_garbage_or_gone_fails_the_agent),
		T(precompile_writes_into_scratch_which_is_thrown_away),
		T(the_checkpoint_to_resume_from_is_linked_where_scripts_look),
		T(all_nodes_start_after_node_0_and_know_its_address),
		T(an_order_that_makes_no_sense_is_refused_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
