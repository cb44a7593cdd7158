/*
 * Ownership helpers: cleanup attributes and moves of ownership.
 *
 * Every owning local carries AUTO(fn); `fn` takes a pointer to the variable
 * and accepts NULL and half-built objects. Ownership leaves a function with
 * TAKE(), so a reader sees each hand-over.
 */
#ifndef STK_BASE_AUTO_H
#define STK_BASE_AUTO_H

#include <stdio.h>

#include "jobs/base/mem.h"

#define AUTO(fn) __attribute__((cleanup(fn)))

/* Yields the pointer and sets it to NULL: the new owner frees it. */
#define TAKE(p)                                                                                    \
	__extension__({                                                                            \
		__typeof__(p) taken_ = (p);                                                        \
		(p) = NULL;                                                                        \
		taken_;                                                                            \
	})

/* The same for a descriptor, which is set to -1. */
#define TAKE_FD(fd)                                                                                \
	__extension__({                                                                            \
		int taken_ = (fd);                                                                 \
		(fd) = -1;                                                                         \
		taken_;                                                                            \
	})

/* Cleanup functions for common types. */
void auto_free(void *pointer_to_pointer); /* for any malloc'd pointer */
void auto_close(int *fd);                 /* ignores negative fds */
void auto_fclose(FILE **file);
void auto_strv(char ***strings); /* a NULL-terminated array and its strings */

/* Appends a copy of `text` to such an array (NULL: none yet) of `*count` strings. */
void auto_strv_add(char ***strings, size_t *count, const char *text);

#endif
