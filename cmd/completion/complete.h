/*
 * Candidates for the next word of a stoker command line, for completion in shells.
 *
 * cmd/completion: what may come next, by the tables of commands, options, words, topics and fields,
 * and the scripts of shells that ask for it. Nothing is printed here, and nothing is changed:
 * candidates go to a callback.
 */
#ifndef STK_CMD_COMPLETION_COMPLETE_H
#define STK_CMD_COMPLETION_COMPLETE_H

#include "cmd/args/args.h"

/* Called for each candidate that begins with the text already typed; `help` may be NULL. For
 * files, `candidate` is one of these words instead, and `help` the part of the word before the
 * file's name ("--state="). */
#define COMPLETE_FILES   ":files"
#define COMPLETE_SPECS   ":specs" /* files with a name in .yaml or .yml */
#define COMPLETE_FOLDERS ":folders"
typedef void complete_fn(void *arg, const char *candidate, const char *help);

/* `words` are those after the program's name; the last one is being typed and may be empty; `table`
 * holds the commands. Reads the journal if a run is needed; changes nothing. */
void complete_line(const struct cmd *table, const char *const *words, int count, complete_fn *fn,
		   void *arg);

#endif
