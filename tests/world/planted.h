/* What a planted bug asks in the copy of a source: is it on? Included before all else in there. */
#ifndef STK_TESTS_WORLD_PLANTED_H
#define STK_TESTS_WORLD_PLANTED_H

#include <stdbool.h>

/* True if the bug of `plants/NAME.patch` is the one that is on. */
bool planted(const char *name);

#endif
