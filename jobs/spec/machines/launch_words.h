/*
 * Words of a command, the launcher among them, and its options: the reading below launch.h, for
 * launch.c and launch_edit.c alone.
 */
#ifndef STK_SPEC_MACHINES_LAUNCH_WORDS_H
#define STK_SPEC_MACHINES_LAUNCH_WORDS_H

#include "jobs/spec/machines/launch.h"
#include "jobs/spec/machines/line.h"

/* Words of a command, or of a line for a shell that is one word of it. */
struct words {
	const char *const *list; /* ends with NULL */
	size_t count;
	struct split_line line; /* holds the words of a line; empty: those of the command itself */
	size_t argument;        /* index of that line in the command */
};

/* The launcher among these words. */
struct launch_place {
	const struct launcher *launcher; /* NULL: none */
	size_t first;                    /* index of the first word behind its name */
	size_t end;                      /* of the words that may be its own */
};

struct option {
	size_t at, count;  /* the option's words: one, or two with the value in the second */
	const char *value; /* NULL: it has none */
	size_t value_at;   /* index of the word with the value */
};

/* Reads the words of the command that may start a launcher, its own or those of a line, and finds
 * it. `command` must outlive *ret. */
struct launch_place launch_words_read(const json_t *command, struct words *ret);
void launch_words_release(struct words *words); /* for AUTO() */
/* Returns the index in the command of a word. */
size_t launch_words_argument(const struct words *words, size_t at);

/* Finds the launcher's own option at *at, or false at its script; *at moves behind the option.
 * Begin with place->first. */
bool launch_option_next(const struct words *words, const struct launch_place *place, size_t *at,
			struct option *ret);
/* True if the option `word` is `name` in either spelling; with `least`, also shortened to no less
 * than that. */
bool launch_option_is(const char *word, const char *name, const char *least);
/* True if the option `word` is one of the names, which are words between spaces. */
bool launch_option_among(const char *word, const char *names);

#endif
