/*
 * Patterns whose first group is a number, as people write them for a log: `loss: ([0-9.]+)` finds
 * 6.25 of 6.25e-05, 0.1 of -0.1 or nothing of it, and no nan.
 */
#ifndef STK_BASE_TEXT_NUMBER_PATTERN_H
#define STK_BASE_TEXT_NUMBER_PATTERN_H

/* Returns the pattern with a first group that begins with the number's sign, and finds nan and inf
 * too. NULL if the group does not say by itself that it is a number, or cannot be told from its
 * surroundings. The caller frees it. */
char *number_pattern_whole(const char *pattern);

/* Says what the pattern makes of numbers, less than they are: a sentence, to follow "the pattern ".
 * NULL if it finds the whole of 6.25e-05. The caller frees it. */
char *number_pattern_cuts(const char *pattern);

#endif
