/*
 * What people type who come from other tools, and what does the same here: synonyms.def. Used for
 * hints only; a synonym never runs anything.
 */
#ifndef STK_CMD_ARGS_SYNONYMS_H
#define STK_CMD_ARGS_SYNONYMS_H

#include "cmd/args/args.h"

/* Returns the command line that does what `words` mean elsewhere, such as "stoker logs --follow
 * gpu-7" for `tail gpu-7`: by the longest row with which they begin, of `least` words or more, and
 * with the words behind it, as far as the command takes them. NULL if there is none; else the
 * caller frees it. */
char *synonym_line(const struct cmd *table, char *const *words, int count, int least);

/* Returns the cure for an option that a command lacks; NULL if none is known. */
const char *synonym_option(const struct cmd *cmd, const char *option, size_t len);

#endif
