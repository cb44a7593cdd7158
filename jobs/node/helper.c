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

struct birth {
	const char *name;
	helper_fn fn;
	const void *task;
	pid_t agent;
	int out_fd; /* -1: a helper; else it stands for the command, and writes there */
};

/* Makes the helper the leader of a session, as a command is, which hears the signals meant for a
 * command. */
static void stand_for_command(int out_fd)
{
	if (setsid() < 0 || dup2(out_fd, STDOUT_FILENO) < 0 || dup2(out_fd, STDERR_FILENO) < 0)
		_exit(1);
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
}

static _Noreturn void be_helper(const struct birth *birth, int news_fd, int orders_fd)
{
	sigset_t none;

	prctl(PR_SET_NAME, birth->name);
	/* A kill of the agent is meant for the helper too; a signal to stop goes through the
	 * agent. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != birth->agent)
		_exit(1);
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (birth->out_fd >= 0)
		stand_for_command(birth->out_fd);
	cancel_when(NULL, NULL); /* a store does not look for a signal either */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	only_pipes(&news_fd, &orders_fd);
	_exit(birth->fn(birth->task, news_fd, orders_fd));
}

static int start(struct helper *helper, const struct birth *birth, struct err **err)
{
	int news[2], orders[2];
	pid_t pid;

	*helper = (struct helper){ .news_fd = -1, .orders_fd = -1 };
	if (pipe2(news, O_CLOEXEC) < 0)
		return err_system(err, EXIT_REFUSED, errno, "cannot make a pipe");
	if (pipe2(orders, O_CLOEXEC) < 0) {
		close(news[0]);
		close(news[1]);
		return err_system(err, EXIT_REFUSED, errno, "cannot make a pipe");
	}
	pid = fork(); /* copies all memory, the task too */
	if (pid == 0)
		be_helper(birth, news[1], orders[0]);
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

int helper_start(struct helper *helper, const char *name, helper_fn fn, const void *task,
		 size_t size, struct err **err)
{
	const struct birth birth = { name, fn, task, getpid(), -1 };

	(void)size;
	return start(helper, &birth, err);
}

int helper_start_command(struct helper *helper, const char *name, helper_fn fn, const void *task,
			 size_t size, int out_fd, struct err **err)
{
	const struct birth birth = { name, fn, task, getpid(), out_fd };

	(void)size;
	return start(helper, &birth, err);
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
