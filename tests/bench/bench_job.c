/*
 * A job of two phases that says when it began and when it ended, to the nanosecond,
 * and fills a cache as JAX does: bench_job STAMPS ENTRY --max_steps N. The entry is a
 * file that JAX has written; each of the graphs gets a copy. Also the bare way from one
 * phase to the next, for comparison: bench_job --bare STAMPS JOURNAL PROGRAM.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "tests/bench/bench.h"

#define GRAPHS 8

static void stamp(const char *path, const char *what, const char *steps)
{
	struct timespec now;
	int fd;

	clock_gettime(CLOCK_REALTIME, &now);
	fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || dprintf(fd, "%s %s %" PRId64 "\n", what, steps,
			      (int64_t)now.tv_sec * 1000000000 + now.tv_nsec) < 0)
		give_up(path, NULL);
	close(fd);
}

static void write_whole(const char *path, const struct sb *bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0 || write(fd, bytes->text, bytes->len) != (ssize_t)bytes->len)
		give_up(path, NULL);
	close(fd);
}

static void fill_cache(const char *folder, const char *entry)
{
	struct sb bytes = SB_INIT;
	struct err *err = NULL;

	if (fs_read(entry, (size_t)1 << 20, &bytes, &err) < 0 || fs_mkdirs(folder, &err) < 0)
		give_up(entry, err);
	for (int i = 0; i < GRAPHS; i++) {
		AUTO(auto_free) char *key = mem_format("jit_f-%064x", i + 1);
		AUTO(auto_free) char *path = mem_format("%s/%s-cache", folder, key);
		bool is_there = fs_exists(path);

		printf(is_there ? "Persistent compilation cache hit for 'jit_f' with key '%s'\n"
				: "PERSISTENT COMPILATION CACHE MISS for 'jit_f' with key '%s'\n",
		       key);
		if (is_there)
			continue;
		printf("Writing jit_f to persistent compilation cache with key '%s'\n", key);
		write_whole(path, &bytes);
		printf("Finished XLA compilation of jit(f) in 0.001 sec\n");
	}
	sb_release(&bytes);
}

/* The least work between the two: the end is waited for, one line of a journal is made durable, the
 * next process is started. */
static void hand_over(const char *stamps, const char *journal, char *program)
{
	int fd = open(journal, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600), status;

	for (int phase = 1; phase <= 2; phase++) {
		char *argv[] = { program,       (char *)(uintptr_t)stamps, "-",
				 "--max_steps", phase == 1 ? "1" : "2",    NULL };
		pid_t pid;

		if (dprintf(fd, "phase %d\n", phase) < 0 || fdatasync(fd) < 0 ||
		    posix_spawn(&pid, program, NULL, NULL, argv, environ) != 0 ||
		    waitpid(pid, &status, 0) < 0 || status != 0)
			give_up("cannot hand over", NULL);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	const char *cache = getenv("JAX_COMPILATION_CACHE_DIR");

	if (argc != 5)
		give_up("usage: bench_job STAMPS ENTRY --max_steps N", NULL);
	if (strcmp(argv[1], "--bare") == 0) {
		hand_over(argv[2], argv[3], argv[4]);
		return 0;
	}
	stamp(argv[1], "began", argv[4]);
	if (cache)
		fill_cache(cache, argv[2]);
	printf("step: %s loss: 0.5\n", argv[4]);
	fflush(stdout);
	stamp(argv[1], "ended", argv[4]);
	return 0;
}
