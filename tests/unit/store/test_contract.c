/* What store.h promises, through store.h alone: holds for every kind of store. */
#include "tests/unit/store/contract.h"

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
	assert_true(llabs(object.modified.ms - clock_utc_now().ms) < 60000);
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

	/* Writes as fast as can be, with equal sizes: what a lease does. */
	for (int i = 0; i < ROUNDS; i++) {
		char text[8];

		snprintf(text, sizeof text, "%05d", f->kind->tag_is_content ? i : 0);
		put(f, "k", text);
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

static void a_name_may_stand_above_others_where_the_kind_allows_it(void **state)
{
	struct fixture *f = *state;
	AUTO(err_freep) struct err *err = NULL;

	put(f, "a", "above");
	assert_int_equal(store_put(f->store, "a/b", "below", 5, &err), f->kind->nests ? 0 : -1);
	assert_lists(f, "", f->kind->nests ? "a a/b " : "a ");
	assert_holds(f, "a", "above");
}

/* The progress of a long listing: every name in order, once. */
struct walk {
	char last[64];
	int seen, stop_at;
};

static int walk_on(void *arg, const struct store_object *object, struct err **err)
{
	struct walk *walk = arg;

	(void)err;
	assert_true(strcmp(walk->last, object->key) < 0);
	snprintf(walk->last, sizeof walk->last, "%s", object->key);
	return ++walk->seen == walk->stop_at;
}

static void a_long_listing_is_whole_and_in_order(void **state)
{
	struct fixture *f = *state;
	AUTO(err_freep) struct err *err = NULL;
	struct walk all = { 0 }, some = { 0 }, cut = { .stop_at = f->kind->many - 10 };
	char key[64];

	for (int i = 0; i < f->kind->many; i++) {
		int n = (int)((long)i * 7919 % f->kind->many);

		snprintf(key, sizeof key, "%d/%06d", n % 3, n);
		put(f, key, "");
	}
	must(store_list(f->store, "", walk_on, &all, &err), err);
	assert_int_equal(all.seen, f->kind->many);
	must(store_list(f->store, "1/", walk_on, &some, &err), err);
	assert_int_equal(some.seen, f->kind->many / 3);
	must(store_list(f->store, "", walk_on, &cut, &err), err);
	assert_int_equal(cut.seen, f->kind->many - 10);
}

static int nest(void *arg, const struct store_object *object, struct err **err)
{
	struct fixture *f = arg;
	AUTO(sb_release) struct sb got = SB_INIT;

	if (store_get(f->store, object->key, GET_MAX, &got, NULL, err) != 1)
		return -1;
	assert_string_equal(got.text, object->key);
	return store_put(f->store, "z", "late", 4, err);
}

static void a_listing_may_use_the_store(void **state)
{
	struct fixture *f = *state;
	AUTO(err_freep) struct err *err = NULL;

	put(f, "a", "a");
	put(f, "b", "b");
	must(store_list(f->store, "", nest, f, &err), err);
	assert_holds(f, "z", "late");
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

	hash_random_bytes(bytes, 3000001);
	hash_sha256_hex(bytes, 3000001, want);
	must(fs_write_atomic(in, bytes, 3000001, 0644, &err), err);
	assert_int_equal(store_upload(f->store, in, "x/big", &err), 1);
	assert_int_equal(store_upload(f->store, in, "x/big", &err), 0);
	must(fs_write_atomic(out, "old", 3, 0644, &err), err);
	assert_int_equal(store_download(f->store, "x/big", out, &err), 1);
	must(hash_sha256_file(out, got, &size, &err), err);
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
	static const char *const no_buckets[] = { "s3://",           "s3:///x",
						  "s3://b/x",        "s3://../x",
						  "s3://a b/x",      "s3://bucket/../x",
						  "s3://bucket/a//b" };

	(void)state;
	must(store_open("dir:/a/./b/../c", &store, &err), err);
	assert_string_equal(store_url(store), "/a/c");
	store_freep(&store);
	store_freep(&store);
	must(store_open("/a/b/", &store, &err), err);
	assert_string_equal(store_url(store), "/a/b");
	store_freep(&store);
	must(store_open("s3://bucket/a/b//", &store, &err), err);
	assert_string_equal(store_url(store), "s3://bucket/a/b");
	assert_null(store_directory(store));
	store_freep(&store);
	must(store_open("s3:bucket", &store, &err), err);
	assert_string_equal(store_url(store), "s3://bucket");
	store_freep(&store);
	for (size_t i = 0; i < STK_LENGTH(no_buckets); i++) {
		AUTO(err_freep) struct err *refused = NULL;

		assert_int_equal(store_open(no_buckets[i], &store, &refused), -1);
		assert_int_equal(refused->code, EXIT_REFUSED);
	}
	assert_int_equal(store_open("ftp://host/x", &store, &err), -1);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_int_equal(store_open("", &store, &second), -1);
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
		T(a_name_may_stand_above_others_where_the_kind_allows_it),
		T(a_long_listing_is_whole_and_in_order),
		T(a_listing_may_use_the_store),
		T(listing_stops_when_told),
		T(hostile_keys_are_defects_and_touch_nothing),
		T(hostile_prefixes_are_defects),
		T(files_come_in_once_and_go_out_whole),
		T(urls_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
