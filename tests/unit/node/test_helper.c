/* Helpers of the agent: what ends them, and what does not. */
#include "tests/unit/node/place.h"

#include "jobs/node/helper.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEWS 'n'

/* A service that ends the connection, for instance: the write fails, and the helper goes on. */
static int write_to_nobody(const void *task, int news_fd, int orders_fd)
{
	char byte = NEWS;
	int ends[2];

	(void)task;
	(void)orders_fd;
	if (pipe(ends) < 0)
		return 1;
	close(ends[0]);
	if (write(ends[1], &byte, 1) >= 0)
		return 2;
	return write(news_fd, &byte, 1) == 1 ? 0 : 3;
}

static void a_helper_that_writes_to_nobody_lives_on(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct helper helper;
	struct pollfd news;
	char byte = 0;
	int status = -1;

	(void)state;
	signal(SIGPIPE, SIG_IGN); /* as the agent has it */
	assert_int_equal(helper_start(&helper, "test", write_to_nobody, NULL, 0, &err), 0);
	news = (struct pollfd){ .fd = helper.news_fd, .events = POLLIN };
	assert_int_equal(poll(&news, 1, -1), 1);
	assert_int_equal(read(helper.news_fd, &byte, 1), 1);
	assert_int_equal(byte, NEWS);
	assert_int_equal(waitpid(helper.pid, &status, 0), helper.pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	helper_close(&helper);
}

/* ---- input of a helper ---- */

struct given {
	char text[32];
	pid_t agent;
};

/* Says what a helper sees of itself: a line of what differs from what it should be. */
static int say_what_is_wrong(const void *task, int news_fd, int orders_fd)
{
	static const int ignored[] = { SIGTERM, SIGINT, SIGHUP };
	const struct given *given = task;
	struct sb wrong = SB_INIT;
	char name[16] = "";
	int death = 0;
	sigset_t blocked;

	prctl(PR_GET_NAME, name);
	prctl(PR_GET_PDEATHSIG, &death);
	sigprocmask(SIG_SETMASK, NULL, &blocked);
	if (strcmp(given->text, "a task") != 0 || getppid() != given->agent)
		sb_adds(&wrong, "task ");
	if (strcmp(name, "test-helper") != 0)
		sb_adds(&wrong, "name ");
	if (death != SIGKILL)
		sb_adds(&wrong, "death ");
	for (size_t i = 0; i < STK_LENGTH(ignored); i++) {
		struct sigaction action;

		sigaction(ignored[i], NULL, &action);
		if (action.sa_handler != SIG_IGN || sigismember(&blocked, ignored[i]))
			sb_addf(&wrong, "signal-%d ", ignored[i]);
	}
	for (int fd = 3; fd < 1100; fd++) {
		bool ours = fd == news_fd || fd == orders_fd;

		if ((fcntl(fd, F_GETFD) >= 0) != ours)
			sb_addf(&wrong, "descriptor-%d ", fd);
	}
	sb_adds(&wrong, ".\n");
	return write(news_fd, wrong.text, wrong.len) == (ssize_t)wrong.len ? 0 : 1;
}

static void read_line(int fd, char *ret, size_t size)
{
	struct pollfd news = { .fd = fd, .events = POLLIN };
	ssize_t len;

	assert_int_equal(poll(&news, 1, -1), 1);
	len = read(fd, ret, size - 1);
	assert_true(len > 0);
	ret[len] = '\0';
}

/* A descriptor that it held would keep a pipe or a lock alive that the agent has given up. */
static void a_helper_has_its_task_and_nothing_else_of_its_agent(void **state)
{
	const struct given given = { "a task", getpid() };
	AUTO(err_freep) struct err *err = NULL;
	sigset_t stops, before;
	struct helper helper;
	int status = -1, many[3];
	char line[4096];

	(void)state;
	many[0] = open("/dev/null", O_RDONLY);
	many[1] = fcntl(many[0], F_DUPFD, 100);
	many[2] = fcntl(many[0], F_DUPFD, 1000);
	assert_true(many[2] >= 1000);
	sigemptyset(&stops);
	sigaddset(&stops, SIGTERM);
	assert_int_equal(sigprocmask(SIG_BLOCK, &stops, &before), 0); /* as the agent has it */
	must(helper_start(&helper, "test-helper", say_what_is_wrong, &given, sizeof given, &err),
	     &err);
	read_line(helper.news_fd, line, sizeof line);
	assert_string_equal(line, ".\n");
	assert_int_equal(waitpid(helper.pid, &status, 0), helper.pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
	helper_close(&helper);
	for (size_t i = 0; i < STK_LENGTH(many); i++)
		close(many[i]);
}

static int repeat_orders(const void *task, int news_fd, int orders_fd)
{
	char buffer[64];
	ssize_t len;

	(void)task;
	while ((len = read(orders_fd, buffer, sizeof buffer)) > 0)
		if (write(news_fd, buffer, (size_t)len) != len)
			return 1;
	return 5;
}

static void orders_go_to_it_and_news_come_from_it(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct helper helper;
	int status = -1;
	char line[64];

	(void)state;
	must(helper_start(&helper, "test", repeat_orders, NULL, 0, &err), &err);
	assert_int_equal(read(helper.news_fd, line, sizeof line), -1); /* and waits for nothing */
	assert_int_equal(write(helper.orders_fd, "one", 3), 3);
	read_line(helper.news_fd, line, sizeof line);
	assert_string_equal(line, "one");
	helper_close(&helper); /* the end of its orders is its end */
	assert_int_equal(helper.news_fd, -1);
	assert_int_equal(helper.orders_fd, -1);
	assert_int_equal(waitpid(helper.pid, &status, 0), helper.pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 5);
}

static void a_helper_can_be_killed_and_none_is_nobody(void **state)
{
	AUTO(err_freep) struct err *err = NULL;
	struct helper helper, none = { .news_fd = -1, .orders_fd = -1 };
	int status = -1;

	(void)state;
	helper_kill(&none); /* it is not the whole group that dies */
	must(helper_start(&helper, "test", repeat_orders, NULL, 0, &err), &err);
	helper_kill(&helper);
	assert_int_equal(waitpid(helper.pid, &status, 0), helper.pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	helper_close(&helper);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_helper_that_writes_to_nobody_lives_on),
		cmocka_unit_test(a_helper_has_its_task_and_nothing_else_of_its_agent),
		cmocka_unit_test(orders_go_to_it_and_news_come_from_it),
		cmocka_unit_test(a_helper_can_be_killed_and_none_is_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
