/*
 * The build id of this program, for bytes that only the very program that wrote them may read
 * again: they lie as they lay in its memory.
 */
#ifndef STK_BASE_MAKER_H
#define STK_BASE_MAKER_H

#include <stdbool.h>

#define MAKER_MAX 32 /* bytes of a build id that are compared */
/* Returns the build id, filled up with zeros; false if the program has none. */
bool maker_find(unsigned char ret[MAKER_MAX]);

#endif
