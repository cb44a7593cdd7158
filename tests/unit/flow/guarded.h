/*
 * Text between two pages that nothing may touch: a look at one byte in front of it, or behind it,
 * ends the test by SIGSEGV. Logs are cut by length, so the byte behind a line may be anybody's. The
 * text lies at the end of its pages or at their beginning, and is there until the next call; arrays
 * have rooms of their own.
 */
#ifndef STK_TESTS_FLOW_GUARDED_H
#define STK_TESTS_FLOW_GUARDED_H

#include <string.h>
#include <sys/mman.h>

#include "jobs/flow/failure.h"

#define GUARDED_MAX ((size_t)64 << 10)

enum guarded_room { GUARDED_TEXT, GUARDED_LINES, GUARDED_LOGS, GUARDED_ROOMS };

static inline char *guarded_room(enum guarded_room which)
{
	static char *rooms[GUARDED_ROOMS];

	if (!rooms[which]) {
		char *room =
			mmap(NULL, 3 * GUARDED_MAX, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		assert_true(room != MAP_FAILED);
		rooms[which] = room + GUARDED_MAX;
		assert_int_equal(mprotect(rooms[which], GUARDED_MAX, PROT_READ | PROT_WRITE), 0);
	}
	return rooms[which];
}

/* Room for `size` bytes, behind which nothing may be read or written. */
static inline char *guarded_room_end(enum guarded_room which, size_t size)
{
	assert_true(size <= GUARDED_MAX);
	return guarded_room(which) + GUARDED_MAX - size;
}

/* A copy of an array. */
static inline void *guarded_array(enum guarded_room which, const void *array, size_t size)
{
	return memcpy(guarded_room_end(which, size), array, size);
}

static inline struct failure_line guarded_end(const char *text, size_t len)
{
	return (struct failure_line){ guarded_array(GUARDED_TEXT, text, len), len };
}

/* The text, in front of which nothing may be read. */
static inline struct failure_line guarded_begin(const char *text, size_t len)
{
	assert_true(len <= GUARDED_MAX);
	return (struct failure_line){ memcpy(guarded_room(GUARDED_TEXT), text, len), len };
}

#endif
