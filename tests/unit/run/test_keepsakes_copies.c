/* Which data of a run has a copy elsewhere, and what only objects hold: see
 * jobs/run/journal/keepsakes.h. */
#include "keepsakes_fixture.h"

#include "faulty_store.h"

/* ---- copies ---- */

static void copy_and_mark(const char *from, const struct ckpt_root *root)
{
	AUTO(checkpoint_list_release) struct ckpt_list list = found_in(from, "hf");
	struct err *err = NULL;

	for (size_t i = 0; i < list.count; i++) {
		checkpoint_copy(&list.items[i], root, NULL, NULL, &err);
		assert_no_error(err);
		mark(root, &list.items[i]);
	}
}

/* A copy counts while its mark holds, and for its own attempt of its own run. */
static void a_copy_beneath_checkpoint_url_counts(void **state)
{
	static const bool in_stores[] = { false, true };
	AUTO(auto_free) char *saved = fs_join(work, "runs/r/train-2/checkpoints");
	AUTO(auto_free) char *copied = fs_join(copies, "r/attempt-2");
	AUTO(auto_free) char *as_store = mem_format("dir:%s", copies);

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(in_stores); i++) {
		AUTO(store_freep) struct store *store = in_stores[i] ? store_at(as_store) : NULL;
		json_auto_t *plan = plan_of(in_stores[i] ? as_store : copies);
		struct ckpt_root root = { .path = in_stores[i] ? "r/attempt-2/" : copied,
					  .attempt = 2,
					  .store = store };

		make_hf(saved, "checkpoint-10", 10);
		make_hf(saved, "checkpoint-20", 20);
		assert_in_folder(plan, NULL,
				 "train-2/checkpoints/checkpoint-20 "
				 "train-2/checkpoints/checkpoint-10 ");
		copy_and_mark(saved, &root);
		assert_in_folder(plan, NULL, "");
		drop(copied, "checkpoint-10/scheduler.pt");
		assert_in_folder(plan, NULL, "train-2/checkpoints/checkpoint-10 ");
		{
			json_auto_t *elsewhere = plan_of(NULL); /* nobody knows of them */

			assert_in_folder(elsewhere, NULL,
					 "train-2/checkpoints/checkpoint-20 "
					 "train-2/checkpoints/checkpoint-10 ");
		}
		drop(copies, "");
		drop(work, "");
	}
	{
		json_auto_t *unknown = plan_of("s3://b/x"); /* it cannot be checked now */

		make_hf(saved, "checkpoint-10", 10);
		assert_in_folder(unknown, NULL, "train-2/checkpoints/checkpoint-10 ");
	}
}

static void what_the_objects_of_the_workspace_hold_has_a_copy(void **state)
{
	AUTO(auto_free) char *saved = fs_join(work, "runs/r/train-2/checkpoints");
	AUTO(store_freep) struct store *twin = store_at(other);
	const struct ckpt_root root = { .path = "runs/r/train-2/checkpoints/",
					.attempt = 2,
					.store = twin };
	json_auto_t *plan = plan_of(NULL);

	(void)state;
	make_hf(saved, "checkpoint-10", 10);
	copy_and_mark(saved, &root);
	make_hf(saved, "checkpoint-20", 20);
	make_hf(work, "runs/r/train-1/checkpoints/checkpoint-10", 10);
	assert_in_folder(plan, twin,
			 "train-1/checkpoints/checkpoint-10 train-2/checkpoints/checkpoint-20 ");
	assert_in_folder(plan, NULL,
			 "train-1/checkpoints/checkpoint-10 train-2/checkpoints/checkpoint-20 "
			 "train-2/checkpoints/checkpoint-10 ");
}

/* Each file of the folder by name and size; a link is not sent. */
static void what_was_sent_to_the_workspace_has_a_copy(void **state)
{
	AUTO(auto_free) char *link = fs_join(work, "runs/r/train-1/node-1/output/link");
	struct faulty_store *twin = faulty_new(other);
	json_auto_t *plan = plan_of(NULL);

	(void)state;
	put_text(work, "runs/r/train-1/node-1/output/a", "1234");
	put_text(work, "runs/r/train-1/node-1/output/sub/b", "12");
	assert_int_equal(symlink("/nowhere", link), 0);
	assert_in_folder(plan, &twin->base, "train-1/node-1/output ");
	put_text(other, "runs/r/outputs/train-1/node-1/a", "1234");
	assert_in_folder(plan, &twin->base, "train-1/node-1/output ");
	put_text(other, "runs/r/outputs/train-1/node-1/sub/b", "123");
	assert_in_folder(plan, &twin->base, "train-1/node-1/output ");
	put_text(other, "runs/r/outputs/train-1/node-1/sub/b", "12");
	assert_in_folder(plan, &twin->base, "");
	/* a list that cannot be had tells of no copy */
	faulty_lose(twin, 0, 1);
	assert_in_folder(plan, &twin->base, "train-1/node-1/output ");
	assert_in_folder(plan, NULL, "train-1/node-1/output ");
	/* those of a later start, in its own folder; not those of node 10 */
	drop(other, "runs");
	put_text(other, "runs/r/outputs/train-1/node-10/a", "1234");
	put_text(other, "runs/r/outputs/train-1/node-1.restart-2/sub/b", "12");
	assert_in_folder(plan, &twin->base, "train-1/node-1/output ");
	put_text(other, "runs/r/outputs/train-1/node-1.restart-2/a", "1234");
	assert_in_folder(plan, &twin->base, "");
	put_text(other, "runs/r/outputs/train-1/node-1", "1234"); /* no folder: no file of it */
	assert_in_folder(plan, &twin->base, "");
	faulty_free(&twin->base);
}

/* ---- among objects ---- */

static void make_objects(struct store *store)
{
	AUTO(auto_free) char *saved = fs_join(dir, "saved");
	const struct ckpt_root root = { .path = "runs/r/train-12/checkpoints/",
					.attempt = 12,
					.store = store };

	make_hf(saved, "checkpoint-10", 10);
	make_hf(saved, "checkpoint-20", 20);
	copy_and_mark(saved, &root);
}

static json_t *in_store(const json_t *plan, struct store *store)
{
	json_t *kept = json_array();
	struct err *err = NULL;
	int result = keepsakes_in_store(plan, store, "r", kept, &err);

	assert_no_error(err);
	assert_int_equal(result, 0);
	return kept;
}

static void objects_of_a_mark_are_a_checkpoint(void **state)
{
	AUTO(store_freep) struct store *store = store_at(work);
	json_auto_t *plan = plan_of(NULL);
	json_auto_t *kept = NULL;
	AUTO(auto_free) char *url = fs_join(work, "runs/r/train-12/checkpoints/checkpoint-10");
	const json_t *one, *keys;
	uint64_t files, bytes;
	struct err *err = NULL;

	(void)state;
	make_objects(store);
	drop(work, "runs/r/train-12/checkpoints/checkpoint-20/scheduler.pt");
	put_text(work, "runs/r/train-x/checkpoints/marks/checkpoint-1" MARK_SUFFIX, "{}");
	fs_measure(url, &files, &bytes, &err);
	assert_no_error(err);
	kept = in_store(plan, store);
	assert_int_equal(json_array_size(kept), 1);
	one = json_array_get(kept, 0);
	keys = json_object_get(one, "keys");
	assert_string_equal(js_str(one, "what"), "checkpoint");
	assert_contains(js_str(one, "url"), url);
	assert_int_equal(js_int(one, "step", -1), 10);
	assert_int_equal(js_int(one, "files", -1), files);
	assert_int_equal(js_int(one, "size_bytes", -1), bytes);
	assert_int_equal(json_array_size(keys), 2);
	assert_string_equal(json_string_value(json_array_get(keys, 0)),
			    "train-12/checkpoints/checkpoint-10");
	assert_string_equal(json_string_value(json_array_get(keys, 1)),
			    "train-12/checkpoints/marks/checkpoint-10" MARK_SUFFIX);
}

static void objects_with_a_copy_are_none(void **state)
{
	AUTO(store_freep) struct store *store = store_at(work);
	AUTO(auto_free) char *copied = fs_join(copies, "r/attempt-12");
	AUTO(auto_free) char *saved = fs_join(dir, "saved");
	json_auto_t *plan = plan_of(copies);
	json_auto_t *kept = NULL;

	(void)state;
	make_objects(store);
	copy_and_mark(saved, &(struct ckpt_root){ .path = copied, .attempt = 12 });
	drop(copied, "checkpoint-20/scheduler.pt");
	kept = in_store(plan, store);
	assert_int_equal(json_array_size(kept), 1);
	assert_int_equal(js_int(json_array_get(kept, 0), "step", -1), 20);
}

/* Each attempt is looked at, whatever the others have. */
static void all_attempts_are_looked_at(void **state)
{
	AUTO(store_freep) struct store *store = store_at(work);
	AUTO(auto_free) char *saved = fs_join(dir, "saved");
	json_auto_t *plan = plan_of(NULL);
	json_auto_t *kept = NULL;

	(void)state;
	make_objects(store); /* of attempt 12 */
	for (int64_t attempt = 11; attempt <= 14; attempt++) {
		AUTO(auto_free)
		char *prefix = mem_format("runs/r/train-%d/checkpoints/", (int)attempt);

		if (attempt != 12)
			copy_and_mark(saved, &(struct ckpt_root){ .path = prefix,
								  .attempt = attempt,
								  .store = store });
	}
	put_text(work, "runs/r/train-0/x", "1");
	put_text(work, "runs/r/train-13/log", "1");
	kept = in_store(plan, store);
	assert_int_equal(json_array_size(kept), 8);
}

static void outputs_are_told_by_attempt(void **state)
{
	AUTO(store_freep) struct store *store = store_at(work);
	AUTO(auto_free) char *url = mem_format("%s/runs/r/outputs/train-1", store_url(store));
	json_auto_t *plan = plan_of(NULL);
	json_auto_t *kept = NULL;
	AUTO(auto_free) char *keys = NULL;
	const json_t *one;

	(void)state;
	put_text(work, "runs/r/outputs/train-1/node-0/a", "1");
	put_text(work, "runs/r/outputs/train-1/node-1/b", "12");
	put_text(work, "runs/r/outputs/train-2/c", "123");
	put_text(work, "runs/r/outputs/one", "1234");
	put_text(work, "runs/r/train-1/log", "1");
	put_text(work, "runs/rr/outputs/train-1/log", "1");
	kept = in_store(plan, store);
	keys = keys_of(kept);
	assert_contains(keys, "outputs/train-1 ");
	assert_contains(keys, "outputs/train-2 ");
	assert_contains(keys, "outputs/one ");
	assert_int_equal(json_array_size(kept), 3);
	for (size_t i = 0; i < 3; i++) {
		one = json_array_get(kept, i);
		assert_string_equal(js_str(one, "what"), "output");
		if (js_int(one, "files", -1) == 1)
			continue;
		assert_int_equal(js_int(one, "files", -1), 2);
		assert_int_equal(js_int(one, "size_bytes", -1), 3);
		assert_string_equal(js_str(one, "url"), url);
	}
}

/* If the service stops to answer anywhere, its words are not taken for all that there is. */
static void a_service_that_does_not_answer_has_told_nothing(void **state)
{
	struct faulty_store *store = faulty_new(work);
	json_auto_t *plan = plan_of(NULL);
	int after = 0;

	(void)state;
	make_objects(store->real);
	put_text(work, "runs/r/outputs/train-1/a", "1");
	for (;; after++) {
		json_auto_t *kept = json_array();
		AUTO(err_freep) struct err *err = NULL;
		int lost = store->calls_lost, result;

		faulty_lose(store, after, 1);
		result = keepsakes_in_store(plan, &store->base, "r", kept, &err);
		if (store->calls_lost == lost) {
			store->calls_to_lose = 0;
			assert_int_equal(result, 0);
			assert_int_equal(json_array_size(kept), 3);
			break;
		}
		assert_int_equal(result, -1);
		assert_contains(err->message, "the network is gone");
	}
	assert_true(after >= 5);
	faulty_free(&store->base);
}

/* ---- copies by key ---- */

static void a_key_is_kept_in_it_or_above_it(void **state)
{
	json_auto_t *kept =
		json_pack("[{s:[s,s]},{s:[s]}]", "keys", "a/b", "a/b.mark", "keys", "c/dd/e");
	static const struct {
		const char *key;
		enum keepsake_is is;
	} rows[] = {
		{ "a/b", KEEPSAKE_IS },        { "a/b/x", KEEPSAKE_IS },
		{ "a/b.mark", KEEPSAKE_IS },   { "a/b.mark2", KEEPSAKE_NOT },
		{ "a/bc", KEEPSAKE_NOT },      { "a", KEEPSAKE_ABOVE },
		{ "c", KEEPSAKE_ABOVE },       { "c/dd", KEEPSAKE_ABOVE },
		{ "c/d", KEEPSAKE_NOT },       { "c/dd/e", KEEPSAKE_IS },
		{ "c/dd/e/f/g", KEEPSAKE_IS }, { "x", KEEPSAKE_NOT },
		{ "b", KEEPSAKE_NOT },         { "c/dd/f", KEEPSAKE_NOT },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		if (keepsakes_have(kept, rows[i].key) != rows[i].is)
			fail_msg("%s", rows[i].key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF(a_copy_beneath_checkpoint_url_counts),
		OF(what_the_objects_of_the_workspace_hold_has_a_copy),
		OF(what_was_sent_to_the_workspace_has_a_copy),
		OF(objects_of_a_mark_are_a_checkpoint),
		OF(objects_with_a_copy_are_none),
		OF(all_attempts_are_looked_at),
		OF(outputs_are_told_by_attempt),
		OF(a_service_that_does_not_answer_has_told_nothing),
		OF(a_key_is_kept_in_it_or_above_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
