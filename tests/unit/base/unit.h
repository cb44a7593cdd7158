/*
 * What the unit tests of base share: cmocka with the headers it forgets, a
 * scratch folder per test, and checks inside a child process, where cmocka's own
 * assertions cannot reach.
 */
#ifndef STK_TESTS_UNIT_BASE_UNIT_H
#define STK_TESTS_UNIT_BASE_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "jobs/base/err.h"
#include "jobs/base/fs/fs.h"

/* Fails with the error's own words. */
#define assert_no_error(err)                                                                       \
	do {                                                                                       \
		if (err)                                                                           \
			fail_msg("unexpected error: %s", (err)->message);                          \
	} while (0)

#define assert_contains(text, part)                                                                \
	do {                                                                                       \
		if (!strstr((text), (part)))                                                       \
			fail_msg("'%s' is not in '%s'", (part), (text));                           \
	} while (0)

static inline int scratch_setup(void **state)
{
	const char *tmp = getenv("TMPDIR");
	char *dir = mem_format("%s/stoker-unit-XXXXXX", tmp && *tmp ? tmp : "/tmp");

	*state = mkdtemp(dir);
	return *state ? 0 : -1;
}

static inline int scratch_teardown(void **state)
{
	struct err *err = NULL;
	int result = fs_remove_tree(*state, &err);

	if (err)
		fprintf(stderr, "%s\n", err->message);
	err_freep(&err);
	free(*state);
	return result;
}

#define test_in_scratch(f) cmocka_unit_test_setup_teardown(f, scratch_setup, scratch_teardown)

/* Checks for a function run by in_child(). */
#define CHILD_SKIPS 77
#define child_check(condition)                                                                     \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: child: %s\n", __FILE__, __LINE__, #condition);     \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

/* Run `fn` in a child and return what it returned; 128 + n for a signal. */
static inline int in_child(int (*fn)(const char *), const char *arg)
{
	pid_t pid = fork();
	int status = -1;

	if (pid == 0)
		_exit(fn(arg));
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif
