/*
 * Fibers: stacks of their own for the processes of the world, and the switch between them. There
 * is one stack to which every fiber gives way: that of the caller of fiber_run().
 *
 * Under the address sanitizer each switch is announced to it.
 */
#ifndef STK_TESTS_WORLD_FIBER_H
#define STK_TESTS_WORLD_FIBER_H

struct fiber;

/* A fiber that will call fn(arg) at its first fiber_run(). fn must not return: it ends with
 * fiber_leave(). */
struct fiber *fiber_new(void (*fn)(void *arg), void *arg);
/* Runs the fiber until it gives way or leaves. */
void fiber_run(struct fiber *fiber);
/* In a fiber: back to fiber_run(); returns when it is run again. Keeps errno. */
void fiber_give_way(void);
/* In a fiber: back to fiber_run() for the last time. Its stack is used again. */
_Noreturn void fiber_leave(void);
/* Drops a fiber that is not running, with what is on its stack. */
void fiber_drop(struct fiber *fiber);

#endif
