/* A service begins a job anew: what its agents go on from, where their log goes on, and what
 * an earlier start left that must not count. */
#include "tests/unit/node/agent_run.h"
#include "tests/unit/quoted.h"

#include "jobs/node/agent.h"
#include "jobs/node/main_node_exit.h"
#include "jobs/node/node_flag.h"
#include "jobs/node/report.h"

#define RESTARTED(n)                                                                               \
	((char *const[]){ (char *)"PATH=/usr/bin:/bin", (char *)"HOME=/root",                      \
			  (char *)ORDER_TOKEN "=tok", (char *)ORDER_RESTART "=" #n, NULL })

/* ---- checkpoint of a restart ---- */

/* The step is saved anew once all have read what was saved before, as collectives have it. */
static json_t *order_that_saves(const struct place *place, int nodes)
{
	AUTO(auto_free) char *root = mem_format("dir:%s/far", place->root);
	AUTO(auto_free)
	char *script = mem_format("[ -z \"$STOKER_RESUME_FROM\" ] || { "
				  "basename $STOKER_RESUME_FROM; "
				  "cat $STOKER_RESUME_FROM/*.bin > %s/read-$STOKER_NODE_RANK; "
				  "touch %s/has-read-$STOKER_NODE_RANK; "
				  "until [ -e %s/has-read-%d ] && [ -e %s/has-read-0 ]; do "
				  "sleep 0.02; done; }; "
				  "d=$STOKER_CHECKPOINT_DIR/step-10; "
				  "mkdir -p $d; echo saved$STOKER_NODE_RANK > "
				  "$d/shard-$STOKER_NODE_RANK.bin",
				  place->root, place->root, place->root, nodes - 1, place->root);
	json_t *order = order_for(place, script);

	js_put(order, "nodes", json_integer(nodes));
	js_put(order, "look_ms", json_integer(200));
	/* A node that is late by less than three beats is not taken for one that saves nothing. */
	js_put(order, "heartbeat_ms", json_integer(1000));
	js_put(order, "grace_ms", json_integer(5000));
	js_put(order, "claim_wait_ms", json_integer(20000));
	js_put(order, "checkpoint",
	       json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "kind", "files", "root", root, "sync",
			 "agent", "keep", "all", "signal", "USR1", "grace_ms", 10000));
	return order;
}

static void run_both(const struct place *place, json_t *order, char *const *env)
{
	pid_t pids[2];

	order_write(place, order);
	/* Node 0 is to decide, though it comes last. */
	for (int node = 1; node >= 0; node--)
		pids[node] = start(place, PREFIX, node, env, NULL);
	for (int node = 0; node < 2; node++)
		assert_int_equal(end_of(pids[node]), 0);
}

/* The second report in the log has the claim, and is short: it has the number too. */
static void tells_its_start_with_its_claim(struct place *place)
{
	AUTO(auto_free) char *path = place_path(place, PREFIX "node-0/log");
	AUTO(auto_free) char *text = read_file(path, NULL);
	char *line = text ? strchr(text, '\n') : NULL;

	assert_non_null(line);
	line[1 + strcspn(line + 1, "\n")] = '\0';
	assert_non_null(strstr(line, "\"claimed\""));
	assert_non_null(strstr(line, "\"restart\":1"));
}

static void a_restarted_job_goes_on_from_what_it_saved_before(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *folders = mem_format("rm -rf %s/" PREFIX "node-*", place->root);
	json_auto_t *first = NULL, *second = NULL;

	run_both(place, order_that_saves(place, 2), RESTARTED(0));
	first = report(place);
	assert_null(json_object_get(first, "resumed"));
	assert_int_equal(system(folders), 0); /* it begins on other machines */
	run_both(place, order_that_saves(place, 2), RESTARTED(1));
	for (int node = 0; node < 2; node++) {
		AUTO(auto_free) char *path = mem_format("%s/read-%d", place->root, node);
		AUTO(auto_free) char *text = read_file(path, NULL);

		assert_non_null(text);
		assert_string_equal(text, "saved0\nsaved1\n");
	}
	second = report(place);
	assert_int_equal(js_int(second, "restart", 0), 1);
	assert_int_equal(json_integer_value(js_path(second, "resumed.step")), 10);
	tells_its_start_with_its_claim(place);
}

static void with_nothing_marked_it_goes_by_its_order(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *from = place_path(place, "older/step-5");
	AUTO(auto_free) char *file = fs_join(from, "shard-0.bin");
	json_t *order = order_that_saves(place, 1);
	json_auto_t *body = NULL;

	write_file(file, "older", 0600);
	js_put_str(order, "resume_from", from);
	js_put(order, "resume_step", json_integer(5));
	order_write(place, order);
	assert_int_equal(end_of(start(place, PREFIX, 0, RESTARTED(1), NULL)), 0);
	body = report(place);
	assert_string_equal(json_string_value(js_path(body, "resumed.url")), from);
}

/* ---- log of a restart ---- */

static void write_log(const struct agent_config *config, const char *text, size_t len)
{
	AUTO(auto_free) char *log = fs_join(config->dir, LOG_FILE);
	AUTO(auto_free) char *told = fs_join(config->dir, REPORT_FILE);
	AUTO(err_freep) struct err *err = NULL;

	must(fs_write_atomic(log, text, len, 0600, &err), &err);
	write_file(told, "{}\n", 0600);
}

#define LAST "{\"order\":\"last\"}\n"

/* Runs the uploader's last round. The pieces and the file share a name in a directory: they go
 * elsewhere. */
static void bring(struct agent_config *config, const struct claim *claim)
{
	int news[2], orders[2];

	assert_int_equal(pipe(news), 0);
	assert_int_equal(pipe(orders), 0);
	assert_int_equal(write(orders[1], LAST, strlen(LAST)), strlen(LAST));
	assert_int_equal(uploader_work(config, claim, news[1], orders[0]), 0);
	for (int i = 0; i < 2; i++) {
		close(news[i]);
		close(orders[i]);
	}
}

/* All pieces, each of which must begin where the one before ends. */
static char *brought(const struct place *place)
{
	struct sb all = SB_INIT;

	for (;;) {
		AUTO(auto_free)
		char *path = mem_format("%s/bucket/" PREFIX "node-0/log/" LOG_OFFSET, place->root,
					(unsigned long long)all.len);
		size_t len = 0;
		AUTO(auto_free) char *text = read_file(path, &len);

		if (!text || len == 0)
			break;
		sb_add(&all, text, len);
		if (len < LOG_SEALED)
			break;
	}
	return sb_take(&all);
}

static size_t pieces(const struct place *place)
{
	AUTO(auto_free) char *path = place_path(place, "bucket/" PREFIX "node-0/log");
	DIR *folder = opendir(path);
	struct dirent *entry;
	size_t count = 0;

	assert_non_null(folder);
	while ((entry = readdir(folder)))
		count += entry->d_name[0] != '.';
	closedir(folder);
	return count;
}

static void load_far(struct agent_config *config, const struct place *place)
{
	AUTO(auto_free) char *bucket = mem_format("dir:%s/bucket", place->root);
	json_t *order = order_for(place, "true");

	js_put_str(order, "workspace", bucket);
	load(config, place, order, "0");
	config->object_workspace = true;
}

static void new_machine(const struct agent_config *config)
{
	AUTO(err_freep) struct err *err = NULL;

	must(fs_remove_tree(config->dir, &err), &err);
	must(fs_mkdirs(config->dir, &err), &err);
}

static void logs_of_starts_stand_behind_one_another(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(claim_release) struct claim claim = { 0 };
	AUTO(auto_free) char *once = NULL;
	AUTO(auto_free) char *twice = NULL;
	AUTO(auto_free) char *more = NULL;

	load_far(&config, *state);
	claim_init(&claim, &config);
	write_log(&config, "one\ncut of", 10);
	bring(&config, &claim);
	new_machine(&config);
	write_log(&config, "two\n", 4);
	bring(&config, &claim);
	once = brought(*state);
	assert_string_equal(once, "one\ncut of\ntwo\n");
	/* Another uploader of the same start adds what is new. */
	write_log(&config, "two\nthree\n", 10);
	bring(&config, &claim);
	twice = brought(*state);
	assert_string_equal(twice, "one\ncut of\ntwo\nthree\n");
	new_machine(&config);
	write_log(&config, "four", 4);
	bring(&config, &claim);
	more = brought(*state);
	assert_string_equal(more, "one\ncut of\ntwo\nthree\nfour");
	assert_int_equal(pieces(*state), 1);
}

static void behind_a_sealed_piece_a_new_one_begins(void **state)
{
	size_t len = LOG_SEALED + 100;
	AUTO(auto_free) char *large = mem_alloc(len + 1);
	AUTO(auto_free) char *all = NULL;
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(claim_release) struct claim claim = { 0 };

	load_far(&config, *state);
	claim_init(&claim, &config);
	memset(large, 'x', len);
	large[len] = '\0';
	write_log(&config, large, len);
	bring(&config, &claim);
	for (int i = 0; i < 2; i++) { /* a second uploader finds its place too */
		if (i == 0)
			new_machine(&config);
		write_log(&config, "two\n", 4);
		bring(&config, &claim);
	}
	all = brought(*state);
	assert_int_equal(strlen(all), len + 5);
	assert_string_equal(all + len, "\ntwo\n");
	assert_int_equal(pieces(*state), 2);
}

static int bring_report(const struct agent_config *config, struct store *store, const char *text)
{
	AUTO(auto_free) char *told = fs_join(config->dir, REPORT_FILE);
	AUTO(err_freep) struct err *err = NULL;
	int done;

	write_file(told, text, 0600);
	done = report_bring(config, store, &err);
	must(done, &err);
	return done;
}

static void who_has_no_claim_does_not_report_over_who_has(void **state)
{
	static const struct {
		const char *there, *ours; /* reports; NULL: none */
		bool brought;
	} rows[] = {
		{ NULL, "{'state':'not_mine'}", true },
		{ "{'token':'other','state':'running','claimed':1}", "{'state':'not_mine'}",
		  false },
		{ "{'token':'','state':'starting'}", "{'state':'not_mine'}", true },
		{ "{'token':'other','state':'failed'}", "{'state':'failed'}", true },
		{ "{'token':'other','state':'not_mine'}", "{'state':'running','claimed':1}", true },
	};
	AUTO(auto_free) char *root = place_path(*state, "bucket");
	AUTO(auto_free) char *path = place_path(*state, "bucket/" PREFIX "node-0/" REPORT_FILE);
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(store_freep) struct store *store = NULL;
	AUTO(err_freep) struct err *err = NULL;

	load_far(&config, *state);
	must(store_open(root, &store, &err), &err);
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *there = rows[i].there ? quoted(rows[i].there) : NULL;
		AUTO(auto_free) char *ours = quoted(rows[i].ours);
		AUTO(auto_free) char *now = NULL;

		if (there)
			write_file(path, there, 0600);
		assert_int_equal(bring_report(&config, store, ours), rows[i].brought ? 0 : 1);
		now = read_file(path, NULL);
		assert_string_equal(now, rows[i].brought ? ours : there);
	}
}

static void who_reports_nothing_brings_no_log(void **state)
{
	AUTO(auto_free) char *path = place_path(*state, "bucket/" PREFIX "node-0/" REPORT_FILE);
	AUTO(auto_free) char *log = place_path(*state, "bucket/" PREFIX "node-0/log");
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(claim_release) struct claim claim = { 0 };

	load_far(&config, *state);
	claim_init(&claim, &config);
	write_file(path, "{\"token\":\"other\",\"claimed\":1}", 0600);
	write_log(&config, "mine", 4);
	bring(&config, &claim);
	assert_false(fs_exists(log));
}

/* ---- messages to all nodes ---- */

static json_t *order_of_two(const struct place *place)
{
	json_t *order = order_for(place, "true");

	js_put(order, "nodes", json_integer(2));
	return order;
}

static void a_note_is_of_one_start(void **state)
{
	AUTO(store_freep) struct store *store = open_store(*state);
	AUTO(auto_free) char *path = place_path(*state, PREFIX FAILED_FILE);
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *body = NULL;

	load(&config, *state, order_of_two(*state), "1");
	node_flag_set(&config, store, FAILED_FILE, json_pack("{s:i}", "node", 1));
	node_flag_set(&config, store, FAILED_FILE, json_pack("{s:i}", "node", 0));
	assert_true(node_flag_is_set(&config, store, FAILED_FILE, 0));
	assert_false(node_flag_is_set(&config, store, FAILED_FILE, 1));
	must(js_load(path, REPORT_MAX, &body, &err), &err);
	assert_int_equal(js_int(body, "node", -1), 1); /* the first of a start */
	must(node_flag_clear(&config, store, FAILED_FILE, &err), &err);
	assert_true(fs_exists(path));
	config.restart = 1;
	node_flag_set(&config, store, FAILED_FILE, json_pack("{s:i}", "node", 0));
	assert_true(node_flag_is_set(&config, store, FAILED_FILE, 1));
	config.restart = 0;
	node_flag_set(&config, store, FAILED_FILE, json_pack("{s:i}", "node", 1));
	assert_true(
		node_flag_is_set(&config, store, FAILED_FILE, 1)); /* who is late says nothing */
	config.restart = 2;
	must(node_flag_clear(&config, store, FAILED_FILE, &err), &err);
	assert_false(fs_exists(path));
}

/* The flag does not stay: who looks from outside does not know which start it is of. */
static void a_failure_of_an_earlier_start_stops_nobody(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *path = place_path(place, PREFIX FAILED_FILE);
	AUTO(auto_free) char *drained = place_path(place, PREFIX DRAINED_FILE);
	json_t *order = order_for(place, "sleep 0.5");
	pid_t peer, head;

	js_put(order, "nodes", json_integer(2));
	order_write(place, order);
	write_file(path, "{\"v\":1,\"node\":0,\"exit\":1}\n", 0600);
	write_file(drained, "{\"v\":1}\n", 0600);
	head = start(place, PREFIX, 0, RESTARTED(1), NULL);
	peer = start(place, PREFIX, 1, RESTARTED(1), NULL);
	assert_int_equal(end_of(peer), 0);
	assert_int_equal(end_of(head), 0);
	assert_false(fs_exists(path));
	assert_false(fs_exists(drained));
}

/* ---- node 0 is over before another node looks ---- */

static void tell_of_head(const struct place *place, int exit_status, const char *stopped,
			 int64_t ended)
{
	AUTO(auto_free) char *path = place_path(place, PREFIX "node-0/" REPORT_FILE);
	json_auto_t *body =
		json_pack("{s:s, s:s, s:s, s:i, s:I}", "state", "ended", "job", "stk-r1-train-1",
			  "token", "", "exit", exit_status, "ended", (json_int_t)ended);
	AUTO(auto_free) char *text = NULL;

	js_put_str(body, "stopped", stopped);
	text = js_line(body);
	write_file(path, text, 0600);
}

static void node_0_that_is_over_is_not_waited_for(void **state)
{
	AUTO(store_freep) struct store *store = open_store(*state);
	AUTO(claim_release) struct claim head = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	struct agent agent = { .store = store, .begun = clock_utc_now() };
	struct agent_config zero;
	enum claim_state got;

	load(&agent.config, *state, order_of_two(*state), "1");
	agent.config.platform.restart = -1; /* the service tells none */
	zero = agent.config;
	zero.node = 0;
	claim_init(&head, &zero);
	claim_init(&agent.claim, &agent.config);
	must(loop_new(&agent.loop, &err), &err);
	must(claim_take(&head, &zero, store, &got, &err), &err);
	must(claim_take(&agent.claim, &agent.config, store, &got, &err), &err);
	assert_int_equal(got, CLAIM_NOT_YET); /* it may be of an earlier start */
	assert_false(main_node_exit_missed(&agent));
	tell_of_head(*state, 0, STOPPED_SIGNAL, agent.begun.ms);
	assert_false(main_node_exit_missed(&agent));
	tell_of_head(*state, 0, NULL, agent.begun.ms - 300000);
	assert_false(main_node_exit_missed(&agent));
	tell_of_head(*state, 0, NULL, agent.begun.ms - 1000);
	assert_true(main_node_exit_missed(&agent));
	assert_null(agent.state);
	must(claim_take(&agent.claim, &agent.config, store, &got, &err), &err);
	assert_int_equal(got, CLAIM_OURS);
	agent.claim.believed = false;
	tell_of_head(*state, 1, NULL, agent.begun.ms + 1000);
	assert_true(main_node_exit_missed(&agent));
	assert_string_equal(agent.state, REPORT_ENDED);
	assert_string_equal(agent.stopped, STOPPED_PEER);
	loop_freep(&agent.loop);
	claim_release(&agent.claim);
	agent_config_release(&agent.config);
}

static void what_is_no_end_of_this_start_of_node_0_is_passed_over(void **state)
{
	enum { JUST = 60000 }; /* nodes of one start begin within this time */
	static const struct {
		const char *state, *job, *token;
		int64_t before; /* of our beginning */
		int node;
		bool told, believed; /* the service tells restarts; node 0 is known to be there */
		bool missed;
	} rows[] = {
		{ "ended", "stk-r1-train-1", "", 0, 1, false, false, true },
		{ "failed", "stk-r1-train-1", "", 0, 1, false, false, true },
		{ "ended", "stk-r1-train-1", NULL, 0, 1, false, false, true },
		{ "running", "stk-r1-train-1", "", 0, 1, false, false, false },
		{ "ended", "stk-r1-train-2", "", 0, 1, false, false, false },
		{ "ended", "stk-r1-train-1", "other", 0, 1, false, false, false },
		{ "ended", "stk-r1-train-1", "", JUST, 1, false, false, true },
		{ "ended", "stk-r1-train-1", "", JUST + 1, 1, false, false, false },
		{ "ended", "stk-r1-train-1", "", 0, 0, false, false, false },
		{ "ended", "stk-r1-train-1", "", 0, 1, true, false, false },
		{ "ended", "stk-r1-train-1", "", 0, 1, false, true, false },
	};
	AUTO(auto_free) char *path = place_path(*state, PREFIX "node-0/" REPORT_FILE);
	AUTO(store_freep) struct store *store = open_store(*state);

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		struct agent agent = { .store = store, .begun = { 1000000 } };
		json_auto_t *body =
			json_pack("{s:s, s:s, s:s*, s:i, s:I}", "state", rows[i].state, "job",
				  rows[i].job, "token", rows[i].token, "exit", 0, "ended",
				  (json_int_t)(agent.begun.ms - rows[i].before));
		AUTO(auto_free) char *text = js_line(body);

		load(&agent.config, *state, order_of_two(*state), rows[i].node ? "1" : "0");
		agent.config.platform.restart = rows[i].told ? 0 : -1;
		agent.claim.believed = rows[i].believed;
		write_file(path, text, 0600);
		if (main_node_exit_missed(&agent) != rows[i].missed)
			fail_msg("row %zu", i);
		assert_int_equal(agent.claim.believed, rows[i].missed || rows[i].believed);
		agent_config_release(&agent.config);
	}
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_restarted_job_goes_on_from_what_it_saved_before),
		TEST(with_nothing_marked_it_goes_by_its_order),
		TEST(logs_of_starts_stand_behind_one_another),
		TEST(behind_a_sealed_piece_a_new_one_begins),
		TEST(who_has_no_claim_does_not_report_over_who_has),
		TEST(who_reports_nothing_brings_no_log),
		TEST(a_note_is_of_one_start),
		TEST(a_failure_of_an_earlier_start_stops_nobody),
		TEST(node_0_that_is_over_is_not_waited_for),
		TEST(what_is_no_end_of_this_start_of_node_0_is_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
