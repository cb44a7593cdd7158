/*
 * An event loop: descriptors, timers, signals and the ends of processes, on one thread. All waiting
 * in stoker happens here; nothing sleeps.
 *
 * Order in one turn: signals, ends of processes and descriptors as epoll
 * reports them, then due timers: every sign of life is read before a deadline
 * decides. A callback may add and remove anything, itself included; none is called
 * once its watch has been removed. Times are to the millisecond and go on while
 * the machine sleeps.
 *
 * base/process: the event loop, child processes and threads. Nothing here knows about jobs.
 */
#ifndef STK_BASE_PROCESS_LOOP_H
#define STK_BASE_PROCESS_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "jobs/base/err.h"

struct loop;
struct watch; /* an event source that is waited for; the loop owns it */

typedef void (*watch_fn)(void *arg);

int loop_new(struct loop **ret, struct err **err);
void loop_freep(struct loop **loop);

/* Runs until loop_quit(), after which no further callback is called; events that were ready are
 * reported by the next run. Returns -1 only if waiting itself fails. */
int loop_run(struct loop *loop, struct err **err);
void loop_quit(struct loop *loop);
/* Waits on this thread, in a loop of its own. */
int loop_pause(int64_t ms, struct err **err);

/* Call `fn` while `fd` is readable (or hung up). The caller keeps the fd and removes the watch
 * before closing it. NULL with errno: EPERM for a regular file or folder, which is always readable;
 * EEXIST if it is watched already. */
struct watch *loop_on_readable(struct loop *loop, int fd, watch_fn fn, void *arg);
/* The same for any of LOOP_READ and LOOP_WRITE; the caller finds out which of them is ready by
 * trying. */
#define LOOP_READ  1
#define LOOP_WRITE 2
struct watch *loop_on_ready(struct loop *loop, int fd, int interest, watch_fn fn, void *arg);
/* Call `fn` once, `delay_ms` from now; timers due at the same time run in the
 * order they were made. The watch is gone when fn runs. */
struct watch *loop_after(struct loop *loop, int64_t delay_ms, watch_fn fn, void *arg);
/* Call `fn` each time the signal arrives. It is blocked until loop_freep(), also
 * after the watch is removed; then a pending signal takes its usual effect. NULL with errno EINVAL
 * if there is no such signal. */
struct watch *loop_on_signal(struct loop *loop, int signo, watch_fn fn, void *arg);
/* True if one of SIGTERM, SIGINT, SIGHUP and SIGUSR1, which all tell a process to stop something,
 * is pending and no loop has taken it yet; they must be blocked, as by loop_on_signal(). */
bool loop_stop_pending(void);
/* Take a pending stop signal, as a loop would; false if there was none. */
bool loop_stop_take(void);
/* Call `fn` once when the process has ended; it need not be a child. The watch is gone when fn
 * runs. NULL with errno ESRCH if there is no such process. */
struct watch *loop_on_exit(struct loop *loop, pid_t pid, watch_fn fn, void *arg);

/* Remove a watch; NULL is fine. A watch that is gone may be removed again only until the callback
 * that reports it returns. */
void loop_remove(struct loop *loop, struct watch *watch);

#endif
