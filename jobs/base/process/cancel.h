/*
 * Whether this process should stop waiting: for a service, a lock, another process, or only for
 * time. Everything that waits outside of the loop (loop.h) asks here, and nothing else sleeps.
 *
 * The state belongs to the process: one that is told to end gives up all its waits.
 */
#ifndef STK_BASE_CANCEL_H
#define STK_BASE_CANCEL_H

#include <stdbool.h>
#include <stdint.h>

/* Longest time between two looks at whether to stop waiting. */
#define CANCEL_LOOK_MS 250

/* Sets what is asked several times a second, for example whether a stop signal is pending that no
 * loop has taken yet (loop_stop_pending()). NULL: nothing. */
void cancel_when(bool (*fn)(void *arg), void *arg);
/* Limits all waits together to `ms` from now on; 0 removes the limit. */
void cancel_after(int64_t ms);

/* Limits all waits of this thread to `ms` from now on; 0 removes the limit. */
void cancel_thread_after(int64_t ms);

/* True a moment after the process was asked to stop waiting, so that requests that are under way
 * can end normally. */
bool cancel_is_due(void);

/* Waits for `ms`. Returns false if it was asked to stop before; what follows is up to the caller,
 * which must not wait on in a loop. */
bool cancel_pause(int64_t ms);
/* Waits for `ms`, at most CANCEL_LOOK_MS, whatever is asked: between two looks of a caller that
 * asks by itself, or at what ends soon in any case. */
void cancel_pause_briefly(int64_t ms);

#endif
