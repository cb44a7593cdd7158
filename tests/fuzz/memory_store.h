/*
 * A store in memory, so that a fuzzer fills and reads thousands of caches in a second.
 * It keeps its own books of what it holds, in key order: what a reader of listings
 * says can be held against them.
 */
#ifndef STK_TESTS_FUZZ_MEMORY_STORE_H
#define STK_TESTS_FUZZ_MEMORY_STORE_H

#include "jobs/store/store_backend.h"

struct memory_object {
	char *key;
	struct sb bytes; /* none, if only a size was given */
	uint64_t size;
	struct utc modified;
	char tag[STORE_TAG];
};

struct memory_store {
	struct store base; /* first: a store is one of these */
	struct memory_object *objects;
	size_t count;
	struct utc now; /* of what is written */
};

/* Returns a store, to be closed by store_freep. */
struct memory_store *memory_store_new(void);

/* An object of that size that gives no bytes; its tag is "t<size>". False if a
 * store cannot have such a key. */
bool memory_store_add(struct memory_store *store, const char *key, uint64_t size);

/* NULL if there is none. */
const struct memory_object *memory_store_find(const struct memory_store *store, const char *key);

#endif
