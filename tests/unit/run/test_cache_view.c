/* Whether the cache is warm or cold, and the one line that says why. See jobs/run/cache_view.c. */
#undef TEST_DATA
#define TEST_DATA SOURCE_ROOT "/tests/unit/cache"
#include "tests/unit/cache/support.h"

#include <unistd.h>

#include "../quoted.h"
#include "jobs/cache/graphs/graph_key.h"
#include "jobs/cache/manifest/compile_manifest_file.h"
#include "jobs/run/plan/plan.h"

#define LOG_FG                                                                                     \
	MISS("jit_f", KEY_F)                                                                       \
	WRITING("jit_f", KEY_F) MISS("jit_g", KEY_G) WRITING("jit_g", KEY_G)

static char dir[64];
static char graph_key[SHA256_HEX];

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/stoker-view-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	write_entry(dir, KEY_F, "f");
	write_entry(dir, KEY_G, "g");
	return 0;
}

static int tear_down(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	return fs_remove_tree(dir, &err);
}

/* The proof of a run of these ingredients. */
static void prove(const char *ingredients, const char *image, const char *log)
{
	AUTO(store_freep) struct store *store = open_cache(dir);
	json_auto_t *compiler = quoted_json("{'python':'3.10','jax':'0.10.2'}");
	json_auto_t *json = quoted_json(ingredients);
	struct lock_facts facts = { .kind = jax(),
				    .store = store,
				    .name = "n",
				    .run = "r0",
				    .image = image,
				    .now = { 5000 },
				    .compiler = compiler,
				    .ingredients = json };

	manifest_by(&facts, log, graph_key);
}

static json_t *plan_of(const char *ingredients, const char *key, const char *members)
{
	AUTO(auto_free)
	char *text = mem_format("{'name':'n','compile':{'kind':'jax','cache':'%s','graph_key':'%s',"
				"'ingredients':%s}%s}",
				dir, key, ingredients, members);

	return quoted_json(text);
}

static struct cache_view view;

static void views(const json_t *plan, enum cache_state verdict, const char *reason)
{
	struct err *err = NULL;

	cache_view_clear(&view);
	cache_view_make(plan, &view, &err);
	assert_no_error(err);
	assert_string_equal(view.reason, reason);
	assert_int_equal(view.verdict, verdict);
}

#define NO_KEY "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

/* A plan of these ingredients finds the manifest of those. */
static void is_cold(const char *before, const char *after, const char *reason, size_t changes)
{
	json_auto_t *plan = plan_of(after, NO_KEY, "");

	prove(before, NULL, LOG_FG);
	views(plan, CACHE_COLD, reason);
	assert_int_equal(json_array_size(view.changed), changes);
	assert_null(view.lock);
	assert_int_equal(view.graphs, 0);
	cache_view_clear(&view);
	(void)tear_down(NULL);
	(void)set_up(NULL);
}

#define Y10 "yyyyyyyyyy"
#define Y80 Y10 Y10 Y10 Y10 Y10 Y10 Y10 Y10

static void what_has_changed_is_named(void **state)
{
	(void)state;
	is_cold("{'b':32}", "{'b':64}", "b changed from 32 to 64", 1);
	is_cold("{'b':'x'}", "{'b':'y'}", "b changed from x to y", 1);
	is_cold("{'a':1}", "{'a':1,'b':'y'}", "b changed from nothing to y", 1);
	is_cold("{'a':1,'b':null}", "{'a':1,'b':2}", "b changed from nothing to 2", 1);
	is_cold("{'b':true}", "{'b':[1]}", "b changed from true to [1]", 1);
	is_cold("{'b':1,'c':1}", "{'b':2,'c':2}", "b changed from 1 to 2 (and 1 more)", 2);
	is_cold("{'b':1,'c':1,'d':1}", "{'b':2,'c':2,'d':2}", "b changed from 1 to 2 (and 2 more)",
		3);
	is_cold("{'b':'x'}", "{'b':'" Y80 "'}", "b changed from x to " Y80, 1);
	/* a long one is shown in part, as it is written */
	is_cold("{'b':'x'}", "{'b':'" Y80 "z'}",
		"b changed from x to \"" Y10 Y10 Y10 Y10 Y10 Y10 Y10 "yyyyyyyyy", 1);
	is_cold("{'source':{'train.py':'1'}}", "{'source':{'train.py':'2'}}", "train.py changed",
		1);
	is_cold("{'b':1}", "{'b':1}", "the compile manifest is gone", 0);
}

static void a_tag_that_has_moved_comes_first(void **state)
{
	static const struct {
		const char *before, *image, *reason;
	} rows[] = {
		{ "i:1", "{'reference':'i:1'}",
		  "the tag of 'i:1' has moved: sha256:1 → sha256:2 (and 1 more)" },
		{ "i:1", "{'reference':'i:2'}", "a changed from 1 to 2 (and 1 more)" },
		{ NULL, "{'reference':'i:1'}", "a changed from 1 to 2 (and 1 more)" },
		{ "i:1", "{}", "a changed from 1 to 2 (and 1 more)" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *members = mem_format(",'image':%s", rows[i].image);
		json_auto_t *plan = plan_of("{'a':2,'image':'sha256:2'}", NO_KEY, members);

		prove("{'a':1,'image':'sha256:1'}", rows[i].before, LOG_FG);
		views(plan, CACHE_COLD, rows[i].reason);
		cache_view_clear(&view);
		(void)tear_down(NULL);
		(void)set_up(NULL);
	}
}

/* The user's own changes cannot be seen in a key of other rules. */
static void a_manifest_of_other_rules_is_told_as_that(void **state)
{
	static const char reason[] = "the compile manifest is of an earlier version of stoker with "
				     "other rules for graph "
				     "keys; phase 1 finds the graphs that are compiled already";

	(void)state;
	for (int old = 0; old < 2; old++) {
		json_auto_t *plan = plan_of("{'b':2,'" KEY_RULES "':'9'}", NO_KEY, "");

		prove(old ? "{'b':1,'" KEY_RULES "':'8'}" : "{'b':1}", NULL, LOG_FG);
		views(plan, CACHE_COLD, reason);
		assert_int_equal(json_array_size(view.changed), 1);
		assert_string_equal(js_str(json_array_get(view.changed, 0), "field"), KEY_RULES);
		assert_string_equal(js_str(json_array_get(view.changed, 0), "new"), "9");
		if (old)
			assert_string_equal(js_str(json_array_get(view.changed, 0), "old"), "8");
		else
			assert_true(json_is_null(
				json_object_get(json_array_get(view.changed, 0), "old")));
		cache_view_clear(&view);
		(void)tear_down(NULL);
		(void)set_up(NULL);
	}
	/* the same rules are no change, nor are none */
	is_cold("{'b':1,'" KEY_RULES "':'9'}", "{'b':2,'" KEY_RULES "':'9'}",
		"b changed from 1 to 2", 1);
}

/* ---- manifest of the plan's key ---- */

static void a_whole_cache_is_warm(void **state)
{
	json_auto_t *plan = NULL;

	(void)state;
	prove("{'b':1}", NULL, LOG_FG);
	plan = plan_of("{'b':1}", graph_key, "");
	views(plan, CACHE_WARM, "all 2 graphs of the compile manifest are in the cache, unchanged");
	assert_int_equal(view.graphs, 2);
	assert_non_null(view.lock);
	assert_int_equal(json_array_size(view.changed), 0);
	assert_null(view.problems);
	json_decref(plan);
	prove("{'b':2}", NULL, HIT("jit_f", KEY_F));
	plan = plan_of("{'b':2}", graph_key, "");
	views(plan, CACHE_WARM,
	      "the only graph of the compile manifest is in the cache, unchanged");
	assert_int_equal(view.graphs, 1);
	cache_view_clear(&view);
}

/* Another run has proved what it compiled anew. */
static void what_others_compiled_anew_is_as_good(void **state)
{
	AUTO(compile_manifest_freep) struct compile_manifest *ours = NULL;
	AUTO(store_freep) struct store *store = open_cache(dir);
	AUTO(auto_free) char *damage = NULL;
	json_auto_t *plan = NULL;
	char tag[STORE_TAG];
	struct err *err = NULL;

	(void)state;
	prove("{'b':1}", NULL, LOG_FG);
	plan = plan_of("{'b':1}", graph_key, "");
	assert_int_equal(compile_manifest_load(store, graph_key, &ours, &damage, &err), 1);
	write_entry(dir, KEY_F, "compiled once more");
	prove("{'b':2}", NULL, HIT("jit_f", KEY_F));
	assert_int_equal(compile_manifest_tag(store, ours->graph_key, tag, &err), 1);
	assert_int_equal(compile_manifest_file_replace(store, ours, tag, &err), 1);
	views(plan, CACHE_WARM,
	      "all 2 graphs of the compile manifest are in the cache, 1 of them compiled anew and "
	      "verified by other runs");
	cache_view_clear(&view);
}

static void graphs_that_differ_make_it_cold(void **state)
{
	json_auto_t *plan = NULL;

	(void)state;
	prove("{'b':1}", NULL, LOG_FG);
	plan = plan_of("{'b':1}", graph_key, "");
	remove_entry(dir, KEY_G);
	views(plan, CACHE_COLD,
	      "changed graphs of the compile manifest: 1 of 2: " KEY_G " is missing");
	assert_int_equal(json_array_size(view.changed), 1);
	assert_string_equal(js_str(json_array_get(view.changed, 0), "field"), "cache:" KEY_G);
	assert_string_equal(js_str(json_array_get(view.changed, 0), "old"), "ok");
	assert_string_equal(js_str(json_array_get(view.changed, 0), "new"), "missing");
	assert_int_equal(json_array_size(view.problems), 1);
	cut_entry(dir, KEY_F, 100);
	views(plan, CACHE_COLD,
	      "changed graphs of the compile manifest: 2 of 2: " KEY_F " is truncated");
	assert_int_equal(json_array_size(view.changed), 2);
	cache_view_clear(&view);
}

static void a_manifest_that_is_damaged_is_not_trusted(void **state)
{
	AUTO(auto_free) char *path = NULL;
	json_auto_t *plan = NULL;
	AUTO(err_freep) struct err *err = NULL;
	static const char words[] = "the compile manifest cannot be trusted: ";

	(void)state;
	prove("{'b':1}", NULL, LOG_FG);
	plan = plan_of("{'b':1}", graph_key, "");
	path = mem_format("%s/" LOCK_PREFIX "%s.json", dir, graph_key);
	assert_true(fs_exists(path));
	assert_int_equal(fs_write_atomic(path, "{}", 2, 0600, &err), 0);
	assert_int_equal(cache_view_make(plan, &view, &err), 0);
	assert_int_equal(view.verdict, CACHE_COLD);
	assert_memory_equal(view.reason, words, sizeof words - 1);
	cache_view_clear(&view);
}

/* ---- caches without a manifest ---- */

static void without_a_key_nothing_is_known(void **state)
{
	static const struct {
		const char *plan, *reason, *hint;
		enum cache_state verdict;
	} rows[] = {
		{ "{}", "nothing is compiled ahead", NULL, CACHE_NONE },
		{ "{'compile':{}}", "not known: the image is not resolved", NULL, CACHE_UNKNOWN },
		{ "{'compile':{},'image':{'unknown':'no network','hint':'wait'}}",
		  "not known: no network", "wait", CACHE_UNKNOWN },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		json_auto_t *plan = quoted_json(rows[i].plan);

		views(plan, rows[i].verdict, rows[i].reason);
		if (rows[i].hint)
			assert_string_equal(view.hint, rows[i].hint);
		else
			assert_null(view.hint);
	}
	cache_view_clear(&view);
}

static void a_bucket_that_cannot_be_read_is_not_known(void **state)
{
	struct err *err = NULL;
	json_auto_t *plan = plan_of("{'b':1}", NO_KEY, "");

	(void)state;
	json_object_set_new(json_object_get(plan, "compile"), "cache", json_string("s3://b"));
	assert_int_equal(cache_view_try(plan, &view, &err), 0);
	assert_int_equal(view.verdict, CACHE_UNKNOWN);
	assert_string_equal(view.reason, "not known: 's3://b' names no bucket");
	assert_true(json_is_array(view.changed));
	cache_view_clear(&view);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_has_changed_is_named),
		TEST(a_tag_that_has_moved_comes_first),
		TEST(a_manifest_of_other_rules_is_told_as_that),
		TEST(a_whole_cache_is_warm),
		TEST(what_others_compiled_anew_is_as_good),
		TEST(graphs_that_differ_make_it_cold),
		TEST(a_manifest_that_is_damaged_is_not_trusted),
		TEST(without_a_key_nothing_is_known),
		TEST(a_bucket_that_cannot_be_read_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
