/* The process that delivers one notification: see notify_process.h. */
#include "jobs/run/notify_process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "aws/http/http.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/process/proc.h"
#include "jobs/base/process/program.h"
#include "jobs/base/variable.h"

#define POSTER "stoker-post"

/* Returns the input of a process as a file in memory, so that the sender never blocks on a slow
 * reader. */
static int input_of(const struct notify_letter *letter, const char *url, struct err **err)
{
	AUTO(auto_close) int fd = memfd_create("stoker-notify", MFD_CLOEXEC);
	AUTO(auto_free)
	char *text = mem_format("%s%s%s\n", url ? url : "", url ? "\n" : "", letter->body);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) ||
	    lseek(fd, 0, SEEK_SET) < 0) {
		fs_error(err, errno, "cannot prepare the message");
		return -1;
	}
	return TAKE_FD(fd);
}

static char **env_of(const struct notify_letter *letter)
{
	char **env = mem_zero(VAR_COUNT + 1, sizeof *env);
	size_t count = 0;

	for (enum variable i = 0; i < VAR_COUNT; i++) {
		const char *name = variable_rows[i].name;
		const char *value = variable_rows[i].uses & VAR_PASSED ? getenv(name) : NULL;

		if (value)
			env[count++] = mem_format("%s=%s", name, value);
	}
	if (letter->run)
		env[count++] = mem_format("%s=%s", variable_rows[VAR_RUN].name, letter->run);
	env[count] = mem_format("%s=%s", variable_rows[VAR_OCCASION].name, letter->occasion);
	return env;
}

static int spawn_process(const struct notify_letter *letter, const struct proc_start *given,
			 const char *url, pid_t *ret_pid, int *ret_words, struct err **err)
{
	AUTO(auto_close) int in = input_of(letter, url, err);
	AUTO(auto_close) int own = -1;
	AUTO(auto_close) int words = -1;
	struct proc_start start = *given;
	int ends[2];
	pid_t pid;

	if (in < 0)
		return -1;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return fs_error(err, errno, "cannot make a pipe");
	own = ends[0];
	words = ends[1];
	fcntl(words, F_SETFL, 0); /* the writing side blocks */
	start.in = in;
	start.out = -1;
	start.err = words;
	if (proc_spawn(&start, &pid, err) < 0)
		return -1;
	*ret_pid = pid;
	*ret_words = TAKE_FD(own);
	return 0;
}

static int spawn_command(const struct notify_letter *letter, const json_t *command, pid_t *ret_pid,
			 int *ret_words, struct err **err)
{
	const char *name = json_string_value(json_array_get(command, 0)), *path = getenv("PATH");
	AUTO(auto_free) char *folder = fs_dirname(letter->spec_file);
	AUTO(auto_free) char *program = proc_find_program(name, folder, path ? path : "");
	AUTO(auto_free) char **argv = mem_zero(json_array_size(command) + 1, sizeof *argv);
	AUTO(auto_strv) char **env = env_of(letter);
	struct proc_start start = { .program = program, .argv = argv, .envp = env, .cwd = folder };

	if (!program)
		return err_set(err, EXIT_REFUSED, "program '%s' not found", name);
	for (size_t i = 0; i < json_array_size(command); i++)
		argv[i] = (char *)(uintptr_t)json_string_value(json_array_get(command, i));
	return spawn_process(letter, &start, NULL, ret_pid, ret_words, err);
}

/* The URL may be a secret: it stays off every command line. */
static int spawn_poster(const struct notify_letter *letter, const char *url, pid_t *ret_pid,
			int *ret_words, struct err **err)
{
	AUTO(auto_free) char *program = program_file(POSTER);
	AUTO(auto_free) char *own = program_file("agent/lib/ca-certificates.crt");
	AUTO(auto_free) char *certificates = http_certificates(own);
	char *const argv[] = { (char[]){ POSTER }, certificates, NULL };
	struct proc_start start = { .program = program, .argv = argv, .envp = environ };

	if (!program)
		return err_set(err, EXIT_REFUSED,
			       "stoker's own '%s' is missing; install all of stoker", POSTER);
	return spawn_process(letter, &start, url, ret_pid, ret_words, err);
}

int notify_process_start(const struct notify_letter *letter, pid_t *ret_pid, int *ret_words,
			 struct err **err)
{
	const char *url = js_str(letter->rule, "webhook");

	if (url)
		return spawn_poster(letter, url, ret_pid, ret_words, err);
	return spawn_command(letter, json_object_get(letter->rule, "command"), ret_pid, ret_words,
			     err);
}
