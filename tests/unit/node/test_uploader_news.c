/* What an uploader says of the workspace, and what it brings there, on orders of an agent that the
 * test is. */
#include "tests/unit/node/helper_bench.h"
#include "tests/unit/quoted.h"

#include "jobs/cache/manifest/key_claim.h"
#include "jobs/node/node_flag.h"
#include "jobs/node/report.h"
#include "jobs/node/upload/uploader.h"

#define NODES       3
#define FIRST_PIECE "000000000000" /* as LOG_OFFSET has it */

static json_t *order_of(const struct place *place, int64_t beat_ms)
{
	json_t *order = order_for(place, "true");

	js_put(order, "nodes", json_integer(NODES));
	js_put(order, "heartbeat_ms", json_integer(beat_ms));
	js_put(order, "look_ms", json_integer(beat_ms));
	return order;
}

static void start_uploader(struct bench *bench)
{
	bench_start(bench, uploader_work);
}

/* Steals the order. */
static void open_uploader(struct bench *bench, struct place *place, json_t *order, const char *rank)
{
	bench_load(bench, place, order, rank);
	bench->claim.taken_ms = 0; /* it hears of the claim by an order */
	start_uploader(bench);
}

/* The same with a bucket for a workspace, in which the files of its node are not. */
static void load_far(struct bench *bench, struct place *place, const char *rank)
{
	json_t *order = order_of(place, BEAT_MS);

	js_put(order, "nodes", json_integer(1));
	bench_load(bench, place, order, rank);
	bench->config.object_workspace = true;
	free(bench->config.dir);
	bench->config.dir = place_path(place, "machine");
}

/* Puts an object of the attempt into the workspace. */
static void put(const struct bench *bench, const char *name, const char *text)
{
	AUTO(auto_free) char *path = mem_format("%s/" PREFIX "%s", bench->place->root, name);

	write_file(path, text, 0600);
}

static void put_here(const struct bench *bench, const char *name, const char *text)
{
	AUTO(auto_free) char *path = fs_join(bench->config.dir, name);

	write_file(path, text, 0600);
}

static char *got(const struct bench *bench, const char *name)
{
	AUTO(auto_free) char *path = mem_format("%s/" PREFIX "%s", bench->place->root, name);

	return read_file(path, NULL);
}

/* Checks that none of the next words is of that kind, up to the answer to an order that is given
 * now. */
static void hear_no(struct bench *bench, const char *kind)
{
	json_t *line;

	tell(bench, "\"look\"");
	while ((line = next(bench)) && !js_is(line, "news", "looked")) {
		if (js_is(line, "news", kind))
			fail_msg("there is news of '%s'", kind);
		json_decref(line);
	}
	assert_non_null(line);
	json_decref(line);
}

static void end_last(struct bench *bench)
{
	tell(bench, "\"last\"");
	bench_end(bench, 0);
}

/* ---- signs in the workspace ---- */

static void what_the_workspace_says_is_told_once(void **state)
{
	static const struct {
		const char *file, *news;
	} rows[] = {
		{ FAILED_FILE, "peer-failed" },
		{ DRAIN_FILE, "drain" },
		{ DRAINED_FILE, "drained" },
	};
	struct bench bench;

	open_uploader(&bench, *state, order_of(*state, BEAT_MS), "0");
	put(&bench, FAILED_FILE, "{}");
	hear_no(&bench, "peer-failed"); /* it does not know yet that the claim is its own */
	tell(&bench, "\"claimed\",\"restart\":0");
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		put(&bench, rows[i].file, "{}");
		json_decref(hear(&bench, rows[i].news));
		hear_no(&bench, rows[i].news);
	}
	end_last(&bench);
}

/* A drain ends all nodes anyway: what fails meanwhile is no reason to hurry. */
static void in_a_drain_the_failure_of_another_is_not_told(void **state)
{
	struct bench bench;

	open_uploader(&bench, *state, order_of(*state, NEVER_MS), "0");
	put(&bench, DRAIN_FILE, "{}");
	tell(&bench, "\"claimed\",\"restart\":0");
	json_decref(hear(&bench, "drain"));
	put(&bench, FAILED_FILE, "{}");
	hear_no(&bench, "peer-failed");
	end_last(&bench);
}

static void a_drained_flag_without_a_drain_says_nothing(void **state)
{
	struct bench bench;

	open_uploader(&bench, *state, order_of(*state, NEVER_MS), "0");
	tell(&bench, "\"claimed\",\"restart\":0");
	put(&bench, DRAINED_FILE, "{}");
	hear_no(&bench, "drained");
	end_last(&bench);
}

static void flags_of_an_earlier_start_say_nothing(void **state)
{
	struct bench bench;

	bench_load(&bench, *state, order_of(*state, NEVER_MS), "0");
	bench.config.restart = bench.config.platform.restart = 1;
	bench.claim.taken_ms = 0;
	start_uploader(&bench);
	tell(&bench, "\"claimed\",\"restart\":1");
	put(&bench, FAILED_FILE, "{\"v\":1,\"restart\":0}");
	hear_no(&bench, "peer-failed");
	put(&bench, FAILED_FILE, "{\"v\":1,\"restart\":1}");
	tell(&bench, "\"look\"");
	json_decref(hear(&bench, "peer-failed"));
	end_last(&bench);
}

/* A node alone has no other that could fail, or have saved all. */
static void one_node_alone_hears_of_no_others(void **state)
{
	json_t *order = order_of(*state, NEVER_MS);
	struct bench bench;

	js_put(order, "nodes", json_integer(1));
	open_uploader(&bench, *state, order, "0");
	tell(&bench, "\"claimed\",\"restart\":0");
	put(&bench, FAILED_FILE, "{}");
	hear_no(&bench, "peer-failed");
	put(&bench, DRAIN_FILE, "{}");
	put(&bench, DRAINED_FILE, "{}");
	hear_no(&bench, "drained");
	end_last(&bench);
}

static void a_claim_that_is_another_attempts_is_told(void **state)
{
	AUTO(auto_free) char *path = place_path(*state, "runs/r1/claim/train");
	struct bench bench;

	open_uploader(&bench, *state, order_of(*state, BEAT_MS), "0");
	tell(&bench, "\"claimed\",\"restart\":0");
	hear_no(&bench, "superseded");
	write_file(path, "{", 0600); /* what cannot be read says nothing */
	hear_no(&bench, "superseded");
	write_file(path, "{\"attempt\":2,\"holder\":\"other\",\"job\":\"stk-r1-train-2\"}", 0600);
	json_decref(hear(&bench, "superseded"));
	end_last(&bench);
}

/* ---- the other nodes ---- */

static void node_0_hears_what_the_others_publish_when_it_is_new(void **state)
{
	struct bench bench;

	open_uploader(&bench, *state, order_of(*state, BEAT_MS), "0");
	tell(&bench, "\"claimed\",\"restart\":0");
	for (int round = 0; round < 2; round++)
		for (int node = 1; node < NODES; node++) {
			AUTO(auto_free) char *name = mem_format("node-%d/" PROGRESS_FILE, node);
			AUTO(auto_free) char *text = mem_format("{\"step\":%d}", 10 * round + node);
			json_auto_t *peer = NULL;

			put(&bench, name, text);
			peer = hear(&bench, "peer");
			assert_int_equal(js_int(peer, "node", 0), node);
			assert_string_equal(js_str(peer, "text"), text);
		}
	end_last(&bench);
}

static void another_node_hears_that_node_0_has_ended(void **state)
{
	struct bench bench;

	open_uploader(&bench, *state, order_of(*state, BEAT_MS), "1");
	tell(&bench, "\"claimed\",\"restart\":0");
	put(&bench, ENDED_FILE, "{}");
	json_decref(hear(&bench, "head-ended"));
	end_last(&bench);
	/* Node 0 does not wait if the workspace is a directory, and nobody needs a sign of life. */
	assert_false(is_there(&bench, PREFIX "node-1/" ALIVE_FILE));
}

static void progress_is_published(void **state)
{
	AUTO(auto_free) char *text = NULL;
	struct bench bench;

	open_uploader(&bench, *state, order_of(*state, NEVER_MS), "1");
	tell(&bench, "\"progress\",\"text\":\"{}\"");
	hear_no(&bench, "refused");
	text = got(&bench, "node-1/" PROGRESS_FILE);
	assert_string_equal(text, "{}");
	end_last(&bench);
}

/* Others must not take its claim for one that an earlier start left. */
static void node_0_shows_that_its_claim_is_alive(void **state)
{
	struct bench bench;
	int64_t beat = 0;

	bench_load(&bench, *state, order_of(*state, BEAT_MS), "0");
	bench.config.platform.restart = -1;
	start_uploader(&bench);
	for (int i = 0; i < LOOKS && !beat; i++) {
		AUTO(auto_free) char *path = place_path(*state, "runs/r1/claim/train");
		AUTO(err_freep) struct err *err = NULL;
		json_auto_t *claim = NULL;

		must(js_load(path, REPORT_MAX, &claim, &err), &err);
		beat = js_int(claim, "beat", 0);
		pause_ms(1);
	}
	assert_int_equal(beat, 1);
	end_last(&bench);
}

static void the_claim_on_the_graph_key_is_renewed(void **state)
{
	AUTO(auto_free) char *cache = place_path(*state, "cache");
	AUTO(auto_free) char *path = place_path(*state, "cache/" KEY_CLAIM_PREFIX "key.json");
	AUTO(key_claim_clear) struct key_claim mine = { 0 };
	AUTO(auto_free) char *before = NULL;
	AUTO(store_freep) struct store *store = NULL;
	AUTO(err_freep) struct err *err = NULL;
	json_t *order = order_of(*state, BEAT_MS);
	bool renewed = false;
	struct bench bench;

	must(store_open(cache, &store, &err), &err);
	key_claim_init(&mine, store, "key", "r1", "c");
	assert_int_equal(key_claim_try(&mine, &err), 1);
	before = read_file(path, NULL);
	js_put(order, "compile",
	       json_pack("{s:s, s:s, s:s, s:s}", "kind", "jax", "cache", cache, "graph_key", "key",
			 "claim", "c"));
	open_uploader(&bench, *state, order, "0");
	tell(&bench, "\"claimed\",\"restart\":0");
	for (int i = 0; i < LOOKS && !renewed; i++) {
		AUTO(auto_free) char *now = read_file(path, NULL);

		renewed = now && strcmp(before, now) != 0;
		pause_ms(1);
	}
	assert_true(renewed);
	end_last(&bench);
}

/* ---- answers to orders ---- */

static void orders_that_are_carried_out_are_told_by_their_length(void **state)
{
	json_auto_t *done = NULL;
	struct bench bench;

	open_uploader(&bench, *state, order_of(*state, NEVER_MS), "0");
	tell(&bench, "\"look\"");
	done = hear(&bench, "done");
	assert_int_equal(js_int(done, "bytes", 0), strlen("{\"order\":\"look\"}\n"));
	end_last(&bench);
}

static void without_its_agent_it_ends_badly(void **state)
{
	struct bench bench;

	open_uploader(&bench, *state, order_of(*state, NEVER_MS), "0");
	close(bench.orders_fd);
	bench.orders_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	bench_end(&bench, 1);
}

/* ---- a workspace that is no directory ---- */

static void report_and_log_are_brought_at_the_end(void **state)
{
	AUTO(auto_free) char *report = NULL;
	AUTO(auto_free) char *log = NULL;
	struct bench bench;

	load_far(&bench, *state, "0");
	put_here(&bench, REPORT_FILE, "{\"v\":1,\"state\":\"ended\",\"claimed\":1}");
	put_here(&bench, LOG_FILE, "line\n");
	put_here(&bench, PACE_FILE, "{\"steps\":1}");
	start_uploader(&bench);
	end_last(&bench);
	report = got(&bench, "node-0/" REPORT_FILE);
	assert_string_equal(report, "{\"v\":1,\"state\":\"ended\",\"claimed\":1}");
	log = got(&bench, "node-0/log/" FIRST_PIECE);
	assert_string_equal(log, "line\n");
	/* The pace is in the report. */
	assert_false(is_there(&bench, PREFIX "node-0/" PACE_FILE));
}

static void the_log_is_there_before_the_last_report(void **state)
{
	AUTO(auto_free) char *log = NULL;
	struct bench bench;

	load_far(&bench, *state, "0");
	put_here(&bench, REPORT_FILE, "{\"v\":1,\"state\":\"ended\",\"claimed\":1}");
	put_here(&bench, LOG_FILE, "line\n");
	start_uploader(&bench);
	tell(&bench, "\"report\"");
	hear_no(&bench, "refused");
	/* The order before this one is carried out, and its round is over. */
	hear_no(&bench, "refused");
	assert_true(is_there(&bench, PREFIX "node-0/" REPORT_FILE));
	log = got(&bench, "node-0/log/" FIRST_PIECE);
	assert_string_equal(log, "line\n");
	end_last(&bench);
}

static void a_report_is_brought_when_it_is_new(void **state)
{
	struct bench bench;

	load_far(&bench, *state, "0");
	start_uploader(&bench);
	for (int i = 0; i < 3; i++) {
		AUTO(auto_free) char *text = mem_format("{\"v\":1,\"claimed\":%d}", i + 1);
		AUTO(auto_free) char *there = NULL;

		put_here(&bench, REPORT_FILE, text);
		tell(&bench, "\"report\"");
		hear_no(&bench, "refused");
		/* The order before this one is carried out, and its round is over. */
		hear_no(&bench, "refused");
		there = got(&bench, "node-0/" REPORT_FILE);
		assert_string_equal(there, text);
	}
	end_last(&bench);
}

static void a_log_that_grows_goes_on_in_its_piece(void **state)
{
	AUTO(auto_free) char *all = NULL;
	struct bench bench;

	for (int i = 0; i < 2; i++) {
		load_far(&bench, *state, "0");
		put_here(&bench, REPORT_FILE, "{\"v\":1,\"claimed\":1}");
		put_here(&bench, LOG_FILE, i ? "one\ntwo\n" : "one\n");
		start_uploader(&bench);
		end_last(&bench);
	}
	all = got(&bench, "node-0/log/" FIRST_PIECE);
	assert_string_equal(all, "one\ntwo\n");
	assert_false(is_there(&bench, PREFIX "node-0/log/000000000004"));
}

static void without_a_log_there_is_nothing_to_bring(void **state)
{
	struct bench bench;

	load_far(&bench, *state, "0");
	put_here(&bench, REPORT_FILE, "{\"v\":1,\"claimed\":1}");
	start_uploader(&bench);
	end_last(&bench);
	assert_true(is_there(&bench, PREFIX "node-0/" REPORT_FILE));
	assert_false(is_there(&bench, PREFIX "node-0/log"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_the_workspace_says_is_told_once),
		TEST(in_a_drain_the_failure_of_another_is_not_told),
		TEST(a_drained_flag_without_a_drain_says_nothing),
		TEST(flags_of_an_earlier_start_say_nothing),
		TEST(one_node_alone_hears_of_no_others),
		TEST(a_claim_that_is_another_attempts_is_told),
		TEST(node_0_hears_what_the_others_publish_when_it_is_new),
		TEST(another_node_hears_that_node_0_has_ended),
		TEST(progress_is_published),
		TEST(node_0_shows_that_its_claim_is_alive),
		TEST(the_claim_on_the_graph_key_is_renewed),
		TEST(orders_that_are_carried_out_are_told_by_their_length),
		TEST(without_its_agent_it_ends_badly),
		TEST(report_and_log_are_brought_at_the_end),
		TEST(the_log_is_there_before_the_last_report),
		TEST(a_report_is_brought_when_it_is_new),
		TEST(a_log_that_grows_goes_on_in_its_piece),
		TEST(without_a_log_there_is_nothing_to_bring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
