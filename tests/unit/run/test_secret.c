/* Where the value of a secret comes from, and what is said where there is none: never a part of it.
 * See jobs/run/plan/secret.h. */
#include "jobs/run/plan/secret.h"

#include <sys/stat.h>

#include "tests/unit/checkpoint/trees.h"

static char dir[64];

static int set_up(void **state)
{
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/stoker-secret-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	AUTO(err_freep) struct err *err = NULL;

	(void)state;
	return fs_remove_tree(dir, &err);
}

static int value_of(const char *from, char **ret, struct err **err)
{
	AUTO(auto_free) char *spec = fs_join(dir, "spec.yaml");
	json_auto_t *plan = json_pack("{s:s}", "spec_file", spec);

	return secret_value(plan, "KEY", from, ret, err);
}

static void it_comes_from_the_environment_or_a_file_beside_the_spec(void **state)
{
	static const struct {
		const char *from, *value;
	} rows[] = {
		{ "env:STOKER_TEST_SECRET", " s3cret\n" }, { "file:key", "s3cret" },
		{ "file:sub/lines", "s3\ncret" },          { "file:empty", "" },
		{ "env_file:.env", "s3cret two" },         { "env_file:sub/twice.env", "later" }
	};

	(void)state;
	put_text(dir, ".env", "OTHER='x'\nexport KEY=\"s3cret two\" # y\nKEYS=no\n");
	put_text(dir, "sub/twice.env", "KEY=first\nKEY=later\n");
	setenv("STOKER_TEST_SECRET", " s3cret\n", 1);
	put_text(dir, "key", "s3cret\n\n");
	put_text(dir, "sub/lines", "s3\ncret\n");
	put_text(dir, "empty", "\n");
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *value = NULL;
		struct err *err = NULL;

		value_of(rows[i].from, &value, &err);
		assert_no_error(err);
		assert_string_equal(value, rows[i].value);
	}
}

static void one_that_is_not_there_is_named_with_its_source(void **state)
{
	static const struct {
		const char *from, *words, *hint;
	} rows[] = {
		{ "env:STOKER_TEST_NONE",
		  "secret 'KEY': the variable 'STOKER_TEST_NONE' is not set",
		  "export STOKER_TEST_NONE before you start stoker" },
		{ "file:none", "none': no such file",
		  "correct secrets.KEY, or write the secret there" },
		{ "file:folder", "folder': not a regular file",
		  "correct secrets.KEY, or write the secret there" },
		{ "file:pipe", "pipe': not a regular file",
		  "correct secrets.KEY, or write the secret there" },
		{ "file:loop", "loop': Too many levels of symbolic links",
		  "correct secrets.KEY, or write the secret there" },
		{ "file:nul", "secret 'KEY'", "the secret must be text" },
		{ "file:long", "secret 'KEY'", "check that the file is the right one" },
		{ "moon:x", "secret 'KEY': unknown source", NULL },
		{ "env_file:none.env", "none.env': No such file",
		  "put the file back, with KEY in it" },
		{ "env_file:folder", "cannot read", "put the file back" },
		{ "env_file:other.env", "variable 'KEY' is no more in", "write KEY= there again" },
		{ "env_file:open.env", "a quote that is not closed", "close the quote" },
		{ "env_file:nul", "variable 'KEY' of env_file", "must be text" },
	};
	AUTO(auto_free) char *folder = fs_join(dir, "folder");
	AUTO(auto_free) char *pipe = fs_join(dir, "pipe");
	AUTO(auto_free) char *loop = fs_join(dir, "loop");
	AUTO(auto_free) char *much = mem_zero(1, ((size_t)64 << 10) + 2);

	(void)state;
	unsetenv("STOKER_TEST_NONE");
	assert_int_equal(mkdir(folder, 0700), 0);
	assert_int_equal(mkfifo(pipe, 0600), 0);
	assert_int_equal(symlink(loop, loop), 0);
	put_bytes(dir, "nul", "s3\0cret", 7);
	memset(much, 'x', ((size_t)64 << 10) + 1);
	put_text(dir, "long", much);
	put_text(dir, "other.env", "KEYS=s3cret\n");
	put_text(dir, "open.env", "KEY=s3cret\nKEY='s3cret\n");
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(auto_free) char *value = NULL;
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(value_of(rows[i].from, &value, &err), -1);
		assert_null(value);
		assert_int_equal(err->code, EXIT_REFUSED);
		assert_non_null(strstr(err->message, rows[i].words));
		assert_null(strstr(err->message, "s3"));
		if (rows[i].hint)
			assert_non_null(strstr(err->hint, rows[i].hint));
	}
}

#define OF(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		OF(it_comes_from_the_environment_or_a_file_beside_the_spec),
		OF(one_that_is_not_there_is_named_with_its_source),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
