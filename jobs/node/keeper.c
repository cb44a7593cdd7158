/* Starts the keeper and hears it: the agent's side of keeper.h. */
#include "jobs/node/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define NEWS_LINE ((size_t)1 << 20)

static const char *const kinds[] = {
	[KEEPER_SAVING] = "saving",   [KEEPER_SAVED] = "saved",     [KEEPER_MARKED] = "marked",
	[KEEPER_COPYING] = "copying", [KEEPER_PARTIAL] = "partial", [KEEPER_TROUBLE] = "trouble",
};

bool keeper_needed(const struct task *task)
{
	const json_t *checkpoint = json_object_get(task->order, "checkpoint");
	const char *root = js_str(checkpoint, "root");

	return task->node == 0 && !task->scratch && root && root[0] == '/';
}

/* ---- the child ---- */

/* Nothing of the agent's but the two ends of our pipes, and its log as stderr. */
static void only_pipes(int *news_fd, int *orders_fd)
{
	int news = fcntl(*news_fd, F_DUPFD, 10), orders = fcntl(*orders_fd, F_DUPFD, 10);

	if (news < 0 || orders < 0 || dup2(news, 3) < 0 || dup2(orders, 4) < 0)
		_exit(1);
	/* Kernels before 5.9 do not have it. */
	if (close_range(5, ~0u, 0) < 0)
		for (int fd = 5; fd < 1024; fd++)
			close(fd);
	*news_fd = 3;
	*orders_fd = 4;
}

static _Noreturn void be_keeper(const struct task *task, const struct claim *claim, pid_t agent,
				int news_fd, int orders_fd)
{
	sigset_t none;

	/* Whoever kills the agent means us too; whoever stops it is told by it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != agent)
		_exit(1);
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	only_pipes(&news_fd, &orders_fd);
	_exit(keeper_work(task, claim, news_fd, orders_fd));
}

/* ---- the agent ---- */

static void tell(struct keeper *keeper, const char *line, size_t len)
{
	AUTO(err_freep) struct err *ignored = NULL;
	json_auto_t *news = NULL;
	const char *kind;

	if (js_parse(line, len, "the keeper's line", &news, &ignored) < 0)
		return;
	kind = js_str(news, "news");
	for (size_t i = 0; kind && i < STK_LENGTH(kinds); i++)
		if (strcmp(kinds[i], kind) == 0)
			keeper->fn(keeper->arg, (enum keeper_news)i, news);
}

static void stop_listening(struct keeper *keeper)
{
	loop_remove(keeper->loop, keeper->watch);
	keeper->watch = NULL;
	auto_close(&keeper->news_fd);
	keeper->news_fd = -1;
}

static void on_news(void *arg)
{
	struct keeper *keeper = arg;
	char buffer[4096];
	const char *end;
	ssize_t len = read(keeper->news_fd, buffer, sizeof buffer);

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len <= 0) {
		stop_listening(keeper);
		return;
	}
	sb_add(&keeper->text, buffer, (size_t)len);
	while ((end = memchr(keeper->text.text, '\n', keeper->text.len))) {
		size_t line = (size_t)(end - keeper->text.text);

		tell(keeper, keeper->text.text, line);
		sb_drop(&keeper->text, line + 1);
	}
}

int keeper_start(struct keeper *keeper, const struct task *task, const struct claim *claim,
		 struct loop *loop, keeper_fn fn, void *arg, struct err **err)
{
	int news[2], orders[2];
	pid_t agent = getpid(), pid;

	*keeper = (struct keeper){ .news_fd = -1, .orders_fd = -1, .loop = loop };
	if (pipe2(news, O_CLOEXEC) < 0)
		return err_system(err, EXIT_REFUSED, errno, "cannot make a pipe");
	if (pipe2(orders, O_CLOEXEC) < 0) {
		close(news[0]);
		close(news[1]);
		return err_system(err, EXIT_REFUSED, errno, "cannot make a pipe");
	}
	pid = fork();
	if (pid == 0)
		be_keeper(task, claim, agent, news[1], orders[0]);
	close(news[1]);
	close(orders[0]);
	keeper->news_fd = news[0];
	keeper->orders_fd = orders[1];
	keeper->text = SB_INIT_MAX(NEWS_LINE);
	keeper->fn = fn;
	keeper->arg = arg;
	if (pid < 0)
		return err_system(err, EXIT_REFUSED, errno, "cannot start a process");
	keeper->pid = pid;
	fcntl(news[0], F_SETFL, O_NONBLOCK);
	keeper->watch = loop_on_readable(loop, news[0], on_news, keeper);
	return 0;
}

void keeper_finish(struct keeper *keeper)
{
	if (keeper->pid == 0 || keeper->last_pass)
		return;
	keeper->last_pass = true;
	(void)!write(keeper->orders_fd, "L", 1);
}

void keeper_kill(struct keeper *keeper)
{
	if (keeper->pid > 0)
		kill(keeper->pid, SIGKILL);
}

void keeper_gone(struct keeper *keeper)
{
	keeper->pid = 0;
	while (keeper->watch)
		on_news(keeper); /* its end of the pipe is closed: this ends */
}

void keeper_release(struct keeper *keeper)
{
	if (keeper->fn) {
		if (keeper->watch)
			stop_listening(keeper);
		auto_close(&keeper->news_fd);
		auto_close(&keeper->orders_fd);
		sb_release(&keeper->text);
	}
	*keeper = (struct keeper){ .news_fd = -1, .orders_fd = -1 };
}
