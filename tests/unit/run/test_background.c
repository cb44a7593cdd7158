/* A driver in the background, which is this program again: what is said where it ends at once. See
 * jobs/run/background.h. */
#include "jobs/run/background.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

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
	if (background_start(journal, "r", NULL, &background, err) < 0)
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
	struct event ev = { .kind = EV_DRIVER_TOOK_OVER,
			    .seq = 1,
			    .at = { INT64_C(1795000000000) } };
	AUTO(err_freep) struct err *err = NULL;
	pid_t pid;

	(void)state;
	EVENT_SET_STR(&ev, host, "h"); /* another driver */
	EVENT_SET(&ev, pid, 1);
	EVENT_SET(&ev, epoch, 1);
	assert_int_equal(journal_append(journal, "r", &ev, &err), 1);
	ev = (struct event){ .kind = EV_DRIVER_LEFT, .seq = 2, .at = { INT64_C(1795000000001) } };
	EVENT_SET(&ev, epoch, 1);
	assert_int_equal(journal_append(journal, "r", &ev, &err), 1);
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

static char *log_path(void)
{
	return mem_format("%s/runs/r/driver.log", dir);
}

static void its_output_is_appended_for_this_user_alone(void **state)
{
	AUTO(auto_free) char *log = log_path();
	AUTO(sb_release) struct sb text = SB_INIT_MAX(1000);
	AUTO(err_freep) struct err *err = NULL;
	struct stat meta;
	pid_t pid;

	(void)state;
	assert_int_equal(start("one\n", "4", &pid, &err), -1);
	err_freep(&err);
	assert_int_equal(start("two\n", "4", &pid, &err), -1);
	assert_string_equal(err->message, "the background driver of run r ended at once: two");
	err_freep(&err);
	assert_int_equal(fs_read(log, 1000, &text, &err), 0);
	assert_string_equal(text.text, "one\ntwo\n");
	assert_int_equal(stat(log, &meta), 0);
	assert_int_equal(meta.st_mode & 0777, 0600);
}

static void exit_statuses_that_are_no_words_of_ours_are_defects(void **state)
{
	static const struct {
		const char *ends;
		enum exit_code code;
	} rows[] = { { "1", EXIT_RUN_FAILED },
		     { "75", EXIT_UNREACHABLE },
		     { "127", (enum exit_code)127 },
		     { "128", EXIT_DEFECT },
		     { "200", EXIT_DEFECT } };

	(void)state;
	for (size_t i = 0; i < STK_LENGTH(rows); i++) {
		AUTO(err_freep) struct err *err = NULL;
		pid_t pid;

		assert_int_equal(start("\n", rows[i].ends, &pid, &err), -1);
		assert_int_equal(err->code, rows[i].code);
		assert_string_equal(err->message,
				    "the background driver of run r ended at once: no output");
	}
}

static void only_the_first_of_many_words_are_quoted(void **state)
{
	AUTO(auto_free) char *words = mem_zero(5001, 1);
	AUTO(err_freep) struct err *err = NULL;
	pid_t pid;

	(void)state;
	memset(words, 'x', 5000);
	assert_int_equal(start(words, "4", &pid, &err), -1);
	assert_int_equal(strlen(err->message),
			 strlen("the background driver of run r ended at once: ") + 4096);
}

static void one_that_takes_the_run_over_goes_on(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct event ev = { .kind = EV_DRIVER_TOOK_OVER,
			    .seq = 1,
			    .at = { INT64_C(1795000000000) } };
	pid_t pid;

	(void)state;
	EVENT_SET_STR(&ev, host, "h"); /* an earlier one */
	EVENT_SET(&ev, pid, 1);
	EVENT_SET(&ev, epoch, 1);
	assert_int_equal(journal_append(journal, "r", &ev, &err), 1);
	if (start("", "1000", &pid, &err) < 0)
		fail_msg("%s", err->message);
	assert_true(pid > 1);
	assert_int_equal(kill(pid, SIGKILL), 0); /* it lives */
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_run_that_cannot_be_read_is_not_waited_for(void **state)
{
	AUTO(journal_freep) struct journal *other = NULL;
	AUTO(background_freep) struct background *background = NULL;
	AUTO(auto_free) char *url = mem_format("dir:%s/objects", dir);
	AUTO(auto_free) char *place = mem_format("%s/objects/runs/r/events/%012d.json", dir, 1);
	AUTO(err_freep) struct err *err = NULL;
	pid_t pid;

	(void)state;
	assert_int_equal(journal_open(url, JOURNAL_WRITE, &other, &err), 0);
	assert_int_equal(fs_mkdirs(place, &err), 0);
	setenv(WORDS, "", 1);
	setenv(ENDS, "1001", 1);
	assert_int_equal(background_start(other, "r", NULL, &background, &err), 0);
	assert_int_equal(background_wait(background, &pid, &err), -1);
	assert_non_null(strstr(err->message, "event 1 of run r"));
}

/* Journals that it drives the run, and does so until it is killed. */
static int take_over(const char *state_dir)
{
	struct event ev = { .kind = EV_DRIVER_TOOK_OVER,
			    .seq = 2,
			    .at = { INT64_C(1795000000001) } };
	AUTO(journal_freep) struct journal *own = NULL;
	AUTO(err_freep) struct err *err = NULL;

	EVENT_SET_STR(&ev, host, "h");
	EVENT_SET(&ev, pid, getpid());
	EVENT_SET(&ev, epoch, 2);
	if (journal_open(state_dir, JOURNAL_WRITE, &own, &err) < 0 ||
	    journal_append(own, "r", &ev, &err) != 1)
		return 97;
	for (;;)
		pause();
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
	if (status == 1000)
		return take_over(argv[2]);
	if (status == 1001) { /* until nobody waits for it */
		alarm(2);
		pause();
	}
	return status;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(its_last_words_are_the_reason_that_it_ended_at_once),
		TEST(one_that_had_nothing_to_do_is_no_error),
		TEST(what_is_in_the_way_of_its_output_is_named),
		TEST(its_output_is_appended_for_this_user_alone),
		TEST(exit_statuses_that_are_no_words_of_ours_are_defects),
		TEST(only_the_first_of_many_words_are_quoted),
		TEST(one_that_takes_the_run_over_goes_on),
		TEST(a_run_that_cannot_be_read_is_not_waited_for),
	};

	if (argc > 2 && strcmp(argv[1], "--state") == 0)
		return be_driver(argc, argv);
	aws_settings_option("mine", "eu-west-1");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
