/* Programs of other schedulers: see tool.h. */
#include "cmd/schedule/tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/process/proc.h"

#define OUTPUT_MAX ((size_t)4 << 20)

static char *find(const char *name)
{
	AUTO(auto_free) char *path = NULL;
	const char *own = getenv("PATH");

	path = mem_format("%s:/usr/sbin:/usr/bin:/sbin:/bin", own ? own : "");
	return proc_find_program(name, NULL, path);
}

static int read_output(int fd, struct sb *ret, struct err **err)
{
	char bytes[4096];
	int64_t at = 0;
	ssize_t got;

	while ((got = fs_read_full(fd, bytes, sizeof bytes, at)) > 0 && ret->len < OUTPUT_MAX) {
		sb_add(ret, bytes, (size_t)got);
		at += got;
	}
	return got < 0 ? fs_error(err, errno, "cannot read the output of a program") : 0;
}

static int wait_for(pid_t pid, const char *name, struct err **err)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return fs_error(err, errno, "cannot wait for %s", name);
	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	return err_set(err, EXIT_REFUSED, "%s was ended by signal %d", name, WTERMSIG(status));
}

int tool_run(const char *const *argv, const char *input, struct sb *out, struct sb *words,
	     struct err **err)
{
	AUTO(auto_free) char *program = find(argv[0]);
	AUTO(auto_close) int in = fs_scratch(err), told = in < 0 ? -1 : fs_scratch(err);
	AUTO(auto_close) int said = told < 0 ? -1 : fs_scratch(err);
	struct proc_start how = { .program = program,
				  .argv = (char *const *)(uintptr_t)argv,
				  .envp = environ,
				  .in = in,
				  .out = told,
				  .err = said };
	int failed, status;
	pid_t pid;

	if (said < 0)
		return -1;
	if (!program) {
		err_set(err, EXIT_REFUSED, "the program '%s' is not there", argv[0]);
		return err_hint(err, "install it, or choose another scheduler");
	}
	failed = input ? fs_write_full(in, input, strlen(input)) : 0;
	if (failed || lseek(in, 0, SEEK_SET) < 0)
		return fs_error(err, failed ? failed : errno, "cannot hand text to %s", argv[0]);
	if (proc_spawn(&how, &pid, err) < 0)
		return -1;
	status = wait_for(pid, argv[0], err);
	return status < 0 || read_output(told, out, err) < 0 || read_output(said, words, err) < 0
		       ? -1
		       : status;
}

int tool_must(const char *const *argv, const char *input, struct sb *out, struct err **err)
{
	AUTO(sb_release) struct sb words = SB_INIT;
	AUTO(sb_release) struct sb line = SB_INIT;
	int status = tool_run(argv, input, out, &words, err);

	if (status <= 0)
		return status;
	for (size_t i = 0; argv[i]; i++)
		sb_addf(&line, "%s%s", i > 0 ? " " : "", argv[i]);
	while (words.len > 0 && strchr("\n ", words.text[words.len - 1]))
		words.text[--words.len] = '\0';
	return err_set(err, EXIT_REFUSED, "'%s' ended with %d: %s", line.text, status,
		       words.len > 0 ? words.text : "it gave no reason");
}
