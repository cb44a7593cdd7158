/* The birth of processes: posix_spawn, and the agent's helpers. See kernel.h. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/process/cancel.h"
#include "jobs/node/helper.h"
#include "jobs/store/store.h"
#include "tests/world/kernel_internal.h"
#include "tests/world/tree.h"

CALL_WRAPS(posix_spawn);
CALL_WRAPS(posix_spawn_file_actions_init);
CALL_WRAPS(posix_spawn_file_actions_destroy);
CALL_WRAPS(posix_spawn_file_actions_addopen);
CALL_WRAPS(posix_spawn_file_actions_adddup2);
CALL_WRAPS(posix_spawn_file_actions_addchdir_np);
CALL_WRAPS(posix_spawn_file_actions_addclosefrom_np);
CALL_WRAPS(posix_spawnattr_init);
CALL_WRAPS(posix_spawnattr_destroy);
CALL_WRAPS(posix_spawnattr_setflags);
CALL_WRAPS(posix_spawnattr_setsigdefault);
CALL_WRAPS(posix_spawnattr_setsigmask);
CALL_WRAPS(helper_start);
CALL_WRAPS(helper_start_command);
CALL_WRAPS(setsid);
CALL_WRAPS(fork);
CALL_WRAPS(pthread_create);
CALL_WRAPS(pthread_join);
CALL_WRAPS(pthread_clockjoin_np);
_Noreturn void __wrap__exit(int status);
_Noreturn void __wrap_abort(void);

/* ---- posix_spawn ---- */

enum action_kind { ACTION_OPEN, ACTION_DUP2, ACTION_CHDIR, ACTION_CLOSEFROM };

struct action {
	enum action_kind kind;
	int fd, from, flags;
	mode_t mode;
	char *path;
	struct action *next;
};

/* Lies in the caller's posix_spawn_file_actions_t. */
struct actions {
	struct action *first, **last;
};

struct attributes {
	short flags;
	uint64_t defaults, mask;
};

_Static_assert(sizeof(struct actions) <= sizeof(posix_spawn_file_actions_t), "actions fit");
_Static_assert(sizeof(struct attributes) <= sizeof(posix_spawnattr_t), "attributes fit");

static struct actions *actions_of(posix_spawn_file_actions_t *opaque)
{
	return (void *)opaque;
}

int __wrap_posix_spawn_file_actions_init(posix_spawn_file_actions_t *opaque)
{
	struct actions *actions = actions_of(opaque);

	call_enter(CALL_posix_spawn_file_actions_init, NULL, -1);
	actions->first = NULL;
	actions->last = &actions->first;
	return 0;
}

int __wrap_posix_spawn_file_actions_destroy(posix_spawn_file_actions_t *opaque)
{
	struct action *next;

	call_enter(CALL_posix_spawn_file_actions_destroy, NULL, -1);
	for (struct action *at = actions_of(opaque)->first; at; at = next) {
		next = at->next;
		free(at->path);
		free(at);
	}
	return 0;
}

static int add_action(posix_spawn_file_actions_t *opaque, const struct action *how,
		      const char *path)
{
	struct actions *actions = actions_of(opaque);
	struct action *action = world_zero(sizeof *action);

	*action = *how;
	action->path = world_copy(path);
	*actions->last = action;
	actions->last = &action->next;
	return 0;
}

int __wrap_posix_spawn_file_actions_addopen(posix_spawn_file_actions_t *restrict opaque, int fd,
					    const char *restrict path, int flags, mode_t mode)
{
	call_enter(CALL_posix_spawn_file_actions_addopen, path, -1);
	return add_action(
		opaque,
		&(struct action){ .kind = ACTION_OPEN, .fd = fd, .flags = flags, .mode = mode },
		path);
}

int __wrap_posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *opaque, int from, int fd)
{
	call_enter(CALL_posix_spawn_file_actions_adddup2, NULL, -1);
	return add_action(opaque, &(struct action){ .kind = ACTION_DUP2, .fd = fd, .from = from },
			  NULL);
}

int __wrap_posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *restrict opaque,
						const char *restrict path)
{
	call_enter(CALL_posix_spawn_file_actions_addchdir_np, path, -1);
	return add_action(opaque, &(struct action){ .kind = ACTION_CHDIR }, path);
}

int __wrap_posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *opaque, int from)
{
	call_enter(CALL_posix_spawn_file_actions_addclosefrom_np, NULL, -1);
	return add_action(opaque, &(struct action){ .kind = ACTION_CLOSEFROM, .from = from }, NULL);
}

static struct attributes *attributes_of(posix_spawnattr_t *opaque)
{
	return (void *)opaque;
}

int __wrap_posix_spawnattr_init(posix_spawnattr_t *opaque)
{
	call_enter(CALL_posix_spawnattr_init, NULL, -1);
	*attributes_of(opaque) = (struct attributes){ .flags = 0 };
	return 0;
}

int __wrap_posix_spawnattr_destroy(posix_spawnattr_t *opaque)
{
	(void)opaque;
	call_enter(CALL_posix_spawnattr_destroy, NULL, -1);
	return 0;
}

int __wrap_posix_spawnattr_setflags(posix_spawnattr_t *opaque, short flags)
{
	call_enter(CALL_posix_spawnattr_setflags, NULL, -1);
	attributes_of(opaque)->flags = flags;
	return 0;
}

int __wrap_posix_spawnattr_setsigdefault(posix_spawnattr_t *restrict opaque,
					 const sigset_t *restrict set)
{
	call_enter(CALL_posix_spawnattr_setsigdefault, NULL, -1);
	memcpy(&attributes_of(opaque)->defaults, set, sizeof(uint64_t));
	return 0;
}

int __wrap_posix_spawnattr_setsigmask(posix_spawnattr_t *restrict opaque,
				      const sigset_t *restrict set)
{
	call_enter(CALL_posix_spawnattr_setsigmask, NULL, -1);
	memcpy(&attributes_of(opaque)->mask, set, sizeof(uint64_t));
	return 0;
}

/* What the child has to do; its own copy, since the parent may be killed before the child has
 * become the program. */
struct birth {
	char *program;
	char **argv, **envp;
	struct action *first;
};

static char *absolute(const char *path)
{
	size_t size = strlen(self->cwd) + strlen(path) + 2;
	char *whole = world_zero(size);

	if (path[0] == '/')
		snprintf(whole, size, "%s", path);
	else
		snprintf(whole, size, "%s/%s", self->cwd, path);
	return whole;
}

static int change_folder(const char *path)
{
	int failed = tree_is_folder(self->machine, self->cwd, path);
	char *folder;

	if (failed)
		return failed;
	folder = absolute(path);
	free(self->cwd);
	self->cwd = folder;
	return 0;
}

static int act(const struct action *action)
{
	int fd;

	switch (action->kind) {
	case ACTION_OPEN:
		fd_close(self, action->fd);
		return fd_open(action->fd, action->path, action->flags, action->mode);
	case ACTION_DUP2:
		if (!fd_file(action->from))
			return -EBADF;
		if (action->from == action->fd)
			self->fds[action->fd].close_on_exec = false;
		else
			fd_put(self, action->fd, fd_file(action->from), false);
		return 0;
	case ACTION_CHDIR:
		return change_folder(action->path);
	case ACTION_CLOSEFROM:
		break;
	}
	for (fd = action->from; fd < PROCESS_FDS; fd++)
		fd_close(self, fd);
	return 0;
}

static int prepare_child(const struct birth *birth, program_fn *ret_fn)
{
	struct execution execution;
	int failed = 0;

	for (const struct action *at = birth->first; at && !failed; at = at->next)
		failed = act(at);
	if (failed)
		return failed;
	failed = execution_find(self->machine, self->cwd, birth->program, birth->argv, &execution);
	if (!failed)
		process_becomes(self, execution.program, execution.argv, birth->envp);
	*ret_fn = execution.fn;
	execution_release(&execution);
	return failed;
}

static void be_spawned(struct process *process)
{
	program_fn fn = NULL;
	int failed = prepare_child(process->coroutine->arg, &fn);

	process->birth = failed ? failed : 1;
	world_stir();
	if (failed) {
		process_vanish(process);
		process_leave();
	}
	for (int fd = 0; fd < PROCESS_FDS; fd++)
		if (process->fds[fd].close_on_exec)
			fd_close(process, fd);
	execution_run(process, fn);
}

/* What the child's signals and session are, from the attributes. */
static void apply(struct process *child, const struct attributes *attributes)
{
	short flags = attributes ? attributes->flags : 0;

	signal_reset_handlers(child);
	if (flags & POSIX_SPAWN_SETSID)
		child->session = child->group = child->pid;
	if (flags & POSIX_SPAWN_SETPGROUP)
		child->group = child->pid;
	if (flags & POSIX_SPAWN_SETSIGDEF)
		child->ignored &= ~attributes->defaults;
	if (flags & POSIX_SPAWN_SETSIGMASK)
		child->blocked = attributes->mask;
}

static struct birth *birth_new(const char *program, const struct actions *actions,
			       char *const *argv, char *const *envp)
{
	struct birth *birth = world_zero(sizeof *birth);
	struct action **last = &birth->first;

	birth->program = world_copy(program);
	birth->argv = world_list(argv);
	birth->envp = world_list(envp);
	for (const struct action *at = actions ? actions->first : NULL; at; at = at->next) {
		*last = world_zero(sizeof **last);
		**last = *at;
		(*last)->path = world_copy(at->path);
		last = &(*last)->next;
	}
	*last = NULL;
	return birth;
}

static bool birth_is_over(void *arg)
{
	const struct process *child = arg;

	return child->birth != 0 || child->state != PROCESS_ALIVE;
}

/* Returns an errno, and does not set it. The parent waits until the child has become the program,
 * as vfork() has it. */
int __wrap_posix_spawn(pid_t *restrict ret_pid, const char *restrict program,
		       const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *restrict attributes, char *const *restrict argv,
		       char *const *restrict envp)
{
	struct call call = call_enter(CALL_posix_spawn, program, -1);
	struct process *child;

	if (call.error)
		return call.error;
	child = process_new(self->machine, self);
	if (!child)
		return EAGAIN;
	fds_copy(child, self);
	apply(child, (const void *)attributes);
	process_schedule(child, be_spawned, birth_new(program, (const void *)actions, argv, envp));
	while (!birth_is_over(child))
		(void)world_wait(birth_is_over, child, WORLD_NEVER);
	if (child->birth < 0)
		return -child->birth;
	if (ret_pid)
		*ret_pid = child->pid;
	call_return(&call, child->pid);
	return 0;
}

/* ---- helpers of the agent: jobs/node/helper.c, where fork() cannot be ---- */

struct helper_birth {
	char name[16];
	helper_fn fn;
	const void *arg;
};

static void be_helper(struct process *process)
{
	struct helper_birth birth = *(struct helper_birth *)process->coroutine->arg;

	free(process->coroutine->arg);
	cancel_when(NULL, NULL);
	process_exit(birth.fn(birth.arg, 3, 4));
}

/* A child as by fork(): with its parent's statics and descriptors 0 to 2; then what be_helper() of
 * the product does. Its parent's memory is its own memory too. */
static struct process *helper_new(const char *name, helper_fn fn, const void *arg, int news_fd,
				  int orders_fd, int out_fd)
{
	const uint64_t stops = SIGNAL_BIT(SIGTERM) | SIGNAL_BIT(SIGINT) | SIGNAL_BIT(SIGHUP);
	struct process *child = process_new(self->machine, self);
	struct helper_birth *birth;

	if (!child)
		return NULL;
	statics_copy(&child->coroutine->statics);
	child->coroutine->statics.environ = world_list(environ);
	for (int fd = 0; fd < 3; fd++) {
		int from = fd > 0 && out_fd >= 0 ? out_fd : fd;

		if (fd_file(from))
			fd_put(child, fd, fd_file(from), false);
	}
	fd_put(child, 3, fd_file(news_fd), false);
	fd_put(child, 4, fd_file(orders_fd), false);
	snprintf(child->name, sizeof child->name, "%s", name);
	child->ignored = (child->ignored | stops) & ~SIGNAL_BIT(SIGPIPE);
	if (out_fd >= 0) { /* it stands for the command */
		child->session = child->group = child->pid;
		child->ignored &= ~stops;
	}
	child->blocked = 0;
	child->death_signal = SIGKILL;
	birth = world_zero(sizeof *birth);
	*birth = (struct helper_birth){ .fn = fn, .arg = arg };
	process_schedule(child, be_helper, birth);
	return child;
}

static int helper_begin(struct call call, struct helper *helper, const char *name, helper_fn fn,
			const void *task, size_t size, int out_fd, struct err **err)
{
	void *task_copy = world_zero(size ? size : 1);
	struct process *child;
	int news[2], orders[2], failed;

	memcpy(task_copy, task, size);
	*helper = (struct helper){ .news_fd = -1, .orders_fd = -1 };
	failed = pipe_new(news, O_CLOEXEC);
	if (failed)
		return err_system(err, EXIT_REFUSED, -failed, "cannot make a pipe");
	failed = pipe_new(orders, O_CLOEXEC);
	if (failed) {
		fd_close(self, news[0]);
		fd_close(self, news[1]);
		return err_system(err, EXIT_REFUSED, -failed, "cannot make a pipe");
	}
	child = call.error ? NULL : helper_new(name, fn, task_copy, news[1], orders[0], out_fd);
	fd_close(self, news[1]);
	fd_close(self, orders[0]);
	helper->news_fd = news[0];
	helper->orders_fd = orders[1];
	if (!child)
		return err_system(err, EXIT_REFUSED, call.error ? call.error : EAGAIN,
				  "cannot start a process");
	helper->pid = child->pid;
	fd_file(news[0])->flags |= O_NONBLOCK;
	call_return(&call, child->pid);
	return 0;
}

int __wrap_helper_start(struct helper *helper, const char *name, helper_fn fn, const void *task,
			size_t size, struct err **err)
{
	return helper_begin(call_enter(CALL_helper_start, NULL, -1), helper, name, fn, task, size,
			    -1, err);
}

int __wrap_helper_start_command(struct helper *helper, const char *name, helper_fn fn,
				const void *task, size_t size, int out_fd, struct err **err)
{
	return helper_begin(call_enter(CALL_helper_start_command, NULL, out_fd), helper, name, fn,
			    task, size, out_fd, err);
}

pid_t __wrap_setsid(void)
{
	world_broken("setsid() is called; only a child of fork() may");
}

pid_t __wrap_fork(void)
{
	world_broken("fork() is called; only helper_start() may, which the world replaces");
}

/* ---- threads: there are none, so that the caller does all the work ---- */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*fn)(void *),
			  void *arg)
{
	(void)thread, (void)attributes, (void)fn, (void)arg;
	call_enter(CALL_pthread_create, NULL, -1);
	return EAGAIN;
}

int __wrap_pthread_join(pthread_t thread, void **ret_value)
{
	(void)thread, (void)ret_value;
	return ESRCH;
}

int __wrap_pthread_clockjoin_np(pthread_t thread, void **ret_value, clockid_t clock,
				const struct timespec *end)
{
	(void)thread, (void)ret_value, (void)clock, (void)end;
	return ESRCH;
}

/* ---- the end ---- */

_Noreturn void __wrap__exit(int status)
{
	call_enter(CALL__exit, NULL, -1);
	process_exit(status);
}

_Noreturn void __wrap_abort(void)
{
	process_end(self, SIGABRT);
	process_leave();
	__builtin_unreachable();
}
