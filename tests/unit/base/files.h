/*
 * Files for the tests of fs.h: quick content, a tiny file system, a user without
 * root's rights.
 */
#ifndef STK_TESTS_UNIT_BASE_FILES_H
#define STK_TESTS_UNIT_BASE_FILES_H

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>

#include "tests/unit/base/unit.h"

static inline void put(const char *dir, const char *name, const char *text)
{
	AUTO(auto_free) char *path = fs_join(dir, name);
	AUTO(err_freep) struct err *err = NULL;

	fs_write_atomic(path, text, strlen(text), 0600, &err);
	assert_no_error(err);
}

static inline void assert_content(const char *path, const char *want)
{
	AUTO(sb_release) struct sb text = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;

	fs_read(path, 1 << 20, &text, &err);
	assert_no_error(err);
	assert_string_equal(text.text, want);
}

static inline int entry_count(const char *dir)
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

static inline bool write_line(const char *path, const char *line)
{
	AUTO(auto_close) int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, line, strlen(line)) > 0;
}

/* Let this process mount things that it alone sees; who is not root becomes root
 * of a world of its own. */
static inline bool may_mount(void)
{
	AUTO(auto_free) char *user = mem_format("0 %ld 1", (long)geteuid());
	AUTO(auto_free) char *group = mem_format("0 %ld 1", (long)getegid());

	if (unshare(CLONE_NEWNS) == 0)
		return true;
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
	       write_line("/proc/self/uid_map", user) &&
	       write_line("/proc/self/setgroups", "deny") &&
	       write_line("/proc/self/gid_map", group);
}

/* A file system of 64 KiB on `dir`, seen by this process alone. */
static inline bool mount_tiny(const char *dir)
{
	return may_mount() && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("tiny", dir, "tmpfs", 0, "size=64k,mode=0700") == 0;
}

static inline void run_with_rights(int (*fn)(const char *), void **state)
{
	int result = in_child(fn, *state);

	if (result == CHILD_SKIPS) {
		print_message("SKIP: the machine does not allow what this test needs\n");
		skip();
	}
	assert_int_equal(result, 0);
}

/* Give up root's rights over files, if we have them. */
static inline bool become_ordinary(const char *dir)
{
	const uid_t nobody = 65534;

	return geteuid() != 0 || (chown(dir, nobody, nobody) == 0 && setgroups(0, NULL) == 0 &&
				  setegid(nobody) == 0 && seteuid(nobody) == 0);
}

#endif
