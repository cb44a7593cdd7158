/* poll, epoll and timerfd: see kernel.h, epoll(7), timerfd_create(2). */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "tests/world/kernel_internal.h"

CALL_WRAPS(poll);
CALL_WRAPS(epoll_create1);
CALL_WRAPS(epoll_ctl);
CALL_WRAPS(epoll_wait);
CALL_WRAPS(timerfd_create);
CALL_WRAPS(timerfd_settime);

unsigned file_events(struct file *file)
{
	return file->ops->ready ? file->ops->ready(file) : POLLIN | POLLOUT;
}

/* Milliseconds from now; negative: without end. */
static int64_t deadline_ns(int timeout_ms)
{
	return timeout_ms < 0 ? WORLD_NEVER : now_ns + timeout_ms * WORLD_MS;
}

/* ---- poll ---- */

struct poll_list {
	struct pollfd *polls;
	nfds_t count;
};

static unsigned poll_one(const struct pollfd *poll)
{
	struct file *file;

	if (poll->fd < 0)
		return 0;
	file = fd_file(poll->fd);
	if (!file)
		return POLLNVAL;
	return file_events(file) & ((unsigned)poll->events | POLLERR | POLLHUP);
}

static int poll_all(const struct poll_list *list)
{
	int count = 0;

	for (nfds_t i = 0; i < list->count; i++) {
		list->polls[i].revents = (short)poll_one(&list->polls[i]);
		count += list->polls[i].revents != 0;
	}
	return count;
}

static bool any_is_ready(void *arg)
{
	const struct poll_list *list = arg;

	for (nfds_t i = 0; i < list->count; i++)
		if (poll_one(&list->polls[i]))
			return true;
	return false;
}

int __wrap_poll(struct pollfd *polls, nfds_t count, int timeout_ms)
{
	struct call call = call_enter(CALL_poll, NULL, -1);
	int64_t until_ns = deadline_ns(timeout_ms);
	struct poll_list list = { polls, count };
	int waited = 0, found;

	if (call.error == EINTR && (timeout_ms == 0 || poll_all(&list) != 0))
		call.error = 0; /* only a call that waits is interrupted */
	if (call.error)
		return call_fail(&call);
	while ((found = poll_all(&list)) == 0 && timeout_ms != 0 && waited == 0)
		waited = world_wait(any_is_ready, &list, until_ns);
	return (int)call_return(&call, found == 0 && waited == -EINTR ? -EINTR : found);
}

/* ---- epoll ---- */

struct interest {
	struct file *file; /* not held: closing the last descriptor removes the interest */
	int fd;
	struct epoll_event wanted;
	struct interest *next;
};

struct epoll {
	struct interest *first;
	struct epoll *next;
};

static struct epoll *epolls;

static unsigned events_of(const struct interest *interest)
{
	return file_events(interest->file) & (interest->wanted.events | EPOLLERR | EPOLLHUP);
}

static unsigned epoll_ready(struct file *file)
{
	const struct epoll *epoll = file->data;

	for (const struct interest *at = epoll->first; at; at = at->next)
		if (events_of(at))
			return POLLIN;
	return 0;
}

static void epoll_release(struct file *file)
{
	struct epoll *epoll = file->data, **at = &epolls;
	struct interest *next;

	for (struct interest *interest = epoll->first; interest; interest = next) {
		next = interest->next;
		free(interest);
	}
	while (*at != epoll)
		at = &(*at)->next;
	*at = epoll->next;
	free(epoll);
}

static const struct file_ops epoll_ops = {
	.kind = "anon_inode:[eventpoll]",
	.ready = epoll_ready,
	.release = epoll_release,
};

void epolls_forget(struct file *file)
{
	for (struct epoll *epoll = epolls; epoll; epoll = epoll->next)
		for (struct interest **at = &epoll->first; *at;) {
			struct interest *interest = *at;

			if (interest->file != file) {
				at = &interest->next;
				continue;
			}
			*at = interest->next;
			free(interest);
		}
}

int __wrap_epoll_create1(int flags)
{
	struct call call = call_enter(CALL_epoll_create1, NULL, -1);
	struct epoll *epoll;

	if (call.error)
		return call_fail(&call);
	epoll = world_zero(sizeof *epoll);
	epoll->next = epolls;
	epolls = epoll;
	return (int)call_return(
		&call, fd_install(file_new(&epoll_ops, 0, epoll), 0, flags & EPOLL_CLOEXEC));
}

static struct interest **find_interest(struct epoll *epoll, const struct file *file, int fd)
{
	struct interest **at = &epoll->first;

	while (*at && ((*at)->file != file || (*at)->fd != fd))
		at = &(*at)->next;
	return at;
}

static int epoll_change(struct epoll *epoll, int op, int fd, const struct epoll_event *event)
{
	struct file *file = fd_file(fd);
	struct interest **at, *interest;

	if (!file)
		return -EBADF;
	if (!file->ops->ready)
		return -EPERM; /* a regular file or a folder */
	at = find_interest(epoll, file, fd);
	interest = *at;
	if (op == EPOLL_CTL_ADD ? interest != NULL : !interest)
		return interest ? -EEXIST : -ENOENT;
	switch (op) {
	case EPOLL_CTL_ADD:
		*at = interest = world_zero(sizeof *interest);
		interest->file = file;
		interest->fd = fd;
		interest->wanted = *event;
		break;
	case EPOLL_CTL_MOD:
		interest->wanted = *event;
		break;
	case EPOLL_CTL_DEL:
		*at = interest->next;
		free(interest);
		break;
	default:
		return -EINVAL;
	}
	world_stir();
	return 0;
}

static struct epoll *epoll_of(int fd, int *ret_failed)
{
	struct file *file = fd_file(fd);

	*ret_failed = !file ? -EBADF : file->ops != &epoll_ops ? -EINVAL : 0;
	return *ret_failed ? NULL : file->data;
}

int __wrap_epoll_ctl(int epoll_fd, int op, int fd, struct epoll_event *event)
{
	struct call call = call_enter(CALL_epoll_ctl, NULL, fd);
	struct epoll *epoll;
	int failed;

	if (call.error && op == EPOLL_CTL_ADD)
		return call_fail(&call);
	call.error = 0; /* only an addition needs memory */
	epoll = epoll_of(epoll_fd, &failed);
	return (int)call_return(&call, failed ? failed : epoll_change(epoll, op, fd, event));
}

static int collect(const struct epoll *epoll, struct epoll_event *events, int room)
{
	int count = 0;

	for (const struct interest *at = epoll->first; at && count < room; at = at->next) {
		unsigned found = events_of(at);

		if (found) {
			events[count] = at->wanted;
			events[count++].events = found;
		}
	}
	/* Linux tells them in the order in which they became ready, which is anybody's guess. */
	for (int i = count; i > 1; i--) {
		int other = (int)chance_below(i);
		struct epoll_event event = events[i - 1];

		events[i - 1] = events[other];
		events[other] = event;
	}
	return count;
}

static bool epoll_has_any(void *arg)
{
	return epoll_ready(arg) != 0;
}

int __wrap_epoll_wait(int fd, struct epoll_event *events, int room, int timeout_ms)
{
	struct call call = call_enter(CALL_epoll_wait, NULL, fd);
	int64_t until_ns = deadline_ns(timeout_ms);
	int failed, found, waited = 0;
	struct epoll *epoll = epoll_of(fd, &failed);

	if (call.error == EINTR && (timeout_ms == 0 || failed || epoll_has_any(fd_file(fd))))
		call.error = 0; /* as above */
	if (call.error)
		return call_fail(&call);
	if (failed || room <= 0)
		return (int)call_return(&call, failed ? failed : -EINVAL);
	while ((found = collect(epoll, events, room)) == 0 && timeout_ms != 0 && waited == 0) {
		self->coroutine->stop_interrupts = true;
		waited = world_wait(epoll_has_any, fd_file(fd), until_ns);
	}
	return (int)call_return(&call, found == 0 && waited == -EINTR ? -EINTR : found);
}

/* ---- timerfd ---- */

struct timerfd {
	const struct machine *machine;
	clockid_t clock;
	int64_t due_ns;    /* on its clock; 0: not armed */
	int64_t period_ns; /* 0: once */
	bool told;         /* those who wait have been told that it is due */
	struct timerfd *next;
};

static struct timerfd *timerfds;
static int64_t next_due_ns = WORLD_NEVER;
static bool is_known; /* next_due_ns is right */

static bool is_due(const struct timerfd *timer)
{
	return timer->due_ns && machine_clock_ns(timer->machine, timer->clock) >= timer->due_ns;
}

/* On the world's clock, if no clock of a machine is set meanwhile. */
static int64_t world_due_ns(const struct timerfd *timer)
{
	if (!timer->due_ns || timer->told)
		return WORLD_NEVER;
	/* The clock of a machine that sleeps stands; machine_wake() stirs. */
	if (timer->clock == CLOCK_MONOTONIC && timer->machine->asleep_since_ns != WORLD_NEVER)
		return WORLD_NEVER;
	return now_ns + timer->due_ns - machine_clock_ns(timer->machine, timer->clock);
}

int64_t timerfds_due_ns(void)
{
	if (is_known)
		return next_due_ns;
	next_due_ns = WORLD_NEVER;
	for (const struct timerfd *at = timerfds; at; at = at->next) {
		int64_t due_ns = world_due_ns(at);

		next_due_ns = due_ns < next_due_ns ? due_ns : next_due_ns;
	}
	is_known = true;
	return next_due_ns;
}

void timerfds_fire(void)
{
	for (struct timerfd *at = timerfds; at; at = at->next)
		if (is_due(at))
			at->told = true;
	is_known = false;
	world_stir();
}

static unsigned timerfd_ready(struct file *file)
{
	return is_due(file->data) ? POLLIN : 0;
}

static ssize_t timerfd_read(struct file *file, void *buffer, size_t len)
{
	struct timerfd *timer = file->data;
	uint64_t times = 1;

	if (len < sizeof times)
		return -EINVAL;
	if (!is_due(timer))
		return -EAGAIN;
	if (timer->period_ns) {
		int64_t late_ns = machine_clock_ns(timer->machine, timer->clock) - timer->due_ns;

		times += (uint64_t)(late_ns / timer->period_ns);
		timer->due_ns += (int64_t)times * timer->period_ns;
	} else {
		timer->due_ns = 0;
	}
	timer->told = false;
	is_known = false;
	memcpy(buffer, &times, sizeof times);
	return sizeof times;
}

static void timerfd_release(struct file *file)
{
	struct timerfd *timer = file->data, **at = &timerfds;

	while (*at != timer)
		at = &(*at)->next;
	*at = timer->next;
	free(timer);
	is_known = false;
}

static const struct file_ops timerfd_ops = {
	.kind = "anon_inode:[timerfd]",
	.read = timerfd_read,
	.ready = timerfd_ready,
	.release = timerfd_release,
};

int __wrap_timerfd_create(clockid_t clock, int flags)
{
	struct call call = call_enter(CALL_timerfd_create, NULL, -1);
	struct timerfd *timer;

	if (call.error)
		return call_fail(&call);
	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME)
		return (int)call_return(&call, -EINVAL);
	timer = world_zero(sizeof *timer);
	timer->machine = self->machine;
	timer->clock = clock;
	timer->next = timerfds;
	timerfds = timer;
	return (int)call_return(
		&call,
		fd_install(file_new(&timerfd_ops, flags & TFD_NONBLOCK ? O_NONBLOCK : 0, timer), 0,
			   flags & TFD_CLOEXEC));
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *set,
			   struct itimerspec *before)
{
	struct call call = call_enter(CALL_timerfd_settime, NULL, fd);
	struct file *file = fd_file(fd);
	struct timerfd *timer;
	int64_t at_ns = set->it_value.tv_sec * WORLD_S + set->it_value.tv_nsec;

	if (!file || file->ops != &timerfd_ops)
		return (int)call_return(&call, file ? -EINVAL : -EBADF);
	timer = file->data;
	if (before)
		return (int)call_return(&call, -EINVAL); /* nobody asks */
	if (at_ns != 0 && !(flags & TFD_TIMER_ABSTIME))
		at_ns += machine_clock_ns(timer->machine, timer->clock);
	timer->due_ns = at_ns;
	timer->period_ns = set->it_interval.tv_sec * WORLD_S + set->it_interval.tv_nsec;
	timer->told = false;
	is_known = false;
	return (int)call_return(&call, 0);
}
