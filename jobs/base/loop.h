/*
 * One event loop: descriptors, timers, signals and the ends of processes, on
 * one thread. Nothing in stoker sleeps; it waits here.
 *
 * Order in one turn: signals, ends of processes and descriptors as epoll
 * reports them, then due timers: every sign of life is read before a deadline
 * judges. A callback may add and remove anything, itself included.
 */
#ifndef STK_BASE_LOOP_H
#define STK_BASE_LOOP_H

#include <stdint.h>
#include <sys/types.h>

#include "jobs/base/err.h"

struct loop;
struct watch; /* one thing waited for; belongs to the loop */

typedef void (*watch_fn)(void *arg);

int loop_new(struct loop **ret, struct err **err);
void loop_freep(struct loop **loop);

/* Until loop_quit(); the error of a failed wait is the only one. */
int loop_run(struct loop *loop, struct err **err);
void loop_quit(struct loop *loop);

/* Call `fn` while `fd` is readable (or hung up). The fd stays the caller's. */
struct watch *loop_on_readable(struct loop *loop, int fd, watch_fn fn, void *arg);
/* Call `fn` once, `delay_ms` from now. The watch is gone when fn runs. */
struct watch *loop_after(struct loop *loop, int64_t delay_ms, watch_fn fn, void *arg);
/* Call `fn` each time the signal arrives (it is blocked otherwise). */
struct watch *loop_on_signal(struct loop *loop, int signo, watch_fn fn, void *arg);
/* Call `fn` once when the process has ended, child of ours or not. The watch
 * is gone when fn runs. NULL with errno ESRCH if there is no such process. */
struct watch *loop_on_exit(struct loop *loop, pid_t pid, watch_fn fn, void *arg);

/* Stop waiting and forget; NULL is fine. */
void loop_remove(struct loop *loop, struct watch *watch);

#endif
