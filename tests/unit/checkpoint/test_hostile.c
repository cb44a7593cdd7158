/* Trees that somebody made to harm: links, pipes, depth, numbers, names. */
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "tests/unit/checkpoint/trees.h"

static void make_link(const char *root, const char *path, const char *target)
{
	AUTO(auto_free) char *whole = fs_join(root, path);

	assert_int_equal(symlink(target, whole), 0);
}

static void links_are_no_checkpoints_and_make_none_complete(void **state)
{
	AUTO(auto_free) char *root = fs_join(*state, "root");
	AUTO(auto_free) char *other = fs_join(*state, "other");
	AUTO(auto_free) char *target = fs_join(other, "step-00000090");
	AUTO(auto_free) char *state_file = fs_join(target, "state.npz");
	AUTO(checkpoint_list_release) struct ckpt_list list = { 0 };

	make_files(other, "step-00000090", 90);
	make_files(root, "step-00000010", 10);
	make_link(root, "step-00000090", target);
	make_link(root, "step-00000091.npz", state_file);
	list = found_in(root, "auto");
	assert_int_equal(list.count, 1);
	make_files(root, "step-00000020", 20);
	drop(root, "step-00000020/state.npz");
	make_link(root, "step-00000020/state.npz", state_file);
	assert_partial(root, "auto", "step-00000020", "'state.npz' is a link");
	make_files(root, "step-00000030", 30);
	make_link(root, "step-00000030/more", "../../other");
	assert_partial(root, "auto", "step-00000030", "'more' is a link");
	assert_newest(root, "auto", "step-00000010");
}

static void a_root_reached_through_a_link_is_its_owners_choice(void **state)
{
	AUTO(auto_free) char *root = fs_join(*state, "link");

	make_files(*state, "real/step-00000010", 10);
	make_link(*state, "link", "real");
	assert_newest(root, "auto", "step-00000010");
}

static void pipes_and_sockets_do_not_hold_anybody_up(void **state)
{
	AUTO(auto_free) char *pipe = fs_join(*state, "step-00000010/fifo.pt");
	AUTO(auto_free) char *top = fs_join(*state, "step-00000011.pt");
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	AUTO(auto_close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	make_files(*state, "step-00000010", 10);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	assert_int_equal(mkfifo(top, 0600), 0);
	assert_partial(*state, "auto", "step-00000010", "neither a file nor a folder");
	drop(*state, "step-00000010/fifo.pt");
	snprintf(address.sun_path, sizeof address.sun_path, "%s/step-00000010/s", (char *)*state);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	assert_partial(*state, "auto", "step-00000010", "neither a file nor a folder");
	assert_newest(*state, "auto", NULL);
}

static void folders_without_end_are_left_alone(void **state)
{
	AUTO(sb_release) struct sb path = SB_INIT;

	sb_adds(&path, "step-00000010");
	for (int i = 0; i < 100; i++)
		sb_adds(&path, "/d");
	sb_adds(&path, "/state.npz");
	put_text(*state, path.text, "x");
	assert_partial(*state, "auto", "step-00000010", "lies too deep");
}

static void names_that_are_no_text_are_refused(void **state)
{
	make_files(*state, "step-00000010", 10);
	put_text(*state, "step-00000010/\xff\xfe.bin", "x");
	assert_partial(*state, "auto", "step-00000010", "UTF-8");
	put_text(*state, "step-\xc3-20/x", "x");
	put_text(*state, "step-00000030\x1b[31m\n/x", "x");
	assert_newest(*state, "auto", "step-00000030\x1b[31m\n");
}

static void an_index_leads_nowhere_else(void **state)
{
	make_hf(*state, "checkpoint-10", 10);
	put_sb(*state, "outside.safetensors", safetensors_file());
	put_text(*state, "checkpoint-10/model.safetensors.index.json",
		 "{\"weight_map\": {\"a\": \"../outside.safetensors\"}}");
	assert_partial(*state, "hf", "checkpoint-10", "'../outside.safetensors' is missing");
	put_text(*state, "checkpoint-10/model.safetensors.index.json",
		 "{\"weight_map\": {\"a\": 7}}");
	assert_partial(*state, "hf", "checkpoint-10", "does not name files");
}

static void huge_numbers_in_names_stay_numbers(void **state)
{
	make_nxd(*state, "step_10", 10);
	put_sb(*state, "step_10/model/dp_rank_999999999_tp_rank_999999999_pp_rank_999999999.pt",
	       torch_file());
	assert_partial(*state, "nxd", "step_10", "ranks are missing");
	make_deepspeed(*state, "global_step20", 20);
	put_sb(*state, "global_step20/mp_rank_99999999999999999999_model_states.pt", torch_file());
	assert_newest(*state, "deepspeed", "global_step20");
	put_text(*state, "step-3/a-4294967295-of-4294967295", "x");
	assert_newest(*state, "files", "global_step20");
}

static void a_pointer_of_any_size_is_bounded(void **state)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	AUTO(auto_free) char *path = fs_join(*state, "latest");

	make_deepspeed(*state, "global_step20", 20);
	for (int i = 0; i < 10000; i++)
		sb_addc(&text, '9');
	put_bytes(*state, "latest", text.text, text.len);
	assert_partial(*state, "deepspeed", "global_step20", "'latest'");
	drop(*state, "latest");
	assert_int_equal(symlink("global_step20/mp_rank_00_model_states.pt", path), 0);
	assert_partial(*state, "deepspeed", "global_step20", "'latest'");
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_partial(*state, "deepspeed", "global_step20", "'latest'");
}

/* Ten thousand here; a hundred thousand with STOKER_TEST_LARGE, as in the soak. */
static void a_checkpoint_of_very_many_files_is_looked_at_all_the_same(void **state)
{
	AUTO(auto_free) char *folder = fs_join(*state, "step-00000010");
	AUTO(err_freep) struct err *err = NULL;
	int count = getenv("STOKER_TEST_LARGE") ? 100000 : 10000;
	int dir;

	fs_mkdirs(folder, &err);
	assert_no_error(err);
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < count; i++) {
		AUTO(auto_free) char *name = mem_format("shard-%06d.raw", i);
		AUTO(auto_close) int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		assert_int_equal(write(fd, name, 6), 6);
	}
	close(dir);
	assert_newest(*state, "auto", "step-00000010");
	for (int i = 0; i < count; i += 2) {
		AUTO(auto_free) char *name = mem_format("%s/shard-%06d.raw", folder, i);

		unlink(name);
	}
	/* Nothing but an older one could tell. */
	make_files(*state, "step-00000005", 5);
	assert_newest(*state, "auto", "step-00000005");
}

static void what_cannot_be_read_is_an_error_and_no_verdict(void **state)
{
	AUTO(auto_free) char *root = fs_join(*state, "file");
	struct ckpt_list list = { 0 };
	AUTO(err_freep) struct err *err = NULL;

	put_text(*state, "file", "no folder");
	assert_int_equal(checkpoint_find(root, checkpoint_kind_find("auto"), &list, &err), -1);
	assert_non_null(err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_scratch(links_are_no_checkpoints_and_make_none_complete),
		test_in_scratch(a_root_reached_through_a_link_is_its_owners_choice),
		test_in_scratch(pipes_and_sockets_do_not_hold_anybody_up),
		test_in_scratch(folders_without_end_are_left_alone),
		test_in_scratch(names_that_are_no_text_are_refused),
		test_in_scratch(an_index_leads_nowhere_else),
		test_in_scratch(huge_numbers_in_names_stay_numbers),
		test_in_scratch(a_pointer_of_any_size_is_bounded),
		test_in_scratch(a_checkpoint_of_very_many_files_is_looked_at_all_the_same),
		test_in_scratch(what_cannot_be_read_is_an_error_and_no_verdict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
