/* The promises of fs.h, on real files: whole or absent, also when the disk is full. */
#include "jobs/base/fs/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/unit/base/files.h"

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

static void only_what_can_name_a_file_is_a_name(void **state)
{
	char longest[FS_NAME_MAX + 1];

	(void)state;
	memset(longest, 'a', sizeof longest);
	assert_null(fs_name_unsafe("...", 3));
	assert_null(fs_name_unsafe(".a", 2));
	assert_null(fs_name_unsafe("a/b", 1)); /* only so many bytes of it count */
	assert_null(fs_name_unsafe(longest, FS_NAME_MAX));
	assert_non_null(fs_name_unsafe(longest, FS_NAME_MAX + 1));
	assert_non_null(fs_name_unsafe("/b", 0));
	assert_non_null(fs_name_unsafe("./b", 1));
	assert_non_null(fs_name_unsafe("../b", 2));
}

/* A pipe gives what it has; a file is read at its place, which stays where it was. */
static void reads_are_as_long_as_they_can_be(void **state)
{
	int ends[2];
	char bytes[8];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(write(ends[1], "abc", 3), 3);
	assert_int_equal(write(ends[1], "de", 2), 2);
	close(ends[1]);
	assert_int_equal(fs_read_full(ends[0], bytes, sizeof bytes, -1), 5);
	assert_memory_equal(bytes, "abcde", 5);
	assert_int_equal(fs_read_full(ends[0], bytes, sizeof bytes, 0), -1);
	assert_int_equal(errno, ESPIPE);
	close(ends[0]);
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
	assert_int_equal(fs_write_atomic(absent, "x", 1, 0600, &err), -1);
	assert_int_equal(err->os_errno, ENOENT);
	assert_int_equal(entry_count(*state), 1);
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
	child_check(fs_write_atomic(big, bytes, 1 << 20, 0600, &err) == -1);
	child_check(err->os_errno == ENOSPC);
	err_freep(&err);
	child_check(!fs_exists(big) && entry_count(dir) == 1);
	child_check(fs_read(kept, 10, &text, &err) == 0 && strcmp(text.text, "old") == 0);
	/* The space is free again. */
	child_check(fs_write_atomic(big, bytes, 32 << 10, 0600, &err) == 0);
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

/* Makes these system calls fail from now on, as on file systems that lack them. */
static bool forbid(const int *calls, size_t count, int os_errno)
{
	struct sock_filter code[16] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, nr)) };
	unsigned short len = 1;
	struct sock_fprog program = { .filter = code };

	for (size_t i = 0; i < count; i++) {
		code[len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							   (unsigned)calls[i], 0, 1);
		code[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K,
							   SECCOMP_RET_ERRNO | (unsigned)os_errno);
	}
	code[len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = len;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static const int sync_calls[] = { SYS_fsync };

static int fail_to_sync(const char *dir)
{
	AUTO(auto_free) char *path = fs_join(dir, "f");
	AUTO(err_freep) struct err *err = NULL;

	if (!forbid(sync_calls, STK_LENGTH(sync_calls), EIO))
		return CHILD_SKIPS;
	child_check(fs_write_atomic(path, "x", 1, 0600, &err) == -1 && err->os_errno == EIO);
	return 0;
}

#ifdef SYS_stat
static const int look_calls[] = { SYS_stat, SYS_newfstatat };
#else
static const int look_calls[] = { SYS_newfstatat };
#endif

/* A folder that is there, on a disk that does not answer, is not called something else. */
static int fail_to_look(const char *dir)
{
	AUTO(err_freep) struct err *err = NULL;

	if (!forbid(look_calls, STK_LENGTH(look_calls), EIO))
		return CHILD_SKIPS;
	child_check(fs_mkdirs(dir, &err) == -1 && err->os_errno == EIO);
	return 0;
}

static void a_full_disk_keeps_the_old_file_and_leaves_nothing(void **state)
{
	run_with_rights(fill_tiny_disk, state);
}

static void a_read_only_file_system_has_its_hint(void **state)
{
	run_with_rights(write_on_read_only, state);
}

static void what_is_not_durable_is_not_there(void **state)
{
	run_with_rights(fail_to_sync, state);
}

static void what_cannot_be_looked_at_is_not_called_a_file(void **state)
{
	run_with_rights(fail_to_look, state);
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

static void missing_rights_are_named_with_a_hint(void **state)
{
	assert_int_equal(in_child(work_without_rights, *state), 0);
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
		child_check(fs_write_atomic(file, "x", 1, 0600, &err) == 0);
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
		cmocka_unit_test(only_what_can_name_a_file_is_a_name),
		cmocka_unit_test(reads_are_as_long_as_they_can_be),
		cmocka_unit_test(absolute_paths_are_normal),
		test_in_scratch(reading_appends_up_to_the_limit),
		test_in_scratch(large_and_sizeless_files_are_read_whole),
		test_in_scratch(what_is_no_file_is_not_read),
		test_in_scratch(a_write_replaces_the_whole_file),
		test_in_scratch(a_write_replaces_a_link_and_leaves_its_target),
		test_in_scratch(a_failed_write_leaves_nothing),
		test_in_scratch(a_full_disk_keeps_the_old_file_and_leaves_nothing),
		test_in_scratch(a_read_only_file_system_has_its_hint),
		test_in_scratch(what_is_not_durable_is_not_there),
		test_in_scratch(what_cannot_be_looked_at_is_not_called_a_file),
		test_in_scratch(missing_rights_are_named_with_a_hint),
		test_in_scratch(folders_are_made_with_their_parents),
		test_in_scratch(existence_follows_links),
		test_in_scratch(descriptors_are_closed),
	};

	return cmocka_run_group_tests_name("base/fs", tests, NULL, NULL);
}
