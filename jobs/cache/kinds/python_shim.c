/* The only part of jobs/cache that starts a process: see python_shim.h. */
#include "jobs/cache/kinds/python_shim.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/base/clock.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/process/proc.h"

/* Prints a line with the version, then a line for each folder of the import path. */
static const char question[] = "import sys\n"
			       "print('%d.%d' % sys.version_info[:2])\n"
			       "print('\\n'.join(p for p in sys.path if p))\n";

static char *variable(const char *name, const char *value)
{
	return mem_format("%s=%s", name, value);
}

/* The variables that the job would set for the shim. */
static char **environment(const struct program_place *place)
{
	char **envp = mem_zero(5, sizeof *envp);
	size_t n = 0;

	envp[n++] = variable("LANG", "C.UTF-8");
	if (place->path)
		envp[n++] = variable("PATH", place->path);
	if (place->home)
		envp[n++] = variable("HOME", place->home);
	if (place->python_path)
		envp[n++] = variable("PYTHONPATH", place->python_path);
	return envp;
}

/* Reads all output of the process within the time limit; false if it did not end. */
static bool read_answer(int fd, struct sb *ret)
{
	int64_t end = clock_mono_now().ms + PYTHON_SHIM_MS;

	for (;;) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		int64_t left = end - clock_mono_now().ms;
		char bytes[4096];
		ssize_t got;

		if (left <= 0)
			return false;
		if (poll(&wait, 1, (int)left) < 0 && errno != EINTR)
			return false;
		if (!(wait.revents & (POLLIN | POLLHUP)))
			continue;
		got = read(fd, bytes, sizeof bytes);
		if (got == 0)
			return true;
		if (got < 0 && errno != EINTR)
			return false;
		if (got > 0)
			sb_add(ret, bytes, (size_t)got);
	}
}

/* Kills the process unless it has ended, and reaps it. True if it exited with 0 by itself. */
static bool finish(pid_t pid, bool ended)
{
	int status = 0;
	pid_t got;

	if (!ended)
		kill(-pid, SIGKILL); /* the child leads its own session, so its group is killed */
	do
		got = waitpid(pid, &status, 0);
	while (got < 0 && errno == EINTR);
	return ended && got == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void take_answer(char *answer, struct python *ret)
{
	char *rest = NULL;
	char *line = strtok_r(answer, "\n", &rest);
	size_t count = 0;

	if (!line || line[strspn(line, "0123456789.")] != '\0' || strlen(line) > 8)
		return;
	ret->version = mem_copy(line);
	while ((line = strtok_r(NULL, "\n", &rest)) != NULL) {
		if (!fs_is_dir(line))
			continue;
		ret->folders = mem_grow(ret->folders, count + 2, sizeof *ret->folders);
		ret->folders[count++] = mem_copy(line);
		ret->folders[count] = NULL;
	}
}

int python_ask_shim(const char *shim, const struct program_place *place, struct python *ret)
{
	char *argv[] = { (char *)shim, (char *)"-c", (char *)question, NULL };
	AUTO(auto_strv) char **envp = environment(place);
	AUTO(sb_release) struct sb answer = SB_INIT_MAX(65536);
	AUTO(err_freep) struct err *ignored = NULL;
	struct proc_start start = {
		.program = shim, .argv = argv, .envp = envp, .cwd = place->cwd, .in = -1, .err = -1
	};
	int ends[2];
	bool ended;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return 0;
	start.out = ends[1];
	if (proc_spawn(&start, &pid, &ignored) < 0) {
		close(ends[0]);
		close(ends[1]);
		return 0;
	}
	close(ends[1]);
	ended = read_answer(ends[0], &answer);
	close(ends[0]);
	if (finish(pid, ended) && answer.len > 0)
		take_answer(answer.text, ret);
	return 0;
}
