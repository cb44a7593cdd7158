/* Which graphs of a node's own folder get into the compile cache, when, and what is said of those
 * that do not. */
#include "tests/unit/node/agent_run.h"

#include "jobs/node/checkpoints/cache_push.h"

#define ENTRY(letter) "jit_" letter "-" X16(letter) X16(letter) X16(letter) X16(letter) "-cache"
#define X16(letter)   X4(letter) X4(letter) X4(letter) X4(letter)
#define X4(letter)    letter letter letter letter
/* A zstd frame that ends before its first block. */
#define CUT "\x28\xb5\x2f\xfd\x20\x05"

/* An agent's order with a compile cache that its compiler cannot open by its URL. */
static void load_pushing(struct agent_config *config, const struct place *place)
{
	AUTO(auto_free) char *cache = mem_format("dir:%s/cache", place->root);
	json_t *order = order_for(place, "true");

	js_put(order, "compile", json_pack("{s:s, s:s}", "kind", "jax", "cache", cache));
	load(config, place, order, "0");
}

/* The text, shorter than 32 bytes, in a whole zstd frame, as a compiler stores it; CUT as it is. */
static struct sb frame(const char *text)
{
	struct sb bytes = SB_INIT;
	size_t len = strlen(text);

	if (strncmp(text, CUT, 4) == 0) {
		sb_adds(&bytes, text);
		return bytes;
	}
	sb_adds(&bytes, "\x28\xb5\x2f\xfd\x20");
	sb_addc(&bytes, (char)len);
	sb_addc(&bytes, (char)(len << 3 | 1)); /* the last block, as it is */
	sb_add(&bytes, "\0\0", 2);
	sb_adds(&bytes, text);
	return bytes;
}

static void put_entry(const struct place *place, const char *folder, const char *name,
		      const char *text)
{
	AUTO(auto_free) char *path = mem_format("%s/%s/%s", place->root, folder, name);
	AUTO(auto_free) char *above = fs_dirname(path);
	AUTO(sb_release) struct sb bytes = frame(text);
	AUTO(err_freep) struct err *err = NULL;

	must(fs_mkdirs(above, &err), &err);
	must(fs_write_atomic(path, bytes.text, bytes.len, 0600, &err), &err);
}

static void compile(const struct place *place, const char *name, const char *text)
{
	put_entry(place, PREFIX "node-0/cache", name, text);
}

static void put_in_cache(const struct place *place, const char *name, const char *text)
{
	put_entry(place, "cache", name, text);
}

static void assert_cached(const struct place *place, const char *name, const char *wanted)
{
	AUTO(auto_free) char *path = mem_format("%s/cache/%s", place->root, name);
	AUTO(sb_release) struct sb bytes = frame(wanted ? wanted : "");
	size_t len = 0;
	AUTO(auto_free) char *text = read_file(path, &len);

	if (!wanted ? text != NULL
		    : !text || len != bytes.len || memcmp(text, bytes.text, len) != 0)
		fail_msg("%s is %s", name, text ? "another" : "not there");
}

static struct cache_push *open_push(const struct agent_config *config)
{
	AUTO(err_freep) struct err *err = NULL;
	struct cache_push *push;

	must(cache_push_open(config, &push, &err), &err);
	return push;
}

static void count(void *arg)
{
	++*(int *)arg;
}

static int scan(struct cache_push *push, bool at_end)
{
	AUTO(err_freep) struct err *err = NULL;
	int brought = 0;

	must(cache_push_scan(push, at_end, count, &brought, &err), &err);
	return brought;
}

static void what_stands_still_between_two_looks_is_brought(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(cache_push_freep) struct cache_push *push = NULL;

	load_pushing(&config, *state);
	push = open_push(&config);
	assert_int_equal(scan(push, false), 0); /* no compiler has begun */
	compile(*state, ENTRY("b"), "first");
	compile(*state, ENTRY("a"), "half");
	compile(*state, "jit_c", "no entry");
	compile(*state, "stoker/claims/x", "ours");
	assert_int_equal(scan(push, false), 0);
	compile(*state, ENTRY("a"), "half and half"); /* it is still being written */
	assert_int_equal(scan(push, false), 1);
	assert_cached(*state, ENTRY("b"), "first");
	assert_cached(*state, ENTRY("a"), NULL);
	assert_int_equal(scan(push, false), 1);
	assert_cached(*state, ENTRY("a"), "half and half");
	assert_cached(*state, "jit_c", NULL);
	assert_cached(*state, "stoker/claims/x", NULL);
	assert_int_equal(scan(push, false), 0); /* once */
}

static void what_the_cache_has_is_not_replaced(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(cache_push_freep) struct cache_push *push = NULL;

	put_in_cache(*state, ENTRY("a"), "theirs");
	put_in_cache(*state, "stoker/manifest.json", "{}");
	load_pushing(&config, *state);
	push = open_push(&config);
	compile(*state, ENTRY("a"), "ours");
	assert_int_equal(scan(push, true), 0);
	assert_cached(*state, ENTRY("a"), "theirs");
}

static void at_the_end_all_that_is_whole_is_brought_and_the_rest_counted(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(cache_push_freep) struct cache_push *push = NULL;
	json_auto_t *news = NULL;

	load_pushing(&config, *state);
	push = open_push(&config);
	compile(*state, ENTRY("a"), "one");
	compile(*state, ENTRY("b"), CUT);
	assert_null(cache_push_news(push, false, NULL, NULL));
	news = cache_push_news(push, true, NULL, NULL);
	assert_string_equal(js_str(news, "news"), "pushed");
	assert_int_equal(js_int(news, "brought", 0), 1);
	assert_int_equal(js_int(news, "cut", 0), 1);
	assert_cached(*state, ENTRY("a"), "one");
	assert_cached(*state, ENTRY("b"), NULL);
}

static void assert_unpushed(struct cache_push *push, const char *words)
{
	json_auto_t *news = cache_push_news(push, true, NULL, NULL);

	assert_string_equal(js_str(news, "news"), "unpushed");
	assert_has(js_str(news, "why"), words);
}

static void a_cache_that_takes_nothing_is_named_and_asked_again(void **state)
{
	AUTO(auto_free) char *cache = place_path(*state, "cache");
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(cache_push_freep) struct cache_push *push = NULL;

	load_pushing(&config, *state);
	push = open_push(&config);
	compile(*state, ENTRY("a"), "one");
	write_file(cache, "no folder", 0600);
	assert_unpushed(push, "cannot read the compile cache");
	assert_int_equal(unlink(cache), 0);
	assert_int_equal(scan(push, false), 0);
	/* The folder goes while the command runs. */
	write_file(cache, "no folder", 0600);
	assert_unpushed(push, "cannot upload the compiled graphs to the cache");
	assert_int_equal(unlink(cache), 0);
	assert_int_equal(scan(push, true), 1);
	assert_cached(*state, ENTRY("a"), "one");
}

static void a_folder_of_ours_that_cannot_be_read_is_no_empty_one(void **state)
{
	AUTO(auto_free) char *folder = place_path(*state, PREFIX "node-0/cache");
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(cache_push_freep) struct cache_push *push = NULL;

	load_pushing(&config, *state);
	push = open_push(&config);
	write_file(folder, "no folder", 0600);
	assert_unpushed(push, "node-0/cache");
}

/* An address that no store has. */
static void a_cache_that_cannot_be_opened_is_an_error(void **state)
{
	AUTO(agent_config_release) struct agent_config config = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	struct cache_push *push = NULL;
	json_t *order = order_for(*state, "true");

	js_put(order, "compile", json_pack("{s:s, s:s}", "kind", "jax", "cache", "s3://"));
	load(&config, *state, order, "0");
	assert_int_equal(cache_push_open(&config, &push, &err), -1);
	assert_non_null(err);
	assert_null(push);
	cache_push_freep(&push);
}

/* The real agent: what its command compiles is there when it has ended. */
static void the_agent_brings_what_its_command_has_compiled(void **state)
{
	struct place *place = *state;
	AUTO(auto_free) char *cache = mem_format("dir:%s/cache", place->root);
	json_t *order = order_for(
		place, "test -e $STOKER_CACHE_DIR/" ENTRY(
			       "a") " && "
				    "printf '\\050\\265\\057\\375\\040\\003\\031\\000\\000new' > "
				    "$STOKER_CACHE_DIR/" ENTRY("b"));
	AUTO(auto_free) char *folder = place_path(place, PREFIX "node-0/cache");

	put_in_cache(place, ENTRY("a"), "old");
	js_put(order, "compile", json_pack("{s:s, s:s}", "kind", "jax", "cache", cache));
	assert_int_equal(run(place, order), 0);
	assert_cached(place, ENTRY("b"), "new");
	assert_false(fs_exists(folder));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_stands_still_between_two_looks_is_brought),
		TEST(what_the_cache_has_is_not_replaced),
		TEST(at_the_end_all_that_is_whole_is_brought_and_the_rest_counted),
		TEST(a_cache_that_takes_nothing_is_named_and_asked_again),
		TEST(a_folder_of_ours_that_cannot_be_read_is_no_empty_one),
		TEST(a_cache_that_cannot_be_opened_is_an_error),
		TEST(the_agent_brings_what_its_command_has_compiled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
