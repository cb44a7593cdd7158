/*
 * Many small pieces of work that have nothing to do with each other, on all cores: as
 * many threads as there are cores take turns of a few pieces each. Few pieces are done
 * by the caller alone, which is faster.
 */
#ifndef STK_BASE_CREW_H
#define STK_BASE_CREW_H

#include <stdbool.h>
#include <stddef.h>

struct crew;

/* What each thread does: take pieces until there are none. What it shares with the
 * others through `arg` is for it to guard. */
typedef void (*crew_fn)(struct crew *crew, void *arg);

/* The next pieces that nobody has taken, from `*ret_first` up to and without `*ret_end`;
 * false: there are none. */
bool crew_take(struct crew *crew, size_t *ret_first, size_t *ret_end);

/* Back when all threads are done with `count` pieces, or with what `fn` took of them. */
void crew_run(size_t count, crew_fn fn, void *arg);

#endif
