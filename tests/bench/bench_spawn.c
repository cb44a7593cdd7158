/*
 * How often a second a process is started and waited for: by proc_spawn, with which
 * stoker starts agents and stoker-node starts commands, or by posix_spawn alone, in a
 * process that holds so much memory.
 */
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/base/process/proc.h"
#include "tests/bench/bench.h"

#define WARM_UP 50 /* not counted */

static char *const argv_of_child[] = { "/bin/true", NULL };

static pid_t start_own(void)
{
	struct proc_start start = { .program = argv_of_child[0],
				    .argv = argv_of_child,
				    .envp = environ,
				    .in = -1,
				    .out = -1,
				    .err = -1 };
	struct err *err = NULL;
	pid_t pid;

	if (proc_spawn(&start, &pid, &err) < 0)
		give_up("proc_spawn", err);
	return pid;
}

static pid_t start_bare(void)
{
	pid_t pid;

	errno = posix_spawn(&pid, argv_of_child[0], NULL, NULL, argv_of_child, environ);
	if (errno)
		give_up("posix_spawn", NULL);
	return pid;
}

int main(int argc, char **argv)
{
	long count, mebibytes, ended_well = 0;
	size_t bytes;
	double begin = 0, seconds;
	char *memory;
	bool own;

	if (argc != 4)
		give_up("usage: bench_spawn own|bare COUNT MIB", NULL);
	own = strcmp(argv[1], "own") == 0;
	count = number_of(argv[2]);
	mebibytes = number_of(argv[3]);
	bytes = (size_t)mebibytes << 20;
	memory = malloc(bytes + 1);
	if (!memory)
		give_up("malloc", NULL);
	memset(memory, 1, bytes + 1); /* each page is really there */
	for (long i = -WARM_UP; i < count; i++) {
		pid_t pid = own ? start_own() : start_bare();
		int status;

		if (i < 0)
			ended_well--;
		else if (i == 0)
			begin = wall_seconds();
		if (waitpid(pid, &status, 0) == pid && WIFEXITED(status) &&
		    WEXITSTATUS(status) == 0)
			ended_well++;
	}
	seconds = wall_seconds() - begin;
	printf("{\"seconds\": %.6f, \"ended_well\": %ld, \"held\": %d}\n", seconds, ended_well,
	       memory[bytes]);
	free(memory);
	return 0;
}
