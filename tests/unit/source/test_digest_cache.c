/* Remembered digests: the same file is known again, and nothing else is. */
#include "jobs/source/digest_cache.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "jobs/base/fs/fs.h"

#define NOW  INT64_C(1795000000000)
#define SHA1 "1111111111111111111111111111111111111111111111111111111111111111"
#define SHA2 "2222222222222222222222222222222222222222222222222222222222222222"

static char path[64];

static int set_up(void **state)
{
	int fd;

	(void)state;
	snprintf(path, sizeof path, "/tmp/stoker-digests-XXXXXX");
	fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
	(void)state;
	return unlink(path);
}

static struct stat file_of(int64_t inode, int64_t changed_ms)
{
	struct stat st;

	memset(&st, 0, sizeof st);
	st.st_dev = 7;
	st.st_ino = (ino_t)inode;
	st.st_size = 100 + inode;
	st.st_mode = S_IFREG | 0644;
	st.st_mtim.tv_sec = st.st_ctim.tv_sec = changed_ms / 1000;
	st.st_mtim.tv_nsec = st.st_ctim.tv_nsec = changed_ms % 1000 * 1000000 + 17;
	return st;
}

static void write_file(const struct sb *bytes)
{
	struct err *err = NULL;

	if (fs_write_atomic(path, bytes->text, bytes->len, 0600, &err) < 0)
		fail_msg("%s", err->message);
}

/* Makes the cache of three files, the last of which has just been changed. */
static void make(struct sb *ret)
{
	struct stat a = file_of(1, NOW - 60000), b = file_of(2, NOW - 2500),
		    c = file_of(3, NOW - 1500);

	digest_cache_begin(ret, "a mark");
	digest_cache_add(ret, "a.py", &a, SHA1, SHA2, (struct utc){ NOW });
	digest_cache_add(ret, "folder/b.py", &b, SHA2, "", (struct utc){ NOW });
	digest_cache_add(ret, "folder/c.py", &c, SHA2, SHA1, (struct utc){ NOW });
	digest_cache_end(ret);
	write_file(ret);
}

static void a_file_that_was_not_touched_is_known_again(void **state)
{
	AUTO(sb_release) struct sb bytes = SB_INIT;
	AUTO(digest_cache_release) struct digest_cache digests = { 0 };
	struct stat a = file_of(1, NOW - 60000), b = file_of(2, NOW - 2500);
	const struct digest_row *row;

	(void)state;
	make(&bytes);
	digest_cache_load(&digests, path);
	assert_string_equal(digests.mark, "a mark");
	row = digest_cache_next(&digests, "a.py");
	assert_non_null(row);
	assert_true(digest_holds(row, &a));
	assert_string_equal(row->sha256, SHA1);
	assert_string_equal(digest_reduced(row), SHA2);
	assert_null(digest_cache_next(&digests, "folder/a.py"));
	row = digest_cache_next(&digests, "folder/b.py");
	assert_non_null(row);
	assert_true(digest_holds(row, &b));
	assert_string_equal(row->sha256, SHA2);
	assert_string_equal(digest_reduced(row), "");
	assert_null(digest_cache_next(&digests, "folder/c.py")); /* changed just before */
	assert_null(digest_cache_next(&digests, "z.py"));
}

static void each_thing_that_a_change_leaves_is_looked_at(void **state)
{
	AUTO(sb_release) struct sb bytes = SB_INIT;
	AUTO(digest_cache_release) struct digest_cache digests = { 0 };
	const struct digest_row *row;

	(void)state;
	make(&bytes);
	digest_cache_load(&digests, path);
	row = digest_cache_next(&digests, "a.py");
	assert_non_null(row);
	for (int i = 0; i < 8; i++) {
		struct stat st = file_of(1, NOW - 60000);

		st.st_dev += i == 0;
		st.st_ino += i == 1;
		st.st_size += i == 2;
		st.st_mode ^= i == 3 ? 0100 : 0;
		st.st_mtim.tv_sec += i == 4;
		st.st_mtim.tv_nsec += i == 5;
		st.st_ctim.tv_sec += i == 6;
		st.st_ctim.tv_nsec += i == 7;
		assert_false(digest_holds(row, &st));
	}
}

static void what_is_not_whole_remembers_nothing(void **state)
{
	AUTO(sb_release) struct sb bytes = SB_INIT;

	(void)state;
	make(&bytes);
	for (size_t at = 0; at < bytes.len; at += 13) {
		AUTO(digest_cache_release) struct digest_cache digests = { 0 };

		bytes.text[at] ^= 4;
		write_file(&bytes);
		bytes.text[at] ^= 4;
		digest_cache_load(&digests, path);
		assert_null(digest_cache_next(&digests, "a.py"));
	}
	for (size_t len = 0; len < bytes.len; len += 17) {
		AUTO(digest_cache_release) struct digest_cache digests = { 0 };
		struct sb cut = bytes;

		cut.len = len;
		write_file(&cut);
		digest_cache_load(&digests, path);
		assert_null(digest_cache_next(&digests, "a.py"));
	}
}

static void a_file_that_is_not_there_remembers_nothing(void **state)
{
	AUTO(digest_cache_release) struct digest_cache digests = { 0 }, none = { 0 };

	(void)state;
	digest_cache_load(&digests, "/nonexistent/digests");
	assert_null(digest_cache_next(&digests, "a.py"));
	digest_cache_load(&none, NULL);
	assert_null(digest_cache_next(&none, "a.py"));
}

static void what_nobody_has_written_for_a_month_is_forgotten(void **state)
{
	static const char *const names[] = { "11111111111111111111111111111111",
					     "22222222222222222222222222222222", "notes.txt" };
	const struct timespec old[] = { { 1, 0 }, { 1, 0 } };
	char folder[] = "/tmp/stoker-digests-XXXXXX";
	AUTO(sb_release) struct sb bytes = SB_INIT;
	AUTO(auto_free) char *kept = NULL;

	(void)state;
	assert_non_null(mkdtemp(folder));
	make(&bytes);
	for (size_t i = 0; i < STK_LENGTH(names); i++) {
		AUTO(auto_free) char *file = fs_join(folder, names[i]);

		digest_cache_keep(file, &bytes);
		assert_true(fs_exists(file));
		/* The second is as new as the one that comes now. */
		if (i != 1)
			assert_int_equal(utimensat(AT_FDCWD, file, old, 0), 0);
	}
	kept = fs_join(folder, "33333333333333333333333333333333");
	digest_cache_keep(kept, &bytes);
	assert_true(fs_exists(kept));
	for (size_t i = 0; i < STK_LENGTH(names); i++) {
		AUTO(auto_free) char *file = fs_join(folder, names[i]);

		assert_int_equal(fs_exists(file), i > 0);
		unlink(file);
	}
	unlink(kept);
	assert_int_equal(rmdir(folder), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_that_was_not_touched_is_known_again),
		TEST(each_thing_that_a_change_leaves_is_looked_at),
		TEST(what_is_not_whole_remembers_nothing),
		TEST(a_file_that_is_not_there_remembers_nothing),
		TEST(what_nobody_has_written_for_a_month_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
