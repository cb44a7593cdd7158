/* Marks, what a run resumes from, and what of it may be removed. */
#include "tests/unit/checkpoint/trees.h"

#define RUN "0abcdefghjkm"

static const struct ckpt_owner owner = { RUN, "nonce-1", 1, NULL, 0 };

static struct ckpt one_in(const char *root, const char *name)
{
	AUTO(auto_free) char *path = fs_join(root, name);
	AUTO(err_freep) struct err *err = NULL;
	struct ckpt ckpt = { 0 };

	checkpoint_prove(path, checkpoint_kind_find("auto"), &ckpt, &err);
	assert_no_error(err);
	return ckpt;
}

static int mark_as(const char *root, const char *name, const struct ckpt_owner *by)
{
	AUTO(checkpoint_release) struct ckpt ckpt = one_in(root, name);
	AUTO(err_freep) struct err *err = NULL;
	int marked =
		checkpoint_mark(CKPT_FOLDER(root), &ckpt, by, (struct utc){ 1700000000000 }, &err);

	assert_int_equal(marked < 0, err != NULL);
	return marked;
}

static void make_marked(const char *root, const char *name, int step)
{
	make_files(root, name, step);
	assert_int_equal(mark_as(root, name, &owner), 1);
}

static struct ckpt_choice choose(const char *root)
{
	const struct ckpt_root roots[] = { { root, 1, "nonce-1", NULL } };
	AUTO(err_freep) struct err *err = NULL;
	struct ckpt_choice choice = { 0 };

	checkpoint_choose(roots, 1, RUN, INT64_MAX, &choice, &err);
	assert_no_error(err);
	return choice;
}

static void assert_chosen(const char *root, const char *name)
{
	AUTO(checkpoint_choice_release) struct ckpt_choice choice = choose(root);

	assert_int_equal(choice.found, name != NULL);
	if (name)
		assert_string_equal(choice.mark.name, name);
}

/* `part` is in the reason for which the n-th was passed over. */
static void assert_rejected(const char *root, size_t n, const char *part)
{
	AUTO(checkpoint_choice_release) struct ckpt_choice choice = choose(root);
	const char *why = js_str(json_array_get(choice.rejected, n), "why");

	assert_non_null(why);
	assert_contains(why, part);
	assert_non_null(js_str(json_array_get(choice.rejected, n), "url"));
}

static void a_mark_says_how_long_its_checkpoint_took(void **state)
{
	AUTO(auto_free) char *path = fs_join(*state, "step-00000010/late.bin");
	AUTO(checkpoint_mark_release) struct ckpt_mark mark = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	time_t late = (time_t)(clock_utc_now().ms / 1000) + 60;
	struct utimbuf times = { late, late };

	make_files(*state, "step-00000010", 10);
	put_text(*state, "step-00000010/late.bin", "the last one");
	assert_int_equal(utime(path, &times), 0);
	assert_int_equal(mark_as(*state, "step-00000010", &owner), 1);
	assert_int_equal(checkpoint_mark_read(CKPT_FOLDER(*state), "step-00000010", &mark, &err),
			 1);
	assert_in_range(mark.saving_ms, 50000, 61000);
}

static void a_mark_says_whose_checkpoint_it_is_and_what_it_holds(void **state)
{
	AUTO(auto_free) char *path = fs_join(*state, "step-00000010.stoker.json");
	AUTO(auto_free) char *url = fs_join(*state, "step-00000010");
	AUTO(checkpoint_mark_release) struct ckpt_mark mark = { 0 };
	AUTO(err_freep) struct err *err = NULL;
	json_auto_t *body = NULL;
	struct stat st;

	make_marked(*state, "step-00000010", 10);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	js_load(path, 1 << 20, &body, &err);
	assert_no_error(err);
	assert_int_equal(js_int(body, "v", 0), 1);
	assert_string_equal(js_str(body, "run"), RUN);
	assert_int_equal(js_int(body, "attempt", 0), 1);
	assert_string_equal(js_str(body, "nonce"), "nonce-1");
	assert_int_equal(js_int(body, "step", 0), 10);
	assert_string_equal(js_str(body, "name"), "step-00000010");
	assert_string_equal(js_str(body, "kind"), "files");
	assert_string_equal(js_str(body, "url"), url);
	assert_int_equal(js_int(body, "at", 0), 1700000000000);
	assert_int_equal(json_array_size(json_object_get(body, "files")), 2);
	assert_int_equal(checkpoint_mark_read(CKPT_FOLDER(*state), "step-00000010", &mark, &err),
			 1);
	assert_int_equal(mark.step, 10);
	assert_string_equal(mark.url, url);
	assert_string_equal(checkpoint_kind_name(mark.kind), "files");
	assert_int_equal(checkpoint_mark_read(CKPT_FOLDER(*state), "step-00000011", &mark, &err),
			 0);
}

static void a_mark_is_written_once(void **state)
{
	const struct ckpt_owner late = { RUN, "nonce-2", 2, NULL, 0 };
	AUTO(checkpoint_mark_release) struct ckpt_mark mark = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	make_marked(*state, "step-00000010", 10);
	assert_int_equal(mark_as(*state, "step-00000010", &late), 0);
	assert_int_equal(checkpoint_mark_read(CKPT_FOLDER(*state), "step-00000010", &mark, &err),
			 1);
	assert_int_equal(mark.attempt, 1);
}

static void what_is_not_complete_or_has_changed_is_not_marked(void **state)
{
	AUTO(checkpoint_release) struct ckpt ckpt = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	make_files(*state, "step-00000010", 10);
	drop(*state, "step-00000010/meta.json");
	assert_int_equal(mark_as(*state, "step-00000010", &owner), -1);
	make_files(*state, "step-00000020", 20);
	ckpt = one_in(*state, "step-00000020");
	put_text(*state, "step-00000020/late.txt", "written by a slow rank");
	assert_int_equal(checkpoint_mark(CKPT_FOLDER(*state), &ckpt, &owner, clock_utc_now(), &err),
			 -1);
	assert_contains(err->message, "changed meanwhile");
	err_freep(&err);
	drop(*state, "step-00000020");
	assert_int_equal(checkpoint_mark(CKPT_FOLDER(*state), &ckpt, &owner, clock_utc_now(), &err),
			 -1);
	assert_contains(err->message, "not found");
	assert_chosen(*state, NULL);
}

static void only_marked_ones_are_chosen_the_newest_first(void **state)
{
	make_marked(*state, "step-00000010", 10);
	make_marked(*state, "step-00000100", 100);
	make_marked(*state, "step-00000020", 20);
	make_files(*state, "step-00000200", 200);
	assert_chosen(*state, "step-00000100");
	drop(*state, "step-00000100.stoker.json");
	assert_chosen(*state, "step-00000020");
}

/* The newest is damaged; the one before is chosen and the reason names the file. */
static void a_damaged_one_is_passed_over_with_the_reason(void **state)
{
	AUTO(sb_release) struct sb whole = SB_INIT;

	make_marked(*state, "step-00000010", 10);
	make_marked(*state, "step-00000020", 20);
	whole = get_bytes(*state, "step-00000020/state.npz");
	put_bytes(*state, "step-00000020/state.npz", whole.text, whole.len - 1);
	assert_chosen(*state, "step-00000010");
	assert_rejected(*state, 0, "'state.npz' has");
	whole.text[3] ^= 1;
	put_bytes(*state, "step-00000020/state.npz", whole.text, whole.len);
	assert_chosen(*state, "step-00000010");
	assert_rejected(*state, 0, "'state.npz' has changed");
	whole.text[3] ^= 1;
	put_bytes(*state, "step-00000020/state.npz", whole.text, whole.len);
	assert_chosen(*state, "step-00000020");
	drop(*state, "step-00000020/meta.json");
	assert_chosen(*state, "step-00000010");
	assert_rejected(*state, 0, "'meta.json' is missing");
	drop(*state, "step-00000020");
	assert_chosen(*state, "step-00000010");
	assert_rejected(*state, 0, "not found");
	drop(*state, "step-00000010");
	assert_chosen(*state, NULL);
}

static void damage_of_any_file_of_any_kind_is_found_by_the_mark(void **state)
{
	for (size_t m = 0; m < STK_LENGTH(makers); m++) {
		AUTO(auto_free) char *root = mem_format("%s/%zu", (char *)*state, m);
		AUTO(auto_free) char *newest = fs_join(root, makers[m].names[1]);
		AUTO(checkpoint_tree_release) struct checkpoint_tree tree = TREE_INIT;
		AUTO(err_freep) struct err *err = NULL;

		make_all(&makers[m], root, 2);
		assert_int_equal(mark_as(root, makers[m].names[0], &owner), 1);
		assert_int_equal(mark_as(root, makers[m].names[1], &owner), 1);
		assert_chosen(root, makers[m].names[1]);
		assert_int_equal(checkpoint_tree_read(newest, &tree, &err), 1);
		for (size_t i = 0; i < tree.count; i++) {
			const char *path = tree.files[i].path;
			AUTO(sb_release) struct sb whole = get_bytes(newest, path);

			put_bytes(newest, path, whole.text, whole.len / 2);
			assert_chosen(root, makers[m].names[0]);
			drop(newest, path);
			assert_chosen(root, makers[m].names[0]);
			whole.text[whole.len / 2] ^= 0x10;
			put_bytes(newest, path, whole.text, whole.len);
			assert_chosen(root, makers[m].names[0]);
			whole.text[whole.len / 2] ^= 0x10;
			put_bytes(newest, path, whole.text, whole.len);
		}
		assert_chosen(root, makers[m].names[1]);
		put_text(newest, "one/more", "x");
		assert_chosen(root, makers[m].names[0]);
	}
}

static void a_pointer_that_has_moved_on_does_not_take_a_mark_back(void **state)
{
	make_deepspeed(*state, "global_step10", 10);
	assert_int_equal(mark_as(*state, "global_step10", &owner), 1);
	drop(*state, "latest");
	assert_chosen(*state, "global_step10");
}

static void marks_of_others_and_what_is_no_mark_are_rejected(void **state)
{
	const struct ckpt_owner other_run = { "zzzz", "nonce-1", 1, NULL, 0 };
	const struct ckpt_owner other_attempt = { RUN, "nonce-1", 2, NULL, 0 };
	const struct ckpt_owner orphan = { RUN, "nonce-0", 1, NULL, 0 };
	static const char *const garbage[] = { "", "{", "[]", "{\"v\":1}", "{\"v\":2}" };

	make_marked(*state, "step-00000001", 1);
	make_files(*state, "step-00000010", 10);
	make_files(*state, "step-00000020", 20);
	make_files(*state, "step-00000030", 30);
	assert_int_equal(mark_as(*state, "step-00000010", &other_run), 1);
	assert_int_equal(mark_as(*state, "step-00000020", &other_attempt), 1);
	assert_int_equal(mark_as(*state, "step-00000030", &orphan), 1);
	for (size_t i = 0; i < STK_LENGTH(garbage); i++) {
		AUTO(auto_free) char *name = mem_format("step-0000009%zu.stoker.json", i);

		put_text(*state, name, garbage[i]);
	}
	assert_chosen(*state, "step-00000001");
	assert_rejected(*state, 0, "unknown version");
	assert_rejected(*state, 4, "invalid JSON");
	assert_rejected(*state, 5, "did not hold the claim");
	assert_rejected(*state, 6, "another attempt");
	assert_rejected(*state, 7, "another run");
}

static void a_mark_leads_nowhere_else(void **state)
{
	AUTO(auto_free) char *root = fs_join(*state, "root");
	AUTO(auto_free) char *outside = fs_join(*state, "step-00000050");
	AUTO(auto_free) char *inside = fs_join(root, "step-00000050");
	AUTO(sb_release) struct sb mark = SB_INIT;
	AUTO(checkpoint_choice_release) struct ckpt_choice choice = { 0 };

	make_marked(*state, "step-00000050", 50);
	mark = get_bytes(*state, "step-00000050.stoker.json");
	put_bytes(root, "step-00000050.stoker.json", mark.text, mark.len);
	assert_rejected(root, 0, "not found");
	assert_int_equal(symlink(outside, inside), 0);
	assert_chosen(root, NULL);
	assert_rejected(root, 0, "not found");
	unlink(inside);
	make_files(root, "step-00000050", 50);
	choice = choose(root);
	assert_true(choice.found);
	assert_string_equal(choice.mark.url, inside);
	/* A mark by another name is of another checkpoint. */
	put_bytes(root, "step-00000051.stoker.json", mark.text, mark.len);
	assert_rejected(root, 0, "of another checkpoint");
}

static void of_several_attempts_the_highest_step_counts_then_the_latest_attempt(void **state)
{
	AUTO(auto_free) char *one = fs_join(*state, "attempt-1");
	AUTO(auto_free) char *two = fs_join(*state, "attempt-2");
	AUTO(auto_free) char *three = fs_join(*state, "attempt-3");
	const struct ckpt_owner second = { RUN, "nonce-2", 2, NULL, 0 };
	const struct ckpt_root roots[] = { { one, 1, "nonce-1", NULL },
					   { two, 2, NULL, NULL },
					   { three, 3, NULL, NULL } };
	AUTO(checkpoint_choice_release) struct ckpt_choice choice = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	make_marked(one, "step-00000010", 10);
	make_marked(one, "step-00000030", 30);
	make_files(two, "step-00000030", 30);
	assert_int_equal(mark_as(two, "step-00000030", &second), 1);
	make_files(two, "step-00000020", 20);
	assert_int_equal(mark_as(two, "step-00000020", &second), 1);
	assert_int_equal(checkpoint_choose(roots, 3, RUN, INT64_MAX, &choice, &err), 0);
	assert_true(choice.found);
	assert_int_equal(choice.mark.attempt, 2);
	assert_int_equal(choice.mark.step, 30);
	checkpoint_choice_release(&choice);
	drop(two, "step-00000030/meta.json");
	assert_int_equal(checkpoint_choose(roots, 3, RUN, INT64_MAX, &choice, &err), 0);
	assert_int_equal(choice.mark.attempt, 1);
	assert_int_equal(choice.mark.step, 30);
}

static void below_a_step_older_ones_are_chosen(void **state)
{
	const struct ckpt_root roots[] = { { *state, 1, NULL, NULL } };
	AUTO(checkpoint_choice_release) struct ckpt_choice choice = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	make_marked(*state, "step-00000010", 10);
	make_marked(*state, "step-00000020", 20);
	assert_int_equal(checkpoint_choose(roots, 1, RUN, 20, &choice, &err), 0);
	assert_true(choice.found);
	assert_int_equal(choice.mark.step, 10);
	assert_int_equal(json_array_size(choice.rejected), 1);
	checkpoint_choice_release(&choice);
	assert_int_equal(checkpoint_choose(roots, 1, RUN, 10, &choice, &err), 0);
	assert_false(choice.found);
}

static void nothing_is_chosen_from_half_of_the_truth(void **state)
{
	AUTO(auto_free) char *good = fs_join(*state, "good");
	AUTO(auto_free) char *bad = fs_join(*state, "bad");
	const struct ckpt_root roots[] = { { good, 1, NULL, NULL }, { bad, 1, NULL, NULL } };
	struct ckpt_choice choice = { 0 };
	struct ckpt_marks marks = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	make_marked(good, "step-00000010", 10);
	put_text(*state, "bad", "a file where a folder should be");
	assert_int_equal(checkpoint_choose(roots, 2, RUN, INT64_MAX, &choice, &err), -1);
	err_freep(&err);
	assert_int_equal(checkpoint_surplus(roots, 2, RUN, 1, NULL, &marks, &err), -1);
	assert_int_equal(marks.count, 0);
}

static void assert_surplus(const char *root, int64_t keep, const char *in_use,
			   const char *const *names)
{
	const struct ckpt_root roots[] = { { root, 1, NULL, NULL } };
	AUTO(checkpoint_marks_release) struct ckpt_marks marks = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	checkpoint_surplus(roots, 1, RUN, keep, in_use, &marks, &err);
	assert_no_error(err);
	for (size_t i = 0; i < marks.count; i++) {
		assert_non_null(names[i]);
		assert_string_equal(marks.items[i].name, names[i]);
	}
	assert_null(names[marks.count]);
}

static void the_newest_complete_ones_are_kept_and_what_is_in_use(void **state)
{
	AUTO(auto_free) char *used = fs_join(*state, "step-00000010");

	for (int step = 10; step <= 50; step += 10) {
		AUTO(auto_free) char *name = mem_format("step-%08d", step);

		make_marked(*state, name, step);
	}
	make_files(*state, "step-00000060", 60); /* not marked: neither kept nor removed */
	assert_surplus(*state, 0, NULL, (const char *const[]){ NULL });
	assert_surplus(*state, 9, NULL, (const char *const[]){ NULL });
	assert_surplus(*state, 3, NULL,
		       (const char *const[]){ "step-00000010", "step-00000020", NULL });
	assert_surplus(*state, 3, used, (const char *const[]){ "step-00000020", NULL });
	/* The newest does not hold: it does not count. */
	drop(*state, "step-00000050/meta.json");
	assert_surplus(*state, 3, NULL, (const char *const[]){ "step-00000010", NULL });
	drop(*state, "step-00000040/meta.json");
	drop(*state, "step-00000030/meta.json");
	drop(*state, "step-00000020/meta.json");
	assert_surplus(*state, 1, NULL, (const char *const[]){ NULL });
}

static void a_removed_one_leaves_nothing_behind(void **state)
{
	AUTO(checkpoint_mark_release) struct ckpt_mark mark = { 0 };
	AUTO(auto_free) char *path = fs_join(*state, "step-00000010");
	AUTO(auto_free) char *left = fs_join(*state, FS_TEMP_PREFIX "gone-abc");
	AUTO(err_freep) struct err *err = NULL;

	make_marked(*state, "step-00000010", 10);
	make_marked(*state, "step-00000020", 20);
	put_text(left, "deep/er", "of a removal that was interrupted");
	assert_int_equal(checkpoint_mark_read(CKPT_FOLDER(*state), "step-00000010", &mark, &err),
			 1);
	assert_int_equal(checkpoint_remove(&mark, &err), 0);
	assert_int_equal(checkpoint_remove(&mark, &err), 0);
	assert_false(fs_exists(path));
	assert_false(fs_exists(left));
	assert_int_equal(checkpoint_mark_read(CKPT_FOLDER(*state), "step-00000010", &mark, &err),
			 0);
	assert_chosen(*state, "step-00000020");
}

static void a_copy_is_marked_in_its_new_root(void **state)
{
	AUTO(auto_free) char *from = fs_join(*state, "from");
	AUTO(auto_free) char *to = fs_join(*state, "to");
	AUTO(checkpoint_release) struct ckpt ckpt = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	make_hf(from, "checkpoint-10", 10);
	ckpt = one_in(from, "checkpoint-10");
	assert_int_equal(checkpoint_copy(&ckpt, CKPT_FOLDER(to), NULL, NULL, &err), 0);
	assert_int_equal(checkpoint_mark(CKPT_FOLDER(to), &ckpt, &owner, clock_utc_now(), &err), 1);
	assert_chosen(to, "checkpoint-10");
	assert_chosen(from, NULL);
}

static void a_pointer_is_written_forward_only(void **state)
{
	AUTO(checkpoint_release) struct ckpt ten = { 0 };
	AUTO(checkpoint_release) struct ckpt twenty = { 0 };
	AUTO(sb_release) struct sb text = SB_INIT;
	AUTO(auto_free) char *to = fs_join(*state, "to");
	AUTO(err_freep) struct err *err = NULL;

	make_all(&makers[5], *state, 2);
	ten = one_in(*state, "iter_0000010");
	twenty = one_in(*state, "iter_0000020");
	fs_mkdirs(to, &err);
	assert_int_equal(checkpoint_point(to, &twenty, &err), 0);
	assert_int_equal(checkpoint_point(to, &ten, &err), 0);
	text = get_bytes(to, "latest_checkpointed_iteration.txt");
	assert_string_equal(text.text, "20");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_scratch(a_mark_says_whose_checkpoint_it_is_and_what_it_holds),
		test_in_scratch(a_mark_says_how_long_its_checkpoint_took),
		test_in_scratch(a_mark_is_written_once),
		test_in_scratch(what_is_not_complete_or_has_changed_is_not_marked),
		test_in_scratch(only_marked_ones_are_chosen_the_newest_first),
		test_in_scratch(a_damaged_one_is_passed_over_with_the_reason),
		test_in_scratch(damage_of_any_file_of_any_kind_is_found_by_the_mark),
		test_in_scratch(a_pointer_that_has_moved_on_does_not_take_a_mark_back),
		test_in_scratch(marks_of_others_and_what_is_no_mark_are_rejected),
		test_in_scratch(a_mark_leads_nowhere_else),
		test_in_scratch(
			of_several_attempts_the_highest_step_counts_then_the_latest_attempt),
		test_in_scratch(below_a_step_older_ones_are_chosen),
		test_in_scratch(nothing_is_chosen_from_half_of_the_truth),
		test_in_scratch(the_newest_complete_ones_are_kept_and_what_is_in_use),
		test_in_scratch(a_removed_one_leaves_nothing_behind),
		test_in_scratch(a_copy_is_marked_in_its_new_root),
		test_in_scratch(a_pointer_is_written_forward_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
