/*
 * The command line: commands, options and operands, as the tables have them, and their parser.
 *
 * cmd/args: from argv to values. Options and words of usage lines with their tables, the parser,
 * and what commands of a kind read from their operands (a spec, a cache). Nothing here runs a
 * command or knows which commands there are: main() hands the table in.
 */
#ifndef STK_CMD_ARGS_ARGS_H
#define STK_CMD_ARGS_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/clock.h"
#include "jobs/base/err.h"
#include "jobs/base/exitcode.h"

enum opt_id {
#define OPTION(id, ...) OPT_##id,
#include "cmd/args/options.def"
#undef OPTION
	OPT_COUNT
};

enum opt_kind { OPT_KIND_FLAG, OPT_KIND_TEXT, OPT_KIND_LIST, OPT_KIND_CHOICE };

struct opt_row {
	const char *name;
	char letter; /* 0: none */
	enum opt_kind kind;
	const char *argument;
	const char *help; /* NULL: hidden */
};
extern const struct opt_row args_opt_rows[OPT_COUNT];

/* A set of options: 64 bits are too few. */
__extension__ typedef unsigned __int128 opt_set;
#define OPT_BIT(id) ((opt_set)1 << OPT_##id)
/* Options that every command takes. */
#define OPTS_GLOBAL                                                                                \
	(OPT_BIT(STATE) | OPT_BIT(PROFILE) | OPT_BIT(REGION) | OPT_BIT(JSON) | OPT_BIT(QUIET) |    \
	 OPT_BIT(VERBOSE) | OPT_BIT(COLOR) | OPT_BIT(HELP))

/* A parsed command line. Strings are borrowed from argv; `sets` and `uses` are owned. */
struct args {
	const struct cmd *cmd;
	const struct cmd *table; /* all commands, as args_parse() was given them */
	bool given[OPT_COUNT];
	const char *value[OPT_COUNT]; /* the last one */
	char **sets, **uses;          /* --set and --engine, and --use, in order; NULL-terminated */
	const char **operands; /* after the command's name: of argv, or the command's `fallback` */
	int operand_count;
	int before_dashes; /* operands before a "--"; -1: there was none */
};

struct cmd_example {
	const char *line, *what; /* a line to type, and its purpose */
};

struct cmd {
	const char *name;     /* a single word, or two: "cache ls" */
	const char *operands; /* as help shows them, in the words of words.def */
	int least, most;      /* number of operands; most -1: any number */
	opt_set options;      /* beyond OPTS_GLOBAL */
	const char *summary;  /* a single line; NULL: not part of the interface, never shown */
	const char *detail;   /* paragraphs for `help NAME`; may be NULL */
	/* Returns the exit code, or -1 with err set. */
	int (*run)(const struct args *args, struct err **err);
	/* Exit codes beyond EXITS_OF_EVERY_COMMAND; a 0 ends the list. */
	enum exit_code exits[10];
	const char *fallback;           /* the operand if none is given; NULL: none */
	bool is_bare;                   /* neither reads runs nor the user's configuration */
	struct cmd_example examples[4]; /* ended by one without a line */
};

/* Exit codes of any command: done, a wrong command line, a defect. */
#define EXITS_OF_EVERY_COMMAND                                                                     \
	{                                                                                          \
		EXIT_DONE, EXIT_USAGE, EXIT_DEFECT                                                 \
	}

/* Tables of commands end with a row that has no name. */
const struct cmd *cmd_find(const struct cmd *table, const char *name);
/* False for the commands that are never shown. */
bool cmd_is_shown(const struct cmd *cmd);
/* Returns the first row from `from` on with a name of two words, the first being `word`
 * ("cache"); NULL if there is none. */
const struct cmd *cmd_in_family(const struct cmd *from, const char *word);

/* Parses a command line by the table of commands, which must outlive it; errors are EXIT_USAGE with
 * a hint. An empty command line or --help alone gives the row of `help`. */
int args_parse(const struct cmd *table, int argc, char **argv, struct args *ret, struct err **err);
void args_release(struct args *args); /* for AUTO() */
/* Returns the option of this long name, without its dashes; OPT_COUNT if there is none. */
enum opt_id args_option_find(const char *name, size_t len);
/* Reads a duration longer than 0, such as 90s; 0 if the option is not given. */
int args_duration(const struct args *args, enum opt_id id, int64_t *ret_ms, struct err **err);
/* Reads a moment: an age before `now`, or a date with or without a time, in local time unless it
 * ends in Z. ms 0 if the option is not given; EXIT_USAGE names the option. */
int args_moment(const struct args *args, enum opt_id id, struct utc now, struct utc *ret,
		struct err **err);
/* True if the option is given with this value. */
bool args_is(const struct args *args, enum opt_id id, const char *value);
/* Reads a whole number from 0; EXIT_USAGE names the option. */
int args_number(const struct args *args, enum opt_id id, int64_t fallback, int64_t *ret,
		struct err **err);

#endif
