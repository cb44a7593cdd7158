/* The promise of fs_remove_tree: all of it, nothing else, whatever is inside. */
#include "jobs/base/fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>

#include "tests/unit/base/files.h"

static int remove_around_a_mount(const char *dir)
{
	AUTO(auto_free) char *tree = fs_join(dir, "tree");
	AUTO(auto_free) char *inner = fs_join(tree, "mounted");
	AUTO(auto_free) char *file = fs_join(inner, "precious");
	AUTO(err_freep) struct err *err = NULL;

	child_check(fs_mkdirs(inner, &err) == 0);
	if (!mount_tiny(inner))
		return CHILD_SKIPS;
	child_check(fs_write_atomic(file, "x", 1, 0600, &err) == 0);
	child_check(fs_remove_tree(tree, &err) == -1);
	child_check(strstr(err->message, "mounted") && err->os_errno == EBUSY);
	child_check(fs_exists(file));
	return 0;
}

static void another_file_system_inside_a_tree_stays_whole(void **state)
{
	run_with_rights(remove_around_a_mount, state);
}

static int remove_locked_tree(const char *dir)
{
	AUTO(auto_free) char *tree = fs_join(dir, "tree");
	AUTO(auto_free) char *a = fs_join(tree, "a");
	AUTO(auto_free) char *b = fs_join(a, "b");
	AUTO(auto_free) char *file = fs_join(b, "f");
	AUTO(auto_free) char *empty = fs_join(b, "empty");
	AUTO(err_freep) struct err *err = NULL;

	child_check(become_ordinary(dir));
	child_check(fs_mkdirs(empty, &err) == 0);
	child_check(fs_write_atomic(file, "x", 1, 0600, &err) == 0);
	child_check(chmod(empty, 0) == 0 && chmod(file, 0) == 0 && chmod(b, 0555) == 0);
	child_check(chmod(a, 0) == 0 && chmod(tree, 0111) == 0);
	child_check(fs_remove_tree(tree, &err) == 0);
	child_check(!fs_exists(tree));
	return 0;
}

static void folders_without_rights_are_removed(void **state)
{
	assert_int_equal(in_child(remove_locked_tree, *state), 0);
}

static void a_tree_is_removed_and_links_are_not_followed(void **state)
{
	AUTO(auto_free) char *tree = fs_join(*state, "tree");
	AUTO(auto_free) char *sub = fs_join(tree, "sub");
	AUTO(auto_free) char *outside = fs_join(*state, "outside");
	AUTO(auto_free) char *precious = fs_join(outside, "precious");
	AUTO(auto_free) char *link_in = fs_join(sub, "link");
	AUTO(auto_free) char *fifo = fs_join(sub, "fifo");
	AUTO(auto_free) char *link_to = fs_join(*state, "link");
	AUTO(err_freep) struct err *err = NULL;

	fs_mkdirs(sub, &err);
	fs_mkdirs(outside, &err);
	put(outside, "precious", "x");
	for (int i = 0; i < 500; i++) {
		AUTO(auto_free) char *file = mem_format("%s/%d", sub, i);

		close(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	}
	assert_int_equal(symlink(outside, link_in), 0);
	assert_int_equal(symlink(outside, link_to), 0);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	fs_remove_tree(tree, &err);
	assert_no_error(err);
	assert_false(fs_exists(tree));
	fs_remove_tree(link_to, &err);
	assert_no_error(err);
	assert_content(precious, "x");
	assert_int_equal(entry_count(*state), 1);
}

static void absent_things_are_removed_already(void **state)
{
	AUTO(auto_free) char *absent = fs_join(*state, "absent");
	AUTO(auto_free) char *deeper = fs_join(*state, "absent/x/y");
	AUTO(auto_free) char *below_file = fs_join(*state, "f/x");
	AUTO(err_freep) struct err *err = NULL;

	put(*state, "f", "x");
	assert_int_equal(fs_remove_tree(absent, &err), 0);
	assert_int_equal(fs_remove_tree(deeper, &err), 0);
	assert_int_equal(fs_remove_tree(below_file, &err), 0);
}

static void paths_without_a_name_are_not_removed(void **state)
{
	AUTO(auto_free) char *dot = fs_join(*state, ".");
	AUTO(auto_free) char *dots = fs_join(*state, "x/..");
	const char *const paths[] = { "/", "//", "", ".", "..", "../", dot, dots };

	put(*state, "f", "x");
	for (size_t i = 0; i < STK_LENGTH(paths); i++) {
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(fs_remove_tree(paths[i], &err), -1);
	}
	assert_int_equal(entry_count(*state), 1);
}

static void a_trailing_slash_does_not_matter(void **state)
{
	AUTO(auto_free) char *tree = fs_join(*state, "tree///");
	AUTO(err_freep) struct err *err = NULL;

	fs_mkdirs(tree, &err);
	assert_int_equal(fs_remove_tree(tree, &err), 0);
	assert_int_equal(entry_count(*state), 0);
}

/* Longer than any path may be, deeper than may be held open at a time. */
static int remove_very_deep_tree(const char *scratch)
{
	static const char name[] = "a-folder-with-a-rather-long-name";
	const struct rlimit few = { 100, 100 };
	AUTO(auto_free) char *tree = fs_join(scratch, "tree");
	AUTO(err_freep) struct err *err = NULL;
	int dir;

	child_check(fs_mkdirs(tree, &err) == 0);
	dir = open(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 200; i++) {
		int file = openat(dir, "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		int next;

		child_check(file >= 0 && mkdirat(dir, name, 0700) == 0);
		close(file);
		next = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		child_check(next >= 0);
		close(dir);
		dir = next;
	}
	close(dir);
	child_check(setrlimit(RLIMIT_NOFILE, &few) == 0);
	child_check(fs_remove_tree(tree, &err) == 0);
	child_check(!fs_exists(tree));
	return 0;
}

static void very_deep_trees_are_removed(void **state)
{
	assert_int_equal(in_child(remove_very_deep_tree, *state), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		test_in_scratch(another_file_system_inside_a_tree_stays_whole),
		test_in_scratch(folders_without_rights_are_removed),
		test_in_scratch(a_tree_is_removed_and_links_are_not_followed),
		test_in_scratch(absent_things_are_removed_already),
		test_in_scratch(paths_without_a_name_are_not_removed),
		test_in_scratch(a_trailing_slash_does_not_matter),
		test_in_scratch(very_deep_trees_are_removed),
	};

	return cmocka_run_group_tests_name("base/fs_tree", tests, NULL, NULL);
}
