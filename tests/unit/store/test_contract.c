/* What store.h promises, through store.h alone: holds for every kind of store.
 * A kind is one row: how to open a fresh, empty one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "jobs/base/fs.h"
#include "jobs/base/hash.h"
#include "jobs/store/store.h"

#define GET_MAX 4096

struct fixture {
	char scratch[64]; /* a folder of this test's own */
	char *url;
	struct store *store;
};

static void must(int result, const struct err *err)
{
	if (result < 0)
		fail_msg("%s", err ? err->message : "failed without an error");
}

static int setup(void **state)
{
	struct fixture *f = mem_zero(1, sizeof *f);
	struct err *err = NULL;

	strcpy(f->scratch, "/tmp/stoker-test-XXXXXX");
	assert_non_null(mkdtemp(f->scratch));
	f->url = mem_format("dir:%s/store", f->scratch);
	must(store_open(f->url, &f->store, &err), err);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	struct err *err = NULL;

	store_freep(&f->store);
	must(fs_remove_tree(f->scratch, &err), err);
	free(f->url);
	free(f);
	return 0;
}

static void put(struct fixture *f, const char *key, const char *text)
{
	AUTO(err_freep) struct err *err = NULL;

	must(store_put(f->store, key, text, strlen(text), &err), err);
}

static void assert_holds(struct fixture *f, const char *key, const char *text)
{
	AUTO(sb_release) struct sb got = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;

	must(store_get(f->store, key, GET_MAX, &got, NULL, &err), err);
	assert_string_equal(got.text, text);
}

static int add_key(void *arg, const struct store_object *object, struct err **err)
{
	(void)err;
	sb_addf(arg, "%s ", object->key);
	return 0;
}

static void assert_lists(struct fixture *f, const char *prefix, const char *want)
{
	AUTO(sb_release) struct sb keys = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;

	must(store_list(f->store, prefix, add_key, &keys, &err), err);
	assert_string_equal(keys.text, want);
}

static void an_object_that_was_put_is_got_as_it_was(void **state)
{
	struct fixture *f = *state;
	AUTO(sb_release) struct sb got = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;
	const char bytes[] = "zero\0inside";
	char tag[STORE_TAG], tag_of_stat[STORE_TAG];
	struct store_object object;

	must(store_put(f->store, "a/b/c", bytes, sizeof bytes, &err), err);
	sb_adds(&got, "before:");
	assert_int_equal(store_get(f->store, "a/b/c", sizeof bytes, &got, tag, &err), 1);
	assert_int_equal(got.len, 7 + sizeof bytes);
	assert_memory_equal(got.text + 7, bytes, sizeof bytes);
	assert_int_equal(store_stat(f->store, "a/b/c", &object, &err), 1);
	assert_string_equal(object.key, "a/b/c");
	assert_int_equal(object.size, sizeof bytes);
	assert_true(llabs(object.modified.ms - utc_now().ms) < 60000);
	strcpy(tag_of_stat, object.tag);
	assert_string_equal(tag, tag_of_stat);
}

static void an_empty_object_is_an_object(void **state)
{
	struct fixture *f = *state;

	put(f, "empty", "");
	assert_holds(f, "empty", "");
	assert_lists(f, "", "empty ");
}

static void what_is_absent_is_no_error(void **state)
{
	struct fixture *f = *state;
	AUTO(sb_release) struct sb got = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;
	struct store_object object;

	for (int round = 0; round < 2; round++) { /* without and with a store on disk */
		assert_int_equal(store_get(f->store, "a/b", GET_MAX, &got, NULL, &err), 0);
		assert_int_equal(store_stat(f->store, "a/b", &object, &err), 0);
		assert_int_equal(store_delete(f->store, "a/b", &err), 0);
		assert_int_equal(store_replace_if_same(f->store, "a/b", "x", "y", 1, &err), 0);
		assert_lists(f, "", round ? "other " : "");
		assert_null(err);
		put(f, "other", "");
	}
	assert_lists(f, "a/", "");
}

static void an_object_larger_than_asked_for_is_an_error_and_appends_little(void **state)
{
	struct fixture *f = *state;
	AUTO(sb_release) struct sb got = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;

	put(f, "k", "12345");
	assert_int_equal(store_get(f->store, "k", 5, &got, NULL, &err), 1);
	assert_int_equal(store_get(f->store, "k", 4, &got, NULL, &err), -1);
	assert_non_null(strstr(err->message, "larger than 4 bytes"));
}

static void a_stretch_is_read_as_far_as_the_object_goes(void **state)
{
	struct fixture *f = *state;
	static const struct {
		uint64_t offset;
		size_t len;
		const char *want;
	} cases[] = {
		{ 0, 3, "abc" }, { 2, 3, "cde" },     { 4, 100, "efg" },
		{ 6, 1, "g" },   { 7, 1, "" },        { 99, 5, "" },
		{ 0, 0, "" },    { 0, 7, "abcdefg" }, { UINT64_MAX, 5, "" },
	};
	AUTO(err_freep) struct err *err = NULL;
	AUTO(sb_release) struct sb none = SB_INIT;
	struct store_object object;
	char tag[STORE_TAG];

	put(f, "k", "abcdefg");
	must(store_stat(f->store, "k", &object, &err), err);
	for (size_t i = 0; i < STK_LENGTH(cases); i++) {
		AUTO(sb_release) struct sb got = SB_INIT;

		sb_adds(&got, "-");
		assert_int_equal(store_read_range(f->store, "k", cases[i].offset, cases[i].len,
						  &got, tag, &err),
				 1);
		assert_string_equal(got.text + 1, cases[i].want);
		assert_string_equal(tag, object.tag);
	}
	assert_int_equal(store_read_range(f->store, "none", 0, 9, &none, NULL, &err), 0);
	put(f, "empty", "");
	assert_int_equal(store_read_range(f->store, "empty", 0, 9, &none, tag, &err), 1);
	assert_int_equal(none.len, 0);
}

static void put_overwrites_and_changes_the_tag(void **state)
{
	struct fixture *f = *state;
	AUTO(err_freep) struct err *err = NULL;
	struct store_object first, second;

	put(f, "k", "one");
	must(store_stat(f->store, "k", &first, &err), err);
	put(f, "k", "two");
	must(store_stat(f->store, "k", &second, &err), err);
	assert_holds(f, "k", "two");
	assert_string_not_equal(first.tag, second.tag);
}

static void put_if_absent_writes_only_once(void **state)
{
	struct fixture *f = *state;
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(store_put_if_absent(f->store, "d/k", "one", 3, &err), 1);
	assert_int_equal(store_put_if_absent(f->store, "d/k", "two", 3, &err), 0);
	assert_null(err);
	assert_holds(f, "d/k", "one");
	must(store_delete(f->store, "d/k", &err), err);
	assert_int_equal(store_put_if_absent(f->store, "d/k", "two", 3, &err), 1);
	assert_holds(f, "d/k", "two");
}

static void replace_if_same_replaces_only_what_the_tag_names(void **state)
{
	struct fixture *f = *state;
	AUTO(sb_release) struct sb got = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;
	char tag[STORE_TAG];

	put(f, "k", "one");
	must(store_get(f->store, "k", GET_MAX, &got, tag, &err), err);
	assert_int_equal(store_replace_if_same(f->store, "k", tag, "two", 3, &err), 1);
	assert_holds(f, "k", "two");
	assert_int_equal(store_replace_if_same(f->store, "k", tag, "three", 5, &err), 0);
	assert_holds(f, "k", "two");
	must(store_delete(f->store, "k", &err), err);
	assert_int_equal(store_replace_if_same(f->store, "k", tag, "four", 4, &err), 0);
	assert_lists(f, "", "");
}

static void tags_never_return(void **state)
{
	struct fixture *f = *state;
	enum { ROUNDS = 300 };
	static char tags[ROUNDS][STORE_TAG];
	AUTO(err_freep) struct err *err = NULL;
	struct store_object object;

	/* As fast as can be, with equal sizes: what a lease does. */
	for (int i = 0; i < ROUNDS; i++) {
		put(f, "k", "same");
		must(store_stat(f->store, "k", &object, &err), err);
		strcpy(tags[i], object.tag);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(tags[i], tags[j]);
	}
}

static void listing_is_in_byte_order_of_whole_keys(void **state)
{
	struct fixture *f = *state;
	static const char *const keys[] = { "a/z", "a.b",   "a0", "a-c",
					    "B",   "a/b/c", "a!", "\xc3\xa9" };

	for (size_t i = 0; i < STK_LENGTH(keys); i++)
		put(f, keys[i], "x");
	assert_lists(f, "", "B a! a-c a.b a/b/c a/z a0 \xc3\xa9 ");
	assert_lists(f, "a", "a! a-c a.b a/b/c a/z a0 ");
	assert_lists(f, "a/", "a/b/c a/z ");
	assert_lists(f, "a/b", "a/b/c ");
	assert_lists(f, "a/b/c", "a/b/c ");
	assert_lists(f, "a/b/c/", "");
	assert_lists(f, "nothing/here", "");
}

static int stop_at_second(void *arg, const struct store_object *object, struct err **err)
{
	(void)err;
	sb_addf(arg, "%s ", object->key);
	return strcmp(object->key, "b/1") == 0;
}

static int fail_at_first(void *arg, const struct store_object *object, struct err **err)
{
	(void)arg;
	return err_set(err, EXIT_GATE, "not '%s'", object->key);
}

static int add_folder(void *arg, const char *name, struct err **err)
{
	(void)err;
	sb_addf(arg, "%s ", name);
	return strcmp(name, "stop") == 0;
}

static void folders_are_named_once_without_what_lies_in_them(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *prefix, *want;
	} cases[] = { /* "stop" ends it early */
		      { "", "a stop " },
		      { "a/", "b c " },
		      { "a/b/", "" },
		      { "none/", "" }
	};
	AUTO(err_freep) struct err *err = NULL;
	struct sb unused = SB_INIT;

	put(f, "a/b/1", "");
	put(f, "a/b/2", "");
	put(f, "a/c/d/e", "");
	put(f, "a/object", "");
	put(f, "object", "");
	put(f, "z/1", "");
	put(f, "stop/1", "");
	for (size_t i = 0; i < STK_LENGTH(cases); i++) {
		AUTO(sb_release) struct sb names = SB_INIT;

		must(store_folders(f->store, cases[i].prefix, add_folder, &names, &err), err);
		assert_string_equal(names.text, cases[i].want);
	}
	assert_int_equal(store_folders(f->store, "a", add_folder, &unused, &err), -1);
}

static void listing_stops_when_told(void **state)
{
	struct fixture *f = *state;
	AUTO(sb_release) struct sb keys = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;

	put(f, "a", "");
	put(f, "b/1", "");
	put(f, "b/2", "");
	put(f, "c", "");
	assert_int_equal(store_list(f->store, "", stop_at_second, &keys, &err), 0);
	assert_string_equal(keys.text, "a b/1 ");
	assert_int_equal(store_list(f->store, "", fail_at_first, NULL, &err), -1);
	assert_string_equal(err->message, "not 'a'");
}

static void hostile_keys_are_defects_and_touch_nothing(void **state)
{
	struct fixture *f = *state;
	char part[300], whole[1100];
	const char *const keys[] = {
		"",
		"/",
		"/etc/passwd",
		"..",
		"../x",
		"a/../x",
		"a/..",
		".",
		"a/./b",
		"a//b",
		"a/",
		"//",
		part,
		whole,
		"./a",
		"a/.",
		".stk-tmp-lock",
		"a/.stk-tmp-0000",
	};
	struct sb got = SB_INIT;
	struct store_object object;

	memset(part, 'p', sizeof part);
	part[256] = '\0';
	for (size_t i = 0; i < sizeof whole; i++)
		whole[i] = i % 10 == 9 ? '/' : 'w';
	whole[1025] = '\0';
	for (size_t i = 0; i < STK_LENGTH(keys); i++) {
		struct err *err[9] = { NULL };
		const char *k = keys[i];

		assert_int_equal(store_put(f->store, k, "x", 1, &err[0]), -1);
		assert_int_equal(store_put_if_absent(f->store, k, "x", 1, &err[1]), -1);
		assert_int_equal(store_replace_if_same(f->store, k, "t", "x", 1, &err[2]), -1);
		assert_int_equal(store_get(f->store, k, 1, &got, NULL, &err[3]), -1);
		assert_int_equal(store_stat(f->store, k, &object, &err[4]), -1);
		assert_int_equal(store_delete(f->store, k, &err[5]), -1);
		assert_int_equal(store_upload(f->store, "/dev/null", k, &err[6]), -1);
		assert_int_equal(store_download(f->store, k, "/dev/null", &err[7]), -1);
		for (int e = 0; e < 8; e++) {
			assert_int_equal(err[e]->code, EXIT_DEFECT);
			err_free(err[e]);
		}
	}
	assert_lists(f, "", "");
}

static void hostile_prefixes_are_defects(void **state)
{
	struct fixture *f = *state;
	static const char *const prefixes[] = { "/", "../", "a/../", "a//", "./", "..//" };

	put(f, "a", "");
	for (size_t i = 0; i < STK_LENGTH(prefixes); i++) {
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(store_list(f->store, prefixes[i], add_key, NULL, &err), -1);
		assert_int_equal(err->code, EXIT_DEFECT);
	}
	assert_lists(f, "..", "");
	assert_lists(f, ".", "");
}

static void files_come_in_once_and_go_out_whole(void **state)
{
	struct fixture *f = *state;
	AUTO(auto_free) char *in = fs_join(f->scratch, "in");
	AUTO(auto_free) char *out = fs_join(f->scratch, "out");
	AUTO(auto_free) char *bytes = mem_alloc(3000001);
	AUTO(err_freep) struct err *err = NULL;
	char want[SHA256_HEX], got[SHA256_HEX];
	uint64_t size;
	struct stat st;

	random_bytes(bytes, 3000001);
	sha256_hex(bytes, 3000001, want);
	must(fs_write_atomic(in, bytes, 3000001, 0644, &err), err);
	assert_int_equal(store_upload(f->store, in, "x/big", &err), 1);
	assert_int_equal(store_upload(f->store, in, "x/big", &err), 0);
	must(fs_write_atomic(out, "old", 3, 0644, &err), err);
	assert_int_equal(store_download(f->store, "x/big", out, &err), 1);
	must(sha256_file(out, got, &size, &err), err);
	assert_string_equal(got, want);
	assert_int_equal(stat(out, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(store_download(f->store, "x/none", out, &err), 0);
	assert_int_equal(store_upload(f->store, "/nonexistent", "y", &err), -1);
	assert_non_null(strstr(err->message, "/nonexistent"));
	assert_lists(f, "", "x/big ");
}

static void urls_are_told_apart(void **state)
{
	struct store *store = NULL;
	AUTO(err_freep) struct err *err = NULL;
	AUTO(err_freep) struct err *second = NULL;

	(void)state;
	must(store_open("dir:/a/./b/../c", &store, &err), err);
	assert_string_equal(store_url(store), "/a/c");
	store_freep(&store);
	store_freep(&store);
	must(store_open("/a/b/", &store, &err), err);
	assert_string_equal(store_url(store), "/a/b");
	store_freep(&store);
	assert_int_equal(store_open("ftp://host/x", &store, &err), -1);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_int_equal(store_open("", &store, &second), -1);
}

/* --- races: 8 processes that start each round together --- */

enum { RACERS = 8, ROUNDS = 60 };

struct arena {
	int arrived, round, wins[ROUNDS];
};

/* Everybody waits until all have come. */
static void meet(struct arena *arena, int round)
{
	if (__atomic_add_fetch(&arena->arrived, 1, __ATOMIC_SEQ_CST) == RACERS * (round + 1))
		__atomic_store_n(&arena->round, round + 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&arena->round, __ATOMIC_SEQ_CST) <= round)
		usleep(50);
}

typedef int (*race_fn)(struct store *store, int round, int racer, struct arena *arena);

static int race_to_create(struct store *store, int round, int racer, struct arena *arena)
{
	AUTO(auto_free) char *key = mem_format("claim/%d", round);
	AUTO(auto_free) char *text = mem_format("racer %d", racer);
	struct err *err = NULL;

	meet(arena, round);
	return store_put_if_absent(store, key, text, strlen(text), &err);
}

static int race_to_replace(struct store *store, int round, int racer, struct arena *arena)
{
	AUTO(auto_free) char *text = mem_format("%d %d", round, racer);
	struct err *err = NULL;
	struct store_object object;

	if (store_stat(store, "lease", &object, &err) != 1)
		return -1;
	meet(arena, 2 * round); /* all hold the tag of the same content */
	int won = store_replace_if_same(store, "lease", object.tag, text, strlen(text), &err);

	meet(arena, 2 * round + 1);
	return won;
}

static void run_race(struct fixture *f, race_fn race)
{
	struct arena *arena = mmap(NULL, sizeof *arena, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[RACERS];

	assert_true(arena != MAP_FAILED);
	for (int racer = 0; racer < RACERS; racer++) {
		pids[racer] = fork();
		if (pids[racer] == 0) {
			for (int round = 0; round < ROUNDS; round++) {
				int won = race(f->store, round, racer, arena);

				if (won < 0)
					_exit(1);
				__atomic_add_fetch(&arena->wins[round], won, __ATOMIC_SEQ_CST);
			}
			_exit(0);
		}
	}
	for (int racer = 0; racer < RACERS; racer++) {
		int status;

		assert_int_equal(waitpid(pids[racer], &status, 0), pids[racer]);
		assert_int_equal(status, 0);
	}
	for (int round = 0; round < ROUNDS; round++)
		assert_int_equal(arena->wins[round], 1);
	munmap(arena, sizeof *arena);
}

static void of_eight_that_create_at_once_one_wins(void **state)
{
	run_race(*state, race_to_create);
}

static void of_eight_that_replace_at_once_one_wins(void **state)
{
	struct fixture *f = *state;

	put(f, "lease", "start");
	run_race(f, race_to_replace);
}

/* Reads, adds one and replaces until it was let, 50 times. */
static int count_up(struct store *store)
{
	for (int done = 0; done < 50;) {
		AUTO(sb_release) struct sb text = SB_INIT;
		struct err *err = NULL;
		char tag[STORE_TAG], next[16];
		int won;

		if (store_get(store, "n", 16, &text, tag, &err) != 1)
			return 1;
		snprintf(next, sizeof next, "%05d", atoi(text.text) + 1);
		won = store_replace_if_same(store, "n", tag, next, 5, &err);
		if (won < 0)
			return 1;
		done += won;
	}
	return 0;
}

static void no_update_is_lost_among_those_who_count_together(void **state)
{
	struct fixture *f = *state;
	pid_t pids[4];

	put(f, "n", "00000");
	for (int i = 0; i < 4; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(count_up(f->store));
	}
	for (int i = 0; i < 4; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	assert_holds(f, "n", "00200");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(an_object_that_was_put_is_got_as_it_was),
		T(an_empty_object_is_an_object),
		T(what_is_absent_is_no_error),
		T(an_object_larger_than_asked_for_is_an_error_and_appends_little),
		T(a_stretch_is_read_as_far_as_the_object_goes),
		T(put_overwrites_and_changes_the_tag),
		T(put_if_absent_writes_only_once),
		T(replace_if_same_replaces_only_what_the_tag_names),
		T(tags_never_return),
		T(listing_is_in_byte_order_of_whole_keys),
		T(folders_are_named_once_without_what_lies_in_them),
		T(listing_stops_when_told),
		T(hostile_keys_are_defects_and_touch_nothing),
		T(hostile_prefixes_are_defects),
		T(files_come_in_once_and_go_out_whole),
		T(urls_are_told_apart),
		T(of_eight_that_create_at_once_one_wins),
		T(of_eight_that_replace_at_once_one_wins),
		T(no_update_is_lost_among_those_who_count_together),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
