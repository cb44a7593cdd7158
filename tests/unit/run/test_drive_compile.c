/* A run with a phase 1, from its cache to its verdict, and runs that wait for one another. See
 * jobs/run/cache_gate.c and jobs/run/precompile_claim.c. */
#undef TEST_DATA
#define TEST_DATA SOURCE_ROOT "/tests/unit/cache"
#include "tests/unit/cache/support.h"

#include "drive_fixture.h"

#include <sys/stat.h>

#include "jobs/cache/manifest/key_claim.h"

#define LOG_FG                                                                                     \
	MISS("jit_f", KEY_F)                                                                       \
	WRITING("jit_f", KEY_F) MISS("jit_g", KEY_G) WRITING("jit_g", KEY_G)
#define COMPILER    "{'python':'3.10','jax':'0.10.2'}"
#define INGREDIENTS "{'compiler':" COMPILER ",'batch_size':32}"

static char cache[80];
static char graph_key[SHA256_HEX];

/* The proof of a run of this id by this log, in this cache. */
static void prove(const char *folder, const char *run, const char *ingredients, const char *log)
{
	AUTO(store_freep) struct store *store = open_cache(folder);
	json_auto_t *compiler = quoted_json(COMPILER);
	json_auto_t *json = quoted_json(ingredients);
	struct lock_facts facts = { .kind = jax(),
				    .store = store,
				    .name = "n",
				    .run = run,
				    .now = { 5000 },
				    .compiler = compiler,
				    .ingredients = json };

	manifest_by(&facts, log, graph_key);
}

static void use_cache(void)
{
	snprintf(cache, sizeof cache, "%s/cache", dir);
	write_entry(cache, KEY_F, "f");
	write_entry(cache, KEY_G, "g");
}

/* A run that compiles two graphs ahead, with these members of `compile` besides. */
static void create_compiling(const char *more)
{
	AUTO(auto_free) char *other = in_dir("other");
	AUTO(auto_free) char *members = NULL;

	use_cache();
	write_entry(other, KEY_F, "f");
	write_entry(other, KEY_G, "g");
	prove(other, "x", INGREDIENTS, LOG_FG);
	members = mem_format(
		"'compile':{'kind':'jax','cache':'%s','graph_key':'%s','ingredients':" INGREDIENTS
		",'compiler':" COMPILER ",'timeout_ms':60000,"
		"'mode':'aot'%s},'phases':[{'phase':"
		"'precompile','command':['train'],'env':{}},{'phase':'train',"
		"'command':['train'],'env':{}}]",
		cache, graph_key, more);
	create(members);
	play.log = LOG_FG;
}

/* The log of phase 1; the training says nothing. */
static void log_of_phase_1(int number)
{
	(void)number;
	play.log = strstr(play.job, "train") ? NULL : LOG_FG;
	play.until_end = 0;
}

#define BEGINS   "driver.took_over cache.checked cache.claimed "
#define TRAINING "attempt.intended attempt.submitted jit.compiled attempt.ended "

static void a_cold_cache_is_filled_before_the_training(void **state)
{
	json_auto_t *claim = NULL;
	AUTO(auto_free) char *path = NULL;
	struct err *err = NULL;

	(void)state;
	create_compiling("");
	play.at_describe = log_of_phase_1;
	drive_ends(EXIT_DONE);
	assert_told(BEGINS "attempt.intended attempt.submitted compile.progress attempt.ended "
			   "cache.verified " TRAINING "run.ended");
	assert_string_equal(newest("cache.checked", "verdict"), "cold");
	assert_string_equal(newest("cache.checked", "reason"),
			    "no precompile has been verified in this cache yet");
	assert_null(json_object_get(newest_row("cache.checked"), "graphs"));
	assert_null(json_object_get(newest_row("cache.checked"), "changed"));
	assert_string_equal(newest("cache.claimed", "graph_key"), graph_key);
	assert_true(json_is_true(json_object_get(newest_row("cache.verified"), "complete")));
	assert_string_equal(newest("cache.verified", "graph_key"), graph_key);
	assert_string_equal(newest("cache.verified", "reason"),
			    "2 compiled now, 0 found in the cache");
	assert_int_equal(newest_int("cache.verified", "attempt"), 1);
	assert_int_equal(newest_int("cache.verified", "graphs"), 2);
	assert_int_equal(newest_int("cache.verified", "done"), 2);
	assert_int_equal(newest_int("cache.verified", "failed"), 0);
	assert_int_equal(newest_int("cache.verified", "locked"), 0);
	assert_int_equal(newest_int("cache.verified", "missing"), 0);
	assert_int_equal(newest_int("cache.verified", "hits"), 0);
	assert_int_equal(newest_int("cache.verified", "compiled"), 2);
	assert_null(json_object_get(newest_row("cache.verified"), "action"));
	assert_null(json_object_get(newest_row("cache.verified"), "hint"));
	assert_int_equal(
		json_array_size(json_object_get(
			json_object_get(newest_row("cache.verified"), "sources"), "problems")),
		0);
	assert_int_equal(count_of("chore.failed"), 0);
	assert_true(waits_of(20000) > 0); /* after which the claim is renewed */
	/* given up after the verdict */
	path = mem_format("%s/" KEY_CLAIM_PREFIX "%s.json", cache, graph_key);
	js_load(path, 4096, &claim, &err);
	assert_no_error(err);
	assert_string_equal(js_str(claim, "run"), "r1");
	assert_false(js_bool(claim, "held", true));
}

static json_t *order_of_attempt(const char *name)
{
	AUTO(auto_free) char *path = mem_format("%s/ws/runs/r1/%s/order.json", dir, name);
	struct err *err = NULL;
	json_t *order = NULL;

	js_load(path, (size_t)1 << 20, &order, &err);
	assert_no_error(err);
	return order;
}

static void a_training_is_held_to_what_phase_1_has_proved(void **state)
{
	json_auto_t *first = NULL, *second = NULL;
	const json_t *compile;

	(void)state;
	create_compiling("");
	play.at_describe = log_of_phase_1;
	drive_ends(EXIT_DONE);
	first = order_of_attempt("precompile-1");
	compile = json_object_get(first, "compile");
	assert_null(json_object_get(compile, "lock"));
	assert_null(json_object_get(compile, "compiler"));
	assert_string_equal(js_str(compile, "graph_key"), graph_key);
	assert_true(strlen(js_str(compile, "claim")) > 10);
	second = order_of_attempt("train-1");
	compile = json_object_get(second, "compile");
	assert_string_equal(js_str(compile, "lock"), graph_key);
	assert_string_equal(js_str(json_object_get(compile, "compiler"), "jax"), "0.10.2");
	assert_null(json_object_get(compile, "claim"));
	assert_string_not_equal(js_str(first, "nonce"), js_str(second, "nonce"));
	assert_string_equal(js_str(second, "nonce"), newest("attempt.intended", "nonce"));
}

static void a_warm_cache_needs_no_phase_1(void **state)
{
	(void)state;
	create_compiling("");
	prove(cache, "r0", INGREDIENTS, LOG_FG);
	play.log = NULL;
	drive_ends(EXIT_DONE);
	assert_told("driver.took_over cache.checked " TRAINING "run.ended");
	assert_string_equal(newest("cache.checked", "verdict"), "warm");
	assert_string_equal(newest("cache.checked", "reason"),
			    "all 2 graphs of the compile manifest are in the cache, unchanged");
	assert_int_equal(newest_int("cache.checked", "graphs"), 2);
	assert_string_equal(newest("cache.checked", "graph_key"), graph_key);
	assert_string_equal(play.prefix, "runs/r1/train-1/");
}

/* ---- not complete ---- */

static void an_incomplete_cache_begins_no_training(void **state)
{
	const json_t *problems;

	(void)state;
	create_compiling("");
	remove_entry(cache, KEY_G);
	play.at_describe = log_of_phase_1;
	drive_ends(EXIT_GATE);
	assert_int_equal(count_of("cache.verified"), 2); /* it is tried once more */
	assert_false(json_is_true(json_object_get(newest_row("cache.verified"), "complete")));
	assert_int_equal(newest_int("cache.verified", "attempt"), 2);
	assert_int_equal(newest_int("cache.verified", "graphs"), 2);
	assert_int_equal(newest_int("cache.verified", "done"), 1);
	assert_int_equal(newest_int("cache.verified", "missing"), 1);
	assert_string_equal(newest("cache.verified", "reason"),
			    "missing or damaged graphs in the cache: 1 of 2: " KEY_G
			    ": reported as written, but not in the cache");
	problems = json_object_get(json_object_get(newest_row("cache.verified"), "sources"),
				   "problems");
	assert_string_equal(js_str(json_array_get(problems, 0), "graph"), KEY_G);
	assert_int_equal(count_of("cache.repaired"), 0);
}

static void a_damaged_entry_of_phase_1_is_taken_out(void **state)
{
	(void)state;
	create_compiling("");
	cut_entry(cache, KEY_G, 100);
	play.at_describe = log_of_phase_1;
	drive_ends(EXIT_GATE);
	assert_false(has_entry(cache, KEY_G));
	assert_true(has_entry(cache, KEY_F));
	assert_string_equal(newest("cache.repaired", "reason"), "entries of this run were damaged");
	assert_string_equal(newest("cache.repaired", "graph_key"), graph_key);
	assert_int_equal(json_array_size(json_object_get(newest_row("cache.repaired"), "removed")),
			 1);
}

static void it_is_trained_with_it_all_the_same_if_the_spec_says_so(void **state)
{
	(void)state;
	create_compiling(",'on_incomplete':'train'");
	remove_entry(cache, KEY_G);
	play.at_describe = log_of_phase_1;
	drive_ends(EXIT_DONE);
	assert_int_equal(count_of("cache.verified"), 2);
	assert_string_equal(play.job, "stk-r1-train-1");
}

/* A file that looks unfinished may still be written. */
static void a_verdict_waits_until_nothing_changes_any_more(void **state)
{
	(void)state;
	create_compiling(",'quiet_ms':500");
	remove_entry(cache, KEY_G);
	play.at_describe = log_of_phase_1;
	drive_ends(EXIT_GATE);
	assert_int_equal(count_of("cache.verified"), 2);
	assert_string_equal(newest("cache.verified", "reason"),
			    "missing or damaged graphs in the cache: 1 of 2: " KEY_G
			    ": reported as written, but not in the cache");
}

/* ---- late graphs ---- */

static void compile_late(int number)
{
	log_of_phase_1(number);
	if (!strstr(play.job, "train"))
		return;
	play.log = MISS("jit_h", KEY_H) WRITING("jit_h", KEY_H);
	write_entry(cache, KEY_H, "h");
}

static void what_a_training_compiles_joins_the_manifest(void **state)
{
	AUTO(compile_manifest_freep) struct compile_manifest *lock = NULL;
	AUTO(store_freep) struct store *store = NULL;
	AUTO(auto_free) char *damage = NULL;
	struct err *err = NULL;

	(void)state;
	create_compiling("");
	play.at_describe = compile_late;
	drive_ends(EXIT_DONE);
	assert_int_equal(newest_int("jit.compiled", "graphs"), 1);
	store = open_cache(cache);
	assert_int_equal(compile_manifest_load(store, graph_key, &lock, &damage, &err), 1);
	assert_int_equal(lock->count, 3);
	assert_int_equal(count_of("chore.failed"), 0);
}

static void be_silent_after_the_end(void *arg, const struct event *ev, json_t *row)
{
	keep_event(arg, ev, row);
	if (ev->kind == EV_ATTEMPT_ENDED)
		play.silent_describes = 1;
}

/* Nothing else is done meanwhile. */
static void chores_that_fail_are_done_after_a_while(void **state)
{
	(void)state;
	create_compiling("");
	play.at_describe = log_of_phase_1;
	options.on_event = be_silent_after_the_end;
	drive_ends(EXIT_DONE);
	assert_true(waits_of(300) > 0);
	assert_int_equal(count_of("chore.failed"), 0);
	assert_int_equal(count_of("driver.waiting"), 0);
}

/* ---- lost ---- */

static void lose_graph(int number)
{
	log_of_phase_1(number);
	if (strstr(play.job, "train-1") && has_entry(cache, KEY_G))
		remove_entry(cache, KEY_G);
	play.end.exit = strstr(play.job, "train-1") ? 75 : 0;
}

static void make_again(int number)
{
	lose_graph(number);
	if (strstr(play.job, "precompile-2"))
		write_entry(cache, KEY_G, "g");
}

static void graphs_that_are_lost_before_a_retry_are_compiled_again(void **state)
{
	(void)state;
	create_compiling("");
	play.at_describe = make_again;
	drive_ends(EXIT_DONE);
	assert_int_equal(count_of("cache.checked"), 2);
	assert_string_equal(newest("cache.checked", "verdict"), "cold");
	assert_string_equal(newest("cache.checked", "graph_key"), graph_key);
	assert_string_equal(newest("cache.checked", "reason"),
			    "verified graphs are lost: 1 of 2: " KEY_G ": gone from the cache");
	assert_int_equal(count_of("cache.verified"), 2);
	assert_string_equal(play.job, "stk-r1-train-2");
}

static void lose_manifest(int number)
{
	AUTO(auto_free) char *path = mem_format("%s/" LOCK_PREFIX, cache);
	AUTO(err_freep) struct err *err = NULL;

	log_of_phase_1(number);
	if (strstr(play.job, "train-1"))
		(void)!fs_remove_tree(path, &err);
	play.end.exit = strstr(play.job, "train-1") ? 75 : 0;
}

static void a_manifest_that_is_gone_is_written_again(void **state)
{
	(void)state;
	create_compiling("");
	play.at_describe = lose_manifest;
	drive_ends(EXIT_DONE);
	assert_int_equal(count_of("cache.checked"), 2);
	assert_string_equal(newest("cache.checked", "reason"), "the compile manifest is gone");
	assert_int_equal(count_of("cache.verified"), 2);
}

/* ---- other runs ---- */

static struct key_claim others;

static void claim_as(const char *run)
{
	static struct store *store;
	struct err *err = NULL;

	store = open_cache(cache);
	key_claim_init(&others, store, graph_key, run, "another nonce");
	assert_int_equal(key_claim_try(&others, &err), 1);
	assert_no_error(err);
}

static void give_up_claim(void)
{
	struct store *store = others.store;
	struct err *err = NULL;

	key_claim_release(&others, &err);
	assert_no_error(err);
	key_claim_clear(&others);
	store_freep(&store);
}

static bool others_prove;

static void on_waiting(void *arg, const struct event *ev, json_t *row)
{
	keep_event(arg, ev, row);
	if (ev->kind != EV_CACHE_WAITING)
		return;
	if (others_prove)
		prove(cache, "r2", INGREDIENTS, LOG_FG);
	give_up_claim();
}

static void a_run_waits_for_another_that_compiles_the_same(void **state)
{
	char host[256] = "";

	(void)state;
	gethostname(host, sizeof host - 1);
	create_compiling("");
	claim_as("r2");
	options.on_event = on_waiting;
	others_prove = false;
	play.at_describe = log_of_phase_1;
	drive_ends(EXIT_DONE);
	assert_told("driver.took_over cache.checked cache.waiting cache.claimed attempt.intended "
		    "attempt.submitted compile.progress attempt.ended cache.verified " TRAINING
		    "run.ended");
	assert_string_equal(newest("cache.waiting", "holder"), "r2");
	assert_string_equal(newest("cache.waiting", "graph_key"), graph_key);
	assert_string_equal(newest("cache.waiting", "host"), host);
	assert_true(newest_int("cache.waiting", "since") > 0);
	assert_string_equal(newest("cache.claimed", "reason"),
			    "run r2, the last holder, has ended");
	assert_true(waits_of(1000) >= 1);
}

static void a_run_that_waited_finds_the_cache_warm(void **state)
{
	(void)state;
	create_compiling("");
	claim_as("r2");
	options.on_event = on_waiting;
	others_prove = true;
	play.log = NULL;
	drive_ends(EXIT_DONE);
	assert_told("driver.took_over cache.checked cache.waiting cache.checked " TRAINING
		    "run.ended");
	assert_string_equal(newest("cache.checked", "verdict"), "warm");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_cold_cache_is_filled_before_the_training),
		TEST(a_training_is_held_to_what_phase_1_has_proved),
		TEST(a_warm_cache_needs_no_phase_1),
		TEST(an_incomplete_cache_begins_no_training),
		TEST(a_damaged_entry_of_phase_1_is_taken_out),
		TEST(it_is_trained_with_it_all_the_same_if_the_spec_says_so),
		TEST(a_verdict_waits_until_nothing_changes_any_more),
		TEST(what_a_training_compiles_joins_the_manifest),
		TEST(chores_that_fail_are_done_after_a_while),
		TEST(graphs_that_are_lost_before_a_retry_are_compiled_again),
		TEST(a_manifest_that_is_gone_is_written_again),
		TEST(a_run_waits_for_another_that_compiles_the_same),
		TEST(a_run_that_waited_finds_the_cache_warm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
