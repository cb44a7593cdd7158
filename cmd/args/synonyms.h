/*
 * Words of people who come from other tools, and what does the same here: synonyms.def. Used for
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

/* Returns the command line that does what a line with an option of another tool means, such as
 * "stoker run job.yaml" for `run -f job.yaml`; `at` is the option. NULL if there is none; else the
 * caller frees it. */
char *synonym_option_line(const struct cmd *cmd, char *const *argv, int argc, int at);

#endif
