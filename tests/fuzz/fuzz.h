/*
 * What all fuzz targets share. A target is one file fuzz_<name>.c with one function
 * that libFuzzer calls with bytes of its choice; it reads them as the product would
 * and holds what came out against what the reader's header promises. What is not so
 * ends the process, and libFuzzer keeps the bytes.
 *
 * Most targets take text. Two bytes in it, which nobody's text has, are the fuzzer's
 * own, so that an insertion before them moves nothing else:
 */
#ifndef STK_TESTS_FUZZ_FUZZ_H
#define STK_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/auto.h"

#define FUZZ_CUT  '\x1d' /* the text comes in two pieces, cut here */
#define FUZZ_PART '\x1e' /* what follows is another text: the target says which */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property of the reader. */
#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__,          \
				#condition);                                                       \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* A span of the input. */
struct span {
	const char *text;
	size_t len;
};

/* The text up to the next `stop`, which is taken off `rest` too; false when all of it
 * was handed out. An input without `stop` is one span. */
static inline bool span_next(struct span *rest, char stop, struct span *ret)
{
	const char *end;

	if (!rest->text)
		return false;
	end = rest->len ? memchr(rest->text, stop, rest->len) : NULL;
	*ret = (struct span){ rest->text, end ? (size_t)(end - rest->text) : rest->len };
	if (end)
		*rest = (struct span){ end + 1, rest->len - ret->len - 1 };
	else
		*rest = (struct span){ 0 };
	return true;
}

/* A copy in a block of its own size, so that a read behind its end is seen. */
static inline char *span_copy(struct span span)
{
	char *copy = mem_alloc(span.len + (span.len == 0));

	if (span.len > 0)
		memcpy(copy, span.text, span.len);
	return copy;
}

#endif
