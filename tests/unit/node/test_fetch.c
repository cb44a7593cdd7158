/* Fetching before a command begins, what may be missing or damaged there, and which
 * checkpoint a start goes on from. */
#include "tests/unit/node/agent_run.h"
#include "tests/unit/node/marked.h"

#include <errno.h>

#include "jobs/cache/graphs/graph_tally.h"
#include "jobs/cache/kinds/compile_kind.h"
#include "jobs/cache/manifest/compile_manifest.h"
#include "jobs/checkpoint/checkpoint.h"
#include "jobs/node/checkpoints/fetch.h"
#include "jobs/node/checkpoints/prefetch.h"
#include "jobs/node/checkpoints/resume.h"
#include "jobs/node/node_flag.h"

#define KEY(letter) "jit_" letter "-" X16(letter) X16(letter) X16(letter) X16(letter)
#define X16(letter) X4(letter) X4(letter) X4(letter) X4(letter)
#define X4(letter)  letter letter letter letter
/* A whole zstd frame of one byte. */
#define FRAME "\x28\xb5\x2f\xfd\x20\x01\x09\0\0x"

static json_t *order_far(const struct place *place)
{
	AUTO(auto_free) char *cache = mem_format("dir:%s/cache", place->root);
	json_t *order = order_for(place, "true");

	js_put(order, "compile", json_pack("{s:s, s:s}", "kind", "jax", "cache", cache));
	return order;
}

static void put_entry(const struct place *place, const char *path, size_t len)
{
	AUTO(auto_free) char *whole = place_path(place, path);
	AUTO(auto_free) char *folder = fs_dirname(whole);
	AUTO(err_freep) struct err *err = NULL;

	must(fs_mkdirs(folder, &err), &err);
	must(fs_write_atomic(whole, FRAME, len, 0600, &err), &err);
}

static bool has(const struct place *place, const char *path)
{
	AUTO(auto_free) char *whole = place_path(place, path);

	return fs_exists(whole);
}

static int fetch(const struct place *place, json_t *order, struct err **err)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };

	load(&config, place, order, "0");
	assert_true(fetch_needed(&config));
	return fetch_all(&config, err);
}

static void must_fetch(const struct place *place, json_t *order)
{
	AUTO(err_freep) struct err *err = NULL;

	must(fetch(place, order, &err), &err);
}

/* ---- the compile cache ---- */

#define OWN PREFIX "node-0/cache/"

static void without_a_manifest_all_entries_are_fetched_and_nothing_else(void **state)
{
	put_entry(*state, "cache/" KEY("a") "-cache", 10);
	put_entry(*state, "cache/" KEY("b") "-cache", 10);
	put_entry(*state, "cache/" KEY("b") "-atime", 10);
	put_entry(*state, "cache/stoker/claims/x", 10);
	must_fetch(*state, order_far(*state));
	assert_true(has(*state, OWN KEY("a") "-cache"));
	assert_true(has(*state, OWN KEY("b") "-cache"));
	assert_false(has(*state, OWN KEY("b") "-atime"));
	assert_false(has(*state, OWN "stoker"));
}

/* Writes the manifest of the graph a alone; returns its graph key. */
static char *write_manifest(const struct place *place)
{
	static const char log[] =
		"Writing jit_a to persistent compilation cache with key '" KEY("a") "'\n";
	AUTO(auto_free) char *url = mem_format("dir:%s/cache", place->root);
	AUTO(graph_tally_freep) struct graph_tally *tally = graph_tally_new();
	AUTO(compile_manifest_freep) struct compile_manifest *manifest = NULL;
	AUTO(store_freep) struct store *store = NULL;
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *compiler = json_pack("{ss}", "jax", "0.10.2");
	json_auto_t *ingredients = json_pack("{si}", "batch_size", 8);
	struct lock_facts facts = { .kind = compile_kind_find("jax"),
				    .name = "job",
				    .run = "r0",
				    .compiler = compiler,
				    .ingredients = ingredients };

	must(store_open(url, &store, &err), &err);
	facts.store = store;
	graph_tally_scan(tally, facts.kind, 0, log, strlen(log));
	must(compile_manifest_write(&facts, tally, &manifest, NULL, &err), &err);
	return mem_copy(manifest->graph_key);
}

static void with_a_manifest_only_its_entries_are_fetched(void **state)
{
	AUTO(auto_free) char *key = NULL;
	json_t *order = order_far(*state);

	put_entry(*state, "cache/" KEY("a") "-cache", 10);
	put_entry(*state, "cache/" KEY("b") "-cache", 10);
	key = write_manifest(*state);
	js_put_str(json_object_get(order, "compile"), "lock", key);
	must_fetch(*state, order);
	assert_true(has(*state, OWN KEY("a") "-cache"));
	assert_false(has(*state, OWN KEY("b") "-cache"));
}

/* A damaged manifest counts as none. */
static void with_a_damaged_manifest_all_are_fetched(void **state)
{
	AUTO(auto_free) char *key = NULL;
	AUTO(auto_free) char *path = NULL;
	json_t *order = order_far(*state);

	put_entry(*state, "cache/" KEY("a") "-cache", 10);
	put_entry(*state, "cache/" KEY("b") "-cache", 10);
	key = write_manifest(*state);
	path = mem_format("%s/cache/stoker/%s.json", ((struct place *)*state)->root, key);
	write_file(path, "{\"v\":1,", 0600);
	js_put_str(json_object_get(order, "compile"), "lock", key);
	must_fetch(*state, order);
	assert_true(has(*state, OWN KEY("b") "-cache"));
}

static void what_an_earlier_start_compiled_is_brought_before_its_folder_goes(void **state)
{
	put_entry(*state, OWN KEY("c") "-cache", 10);
	put_entry(*state, OWN KEY("d") "-cache", 5); /* its compiler was killed */
	must_fetch(*state, order_far(*state));
	assert_true(has(*state, "cache/" KEY("c") "-cache"));
	assert_false(has(*state, "cache/" KEY("d") "-cache"));
	assert_true(has(*state, OWN KEY("c") "-cache"));
	assert_false(has(*state, OWN KEY("d") "-cache"));
}

static void a_cache_that_cannot_be_read_is_an_error_that_names_it(void **state)
{
	AUTO(auto_free) char *file = place_path(*state, "cache");
	AUTO(err_freep) struct err *err = NULL;
	AUTO(err_freep) struct err *unknown = NULL;
	json_t *order = order_far(*state);

	write_file(file, "no folder", 0600);
	assert_int_equal(fetch(*state, order_far(*state), &err), -1);
	assert_has(err->message, "cannot fetch the compile cache 'dir:");
	js_put_str(json_object_get(order, "compile"), "cache", "s3://");
	assert_int_equal(fetch(*state, order, &unknown), -1);
	assert_has(unknown->message, "cannot fetch the compile cache");
}

static void a_folder_of_ours_that_cannot_be_made_is_an_error(void **state)
{
	AUTO(auto_free) char *file = place_path(*state, PREFIX "node-0");
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	put_entry(*state, "cache/" KEY("a") "-cache", 10);
	load(&config, *state, order_far(*state), "0");
	must(fs_remove_tree(file, &err), &err);
	write_file(file, "no folder", 0600);
	assert_int_equal(fetch_all(&config, &err), -1);
	assert_has(err->message, "cannot fetch the compile cache");
	assert_has(err->message, "node-0");
}

static void what_was_fetched_goes_when_the_attempt_is_over(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };

	put_entry(*state, OWN KEY("c") "-cache", 10);
	put_entry(*state, PREFIX "node-0/resume/step-10/state.bin", 10);
	load(&config, *state, order_far(*state), "0");
	fetch_discard(&config);
	assert_false(has(*state, OWN));
	assert_false(has(*state, PREFIX "node-0/resume"));
}

/* ---- the checkpoint ---- */

static char *far_url(const struct place *place, const char *name)
{
	return mem_format("dir:%s/far/%s", place->root, name);
}

static json_t *order_resuming(const struct place *place, const char *url)
{
	json_t *order = order_for(place, "true");

	js_put_str(order, "resume_from", url);
	js_put(order, "resume_step", json_integer(10));
	return order;
}

static void a_marked_checkpoint_is_fetched_whole(void **state)
{
	AUTO(auto_free) char *url = far_url(*state, "step-10");
	AUTO(auto_free) char *path = place_path(*state, PREFIX "node-0/resume/step-10/state.bin");
	AUTO(auto_free) char *text = NULL;

	mark_step(*state, 10);
	must_fetch(*state, order_resuming(*state, url));
	text = read_file(path, NULL);
	assert_string_equal(text, "state");
}

static void what_has_no_mark_or_another_content_is_not_resumed_from(void **state)
{
	AUTO(auto_free) char *url = far_url(*state, "step-10");
	AUTO(auto_free) char *none = far_url(*state, "step-20");
	AUTO(auto_free) char *file = place_path(*state, "far/step-10/state.bin");
	AUTO(err_freep) struct err *unmarked = NULL;
	AUTO(err_freep) struct err *damaged = NULL;

	mark_step(*state, 10);
	assert_int_equal(fetch(*state, order_resuming(*state, none), &unmarked), -1);
	assert_has(unmarked->message, "/far/step-20': the mark is gone");
	write_file(file, "STATE", 0600);
	assert_int_equal(fetch(*state, order_resuming(*state, url), &damaged), -1);
	assert_has(damaged->message, "cannot resume from 'dir:");
	assert_has(damaged->message, "state.bin");
	assert_false(has(*state, PREFIX "node-0/resume/step-10"));
}

static void a_root_that_cannot_be_opened_is_an_error(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(fetch(*state, order_resuming(*state, "s3:///step-10"), &err), -1);
	assert_non_null(err);
}

/* ---- peers ---- */

static void load_with_peers(struct agent_config *config, const struct place *place,
			    const char *second)
{
	json_t *order = order_for(place, "true");

	js_put(order, "nodes", json_integer(2));
	js_put(order, "claim_wait_ms", json_integer(1));
	load(config, place, order, "0");
	config->platform.hosts = mem_zero(3, sizeof *config->platform.hosts);
	config->platform.hosts[0] = mem_copy("localhost");
	config->platform.hosts[1] = mem_copy(second);
	config->platform.host_count = 2;
}

static void peers_whose_names_are_not_known_in_time_are_named(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	load_with_peers(&config, *state, "nobody.invalid");
	assert_true(fetch_needed(&config));
	assert_int_equal(fetch_all(&config, &err), -1);
	assert_has(err->message, "the name of node 1, 'nobody.invalid', is not known");
	assert_has(err->hint, "check if the machine");
}

static void known_peers_are_not_waited_for(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	load_with_peers(&config, *state, "localhost");
	must(fetch_all(&config, &err), &err);
}

/* ---- checkpoint of a start that is not the first ---- */

static void load_restarted(struct agent_config *config, const struct place *place, const char *root,
			   const char *rank)
{
	json_t *order = order_for(place, "true");

	js_put(order, "nodes", json_integer(2));
	js_put(order, "claim_wait_ms", json_integer(200));
	js_put(order, "checkpoint",
	       json_pack("{s:s, s:s, s:s, s:s, s:s}", "kind", "files", "root", root, "sync",
			 "agent", "keep", "all", "signal", "USR1"));
	load(config, place, order, rank);
	config->restart = 1;
}

static void node_0_chooses_and_the_others_go_by_it(void **state)
{
	AUTO(auto_free) char *root = mem_format("dir:%s/far", ((struct place *)*state)->root);
	AUTO(err_freep) struct err *err = NULL;

	mark_step(*state, 10);
	for (int node = 0; node < 2; node++) {
		AUTO(agent_config_release) struct agent_config config = { 0 };
		AUTO(agent_config_release) struct agent_config agent = { 0 };

		load_restarted(&config, *state, root, node ? "1" : "0");
		must(resume_agree(&config, &err), &err);
		assert_has(config.order->resume_from, "/far/step-10");
		assert_int_equal(config.order->resume_step, 10);
		/* The agent, which has its own copy of the order. */
		load_restarted(&agent, *state, root, node ? "1" : "0");
		must(resume_adopt(&agent, &err), &err);
		assert_string_equal(agent.order->resume_from, config.order->resume_from);
	}
}

static void an_agent_without_the_choice_says_so(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	load_restarted(&config, *state, "/nowhere", "0");
	assert_int_equal(resume_adopt(&config, &err), -1);
	assert_has(err->message, "resume.json");
}

static void put_choice(const struct place *place, const char *text)
{
	AUTO(auto_free) char *path = place_path(place, PREFIX "resume.json");

	write_file(path, text, 0600);
}

static void no_choice_for_this_start_is_an_error_of_the_nodes_together(void **state)
{
	static const struct {
		const char *choice, *words; /* of node 0; NULL: it has none */
		bool failed;                /* a node has said that it failed */
	} rows[] = {
		{ NULL, "node 0 has not named the checkpoint to resume from within 0 s", false },
		{ "{\"v\":1,\"restart\":0}", "node 0 has not named", false },
		{ "{\"v\":1,\"restart\":2}", "node 0 has not named", false },
		{ "{\"v\":1}", "node 0 has not named", false },
		{ "{\"v\":1,\"rest", "resume.json", false },
		{ NULL, "another node has failed", true },
	};
	AUTO(store_freep) struct store *store = open_store(*state);

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *path = place_path(*state, PREFIX "resume.json");
		AUTO(agent_config_release) struct agent_config config = { 0 };
		AUTO(err_freep) struct err *err = NULL;

		load_restarted(&config, *state, "/nowhere", "1");
		unlink(path);
		if (rows[i].choice)
			put_choice(*state, rows[i].choice);
		if (rows[i].failed)
			node_flag_set(&config, store, FAILED_FILE, json_pack("{s:i}", "node", 0));
		assert_int_equal(resume_agree(&config, &err), -1);
		assert_has(err->message, "cannot find the checkpoint to resume from");
		assert_has(err->message, rows[i].words);
	}
}

static void a_root_or_workspace_that_cannot_be_read_is_no_start_from_scratch(void **state)
{
	AUTO(auto_free) char *file = place_path(*state, "file");
	AUTO(auto_free) char *root = mem_format("dir:%s/file", ((struct place *)*state)->root);
	const char *const roots[] = { "s3://", root, file };

	write_file(file, "no folder", 0600);
	for (size_t i = 0; i < STK_LENGTH(roots); i++) {
		AUTO(agent_config_release) struct agent_config config = { 0 };
		AUTO(err_freep) struct err *err = NULL;

		load_restarted(&config, *state, roots[i], "0");
		if (resume_agree(&config, &err) == 0)
			fail_msg("'%s' was taken for an empty root", roots[i]);
		assert_has(err->message, "cannot find the checkpoint to resume from");
		assert_null(config.order->resume_from);
	}
}

static void a_workspace_that_cannot_be_opened_is_an_error(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	load_restarted(&config, *state, "/nowhere", "0");
	config.workspace = "s3://";
	assert_int_equal(resume_agree(&config, &err), -1);
	assert_non_null(err);
}

/* ---- the helper that fetches ---- */

struct prefetched {
	struct loop *loop;
	struct err *why;
	bool done;
};

static void on_done(void *arg, struct err *why)
{
	struct prefetched *prefetched = arg;

	prefetched->why = why;
	prefetched->done = true;
	loop_quit(prefetched->loop);
}

static struct err *prefetch(const struct place *place, prefetch_fn fn)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(prefetch_release) struct prefetch prefetch = { 0 };
	struct prefetched prefetched = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	load(&config, place, order_for(place, "true"), "0");
	must(loop_new(&prefetched.loop, &err), &err);
	must(prefetch_start(&prefetch, &config, fn, prefetched.loop, on_done, &prefetched, &err),
	     &err);
	must(loop_run(prefetched.loop, &err), &err);
	assert_true(prefetched.done);
	prefetch_release(&prefetch);
	loop_freep(&prefetched.loop);
	return prefetched.why;
}

static int go_well(const struct agent_config *config, struct err **err)
{
	(void)config;
	(void)err;
	return 0;
}

static int run_out_of_space(const struct agent_config *config, struct err **err)
{
	(void)config;
	err_system(err, EXIT_REFUSED, ENOSPC, "cannot write 'x'");
	return err_hint(err, "make room");
}

static int die(const struct agent_config *config, struct err **err)
{
	(void)config;
	(void)err;
	raise(SIGKILL);
	return 0;
}

static int leave(const struct agent_config *config, struct err **err)
{
	(void)config;
	(void)err;
	_exit(9);
}

static void the_agent_learns_what_went_wrong_in_its_helper(void **state)
{
	AUTO(err_freep) struct err *well = prefetch(*state, go_well);
	AUTO(err_freep) struct err *full = prefetch(*state, run_out_of_space);
	AUTO(err_freep) struct err *dead = prefetch(*state, die);
	AUTO(err_freep) struct err *left = prefetch(*state, leave);

	assert_null(well);
	assert_has(full->message, "cannot write 'x'");
	assert_string_equal(full->hint, "make room");
	assert_int_equal(full->os_errno, ENOSPC);
	assert_has(dead->message, "ended with signal 9");
	assert_int_equal(dead->code, EXIT_UNREACHABLE);
	assert_has(left->message, "ended with exit 9");
}

static int wait_for_ever(const struct agent_config *config, struct err **err)
{
	(void)config;
	(void)err;
	pause();
	return 0;
}

static void a_prefetch_that_is_given_up_is_not_heard_of_again(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	struct prefetched prefetched = { 0 };
	struct prefetch prefetch;
	AUTO(err_freep) struct err *err = NULL;
	pid_t pid;

	load(&config, *state, order_for(*state, "true"), "0");
	must(loop_new(&prefetched.loop, &err), &err);
	must(prefetch_start(&prefetch, &config, wait_for_ever, prefetched.loop, on_done,
			    &prefetched, &err),
	     &err);
	pid = prefetch.helper.pid;
	prefetch_release(&prefetch);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(prefetch.helper.pid, 0);
	loop_freep(&prefetched.loop);
	assert_false(prefetched.done);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_manifest_all_entries_are_fetched_and_nothing_else),
		TEST(with_a_manifest_only_its_entries_are_fetched),
		TEST(with_a_damaged_manifest_all_are_fetched),
		TEST(what_an_earlier_start_compiled_is_brought_before_its_folder_goes),
		TEST(a_cache_that_cannot_be_read_is_an_error_that_names_it),
		TEST(a_folder_of_ours_that_cannot_be_made_is_an_error),
		TEST(what_was_fetched_goes_when_the_attempt_is_over),
		TEST(a_marked_checkpoint_is_fetched_whole),
		TEST(what_has_no_mark_or_another_content_is_not_resumed_from),
		TEST(a_root_that_cannot_be_opened_is_an_error),
		TEST(peers_whose_names_are_not_known_in_time_are_named),
		TEST(known_peers_are_not_waited_for),
		TEST(node_0_chooses_and_the_others_go_by_it),
		TEST(an_agent_without_the_choice_says_so),
		TEST(no_choice_for_this_start_is_an_error_of_the_nodes_together),
		TEST(a_root_or_workspace_that_cannot_be_read_is_no_start_from_scratch),
		TEST(a_workspace_that_cannot_be_opened_is_an_error),
		TEST(the_agent_learns_what_went_wrong_in_its_helper),
		TEST(a_prefetch_that_is_given_up_is_not_heard_of_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
