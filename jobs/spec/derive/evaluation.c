/* The process that works out an expression: see evaluation.h. */
#include "jobs/spec/derive/evaluation.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/base/auto.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/process/proc.h"
#include "jobs/base/process/program.h"

#define PROGRAM    "stoker-derive"
#define ANSWER_MAX 32768

/* Returns the request as a file in memory. */
static int input_of(const json_t *request, struct err **err)
{
	AUTO(auto_close) int fd = memfd_create(PROGRAM, MFD_CLOEXEC);
	AUTO(auto_free) char *text = js_line_exact(request);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) ||
	    lseek(fd, 0, SEEK_SET) < 0)
		return fs_error(err, errno, "cannot prepare the values of an expression");
	return TAKE_FD(fd);
}

static int start(int in, int out, pid_t *ret_pid, struct err **err)
{
	AUTO(auto_free) char *program = program_file(PROGRAM);
	char *const argv[] = { (char *)PROGRAM, NULL }, *const envp[] = { NULL };
	const struct proc_start how = { .program = program,
					.argv = argv,
					.envp = envp,
					.cwd = "/",
					.in = in,
					.out = out,
					.err = -1 };

	if (program)
		return proc_spawn(&how, ret_pid, err);
	err_set(err, EXIT_REFUSED, "stoker's own '%s' is missing", PROGRAM);
	return err_hint(err, "install all of stoker: 'derive' needs it");
}

/* Reads until the process has closed its end. Returns the number of bytes. */
static size_t read_all(int fd, char *bytes, size_t size)
{
	size_t len = 0;

	while (len < size) {
		ssize_t n = read(fd, bytes + len, size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	return len;
}

static int await(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* Returns how the process ended without an answer. */
static json_t *ended(int status)
{
	json_t *answer = json_object();
	int signo = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	if (signo == SIGXCPU || signo == SIGKILL)
		js_put_str(answer, "ended", "it takes more than 1 s of processor time");
	else
		js_put_str(answer, "ended",
			   "the program that works it out ended without an answer");
	return answer;
}

int evaluation_run(const json_t *request, json_t **ret_answer, struct err **err)
{
	AUTO(auto_close) int in = input_of(request, err);
	AUTO(auto_close) int out = -1;
	AUTO(auto_close) int answers = -1;
	AUTO(auto_free) char *bytes = NULL;
	AUTO(err_freep) struct err *unread = NULL;
	int ends[2], status;
	size_t len;
	pid_t pid;

	if (in < 0)
		return -1;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return fs_error(err, errno, "cannot make a pipe");
	answers = ends[0];
	out = ends[1];
	if (start(in, out, &pid, err) < 0)
		return -1;
	auto_close(&out);
	bytes = mem_zero(1, ANSWER_MAX);
	len = read_all(answers, bytes, ANSWER_MAX);
	status = await(pid);
	if (len == 0 || js_parse(bytes, len, "an answer of " PROGRAM, ret_answer, &unread) < 0)
		*ret_answer = ended(status);
	return 0;
}
