/* What an agent takes as an order, and what it does with an order, or a source, that is none: a
 * wrong one is named, and nothing is guessed. See jobs/node/setup/agent_config.h and prepare.h. */
#include "tests/unit/node/place.h"

#include "jobs/node/setup/agent_config.h"
#include "jobs/node/setup/prepare.h"

/* Loads the order, whose member is this now (NULL: is not there). Takes `value`. */
static int load_with(struct place *place, const char *member, json_t *value,
		     struct agent_config *ret, struct err **err)
{
	AUTO(auto_free) char *path = place_path(place, PREFIX ORDER_FILE);
	json_t *order = order_for(place, "true");

	if (value)
		js_put(order, member, value);
	else if (member)
		json_object_del(order, member);
	js_put(order, "prefix", json_string(PREFIX));
	order_write(place, order);
	if (member && strcmp(member, "prefix") == 0) {
		AUTO(err_freep) struct err *unused = NULL;
		json_auto_t *again = NULL;
		AUTO(auto_free) char *text = NULL;

		must(js_load(path, ORDER_MAX, &again, &unused), &unused);
		js_put(again, "prefix", json_string("runs/r1/train-1"));
		text = js_line(again);
		must(fs_write_atomic(path, text, strlen(text), 0600, &unused), &unused);
	}
	return agent_config_load(path, "0", ret, err);
}

static void an_order_is_understood(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free) char *dir = place_path(*state, PREFIX "node-0");

	must(load_with(*state, NULL, NULL, &config, &err), &err);
	assert_string_equal(config.run, "r1");
	assert_int_equal(config.attempt, 1);
	assert_int_equal(config.nodes, 1);
	assert_string_equal(config.dir, dir);
	assert_string_equal(config.nonce, NONCE);
}

static void a_wrong_order_is_named_by_its_member(void **state)
{
	const struct {
		const char *member, *json, *words;
	} rows[] = {
		{ "v", "2", "unknown version 2 of the order" },
		{ "v", NULL, "unknown version 0 of the order" },
		{ "command", "[]", "the order's 'command' is empty" },
		{ "env", "{\"A=B\": \"x\"}", "the order's 'env' holds an invalid variable" },
		{ "env", "{\"\": \"x\"}", "the order's 'env' holds an invalid variable" },
		{ "secret_from", "{\"A=B\": \"x\"}",
		  "the order's 'secret_from' holds an invalid variable" },
		{ "run", "\"\"", "the order's 'run' is empty" },
		{ "job", "\"\"", "the order's 'job' is empty" },
		{ "nonce", "\"a b\"", "the order's 'nonce' is not a plain word" },
		{ "prefix", "\"runs\"", "the order's 'prefix' does not end in a slash" },
		{ "run_prefix", "\"runs\"", "the order's 'run_prefix' does not end in a slash" },
		{ "attempt", "0", "the order's 'attempt' is not a number from 1 on" },
		{ "nodes", "0", "the order's 'nodes' is out of range" },
		{ "nodes", "100001", "the order's 'nodes' is out of range" },
		{ "timeout_ms", "-1", "the order's 'timeout_ms' is negative" },
		{ "stop_ms", "-1", "the order's 'stop_ms' is negative" },
		{ "grace_ms", "-1", "the order's 'grace_ms' is negative" },
		{ "heartbeat_ms", "0", "the order's 'heartbeat_ms' is not positive" },
		{ "look_ms", "0", "the order's 'look_ms' is not positive" },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		json_t *value =
			rows[i].json ? json_loads(rows[i].json, JSON_DECODE_ANY, NULL) : NULL;
		struct agent_config config = { 0 };
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(load_with(*state, rows[i].member, value, &config, &err), -1);
		assert_string_equal(err->message, rows[i].words);
		assert_int_equal(err->code, EXIT_DEFECT);
		assert_null(config.order);
	}
}

static void an_order_that_is_not_there_or_no_json_is_named_by_its_path(void **state)
{
	AUTO(auto_free) char *path = place_path(*state, PREFIX ORDER_FILE);
	struct agent_config config = { 0 };

	for (int i = 0; i < 3; i++) {
		AUTO(err_freep) struct err *err = NULL;

		if (i > 0)
			write_file(path, i == 1 ? "{" : "[1]", 0600);
		assert_int_equal(agent_config_load(path, "0", &config, &err), -1);
		assert_non_null(strstr(err->message, i < 2 ? path : "unknown version 0"));
	}
}

/* The service kills all of a container `stop_ms` after it has asked it to end. Each stage of the
 * end has its share of that, and no more than the grace. */
static void who_is_stopped_by_a_service_divides_its_time(void **state)
{
	struct agent_config config = { .grace_ms = 30000 };

	(void)state;
	assert_int_equal(agent_config_kill_ms(&config), 30000);
	assert_int_equal(agent_config_keep_ms(&config), 30000);
	assert_int_equal(agent_config_outputs_ms(&config), 30000);
	assert_int_equal(agent_config_bring_ms(&config), 30000);
	config.stop_ms = 30000;
	assert_int_equal(agent_config_kill_ms(&config), 15000);
	assert_int_equal(agent_config_keep_ms(&config), 22500);
	assert_int_equal(agent_config_outputs_ms(&config), 25000);
	assert_int_equal(agent_config_bring_ms(&config), 28000);
	config.grace_ms = 24000;
	assert_int_equal(agent_config_keep_ms(&config), 22500);
	assert_int_equal(agent_config_outputs_ms(&config), 24000);
	config.stop_ms = 1;
	assert_int_equal(agent_config_kill_ms(&config), 0);
}

/* Looks are more seldom if each is a request, or if many nodes are looked at. */
static void nodes_hear_of_each_other_the_more_seldom_the_more_there_are(void **state)
{
	static const struct {
		int nodes;
		bool far;
		int64_t heartbeat_ms, exchange_ms;
	} rows[] = {
		{ 2, false, 1000, 2500 },   { 16, false, 1000, 2500 }, { 17, false, 1000, 2656 },
		{ 64, false, 1000, 10000 }, { 2, true, 1000, 30000 },  { 2, true, 11999, 30000 },
		{ 2, true, 20000, 50000 },  { 32, true, 1000, 60000 },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		const struct agent_config config = { .nodes = rows[i].nodes,
						     .object_workspace = rows[i].far,
						     .heartbeat_ms = rows[i].heartbeat_ms };

		assert_int_equal(agent_config_exchange_ms(&config), rows[i].exchange_ms);
	}
}

/* Each start of a job has its own outputs: what an earlier one left is not overwritten. */
static void keys_name_the_node_and_the_start(void **state)
{
	struct agent_config config = { .prefix = PREFIX, .node = 3, .outputs = "out/" };

	(void)state;
	for (int restart = 0; restart < 3; restart++) {
		AUTO(auto_free) char *key = NULL;
		AUTO(auto_free)
		char *wanted = restart ? mem_format("out/node-3.restart-%d", restart)
				       : mem_copy("out/node-3");

		config.restart = restart;
		key = agent_config_outputs_key(&config);
		assert_string_equal(key, wanted);
	}
}

static void a_compiler_that_takes_urls_or_folders_needs_no_cache_of_this_node(void **state)
{
	static const struct {
		const char *kind, *cache;
		bool own;
	} rows[] = {
		{ "jax", "s3://bucket/cache", true },
		{ "jax", "/shared/cache", false },
		{ "neuron", "s3://bucket/cache", false },
		{ "none", "s3://bucket/cache", false },
		{ "jax", NULL, false },
		{ NULL, "s3://bucket/cache", false },
		{ "of-tomorrow", "s3://bucket/cache", false },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(agent_config_release) struct agent_config config = { 0 };
		AUTO(auto_free) char *own = place_path(*state, PREFIX "node-0/cache");
		AUTO(auto_free) char *cache = NULL;
		AUTO(err_freep) struct err *err = NULL;

		must(load_with(*state, "compile",
			       json_pack("{s:s*, s:s*}", "kind", rows[i].kind, "cache",
					 rows[i].cache),
			       &config, &err),
		     &err);
		cache = agent_config_cache(&config);
		if (rows[i].own)
			assert_string_equal(cache, own);
		else if (cache)
			fail_msg("row %zu", i);
	}
}

/* A precompile resumes nothing, and its checkpoints go nowhere. */
static void the_folders_of_a_command_are_those_of_its_order(void **state)
{
	static const struct {
		bool scratch, shared, outputs;
		const char *checkpoint_dir, *output_dir;
		const char *checkpoint, *output; /* beneath the attempt's folder */
	} rows[] = {
		{ false, false, false, NULL, NULL, "node-0/checkpoints", "node-0/output" },
		{ false, true, false, NULL, NULL, "checkpoints", "node-0/output" },
		{ true, true, true, "/a", "/b", "node-0/scratch/checkpoints",
		  "node-0/scratch/output" },
		{ false, true, false, "/a", "/b", "/a", "/b" },
		{ false, false, true, NULL, NULL, "node-0/checkpoints", "out/node-0" },
		{ false, false, true, NULL, "/b", "node-0/checkpoints", "/b" },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		const struct place *place = *state;
		AUTO(agent_config_release) struct agent_config config = { 0 };
		AUTO(auto_free) char *path = place_path(place, PREFIX ORDER_FILE);
		AUTO(auto_free) char *checkpoint = NULL;
		AUTO(auto_free) char *output = NULL;
		AUTO(err_freep) struct err *err = NULL;
		json_t *order = order_for(place, "true");

		js_put(order, "scratch", json_boolean(rows[i].scratch));
		js_put(order, "shared_checkpoints", json_boolean(rows[i].shared));
		if (rows[i].outputs)
			js_put_str(order, "outputs", PREFIX "out/");
		js_put_str(order, "checkpoint_dir", rows[i].checkpoint_dir);
		js_put_str(order, "output_dir", rows[i].output_dir);
		order_write(place, order);
		must(agent_config_load(path, "0", &config, &err), &err);
		checkpoint =
			rows[i].checkpoint[0] == '/'
				? mem_copy(rows[i].checkpoint)
				: mem_format("%s/" PREFIX "%s", place->root, rows[i].checkpoint);
		output = rows[i].output[0] == '/'
				 ? mem_copy(rows[i].output)
				 : mem_format("%s/" PREFIX "%s", place->root, rows[i].output);
		assert_string_equal(config.checkpoint, checkpoint);
		assert_string_equal(config.output, output);
		assert_int_equal(config.outputs != NULL, rows[i].outputs && !rows[i].scratch);
	}
}

static void what_is_resumed_from_is_here_or_will_be_fetched_here(void **state)
{
	static const struct {
		const char *url, *here; /* beneath the node's folder */
		bool scratch;
	} rows[] = {
		{ "/far/step-10", NULL, false },
		{ "s3://bucket/far/step-10", "resume/step-10", false },
		{ "s3://bucket/far/step-10", NULL, true },
		{ NULL, NULL, false },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(agent_config_release) struct agent_config config = { 0 };
		AUTO(auto_free) char *got = NULL;
		AUTO(err_freep) struct err *err = NULL;

		must(load_with(*state, "resume_from", rows[i].url ? json_string(rows[i].url) : NULL,
			       &config, &err),
		     &err);
		config.scratch = rows[i].scratch;
		got = agent_config_resumed(&config);
		if (rows[i].here) {
			AUTO(auto_free) char *wanted = fs_join(config.dir, rows[i].here);

			assert_string_equal(got, wanted);
		} else if (rows[i].url && !rows[i].scratch) {
			assert_string_equal(got, rows[i].url);
		} else {
			assert_null(got);
		}
	}
}

static void a_rank_that_is_none_is_refused(void **state)
{
	static const char *const ranks[] = { "1", "-1", "x", "" };
	AUTO(auto_free) char *path = place_path(*state, PREFIX ORDER_FILE);
	AUTO(err_freep) struct err *unused = NULL;
	struct agent_config config = { 0 };

	must(load_with(*state, NULL, NULL, &config, &unused), &unused);
	agent_config_release(&config);
	for (size_t i = 0; i < STK_LENGTH(ranks); i++) {
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(agent_config_load(path, ranks[i], &config, &err), -1);
		assert_non_null(err);
	}
}

/* ---- source, links and folders ---- */

static int prepare_with(struct place *place, const char *member, json_t *value, struct err **err)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(store_freep) struct store *store = open_store(place);
	AUTO(err_freep) struct err *unused = NULL;

	must(load_with(place, member, value, &config, &unused), &unused);
	return prepare_folders(&config, store, err);
}

static void a_link_lies_beneath_the_source_and_goes_through_no_link(void **state)
{
	static const struct {
		const char *name, *words; /* NULL: it is made */
	} rows[] = {
		{ "data", NULL },
		{ "a/b/data", NULL },
		{ "/data", "the name is not relative" },
		{ "", "the name is not relative" },
		{ "../data", "the name is not plain" },
		{ "a/../../data", "the name is not plain" },
		{ "a/.", "the name is not plain" },
	};
	AUTO(auto_free) char *src = place_path(*state, PREFIX "node-0/src");

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		json_t *links = json_pack("[[s,s]]", rows[i].name, "/target");
		AUTO(auto_free) char *path = fs_join(src, rows[i].name);
		AUTO(err_freep) struct err *err = NULL;
		char target[32] = "";
		int done = prepare_with(*state, "links", links, &err);

		assert_int_equal(done, rows[i].words ? -1 : 0);
		if (!rows[i].words) {
			assert_true(readlink(path, target, sizeof target - 1) > 0);
			assert_string_equal(target, "/target");
			continue;
		}
		assert_non_null(strstr(err->message, rows[i].words));
		assert_non_null(strstr(err->message, "cannot add the link"));
	}
}

static void a_part_of_a_name_that_no_folder_can_have_is_refused(void **state)
{
	AUTO(auto_free) char *name = mem_alloc(303);
	AUTO(err_freep) struct err *err = NULL;

	memset(name, 'n', 302);
	memcpy(name + 300, "/b", 3);
	assert_int_equal(prepare_with(*state, "links", json_pack("[[s,s]]", name, "/t"), &err), -1);
	assert_non_null(strstr(err->message, "cannot add the link"));
	assert_non_null(strstr(err->message, "cannot make the folder"));
}

/* A link of the source, or one made before, must not lead the next one elsewhere. */
static void a_link_through_another_one_is_refused(void **state)
{
	json_t *links =
		json_pack("[[s,s], [s,s]]", "a", ((struct place *)*state)->root, "a/b", "/t");
	AUTO(auto_free) char *led = place_path(*state, "b");
	AUTO(err_freep) struct err *err = NULL;
	struct stat st;

	assert_int_equal(prepare_with(*state, "links", links, &err), -1);
	assert_non_null(strstr(err->message, "cannot add the link 'a/b'"));
	assert_int_equal(lstat(led, &st), -1);
}

static void a_link_over_another_one_is_refused(void **state)
{
	json_t *links = json_pack("[[s,s], [s,s]]", "a", "/one", "a", "/two");
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(prepare_with(*state, "links", links, &err), -1);
	assert_non_null(strstr(err->message, "cannot make the link"));
}

static void a_source_that_is_not_there_or_no_bundle_is_named(void **state)
{
	AUTO(auto_free) char *bundle = place_path(*state, "sources/x");
	AUTO(auto_free) char *folder = place_path(*state, PREFIX "node-0");
	AUTO(err_freep) struct err *absent = NULL, *nowhere = NULL, *broken = NULL, *err = NULL;

	assert_int_equal(prepare_with(*state, "source", json_string("sources/x"), &absent), -1);
	assert_non_null(strstr(absent->message, "the source bundle 'sources/x' is not in"));
	assert_int_equal(absent->code, EXIT_REFUSED);
	write_file(bundle, "no bundle", 0600);
	/* the claim makes the folder */
	assert_int_equal(prepare_with(*state, "source", json_string("sources/x"), &nowhere), -1);
	assert_non_null(strstr(nowhere->message, "cannot fetch the source"));
	must(fs_mkdirs(folder, &err), &err);
	assert_int_equal(prepare_with(*state, "source", json_string("sources/x"), &broken), -1);
	assert_non_null(strstr(broken->message, "cannot unpack the source"));
}

/* A file in the way of a folder is not removed: it is somebody's. */
static void a_file_in_the_place_of_a_folder_is_named(void **state)
{
	static const char *const places[] = { "checkpoints", "output" };

	for (size_t i = 0; i < STK_LENGTH(places); i++) {
		AUTO(auto_free) char *name = mem_format(PREFIX "node-0/%s", places[i]);
		AUTO(auto_free) char *path = place_path(*state, name);
		AUTO(err_freep) struct err *err = NULL;

		write_file(path, "x", 0600);
		assert_int_equal(prepare_with(*state, NULL, NULL, &err), -1);
		assert_non_null(strstr(err->message, places[i]));
		assert_int_equal(unlink(path), 0);
	}
}

static void a_checkpoint_to_resume_from_is_linked(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(auto_free) char *from = place_path(*state, "old/checkpoint-7/");
	AUTO(auto_free) char *link = place_path(*state, PREFIX "node-0/checkpoints/checkpoint-7");
	AUTO(auto_free) char *folder = place_path(*state, PREFIX "node-0/checkpoints");
	AUTO(auto_free) char *meant = place_path(*state, "old/checkpoint-7");
	AUTO(err_freep) struct err *err = NULL, *refused = NULL;
	char target[128] = "";

	must(load_with(*state, "resume_from", json_string(from), &config, &err), &err);
	assert_int_equal(prepare_checkpoint(&config, &refused), -1);
	assert_non_null(strstr(refused->message, "cannot link the checkpoint"));
	must(fs_mkdirs(folder, &err), &err);
	for (int again = 0; again < 2; again++) {
		must(prepare_checkpoint(&config, &err), &err);
		assert_true(readlink(link, target, sizeof target - 1) > 0);
		assert_string_equal(target, meant);
	}
}

#define OF(test) cmocka_unit_test_setup_teardown(test, place_make, place_remove)

/* ---- the program of the command ---- */

/* Two letters apart at most, and no more than half of a short name. */
static void what_was_meant_is_the_nearest_name_in_path(void **state)
{
	static const char *const there[] = { "one/trainer", "one/trainers", "one/ab",
					     "two/trained", "two/zb",       "two/trainer" };
	static const struct {
		const char *program, *meant; /* NULL: nothing is near */
	} rows[] = {
		{ "triner", "trainer" },
		{ "trainerz", "trainer" },
		{ "trrainr", "trainer" },
		{ "rained", "trained" },
		{ "tiner", "trainer" },
		{ "tier", NULL },
		{ "trainedr", "trained" },
		{ "xb", "ab" },
		{ "a", NULL },
		{ "xy", NULL },
		{ "trainrs", "trainers" },
	};
	AUTO(auto_free)
	char *path = mem_format("%s/one:%s/none:%s/two", ((struct place *)*state)->root,
				((struct place *)*state)->root, ((struct place *)*state)->root);
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(err_freep) struct err *loading = NULL;

	must(load_with(*state, NULL, NULL, &config, &loading), &loading);
	for (size_t i = 0; i < STK_LENGTH(there); i++) {
		AUTO(auto_free) char *file = place_path(*state, there[i]);

		write_file(file, "", 0755);
	}
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *program = NULL;
		AUTO(auto_free)
		char *hint = mem_format("did you mean '%s'?", rows[i].meant ? rows[i].meant : "");
		AUTO(err_freep) struct err *err = NULL;
		int exit_status = -1;

		assert_int_equal(prepare_program(&config, rows[i].program, path, &program,
						 &exit_status, &err),
				 -1);
		if (rows[i].meant && strcmp(err->hint, hint) != 0)
			fail_msg("'%s': %s", rows[i].program, err->hint);
		if (!rows[i].meant && strstr(err->hint, "did you mean"))
			fail_msg("'%s': %s", rows[i].program, err->hint);
	}
}

static void what_is_there_and_cannot_be_executed_is_told_apart(void **state)
{
	static const struct {
		const char *program, *words, *hint;
		int exit_status;
	} rows[] = {
		{ "plain", "cannot execute 'plain': not an executable file", "chmod +x",
		  AGENT_EXIT_NO_EXEC },
		{ "./folder", "cannot execute './folder': is a folder", "name a program",
		  AGENT_EXIT_NO_EXEC },
		{ "folder", "cannot find 'folder' in PATH", "", AGENT_EXIT_NO_FILE },
		{ "./none", "cannot find './none' in the source", "", AGENT_EXIT_NO_FILE },
		{ "good", NULL, NULL, 0 },
	};
	AUTO(auto_free) char *path = place_path(*state, PREFIX "node-0/src");
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(auto_free) char *plain = fs_join(path, "plain");
	AUTO(auto_free) char *inside = fs_join(path, "folder/x");
	AUTO(auto_free) char *good = fs_join(path, "good");
	AUTO(err_freep) struct err *loading = NULL;

	must(load_with(*state, NULL, NULL, &config, &loading), &loading);
	write_file(plain, "", 0600);
	write_file(inside, "", 0600);
	write_file(good, "", 0755);
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *program = NULL;
		AUTO(err_freep) struct err *err = NULL;
		int exit_status = 0;
		int done = prepare_program(&config, rows[i].program, path, &program, &exit_status,
					   &err);

		assert_int_equal(done, rows[i].words ? -1 : 0);
		assert_int_equal(exit_status, rows[i].exit_status);
		if (!rows[i].words) {
			assert_string_equal(program, good);
			continue;
		}
		assert_non_null(strstr(err->message, rows[i].words));
		assert_non_null(strstr(err->hint, rows[i].hint));
	}
}

static void what_is_missing_is_told_with_where_it_was_looked_for(void **state)
{
	static const struct {
		const char *program, *words, *hint;
		bool source;
	} rows[] = {
		{ "bin/train", "cannot find 'bin/train' in the source", "that git tracks the file",
		  true },
		{ "bin/train", "cannot find 'bin/train' in the source", "correct the path", false },
		{ "/no/train", "cannot find '/no/train'", "correct the path", true },
		{ "", "cannot find '' in PATH", "install the program", false },
		{ "a-program-like-none", "in PATH (/bin)", "install the program", false },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(agent_config_release) struct agent_config config = { 0 };
		AUTO(auto_free) char *program = NULL;
		AUTO(err_freep) struct err *err = NULL;
		int exit_status = -1;

		must(load_with(*state, NULL, NULL, &config, &err), &err);
		config.source = rows[i].source ? "sources/x" : NULL;
		assert_int_equal(prepare_program(&config, rows[i].program, "/bin", &program,
						 &exit_status, &err),
				 -1);
		assert_non_null(strstr(err->message, rows[i].words));
		assert_non_null(strstr(err->hint, rows[i].hint));
		assert_int_equal(exit_status, AGENT_EXIT_NO_FILE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF(an_order_is_understood),
		OF(a_wrong_order_is_named_by_its_member),
		OF(an_order_that_is_not_there_or_no_json_is_named_by_its_path),
		OF(who_is_stopped_by_a_service_divides_its_time),
		OF(nodes_hear_of_each_other_the_more_seldom_the_more_there_are),
		OF(keys_name_the_node_and_the_start),
		OF(a_compiler_that_takes_urls_or_folders_needs_no_cache_of_this_node),
		OF(the_folders_of_a_command_are_those_of_its_order),
		OF(what_is_resumed_from_is_here_or_will_be_fetched_here),
		OF(a_rank_that_is_none_is_refused),
		OF(a_link_lies_beneath_the_source_and_goes_through_no_link),
		OF(a_link_through_another_one_is_refused),
		OF(a_link_over_another_one_is_refused),
		OF(a_source_that_is_not_there_or_no_bundle_is_named),
		OF(a_file_in_the_place_of_a_folder_is_named),
		OF(a_checkpoint_to_resume_from_is_linked),
		OF(what_was_meant_is_the_nearest_name_in_path),
		OF(what_is_there_and_cannot_be_executed_is_told_apart),
		cmocka_unit_test_setup_teardown(a_part_of_a_name_that_no_folder_can_have_is_refused,
						place_make, place_remove),
		cmocka_unit_test_setup_teardown(
			what_is_missing_is_told_with_where_it_was_looked_for, place_make,
			place_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
