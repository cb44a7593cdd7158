/*
 * A command line as words, split as a shell would, without a shell: blanks separate,
 * quotes and backslashes protect, nothing is expanded (section headers of the config
 * file, credential_process).
 */
#ifndef STK_AWS_WORDS_H
#define STK_AWS_WORDS_H

#include <stddef.h>

/* A NULL-terminated array, yours to free (auto_strv); NULL: a quote that is never
 * closed, or a backslash at the end. */
char **shell_words(const char *text, size_t *ret_count);

#endif
