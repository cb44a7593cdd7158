/* Waiting for children, and descriptors of processes: see kernel.h. */
#include <fcntl.h>
#include <stdarg.h>
#include <sys/poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/world/kernel_internal.h"

CALL_WRAPS(waitpid);
CALL_WRAPS(syscall);

/* ---- waitpid ---- */

static bool is_wanted(const struct process *process, pid_t wanted)
{
	if (process->machine != self->machine || process->parent != self->pid ||
	    process->state == PROCESS_GONE)
		return false;
	if (wanted == -1)
		return true;
	if (wanted > 0)
		return process->pid == wanted;
	return process->group == (wanted == 0 ? self->group : -wanted);
}

/* The child that ended first of those wanted; *ret_any: there are children to wait for. */
static struct process *ended_child(pid_t wanted, bool *ret_any)
{
	struct process *found = NULL;

	*ret_any = false;
	for (struct process *at = processes; at; at = at->next) {
		if (!is_wanted(at, wanted))
			continue;
		*ret_any = true;
		if (at->state == PROCESS_ZOMBIE)
			found = at; /* the list begins with the newest */
	}
	return found;
}

static bool wait_is_over(void *arg)
{
	bool any;

	return ended_child(*(const pid_t *)arg, &any) || !any;
}

pid_t __wrap_waitpid(pid_t wanted, int *ret_status, int options)
{
	struct call call = call_enter(CALL_waitpid, NULL, -1);
	struct process *child;
	bool any;
	int waited = 0;

	if (options & WNOHANG)
		call.error = 0; /* it does not wait, so nothing interrupts it: waitpid(2) */
	if (call.error)
		return call_fail(&call);
	while (!(child = ended_child(wanted, &any)) && any && !(options & WNOHANG) && waited == 0)
		waited = world_wait(wait_is_over, &wanted, WORLD_NEVER);
	if (!child)
		return (pid_t)call_return(&call, !any ? -ECHILD : waited);
	if (ret_status)
		*ret_status = child->status;
	process_reap(child);
	return (pid_t)call_return(&call, child->pid);
}

/* ---- pidfd ---- */

static unsigned pidfd_ready(struct file *file)
{
	const struct process *process = file->data;

	return process->state == PROCESS_ALIVE ? 0 : POLLIN;
}

static ssize_t pidfd_read(struct file *file, void *buffer, size_t len)
{
	(void)file, (void)buffer, (void)len;
	return -EINVAL;
}

static const struct file_ops pidfd_ops = {
	.kind = "anon_inode:[pidfd]",
	.read = pidfd_read,
	.ready = pidfd_ready,
};

int pidfd_new(pid_t pid)
{
	struct process *process = pid > 0 ? process_find(self->machine, pid) : NULL;

	if (pid <= 0)
		return -EINVAL;
	return process ? fd_install(file_new(&pidfd_ops, 0, process), 0, true) : -ESRCH;
}

struct process *pidfd_process(const struct file *file)
{
	return file && file->ops == &pidfd_ops ? file->data : NULL;
}

/* From linux/pidfd.h, since Linux 6.9. */
#define SIGNAL_PROCESS_GROUP 4U

static int pidfd_send(int fd, int signo, unsigned flags)
{
	struct process *process = pidfd_process(fd_file(fd));

	if (!process)
		return -EBADF;
	if (flags & ~SIGNAL_PROCESS_GROUP || signo < 0 || signo > SIGNALS)
		return -EINVAL;
	if (flags & SIGNAL_PROCESS_GROUP)
		return signal_kill_group(process->pid, signo);
	if (process->state == PROCESS_GONE)
		return -ESRCH;
	if (signo > 0)
		signal_send(process, signo);
	return 0;
}

/* syscall() of the boxes: only these two numbers. */
long __wrap_syscall(long number, ...)
{
	struct call call = call_enter(CALL_syscall, NULL, -1);
	long result = -ENOSYS;
	va_list arguments;

	/* A refused descriptor does not stay open without its number: nobody could close it. */
	if (call.error && (!call.done || number == SYS_pidfd_open))
		return call_fail(&call);
	va_start(arguments, number);
	if (number == SYS_pidfd_open) {
		result = pidfd_new(va_arg(arguments, pid_t));
	} else if (number == SYS_pidfd_send_signal) {
		int fd = va_arg(arguments, int), signo = va_arg(arguments, int);

		(void)va_arg(arguments, void *);
		result = pidfd_send(fd, signo, va_arg(arguments, unsigned));
	}
	va_end(arguments);
	process_leave();
	signal_run_handlers();
	return call_return(&call, result);
}
