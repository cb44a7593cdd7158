/* Starts children that work for the agent: see helper.h. */
#include "jobs/node/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "jobs/base/process/cancel.h"

/* Closes the agent's descriptors, except our two ends of the pipes and its own output. */
static void only_pipes(int *news_fd, int *orders_fd)
{
	int news = fcntl(*news_fd, F_DUPFD, 10), orders = fcntl(*orders_fd, F_DUPFD, 10);

	if (news < 0 || orders < 0 || dup2(news, 3) < 0 || dup2(orders, 4) < 0)
		_exit(1);
	/* Kernels before 5.9 lack close_range(). */
	if (close_range(5, ~0u, 0) < 0)
		for (int fd = 5; fd < 1024; fd++)
			close(fd);
	*news_fd = 3;
	*orders_fd = 4;
}

static _Noreturn void be_helper(const char *name, helper_fn fn, const void *task, pid_t agent,
				int news_fd, int orders_fd)
{
	sigset_t none;

	prctl(PR_SET_NAME, name);
	/* A kill of the agent is meant for the helper too; a signal to stop goes through the
	 * agent. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != agent)
		_exit(1);
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	cancel_when(NULL, NULL); /* a store does not look for a signal either */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	only_pipes(&news_fd, &orders_fd);
	_exit(fn(task, news_fd, orders_fd));
}

int helper_start(struct helper *helper, const char *name, helper_fn fn, const void *task,
		 size_t size, struct err **err)
{
	int news[2], orders[2];
	pid_t agent = getpid(), pid;

	*helper = (struct helper){ .news_fd = -1, .orders_fd = -1 };
	if (pipe2(news, O_CLOEXEC) < 0)
		return err_system(err, EXIT_REFUSED, errno, "cannot make a pipe");
	if (pipe2(orders, O_CLOEXEC) < 0) {
		close(news[0]);
		close(news[1]);
		return err_system(err, EXIT_REFUSED, errno, "cannot make a pipe");
	}
	(void)size; /* fork() copies all memory */
	pid = fork();
	if (pid == 0)
		be_helper(name, fn, task, agent, news[1], orders[0]);
	close(news[1]);
	close(orders[0]);
	helper->news_fd = news[0];
	helper->orders_fd = orders[1];
	if (pid < 0) {
		err_system(err, EXIT_REFUSED, errno, "cannot start a process");
		helper_close(helper);
		return -1;
	}
	helper->pid = pid;
	fcntl(news[0], F_SETFL, O_NONBLOCK);
	return 0;
}

void helper_kill(const struct helper *helper)
{
	if (helper->pid > 0)
		kill(helper->pid, SIGKILL);
}

void helper_close(struct helper *helper)
{
	auto_close(&helper->news_fd);
	auto_close(&helper->orders_fd);
	helper->news_fd = helper->orders_fd = -1;
}
