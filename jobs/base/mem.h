/*
 * The allocator, and the attributes that all headers need.
 *
 * Out of memory aborts the process: a run survives the death of its driver at any instruction
 * anyway, so there is one tested path instead of a thousand untested ones.
 */
#ifndef STK_BASE_MEM_H
#define STK_BASE_MEM_H

#include <stddef.h>

#define STK_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define STK_MUST_CHECK        __attribute__((warn_unused_result))
#define STK_LENGTH(array)     (sizeof(array) / sizeof((array)[0]))

/* Like malloc, calloc, realloc and strdup, but never NULL: they abort. The caller frees. */
void *mem_alloc(size_t size);
void *mem_zero(size_t count, size_t size);
void *mem_grow(void *old, size_t count, size_t size); /* overflow-checked */
/* Makes room for one more behind the `count` elements of an array that grows by this alone: its
 * size doubles. */
void *mem_room(void *old, size_t count, size_t size);
char *mem_copy(const char *text);
char *mem_copy_n(const char *text, size_t len); /* adds the NUL */
char *mem_format(const char *fmt, ...) STK_PRINTF(1, 2);

#endif
