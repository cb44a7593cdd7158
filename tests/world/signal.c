/* Signals: who gets them, what they do. See kernel.h and signal(7). */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/poll.h>
#include <sys/signalfd.h>
#include <time.h>

#include "tests/world/kernel_internal.h"

CALL_WRAPS(kill);
CALL_WRAPS(signal);
CALL_WRAPS(sigprocmask);
CALL_WRAPS(sigpending);
CALL_WRAPS(sigtimedwait);
CALL_WRAPS(signalfd);

enum action { ACTION_END, ACTION_STOP, ACTION_NONE };

static const uint64_t stops =
	SIGNAL_BIT(SIGSTOP) | SIGNAL_BIT(SIGTSTP) | SIGNAL_BIT(SIGTTIN) | SIGNAL_BIT(SIGTTOU);
static const uint64_t harmless =
	SIGNAL_BIT(SIGCHLD) | SIGNAL_BIT(SIGCONT) | SIGNAL_BIT(SIGURG) | SIGNAL_BIT(SIGWINCH);

static enum action default_action(int signo)
{
	if (stops & SIGNAL_BIT(signo))
		return ACTION_STOP;
	return harmless & SIGNAL_BIT(signo) ? ACTION_NONE : ACTION_END;
}

/* The parent hears of a stop and of going on as of an end. */
static void stop(struct process *process)
{
	struct process *parent = process_parent(process);

	if (process->stopped)
		return;
	process->stopped = true;
	process->pending &= ~SIGNAL_BIT(SIGCONT);
	if (parent)
		signal_send(parent, SIGCHLD);
}

static void go_on(struct process *process)
{
	struct process *parent = process_parent(process);

	process->pending &= ~stops;
	if (!process->stopped)
		return;
	process->stopped = false;
	if (process->coroutine->waits && process->coroutine->stop_interrupts)
		schedule_interrupt(process);
	if (parent)
		signal_send(parent, SIGCHLD);
	world_stir();
}

void signal_act(struct process *process)
{
	for (int signo = 1; signo <= SIGNALS && process_runs(process); signo++) {
		uint64_t bit = SIGNAL_BIT(signo);

		if (!(process->pending & ~process->blocked & bit))
			continue;
		if (process->caught & bit) {
			schedule_interrupt(process);
			continue;
		}
		process->pending &= ~bit;
		if (process->ignored & bit)
			continue;
		switch (default_action(signo)) {
		case ACTION_END:
			process_end(process, signo);
			return;
		case ACTION_STOP:
			stop(process);
			break;
		case ACTION_NONE:
			break;
		}
	}
}

void (*signal_watcher)(const struct process *to, int signo);

void signal_send(struct process *process, int signo)
{
	uint64_t bit = SIGNAL_BIT(signo);
	bool is_moot = process->ignored & bit ||
		       (!(process->caught & bit) && default_action(signo) == ACTION_NONE);

	if (process->state != PROCESS_ALIVE)
		return;
	if (signal_watcher)
		signal_watcher(process, signo);
	if (signo == SIGKILL) {
		process_end(process, SIGKILL);
		return;
	}
	if (signo == SIGCONT) {
		go_on(process);
		signal_act(process); /* what has waited meanwhile */
		if (process->state != PROCESS_ALIVE)
			return;
	}
	if (signo == SIGSTOP) {
		stop(process);
		return;
	}
	/* A blocked signal waits even if it is ignored: the process may think better of it. */
	if (is_moot && !(process->blocked & bit))
		return;
	process->pending |= bit;
	world_stir();
	signal_act(process);
}

/* ---- handlers ---- */

bool signal_has_handler_due(const struct process *process)
{
	return (process->pending & ~process->blocked & process->caught) != 0;
}

void signal_run_handlers(void)
{
	for (int signo = 1; signo <= SIGNALS && signal_has_handler_due(self); signo++) {
		uint64_t bit = SIGNAL_BIT(signo), blocked = self->blocked;
		void (*handler)(int signo) = self->coroutine->handlers[signo];
		int failed = errno;

		if (!(self->pending & ~self->blocked & self->caught & bit))
			continue;
		self->pending &= ~bit;
		self->blocked |= bit;
		handler(signo);
		self->blocked = blocked;
		errno = failed;
	}
}

void signal_reset_handlers(struct process *process)
{
	process->caught = 0;
}

/* glibc's signal() sets SA_RESTART, which has read() and waitpid() go on after a handler; here
 * every wait ends with EINTR, which POSIX allows without that flag. */
sighandler_t __wrap_signal(int signo, sighandler_t handler)
{
	struct call call = call_enter(CALL_signal, NULL, -1);
	uint64_t bit = SIGNAL_BIT(signo);
	sighandler_t before;

	(void)call;
	if (signo < 1 || signo > SIGNALS || signo == SIGKILL || signo == SIGSTOP) {
		errno = EINVAL;
		return SIG_ERR;
	}
	before = self->ignored & bit  ? SIG_IGN
		 : self->caught & bit ? self->coroutine->handlers[signo]
				      : SIG_DFL;
	self->ignored &= ~bit;
	self->caught &= ~bit;
	if (handler == SIG_IGN) {
		self->ignored |= bit;
		self->pending &= ~bit;
	} else if (handler != SIG_DFL) {
		self->caught |= bit;
		self->coroutine->handlers[signo] = handler;
	}
	signal_act(self);
	process_leave();
	return before;
}

/* ---- masks ---- */

static uint64_t from_set(const sigset_t *set)
{
	uint64_t bits;

	memcpy(&bits, set, sizeof bits);
	return bits;
}

static void to_set(uint64_t bits, sigset_t *set)
{
	memset(set, 0, sizeof *set);
	memcpy(set, &bits, sizeof bits);
}

int __wrap_sigprocmask(int how, const sigset_t *set, sigset_t *before)
{
	uint64_t was, bits;

	call_enter(CALL_sigprocmask, NULL, -1);
	was = self->blocked;
	if (set) {
		bits = from_set(set);
		if (how == SIG_BLOCK)
			self->blocked |= bits;
		else if (how == SIG_UNBLOCK)
			self->blocked &= ~bits;
		else
			self->blocked = bits;
		self->blocked &= ~(SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP));
	}
	if (before)
		to_set(was, before);
	signal_act(self);
	process_leave();
	signal_run_handlers();
	return 0;
}

int __wrap_sigpending(sigset_t *set)
{
	call_enter(CALL_sigpending, NULL, -1);
	to_set(self->pending & self->blocked, set);
	return 0;
}

/* Takes the lowest of these that is pending; 0: none is. */
static int take(uint64_t bits)
{
	bits &= self->pending;
	if (!bits)
		return 0;
	self->pending &= ~(bits & -bits);
	return __builtin_ctzll(bits) + 1;
}

static bool any_is_pending(void *arg)
{
	return (self->pending & *(const uint64_t *)arg) != 0;
}

int __wrap_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	struct call call = call_enter(CALL_sigtimedwait, NULL, -1);
	int64_t until_ns = WORLD_NEVER;
	uint64_t bits = from_set(set);
	int signo = take(bits), waited = -EAGAIN;

	if (timeout)
		until_ns = now_ns + timeout->tv_sec * WORLD_S + timeout->tv_nsec;
	while (!signo && until_ns > now_ns) {
		self->coroutine->stop_interrupts = true;
		waited = world_wait(any_is_pending, &bits, until_ns);
		if (waited < 0)
			break;
		signo = take(bits);
	}
	if (signo && info) {
		memset(info, 0, sizeof *info);
		info->si_signo = signo;
	}
	if (waited == -ETIMEDOUT)
		waited = -EAGAIN;
	return (int)call_return(&call, signo ? signo : waited);
}

/* ---- signalfd ---- */

static uint64_t *mask_of(struct file *file)
{
	return file->data;
}

static ssize_t signalfd_read(struct file *file, void *buffer, size_t len)
{
	struct signalfd_siginfo info;
	size_t done = 0;
	int signo;

	if (len < sizeof info)
		return -EINVAL;
	while (len - done >= sizeof info && (signo = take(*mask_of(file)))) {
		memset(&info, 0, sizeof info);
		info.ssi_signo = (uint32_t)signo;
		memcpy((char *)buffer + done, &info, sizeof info);
		done += sizeof info;
	}
	return done > 0 ? (ssize_t)done : -EAGAIN;
}

static unsigned signalfd_ready(struct file *file)
{
	return self && self->pending & *mask_of(file) ? POLLIN : 0;
}

static void signalfd_release(struct file *file)
{
	free(file->data);
}

static const struct file_ops signalfd_ops = {
	.kind = "anon_inode:[signalfd]",
	.read = signalfd_read,
	.ready = signalfd_ready,
	.release = signalfd_release,
};

static int signalfd_new(uint64_t bits, int flags)
{
	uint64_t *mask = malloc(sizeof *mask);

	if (!mask)
		world_broken("there is no memory left");
	*mask = bits;
	return fd_install(file_new(&signalfd_ops, flags & SFD_NONBLOCK ? O_NONBLOCK : 0, mask), 0,
			  flags & SFD_CLOEXEC);
}

int __wrap_signalfd(int fd, const sigset_t *set, int flags)
{
	struct call call = call_enter(CALL_signalfd, NULL, fd);
	struct file *file;

	if (fd != -1)
		call.error = 0; /* another mask for one that there is takes nothing: signalfd(2) */
	/* Nothing stays open without its number: nobody could close it. */
	if (call.error)
		return call_fail(&call);
	if (fd == -1)
		return (int)call_return(&call, signalfd_new(from_set(set), flags));
	file = fd_file(fd);
	if (!file)
		return (int)call_return(&call, -EBADF);
	if (file->ops != &signalfd_ops)
		return (int)call_return(&call, -EINVAL);
	*mask_of(file) = from_set(set);
	world_stir();
	return (int)call_return(&call, fd);
}

/* ---- kill ---- */

/* True if kill(pid) of the running process means that one. */
static bool is_meant(const struct process *process, pid_t pid)
{
	if (process->machine != self->machine || process->state == PROCESS_GONE)
		return false;
	if (pid == -1)
		return process != self;
	if (pid > 0)
		return process->pid == pid;
	return process->group == (pid == 0 ? self->group : -pid);
}

static int kill_all(pid_t pid, int signo)
{
	struct process *me = self;
	bool found = false, me_too = false;

	if (signo < 0 || signo > SIGNALS)
		return -EINVAL;
	if (pid == INIT_PID)
		return signo ? -EPERM : 0;
	for (struct process *at = processes; at; at = at->next) {
		if (!is_meant(at, pid))
			continue;
		found = true;
		if (signo == 0)
			continue;
		if (at == me)
			me_too = true; /* last: it may end us */
		else
			signal_send(at, signo);
	}
	if (me_too)
		signal_send(me, signo);
	return found ? 0 : -ESRCH;
}

int signal_kill_group(pid_t leader, int signo)
{
	return kill_all(-leader, signo);
}

int __wrap_kill(pid_t pid, int signo)
{
	struct call call = call_enter(CALL_kill, NULL, -1);
	int result = kill_all(pid, signo);

	process_leave();
	signal_run_handlers();
	if (self->stopped) /* by its own hand */
		world_spend(0);
	return (int)call_return(&call, result);
}
