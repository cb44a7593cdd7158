/*
 * What may come next on a command line of stoker: for the completion of shells.
 */
#ifndef STK_CMD_COMPLETE_H
#define STK_CMD_COMPLETE_H

/* Gets each candidate that begins with what is written already; `help` may be
 * NULL. Where files are wanted it gets one of these words instead, and the part
 * of the word in front of the file's name as `help` ("--state="). */
#define COMPLETE_FILES   ":files"
#define COMPLETE_SPECS   ":specs" /* files whose names end in .yaml or .yml */
#define COMPLETE_FOLDERS ":folders"
typedef void complete_fn(void *arg, const char *candidate, const char *help);

/* `words` are those after the program's name; the last one is being written and
 * may be empty. Reads the journal where a run is wanted, and changes nothing. */
void complete_line(char *const *words, int count, complete_fn *fn, void *arg);

#endif
