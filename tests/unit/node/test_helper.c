/* Helpers of the agent: what ends them, and what does not. */
#include "tests/unit/node/place.h"

#include "jobs/node/helper.h"

#include <poll.h>
#include <signal.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_helper_that_writes_to_nobody_lives_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
