/* How commands, the cloud and who starts drivers behave in the schedule that plays. */
#ifndef STK_TESTS_WORLD_HABITS_H
#define STK_TESTS_WORLD_HABITS_H

#include <stdbool.h>
#include <stddef.h>

/* Draws the habits of the schedule, and has programs and cloud ask for them. */
void habits_draw(void);
/* A timer starts drivers, whether or not one is there, until the run has ended. */
bool habits_timer_starts(void);
/* A driver that is not seen to do anything is replaced by another one. */
bool habits_are_impatient(void);
/* SIGINT at a driver stops its run; else the driver leaves. */
bool habits_stop_on_interrupt(void);
/* Writes them as a line of a script; reads one (false: it is none). */
void habits_print(char *ret, size_t size);
bool habits_parse(const char *line);

#endif
