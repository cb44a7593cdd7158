/*
 * Whether a compile cache grows: a sum over what is in its folder, which is another one when a
 * compiler has written there.
 */
#ifndef STK_NODE_CACHE_SUM_H
#define STK_NODE_CACHE_SUM_H

#include <stdint.h>

/* Returns 0 if the sum is not known: the folder cannot be read, or not quickly. */
uint64_t cache_sum(const char *path);

#endif
