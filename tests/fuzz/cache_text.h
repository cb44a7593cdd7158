/*
 * A cache as text, for the targets that fill one: each line is `SIZE KEY`, an object
 * of so many bytes. Later lines are younger.
 */
#ifndef STK_TESTS_FUZZ_CACHE_TEXT_H
#define STK_TESTS_FUZZ_CACHE_TEXT_H

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_store.h"

#define CACHE_OBJECTS_MAX 64 /* in one text; lines behind them are passed over */

static inline void cache_fill(struct memory_store *store, struct span text)
{
	struct span line;

	for (int n = 0; n < CACHE_OBJECTS_MAX && span_next(&text, '\n', &line); n++) {
		AUTO(auto_free) char *copy = mem_copy_n(line.text, line.len);
		char *key = copy;
		uint64_t size = 0;

		while (*key >= '0' && *key <= '9' && size < UINT64_C(1) << 40)
			size = size * 10 + (uint64_t)(*key++ - '0');
		if (*key != ' ')
			continue;
		store->now.ms = n * 1000;
		memory_store_add(store, key + 1, size);
	}
}

#endif
