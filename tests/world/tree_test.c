/* Files of the simulated world, by small programs that run in it: what a loss of power leaves, full
 * disks, locks that wait, /proc, times, and what a halt forgets. That names, bytes and errors are
 * as the kernel's is tested in conform/. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/world/call.h"
#include "tests/world/kernel_internal.h"
#include "tests/world/tree.h"

#define WALL_S 1800000000

static struct machine *machine;
static struct disk *disk; /* at /disk */

static void must(bool right, const char *what)
{
	if (!right)
		world_broken(what);
}
#define MUST(condition) must(condition, #condition)

/* What the programs tell the test. */
static int results[16];

static int started(void **state)
{
	static int number;
	char host[16];

	(void)state;
	snprintf(host, sizeof host, "host-%d", ++number);
	machine = machine_new(host, WALL_S * WORLD_S);
	disk = disk_new(DISK_LOCAL, "disk");
	tree_mount(machine->root, "/disk", disk);
	memset(results, 0, sizeof results);
	return 0;
}

static struct process *start(const char *program)
{
	char *argv[] = { (char *)(uintptr_t)program, (char[]){ "second" }, NULL };
	char *envp[] = { (char[]){ "NAME=value" }, NULL };
	char path[64], line[64];
	struct process *process;

	snprintf(path, sizeof path, "/bin/%s", program);
	snprintf(line, sizeof line, "\177ELF world %s\n", program);
	tree_put(machine, path, line, strlen(line), 0755);
	process = process_start(&(struct process_start){
		.machine = machine, .program = path, .argv = argv, .envp = envp });
	assert_non_null(process);
	return process;
}

static void play(const char *program)
{
	start(program);
	world_play_until(WORLD_NEVER);
}

/* ---- loss of power ---- */

static void put(const char *path, const char *text, bool sync)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	MUST(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	MUST(!sync || fsync(fd) == 0);
	close(fd);
}

static void sync_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	MUST(fd >= 0 && fsync(fd) == 0);
	close(fd);
}

static int writer(int argc, char **argv)
{
	(void)argc, (void)argv;
	put("/disk/safe", "first", true);
	put("/disk/name", "bytes are not synced", false);
	put("/disk/old", "old", true);
	put("/disk/gone", "gone", true);
	sync_folder("/disk");
	put("/disk/bytes", "name is not synced", true);
	put("/disk/new", "new", true);
	MUST(rename("/disk/new", "/disk/old") == 0);
	MUST(unlink("/disk/gone") == 0);
	MUST(mkdir("/disk/folder", 0700) == 0);
	put("/disk/folder/inner", "inner", true);
	return 0;
}

static bool says(const char *path, const char *text)
{
	char *found = tree_get(machine, path, NULL);
	bool same = found && strcmp(found, text) == 0;

	free(found);
	return same;
}

static void test_power_takes_what_was_not_synced(void **state)
{
	int name_lost = 0, bytes_lost = 0, renamed = 0, resurrected = 0, folder = 0, inner = 0;

	for (int i = 0; i < 200; i++) {
		bool old, new;

		chance_seed(7, (uint64_t)i);
		started(state);
		play("writer");
		machine_halt(machine, true);
		assert_true(says("/disk/safe", "first"));
		/* A synced name stays, whatever its bytes. */
		assert_true(tree_exists(machine, "/disk/name"));
		bytes_lost += !says("/disk/name", "bytes are not synced");
		/* A rename is all or nothing, and synced bytes are whole. */
		old = says("/disk/old", "old");
		new = says("/disk/old", "new");
		assert_true(old || new);
		assert_false(new &&tree_exists(machine, "/disk/new"));
		renamed += new;
		resurrected += tree_exists(machine, "/disk/gone");
		assert_true(!tree_exists(machine, "/disk/gone") || says("/disk/gone", "gone"));
		name_lost += !tree_exists(machine, "/disk/bytes");
		assert_true(!tree_exists(machine, "/disk/bytes") ||
			    says("/disk/bytes", "name is not synced"));
		folder += tree_exists(machine, "/disk/folder");
		inner += tree_exists(machine, "/disk/folder/inner");
	}
	assert_in_range(name_lost, 40, 160);
	assert_in_range(bytes_lost, 40, 180);
	assert_in_range(renamed, 20, 160);
	assert_in_range(resurrected, 40, 160);
	assert_in_range(folder, 40, 160);
	assert_in_range(inner, 10, folder - 10);
}

static int syncer(int argc, char **argv)
{
	(void)argc, (void)argv;
	put("/disk/a", "text", false);
	sync_folder("/disk");
	MUST(rename("/disk/a", "/disk/b") == 0);
	return 0;
}

/* By itself, after a while. */
static void test_the_kernel_writes_back(void **state)
{
	for (int i = 0; i < 20; i++) {
		started(state);
		play("syncer");
		world_play_until(now_ns + 60 * WORLD_S);
		now_ns += 60 * WORLD_S;
		machine_halt(machine, true);
		assert_true(says("/disk/b", "text"));
		assert_false(tree_exists(machine, "/disk/a"));
	}
}

static int halter(int argc, char **argv)
{
	(void)argc, (void)argv;
	put("/tmp/a", "in memory", true);
	put("/disk/a", "on disk", false);
	return 0;
}

static void test_a_halt_forgets_memory_only(void **state)
{
	(void)state;
	play("halter");
	assert_true(says("/tmp/a", "in memory"));
	machine_halt(machine, false);
	machine_boot(machine);
	assert_false(tree_exists(machine, "/tmp/a"));
	assert_true(says("/disk/a", "on disk"));
}

/* ---- room ---- */

static int filler(int argc, char **argv)
{
	char *bytes = calloc(1, 20000);
	int fd = open("/disk/a", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	int reserve = open("/disk/reserve", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	(void)argc, (void)argv;
	results[0] = posix_fallocate(reserve, 0, 8192);
	results[1] = (int)write(fd, bytes, 20000);
	results[2] = (int)write(fd, bytes, 20000);
	results[3] = errno;
	results[4] = posix_fallocate(reserve, 0, 16384);
	unlink("/disk/reserve");
	close(reserve);
	results[5] = (int)write(fd, bytes, 8000);
	results[6] = open("/disk/b", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	results[7] = open("/disk/c", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	results[8] = errno;
	free(bytes);
	return 0;
}

static void test_a_full_disk_takes_a_part(void **state)
{
	(void)state;
	disk_limit(disk, 5 * 4096, 3, false);
	play("filler");
	assert_int_equal(results[0], 0);
	assert_int_equal(results[1], 3 * 4096);
	assert_int_equal(results[2], -1);
	assert_int_equal(results[3], ENOSPC);
	assert_int_equal(results[4], ENOSPC);
	assert_int_equal(results[5], 8000);
	assert_true(results[6] >= 0);
	assert_true(results[7] >= 0); /* the reserve's inode */
}

static void test_a_quota_has_its_own_error(void **state)
{
	(void)state;
	disk_limit(disk, 4096, 2, true);
	play("filler");
	assert_int_equal(results[0], EDQUOT);
	assert_int_equal(results[2], -1);
	assert_int_equal(results[3], EDQUOT);
	assert_true(results[6] >= 0);
	assert_int_equal(results[7], -1);
	assert_int_equal(results[8], EDQUOT);
}

/* ---- numbers and times ---- */

static ino_t number_of(const char *path)
{
	struct stat st;

	put(path, "a", false);
	MUST(stat(path, &st) == 0);
	MUST(unlink(path) == 0);
	return st.st_ino;
}

static int looker(int argc, char **argv)
{
	struct stat st;
	struct statx more;
	int fd;

	(void)argc, (void)argv;
	results[0] = number_of("/disk/a") == number_of("/disk/b");
	results[1] = number_of("/tmp/a") == number_of("/tmp/b");
	fd = open("/disk/c", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	MUST(unlink("/disk/c") == 0);
	MUST(fstat(fd, &st) == 0);
	results[2] = st.st_ino == number_of("/disk/b"); /* it is still open */
	put("/disk/d", "a", false);
	nanosleep(&(struct timespec){ .tv_sec = 100 }, NULL);
	put("/disk/d", "b", false);
	MUST(stat("/disk/d", &st) == 0);
	MUST(statx(AT_FDCWD, "/disk/d", 0, STATX_BTIME, &more) == 0);
	results[3] = (int)(st.st_mtim.tv_sec - more.stx_btime.tv_sec);
	results[4] = (int)(st.st_mtim.tv_sec - WALL_S);
	return 0;
}

static void test_numbers_and_times_are_as_on_ext4(void **state)
{
	int64_t before_s = now_ns / WORLD_S;

	(void)state;
	machine->wall_ns = WALL_S * WORLD_S;
	play("looker");
	assert_int_equal(results[0], 1);
	assert_int_equal(results[1], 0);
	assert_int_equal(results[2], 0);
	assert_int_equal(results[3], 100);
	assert_in_range(results[4] - before_s, 100, 101);
}

/* ---- locks ---- */

static int holder(int argc, char **argv)
{
	int fd = open("/disk/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	(void)argc, (void)argv;
	MUST(flock(fd, LOCK_EX) == 0);
	nanosleep(&(struct timespec){ .tv_sec = 1000 }, NULL);
	return 0;
}

static int waiter(int argc, char **argv)
{
	int fd = open("/disk/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	(void)argc, (void)argv;
	nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
	results[0] = flock(fd, LOCK_EX | LOCK_NB);
	results[1] = errno;
	MUST(flock(fd, LOCK_EX) == 0);
	results[2] = (int)(now_ns / WORLD_S);
	return 0;
}

static void kill_it(void *arg)
{
	process_signal(arg, SIGKILL);
}

static void test_a_lock_ends_with_its_process(void **state)
{
	int64_t begin_s = now_ns / WORLD_S;
	struct process *process = start("holder");

	(void)state;
	start("waiter");
	world_at(now_ns + 50 * WORLD_S, kill_it, process);
	world_play_until(WORLD_NEVER);
	assert_int_equal(results[0], -1);
	assert_int_equal(results[1], EWOULDBLOCK);
	assert_in_range(results[2] - begin_s, 50, 51);
}

/* ---- /proc ---- */

static int reader(int argc, char **argv)
{
	char text[4096], path[64], *at;
	struct stat a, b;
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t len = read(fd, text, sizeof text - 1);
	FILE *file;

	(void)argc, (void)argv;
	MUST(len > 0);
	text[len] = '\0';
	results[0] = (int)strtol(text, NULL, 10) == getpid();
	MUST((at = strrchr(text, ')')) != NULL);
	results[1] = (int)strtol(at + 4, NULL, 10);
	close(fd);
	snprintf(path, sizeof path, "/proc/%d/cmdline", getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = read(fd, text, sizeof text);
	results[2] = len == 14 && memcmp(text, "reader\0second", 14) == 0;
	close(fd);
	file = fopen("/proc/self/status", "re");
	while (fgets(text, sizeof text, file))
		if (strncmp(text, "SigCgt:", 7) == 0)
			results[3] = (int)strtoull(text + 7, NULL, 16);
	fclose(file);
	fd = open("/disk/a", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	MUST(stat(path, &a) == 0 && fstat(fd, &b) == 0);
	results[4] = a.st_ino == b.st_ino;
	results[5] = (int)readlink(path, text, sizeof text);
	results[6] = open("/dev/kmsg", O_RDONLY | O_CLOEXEC) < 0 ? errno : 0;
	return 0;
}

static void test_proc_tells_of_processes(void **state)
{
	(void)state;
	play("reader");
	assert_int_equal(results[0], 1);
	assert_int_equal(results[1], 1);
	assert_int_equal(results[2], 1);
	assert_int_equal(results[3], 0);
	assert_int_equal(results[4], 1);
	assert_int_equal(results[5], 7);
	assert_int_equal(results[6], ENOENT);
}

/* As outlet.c does it: a description of its own, so that the other one's flags stay. */
static int opener(int argc, char **argv)
{
	char path[64];
	int fds[2], again;

	(void)argc, (void)argv;
	MUST(pipe2(fds, O_CLOEXEC) == 0);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fds[1]);
	again = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	MUST(again >= 0);
	results[0] = fcntl(again, F_GETFL) & O_NONBLOCK;
	results[1] = fcntl(fds[1], F_GETFL) & O_NONBLOCK;
	close(fds[1]);
	results[2] = (int)write(again, "abc", 3);
	results[3] = (int)read(fds[0], path, sizeof path);
	close(again);
	results[4] = (int)read(fds[0], path, sizeof path);
	return 0;
}

static void test_a_pipe_is_opened_again(void **state)
{
	(void)state;
	play("opener");
	assert_int_equal(results[0], O_NONBLOCK);
	assert_int_equal(results[1], 0);
	assert_int_equal(results[2], 3);
	assert_int_equal(results[3], 3);
	assert_int_equal(results[4], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_power_takes_what_was_not_synced),
		cmocka_unit_test(test_the_kernel_writes_back),
		cmocka_unit_test_setup(test_a_halt_forgets_memory_only, started),
		cmocka_unit_test_setup(test_a_full_disk_takes_a_part, started),
		cmocka_unit_test_setup(test_a_quota_has_its_own_error, started),
		cmocka_unit_test_setup(test_numbers_and_times_are_as_on_ext4, started),
		cmocka_unit_test_setup(test_a_lock_ends_with_its_process, started),
		cmocka_unit_test_setup(test_proc_tells_of_processes, started),
		cmocka_unit_test_setup(test_a_pipe_is_opened_again, started),
	};

	program_register("writer", writer);
	program_register("syncer", syncer);
	program_register("halter", halter);
	program_register("filler", filler);
	program_register("looker", looker);
	program_register("holder", holder);
	program_register("waiter", waiter);
	program_register("reader", reader);
	program_register("opener", opener);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
