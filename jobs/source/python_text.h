/*
 * Python source without what the program does not see: comments and blank lines. The graph key
 * takes the digest of that, so that a changed comment compiles nothing.
 *
 * The rule: comments are removed, with the blanks before them; blanks at the end of a line are
 * removed; lines that are then empty are removed; a line ends with a newline, however it ended
 * before. All else stays as it is, byte by byte: strings (a docstring is one), indentation, the
 * order of lines.
 *
 * The rule is applied only if no other reading is possible. These stay: a first line that names an
 * interpreter (#!), a declaration of the encoding in the first two lines, and a line, even an empty
 * one, behind a backslash that continues the line before. A text that is not certain is left as a
 * whole: an encoding in which bytes below 128 may not be ASCII, bytes that are not UTF-8, NUL, a
 * carriage return alone, a string that is never closed, a backslash before anything but a line end,
 * a comment or unmatched brackets within an f-string.
 *
 * Line numbers do change. Graphs that are compiled because of that are counted as late graphs.
 *
 * Source: The Python Language Reference, "Lexical analysis"; PEP 263, PEP 701.
 */
#ifndef STK_SOURCE_PYTHON_TEXT_H
#define STK_SOURCE_PYTHON_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/hash.h"

#define PYTHON_TEXT_MAX ((size_t)4 << 20) /* a longer text is left as it is */

/* True if the rule applies, by the file's name. */
bool python_text_is(const char *path);

/* SHA-256 of the text by the rule; of the text itself if it is left as it is. */
void python_text_digest(const char *text, size_t len, char ret[SHA256_HEX]);

#endif
