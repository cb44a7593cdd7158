/*
 * A world of its own for tests of settings and credentials: an empty home, none of the
 * caller's AWS variables, and the two shared files as a test writes them.
 */
#ifndef STK_TESTS_UNIT_AWS_WORLD_H
#define STK_TESTS_UNIT_AWS_WORLD_H

#include "aws/credentials/settings.h"
#include "tests/unit/base/files.h"

extern char **environ;

/* The test's own folder is the home; nothing of AWS is set. */
static inline int world_setup(void **state)
{
	if (scratch_setup(state) < 0)
		return -1;
	for (;;) {
		AUTO(auto_free) char *name = NULL;

		for (char **row = environ; *row && !name; row++)
			if (strncmp(*row, "AWS_", 4) == 0 || strncmp(*row, "REQUESTS_CA", 11) == 0)
				name = mem_copy_n(*row, strcspn(*row, "="));
		if (!name)
			break;
		unsetenv(name);
	}
	setenv("HOME", *state, 1);
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	aws_settings_forget();
	return 0;
}

static inline int world_teardown(void **state)
{
	aws_settings_forget();
	return scratch_teardown(state);
}

/* Write ~/.aws/NAME. */
static inline void write_shared(void **state, const char *name, const char *text)
{
	AUTO(auto_free) char *folder = fs_join(*state, ".aws");
	AUTO(err_freep) struct err *err = NULL;

	fs_mkdirs(folder, &err);
	assert_no_error(err);
	put(folder, name, text);
	aws_settings_forget();
}

/* The error's message and hint hold these. */
#define assert_error(err, want_code, part)                                                         \
	do {                                                                                       \
		AUTO(auto_free) char *words_ = (err) ? err_format(err) : NULL;                     \
		if (!words_)                                                                       \
			fail_msg("no error, and '%s' was expected", (part));                       \
		assert_contains(words_, (part));                                                   \
		assert_int_equal((err)->code, (want_code));                                        \
		assert_non_null((err)->hint);                                                      \
	} while (0)

#define test_in_world(f) cmocka_unit_test_setup_teardown(f, world_setup, world_teardown)

#endif
