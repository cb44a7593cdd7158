/* What a node does when its command is over and there may be little time: the newest
 * checkpoint first, the others looked at often; and what node 0 and they know of each other. */
#include "tests/unit/node/agent_run.h"

#include <poll.h>

#include "jobs/node/checkpoints/checkpoint_coordinator.h"
#include "jobs/node/checkpoints/checkpointer.h"
#include "jobs/node/node_flag.h"
#include "jobs/node/upload/uploader.h"

#define LAST "{\"order\":\"last\"}\n"

static json_t *order_with_root(const struct place *place, int nodes)
{
	AUTO(auto_free) char *root = mem_format("dir:%s/far", place->root);
	json_t *order = order_for(place, "true");

	js_put(order, "nodes", json_integer(nodes));
	js_put(order, "checkpoint",
	       json_pack("{s:s, s:s, s:s, s:s}", "kind", "files", "root", root, "sync", "agent",
			 "keep", "all"));
	return order;
}

/* ---- the newest first ---- */

/* The steps in the order in which they were marked, each with a blank behind it. */
static void marked(int fd, struct sb *ret)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	char buffer[4096];
	ssize_t len;

	while ((len = read(fd, buffer, sizeof buffer)) > 0)
		sb_add(&text, buffer, (size_t)len);
	for (char *line = strtok(text.text, "\n"); line; line = strtok(NULL, "\n")) {
		AUTO(err_freep) struct err *err = NULL;
		json_auto_t *news = NULL;

		must(js_parse(line, strlen(line), "the checkpointer's line", &news, &err), &err);
		if (strcmp(js_str(news, "news"), "marked") == 0)
			sb_addf(ret, "%lld ", (long long)js_int(news, "step", -1));
	}
}

static void in_the_last_pass_the_newest_comes_first(void **state)
{
	static const char *const steps[] = { "8", "9", "10" };
	AUTO(store_freep) struct store *store = open_store(*state);
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(claim_release) struct claim claim = { 0 };
	AUTO(sb_release) struct sb order = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;
	enum claim_state got;
	int news[2], orders[2];

	load(&config, *state, order_with_root(*state, 1), "0");
	claim_init(&claim, &config);
	must(claim_take(&claim, &config, store, &got, &err), &err);
	for (size_t i = 0; i < STK_LENGTH(steps); i++) {
		AUTO(auto_free) char *name = mem_format("step-%s/state.bin", steps[i]);
		AUTO(auto_free) char *path = fs_join(config.checkpoint, name);

		write_file(path, "state", 0600);
	}
	assert_int_equal(pipe(news), 0);
	assert_int_equal(pipe(orders), 0);
	assert_int_equal(write(orders[1], LAST, strlen(LAST)), strlen(LAST));
	assert_int_equal(checkpointer_work(&config, &claim, news[1], orders[0]), 0);
	close(news[1]);
	marked(news[0], &order);
	assert_string_equal(order.text, "10 9 8 ");
	close(news[0]);
	close(orders[0]);
	close(orders[1]);
}

/* ---- the others are looked at often ---- */

static int holds(void *arg)
{
	(void)arg;
	return 1;
}

static void node_0_that_leaves_looks_about_once_a_second(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *url = mem_format("dir:%s/far", place->root);
	AUTO(store_freep) struct store *object_workspace = NULL;
	AUTO(checkpoint_coordinator_freep) struct checkpoint_coordinator *coordinator = NULL;
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	const struct coordinator_hooks hooks = { .holds = holds };
	struct ckpt_root root = { .path = "", .attempt = 1, .nonce = NONCE };

	load(&config, place, order_with_root(place, 2), "0");
	assert_int_equal(config.look_ms, ORDER_HEARTBEAT_REMOTE_MS);
	must(store_open(url, &object_workspace, &err), &err);
	root.store = object_workspace;
	coordinator = checkpoint_coordinator_new(&config, &root, checkpoint_kind_find("files"),
						 config.checkpoint, &hooks);
	assert_true(checkpoint_coordinator_finish(coordinator, NULL, false));
	for (int i = 0; i < 20; i++) {
		(void)!checkpoint_coordinator_waiting(coordinator);
		assert_in_range(checkpoint_coordinator_pause(coordinator), 1, 1000);
	}
}

/* ---- node 0 has ended, and this one has not ---- */

static void a_node_that_outlives_node_0_hears_of_it_and_shows_that_it_lives(void **state)
{
	AUTO(store_freep) struct store *store = open_store(*state);
	AUTO(auto_free) char *alive = place_path(*state, PREFIX "node-1/" ALIVE_FILE);
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(claim_release) struct claim claim = { 0 };
	AUTO(claim_release) struct claim head = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	enum claim_state got;
	struct agent_config zero;
	int news[2], orders[2];
	char text[4096] = "";
	size_t len = 0;
	pid_t pid;

	load(&config, *state, order_with_root(*state, 2), "1");
	config.object_workspace = true;
	zero = config;
	zero.node = 0;
	claim_init(&head, &zero);
	must(claim_take(&head, &zero, store, &got, &err), &err);
	claim_init(&claim, &config);
	must(claim_take(&claim, &config, store, &got, &err), &err);
	assert_int_equal(got, CLAIM_OURS);
	node_flag_set(&zero, store, ENDED_FILE, json_object());
	assert_int_equal(pipe(news), 0);
	assert_int_equal(pipe(orders), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(orders[1]);
		_exit(uploader_work(&config, &claim, news[1], orders[0]));
	}
	close(news[1]);
	close(orders[0]);
	while (!strstr(text, "\"head-ended\"")) {
		struct pollfd heard = { .fd = news[0], .events = POLLIN };
		ssize_t more;

		assert_int_equal(poll(&heard, 1, 20000), 1);
		more = read(news[0], text + len, sizeof text - len - 1);
		assert_true(more > 0);
		len += (size_t)more;
	}
	assert_true(wait_for_file(alive));
	close(orders[1]);
	assert_int_equal(end_of(pid), 1); /* its agent is gone */
	close(news[0]);
}

static json_t *order_of_two(const struct place *place, const char *script)
{
	json_t *order = order_for(place, script);

	js_put(order, "nodes", json_integer(2));
	js_put(order, "stall", json_pack("{s:s, s:i}", "mode", "fixed", "limit_ms", 1500));
	js_put(order, "metrics",
	       json_pack("[{s:s, s:s}]", "name", "step", "regex", "step: ([0-9]+)"));
	return order;
}

static void who_hangs_after_node_0_has_ended_well_is_stopped(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *go = place_path(place, "go");
	AUTO(auto_free)
	char *script = mem_format("echo step: 1; [ $STOKER_NODE_RANK = 0 ] && exit 0; "
				  "i=0; while [ $i -lt 21 ]; do echo saving; sleep 0.1; "
				  "i=$((i + 1)); done; touch %s; exec sleep 1000",
				  go);
	AUTO(auto_free) char *failed = place_path(place, PREFIX FAILED_FILE);
	json_auto_t *body = NULL;
	pid_t pids[2];

	order_write(place, order_of_two(place, script));
	for (int node = 0; node < 2; node++)
		pids[node] = start(place, PREFIX, node, plain_env, NULL);
	assert_int_equal(end_of(pids[0]), 0);
	assert_int_equal(end_of(pids[1]), 128 + SIGTERM);
	assert_true(fs_exists(go)); /* not while it printed, though no steps */
	body = report_of(place, PREFIX, 1);
	assert_string_equal(js_str(body, "stopped"), STOPPED_STALL);
	assert_true(js_int(json_object_get(body, "stall"), "silent_ms", 0) > 1500);
	assert_true(fs_exists(failed));
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(in_the_last_pass_the_newest_comes_first),
		TEST(node_0_that_leaves_looks_about_once_a_second),
		TEST(a_node_that_outlives_node_0_hears_of_it_and_shows_that_it_lives),
		TEST(who_hangs_after_node_0_has_ended_well_is_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
