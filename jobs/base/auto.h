/*
 * Ownership helpers: cleanup attributes, moves of ownership and the allocator.
 *
 * Every owning local carries AUTO(fn); `fn` takes a pointer to the variable
 * and accepts NULL and half-built objects. Ownership leaves a function with
 * TAKE(), so a reader sees each hand-over.
 *
 * Out of memory ends the process: a run survives the death of its driver at
 * any instruction anyway, so that is one tested path instead of a thousand
 * untested ones.
 */
#ifndef STK_BASE_AUTO_H
#define STK_BASE_AUTO_H

#include <stddef.h>
#include <stdio.h>

#define AUTO(fn) __attribute__((cleanup(fn)))

/* Yields the pointer and leaves NULL behind: the new owner frees it. */
#define TAKE(p)                                                                                    \
	__extension__({                                                                            \
		__typeof__(p) taken_ = (p);                                                        \
		(p) = NULL;                                                                        \
		taken_;                                                                            \
	})

/* The same for a descriptor: -1 stays behind. */
#define TAKE_FD(fd)                                                                                \
	__extension__({                                                                            \
		int taken_ = (fd);                                                                 \
		(fd) = -1;                                                                         \
		taken_;                                                                            \
	})

#define STK_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define STK_MUST_CHECK        __attribute__((warn_unused_result))
#define STK_LENGTH(array)     (sizeof(array) / sizeof((array)[0]))

/* Like malloc, calloc, realloc and strdup, but never NULL: they abort. */
void *mem_alloc(size_t size);
void *mem_zero(size_t count, size_t size);
void *mem_grow(void *old, size_t count, size_t size); /* overflow-checked */
char *mem_copy(const char *text);
char *mem_copy_n(const char *text, size_t len); /* adds the NUL */
char *mem_format(const char *fmt, ...) STK_PRINTF(1, 2);

/* Cleanup functions for common types. */
void auto_free(void *pointer_to_pointer); /* for any malloc'd pointer */
void auto_close(int *fd);                 /* ignores negative fds */
void auto_fclose(FILE **file);
void auto_strv(char ***strings); /* a NULL-terminated array and its strings */

#endif
