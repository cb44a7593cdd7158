/* Checkpoints that numpy and safetensors themselves have written (those of Orbax
 * are in orbax-0.12.8.hex): complete as they are, found out when cut anywhere. */
#include "tests/unit/checkpoint/trees.h"

#include "jobs/base/process/proc.h"

#define PYTHON SOURCE_ROOT "/tests/.venv/bin/python"

static const struct {
	const char *root, *kind, *names[3];
} real[] = {
	{ "files", "files", { "step-00000010", "step-00000020", "step-00000030" } },
	{ "tensors",
	  "files",
	  { "model-10.safetensors", "model-20.safetensors", "model-30.safetensors" } },
	{ "hf", "hf", { "checkpoint-10", "checkpoint-20", "checkpoint-30" } },
};

static void write_real(const char *dir)
{
	char *argv[] = { (char *)PYTHON, (char *)SOURCE_ROOT "/tests/support/write_checkpoints.py",
			 (char *)dir, NULL };
	char *envp[] = { NULL };
	const struct proc_start start = { .program = PYTHON,
					  .argv = argv,
					  .envp = envp,
					  .in = -1,
					  .out = -1,
					  .err = STDERR_FILENO };
	AUTO(err_freep) struct err *err = NULL;
	int status = -1;
	pid_t pid;

	proc_spawn(&start, &pid, &err);
	assert_no_error(err);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status != 0)
		fail_msg("the libraries of tests/requirements.txt are not in tests/.venv");
}

static void what_the_libraries_write_is_complete(void **state)
{
	write_real(*state);
	for (size_t i = 0; i < STK_LENGTH(real); i++) {
		AUTO(auto_free) char *root = fs_join(*state, real[i].root);
		AUTO(checkpoint_list_release) struct ckpt_list list = found_in(root, "auto");

		assert_int_equal(list.count, 3);
		for (size_t k = 0; k < 3; k++) {
			if (!list.items[k].complete)
				fail_msg("%s: %s", list.items[k].path, list.items[k].why);
			assert_string_equal(checkpoint_kind_name(list.items[k].kind), real[i].kind);
		}
	}
}

static void cut_at_any_byte_it_is_complete_no_more(void **state)
{
	write_real(*state);
	for (size_t i = 0; i < STK_LENGTH(real); i++) {
		AUTO(auto_free) char *root = fs_join(*state, real[i].root);
		AUTO(auto_free) char *path = fs_join(root, real[i].names[2]);
		AUTO(checkpoint_tree_release) struct checkpoint_tree tree = TREE_INIT;
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(checkpoint_tree_read(path, &tree, &err), 1);
		for (size_t f = 0; f < tree.count; f++) {
			const char *name = *tree.files[f].path ? tree.files[f].path : path;
			AUTO(sb_release) struct sb whole = get_bytes(path, name);
			/* Every byte near both ends, strides in between. */
			for (size_t len = 0; len < whole.len;
			     len += len < 40 || len + 90 > whole.len ? 1 : 17) {
				AUTO(auto_free) char *file = fs_join(path, name);

				put_bytes(path, name, whole.text, whole.len);
				assert_int_equal(truncate(file, (off_t)len), 0);
				assert_newest(root, real[i].kind, real[i].names[1]);
			}
			put_bytes(path, name, whole.text, whole.len);
		}
		assert_newest(root, real[i].kind, real[i].names[2]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_scratch(what_the_libraries_write_is_complete),
		test_in_scratch(cut_at_any_byte_it_is_complete_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
