/*
 * What one mishap at a place of a scenario (points.h) may cost, and what never.
 */
#ifndef STK_TESTS_WORLD_ONCE_H
#define STK_TESTS_WORLD_ONCE_H

struct story;

/* After each effect and event of a case in which its mishap (playing->mishap) has happened. */
void once_check(const struct story *story);

#endif
