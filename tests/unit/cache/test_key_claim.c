/* The promises of key_claim.h: of the runs with one graph key, one is at it. */
#include "tests/unit/cache/support.h"

#include <sys/stat.h>
#include <unistd.h>

#include "jobs/cache/gc.h"
#include "jobs/cache/manifest/compile_manifest.h"
#include "jobs/cache/manifest/key_claim.h"

#define OBJECT KEY_CLAIM_PREFIX HEX_A ".json"

static struct key_claim claim_of(struct store *store, const char *run)
{
	AUTO(auto_free) char *nonce = mem_format("nonce-of-%s", run);
	struct key_claim claim;

	key_claim_init(&claim, store, HEX_A, run, nonce);
	return claim;
}

static int try(struct key_claim *claim)
{
	struct err *err = NULL;
	int taken = key_claim_try(claim, &err);

	assert_no_error(err);
	return taken;
}

static int renew(const struct key_claim *claim)
{
	struct err *err = NULL;
	int renewed = key_claim_renew(claim, &err);

	assert_no_error(err);
	return renewed;
}

static void release(const struct key_claim *claim)
{
	struct err *err = NULL;

	assert_int_equal(key_claim_release(claim, &err), 0);
	assert_no_error(err);
}

/* Somebody else's, from another host. */
static void put_claim(struct store *store, const char *text)
{
	struct err *err = NULL;

	store_put(store, OBJECT, text, strlen(text), &err);
	assert_no_error(err);
}

static char *content(struct store *store)
{
	struct sb text = SB_INIT;
	struct err *err = NULL;

	assert_int_equal(store_get(store, OBJECT, 100000, &text, NULL, &err), 1);
	return text.text;
}

static void the_first_has_it_and_the_second_is_told_who(void **state)
{
	AUTO(store_freep) struct store *store = open_cache(*state);
	AUTO(key_claim_clear) struct key_claim one = claim_of(store, "one");
	AUTO(key_claim_clear) struct key_claim two = claim_of(store, "two");
	char host[256] = "";

	assert_int_equal(try(&one), 1);
	assert_null(one.taken);
	assert_int_equal(try(&two), 0);
	assert_string_equal(two.holder, "one");
	gethostname(host, sizeof host - 1);
	assert_string_equal(two.host, host);
	assert_true(clock_utc_now().ms - two.since_ms < 60000);
	assert_int_equal(renew(&two), 0);
	assert_int_equal(try(&two), 0);
	release(&two); /* is nothing of its */
	assert_int_equal(renew(&one), 1);
}

static void a_run_knows_its_own_claim_again(void **state)
{
	AUTO(store_freep) struct store *store = open_cache(*state);
	AUTO(key_claim_clear) struct key_claim before = claim_of(store, "one");
	AUTO(key_claim_clear) struct key_claim after = claim_of(store, "one");
	int64_t since;

	assert_int_equal(try(&before), 1);
	assert_int_equal(try(&after), 1);
	assert_null(after.taken);
	since = clock_utc_now().ms;
	assert_int_equal(renew(&before), 1);
	assert_int_equal(renew(&after), 1);
	release(&after);
	assert_int_equal(renew(&before), 0);
	assert_true(clock_utc_now().ms >= since);
}

static void what_is_given_up_is_taken_at_once(void **state)
{
	AUTO(store_freep) struct store *store = open_cache(*state);
	AUTO(key_claim_clear) struct key_claim one = claim_of(store, "one");
	AUTO(key_claim_clear) struct key_claim two = claim_of(store, "two");
	AUTO(key_claim_clear) struct key_claim three = claim_of(store, "three");

	assert_int_equal(try(&one), 1);
	assert_int_equal(try(&two), 0);
	release(&one);
	assert_int_equal(try(&two), 1);
	assert_string_equal(two.taken, "run one, the last holder, has ended");
	assert_int_equal(try(&three), 0);
	assert_string_equal(three.holder, "two");
	/* Too late for the first to say anything. */
	release(&one);
	assert_int_equal(renew(&one), 0);
	assert_int_equal(renew(&two), 1);
}

static void what_stays_unchanged_for_too_long_is_taken_by_one_of_many(void **state)
{
	AUTO(store_freep) struct store *store = open_cache(*state);
	struct key_claim runs[8];
	int taken = 0;

	/* The holder's clock is years ahead: that is no matter. */
	put_claim(store, "{\"v\":1,\"run\":\"gone\",\"host\":\"elsewhere\",\"nonce\":\"n\","
			 "\"since\":9999999999999,\"held\":true,\"valid_ms\":60000,\"beat\":1}");
	for (size_t i = 0; i < STK_LENGTH(runs); i++) {
		char name[2] = { (char)('a' + i), '\0' };

		runs[i] = claim_of(store, name);
		assert_int_equal(try(&runs[i]), 0);
	}
	runs[0].watched_ms = 30000; /* as if half a minute had passed, and then another */
	assert_int_equal(try(&runs[0]), 0);
	for (size_t i = 0; i < STK_LENGTH(runs); i++) {
		int mine;

		runs[i].watched_ms = 60000;
		mine = try(&runs[i]);

		taken += mine;
		if (mine)
			assert_non_null(strstr(runs[i].taken, "run gone has not renewed"));
		key_claim_clear(&runs[i]);
	}
	assert_int_equal(taken, 1);
}

static void what_changes_is_waited_for(void **state)
{
	AUTO(store_freep) struct store *store = open_cache(*state);
	AUTO(key_claim_clear) struct key_claim one = claim_of(store, "one");

	for (int i = 0; i < 6; i++) {
		AUTO(auto_free)
		char *text = mem_format("{\"v\":1,\"run\":\"busy\",\"nonce\":\"n\",\"held\":true,"
					"\"valid_ms\":60000,\"beat\":%d}",
					i);

		put_claim(store, text);
		one.watched_ms += 40000; /* as if so much had passed */
		assert_int_equal(try(&one), 0);
		one.watched_ms += 20000;
		assert_int_equal(try(&one), 0);
	}
}

static void a_claim_that_does_not_parse_is_somebodys_too(void **state)
{
	static const char *const garbage[] = { "", "{", "[]", "\"one\"", "{\"held\":1}", "{}" };
	AUTO(store_freep) struct store *store = open_cache(*state);

	for (size_t i = 0; i < STK_LENGTH(garbage); i++) {
		AUTO(key_claim_clear) struct key_claim one = claim_of(store, "one");

		put_claim(store, garbage[i]);
		assert_int_equal(try(&one), 0);
		assert_null(one.holder);
		one.watched_ms = KEY_CLAIM_VALID_MS; /* as if a minute had passed */
		assert_int_equal(try(&one), 1);
		assert_int_equal(renew(&one), 1);
	}
}

static void each_renewal_changes_it_and_since_stays(void **state)
{
	AUTO(store_freep) struct store *store = open_cache(*state);
	AUTO(key_claim_clear) struct key_claim one = claim_of(store, "one");
	AUTO(auto_free) char *before = NULL, *after = NULL;
	json_auto_t *old = NULL, *new = NULL;
	struct err *err = NULL;

	assert_int_equal(try(&one), 1);
	before = content(store);
	usleep(2000);
	assert_int_equal(renew(&one), 1);
	after = content(store);
	assert_string_not_equal(before, after);
	js_parse(before, strlen(before), "before", &old, &err);
	js_parse(after, strlen(after), "after", &new, &err);
	assert_no_error(err);
	assert_int_equal(js_int(old, "since", 0), js_int(new, "since", 1));
	assert_string_equal(js_str(new, "graph_key"), HEX_A);
	assert_true(js_bool(new, "held", false));
}

static void one_that_cannot_be_written_keeps_nobody_from_compiling(void **state)
{
	AUTO(store_freep) struct store *store = open_cache(*state);
	AUTO(key_claim_clear) struct key_claim one = claim_of(store, "one");
	AUTO(auto_free) char *folder = fs_join(*state, OBJECT);
	struct err *err = NULL;

	fs_mkdirs(folder, &err);
	assert_no_error(err);
	assert_int_equal(try(&one), 1);
	assert_non_null(strstr(one.taken, "cannot write the claim"));
}

static int count_row(void *arg, json_t *row, struct err **err)
{
	(void)row;
	(void)err;
	++*(int *)arg;
	return 0;
}

static void it_is_neither_a_lock_nor_anything_to_be_cleared_away(void **state)
{
	struct gc_options options = { .now = { clock_utc_now().ms + 1000000000 }, .remove = true };
	AUTO(compile_manifest_set_clear) struct compile_manifest_set set = { 0 };
	AUTO(store_freep) struct store *store = open_cache(*state);
	AUTO(key_claim_clear) struct key_claim one = claim_of(store, "one");
	struct gc_sum sum = { 0 };
	struct err *err = NULL;
	int rows = 0;

	assert_int_equal(try(&one), 1);
	compile_manifest_set_load(store, &set, &err);
	assert_no_error(err);
	assert_int_equal(set.count + json_array_size(set.damaged), 0);
	cache_gc(store, &options, count_row, &rows, &sum, &err);
	assert_no_error(err);
	assert_int_equal(rows, 0);
	assert_int_equal(renew(&one), 1);
	assert_true(key_claim_is(OBJECT));
	assert_false(key_claim_is(LOCK_PREFIX HEX_A ".json"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_scratch(the_first_has_it_and_the_second_is_told_who),
		test_in_scratch(a_run_knows_its_own_claim_again),
		test_in_scratch(what_is_given_up_is_taken_at_once),
		test_in_scratch(what_stays_unchanged_for_too_long_is_taken_by_one_of_many),
		test_in_scratch(what_changes_is_waited_for),
		test_in_scratch(a_claim_that_does_not_parse_is_somebodys_too),
		test_in_scratch(each_renewal_changes_it_and_since_stays),
		test_in_scratch(one_that_cannot_be_written_keeps_nobody_from_compiling),
		test_in_scratch(it_is_neither_a_lock_nor_anything_to_be_cleared_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
