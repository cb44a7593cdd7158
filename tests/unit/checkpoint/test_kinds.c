/* Each kind of checkpoint: complete, partial, garbage. */
#include "tests/unit/checkpoint/trees.h"

#define GARBAGE 64

static void complete_ones_are_found_newest_first_by_their_kind_and_by_auto(void **state)
{
	for (size_t m = 0; m < STK_LENGTH(makers); m++) {
		AUTO(auto_free) char *root = mem_format("%s/%zu", (char *)*state, m);
		static const char *const asked[] = { NULL, "auto" };

		make_all(&makers[m], root, 3);
		for (size_t a = 0; a < STK_LENGTH(asked); a++) {
			AUTO(checkpoint_list_release)
			struct ckpt_list list =
				found_in(root, asked[a] ? asked[a] : makers[m].kind);

			assert_int_equal(list.count, 3);
			for (size_t i = 0; i < 3; i++) {
				const struct ckpt *c = &list.items[i];

				if (!c->complete)
					fail_msg("%s: %s", c->path, c->why);
				assert_string_equal(c->name, makers[m].names[2 - i]);
				assert_string_equal(checkpoint_kind_name(c->kind), makers[m].kind);
				assert_int_equal(c->step, 10 * (3 - (int)i));
				assert_null(c->why);
			}
		}
	}
}

/* Calls `fn` for each file of the newest of three, and asks afterwards that the
 * second newest is the newest complete one. */
static void for_each_file(const char *base, void (*damage)(const char *folder, const char *path))
{
	for (size_t m = 0; m < STK_LENGTH(makers); m++) {
		AUTO(auto_free) char *root = mem_format("%s/%zu", base, m);
		AUTO(auto_free) char *newest = mem_format("%s/%s", root, makers[m].names[2]);
		AUTO(checkpoint_tree_release) struct checkpoint_tree tree = TREE_INIT;
		AUTO(err_freep) struct err *err = NULL;

		make_all(&makers[m], root, 3);
		assert_int_equal(checkpoint_tree_read(newest, &tree, &err), 1);
		for (size_t i = 0; i < tree.count; i++) {
			AUTO(sb_release) struct sb whole = get_bytes(newest, tree.files[i].path);

			damage(newest, tree.files[i].path);
			assert_newest(root, makers[m].kind, makers[m].names[1]);
			assert_newest(root, "auto", makers[m].names[1]);
			put_bytes(newest, tree.files[i].path, whole.text, whole.len);
		}
		assert_newest(root, makers[m].kind, makers[m].names[2]);
	}
}

static void remove_it(const char *folder, const char *path)
{
	drop(folder, path);
}

static void with_any_file_missing_the_one_before_is_newest(void **state)
{
	for_each_file(*state, remove_it);
}

/* Markers say all by being there. */
static bool says_nothing(const char *path)
{
	static const char *const names[] = { "done", "checkpoint", "commit_success.txt" };

	for (size_t i = 0; i < STK_LENGTH(names); i++)
		if (strcmp(fs_basename(path), names[i]) == 0)
			return true;
	/* Orbax names its data by chance, and describes them in compressed form. */
	return strstr(path, "/d/") != NULL;
}

static void truncate_it(const char *folder, const char *path)
{
	AUTO(sb_release) struct sb whole = get_bytes(folder, path);

	if (says_nothing(path))
		drop(folder, path);
	else
		put_bytes(folder, path, whole.text, whole.len - 1);
}

static void empty_it(const char *folder, const char *path)
{
	if (says_nothing(path))
		drop(folder, path);
	else
		put_bytes(folder, path, "", 0);
}

static void halve_it(const char *folder, const char *path)
{
	AUTO(sb_release) struct sb whole = get_bytes(folder, path);

	if (says_nothing(path))
		drop(folder, path);
	else
		put_bytes(folder, path, whole.text, whole.len / 2);
}

static void with_any_file_cut_off_the_one_before_is_newest(void **state)
{
	for_each_file(*state, truncate_it);
	for_each_file(*state, halve_it);
	for_each_file(*state, empty_it);
}

static void garble_it(const char *folder, const char *path)
{
	AUTO(sb_release) struct sb whole = get_bytes(folder, path);

	if (says_nothing(path)) {
		drop(folder, path);
		return;
	}
	for (size_t i = 0; i < whole.len && i < GARBAGE; i++)
		whole.text[i] = (char)(0xa5 ^ (i * 31));
	put_bytes(folder, path, whole.text, whole.len);
}

static void with_garbage_in_any_header_the_one_before_is_newest(void **state)
{
	for_each_file(*state, garble_it);
}

static void with_half_of_its_files_missing_not_even_a_first_one_is_complete(void **state)
{
	for (size_t m = 0; m < STK_LENGTH(makers); m++)
		for (size_t odd = 0; odd < 2; odd++) {
			AUTO(auto_free)
			char *root = mem_format("%s/%zu-%zu", (char *)*state, m, odd);
			AUTO(auto_free) char *only = mem_format("%s/%s", root, makers[m].names[0]);
			AUTO(checkpoint_tree_release) struct checkpoint_tree tree = TREE_INIT;
			AUTO(err_freep) struct err *err = NULL;

			make_all(&makers[m], root, 1);
			assert_newest(root, "auto", makers[m].names[0]);
			assert_int_equal(checkpoint_tree_read(only, &tree, &err), 1);
			for (size_t i = odd; i < tree.count; i += 2)
				drop(only, tree.files[i].path);
			assert_newest(root, makers[m].kind, NULL);
		}
}

static void what_the_quickstart_writes_counts_only_with_its_meta_file(void **state)
{
	const char *root = *state;

	make_files(root, "step-00000005", 5);
	assert_newest(root, "auto", "step-00000005");
	drop(root, "step-00000005/meta.json");
	assert_partial(root, "auto", "step-00000005", "meta.json");
	put_text(root, "step-00000005/meta.json", "{\"step\": 5, \"state_bytes\": 7}");
	assert_partial(root, "files", "step-00000005", "'state.npz' has not the size");
	put_text(root, "step-00000005/meta.json", "{\"step\": 5, \"sta");
	assert_partial(root, "files", "step-00000005", "'meta.json' is not whole JSON");
	make_files(root, "step-00000005", 5);
	put_text(root, "step-00000005/state.npz.tmp", "x");
	assert_partial(root, "files", "step-00000005", "still being written");
}

static void single_files_are_checkpoints_of_kind_files(void **state)
{
	const char *root = *state;

	put_sb(root, "model_100.pt", torch_file());
	put_sb(root, "epoch=7-step=200.ckpt", torch_file());
	put_sb(root, "step-250-loss-0.75.safetensors", safetensors_file());
	put_text(root, "log-900.txt", "no checkpoint");
	put_text(root, "events.out.tfevents.1700000000", "no checkpoint");
	assert_newest(root, "auto", "step-250-loss-0.75.safetensors");
	put_text(root, "step-300.pt", "garbage that is no zip");
	put_bytes(root, "step-301.pt", "", 0);
	assert_newest(root, "auto", "step-250-loss-0.75.safetensors");
	assert_partial(root, "files", "step-300.pt", "torch.save");
	assert_partial(root, "files", "step-301.pt", "holds nothing");
}

static void names_without_a_step_and_unfinished_names_are_no_candidates(void **state)
{
	static const char *const names[] = { "last",
					     ".hidden-10",
					     "tmp-checkpoint-10",
					     "step-10.tmp",
					     "10.orbax-checkpoint-tmp-1700000000",
					     "step-1234567890123456789" };
	AUTO(checkpoint_list_release) struct ckpt_list list = { 0 };

	for (size_t i = 0; i < STK_LENGTH(names); i++)
		make_files(*state, names[i], 10);
	put_text(*state, "step-00000010.stoker.json", "{}");
	list = found_in(*state, "auto");
	assert_int_equal(list.count, 0);
}

static void the_trainers_step_must_be_that_of_the_folder(void **state)
{
	make_hf(*state, "checkpoint-40", 40);
	assert_newest(*state, "auto", "checkpoint-40");
	put_text(*state, "checkpoint-40/trainer_state.json", "{\"global_step\": 30}");
	assert_partial(*state, "hf", "checkpoint-40", "is of step 30");
	put_text(*state, "checkpoint-40/trainer_state.json", "{\"epoch\": 1.0}");
	assert_partial(*state, "hf", "checkpoint-40", "global_step");
	drop(*state, "checkpoint-40/trainer_state.json");
	assert_partial(*state, "auto", "checkpoint-40", "written last");
}

static void what_accelerate_writes_under_the_trainers_names_is_of_kind_files(void **state)
{
	AUTO(checkpoint_list_release) struct ckpt_list list = { 0 };

	put_sb(*state, "checkpoint-7/model.safetensors", safetensors_file());
	put_sb(*state, "checkpoint-7/optimizer.bin", torch_file());
	put_sb(*state, "checkpoint-7/random_states_0.pkl", torch_file());
	list = found_in(*state, "auto");
	assert_int_equal(list.count, 1);
	assert_string_equal(checkpoint_kind_name(list.items[0].kind), "files");
	assert_true(list.items[0].complete);
}

static void deepspeed_and_torch_shards_beneath_the_trainer_are_proved_too(void **state)
{
	AUTO(auto_free) char *inner = fs_join(*state, "checkpoint-40");

	make_hf(*state, "checkpoint-40", 40);
	make_deepspeed(inner, "global_step40", 40);
	assert_newest(*state, "auto", "checkpoint-40");
	drop(inner, "latest");
	assert_partial(*state, "auto", "checkpoint-40", "'latest'");
	put_text(inner, "latest", "global_step41\n");
	assert_partial(*state, "auto", "checkpoint-40", "global_step41");
	put_text(inner, "latest", "global_step40\n");
	drop(inner, "global_step40/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt");
	assert_partial(*state, "auto", "checkpoint-40", "ranks are missing");
	make_deepspeed(inner, "global_step40", 40);
	make_dcp(inner, "pytorch_model_fsdp_0", 0);
	assert_newest(*state, "auto", "checkpoint-40");
	drop(inner, "pytorch_model_fsdp_0/.metadata");
	assert_partial(*state, "auto", "checkpoint-40", "pytorch_model_fsdp_0/.metadata");
}

static void a_pointer_to_an_older_step_leaves_the_newer_one_unfinished(void **state)
{
	AUTO(auto_free) char *mega = fs_join(*state, "m");
	AUTO(auto_free) char *deep = fs_join(*state, "d");

	make_all(&makers[5], mega, 3);
	put_text(mega, "latest_checkpointed_iteration.txt", "20\n");
	assert_newest(mega, "auto", "iter_0000020");
	assert_partial(mega, "megatron", "iter_0000030", "names step 20 only");
	put_text(mega, "latest_checkpointed_iteration.txt", "release");
	assert_newest(mega, "auto", NULL);
	make_all(&makers[7], deep, 3);
	put_text(deep, "latest", "global_step20");
	assert_newest(deep, "auto", "global_step20");
	drop(deep, "latest");
	assert_newest(deep, "deepspeed", NULL);
}

static void metadata_of_torch_shards_still_being_renamed_count_as_unfinished(void **state)
{
	make_dcp(*state, "step-5", 5);
	put_text(*state, "step-5/.metadata.tmp", "x");
	assert_partial(*state, "auto", "step-5", "still being written");
	drop(*state, "step-5/.metadata.tmp");
	assert_newest(*state, "auto", "step-5");
	drop(*state, "step-5/.metadata");
	put_sb(*state, "step-5/__0.metadata", metadata_file("__0_0.distcp"));
	put_sb(*state, "step-5/__1.metadata", metadata_file("__1_0.distcp"));
	assert_newest(*state, "auto", "step-5");
	drop(*state, "step-5/__0.metadata");
	assert_partial(*state, "auto", "step-5", "ranks are missing");
}

static void orbax_counts_when_it_is_committed(void **state)
{
	make_orbax(*state, "10", 10);
	put_text(*state, "10/_CHECKPOINT_METADATA",
		 "{\"item_handlers\": {\"default\": \"x\"}, \"init_timestamp_nsecs\": 5, "
		 "\"commit_timestamp_nsecs\": null}");
	assert_partial(*state, "auto", "10", "not committed");
	make_orbax(*state, "10", 10);
	drop(*state, "10/_CHECKPOINT_METADATA");
	drop(*state, "10/commit_success.txt");
	assert_partial(*state, "auto", "10", "no marker");
	make_orbax(*state, "10", 10);
	drop(*state, "10/default");
	assert_partial(*state, "auto", "10", "'default/' is missing");
	make_orbax(*state, "10", 10);
	drop(*state, "10/default/ocdbt.process_0/d");
	assert_partial(*state, "auto", "10", "ocdbt.process_0/d/");
	make_orbax(*state, "10", 10);
	drop(*state, "10/default/manifest.ocdbt");
	assert_partial(*state, "auto", "10", "manifest.ocdbt");
}

static void numbered_shards_need_all_their_siblings(void **state)
{
	put_text(*state, "step-1/model.ckpt.data-00000-of-00002", "abc");
	put_text(*state, "step-1/model.ckpt.data-00001-of-00002", "abc");
	assert_newest(*state, "files", "step-1");
	drop(*state, "step-1/model.ckpt.data-00000-of-00002");
	assert_partial(*state, "files", "step-1", "-of-00002");
	put_text(*state, "step-2/part-00003-of-99999", "abc");
	assert_partial(*state, "files", "step-2", "part-00002-of-99999");
}

static void what_all_older_ones_have_is_demanded_and_no_more(void **state)
{
	for (int step = 1; step <= 3; step++) {
		AUTO(auto_free) char *raw = mem_format("step-%d/weights.raw", step);
		AUTO(auto_free) char *lone = mem_format("step-%d/a-%d.raw", step, step);

		put_text(*state, raw, "0123456789");
		put_text(*state, lone, "0123456789");
	}
	put_text(*state, "step-1/best.raw", "now and then");
	/* One checkpoint is lost by the file; the next is not. */
	assert_partial(*state, "files", "step-2", "best.raw");
	assert_newest(*state, "files", "step-3");
	put_text(*state, "step-3/weights.raw", "012345678");
	assert_partial(*state, "files", "step-3", "'weights.raw' is cut off");
	put_text(*state, "step-1/weights.raw", "0123456789abc");
	assert_newest(*state, "files", "step-3");
	put_text(*state, "step-3/weights.raw", "0123");
	assert_partial(*state, "files", "step-3", "'weights.raw' is cut off");
	drop(*state, "step-3/a-3.raw");
	assert_partial(*state, "files", "step-3", "a-2.raw");
}

static void files_and_folders_side_by_side_do_not_judge_each_other(void **state)
{
	put_sb(*state, "model_100.pt", torch_file());
	make_files(*state, "step-00000110", 110);
	put_sb(*state, "model_120.pt", torch_file());
	put_sb(*state, "best-130/model.pt", torch_file());
	put_sb(*state, "best-130/extra.pt", torch_file());
	assert_newest(*state, "auto", "best-130");
	make_files(*state, "step-00000140", 140);
	assert_newest(*state, "auto", "step-00000140");
	make_files(*state, "step-00000150", 150);
	put_text(*state, "step-00000140/extra.raw", "x");
	assert_newest(*state, "auto", "step-00000150");
	put_text(*state, "step-00000110/extra.raw", "x");
	assert_partial(*state, "auto", "step-00000150", "extra.raw");
}

static void numbered_logs_and_tables_are_no_checkpoints_to_auto(void **state)
{
	AUTO(checkpoint_list_release) struct ckpt_list list = { 0 };

	put_text(*state, "logs_20261121/events.txt", "x");
	put_text(*state, "run-20261121_101010/output.log", "x");
	put_sb(*state, "tokens-2026.npy", npy_file(4));
	list = found_in(*state, "auto");
	assert_int_equal(list.count, 0);
	put_sb(*state, "hourly-7/params.npz", npz_file());
	assert_newest(*state, "auto", "hourly-7");
	assert_newest(*state, "files", "logs_20261121");
}

static void the_step_in_a_name_is_no_loss_and_no_epoch_where_it_can_be_told(void **state)
{
	static const struct {
		const char *name;
		int64_t step;
	} table[] = {
		{ "epoch=3-step=1000.ckpt", 1000 },  { "step=1000-epoch=3.ckpt", 1000 },
		{ "epoch=4-val_loss=0.25.ckpt", 4 }, { "model-12-0.875.pt", 12 },
		{ "ckpt_000123.npz", 123 },          { "Iteration_77.safetensors", 77 },
		{ "model-global_step_5.h5", 5 },     { "steps-8.pth", 8 },
	};

	for (size_t i = 0; i < STK_LENGTH(table); i++) {
		AUTO(auto_free) char *root = mem_format("%s/%zu", (char *)*state, i);
		AUTO(checkpoint_list_release) struct ckpt_list list = { 0 };

		put_text(root, table[i].name, "x");
		list = found_in(root, "auto");
		assert_int_equal(list.count, 1);
		if (list.items[0].step != table[i].step)
			fail_msg("'%s' is taken for step %lld", table[i].name,
				 (long long)list.items[0].step);
	}
}

static void a_root_that_is_not_there_holds_none(void **state)
{
	AUTO(auto_free) char *root = fs_join(*state, "nowhere/at/all");
	AUTO(checkpoint_list_release) struct ckpt_list list = found_in(root, "auto");

	assert_int_equal(list.count, 0);
}

static void one_checkpoint_can_be_asked_about(void **state)
{
	AUTO(auto_free) char *good = fs_join(*state, "step-00000010");
	AUTO(auto_free) char *gone = fs_join(*state, "step-00000020");
	AUTO(checkpoint_release) struct ckpt ckpt = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	make_files(*state, "step-00000010", 10);
	assert_int_equal(checkpoint_prove(good, checkpoint_kind_find("auto"), &ckpt, &err), 0);
	assert_true(ckpt.complete);
	assert_string_equal(ckpt.path, good);
	checkpoint_release(&ckpt);
	assert_int_equal(checkpoint_prove(gone, checkpoint_kind_find("auto"), &ckpt, &err), 0);
	assert_false(ckpt.complete);
	assert_contains(ckpt.why, "gone");
}

static void every_row_of_the_table_can_be_found(void **state)
{
	static const char *const names[] = { "files", "hf",       "nxd",       "dcp",
					     "orbax", "megatron", "deepspeed", "auto" };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(names); i++)
		assert_non_null(checkpoint_kind_find(names[i]));
	assert_null(checkpoint_kind_find("pickle"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_scratch(complete_ones_are_found_newest_first_by_their_kind_and_by_auto),
		test_in_scratch(with_any_file_missing_the_one_before_is_newest),
		test_in_scratch(with_any_file_cut_off_the_one_before_is_newest),
		test_in_scratch(with_garbage_in_any_header_the_one_before_is_newest),
		test_in_scratch(with_half_of_its_files_missing_not_even_a_first_one_is_complete),
		test_in_scratch(what_the_quickstart_writes_counts_only_with_its_meta_file),
		test_in_scratch(single_files_are_checkpoints_of_kind_files),
		test_in_scratch(names_without_a_step_and_unfinished_names_are_no_candidates),
		test_in_scratch(the_trainers_step_must_be_that_of_the_folder),
		test_in_scratch(what_accelerate_writes_under_the_trainers_names_is_of_kind_files),
		test_in_scratch(deepspeed_and_torch_shards_beneath_the_trainer_are_proved_too),
		test_in_scratch(a_pointer_to_an_older_step_leaves_the_newer_one_unfinished),
		test_in_scratch(metadata_of_torch_shards_still_being_renamed_count_as_unfinished),
		test_in_scratch(orbax_counts_when_it_is_committed),
		test_in_scratch(numbered_shards_need_all_their_siblings),
		test_in_scratch(what_all_older_ones_have_is_demanded_and_no_more),
		test_in_scratch(files_and_folders_side_by_side_do_not_judge_each_other),
		test_in_scratch(numbered_logs_and_tables_are_no_checkpoints_to_auto),
		test_in_scratch(the_step_in_a_name_is_no_loss_and_no_epoch_where_it_can_be_told),
		test_in_scratch(a_root_that_is_not_there_holds_none),
		test_in_scratch(one_checkpoint_can_be_asked_about),
		test_in_scratch(every_row_of_the_table_can_be_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
