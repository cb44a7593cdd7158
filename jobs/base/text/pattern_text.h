/* A regular expression as text: what can be said of it without compiling it. */
#ifndef STK_BASE_TEXT_PATTERN_TEXT_H
#define STK_BASE_TEXT_PATTERN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the place behind the character class that begins here ('['). */
const char *pattern_text_skip_class(const char *text);

/* True if parts of the pattern are read by rules of their own: quoted text, comments, free spacing.
 */
bool pattern_text_is_special(const char *pattern);

#define PATTERN_TEXT_PREFIX 32
/* Returns the length of a text with which every match begins, and the text; 0: none is known. */
size_t pattern_text_prefix(const char *pattern, char ret[PATTERN_TEXT_PREFIX]);

#endif
