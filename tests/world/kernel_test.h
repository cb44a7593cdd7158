/* What the tests of the kernel share: a fresh machine for each, and programs from functions. */
#ifndef STK_TESTS_WORLD_KERNEL_TEST_H
#define STK_TESTS_WORLD_KERNEL_TEST_H

#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tests/world/call.h"
#include "tests/world/kernel_internal.h"
#include "tests/world/tree.h"

/* Within a program no assertion of cmocka may fail: it would jump to another stack. */
#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			world_broken(#condition);                                                  \
	} while (0)

static struct machine *machine;
static int results[16]; /* what the programs tell the test */

/* Setup of each test. */
static inline int fresh_machine(void **state)
{
	static int number;
	char host[32];

	(void)state;
	snprintf(host, sizeof host, "host-%d", ++number);
	chance_seed(1, (uint64_t)number);
	machine = machine_new(host, 1800000000 * WORLD_S);
	memset(results, 0, sizeof results);
	return 0;
}

/* Has an executable file stand for the function; its path, which is never freed. */
static inline char *install(program_fn fn)
{
	static int number;
	char *path = world_zero(32), *name = world_zero(32), line[64];

	snprintf(name, 32, "program-%d", ++number);
	snprintf(path, 32, "/bin/%s", name);
	snprintf(line, sizeof line, "\177ELF world %s\n", name);
	program_register(name, fn);
	tree_put(machine, path, line, strlen(line), 0755);
	return path;
}

static inline struct process *start(program_fn fn)
{
	char *path = install(fn), *argv[] = { path, NULL }, *envp[] = { (char *)"HOME=/", NULL };
	struct process *process = process_start(&(struct process_start){
		.machine = machine, .program = path, .argv = argv, .envp = envp });

	assert_non_null(process);
	return process;
}

/* In a program: starts another; flags of posix_spawnattr_setflags(). */
static inline pid_t spawn(char *path, short flags)
{
	char *argv[] = { path, NULL }, *envp[] = { NULL };
	posix_spawnattr_t attributes;
	pid_t pid = -1;

	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, flags);
	MUST(posix_spawn(&pid, path, NULL, &attributes, argv, envp) == 0);
	posix_spawnattr_destroy(&attributes);
	return pid;
}

static inline void play(void)
{
	world_play_until(WORLD_NEVER);
}

static inline void pause_ms(long ms)
{
	const struct timespec pause = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&pause, NULL);
}

#endif
