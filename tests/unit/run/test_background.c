/* A driver in the background, which is this program again: what is said where it ends at once. See
 * jobs/run/background.h. */
#include "jobs/run/background.h"

#include <signal.h>
#include <sys/stat.h>

#include "aws/credentials/settings.h"
#include "tests/unit/run/journal_fixture.h"

#define WORDS "TEST_BACKGROUND_WORDS" /* that the driver leaves */
#define ENDS  "TEST_BACKGROUND_EXIT"  /* its exit status; negative: a signal */

/* Starts a driver that says this and ends so, and waits for it. */
static int start(const char *words, const char *ends, pid_t *ret_pid, struct err **err)
{
	AUTO(background_freep) struct background *background = NULL;

	setenv(WORDS, words, 1);
	setenv(ENDS, ends, 1);
	*ret_pid = -1;
	if (background_start(journal, "r", &background, err) < 0)
		return -1;
	return background_wait(background, ret_pid, err);
}

static void its_last_words_are_the_reason_that_it_ended_at_once(void **state)
{
	static const struct {
		const char *words, *ends, *message;
		enum exit_code code;
	} rows[] = {
		{ "no luck\n\n", "4", "the background driver of run r ended at once: no luck",
		  EXIT_REFUSED },
		{ "", "4", "the background driver of run r ended at once: no output",
		  EXIT_REFUSED },
		{ "a \033[1mbold one", "7",
		  "the background driver of run r ended at once: a \\x1b[1mbold one", EXIT_BUSY },
		{ "killed", "-9", "the background driver of run r ended at once: killed",
		  EXIT_DEFECT },
	};
	AUTO(auto_free) char *log = mem_format("%s/runs/r/driver.log", dir);

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(err_freep) struct err *err = NULL;
		pid_t pid;

		assert_int_equal(start(rows[i].words, rows[i].ends, &pid, &err), -1);
		assert_string_equal(err->message, rows[i].message);
		assert_int_equal(err->code, rows[i].code);
		assert_non_null(strstr(err->hint, log)); /* that of the earlier ones too */
	}
}

static void one_that_had_nothing_to_do_is_no_error(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	pid_t pid;

	(void)state;
	assert_int_equal(start("the run has ended", "0", &pid, &err), 0);
	assert_null(err);
	assert_int_equal(pid, 0);
}

static void what_is_in_the_way_of_its_output_is_named(void **state)
{
	AUTO(auto_free) char *folder = mem_format("%s/runs/r", dir);
	AUTO(auto_free) char *log = fs_join(folder, "driver.log");
	pid_t pid;

	(void)state;
	for (int i = 0; i < 2; i++) {
		AUTO(err_freep) struct err *err = NULL;

		assert_int_equal(fs_mkdirs(folder, &err), 0);
		assert_int_equal(i ? mkfifo(log, 0600) : mkdir(log, 0700), 0);
		assert_int_equal(start("", "0", &pid, &err), -1);
		assert_int_equal(err->code, EXIT_REFUSED);
		assert_non_null(strstr(err->message, "output of drivers"));
		assert_non_null(strstr(err->message, i ? "a pipe" : "a folder"));
		assert_non_null(err->hint);
		assert_int_equal(i ? unlink(log) : rmdir(log), 0);
	}
}

/* The program is called as a driver is: with the place of its state, profile and region, and
 * quietly. */
static int be_driver(int argc, char **argv)
{
	const char *ends = getenv(ENDS);
	int status = ends ? atoi(ends) : 99;

	fputs(getenv(WORDS), stderr);
	if (argc != 10 || strcmp(argv[3], "--quiet") != 0 || strcmp(argv[4], "--profile") != 0 ||
	    strcmp(argv[5], "mine") != 0 || strcmp(argv[6], "--region") != 0 ||
	    strcmp(argv[7], "eu-west-1") != 0 || strcmp(argv[8], "resume") != 0 ||
	    strcmp(argv[9], "r") != 0)
		return 98;
	if (status < 0)
		raise(-status);
	return status;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(its_last_words_are_the_reason_that_it_ended_at_once),
		TEST(one_that_had_nothing_to_do_is_no_error),
		TEST(what_is_in_the_way_of_its_output_is_named),
	};

	if (argc > 2 && strcmp(argv[1], "--state") == 0)
		return be_driver(argc, argv);
	aws_settings_option("mine", "eu-west-1");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
