/* Roots in a store: what is sent there, marked, chosen, removed and fetched back. The store
 * is a folder here; nothing in these functions knows that. */
#include "tests/unit/checkpoint/trees.h"

#include "jobs/store/store_backend.h"

#define RUN "0abcdefghjkm"

static const struct ckpt_owner owner = { RUN, "nonce-1", 1, NULL, 0 };

struct workspace_cache {
	char *from; /* where checkpoints are saved */
	char *bucket;
	struct store *store;
	struct ckpt_root root;
};

static struct workspace_cache far_of(const char *dir)
{
	struct workspace_cache far = { .from = fs_join(dir, "from"),
				       .bucket = fs_join(dir, "bucket") };
	AUTO(err_freep) struct err *err = NULL;

	store_open(far.bucket, &far.store, &err);
	assert_no_error(err);
	far.root = (struct ckpt_root){ "a/b/", 1, "nonce-1", far.store };
	return far;
}

static void far_release(struct workspace_cache *far)
{
	free(far->from);
	free(far->bucket);
	store_freep(&far->store);
}

static struct ckpt one_in(const char *root, const char *name)
{
	AUTO(auto_free) char *path = fs_join(root, name);
	AUTO(err_freep) struct err *err = NULL;
	struct ckpt ckpt = { 0 };

	checkpoint_prove(path, checkpoint_kind_find("auto"), &ckpt, &err);
	assert_no_error(err);
	return ckpt;
}

static void send(const struct workspace_cache *far, const char *name)
{
	AUTO(checkpoint_release) struct ckpt ckpt = one_in(far->from, name);
	AUTO(err_freep) struct err *err = NULL;

	checkpoint_copy(&ckpt, &far->root, NULL, NULL, &err);
	assert_no_error(err);
}

static int mark(const struct workspace_cache *far, const char *name, struct err **err)
{
	AUTO(checkpoint_release) struct ckpt ckpt = one_in(far->from, name);

	return checkpoint_mark(&far->root, &ckpt, &owner, (struct utc){ 1700000000000 }, err);
}

static void save(const struct workspace_cache *far, const char *name, int step)
{
	AUTO(err_freep) struct err *err = NULL;

	make_files(far->from, name, step);
	send(far, name);
	assert_int_equal(mark(far, name, &err), 1);
}

static struct ckpt_choice choose(const struct workspace_cache *far)
{
	AUTO(err_freep) struct err *err = NULL;
	struct ckpt_choice choice = { 0 };

	checkpoint_choose(&far->root, 1, RUN, INT64_MAX, &choice, &err);
	assert_no_error(err);
	return choice;
}

static void assert_chosen(const struct workspace_cache *far, const char *name)
{
	AUTO(checkpoint_choice_release) struct ckpt_choice choice = choose(far);

	assert_int_equal(choice.found, name != NULL);
	if (name)
		assert_string_equal(choice.mark.name, name);
}

static void assert_passed_over(const struct workspace_cache *far, const char *name,
			       const char *part)
{
	AUTO(checkpoint_choice_release) struct ckpt_choice choice = choose(far);
	const json_t *first = json_array_get(choice.rejected, 0);

	assert_contains(js_str(first, "url"), name);
	assert_contains(js_str(first, "why"), part);
}

static char *fetch(const struct workspace_cache *far, const char *name, const char *to)
{
	AUTO(checkpoint_mark_release) struct ckpt_mark found = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	char *why = NULL;
	int done;

	assert_int_equal(checkpoint_mark_read(&far->root, name, &found, &err), 1);
	done = checkpoint_fetch(&found, to, &why, &err);
	assert_no_error(err);
	assert_int_equal(done, why == NULL);
	return why;
}

static void assert_fetched(const struct workspace_cache *far, const char *name, const char *to)
{
	AUTO(auto_free) char *why = fetch(far, name, to);
	AUTO(auto_free) char *a = fs_join(far->from, name);
	AUTO(auto_free) char *b = fs_join(to, name);
	AUTO(checkpoint_tree_release) struct checkpoint_tree mine = TREE_INIT;
	AUTO(checkpoint_tree_release) struct checkpoint_tree other = TREE_INIT;
	AUTO(err_freep) struct err *err = NULL;

	assert_null(why);
	assert_int_equal(checkpoint_tree_read(a, &mine, &err), 1);
	assert_int_equal(checkpoint_tree_read(b, &other, &err), 1);
	assert_int_equal(mine.count, other.count);
	for (size_t i = 0; i < mine.count; i++) {
		AUTO(sb_release) struct sb x = get_bytes(a, mine.files[i].path);
		AUTO(sb_release) struct sb y = get_bytes(b, other.files[i].path);

		assert_string_equal(mine.files[i].path, other.files[i].path);
		assert_int_equal(x.len, y.len);
		assert_memory_equal(x.text, y.text, x.len);
	}
}

static void each_kind_comes_back_as_it_went(void **state)
{
	for (size_t m = 0; m < STK_LENGTH(makers); m++) {
		AUTO(auto_free) char *dir = mem_format("%s/%zu", (char *)*state, m);
		AUTO(auto_free) char *to = fs_join(dir, "to");
		AUTO(far_release) struct workspace_cache far = far_of(dir);
		AUTO(err_freep) struct err *err = NULL;

		make_all(&makers[m], far.from, 2);
		for (int i = 0; i < 2; i++) {
			send(&far, makers[m].names[i]);
			assert_int_equal(mark(&far, makers[m].names[i], &err), 1);
		}
		assert_chosen(&far, makers[m].names[1]);
		assert_fetched(&far, makers[m].names[1], to);
		assert_fetched(&far, makers[m].names[1], to); /* again: it is there */
		assert_fetched(&far, makers[m].names[0], to);
	}
}

static void a_single_file_comes_back_too(void **state)
{
	AUTO(auto_free) char *to = fs_join(*state, "to");
	AUTO(far_release) struct workspace_cache far = far_of(*state);
	AUTO(err_freep) struct err *err = NULL;

	put_sb(far.from, "step-10.pt", torch_file());
	send(&far, "step-10.pt");
	assert_int_equal(mark(&far, "step-10.pt", &err), 1);
	assert_chosen(&far, "step-10.pt");
	assert_fetched(&far, "step-10.pt", to);
	put_text(far.bucket, "a/b/step-10.pt", "another one");
	assert_passed_over(&far, "step-10.pt", "bytes, not");
}

static void a_mark_tells_where_it_is_and_what_pins_it(void **state)
{
	AUTO(far_release) struct workspace_cache far = far_of(*state);
	AUTO(auto_free) char *url = mem_format("%s/a/b/step-00000010", far.bucket);
	AUTO(checkpoint_mark_release) struct ckpt_mark found = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	struct store_object object;

	save(&far, "step-00000010", 10);
	assert_int_equal(checkpoint_mark_read(&far.root, "step-00000010", &found, &err), 1);
	assert_string_equal(found.url, url);
	assert_int_equal(
		store_stat(far.store, "a/b/marks/step-00000010.stoker.json", &object, &err), 1);
	assert_int_equal(store_stat(far.store, "a/b/step-00000010/meta.json", &object, &err), 1);
	assert_string_equal(js_str(json_array_get(found.files, 0), "path"), "meta.json");
	assert_string_equal(js_str(json_array_get(found.files, 0), "tag"), object.tag);
	assert_int_equal(mark(&far, "step-00000010", &err), 0);
}

static void without_its_mark_nothing_counts(void **state)
{
	AUTO(far_release) struct workspace_cache far = far_of(*state);
	AUTO(err_freep) struct err *err = NULL;

	save(&far, "step-00000010", 10);
	make_files(far.from, "step-00000020", 20);
	send(&far, "step-00000020");
	assert_chosen(&far, "step-00000010");
	assert_int_equal(mark(&far, "step-00000020", &err), 1);
	assert_chosen(&far, "step-00000020");
}

static void what_is_not_all_there_is_not_marked(void **state)
{
	AUTO(far_release) struct workspace_cache far = far_of(*state);
	AUTO(checkpoint_release) struct ckpt ckpt = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	make_files(far.from, "step-00000010", 10);
	assert_int_equal(mark(&far, "step-00000010", &err), -1);
	assert_contains(err->message, "missing");
	err_freep(&err);
	send(&far, "step-00000010");
	ckpt = one_in(far.from, "step-00000010");
	put_text(far.from, "step-00000010/late.txt", "of a slow rank");
	assert_int_equal(checkpoint_mark(&far.root, &ckpt, &owner, clock_utc_now(), &err), -1);
	assert_contains(err->message, "changed meanwhile");
	assert_chosen(&far, NULL);
}

static void a_damaged_one_is_passed_over_with_the_reason(void **state)
{
	AUTO(far_release) struct workspace_cache far = far_of(*state);
	AUTO(sb_release) struct sb whole = SB_INIT;

	save(&far, "step-00000010", 10);
	save(&far, "step-00000020", 20);
	whole = get_bytes(far.bucket, "a/b/step-00000020/state.npz");
	put_bytes(far.bucket, "a/b/step-00000020/state.npz", whole.text, whole.len - 1);
	assert_chosen(&far, "step-00000010");
	assert_passed_over(&far, "step-00000020", "'state.npz' has");
	whole.text[whole.len / 2] ^= 1;
	put_bytes(far.bucket, "a/b/step-00000020/state.npz", whole.text, whole.len);
	assert_passed_over(&far, "step-00000020", "'state.npz' has changed");
	drop(far.bucket, "a/b/step-00000020/state.npz");
	assert_passed_over(&far, "step-00000020", "'state.npz' is missing");
	drop(far.bucket, "a/b/step-00000020");
	assert_passed_over(&far, "step-00000020", "not found");
	put_text(far.bucket, "a/b/step-00000010/one/more", "x");
	assert_chosen(&far, NULL);
	drop(far.bucket, "a/b/step-00000010/one");
	assert_chosen(&far, "step-00000010");
}

static ino_t inode_of(const struct workspace_cache *far, const char *key)
{
	AUTO(auto_free) char *path = fs_join(far->bucket, key);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static void what_has_arrived_is_not_sent_again(void **state)
{
	AUTO(far_release) struct workspace_cache far = far_of(*state);
	AUTO(err_freep) struct err *err = NULL;
	ino_t first;

	make_files(far.from, "step-00000010", 10);
	send(&far, "step-00000010");
	first = inode_of(&far, "a/b/step-00000010/meta.json");
	drop(far.bucket, "a/b/step-00000010/state.npz");
	send(&far, "step-00000010");
	assert_int_equal(inode_of(&far, "a/b/step-00000010/meta.json"), first);
	assert_int_equal(mark(&far, "step-00000010", &err), 1);
	assert_chosen(&far, "step-00000010");
}

static void what_was_sent_and_saved_anew_is_sent_anew(void **state)
{
	AUTO(far_release) struct workspace_cache far = far_of(*state);
	AUTO(auto_free) char *to = fs_join(*state, "to");
	AUTO(err_freep) struct err *err = NULL;

	make_files(far.from, "step-00000010", 10);
	put_text(far.from, "step-00000010/old.txt", "not there the second time");
	send(&far, "step-00000010");
	drop(far.from, "step-00000010");
	make_files(far.from, "step-00000010", 11); /* the same names and sizes */
	send(&far, "step-00000010");
	assert_int_equal(mark(&far, "step-00000010", &err), 1);
	assert_chosen(&far, "step-00000010");
	assert_fetched(&far, "step-00000010", to);
}

static void somebody_else_may_bring_it(void **state)
{
	AUTO(far_release) struct workspace_cache far = far_of(*state);
	AUTO(checkpoint_release) struct ckpt ckpt = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	make_files(far.from, "step-00000010", 10);
	ckpt = one_in(far.from, "step-00000010");
	assert_int_equal(checkpoint_copy_is_there(&ckpt, &far.root, &err), 0);
	make_files(far.bucket, "a/b/step-00000010", 10);
	assert_int_equal(checkpoint_copy_is_there(&ckpt, &far.root, &err), 1);
	put_text(far.bucket, "a/b/step-00000010/meta.json", "{}");
	assert_int_equal(checkpoint_copy_is_there(&ckpt, &far.root, &err), 0);
}

static void only_marks_above_a_step_are_read(void **state)
{
	AUTO(far_release) struct workspace_cache far = far_of(*state);
	AUTO(checkpoint_marks_release) struct ckpt_marks marks = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *rejected = json_array();

	save(&far, "step-00000010", 10);
	save(&far, "step-00000020", 20);
	put_text(far.bucket, "a/b/marks/step-00000005.stoker.json", "garbage");
	assert_int_equal(checkpoint_mark_list(&far.root, 10, &marks, rejected, &err), 0);
	assert_int_equal(marks.count, 1);
	assert_int_equal(marks.items[0].step, 20);
	assert_int_equal(json_array_size(rejected), 0);
	checkpoint_marks_release(&marks);
	assert_int_equal(checkpoint_mark_list(&far.root, -1, &marks, rejected, &err), 0);
	assert_int_equal(marks.count, 2);
	assert_int_equal(json_array_size(rejected), 1);
}

static void surplus_goes_and_leaves_nothing_behind(void **state)
{
	AUTO(far_release) struct workspace_cache far = far_of(*state);
	AUTO(auto_free)
	char *marks_dir = fs_join(far.bucket, "a/b/marks/step-00000010.stoker.json");
	AUTO(checkpoint_marks_release) struct ckpt_marks surplus = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	struct store_object object;

	for (int step = 10; step <= 40; step += 10) {
		AUTO(auto_free) char *name = mem_format("step-%08d", step);

		save(&far, name, step);
	}
	assert_int_equal(checkpoint_surplus(&far.root, 1, RUN, 2, NULL, &surplus, &err), 0);
	assert_int_equal(surplus.count, 2);
	assert_string_equal(surplus.items[0].name, "step-00000010");
	/* A removal that was cut short after its note. */
	drop(far.bucket, "a/b/marks/step-00000020.stoker.json");
	put_text(far.bucket, "a/b/marks/step-00000020.gone", "\n");
	assert_int_equal(checkpoint_remove(&surplus.items[0], &err), 0);
	assert_int_equal(checkpoint_remove(&surplus.items[0], &err), 0);
	assert_false(fs_exists(marks_dir));
	assert_int_equal(store_stat(far.store, "a/b/step-00000010/meta.json", &object, &err), 0);
	assert_int_equal(store_stat(far.store, "a/b/step-00000020/meta.json", &object, &err), 0);
	assert_int_equal(store_stat(far.store, "a/b/step-00000030/meta.json", &object, &err), 1);
	assert_int_equal(store_stat(far.store, "a/b/marks/step-00000020.gone", &object, &err), 0);
	assert_chosen(&far, "step-00000040");
}

static void what_is_not_what_was_marked_is_not_fetched(void **state)
{
	AUTO(far_release) struct workspace_cache far = far_of(*state);
	AUTO(auto_free) char *to = fs_join(*state, "to");
	AUTO(auto_free) char *made = fs_join(to, "step-00000010");
	AUTO(auto_free) char *why = NULL;

	save(&far, "step-00000010", 10);
	put_text(far.bucket, "a/b/step-00000010/meta.json", "{}");
	why = fetch(&far, "step-00000010", to);
	assert_contains(why, "'meta.json' has");
	assert_false(fs_exists(made));
}

/* A store over another one that lists objects without their tags. */
struct untagged {
	struct store base; /* first: a store is one of these */
	struct store *real;
	store_list_fn fn;
	void *arg;
};

static struct untagged *untagged(struct store *store)
{
	return (struct untagged *)(void *)store;
}

static int without_tag(void *arg, const struct store_object *object, struct err **err)
{
	const struct untagged *store = arg;
	struct store_object bare = *object;

	bare.tag[0] = '\0';
	return store->fn(store->arg, &bare, err);
}

static int untagged_list(struct store *store, const char *prefix, store_list_fn fn, void *arg,
			 struct err **err)
{
	untagged(store)->fn = fn;
	untagged(store)->arg = arg;
	return store_list(untagged(store)->real, prefix, without_tag, store, err);
}

static int untagged_get(struct store *store, const char *key, size_t max, struct sb *ret,
			char ret_tag[STORE_TAG], struct err **err)
{
	return store_get(untagged(store)->real, key, max, ret, ret_tag, err);
}

static int untagged_put_if_absent(struct store *store, const char *key, const void *bytes,
				  size_t len, struct err **err)
{
	return store_put_if_absent(untagged(store)->real, key, bytes, len, err);
}

static const struct store_backend untagged_backend = {
	.list = untagged_list,
	.get = untagged_get,
	.put_if_absent = untagged_put_if_absent,
};

static void what_is_listed_without_its_tag_is_neither_marked_nor_chosen(void **state)
{
	AUTO(far_release) struct workspace_cache far = far_of(*state);
	AUTO(err_freep) struct err *err = NULL;
	struct untagged bare = { .base = { .backend = &untagged_backend, .url = far.bucket },
				 .real = far.store };
	struct workspace_cache seen = far;

	seen.root.store = &bare.base;
	make_files(far.from, "step-00000010", 10);
	send(&far, "step-00000010");
	assert_int_equal(mark(&seen, "step-00000010", &err), -1);
	assert_contains(err->message, "cannot be verified");
	assert_chosen(&far, NULL);
	err_freep(&err);
	assert_int_equal(mark(&far, "step-00000010", &err), 1);
	assert_chosen(&far, "step-00000010");
	assert_chosen(&seen, NULL);
	assert_passed_over(&seen, "step-00000010", "cannot be verified");
}

static void a_mark_with_an_empty_tag_is_none(void **state)
{
	AUTO(far_release) struct workspace_cache far = far_of(*state);
	AUTO(auto_free) char *path = fs_join(far.bucket, "a/b/marks/step-00000010.stoker.json");
	AUTO(auto_free) char *text = NULL;
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *body = NULL;

	save(&far, "step-00000010", 10);
	assert_int_equal(js_load(path, 1 << 20, &body, &err), 0);
	js_put_str(json_array_get(json_object_get(body, "files"), 0), "tag", "");
	text = js_line(body);
	put_text(far.bucket, "a/b/marks/step-00000010.stoker.json", text);
	assert_chosen(&far, NULL);
	assert_passed_over(&far, "step-00000010", "a member is missing");
}

static void another_one_of_that_name_makes_way(void **state)
{
	AUTO(far_release) struct workspace_cache far = far_of(*state);
	AUTO(auto_free) char *to = fs_join(*state, "to");
	AUTO(auto_free) char *made = fs_join(to, "step-00000010");

	save(&far, "step-00000010", 10);
	put_text(made, "meta.json", "{}");
	put_text(made, "more", "of an earlier life");
	assert_fetched(&far, "step-00000010", to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_scratch(each_kind_comes_back_as_it_went),
		test_in_scratch(a_single_file_comes_back_too),
		test_in_scratch(a_mark_tells_where_it_is_and_what_pins_it),
		test_in_scratch(without_its_mark_nothing_counts),
		test_in_scratch(what_is_not_all_there_is_not_marked),
		test_in_scratch(a_damaged_one_is_passed_over_with_the_reason),
		test_in_scratch(what_has_arrived_is_not_sent_again),
		test_in_scratch(what_was_sent_and_saved_anew_is_sent_anew),
		test_in_scratch(somebody_else_may_bring_it),
		test_in_scratch(only_marks_above_a_step_are_read),
		test_in_scratch(surplus_goes_and_leaves_nothing_behind),
		test_in_scratch(what_is_not_what_was_marked_is_not_fetched),
		test_in_scratch(what_is_listed_without_its_tag_is_neither_marked_nor_chosen),
		test_in_scratch(a_mark_with_an_empty_tag_is_none),
		test_in_scratch(another_one_of_that_name_makes_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
