/*
 * What the tests of the verdict on a Neuron cache share: a cache folder and a book from
 * log text, and the words for one problem.
 */
#ifndef STK_TESTS_UNIT_CACHE_NEURON_WORLD_H
#define STK_TESTS_UNIT_CACHE_NEURON_WORLD_H

#include "tests/unit/cache/neuron.h"
#include "tests/unit/cache/verdict_world.h"

static inline struct world world_of(const char *dir, const char *log)
{
	return world_with(neuron(), dir, neuron_book_of(log));
}

static inline const char *what(const struct cache_verdict *verdict, size_t n)
{
	return js_str(json_array_get(verdict->problems, n), "what");
}

#define WORLD(log)                                                                                 \
	AUTO(world_clear) struct world world = world_of(*state, log);                              \
	AUTO(cache_verdict_clear) struct cache_verdict verdict = { 0 }

#endif
