/*
 * What one mishap at a place of a scenario (points.h) may cost, and what never.
 */
#ifndef STK_TESTS_WORLD_ONCE_H
#define STK_TESTS_WORLD_ONCE_H

struct story;

/* After each effect and event of a case; nothing where nothing has happened yet. */
void once_check(const struct story *story);

#endif
