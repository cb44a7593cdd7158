/* What the files of the kernel share; nobody else includes it. See kernel.h. */
#ifndef STK_TESTS_WORLD_KERNEL_INTERNAL_H
#define STK_TESTS_WORLD_KERNEL_INTERNAL_H

#include <stdio.h>

#include "tests/world/call.h"
#include "tests/world/fiber.h"
#include "tests/world/kernel.h"

#define SIGNALS  64
#define INIT_PID ((pid_t)1) /* of each machine; reaps at once, is no struct process */

/* What of a process lies outside of its own memory in this one: see statics.c. */
struct statics {
	char *image; /* NULL: as the program was linked */
	char **environ;
	FILE *err; /* stderr; NULL: not made yet */
};

/* A process that is alive, as the scheduler sees it. */
struct coroutine {
	struct process *process;
	struct fiber *fiber;
	void (*body)(struct process *process); /* does not return */
	void *arg;                             /* of the body */
	struct statics statics;
	void (*handlers[SIGNALS + 1])(int signo);
	/* It goes on at `wake_ns`; of two at the same time the one with the lower order. */
	int64_t wake_ns;
	uint64_t order;
	bool waits; /* in world_wait(), and nothing has ended the wait */
	bool (*ready)(void *arg);
	void *ready_arg;
	int result;              /* of world_wait() */
	bool stop_interrupts;    /* SIGCONT ends the wait with EINTR: signal(7) */
	struct coroutine *next;  /* all, in the order of their start */
	struct coroutine **prev; /* what points to this one */
};

/* ---- kernel.c ---- */

/* The world itself cannot go on. Not abort(), which here ends a process of the world. */
_Noreturn void world_broken(const char *what);
void *world_zero(size_t size);        /* never NULL */
char *world_copy(const char *text);   /* NULL for NULL */
char **world_list(char *const *list); /* a copy, ended by NULL; an empty one for NULL */

/* A new process with a pid of its own, not scheduled yet; its cwd, limits, masks and identity are
 * those of `parent`, or, without one, those of init's children. NULL: the machine has no free
 * pid. */
struct process *process_new(struct machine *machine, struct process *parent);
/* Has it run `body` from now on. */
void process_schedule(struct process *process, void (*body)(struct process *process), void *arg);
/* Replaces what the process runs, as exec() does; copied. */
void process_becomes(struct process *process, const char *program, char *const *argv,
		     char *const *envp);
/* It ends with this status, as waitpid() gives it. May be the running one: then call
 * process_leave() when all is done. */
void process_end(struct process *process, int status);
/* It never was: no status, no SIGCHLD. Its pid is free again. Same care for the running one. */
void process_vanish(struct process *process);
/* Frees the pid of a zombie. */
void process_reap(struct process *process);
/* If the running process has ended meanwhile, never returns. */
void process_leave(void);
/* True if it may run now: not stopped, its machine awake. */
bool process_runs(const struct process *process);
struct process *process_parent(const struct process *process); /* NULL: init */

/* ---- schedule.c ---- */

/* The process whose fiber runs, also while `self` is NULL for the world's own code. */
extern struct process *running_process;
void schedule_add(struct coroutine *coroutine);
void schedule_remove(struct coroutine *coroutine);
/* Ends the wait of a process with EINTR. */
void schedule_interrupt(struct process *process);
/* What time the waits of a machine have slept does not count: they are put off. */
void schedule_put_off(const struct machine *machine, int64_t ns);
/* Calls world_observer as the world itself. */
void world_observe(void);

/* ---- signal.c ---- */

#define SIGNAL_BIT(signo) (UINT64_C(1) << ((signo)-1))

/* As the kernel sends it. */
void signal_send(struct process *process, int signo);
/* Does what is pending, not blocked and does not need the process to run: ends or stops it. */
void signal_act(struct process *process);
/* True if a handler of the process is due. */
bool signal_has_handler_due(const struct process *process);
/* In the running process: runs the handlers that are due. */
void signal_run_handlers(void);
/* kill(-leader) by the running process: 0 or a negative errno. May end the running one. */
int signal_kill_group(pid_t leader, int signo);
/* After exec(): what was caught is at its default again. */
void signal_reset_handlers(struct process *process);

/* ---- wait.c ---- */

/* Descriptor for a process, or a negative errno. */
int pidfd_new(pid_t pid);
/* The process behind a pidfd; NULL: it is none. */
struct process *pidfd_process(const struct file *file);

/* ---- file.c ---- */

/* As read() and write(), which wait; negative errno. write() to a pipe without readers sends
 * SIGPIPE. */
ssize_t file_read(struct file *file, void *buffer, size_t len);
ssize_t file_write(struct file *file, const void *bytes, size_t len);
/* What `stderr` is to a process: a stream on its descriptor 2, without a buffer. */
FILE *stderr_new(void);
int pipe_new(int fds[2], int flags); /* 0 or a negative errno */
void fds_copy(struct process *to, const struct process *from);
void fds_close(struct process *process);
/* As dup2() within the process; closes `to` first. The reference is added. */
void fd_put(struct process *process, int fd, struct file *file, bool close_on_exec);

/* ---- poll.c ---- */

/* When the next timerfd of any process is due; WORLD_NEVER: none. */
int64_t timerfds_due_ns(void);
/* Looks at the timerfds anew. */
void timerfds_fire(void);
/* A description is gone: epolls forget it. */
void epolls_forget(struct file *file);
/* What poll() would say of a description now. */
unsigned file_events(struct file *file);

/* ---- program.c ---- */

/* What an execve() comes to, when all "#!" lines are followed. */
struct execution {
	program_fn fn;
	char *program; /* absolute path, or beneath the cwd */
	char **argv;
};

program_fn program_find(const char *name); /* NULL: not registered */
/* 0 or a negative errno; release it, whatever came of it. */
int execution_find(struct machine *machine, const char *cwd, const char *path, char *const *argv,
		   struct execution *ret);
void execution_release(struct execution *execution);
/* Has the running process be the program. environ and argv belong to the program, which may change
 * them; those of the process are what it was started with. */
_Noreturn void execution_run(struct process *process, program_fn fn);
/* Opens a file of the running process as this descriptor; 0 or a negative errno. */
int fd_open(int fd, const char *path, int flags, mode_t mode);

/* ---- statics.c ---- */

/* Has the statics of the boxes be those of this process. */
void statics_enter(struct coroutine *coroutine);
/* `environ` and `stderr` are the test program's again. `coroutine`: whose they were; NULL: it has
 * ended. */
void statics_leave(struct coroutine *coroutine);
/* A copy of what the running process has, for its child by fork(). */
void statics_copy(struct statics *ret);
void statics_free(struct statics *statics);
/* Forgets whose statics these are, because the process is no more. */
void statics_forget(const struct coroutine *coroutine);

#endif
