/*
 * One run of the command for a task, in the runner (tasks.h): it is started, its output is passed
 * on to the runner's and searched for readings, and nothing that descends from it is left when it
 * is over. A signal to stop is passed on to it.
 */
#ifndef STK_NODE_TASKS_TASK_COMMAND_H
#define STK_NODE_TASKS_TASK_COMMAND_H

#include <stdbool.h>

#include "jobs/base/err.h"
#include "jobs/base/process/loop.h"
#include "jobs/base/text/js.h"

struct task_command;

/* Prepares to run commands: from now on signals to stop are heard. `metrics`: the order's (NULL:
 * none), borrowed. */
int task_command_new(const json_t *metrics, struct task_command **ret, struct err **err);
void task_command_freep(struct task_command **command); /* for AUTO() */

/* True if a signal to stop has come, at any time since. */
bool task_command_stopping(const struct task_command *command);

/* Runs a program (a path) to its end. `ret_status`: of waitpid(). */
int task_command_run(struct task_command *command, const char *program, char *const *argv,
		     char *const *envp, const char *cwd, int *ret_status, struct err **err);

/* The last reading of each metric in the output of the last run: {name: number}, a new reference;
 * `ret_invalid`: {name: text} of those that are not finite. */
json_t *task_command_readings(const struct task_command *command, json_t **ret_invalid);

#endif
