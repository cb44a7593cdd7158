/* Programs of the world: which function an executable file stands for, and the processes that the
 * world itself starts. See kernel.h, execve(2). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/world/kernel_internal.h"
#include "tests/world/tree.h"

struct program {
	const char *name;
	program_fn fn;
	struct program *next;
};

static struct program *programs;

void program_register(const char *name, program_fn fn)
{
	struct program *program = world_zero(sizeof *program);

	*program = (struct program){ name, fn, programs };
	programs = program;
}

program_fn program_find(const char *name)
{
	for (const struct program *at = programs; at; at = at->next)
		if (strcmp(at->name, name) == 0)
			return at->fn;
	return NULL;
}

#define LINE_BYTES   256
#define SCRIPTS_DEEP 4 /* interpreters that are scripts themselves: execve(2) */

static void drop_list(char **list)
{
	for (char **at = list; *at; at++)
		free(*at);
	free(list);
}

/* The command line of an interpreter: its path, what may follow in the line, the script, what the
 * script was given. */
static void go_to_interpreter(struct execution *execution, char *line)
{
	char *interpreter = line + strspn(line, " \t"), *end = interpreter;
	char *argument, **old = execution->argv, **at;
	size_t count = 0;

	end += strcspn(end, " \t");
	argument = end + strspn(end, " \t");
	*end = '\0';
	while (old[count])
		count++;
	at = execution->argv = world_zero((count + 4) * sizeof *at);
	*at++ = world_copy(interpreter);
	if (*argument)
		*at++ = world_copy(argument);
	*at++ = execution->program;
	for (size_t i = 1; i < count; i++)
		*at++ = world_copy(old[i]);
	drop_list(old);
	execution->program = world_copy(interpreter);
}

int execution_find(struct machine *machine, const char *cwd, const char *path, char *const *argv,
		   struct execution *ret)
{
	static const char mark[] = "\177ELF world ";
	char line[LINE_BYTES];

	*ret = (struct execution){ .program = world_copy(path), .argv = world_list(argv) };
	for (int depth = 0; depth <= SCRIPTS_DEEP; depth++) {
		int failed = tree_executable(machine, cwd, ret->program, line, sizeof line);

		if (failed)
			return failed;
		if (strncmp(line, mark, strlen(mark)) == 0) {
			ret->fn = program_find(line + strlen(mark));
			return ret->fn ? 0 : -ENOEXEC;
		}
		if (strncmp(line, "#!", 2) != 0)
			return -ENOEXEC;
		go_to_interpreter(ret, line + 2);
	}
	return -ELOOP;
}

void execution_release(struct execution *execution)
{
	free(execution->program);
	drop_list(execution->argv);
}

static int count_of(char *const *list)
{
	int count = 0;

	while (list[count])
		count++;
	return count;
}

_Noreturn void execution_run(struct process *process, program_fn fn)
{
	environ = world_list(process->envp);
	process_exit(fn(count_of(process->argv), world_list(process->argv)));
}

/* ---- started by the world ---- */

int fd_open(int fd, const char *path, int flags, mode_t mode)
{
	struct file *file;
	int failed = tree_open_path(self, AT_FDCWD, path, flags, mode, &file);

	if (failed)
		return failed;
	fd_put(self, fd, file, flags & O_CLOEXEC);
	file_unref(file);
	return 0;
}

struct started {
	program_fn fn;
	char *out_path; /* NULL: /dev/null */
};

static void be_started(struct process *process)
{
	struct started started = *(struct started *)process->coroutine->arg;

	free(process->coroutine->arg);
	if (fd_open(0, "/dev/null", O_RDWR, 0) < 0 ||
	    fd_open(1, started.out_path ? started.out_path : "/dev/null",
		    O_WRONLY | O_CREAT | O_APPEND, 0644) < 0)
		process_exit(127);
	fd_put(process, 2, fd_file(1), false);
	free(started.out_path);
	execution_run(process, started.fn);
}

struct process *process_start(const struct process_start *start)
{
	const char *cwd = start->cwd ? start->cwd : "/";
	struct process *process = NULL;
	struct execution execution;
	struct started *started;

	if (start->machine->off)
		return NULL;
	if (execution_find(start->machine, cwd, start->program, start->argv, &execution) == 0)
		process = process_new(start->machine, NULL);
	if (process)
		process_becomes(process, execution.program, execution.argv, start->envp);
	execution_release(&execution);
	if (!process)
		return NULL;
	free(process->cwd);
	process->cwd = world_copy(cwd);
	started = world_zero(sizeof *started);
	*started = (struct started){ execution.fn, world_copy(start->out_path) };
	process_schedule(process, be_started, started);
	return process;
}
