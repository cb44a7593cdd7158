/* The rules with clocks, C1 to C15: how fast what must happen. */
#ifndef STK_TESTS_WORLD_CLOCKS_H
#define STK_TESTS_WORLD_CLOCKS_H

#include "tests/world/story.h"

void clocks_begin(void); /* a schedule begins */
void clocks_reset(void); /* a run of it does */
void clocks_check(const struct story *story);
void clocks_check_end(const struct story *story);

#endif
