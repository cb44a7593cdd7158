/* How commands and the cloud behave in the schedule that plays. */
#ifndef STK_TESTS_WORLD_HABITS_H
#define STK_TESTS_WORLD_HABITS_H

/* Draws the habits of the schedule, and has programs and cloud ask for them. */
void habits_draw(void);

#endif
