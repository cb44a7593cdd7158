/*
 * Globs over slash-separated relative paths, as `source.include` and .gitignore use them. Bytes,
 * not characters; case matters.
 *
 *   *      any run within one part of the path     ?  one byte of a part
 *   [a-z]  one of a set, [!a-z] none of it, [[:alpha:]] classes (within a part)
 *   \x     x itself
 *   **     as a whole part: any number of parts, or none; at the end: at
 *          least one, so "train/" and two stars means all that is in train
 *
 * Time is bounded by length of pattern times length of path.
 */
#ifndef STK_BASE_TEXT_PATTERN_H
#define STK_BASE_TEXT_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

/* Matches a part (no slashes) against a name; `*` twice is as once. */
bool pattern_match_part(const char *pattern, size_t pattern_len, const char *name, size_t name_len);

/* Matches the whole path; with `or_above` also a folder on its way. */
bool pattern_match(const char *pattern, const char *path, bool or_above);

/* True if something below the folder `path` could match (with `or_above`). */
bool pattern_reaches(const char *pattern, const char *path);

#endif
