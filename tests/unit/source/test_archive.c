/* Bundles: the same bytes for the same files, and nothing hostile gets out. */
#include <fcntl.h>
#include <locale.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/hash.h"
#include "jobs/source/archive.h"

struct fixture {
	char scratch[64];
	char *archive, *dest;
};

static void must(int result, const struct err *err)
{
	if (result < 0)
		fail_msg("%s", err ? err->message : "failed without an error");
}

static int setup(void **state)
{
	struct fixture *f = mem_zero(1, sizeof *f);

	strcpy(f->scratch, "/tmp/stoker-test-XXXXXX");
	assert_non_null(mkdtemp(f->scratch));
	f->archive = fs_join(f->scratch, "bundle.tar.gz");
	f->dest = fs_join(f->scratch, "dest");
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	struct err *err = NULL;

	must(fs_remove_tree(f->scratch, &err), err);
	free(f->archive);
	free(f->dest);
	free(f);
	return 0;
}

/* --- packing --- */

struct sample {
	struct archive_member member;
	const char *content;
};

#define LONG_PART "a-rather-long-part-of-a-path-that-fills-the-header-of-the-old-format"

static const struct sample samples[] = {
	{ { "empty", 0100644, 0, NULL }, "" },
	{ { "link", 0120000, 11, NULL }, "sub/run.py\n" },
	{ { LONG_PART "/" LONG_PART "/" LONG_PART "/" LONG_PART, 0100644, 2, NULL }, "ab" },
	{ { "sub/run.py", 0100755, 6, NULL }, "print\n" },
	{ { "sub/up", 0120000, 8, NULL }, "../empty" },
	{ { "\xc3\xa9t\xc3\xa9.py", 0100644, 1, NULL }, "e" },
};

static int fill(void *arg, const struct archive_member *member, struct archive_sink *sink,
		struct err **err)
{
	(void)arg;
	for (size_t i = 0; i < STK_LENGTH(samples); i++)
		if (strcmp(samples[i].member.path, member->path) == 0)
			return archive_sink_add(sink, samples[i].content,
						strlen(samples[i].content), err);
	return err_set(err, EXIT_DEFECT, "no sample '%s'", member->path);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct archive_member *)a)->path,
		      ((const struct archive_member *)b)->path);
}

static void pack_samples(const char *path)
{
	AUTO(err_freep) struct err *err = NULL;
	struct archive_member members[STK_LENGTH(samples)];
	AUTO(auto_close) int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	for (size_t i = 0; i < STK_LENGTH(samples); i++)
		members[i] = samples[i].member;
	qsort(members, STK_LENGTH(samples), sizeof *members, by_path);
	must(archive_pack(fd, members, STK_LENGTH(samples), fill, NULL, &err), err);
}

static void what_was_packed_is_unpacked(void **state)
{
	struct fixture *f = *state;
	AUTO(err_freep) struct err *err = NULL;

	pack_samples(f->archive);
	must(archive_unpack(f->archive, f->dest, &err), err);
	for (size_t i = 0; i < STK_LENGTH(samples); i++) {
		AUTO(auto_free) char *path = fs_join(f->dest, samples[i].member.path);
		AUTO(sb_release) struct sb text = SB_INIT;
		struct stat st;

		assert_int_equal(lstat(path, &st), 0);
		assert_int_equal(st.st_mode & S_IFMT, samples[i].member.mode & S_IFMT);
		if (S_ISLNK(st.st_mode)) {
			char target[64] = "";

			assert_true(readlink(path, target, sizeof target - 1) > 0);
			assert_string_equal(target, samples[i].content);
			continue;
		}
		assert_int_equal(st.st_mode & 0100, samples[i].member.mode & 0100);
		must(fs_read(path, 100, &text, &err), err);
		assert_string_equal(text.text, samples[i].content);
	}
}

static void packing_twice_gives_the_same_bytes_in_any_locale_and_at_any_time(void **state)
{
	struct fixture *f = *state;
	AUTO(auto_free) char *again = fs_join(f->scratch, "again.tar.gz");
	AUTO(err_freep) struct err *err = NULL;
	char one[SHA256_HEX], two[SHA256_HEX];
	uint64_t size;

	pack_samples(f->archive);
	sleep(1); /* a time stamp of seconds would show */
	assert_non_null(setlocale(LC_ALL, "C.UTF-8"));
	umask(0);
	pack_samples(again);
	umask(022);
	setlocale(LC_ALL, "C");
	must(hash_sha256_file(f->archive, one, &size, &err), err);
	must(hash_sha256_file(again, two, &size, &err), err);
	assert_string_equal(one, two);
}

static void other_tools_can_read_it(void **state)
{
	struct fixture *f = *state;
	AUTO(auto_free)
	char *command = mem_format(
		"cd '%s' && gzip -t bundle.tar.gz && tar --numeric-owner -tvzf bundle.tar.gz "
		">list && grep -q '^-rwxr-xr-x 0/0 .* 1970-01-01 .* sub/run.py$' list && "
		"test \"$(wc -l <list)\" = 6",
		f->scratch);

	pack_samples(f->archive);
	assert_int_equal(setenv("TZ", "UTC", 1), 0);
	assert_int_equal(system(command), 0);
}

static int pack_one(struct fixture *f, const char *path, unsigned mode, uint64_t size,
		    const char *sha256, struct err **err)
{
	struct archive_member member = { path, mode, size, sha256 };
	AUTO(auto_close) int fd = open(f->archive, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	return archive_pack(fd, &member, 1, fill, NULL, err);
}

static void content_that_is_not_as_announced_is_an_error(void **state)
{
	struct fixture *f = *state;
	char hex[SHA256_HEX];
	struct err *err = NULL;

	hash_sha256_hex("print\n", 6, hex);
	must(pack_one(f, "sub/run.py", 0100644, 6, hex, &err), err);
	assert_int_equal(pack_one(f, "sub/run.py", 0100644, 7, NULL, &err), -1);
	assert_string_equal(err->message, "'sub/run.py' changed while packing");
	err_freep(&err);
	assert_int_equal(pack_one(f, "sub/run.py", 0100644, 5, NULL, &err), -1);
	assert_string_equal(err->message, "'sub/run.py' changed while packing");
	err_freep(&err);
	hex[0] ^= 1;
	assert_int_equal(pack_one(f, "sub/run.py", 0100644, 6, hex, &err), -1);
	assert_string_equal(err->message, "'sub/run.py' changed while packing");
	err_freep(&err);
}

static void what_could_not_be_unpacked_is_not_packed(void **state)
{
	struct fixture *f = *state;
	static const char *const paths[] = { "",     "/abs", "../x", "a/../x",
					     "a//b", "./a",  "a/",   "\xff" };
	struct archive_member disorder[] = { { "b", 0100644, 0, NULL }, { "a", 0100644, 0, NULL } };
	struct archive_member twice[] = { { "a", 0100644, 0, NULL }, { "a", 0100644, 0, NULL } };
	struct err *err = NULL;

	for (size_t i = 0; i < STK_LENGTH(paths); i++) {
		assert_int_equal(pack_one(f, paths[i], 0100644, 0, NULL, &err), -1);
		assert_int_equal(err->code, EXIT_REFUSED);
		err_freep(&err);
	}
	assert_int_equal(pack_one(f, "x", 0100644, ARCHIVE_BYTES_MAX + 1, NULL, &err), -1);
	err_freep(&err);
	assert_int_equal(archive_pack(-1, disorder, 2, fill, NULL, &err), -1);
	err_freep(&err);
	assert_int_equal(archive_pack(-1, twice, 2, fill, NULL, &err), -1);
	err_freep(&err);
}

static void links_stay_inside(void **state)
{
	static const struct {
		const char *path, *target;
		bool inside;
	} rows[] = {
		{ "l", "a", true },          { "l", "a/b", true },
		{ "d/l", "../a", true },     { "d/e/l", "../../a", true },
		{ "d/l", ".", true },        { "d/l", "./../a", true },
		{ "l", "..", false },        { "l", "../a", false },
		{ "d/l", "../../a", false }, { "l", "/etc", false },
		{ "l", "", false },          { "d/l", "a/../../..", false },
		{ "d/l", "a/../b", false },  { "d/l", "..", true },
		{ "l", "./..", false },      { "d/l", "..//a", true },
		{ "l", "...", true },        { "l", "..a", true },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		if (archive_link_inside(rows[i].path, rows[i].target) != rows[i].inside)
			fail_msg("'%s' -> '%s'", rows[i].path, rows[i].target);
}

/* --- unpacking what others made: headers written by hand (POSIX ustar) --- */

struct raw {
	const char *name, *target;
	char type;
	unsigned mode;
	const char *content;
};

static void put_header(struct sb *tar, const struct raw *raw, uint64_t size)
{
	char h[512] = { 0 };
	unsigned sum = 0;

	strncpy(h, raw->name, 99);
	snprintf(h + 100, 8, "%07o", raw->mode);
	snprintf(h + 108, 8, "%07o", 0u);
	snprintf(h + 116, 8, "%07o", 0u);
	snprintf(h + 124, 12, "%011llo", (unsigned long long)size);
	snprintf(h + 136, 12, "%011o", 0u);
	h[156] = raw->type;
	if (raw->target)
		strncpy(h + 157, raw->target, 99);
	memcpy(h + 257, "ustar\00000", 8);
	memset(h + 148, ' ', 8);
	for (size_t i = 0; i < sizeof h; i++)
		sum += (unsigned char)h[i];
	snprintf(h + 148, 8, "%06o", sum);
	sb_add(tar, h, sizeof h);
}

static void put_entry(struct sb *tar, const struct raw *raw)
{
	static const char zeros[512];
	size_t len = raw->content ? strlen(raw->content) : 0;

	put_header(tar, raw, len);
	if (len > 0) {
		sb_add(tar, raw->content, len);
		sb_add(tar, zeros, 512 - len % 512);
	}
}

static void write_tar(struct fixture *f, const struct sb *tar)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(sb_release) struct sb whole = SB_INIT;
	static const char end[1024];

	sb_add(&whole, tar->text, tar->len);
	sb_add(&whole, end, sizeof end);
	must(fs_write_atomic(f->archive, whole.text, whole.len, 0600, &err), err);
}

static void assert_refused(struct fixture *f, const char *why)
{
	AUTO(err_freep) struct err *err = NULL;
	AUTO(auto_free)
	char *command = mem_format("test ! -e '%s/dest' && test -z \"$(ls -A '%s' | grep -v "
				   "'^bundle\\|^victim$')\" && "
				   "test -z \"$(ls -A '%s/victim')\"",
				   f->scratch, f->scratch, f->scratch);

	assert_int_equal(archive_unpack(f->archive, f->dest, &err), -1);
	assert_int_equal(err->code, EXIT_REFUSED);
	if (!strstr(err->message, why))
		fail_msg("'%s' instead of '%s'", err->message, why);
	assert_int_equal(system(command), 0); /* nothing is left, nothing got out */
}

static void hostile_archives_are_refused_and_leave_nothing(void **state)
{
	struct fixture *f = *state;
	AUTO(auto_free) char *victim = fs_join(f->scratch, "victim");
	AUTO(auto_free) char *absolute = fs_join(victim, "x");
	AUTO(err_freep) struct err *err = NULL;
	const struct {
		struct raw entries[3];
		const char *why;
	} rows[] = {
		{ { { "../victim/x", NULL, '0', 0644, "x" } }, "not a name within" },
		{ { { "a/../../victim/x", NULL, '0', 0644, "x" } }, "not a name within" },
		{ { { absolute, NULL, '0', 0644, "x" } }, "not a name within" },
		{ { { "./a", NULL, '0', 0644, "x" } }, "not a name within" },
		{ { { "a//b", NULL, '0', 0644, "x" } }, "not a name within" },
		{ { { "ok", NULL, '0', 0644, "x" }, { "out", "../victim", '2', 0777, NULL } },
		  "leads out" },
		{ { { "out", victim, '2', 0777, NULL }, { "out/x", NULL, '0', 0644, "x" } },
		  "leads out" },
		{ { { "d/x", NULL, '0', 0644, "x" },
		    { "l", "d", '2', 0777, NULL },
		    { "l/y", NULL, '0', 0644, "through" } },
		  "not a folder" },
		{ { { "l", "d", '2', 0777, NULL }, { "l", NULL, '0', 0644, "through" } }, "twice" },
		{ { { "x", NULL, '0', 0644, "1" }, { "x", NULL, '0', 0644, "2" } }, "twice" },
		{ { { "x", NULL, '0', 0644, "1" }, { "x/y", NULL, '0', 0644, "2" } },
		  "not a folder" },
		{ { { "x", NULL, '0', 0644, "1" }, { "y", "x", '1', 0644, NULL } }, "hard link" },
		{ { { "y", "/etc/passwd", '1', 0644, NULL } }, "hard link" },
		{ { { "dev", NULL, '3', 0644, NULL } }, "neither a file" },
		{ { { "dev", NULL, '4', 0644, NULL } }, "neither a file" },
		{ { { "fifo", NULL, '6', 0644, NULL } }, "neither a file" },
		{ { { "dir", NULL, '5', 0755, NULL } }, "neither a file" },
		{ { { "su", NULL, '0', 04755, "x" } }, "set-id" },
		{ { { "sg", NULL, '0', 02755, "x" } }, "set-id" },
	};

	must(fs_mkdirs(victim, &err), err);
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(sb_release) struct sb tar = SB_INIT;

		for (size_t e = 0; e < 3 && rows[i].entries[e].name; e++)
			put_entry(&tar, &rows[i].entries[e]);
		write_tar(f, &tar);
		assert_refused(f, rows[i].why);
	}
}

static void an_archive_that_would_fill_the_disk_is_refused_before_it_does(void **state)
{
	struct fixture *f = *state;
	AUTO(auto_free) char *victim = fs_join(f->scratch, "victim");
	AUTO(sb_release) struct sb tar = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;
	const struct raw big = { "big", NULL, '0', 0644, NULL };

	must(fs_mkdirs(victim, &err), err);
	put_header(&tar, &big, (uint64_t)4 << 30);
	write_tar(f, &tar);
	assert_refused(f, "1 GiB");
}

static void what_is_no_archive_or_cut_short_is_refused(void **state)
{
	struct fixture *f = *state;
	AUTO(auto_free) char *victim = fs_join(f->scratch, "victim");
	AUTO(sb_release) struct sb whole = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;

	must(fs_mkdirs(victim, &err), err);
	pack_samples(f->archive);
	must(fs_read(f->archive, 1 << 20, &whole, &err), err);
	for (size_t cut = 1; cut < whole.len; cut += 13) {
		must(fs_write_atomic(f->archive, whole.text, cut, 0600, &err), err);
		assert_refused(f, "source bundle");
	}
	must(fs_write_atomic(f->archive, "", 0, 0600, &err), err);
	assert_refused(f, "source bundle");
	must(fs_write_atomic(f->archive, "not an archive at all", 21, 0600, &err), err);
	assert_refused(f, "source bundle");
	assert_int_equal(unlink(f->archive), 0);
	assert_refused(f, "source bundle");
}

/* Lines of all lengths, which are pressed well and differently everywhere. */
static int fill_large(void *arg, const struct archive_member *member, struct archive_sink *sink,
		      struct err **err)
{
	uint64_t left = member->size, number = 0;
	char line[64];

	(void)arg;
	while (left > 0) {
		int len = snprintf(line, sizeof line, "%s %llu\n", member->path,
				   (unsigned long long)(number++ * 2654435761u % 1000003));
		size_t part = (uint64_t)len < left ? (size_t)len : (size_t)left;

		if (archive_sink_add(sink, line, part, err) < 0)
			return -1;
		left -= part;
	}
	return 0;
}

/* Four files, of which one ends at the end of a block's record. */
static void pack_large(const char *path, struct sb *ret)
{
	static const struct archive_member members[] = {
		{ "a", 0100644, 512 * 1023, NULL },
		{ "b", 0100644, 1500000, NULL },
		{ "c", 0100755, 512 * 2047, NULL },
		{ "d", 0100644, 777777, NULL },
	};
	AUTO(auto_close) int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	AUTO(err_freep) struct err *err = NULL;

	must(archive_pack(fd, members, STK_LENGTH(members), fill_large, NULL, &err), err);
	sb_clear(ret);
	must(fs_read(path, 8 << 20, ret, &err), err);
}

static void one_thread_and_many_make_the_same_bytes(void **state)
{
	struct fixture *f = *state;
	AUTO(sb_release) struct sb many = SB_INIT, one = SB_INIT;
	cpu_set_t all, first;
	size_t cpu = 0;

	pack_large(f->archive, &many);
	assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&first);
	CPU_SET(cpu, &first);
	assert_int_equal(sched_setaffinity(0, sizeof first, &first), 0);
	pack_large(f->archive, &one);
	assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
	assert_int_equal(many.len, one.len);
	assert_memory_equal(many.text, one.text, one.len);
}

static void what_is_cut_between_two_blocks_is_refused(void **state)
{
	static const char begin[] = { 0x1f, (char)0x8b, 8, 0, 0, 0, 0, 0 };
	struct fixture *f = *state;
	AUTO(auto_free) char *victim = fs_join(f->scratch, "victim");
	AUTO(sb_release) struct sb whole = SB_INIT;
	AUTO(err_freep) struct err *err = NULL;
	int cuts = 0;

	must(fs_mkdirs(victim, &err), err);
	pack_large(f->archive, &whole);
	for (size_t cut = 1; cut + sizeof begin < whole.len; cut++) {
		if (memcmp(whole.text + cut, begin, sizeof begin) != 0)
			continue;
		must(fs_write_atomic(f->archive, whole.text, cut, 0600, &err), err);
		assert_refused(f, "source bundle");
		cuts++;
	}
	assert_true(cuts >= 6);
	must(fs_write_atomic(f->archive, whole.text, whole.len, 0600, &err), err);
	must(archive_unpack(f->archive, f->dest, &err), err);
}

static void a_destination_that_exists_is_refused_and_kept(void **state)
{
	struct fixture *f = *state;
	AUTO(auto_free) char *inside = fs_join(f->dest, "mine");
	AUTO(err_freep) struct err *err = NULL;

	pack_samples(f->archive);
	must(fs_mkdirs(f->dest, &err), err);
	assert_int_equal(archive_unpack(f->archive, f->dest, &err), -1);
	assert_int_equal(err->os_errno, 17);
	err_freep(&err);
	must(fs_write_atomic(inside, "x", 1, 0600, &err), err);
	assert_int_equal(archive_unpack(f->archive, f->dest, &err), -1);
	assert_true(fs_exists(inside));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(what_was_packed_is_unpacked),
		T(packing_twice_gives_the_same_bytes_in_any_locale_and_at_any_time),
		T(other_tools_can_read_it),
		T(content_that_is_not_as_announced_is_an_error),
		T(what_could_not_be_unpacked_is_not_packed),
		T(links_stay_inside),
		T(hostile_archives_are_refused_and_leave_nothing),
		T(an_archive_that_would_fill_the_disk_is_refused_before_it_does),
		T(what_is_no_archive_or_cut_short_is_refused),
		T(one_thread_and_many_make_the_same_bytes),
		T(what_is_cut_between_two_blocks_is_refused),
		T(a_destination_that_exists_is_refused_and_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
