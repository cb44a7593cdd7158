/* The event loop on epoll, signalfd, pidfd and timerfd: see loop.h. */
#include "jobs/base/process/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "jobs/base/clock.h"

#define NEVER INT64_MAX

enum kind { ON_READY, ON_TIME, ON_SIGNAL, ON_EXIT };

struct watch {
	enum kind kind;
	bool dead; /* removed in this turn; the batch may still hold an event of it */
	watch_fn fn;
	void *arg;
	int fd;       /* ON_READY: the caller's; ON_EXIT: the watch's own pidfd */
	int signo;    /* ON_SIGNAL */
	int64_t due;  /* ON_TIME: mono ms */
	uint64_t age; /* ON_TIME: orders timers that are due at the same time */
	struct watch *prev, *next;
};

struct loop_list {
	struct watch *first, *last;
};

struct loop {
	int epoll_fd, signal_fd, timer_fd;
	sigset_t caught;  /* reported by signal_fd */
	sigset_t blocked; /* the caught signals that were not blocked before */
	bool quit, in_turn, has_dead;
	int64_t armed_for; /* when timer_fd fires */
	uint64_t timers_made;
	struct epoll_event *events;
	size_t event_room, fd_count;
	struct loop_list timers; /* living ones only, by due time, then age */
	struct loop_list others; /* newest first; dead ones until the turn is over */
};

static void list_insert(struct loop_list *list, struct watch *next, struct watch *watch)
{
	struct watch *prev = next ? next->prev : list->last;

	watch->prev = prev;
	watch->next = next;
	*(prev ? &prev->next : &list->first) = watch;
	*(next ? &next->prev : &list->last) = watch;
}

static void list_take(struct loop_list *list, struct watch *watch)
{
	*(watch->prev ? &watch->prev->next : &list->first) = watch->next;
	*(watch->next ? &watch->next->prev : &list->last) = watch->prev;
}

static void list_free(struct loop_list *list)
{
	struct watch *next;

	for (struct watch *watch = list->first; watch; watch = next) {
		next = watch->next;
		if (watch->kind == ON_EXIT)
			auto_close(&watch->fd);
		free(watch);
	}
}

/* Put one of the loop's own descriptors, or a watch's, under epoll. */
static int poll_add(struct loop *loop, int fd, uint32_t events, void *tag)
{
	struct epoll_event event = { .events = events, .data.ptr = tag };
	int failures = 0;

	while (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		if (!err_try_again(&failures))
			return -1;
	loop->fd_count++;
	return 0;
}

static void poll_remove(struct loop *loop, int fd)
{
	/* Fails if the caller has closed the fd already; epoll has forgotten it then. */
	(void)!epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	loop->fd_count--;
}

/* Opens what is not open yet; false with errno if something is missing still. */
static bool open_all(struct loop *loop)
{
	if (loop->epoll_fd < 0)
		loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd >= 0 && loop->signal_fd < 0)
		loop->signal_fd = signalfd(-1, &loop->caught, SFD_NONBLOCK | SFD_CLOEXEC);
	/* CLOCK_BOOTTIME goes on while the machine sleeps, as deadlines do. */
	if (loop->signal_fd >= 0 && loop->timer_fd < 0)
		loop->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
	if (loop->timer_fd < 0)
		return false;
	return (loop->fd_count > 0 ||
		poll_add(loop, loop->signal_fd, EPOLLIN, &loop->signal_fd) == 0) &&
	       poll_add(loop, loop->timer_fd, EPOLLIN, &loop->timer_fd) == 0;
}

int loop_new(struct loop **ret, struct err **err)
{
	AUTO(loop_freep) struct loop *loop = mem_zero(1, sizeof *loop);
	int failures = 0;

	sigemptyset(&loop->caught);
	sigemptyset(&loop->blocked);
	loop->armed_for = NEVER;
	loop->epoll_fd = loop->signal_fd = loop->timer_fd = -1;
	while (!open_all(loop))
		if (!err_try_again(&failures))
			return err_system(err, EXIT_REFUSED, errno, "cannot set up the event loop");
	*ret = TAKE(loop);
	return 0;
}

void loop_freep(struct loop **loop)
{
	struct loop *l = *loop;

	if (!l)
		return;
	list_free(&l->timers);
	list_free(&l->others);
	auto_close(&l->timer_fd);
	auto_close(&l->signal_fd);
	auto_close(&l->epoll_fd);
	sigprocmask(SIG_UNBLOCK, &l->blocked, NULL);
	free(l->events);
	free(l);
	*loop = NULL;
}

static struct watch *watch_new(enum kind kind, watch_fn fn, void *arg)
{
	struct watch *watch = mem_zero(1, sizeof *watch);

	watch->kind = kind;
	watch->fn = fn;
	watch->arg = arg;
	watch->fd = -1;
	return watch;
}

struct watch *loop_on_ready(struct loop *loop, int fd, int interest, watch_fn fn, void *arg)
{
	AUTO(auto_free) struct watch *watch = watch_new(ON_READY, fn, arg);
	uint32_t events = (interest & LOOP_READ ? (uint32_t)EPOLLIN : 0) |
			  (interest & LOOP_WRITE ? (uint32_t)EPOLLOUT : 0);

	if (poll_add(loop, fd, events, watch) < 0)
		return NULL;
	watch->fd = fd;
	list_insert(&loop->others, loop->others.first, watch);
	return TAKE(watch);
}

struct watch *loop_on_readable(struct loop *loop, int fd, watch_fn fn, void *arg)
{
	return loop_on_ready(loop, fd, LOOP_READ, fn, arg);
}

struct watch *loop_after(struct loop *loop, int64_t delay_ms, watch_fn fn, void *arg)
{
	struct watch *watch = watch_new(ON_TIME, fn, arg), *next = NULL;

	if (__builtin_add_overflow(clock_mono_now().ms, delay_ms > 0 ? delay_ms : 0, &watch->due))
		watch->due = NEVER;
	watch->age = loop->timers_made++;
	/* Most new timers are due after the existing ones: search from the end. */
	for (struct watch *at = loop->timers.last; at && at->due > watch->due; at = at->prev)
		next = at;
	list_insert(&loop->timers, next, watch);
	return watch;
}

static const int stops[] = { SIGTERM, SIGINT, SIGHUP, SIGUSR1 };

bool loop_stop_pending(void)
{
	sigset_t pending;
	bool any = false;

	if (sigpending(&pending) < 0)
		return false;
	for (size_t i = 0; i < STK_LENGTH(stops); i++)
		any |= sigismember(&pending, stops[i]) > 0;
	return any;
}

bool loop_stop_take(void)
{
	const struct timespec at_once = { 0 };
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < STK_LENGTH(stops); i++)
		sigaddset(&set, stops[i]);
	return sigtimedwait(&set, NULL, &at_once) > 0;
}

struct watch *loop_on_signal(struct loop *loop, int signo, watch_fn fn, void *arg)
{
	sigset_t caught = loop->caught, one, before;
	struct watch *watch;
	int failures = 0;

	sigemptyset(&one);
	if (sigaddset(&caught, signo) < 0 || sigaddset(&one, signo) < 0)
		return NULL;
	while (signalfd(loop->signal_fd, &caught, 0) < 0)
		if (!err_try_again(&failures))
			return NULL;
	loop->caught = caught;
	sigprocmask(SIG_BLOCK, &one, &before);
	if (!sigismember(&before, signo))
		sigaddset(&loop->blocked, signo);
	watch = watch_new(ON_SIGNAL, fn, arg);
	watch->signo = signo;
	list_insert(&loop->others, loop->others.first, watch);
	return watch;
}

struct watch *loop_on_exit(struct loop *loop, pid_t pid, watch_fn fn, void *arg)
{
	AUTO(auto_free) struct watch *watch = watch_new(ON_EXIT, fn, arg);

	watch->fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (watch->fd < 0)
		return NULL;
	if (poll_add(loop, watch->fd, EPOLLIN, watch) < 0) {
		int failed = errno;

		auto_close(&watch->fd);
		errno = failed;
		return NULL;
	}
	list_insert(&loop->others, loop->others.first, watch);
	return TAKE(watch);
}

static void stop_polling(struct loop *loop, struct watch *watch)
{
	if (watch->kind == ON_READY || watch->kind == ON_EXIT)
		poll_remove(loop, watch->fd);
	if (watch->kind == ON_EXIT)
		auto_close(&watch->fd);
}

/* Remove a watch within a turn: it is freed when the turn is over. */
static void lay_out(struct loop *loop, struct watch *watch)
{
	stop_polling(loop, watch);
	watch->dead = true;
	loop->has_dead = true;
	if (watch->kind == ON_TIME) {
		list_take(&loop->timers, watch);
		list_insert(&loop->others, loop->others.first, watch);
	}
}

void loop_remove(struct loop *loop, struct watch *watch)
{
	if (!watch || watch->dead)
		return;
	if (loop->in_turn) {
		lay_out(loop, watch);
		return;
	}
	stop_polling(loop, watch);
	list_take(watch->kind == ON_TIME ? &loop->timers : &loop->others, watch);
	free(watch);
}

/* Free the watches removed in this turn, now that nothing points at them any more. */
static void bury_dead(struct loop *loop)
{
	struct watch *next;

	for (struct watch *watch = loop->others.first; watch && loop->has_dead; watch = next) {
		next = watch->next;
		if (watch->dead) {
			list_take(&loop->others, watch);
			free(watch);
		}
	}
	loop->has_dead = false;
}

/* Reads one signal at a time, so that loop_quit() leaves the rest for the next loop_run(). */
static void dispatch_signals(struct loop *loop)
{
	struct signalfd_siginfo info;

	while (!loop->quit && read(loop->signal_fd, &info, sizeof info) == sizeof info)
		for (struct watch *watch = loop->others.first; watch; watch = watch->next)
			if (watch->kind == ON_SIGNAL && !watch->dead &&
			    (uint32_t)watch->signo == info.ssi_signo)
				watch->fn(watch->arg);
}

static void dispatch(struct loop *loop, void *tag)
{
	struct watch *watch = tag;
	watch_fn fn;
	void *arg;

	if (tag == &loop->signal_fd) {
		dispatch_signals(loop);
		return;
	}
	/* Due timers are found by the clock; setting the timer again silences it. */
	if (tag == &loop->timer_fd || watch->dead)
		return;
	fn = watch->fn;
	arg = watch->arg;
	if (watch->kind == ON_EXIT)
		lay_out(loop, watch);
	fn(arg);
}

/* Calls the timers due at `now` that are older than this turn: a timer that restarts itself without
 * delay must not keep the loop from its descriptors. */
static void dispatch_timers(struct loop *loop, int64_t now, uint64_t age_end)
{
	struct watch *watch;

	while (!loop->quit && (watch = loop->timers.first) && watch->due <= now &&
	       watch->age < age_end) {
		watch_fn fn = watch->fn;
		void *arg = watch->arg;

		lay_out(loop, watch);
		fn(arg);
	}
}

/* Set the timer for the first due time; returns the timeout for epoll_wait(). */
static int arm(struct loop *loop, int64_t now)
{
	int64_t due = loop->timers.first ? loop->timers.first->due : NEVER;
	struct itimerspec at = { 0 };

	if (due <= now)
		return 0;
	if (due != loop->armed_for) {
		if (due != NEVER) {
			at.it_value.tv_sec = due / 1000;
			at.it_value.tv_nsec = due % 1000 * 1000000;
		}
		timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
		loop->armed_for = due;
	}
	return -1;
}

static int turn(struct loop *loop, struct err **err)
{
	/* Read before the wait: a timer that is due by this time was due before the last look at
	 * the descriptors, however long that look took. */
	int64_t now = clock_mono_now().ms;
	uint64_t age_end = loop->timers_made;
	int count;

	/* Room for all events, so that no ready descriptor has to wait behind a timer. */
	if (loop->event_room < loop->fd_count) {
		loop->event_room = loop->fd_count * 2;
		loop->events = mem_grow(loop->events, loop->event_room, sizeof *loop->events);
	}
	count = epoll_wait(loop->epoll_fd, loop->events, (int)loop->event_room, arm(loop, now));
	if (count < 0)
		return errno == EINTR
			       ? 0
			       : err_system(err, EXIT_DEFECT, errno, "cannot wait for events");
	loop->in_turn = true;
	for (int i = 0; i < count && !loop->quit; i++)
		dispatch(loop, loop->events[i].data.ptr);
	dispatch_timers(loop, now, age_end);
	loop->in_turn = false;
	bury_dead(loop);
	return 0;
}

int loop_run(struct loop *loop, struct err **err)
{
	int result = 0;

	if (loop->in_turn) /* a run inside a callback would free what this one holds */
		abort();
	while (!loop->quit && result == 0)
		result = turn(loop, err);
	loop->quit = false;
	return result;
}

void loop_quit(struct loop *loop)
{
	loop->quit = true;
}

static void end_pause(void *loop)
{
	loop_quit(loop);
}

int loop_pause(int64_t ms, struct err **err)
{
	AUTO(loop_freep) struct loop *loop = NULL;

	if (loop_new(&loop, err) < 0)
		return -1;
	loop_after(loop, ms, end_pause, loop);
	return loop_run(loop, err);
}
