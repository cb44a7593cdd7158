/*
 * Runs many independent pieces of work on all cores: one thread per core, up to a limit, takes some
 * pieces at a time, a turn. A small number of turns is done by the caller alone, which is faster.
 */
#ifndef STK_BASE_PROCESS_PARALLEL_FOR_H
#define STK_BASE_PROCESS_PARALLEL_FOR_H

#include <stdbool.h>
#include <stddef.h>

struct parallel_for;

/* Body of each thread: takes pieces until there are none. `fn` must guard the state that the
 * threads share through `arg`. */
typedef void (*parallel_for_fn)(struct parallel_for *loop, void *arg);

/* Takes the next pieces, from `*ret_first` up to and without `*ret_end`; false if none are left. */
bool parallel_for_take(struct parallel_for *loop, size_t *ret_first, size_t *ret_end);

/* Returns when all threads are done with `count` pieces, or with those that `fn` took. `turn`:
 * pieces taken at a time, for small pieces PARALLEL_FOR_SMALL, so that threads seldom contend. */
#define PARALLEL_FOR_SMALL 16
void parallel_for(size_t count, size_t turn, parallel_for_fn fn, void *arg);

#endif
