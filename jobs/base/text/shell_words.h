/*
 * Splits a command line into words as a shell would, without a shell: blanks separate, quotes and
 * backslashes protect, nothing is expanded. The rules are those of Python's shlex.split(), with
 * which the AWS tools read section headers and credential_process, and the Neuron compiler its
 * NEURON_CC_FLAGS.
 */
#ifndef STK_BASE_TEXT_SHELL_WORDS_H
#define STK_BASE_TEXT_SHELL_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* A NULL-terminated array that the caller frees (auto_strv); NULL if a quote is not closed, or if
 * the text ends with a backslash. */
char **shell_words(const char *text, size_t *ret_count);

/* The same for text that is only inspected: an open quote lasts to the end, and the result is never
 * NULL. Words also end at the characters of `operators` ("" for none, ";&|()" for a shell command
 * line). */
char **shell_words_seen(const char *text, const char *operators);

#endif
