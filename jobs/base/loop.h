/*
 * One event loop: descriptors, timers, signals and the ends of processes, on
 * one thread. Nothing in stoker sleeps; it waits here.
 *
 * Order in one turn: signals, ends of processes and descriptors as epoll
 * reports them, then due timers: every sign of life is read before a deadline
 * judges. A callback may add and remove anything, itself included; none is called
 * once its watch has been removed. Times are to the millisecond and go on while
 * the machine sleeps.
 */
#ifndef STK_BASE_LOOP_H
#define STK_BASE_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "jobs/base/err.h"

struct loop;
struct watch; /* one thing waited for; belongs to the loop */

typedef void (*watch_fn)(void *arg);

int loop_new(struct loop **ret, struct err **err);
void loop_freep(struct loop **loop);

/* Until loop_quit(), after which no further callback is called; what was ready is
 * reported by the next run. The error of a failed wait is the only one. */
int loop_run(struct loop *loop, struct err **err);
void loop_quit(struct loop *loop);

/* Call `fn` while `fd` is readable (or hung up). The fd stays the caller's, who
 * removes the watch before closing it. NULL with errno: EPERM for a regular file
 * or folder, which is always readable; EEXIST if it is watched already. */
struct watch *loop_on_readable(struct loop *loop, int fd, watch_fn fn, void *arg);
/* The same for any of LOOP_READ and LOOP_WRITE: which of them it is, the caller finds
 * out by trying. */
#define LOOP_READ  1
#define LOOP_WRITE 2
struct watch *loop_on_ready(struct loop *loop, int fd, int wanted, watch_fn fn, void *arg);
/* Call `fn` once, `delay_ms` from now; timers due at the same time run in the
 * order they were made. The watch is gone when fn runs. */
struct watch *loop_after(struct loop *loop, int64_t delay_ms, watch_fn fn, void *arg);
/* Call `fn` each time the signal arrives. It is blocked until loop_freep(), also
 * after the watch is removed; then one that is pending takes its usual effect.
 * NULL with errno EINVAL if there is no such signal. */
struct watch *loop_on_signal(struct loop *loop, int signo, watch_fn fn, void *arg);
/* Of SIGTERM, SIGINT and SIGHUP, which all tell a process to stop, while they are blocked as
 * loop_on_signal() has them: is one there that no loop has heard yet? */
bool loop_stop_pending(void);
/* Take it, as if it had been heard; false: there is none. */
bool loop_stop_take(void);
/* Call `fn` once when the process has ended, child of ours or not. The watch
 * is gone when fn runs. NULL with errno ESRCH if there is no such process. */
struct watch *loop_on_exit(struct loop *loop, pid_t pid, watch_fn fn, void *arg);

/* Stop waiting and forget; NULL is fine. A watch that is gone may be removed again
 * only until the callback that learns of it returns. */
void loop_remove(struct loop *loop, struct watch *watch);

#endif
