/* Runs programs of the image, with a time limit: see health_tool.h. */
#include "jobs/node/health/health_tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "jobs/base/process/proc.h"
#include "jobs/base/text/text.h"

#define NEURON_BIN "/opt/aws/neuron/bin"
#define POLL_MS    20   /* interval of looks whether it has ended */
#define FLUSH_MS   500  /* for processes that still hold its output then */
#define DEATH_MS   5000 /* for a killed process that the kernel does not let go of */
#define WORDS_MAX  300

char *health_tool_find(const struct command_env *env, const char *name)
{
	const char *path = command_env_get(env, "PATH");
	char *found = proc_find_program(name, "/", path ? path : "");

	return found ? found : proc_find_program(name, "/", NEURON_BIN);
}

struct tool {
	pid_t pid;
	int fds[2]; /* stdout, stderr; -1: at its end */
	struct tool_result *ret;
};

/* Returns true if the other end is closed. */
static bool read_some(int fd, struct sb *to)
{
	char buffer[8192];
	ssize_t len = read(fd, buffer, sizeof buffer);

	if (len > 0)
		sb_add(to, buffer, (size_t)len);
	return len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR);
}

/* Reads what the tool has written; waits `wait_ms` at most for some of it. */
static void read_output(struct tool *tool, int wait_ms)
{
	struct pollfd polls[2] = { { .fd = tool->fds[0], .events = POLLIN },
				   { .fd = tool->fds[1], .events = POLLIN } };
	struct sb *to[2] = { &tool->ret->out, &tool->ret->err };

	if (poll(polls, 2, wait_ms) <= 0)
		return;
	for (int i = 0; i < 2; i++)
		if (polls[i].revents && read_some(tool->fds[i], to[i])) {
			auto_close(&tool->fds[i]);
			tool->fds[i] = -1;
		}
}

static bool is_open(const struct tool *tool)
{
	return tool->fds[0] >= 0 || tool->fds[1] >= 0;
}

static bool has_ended(struct tool *tool)
{
	int status;

	if (waitpid(tool->pid, &status, WNOHANG) != tool->pid)
		return false;
	tool->ret->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	return true;
}

static void wait_for(struct tool *tool, struct mono end)
{
	bool ended = false;

	while (!(ended = has_ended(tool)) && clock_mono_now().ms < end.ms)
		read_output(tool, POLL_MS);
	if (ended)
		end.ms = clock_mono_now().ms + FLUSH_MS;
	else
		tool->ret->hung = true;
	while (ended && is_open(tool) && clock_mono_now().ms < end.ms)
		read_output(tool, POLL_MS);
	/* Kills the tool's session, with processes that it started and did not wait for. */
	kill(-tool->pid, SIGKILL);
	end.ms = clock_mono_now().ms + DEATH_MS;
	while (!ended && !(ended = has_ended(tool)) && clock_mono_now().ms < end.ms)
		read_output(tool, POLL_MS);
}

static int open_pipe(int *ret_read, int *ret_write, struct err **err)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_system(err, EXIT_REFUSED, errno, "cannot make a pipe");
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	*ret_read = fds[0];
	*ret_write = fds[1];
	return 0;
}

int health_tool_run(const struct command_env *env, const char *folder, char *const *argv,
		    struct mono end, struct tool_result *ret, struct err **err)
{
	AUTO(auto_close) int out = -1;
	AUTO(auto_close) int err_fd = -1;
	struct tool tool = { .fds = { -1, -1 }, .ret = ret };
	int done = -1;

	*ret = (struct tool_result){ .out = SB_INIT_MAX(TOOL_OUTPUT_MAX),
				     .err = SB_INIT_MAX(TOOL_OUTPUT_MAX) };
	if (open_pipe(&tool.fds[0], &out, err) == 0 && open_pipe(&tool.fds[1], &err_fd, err) == 0) {
		struct proc_start start = { .program = argv[0],
					    .argv = argv,
					    .envp = env->list,
					    .cwd = folder,
					    .in = -1,
					    .out = out,
					    .err = err_fd };

		done = proc_spawn(&start, &tool.pid, err);
	}
	if (done == 0) {
		auto_close(&out);
		auto_close(&err_fd);
		out = err_fd = -1;
		wait_for(&tool, end);
	}
	auto_close(&tool.fds[0]);
	auto_close(&tool.fds[1]);
	return done;
}

void health_tool_release(struct tool_result *result)
{
	if (result->out.text)
		sb_release(&result->out);
	if (result->err.text)
		sb_release(&result->err);
	*result = (struct tool_result){ 0 };
}

/* Finds the last line that is not blank and returns its length. */
static size_t last_line(const struct sb *text, const char **ret)
{
	size_t end = text->len, begin;

	while (end > 0 && strchr(" \t\r\n", text->text[end - 1]))
		end--;
	for (begin = end; begin > 0 && text->text[begin - 1] != '\n'; begin--)
		;
	*ret = text->text + begin;
	return end - begin;
}

char *health_tool_last_words(const struct tool_result *result)
{
	AUTO(sb_release) struct sb words = SB_INIT;
	const char *line;
	size_t len = last_line(&result->err, &line);

	if (len == 0)
		len = last_line(&result->out, &line);
	text_escape(&words, line, len < WORDS_MAX ? len : WORDS_MAX, false);
	return sb_take(&words);
}
