/*
 * The flags of the Neuron compiler that are documented (compiler_flags.def), and those in a text
 * such as NEURON_CC_FLAGS holds.
 */
#ifndef STK_SPEC_FIELDS_COMPILER_FLAGS_H
#define STK_SPEC_FIELDS_COMPILER_FLAGS_H

#include <stdbool.h>
#include <stddef.h>

enum flag_takes { TAKES_NOTHING, TAKES_WORD, TAKES_LIST, TAKES_TEXT, TAKES_MANY };

/* Columns: see compiler_flags.def. */
struct compiler_flag {
	const char *name;
	enum flag_takes takes;
	const char *values, *since, *source, *help;
	const char *also, *older, *on, *anywhere, *against, *instead;
	bool idle, any_case, wrapped, once;
};

extern const struct compiler_flag compiler_flags[];
extern const size_t compiler_flag_count;

/* A flag as it stands in a text, with its value. Borrows from the words. */
struct flag_use {
	const struct compiler_flag *row; /* NULL: of no row */
	const char *word;                /* the whole word that it is in */
	size_t len;                      /* length of the name in it, without a value */
	const char *value;               /* NULL: it has none */
};

/* Finds the flags in the words of a text, which ends with NULL. `ret` has room for a use a word.
 * Returns their number. */
size_t compiler_flags_read(char *const *words, struct flag_use *ret);

enum flag_value {
	VALUE_FITS,
	VALUE_OPEN,  /* the value is not written out: a variable of a shell or of the agent */
	VALUE_OLDER, /* older compilers took it */
	VALUE_WRONG
};

/* Compares a value with the documented ones. *ret_now: what has replaced an older one, which the
 * caller frees; NULL if nothing has, or for another value. */
enum flag_value compiler_flag_value(const struct flag_use *use, char **ret_now);

#endif
