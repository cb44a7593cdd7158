/* The promises of jobs/run/journal/forget.h and keepsakes.h, on every kind of journal: what goes
 * with a run, what stays, and what is said of both. */
#include "forget_fixture.h"

static void a_run_goes_with_all_of_its_files_and_they_are_counted(void **unused)
{
	json_auto_t *counted = NULL, *ret = NULL;

	(void)unused;
	begin_run(work, NULL);
	end_run();
	put_text(work, "runs/r/train-1/log", "12345");
	put_text(work, "runs/r/claims/x", "1");
	put_text(work, "runs/other/log", "1");
	put_text(state, "runs/r/driver.log", "123");
	counted = forget(&dry);
	assert_int_equal(events(), 2);
	assert_true(there(work, "runs/r/train-1/log"));
	assert_true(run_has_rests(journal, "r"));
	ret = forget(&plain);
	assert_true(json_equal(counted, ret));
	assert_true(js_int(ret, "files", -1) >= 3);
	assert_true(js_int(ret, "size_bytes", -1) >= 9);
	assert_int_equal(json_array_size(json_object_get(ret, "kept")), 0);
	assert_int_equal(events(), 0);
	assert_false(there(work, "runs/r"));
	assert_false(there(state, "runs/r"));
	assert_true(there(work, "runs/other/log"));
	assert_false(run_has_rests(journal, "r"));
	assert_int_equal(find_kept("r"), 0);
}

static void a_run_that_has_not_ended_is_left_alone(void **unused)
{
	(void)unused;
	begin_run(work, NULL);
	put_text(work, "runs/r/train-1/log", "1");
	assert_refused(&plain, EXIT_REFUSED, "run r has not ended");
	assert_refused(&dry, EXIT_REFUSED, "run r has not ended");
	assert_true(there(work, "runs/r/train-1/log"));
	assert_int_equal(events(), 1);
}

static void a_name_that_is_no_run_is_a_defect(void **unused)
{
	AUTO(err_freep) struct err *err = NULL;
	json_t *ret = NULL;

	(void)unused;
	assert_int_equal(run_forget(journal, "../r", &plain, NULL, NULL, NULL, &ret, &err), -1);
	assert_int_equal(err->code, EXIT_DEFECT);
	assert_false(run_has_rests(journal, "../r"));
	assert_int_equal(find_kept("../r"), 0);
}

static const json_t *kept_at(const json_t *ret, const char *what, const char *path)
{
	AUTO(auto_free) char *url = fs_join(work, path);
	const json_t *one;
	size_t i;

	json_array_foreach (json_object_get(ret, "kept"), i, one)
		if (strcmp(js_str(one, "url"), url) == 0 && strcmp(js_str(one, "what"), what) == 0)
			return one;
	fail_msg("%s is not kept", path);
	return NULL;
}

static void the_only_copies_stay_until_they_are_named(void **unused)
{
	json_auto_t *ret = NULL, *again = NULL, *last = NULL;
	const json_t *one;

	(void)unused;
	begin_run(work, NULL);
	end_run();
	make_only_copies();
	ret = forget(&plain);
	assert_int_equal(json_array_size(json_object_get(ret, "kept")), 4);
	one = kept_at(ret, "checkpoint", "runs/r/train-1/checkpoints/checkpoint-10");
	assert_int_equal(js_int(one, "step", -1), 10);
	assert_int_equal(js_int(one, "files", -1), 10);
	assert_null(json_object_get(one, "keys"));
	kept_at(ret, "checkpoint", "runs/r/train-2/node-1/checkpoints/checkpoint-20");
	one = kept_at(ret, "output", "runs/r/train-1/output");
	assert_int_equal(js_int(one, "size_bytes", -1), 4);
	kept_at(ret, "output", "runs/r/outputs/train-2");
	assert_int_equal(events(), 0);
	assert_true(there(work, "runs/r/train-1/output/model"));
	assert_true(there(work, "runs/r/outputs/train-2/node-0/table"));
	assert_false(there(work, "runs/r/train-1/log"));
	assert_false(there(work, "runs/r/train-1/checkpoints/checkpoint-15"));
	assert_false(there(work, "runs/r/train-0"));
	/* the journal knows it no more, and it can be asked again */
	assert_int_equal(find_kept("r"), 1);
	assert_true(run_has_rests(journal, "r"));
	again = forget(&plain);
	assert_true(json_equal(json_object_get(ret, "kept"), json_object_get(again, "kept")));
	last = forget(&all);
	assert_int_equal(json_array_size(json_object_get(last, "kept")), 0);
	assert_false(there(work, "runs/r"));
	assert_int_equal(find_kept("r"), 0);
	assert_false(run_has_rests(journal, "r"));
}

static void copy_and_mark(const struct ckpt_list *list, const struct ckpt_root *root)
{
	const struct ckpt_owner owner = { "r", "n", 1, NULL, 0 };
	struct err *err = NULL;

	for (size_t i = 0; i < list->count; i++) {
		checkpoint_copy(&list->items[i], root, NULL, NULL, &err);
		assert_no_error(err);
		checkpoint_mark(root, &list->items[i], &owner, (struct utc){ 1 }, &err);
		assert_no_error(err);
	}
}

/* A copy beneath checkpoint.url counts while it is what its mark says. */
static void a_checkpoint_with_a_copy_goes(void **unused)
{
	AUTO(auto_free) char *saved = fs_join(work, "runs/r/train-1/checkpoints");
	AUTO(auto_free) char *copied = fs_join(copies, "r/attempt-1");
	const struct ckpt_root root = { .path = copied, .attempt = 1 };
	AUTO(checkpoint_list_release) struct ckpt_list list = { 0 };

	(void)unused;
	begin_run(work, copies);
	end_run();
	make_hf(saved, "checkpoint-10", 10);
	make_hf(saved, "checkpoint-20", 20);
	list = found_in(saved, "hf");
	copy_and_mark(&list, &root);
	drop(copied, "checkpoint-20/optimizer.pt");
	{
		json_auto_t *ret = forget(&plain);

		assert_int_equal(json_array_size(json_object_get(ret, "kept")), 1);
		kept_at(ret, "checkpoint", "runs/r/train-1/checkpoints/checkpoint-20");
	}
	assert_false(there(saved, "checkpoint-10"));
	assert_true(there(copied, "checkpoint-10/optimizer.pt"));
}

/* Somebody set checkpoint.url so that the run's own folder holds another's data. */
static void checkpoints_of_checkpoint_url_are_not_the_runs_own(void **unused)
{
	AUTO(auto_free) char *within = fs_join(work, "runs");

	(void)unused;
	begin_run(work, within);
	end_run();
	put_text(work, "runs/r/attempt-1/x", "1");
	assert_refused(&plain, EXIT_REFUSED, "checkpoints of checkpoint.url lie in the folder");
	assert_true(there(work, "runs/r/attempt-1/x"));
	assert_int_equal(events(), 2);
}

/* Checkpoints beneath the state are not the run's own either, though its folder there is removed,
 * too. */
static void checkpoints_within_the_state_keep_it(void **unused)
{
	AUTO(auto_free) char *within = fs_join(state, "runs");

	(void)unused;
	begin_run(work, within);
	end_run();
	put_text(state, "runs/r/attempt-1/x", "1");
	assert_refused(&all, EXIT_REFUSED, "checkpoints of checkpoint.url lie in the folder");
	assert_true(there(state, "runs/r/attempt-1/x"));
	assert_int_equal(events(), 2);
}

/* The content of the workspace is not known, so the list of it is not given up. */
static void a_workspace_that_cannot_be_opened_keeps_the_run(void **unused)
{
	(void)unused;
	begin_run("s3://b/work", NULL);
	end_run();
	assert_refused(&all, EXIT_REFUSED, "'s3://b/work' names no bucket");
	assert_int_equal(events(), 2);
}

static void no_link_is_followed(void **unused)
{
	static const char *const roots[] = { state, work };
	AUTO(auto_free) char *other = fs_join(dir, "other");

	(void)unused;
	begin_run(work, NULL);
	end_run();
	put_text(other, "precious", "1");
	for (size_t i = 0; i < 2; i++) {
		AUTO(auto_free) char *runs = fs_join(roots[i], "runs");
		AUTO(auto_free) char *link = fs_join(runs, "r");
		AUTO(auto_free) char *aside = fs_join(roots[i], "aside");
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(fs_mkdirs(link, &err), 0);
		assert_int_equal(rename(link, aside), 0);
		assert_int_equal(symlink(other, link), 0);
		assert_refused(&all, EXIT_REFUSED, "is a link or not a folder");
		assert_int_equal(unlink(link), 0);
		assert_int_equal(rename(aside, link), 0);
	}
	assert_true(there(other, "precious"));
	assert_int_equal(events(), 2);
}

/* The list of what was kept is all that tells where it is: one that cannot be read is no list of
 * nothing. */
static void a_list_that_cannot_be_read_ends_it(void **unused)
{
	(void)unused;
	begin_run(work, NULL);
	end_run();
	make_only_copies();
	json_decref(forget(&plain));
	put_text(state, "runs/r/kept.json", "{");
	assert_refused(&all, EXIT_REFUSED, "kept.json");
	drop(state, "runs/r/kept.json");
	put_text(state, "runs/r/kept.json/x", "");
	assert_refused(&all, EXIT_REFUSED, "kept.json");
	assert_true(there(work, "runs/r/train-1/output/model"));
}

/* ---- among objects ---- */

static void the_only_copies_among_objects_are_found(void **unused)
{
	AUTO(auto_free) char *saved = fs_join(dir, "saved");
	json_auto_t *plan = json_object();
	json_auto_t *kept = json_array();
	AUTO(checkpoint_list_release) struct ckpt_list list = { 0 };
	AUTO(store_freep) struct store *store = NULL;
	struct ckpt_root root = { .path = "runs/r/train-1/checkpoints/", .attempt = 1 };
	struct err *err = NULL;

	(void)unused;
	store_open(work, &store, &err);
	assert_no_error(err);
	root.store = store;
	make_hf(saved, "checkpoint-10", 10);
	make_hf(saved, "checkpoint-20", 20);
	list = found_in(saved, "hf");
	copy_and_mark(&list, &root);
	drop(work, "runs/r/train-1/checkpoints/checkpoint-20/optimizer.pt");
	put_text(work, "runs/r/outputs/train-1/node-0/a", "123");
	put_text(work, "runs/r/outputs/train-1/node-1/a", "12345");
	put_text(work, "runs/r/train-x/log", "1");
	keepsakes_in_store(plan, store, "r", kept, &err);
	assert_no_error(err);
	assert_int_equal(json_array_size(kept), 2);
	assert_int_equal(js_int(json_array_get(kept, 0), "step", -1), 10);
	assert_int_equal(js_int(json_array_get(kept, 0), "files", -1), 10);
	assert_int_equal(js_int(json_array_get(kept, 1), "size_bytes", -1), 8);
	assert_int_equal(keepsakes_have(kept, "outputs/train-1/node-0/a"), KEEPSAKE_IS);
	assert_int_equal(keepsakes_have(kept, "outputs/train-1"), KEEPSAKE_IS);
	assert_int_equal(keepsakes_have(kept, "outputs/train-10"), KEEPSAKE_NOT);
	assert_int_equal(keepsakes_have(kept, "outputs"), KEEPSAKE_ABOVE);
	assert_int_equal(keepsakes_have(kept, "out"), KEEPSAKE_NOT);
}

/* Objects that the agent has sent to the workspace make the folder beside them no only copy. */
static void what_the_objects_hold_is_no_only_copy_in_the_folder(void **unused)
{
	AUTO(auto_free) char *objects = fs_join(dir, "objects");
	json_auto_t *plan = json_object();
	AUTO(store_freep) struct store *store = NULL;
	static const struct {
		const char *sent, *bytes;
		size_t kept;
	} rows[] = {
		{ "runs/r/outputs/train-1/node-0/sub/model", "1234", 0 },
		{ "runs/r/outputs/train-1/node-0.restart-1/sub/model", "1234", 0 },
		{ "runs/r/outputs/train-1/node-0/sub/model", "123", 1 },
		{ "runs/r/outputs/train-1/node-01/sub/model", "1234", 1 },
		{ "runs/r/outputs/train-1/node-0/model", "1234", 1 },
	};
	struct err *err = NULL;

	(void)unused;
	put_text(work, "runs/r/train-1/node-0/output/sub/model", "1234");
	store_open(objects, &store, &err);
	assert_no_error(err);
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		json_auto_t *kept = json_array();

		put_text(objects, rows[i].sent, rows[i].bytes);
		keepsakes_in_folder(plan, work, "r", store, kept, &err);
		assert_no_error(err);
		assert_int_equal(json_array_size(kept), rows[i].kept);
		drop(objects, "runs");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF(a_run_goes_with_all_of_its_files_and_they_are_counted),
		OF(a_run_that_has_not_ended_is_left_alone),
		OF(a_name_that_is_no_run_is_a_defect),
		OF(the_only_copies_stay_until_they_are_named),
		OF(a_checkpoint_with_a_copy_goes),
		OF(checkpoints_of_checkpoint_url_are_not_the_runs_own),
		OF(checkpoints_within_the_state_keep_it),
		OF(a_workspace_that_cannot_be_opened_keeps_the_run),
		OF(no_link_is_followed),
		OF(a_list_that_cannot_be_read_ends_it),
		OF(the_only_copies_among_objects_are_found),
		OF(what_the_objects_hold_is_no_only_copy_in_the_folder),
	};
	static const char *const schemes[] = { "sqlite", "dir" };
	int failed = 0;

	for (size_t i = 0; i < STK_LENGTH(schemes); i++) {
		scheme = schemes[i];
		failed += cmocka_run_group_tests_name(scheme, tests, NULL, NULL);
	}
	return failed;
}
