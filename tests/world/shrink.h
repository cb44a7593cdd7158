/* A schedule that breaks a rule, with fewer faults. */
#ifndef STK_TESTS_WORLD_SHRINK_H
#define STK_TESTS_WORLD_SHRINK_H

#include <stdint.h>

/* Plays the schedule again and again, each time without one of its faults, keeps what is not needed
 * out, and prints the script of what is left. Returns an exit status. */
int shrink(uint64_t seed, uint64_t number);

struct schedule;

/* Reads the faults of a script into `faults`, and the seed and number of its schedule, and its
 * scenario if it names one. Exits with a message if it is none. */
void script_load(const char *path, struct schedule *ret);

#endif
