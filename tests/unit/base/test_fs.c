/* The promises of fs.h, on real files: whole or absent, also when the disk is full. */
#include "jobs/base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>

#include "tests/unit/base/unit.h"

static void put(const char *dir, const char *name, const char *text)
{
	AUTO(auto_free) char *path = fs_join(dir, name);
	AUTO(err_freep) struct err *err = NULL;

	fs_write_atomic(path, text, strlen(text), 0600, &err);
	assert_no_error(err);
}

static void assert_content(const char *path, const char *want)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;

	fs_read(path, 1 << 20, &text, &err);
	assert_no_error(err);
	assert_string_equal(text.text, want);
}

static int entry_count(const char *dir)
{
	DIR *names = opendir(dir);
	int count = 0;

	if (!names)
		return -1;
	while (readdir(names))
		count++;
	closedir(names);
	return count - 2;
}

static void paths_are_joined_and_split(void **state)
{
	static const struct {
		const char *a, *b, *want;
	} joins[] = {
		{ "a", "b", "a/b" },         { "a/", "b", "a/b" }, { "a", "/b", "/b" },
		{ "/", "b", "/b" },          { "", "b", "b" },     { "a", "", "a" },
		{ "a/b", "c/d", "a/b/c/d" },
	};
	static const struct {
		const char *path, *dir, *base;
	} splits[] = {
		{ "a/b", "a", "b" }, { "/a/b/c", "/a/b", "c" }, { "a", ".", "a" },
		{ "/a", "/", "a" },  { "a//b", "a", "b" },      { "//a", "/", "a" },
		{ "a/", "a", "" },   { "", ".", "" },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(joins); i++) {
		AUTO(auto_free) char *joined = fs_join(joins[i].a, joins[i].b);

		assert_string_equal(joined, joins[i].want);
	}
	for (size_t i = 0; i < STK_LENGTH(splits); i++) {
		AUTO(auto_free) char *dir = fs_dirname(splits[i].path);

		assert_string_equal(dir, splits[i].dir);
		assert_string_equal(fs_basename(splits[i].path), splits[i].base);
	}
}

static void absolute_paths_are_normal(void **state)
{
	static const struct {
		const char *path, *want;
	} rows[] = {
		{ "/", "/" },        { "/a/b", "/a/b" },       { "/a/./b//c/", "/a/b/c" },
		{ "/a/../b", "/b" }, { "/../..", "/" },        { "/a/b/..", "/a" },
		{ "/...", "/..." },  { "/..a/.b", "/..a/.b" },
	};
	AUTO(auto_free) char *cwd = getcwd(NULL, 0);
	AUTO(auto_free) char *here = fs_absolute("x/../y");
	AUTO(auto_free) char *want = fs_join(cwd, "y");

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *path = fs_absolute(rows[i].path);

		assert_string_equal(path, rows[i].want);
	}
	assert_string_equal(here, want);
}

static void reading_appends_up_to_the_limit(void **state)
{
	AUTO(auto_free) char *path = fs_join(*state, "f");
	AUTO(sb_release) struct sb text = SB_INIT;
	AUTO(sb_release) struct sb tight = SB_INIT_MAX(4);
	AUTO(err_freep) struct err *err = NULL;

	put(*state, "f", "12345");
	sb_adds(&text, "0");
	assert_int_equal(fs_read(path, 5, &text, &err), 0);
	assert_string_equal(text.text, "012345");
	assert_int_equal(fs_read(path, 4, &text, &err), -1);
	assert_contains(err->message, "larger than 4 bytes");
	assert_int_equal(err->code, EXIT_REFUSED);
	assert_string_equal(text.text, "012345");
	err_freep(&err);
	assert_int_equal(fs_read(path, 5, &tight, &err), -1);
	assert_string_equal(tight.text, "");
}

static void large_and_sizeless_files_are_read_whole(void **state)
{
	AUTO(auto_free) char *path = fs_join(*state, "f");
	AUTO(auto_free) char *bytes = mem_alloc(3000001);
	AUTO(sb_release) struct sb text = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;

	for (size_t i = 0; i < 3000001; i++)
		bytes[i] = (char)(i * 31 >> 3);
	fs_write_atomic(path, bytes, 3000001, 0600, &err);
	fs_read(path, 3000001, &text, &err);
	assert_no_error(err);
	assert_int_equal(text.len, 3000001);
	assert_memory_equal(text.text, bytes, 3000001);
	sb_clear(&text);
	fs_read("/proc/self/status", 1 << 16, &text, &err);
	assert_no_error(err);
	assert_contains(text.text, "VmRSS");
}

static void what_is_no_file_is_not_read(void **state)
{
	AUTO(auto_free) char *fifo = fs_join(*state, "fifo");
	AUTO(auto_free) char *absent = fs_join(*state, "absent");
	const char *const paths[] = { *state, fifo, absent, "/dev/zero" };

	assert_int_equal(mkfifo(fifo, 0600), 0);
	for (size_t i = 0; i < STK_LENGTH(paths); i++) {
		AUTO(sb_release) struct sb text = SB_INIT;
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(fs_read(paths[i], 100, &text, &err), -1);
		assert_contains(err->message, paths[i]);
		assert_int_equal(text.len, 0);
	}
}

static void a_write_replaces_the_whole_file(void **state)
{
	AUTO(auto_free) char *path = fs_join(*state, "f");
	AUTO(err_freep) struct err *err = NULL;
	struct stat st;
	mode_t old = umask(0077);

	assert_int_equal(fs_write_atomic(path, "long content", 12, 0600, &err), 0);
	assert_int_equal(fs_write_atomic(path, "short", 5, 0644, &err), 0);
	umask(old);
	assert_content(path, "short");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(fs_write_atomic(path, NULL, 0, 0600, &err), 0);
	assert_content(path, "");
	assert_int_equal(entry_count(*state), 1);
}

static void a_write_replaces_a_link_and_leaves_its_target(void **state)
{
	AUTO(auto_free) char *target = fs_join(*state, "target");
	AUTO(auto_free) char *link_path = fs_join(*state, "link");
	struct stat st;

	put(*state, "target", "old");
	assert_int_equal(symlink(target, link_path), 0);
	put(*state, "link", "new");
	assert_content(target, "old");
	assert_int_equal(lstat(link_path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
}

static void a_failed_write_leaves_nothing(void **state)
{
	AUTO(auto_free) char *dir = fs_join(*state, "dir");
	AUTO(auto_free) char *inner = fs_join(dir, "x");
	AUTO(auto_free) char *absent = fs_join(*state, "no/f");
	AUTO(err_freep) struct err *err = NULL;

	assert_int_equal(fs_mkdirs(inner, &err), 0);
	/* A folder stands where the file should go. */
	assert_int_equal(fs_write_atomic(dir, "x", 1, 0600, &err), -1);
	assert_contains(err->message, dir);
	err_freep(&err);
	assert_int_equal(fs_create_atomic(dir, "x", 1, 0600, &err), 0);
	assert_int_equal(fs_write_atomic(absent, "x", 1, 0600, &err), -1);
	assert_int_equal(err->os_errno, ENOENT);
	err_freep(&err);
	assert_int_equal(fs_create_atomic(absent, "x", 1, 0600, &err), -1);
	assert_int_equal(entry_count(*state), 1);
}

static void a_name_is_created_once(void **state)
{
	AUTO(auto_free) char *path = fs_join(*state, "claim");
	AUTO(auto_free) char *dangling = fs_join(*state, "dangling");
	AUTO(err_freep) struct err *err = NULL;
	struct stat st;

	assert_int_equal(fs_create_atomic(path, "one", 3, 0640, &err), 1);
	assert_int_equal(fs_create_atomic(path, "two", 3, 0600, &err), 0);
	assert_content(path, "one");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(st.st_nlink, 1);
	assert_int_equal(symlink("nowhere", dangling), 0);
	assert_int_equal(fs_create_atomic(dangling, "x", 1, 0600, &err), 0);
	assert_int_equal(entry_count(*state), 2);
}

#define RACERS 8
#define RACES  25

/* Exit code: in how many races this process was first. */
static int race(const char *dir)
{
	int won = 0;

	for (int i = 0; i < RACES; i++) {
		AUTO(auto_free) char *path = mem_format("%s/%d", dir, i);
		AUTO(auto_free) char *text = mem_format("%ld", (long)getpid());
		AUTO(err_freep) struct err *err = NULL;
		int created = fs_create_atomic(path, text, strlen(text), 0600, &err);

		if (created < 0)
			return 255;
		won += created;
	}
	return won;
}

static void of_many_creators_exactly_one_is_first(void **state)
{
	pid_t pids[RACERS];
	int won = 0;

	for (int i = 0; i < RACERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(race(*state));
	}
	for (int i = 0; i < RACERS; i++) {
		int status = -1;

		waitpid(pids[i], &status, 0);
		assert_true(WIFEXITED(status));
		assert_int_not_equal(WEXITSTATUS(status), 255);
		won += WEXITSTATUS(status);
	}
	assert_int_equal(won, RACES);
	assert_int_equal(entry_count(*state), RACES);
}

/* A file system of 64 KiB on `dir`, seen by this process alone. */
static bool mount_tiny(const char *dir)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("tiny", dir, "tmpfs", 0, "size=64k,mode=0700") == 0;
}

static int fill_tiny_disk(const char *dir)
{
	AUTO(auto_free) char *kept = fs_join(dir, "kept");
	AUTO(auto_free) char *big = fs_join(dir, "big");
	AUTO(auto_free) char *bytes = mem_zero(1, 1 << 20);
	AUTO(sb_release) struct sb text = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;

	if (!mount_tiny(dir))
		return CHILD_SKIPS;
	child_check(fs_write_atomic(kept, "old", 3, 0600, &err) == 0);
	child_check(fs_write_atomic(kept, bytes, 1 << 20, 0600, &err) == -1);
	child_check(err->os_errno == ENOSPC && err->code == EXIT_REFUSED);
	child_check(strstr(err->hint, "free space"));
	err_freep(&err);
	child_check(fs_create_atomic(big, bytes, 1 << 20, 0600, &err) == -1);
	child_check(err->os_errno == ENOSPC);
	err_freep(&err);
	child_check(!fs_exists(big) && entry_count(dir) == 1);
	child_check(fs_read(kept, 10, &text, &err) == 0 && strcmp(text.text, "old") == 0);
	/* The space is free again. */
	child_check(fs_create_atomic(big, bytes, 32 << 10, 0600, &err) == 1);
	return 0;
}

static int write_on_read_only(const char *dir)
{
	AUTO(auto_free) char *file = fs_join(dir, "f");
	AUTO(auto_free) char *folder = fs_join(dir, "d/e");
	AUTO(err_freep) struct err *err = NULL;

	if (!mount_tiny(dir))
		return CHILD_SKIPS;
	child_check(fs_write_atomic(file, "x", 1, 0600, &err) == 0);
	child_check(mount("tiny", dir, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
	child_check(fs_write_atomic(file, "y", 1, 0600, &err) == -1);
	child_check(err->os_errno == EROFS && strstr(err->hint, "writable"));
	err_freep(&err);
	child_check(fs_mkdirs(folder, &err) == -1 && err->os_errno == EROFS);
	err_freep(&err);
	child_check(fs_remove_tree(file, &err) == -1 && err->os_errno == EROFS);
	return 0;
}

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

static void run_with_rights(int (*fn)(const char *), void **state)
{
	int result = in_child(fn, *state);

	if (result == CHILD_SKIPS) {
		print_message("SKIP: mounting is not allowed here\n");
		skip();
	}
	assert_int_equal(result, 0);
}

static void a_full_disk_keeps_the_old_file_and_leaves_nothing(void **state)
{
	run_with_rights(fill_tiny_disk, state);
}

static void a_read_only_file_system_has_its_hint(void **state)
{
	run_with_rights(write_on_read_only, state);
}

static void another_file_system_inside_a_tree_stays_whole(void **state)
{
	run_with_rights(remove_around_a_mount, state);
}

/* Give up root's rights over files, if we have them. */
static bool become_ordinary(const char *dir)
{
	const uid_t nobody = 65534;

	return geteuid() != 0 || (chown(dir, nobody, nobody) == 0 && setgroups(0, NULL) == 0 &&
				  setegid(nobody) == 0 && seteuid(nobody) == 0);
}

static int work_without_rights(const char *dir)
{
	AUTO(auto_free) char *locked = fs_join(dir, "locked");
	AUTO(auto_free) char *file = fs_join(locked, "f");
	AUTO(auto_free) char *folder = fs_join(locked, "a/b");
	AUTO(sb_release) struct sb text = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;

	child_check(become_ordinary(dir));
	child_check(fs_mkdirs(locked, &err) == 0);
	child_check(fs_write_atomic(file, "x", 1, 0600, &err) == 0);
	child_check(chmod(file, 0) == 0);
	child_check(fs_read(file, 10, &text, &err) == -1 && err->os_errno == EACCES && err->hint);
	err_freep(&err);
	child_check(chmod(locked, 0500) == 0);
	child_check(fs_write_atomic(file, "y", 1, 0600, &err) == -1 && err->os_errno == EACCES);
	err_freep(&err);
	child_check(fs_mkdirs(folder, &err) == -1 && err->os_errno == EACCES);
	err_freep(&err);
	/* A tree is ours to remove, but not out of a folder that is not. */
	child_check(fs_remove_tree(file, &err) == -1 && err->os_errno == EACCES);
	err_freep(&err);
	/* Writable but not readable: works, although it cannot be synced. */
	child_check(chmod(locked, 0300) == 0);
	child_check(fs_mkdirs(folder, &err) == 0);
	return 0;
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

static void missing_rights_are_named_with_a_hint(void **state)
{
	assert_int_equal(in_child(work_without_rights, *state), 0);
}

static void folders_without_rights_are_removed(void **state)
{
	assert_int_equal(in_child(remove_locked_tree, *state), 0);
}

static void folders_are_made_with_their_parents(void **state)
{
	AUTO(auto_free) char *deep = fs_join(*state, "a/b//c/");
	AUTO(auto_free) char *b = fs_join(*state, "a/b");
	AUTO(auto_free) char *below_file = fs_join(*state, "f/x");
	AUTO(auto_free) char *file = fs_join(*state, "f");
	AUTO(err_freep) struct err *err = NULL;
	struct stat st;

	assert_int_equal(fs_mkdirs(deep, &err), 0);
	assert_int_equal(fs_mkdirs(deep, &err), 0);
	assert_true(fs_is_dir(deep));
	assert_int_equal(stat(b, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	put(*state, "f", "x");
	assert_int_equal(fs_mkdirs(file, &err), -1);
	assert_int_equal(err->os_errno, ENOTDIR);
	err_freep(&err);
	assert_int_equal(fs_mkdirs(below_file, &err), -1);
	err_freep(&err);
	assert_int_equal(fs_mkdirs("", &err), -1);
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

/* Longer than any path, deeper than any stack of open folders. */
static void very_deep_trees_are_removed(void **state)
{
	AUTO(auto_free) char *tree = fs_join(*state, "tree");
	AUTO(err_freep) struct err *err = NULL;
	int dir;

	assert_int_equal(fs_mkdirs(tree, &err), 0);
	dir = open(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 3000; i++) {
		int file = openat(dir, "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		int next;

		assert_true(file >= 0);
		close(file);
		assert_int_equal(mkdirat(dir, "d", i % 100 == 7 ? 0500 : 0700), 0);
		next = openat(dir, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		fchmod(next, 0700);
		close(dir);
		dir = next;
	}
	close(dir);
	fs_remove_tree(tree, &err);
	assert_no_error(err);
	assert_false(fs_exists(tree));
}

static void existence_follows_links(void **state)
{
	AUTO(auto_free) char *dangling = fs_join(*state, "dangling");
	AUTO(auto_free) char *to_dir = fs_join(*state, "to_dir");
	AUTO(auto_free) char *file = fs_join(*state, "f");
	AUTO(err_freep) struct err *err = NULL;

	put(*state, "f", "x");
	assert_int_equal(symlink("nowhere", dangling), 0);
	assert_int_equal(symlink(".", to_dir), 0);
	assert_true(fs_exists(file));
	assert_false(fs_is_dir(file));
	assert_false(fs_exists(dangling));
	assert_true(fs_is_dir(to_dir));
	assert_int_equal(fs_sync_dir(*state, &err), 0);
	assert_int_equal(fs_sync_dir(file, &err), -1);
}

static int no_descriptor_leaks(const char *dir)
{
	AUTO(auto_free) char *file = fs_join(dir, "x/f");
	AUTO(auto_free) char *folder = fs_join(dir, "x");
	AUTO(err_freep) struct err *err = NULL;
	int before = entry_count("/proc/self/fd");

	for (int i = 0; i < 50; i++) {
		AUTO(sb_release) struct sb text = SB_INIT;

		child_check(fs_mkdirs(folder, &err) == 0);
		child_check(fs_create_atomic(file, "x", 1, 0600, &err) == 1);
		child_check(fs_create_atomic(file, "x", 1, 0600, &err) == 0);
		child_check(fs_read(file, 10, &text, &err) == 0);
		child_check(fs_read(folder, 10, &text, &err) == -1);
		err_freep(&err);
		child_check(fs_remove_tree(folder, &err) == 0);
	}
	child_check(entry_count("/proc/self/fd") == before);
	return 0;
}

static void descriptors_are_closed(void **state)
{
	assert_int_equal(in_child(no_descriptor_leaks, *state), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_are_joined_and_split),
		cmocka_unit_test(absolute_paths_are_normal),
		test_in_scratch(reading_appends_up_to_the_limit),
		test_in_scratch(large_and_sizeless_files_are_read_whole),
		test_in_scratch(what_is_no_file_is_not_read),
		test_in_scratch(a_write_replaces_the_whole_file),
		test_in_scratch(a_write_replaces_a_link_and_leaves_its_target),
		test_in_scratch(a_failed_write_leaves_nothing),
		test_in_scratch(a_name_is_created_once),
		test_in_scratch(of_many_creators_exactly_one_is_first),
		test_in_scratch(a_full_disk_keeps_the_old_file_and_leaves_nothing),
		test_in_scratch(a_read_only_file_system_has_its_hint),
		test_in_scratch(another_file_system_inside_a_tree_stays_whole),
		test_in_scratch(missing_rights_are_named_with_a_hint),
		test_in_scratch(folders_without_rights_are_removed),
		test_in_scratch(folders_are_made_with_their_parents),
		test_in_scratch(a_tree_is_removed_and_links_are_not_followed),
		test_in_scratch(absent_things_are_removed_already),
		test_in_scratch(paths_without_a_name_are_not_removed),
		test_in_scratch(a_trailing_slash_does_not_matter),
		test_in_scratch(very_deep_trees_are_removed),
		test_in_scratch(existence_follows_links),
		test_in_scratch(descriptors_are_closed),
	};

	return cmocka_run_group_tests_name("base/fs", tests, NULL, NULL);
}
