/*
 * The words in capitals of usage lines, which a user replaces: words.def.
 */
#ifndef STK_CMD_ARGS_WORDS_H
#define STK_CMD_ARGS_WORDS_H

#include <stddef.h>

enum word_source {
	WORD_NOTHING, /* nothing can be offered */
	WORD_SPECS,
	WORD_FILES,
	WORD_FOLDERS,
	WORD_RUNS,
	WORD_SCHEDULES,
	WORD_TOPICS,
	WORD_FIELDS,
	WORD_TEMPLATES,
	WORD_SCHEMAS,
	WORD_ENGINES,
	WORD_SHELLS,
	WORD_MACHINES,
	WORD_OVERLAYS,
};

struct word_row {
	const char *name;
	enum word_source source;
	const char *help;
};

extern const struct word_row word_rows[];
extern const size_t word_row_count;

/* Returns the first known word of a usage such as "URL|SPEC", "[FILE]" or "RUN…", and advances
 * `usage` past it; NULL at the end. */
const struct word_row *word_next(const char **usage);

#endif
