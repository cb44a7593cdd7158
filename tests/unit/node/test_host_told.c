/* What is made of what the kernel tells of memory and disks, by a kernel that the test is: records
 * of its log, file systems that are full in one way or another, hierarchies of groups. */
#include "tests/unit/node/place.h"

#include <errno.h>
#include <sys/statvfs.h>

#include "jobs/node/host_evidence.h"

#define OURS   1000
#define OTHERS 1001
#define MIB    ((uint64_t)1 << 20)

/* ---- the kernel ---- */

struct record {
	const char *text; /* NULL: the read fails */
	int failure;
};

static const struct record *records;
static size_t record_count;
static bool log_is_there;
static int log_fd = -1;
static time_t slept; /* seconds that the machine was asleep since it began */
static struct statvfs disk;
static uid_t user;

int __wrap_open(const char *path, int flags, ...);
int __real_open(const char *path, int flags, ...);
ssize_t __wrap_read(int fd, void *buffer, size_t size);
ssize_t __real_read(int fd, void *buffer, size_t size);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_statvfs(const char *path, struct statvfs *ret);
uid_t __wrap_geteuid(void);

int __wrap_open(const char *path, int flags, ...)
{
	va_list more;
	int mode;

	va_start(more, flags);
	mode = flags & O_CREAT ? va_arg(more, int) : 0;
	va_end(more);
	if (strcmp(path, "/dev/kmsg") != 0)
		return __real_open(path, flags, mode);
	if (!log_is_there) {
		errno = EPERM;
		return -1;
	}
	log_fd = __real_open("/dev/null", O_RDONLY | O_CLOEXEC);
	return log_fd;
}

ssize_t __wrap_read(int fd, void *buffer, size_t size)
{
	const struct record *record = records;

	if (fd != log_fd || log_fd < 0)
		return __real_read(fd, buffer, size);
	if (record_count == 0) {
		errno = EAGAIN;
		return -1;
	}
	records++;
	record_count--;
	if (!record->text) {
		errno = record->failure;
		return -1;
	}
	assert_true(strlen(record->text) <= size);
	memcpy(buffer, record->text, strlen(record->text));
	return (ssize_t)strlen(record->text);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
	if (clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME)
		return __real_clock_gettime(clock, ret);
	*ret = (struct timespec){ .tv_sec = clock == CLOCK_BOOTTIME ? 1000 + slept : 1000 };
	return 0;
}

int __wrap_statvfs(const char *path, struct statvfs *ret)
{
	(void)path;
	*ret = disk;
	return disk.f_bsize ? 0 : -1;
}

uid_t __wrap_geteuid(void)
{
	return user;
}

/* ---- the kernel's log ---- */

static bool is_oom(const struct record *told, size_t count, int64_t since_ms)
{
	bool found;

	records = told;
	record_count = count;
	log_is_there = true;
	user = OURS;
	found = host_evidence_oom_in_kernel_log(since_ms);
	log_fd = -1;
	return found;
}

#define KILL "oom-kill:constraint=CONSTRAINT_NONE,task=python,pid=7,uid="

/* A log from before the command, or of another user's process, says nothing of it. */
static void a_kill_for_memory_counts_if_it_is_ours_and_new(void **state)
{
	static const struct {
		const char *record;
		bool ours;
	} rows[] = {
		{ "4,17,2000000,-;" KILL "1000\n", true },
		{ "4,17,2000001,-;" KILL "1000\n", true },
		{ "4,17,1999999,-;" KILL "1000\n", false },
		{ "4,17,99000000,-;" KILL "1001\n", false },
		{ "4,17,99000000,-;" KILL "10\n", false },
		{ "4,17,99000000,-;oom-kill:constraint=CONSTRAINT_NONE,task=python\n", false },
		{ "4,17,99000000,-;eth0: link is up, uid=1000\n", false },
		{ "4,17,99000000,-;not oom-kill:,uid=1000\n", false },
		{ "4,17,99000000,-\n", false },
		{ "4;" KILL "1000\n", false },
		{ "garbage", false },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		const struct record record = { rows[i].record, 0 };

		if (is_oom(&record, 1, 2000) != rows[i].ours)
			fail_msg("row %zu", i);
	}
}

/* The log's time stands still meanwhile; ours goes on. */
static void time_in_which_the_machine_slept_is_not_in_the_log(void **state)
{
	static const struct record at_2_s = { "4,17,2000000,-;" KILL "1000\n", 0 };

	(void)state;
	slept = 300;
	assert_true(is_oom(&at_2_s, 1, 302000));
	assert_false(is_oom(&at_2_s, 1, 302001));
	slept = 0;
	assert_false(is_oom(&at_2_s, 1, 302000));
}

static void the_whole_log_is_read(void **state)
{
	static const struct record told[] = {
		{ "4,1,5000000,-;first\n", 0 },
		{ NULL, EPIPE }, /* records were overwritten meanwhile */
		{ NULL, EINTR },
		{ "4,9,5000000,-;" KILL "1001\n", 0 },
		{ "4,10,5000000,-;" KILL "1000\n", 0 },
	};

	(void)state;
	assert_true(is_oom(told, STK_LENGTH(told), 0));
	assert_false(is_oom(told, STK_LENGTH(told) - 1, 0));
	assert_false(is_oom(told, 0, 0));
}

static void a_log_that_fails_or_may_not_be_read_says_nothing(void **state)
{
	static const struct record told[] = {
		{ NULL, EIO },
		{ "4,10,5000000,-;" KILL "1000\n", 0 },
	};

	(void)state;
	assert_false(is_oom(told, STK_LENGTH(told), 0));
	log_is_there = false;
	assert_false(host_evidence_oom_in_kernel_log(0));
}

/* ---- disks ---- */

static bool is_full(uid_t who)
{
	AUTO(auto_free) char *mount = NULL;

	user = who;
	mount = host_evidence_full_mount("/tmp/nowhere/else");
	return mount != NULL;
}

/* Space that is kept for root is of no use to others. */
static void a_disk_is_full_if_it_has_less_than_a_mib_for_us(void **state)
{
	static const struct {
		uint64_t all, ours; /* bytes left */
		uid_t who;
		bool full;
	} rows[] = {
		{ MIB, MIB, OURS, false },  { MIB - 1, MIB - 1, OURS, true },
		{ 5 * MIB, 0, OURS, true }, { 5 * MIB, 0, 0, false },
		{ 0, 5 * MIB, 0, true },    { 0, 0, OURS, true },
	};

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		disk = (struct statvfs){ .f_bsize = 1,
					 .f_frsize = 1,
					 .f_blocks = 100 * MIB,
					 .f_bfree = rows[i].all,
					 .f_bavail = rows[i].ours };
		if (is_full(rows[i].who) != rows[i].full)
			fail_msg("row %zu", i);
	}
}

static void a_disk_without_inodes_is_full_if_it_counts_them(void **state)
{
	static const struct {
		uint64_t inodes, left;
		bool full;
	} rows[] = { { 100, 0, true }, { 100, 1, false }, { 0, 0, false } };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		disk = (struct statvfs){ .f_bsize = 4096,
					 .f_frsize = 4096,
					 .f_blocks = 100,
					 .f_bfree = MIB,
					 .f_bavail = MIB,
					 .f_files = rows[i].inodes,
					 .f_ffree = rows[i].left,
					 .f_favail = rows[i].left };
		if (is_full(OURS) != rows[i].full)
			fail_msg("row %zu", i);
	}
}

/* Nobody writes there, so nobody failed for it: an image, /proc. */
static void what_takes_no_files_is_not_full(void **state)
{
	(void)state;
	disk = (struct statvfs){ .f_bsize = 1, .f_frsize = 1, .f_blocks = 100 };
	assert_true(is_full(OURS));
	disk.f_flag = ST_RDONLY;
	assert_false(is_full(OURS));
	disk.f_flag = 0;
	disk.f_blocks = 0;
	assert_false(is_full(OURS));
	disk.f_blocks = 100;
	disk.f_bsize = 0; /* it cannot be asked */
	assert_false(is_full(OURS));
}

/* ---- groups ---- */

/* Writes a file of our group, of a hierarchy that is mounted with this as its root and these
 * options. */
static int64_t kills(const struct place *place, const char *group, const char *root,
		     const char *options, const char *counter)
{
	AUTO(auto_free) char *cgroup_file = place_path(place, "cgroup");
	AUTO(auto_free) char *mounts_file = place_path(place, "mountinfo");
	AUTO(auto_free) char *counter_file = place_path(place, "g/job/memory.oom_control");
	AUTO(auto_free) char *cgroup = mem_format("7:memory:%s\n", group);
	AUTO(auto_free)
	char *mounts =
		mem_format("30 1 0:30 %s %s/g rw - cgroup cgroup %s\n", root, place->root, options);

	write_file(cgroup_file, cgroup, 0600);
	write_file(mounts_file, mounts, 0600);
	write_file(counter_file, counter, 0600);
	return host_evidence_oom_kills_in(cgroup_file, mounts_file);
}

static void only_a_hierarchy_of_memory_is_asked(void **state)
{
	static const struct {
		const char *options; /* of its mount */
		int64_t kills;
	} rows[] = {
		{ "memory", 5 },        { "rw,memory", 5 },      { "memory,rw", 5 },
		{ "rw,memory,cpu", 5 }, { "rw,memoryless", -1 }, { "inmemory", -1 },
		{ "rw,in-memory", -1 }, { "rw,cpu", -1 },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		int64_t got = kills(*state, "/job", "/", rows[i].options, "oom_kill 5\n");

		if (got != rows[i].kills)
			fail_msg("'%s': %lld", rows[i].options, (long long)got);
	}
}

static void a_counter_is_the_number_of_its_line(void **state)
{
	static const struct {
		const char *counter;
		int64_t kills;
	} rows[] = {
		{ "oom_kill 0\n", 0 },
		{ "oom_kill 010\n", 10 },
		{ "oom_kill_disable 3\nunder_oom 1\noom_kill 12", 12 },
		{ "oom_kill_disable 3\n", -1 },
		{ "", -1 },
	};

	for (size_t i = 0; i < STK_LENGTH(rows); i++)
		assert_int_equal(kills(*state, "/job", "/", "memory", rows[i].counter),
				 rows[i].kills);
}

/* The whole of its hierarchy is the root there. */
static void a_group_at_the_top_of_what_is_mounted_is_found(void **state)
{
	AUTO(auto_free) char *counter = place_path(*state, "g/memory.oom_control");

	write_file(counter, "oom_kill 9\n", 0600);
	assert_int_equal(kills(*state, "/", "/", "memory", ""), 9);
	assert_int_equal(kills(*state, "/docker/x", "/docker/x", "memory", ""), 9);
}

static void names_with_blanks_are_read_as_they_are(void **state)
{
	AUTO(auto_free) char *mounts = place_path(*state, "mountinfo");
	static const char *const rows[][2] = {
		{ "/a b/x", "/a b" }, { "/c\\d/x", "/c\\d" },   { "/e\\04/x", "/e\\04" },
		{ "/f\t/x", "/f\t" }, { "/g0401/x", "/g0401" },
	};

	write_file(mounts,
		   "1 0 8:1 / /a\\040b rw - ext4 /dev/a rw\n"
		   "2 0 8:1 / /c\\134d rw - ext4 /dev/a rw\n"
		   "3 0 8:1 / /e\\04 rw - ext4 /dev/a rw\n"
		   "4 0 8:1 / /f\\011 rw - ext4 /dev/a rw\n"
		   "5 0 8:1 / /g0401 rw - ext4 /dev/a rw\n"
		   "6 0 8:1 / /short rw - ext4 /dev/a\n"
		   "7 0 8:1 / /shorter rw - ext4\n",
		   0600);
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *mount = host_evidence_mount_of(rows[i][0], mounts);

		assert_string_equal(mount, rows[i][1]);
	}
	assert_null(host_evidence_mount_of("/short", mounts));
	assert_null(host_evidence_mount_of("/shorter", mounts));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_kill_for_memory_counts_if_it_is_ours_and_new),
		TEST(time_in_which_the_machine_slept_is_not_in_the_log),
		TEST(the_whole_log_is_read),
		TEST(a_log_that_fails_or_may_not_be_read_says_nothing),
		TEST(a_disk_is_full_if_it_has_less_than_a_mib_for_us),
		TEST(a_disk_without_inodes_is_full_if_it_counts_them),
		TEST(what_takes_no_files_is_not_full),
		TEST(only_a_hierarchy_of_memory_is_asked),
		TEST(a_counter_is_the_number_of_its_line),
		TEST(a_group_at_the_top_of_what_is_mounted_is_found),
		TEST(names_with_blanks_are_read_as_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
