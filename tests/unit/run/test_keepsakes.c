/* Which data in the folders of a run is worth keeping: see jobs/run/journal/keepsakes.h. */
#include "keepsakes_fixture.h"

#include <errno.h>

/* ---- folders ---- */

static void attempts_are_folders_with_a_number(void **state)
{
	static const char *const not_kept[] = {
		"train--1", "train-0", "train-", "train-1a", "train-1.5", "trainer-1", "attempt-1",
	};
	json_auto_t *plan = plan_of(NULL);

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(not_kept); i++) {
		AUTO(auto_free) char *path = mem_format("runs/r/%s/output/x", not_kept[i]);

		put_text(work, path, "1");
	}
	put_text(work, "runs/r/train-2", "no folder");
	put_text(work, "runs/r/train-08/output/x", "1");
	put_text(work, "runs/r/train-19/output/x", "1");
	put_text(work, "runs/r/train-19/node-1/output/x", "1");
	put_text(work, "runs/r/train-19/node-10/output/x", "1");
	put_text(work, "runs/r/train-19/node-2/output/x", "1");
	put_text(work, "runs/r/train-19/nodes/output/x", "1");
	put_text(work, "runs/r/train-3/output/sub/x", "1");
	put_text(work, "runs/r/train-4/output", "no folder");
	put_text(work, "runs/r/train-4/checkpoints", "no folder");
	put_text(work, "runs/s/train-1/output/x", "1");
	assert_in_folder(plan, NULL,
			 "train-08/output train-3/output train-19/output train-19/node-1/output "
			 "train-19/node-2/output train-19/node-10/output ");
}

static void where_there_is_nothing_nothing_is_kept(void **state)
{
	json_auto_t *plan = plan_of(NULL);
	AUTO(auto_free) char *empty = fs_join(work, "runs/r/train-1/output/sub");
	AUTO(auto_free) char *outputs = fs_join(work, "runs/r/outputs/train-1");
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	assert_in_folder(plan, NULL, ""); /* no folder of the run */
	assert_int_equal(fs_mkdirs(empty, &err), 0);
	assert_int_equal(fs_mkdirs(outputs, &err), 0);
	assert_in_folder(plan, NULL, "");
	drop(work, "runs/r");
	put_text(work, "runs/r", "no folder");
	assert_in_folder(plan, NULL, "");
}

static void no_link_is_followed(void **state)
{
	static const char *const links[] = { "runs/r/train-1", "runs/r/train-2/output",
					     "runs/r/train-2/checkpoints", "runs/r/train-2/node-1",
					     "runs/r/outputs" };
	json_auto_t *plan = plan_of(NULL);

	(void)state;
	put_text(other, "output/x", "1");
	put_text(other, "train-1/x", "1");
	make_hf(other, "checkpoint-10", 10);
	put_text(work, "runs/r/train-2/x", "1");
	for (size_t i = 0; i < STK_LENGTH(links); i++) {
		AUTO(auto_free) char *path = fs_join(work, links[i]);

		assert_int_equal(symlink(other, path), 0);
	}
	assert_in_folder(plan, NULL, "");
	/* nor one among the outputs of a workspace */
	drop(work, "runs/r/outputs");
	put_text(work, "runs/r/outputs/train-2/node-0/x", "1");
	{
		AUTO(auto_free) char *path = fs_join(work, "runs/r/outputs/train-3");

		assert_int_equal(symlink(other, path), 0);
	}
	put_text(work, "runs/r/outputs/.part/x", "1");
	put_text(work, "runs/r/outputs/file", "1");
	assert_in_folder(plan, NULL, "outputs/train-2 ");
}

static void an_output_is_told_with_its_files(void **state)
{
	json_auto_t *plan = plan_of(NULL);
	json_auto_t *kept = NULL;
	AUTO(auto_free) char *url = fs_join(work, "runs/r/train-1/output");
	const json_t *one;

	(void)state;
	put_text(work, "runs/r/train-1/output/a", "123");
	put_text(work, "runs/r/train-1/output/b/c", "12345");
	put_text(work, "runs/r/outputs/train-7/d", "1");
	kept = in_folder(plan, NULL);
	assert_int_equal(json_array_size(kept), 2);
	one = json_array_get(kept, 0);
	assert_string_equal(js_str(one, "what"), "output");
	assert_string_equal(js_str(one, "url"), url);
	assert_int_equal(js_int(one, "files", -1), 2);
	assert_int_equal(js_int(one, "size_bytes", -1), 8);
	assert_null(json_object_get(one, "step"));
	assert_int_equal(json_array_size(json_object_get(one, "keys")), 1);
	assert_true(js_is(json_array_get(kept, 1), "what", "output"));
}

static void a_checkpoint_is_told_with_its_mark(void **state)
{
	AUTO(auto_free) char *saved = fs_join(work, "runs/r/train-3/checkpoints");
	AUTO(auto_free) char *url = fs_join(saved, "checkpoint-10");
	json_auto_t *plan = plan_of(NULL);
	json_auto_t *kept = NULL;
	const json_t *one, *keys;
	uint64_t files, bytes;
	struct err *err = NULL;

	(void)state;
	make_hf(saved, "checkpoint-10", 10);
	put_text(saved, "checkpoint-20/trainer_state.json", "{"); /* incomplete */
	fs_measure(url, &files, &bytes, &err);
	assert_no_error(err);
	kept = in_folder(plan, NULL);
	assert_int_equal(json_array_size(kept), 1);
	one = json_array_get(kept, 0);
	keys = json_object_get(one, "keys");
	assert_string_equal(js_str(one, "what"), "checkpoint");
	assert_string_equal(js_str(one, "url"), url);
	assert_int_equal(js_int(one, "step", -1), 10);
	assert_int_equal(js_int(one, "files", -1), files);
	assert_int_equal(js_int(one, "size_bytes", -1), bytes);
	assert_int_equal(json_array_size(keys), 2);
	assert_string_equal(json_string_value(json_array_get(keys, 0)),
			    "train-3/checkpoints/checkpoint-10");
	assert_string_equal(json_string_value(json_array_get(keys, 1)),
			    "train-3/checkpoints/checkpoint-10" MARK_SUFFIX);
}

/* The kind is told by its content if the plan has none, or an unknown one. */
static void any_kind_of_checkpoint_is_kept(void **state)
{
	static const char *const plans[] = { "{}", "{\"checkpoint\":{}}",
					     "{\"checkpoint\":{\"kind\":\"no-such\"}}",
					     "{\"checkpoint\":{\"kind\":\"nxd\"}}" };
	AUTO(auto_free) char *saved = fs_join(work, "runs/r/train-1/checkpoints");

	(void)state;
	make_nxd(saved, "step_10", 10);
	for (size_t i = 0; i < STK_LENGTH(plans); i++) {
		struct err *err = NULL;
		json_auto_t *plan = NULL;

		js_parse(plans[i], strlen(plans[i]), "a plan", &plan, &err);
		assert_no_error(err);
		assert_in_folder(plan, NULL, "train-1/checkpoints/step_10 ");
	}
	{
		json_auto_t *plan = plan_of(NULL); /* it is of this kind and no other */

		assert_in_folder(plan, NULL, "");
	}
}

/* The pointer beside it names another one: then its mark proves it, as long as it holds. */
static void a_mark_proves_a_checkpoint_while_it_holds(void **state)
{
	AUTO(auto_free) char *saved = fs_join(work, "runs/r/train-1/checkpoints");
	const struct ckpt_root root = { .path = saved, .attempt = 1 };
	json_auto_t *plan = json_pack("{s:{s:s}}", "checkpoint", "kind", "deepspeed");

	(void)state;
	make_deepspeed(saved, "global_step10", 10);
	{
		AUTO(checkpoint_list_release)
		struct ckpt_list list = found_in(saved, "deepspeed");

		assert_int_equal(list.count, 1);
		mark(&root, &list.items[0]);
	}
	put_text(saved, "latest", "global_step5");
	assert_partial(saved, "deepspeed", "global_step10", "latest");
	assert_in_folder(plan, NULL, "train-1/checkpoints/global_step10 ");
	drop(saved, "global_step10/mp_rank_00_model_states.pt");
	assert_in_folder(plan, NULL, "");
	drop(saved, "global_step10" MARK_SUFFIX);
	assert_in_folder(plan, NULL, "");
}

/* ---- paths that are too long to be looked at ---- */

#define PATH_LEN 4096 /* with the NUL */

/* A root whose folder of the run has a path of `len` bytes. The caller frees it. */
static char *root_so_long(size_t len)
{
	struct sb root = SB_INIT;
	AUTO(auto_free) char *folder = NULL;
	struct err *err = NULL;

	sb_adds(&root, work);
	while (root.len + strlen("/runs/r") < len) {
		size_t left = len - root.len - strlen("/runs/r");

		sb_addc(&root, '/');
		for (size_t i = 1; i < left && i < (left > 204 || left <= 201 ? 201 : 100); i++)
			sb_addc(&root, 'd');
	}
	folder = mem_format("%s/runs/r", root.text);
	assert_int_equal(strlen(folder), len);
	fs_mkdirs(folder, &err);
	assert_no_error(err);
	return sb_take(&root);
}

static void make_below(const char *folder, const char *name)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(mkdirat(fd, name, 0700), 0);
	close(fd);
}

static void remove_below(const char *folder, const char *name)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(unlinkat(fd, name, AT_REMOVEDIR), 0);
	close(fd);
}

static void assert_unseen(const char *root, const char *words)
{
	json_auto_t *plan = plan_of(NULL);
	json_auto_t *kept = json_array();
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(keepsakes_in_folder(plan, root, "r", NULL, kept, &err), -1);
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_int_equal(err->os_errno, ENAMETOOLONG);
	assert_contains(err->message, words);
}

static void what_cannot_be_looked_at_is_an_error(void **state)
{
	static const struct {
		size_t behind; /* bytes that fit behind the folder of the run */
		const char *name, *words;
	} rows[] = {
		{ 4, "train-1", "cannot look at '" },
		{ 4, NULL, "cannot look at '" },       /* outputs/ */
		{ 10, "train-1", "cannot look at '" }, /* its checkpoints/ */
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *root = root_so_long(PATH_LEN - 1 - rows[i].behind);
		AUTO(auto_free) char *folder = mem_format("%s/runs/r", root);

		if (rows[i].name)
			make_below(folder, rows[i].name);
		assert_unseen(root, rows[i].words);
		if (rows[i].name)
			remove_below(folder, rows[i].name);
		drop(work, "");
	}
	{
		AUTO(auto_free) char *loop = fs_join(dir, "loop");
		json_auto_t *plan = plan_of(NULL);
		json_auto_t *kept = json_array();
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(symlink(loop, loop), 0);
		assert_int_equal(keepsakes_in_folder(plan, loop, "r", NULL, kept, &err), -1);
		assert_contains(err->message, "cannot list '");
		assert_int_equal(err->os_errno, ELOOP);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF(attempts_are_folders_with_a_number),
		OF(where_there_is_nothing_nothing_is_kept),
		OF(no_link_is_followed),
		OF(an_output_is_told_with_its_files),
		OF(a_checkpoint_is_told_with_its_mark),
		OF(any_kind_of_checkpoint_is_kept),
		OF(a_mark_proves_a_checkpoint_while_it_holds),
		OF(what_cannot_be_looked_at_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
