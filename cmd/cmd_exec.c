/* exec: a command beside the command of a job, with its environment and in its folder. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/follow/attempt_of.h"
#include "cmd/follow/run_view.h"
#include "cmd/screen/out.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/process/proc.h"

#define ENVIRONMENT_MAX ((size_t)4 << 20)

/* Returns the variables in a process's environment, which borrow from `text`; the caller frees the
 * list. */
static char **environment(struct sb *text)
{
	char **list;
	size_t count = 0;

	for (size_t i = 0; i < text->len; i++)
		count += text->text[i] == '\0';
	list = mem_zero(count + 2, sizeof *list);
	count = 0;
	for (char *at = text->text; at && at < text->text + text->len; at += strlen(at) + 1)
		if (at[0] != '\0')
			list[count++] = at;
	return list;
}

static const char *value_of(char *const *list, const char *name)
{
	size_t len = strlen(name);

	for (; *list; list++)
		if (strncmp(*list, name, len) == 0 && (*list)[len] == '=')
			return *list + len + 1;
	return NULL;
}

/* Becomes the command. Returns -1 if that fails. */
static int become(pid_t pid, char *const *argv, struct err **err)
{
	AUTO(sb_release) struct sb text = SB_INIT_MAX(ENVIRONMENT_MAX);
	AUTO(auto_free) char *from = mem_format("/proc/%d/environ", (int)pid);
	AUTO(auto_free) char *folder = mem_format("/proc/%d/cwd", (int)pid);
	AUTO(auto_free) char **list = NULL;
	AUTO(auto_free) char *program = NULL;

	if (fs_read(from, ENVIRONMENT_MAX, &text, err) < 0)
		return err_wrap(err, "cannot read the environment of the job");
	list = environment(&text);
	if (chdir(folder) < 0)
		return fs_error(err, errno, "cannot enter the folder of the job");
	program = proc_find_program(argv[0], ".", value_of(list, "PATH"));
	if (!program) {
		err_set(err, EXIT_REFUSED, "the job's PATH has no program '%s'", argv[0]);
		return err_hint(err, "name it with its path");
	}
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	execve(program, argv, list);
	return fs_error(err, errno, "cannot start '%s'", program);
}

/* Names the way of the service, which stoker does not go. */
static int refuse(const struct attempt_of *of, struct err **err)
{
	err_set(err, EXIT_REFUSED, "job %s runs on engine %s, where stoker starts no commands",
		of->job, js_str(of->plan, "engine"));
	return err_hint(err, "%s", of->engine->ops->by_shell);
}

static int no_command(const struct attempt_of *of, int64_t node, struct err **err)
{
	err_set(err, EXIT_REFUSED, "no command of job %s runs on node %lld of this machine now",
		of->job, (long long)node);
	return err_hint(err, "'stoker status %s' shows the state of the attempts", of->run);
}

int cmd_exec(const struct args *args, struct err **err)
{
	AUTO(journal_freep) struct journal *journal = NULL;
	AUTO(attempt_of_release) struct attempt_of of = { 0 };
	AUTO(auto_free) char **argv = NULL;
	const struct engine_ops *ops;
	char run[JOURNAL_RUN_MAX];
	/* Without a RUN all operands are of the command. */
	int first = args->before_dashes == 0 ? 0 : 1, running;
	int64_t node;
	pid_t pid = 0;

	if (first >= args->operand_count) {
		err_set(err, EXIT_USAGE, "exec needs a command");
		return err_hint(err, "write, for instance, stoker exec @last -- ps -ef");
	}
	if (args_number(args, OPT_NODE, 0, &node, err) < 0 ||
	    attempt_of_ask(&of, args, run, err) < 0 ||
	    journal_open(args->value[OPT_STATE], JOURNAL_READ, &journal, err) < 0 ||
	    journal_resolve(journal, first ? args->operands[0] : "@last", run, err) < 0 ||
	    attempt_of_find(&of, journal, err) < 0 || attempt_of_check_node(&of, node, err) < 0 ||
	    attempt_of_open(&of, err) < 0)
		return -1;
	ops = of.engine->ops;
	if (!ops->process)
		return refuse(&of, err);
	running = ops->process(of.engine, of.job, of.prefix, (int)node, &pid, err);
	if (running <= 0)
		return running < 0 ? -1 : no_command(&of, node, err);
	argv = mem_zero((size_t)(args->operand_count - first) + 1, sizeof *argv);
	for (int i = first; i < args->operand_count; i++)
		argv[i - first] = (char *)args->operands[i];
	return become(pid, argv, err);
}
