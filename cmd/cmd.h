/*
 * Commands: one row each in cmd_table.c, one function each in a cmd_*.c of its own or of its
 * family. Only this folder prints.
 */
#ifndef STK_CMD_CMD_H
#define STK_CMD_CMD_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/err.h"
#include "jobs/base/exitcode.h"

enum opt_id {
#define OPTION(id, ...) OPT_##id,
#include "cmd/options.def"
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

#define OPT_BIT(id) (UINT64_C(1) << OPT_##id)
/* Options that every command takes. */
#define OPTS_GLOBAL                                                                                \
	(OPT_BIT(STATE) | OPT_BIT(PROFILE) | OPT_BIT(REGION) | OPT_BIT(JSON) | OPT_BIT(QUIET) |    \
	 OPT_BIT(VERBOSE) | OPT_BIT(COLOR) | OPT_BIT(HELP))

/* A parsed command line. Strings are borrowed from argv; `sets` is owned. */
struct args {
	const struct cmd *cmd;
	const struct cmd *table; /* all commands, as args_parse() was given them */
	bool given[OPT_COUNT];
	const char *value[OPT_COUNT]; /* the last one */
	char **sets;                  /* --set and --engine, in order; NULL-terminated */
	char **operands;              /* a part of argv, after the command's name */
	int operand_count;
};

struct cmd_example {
	const char *line, *what; /* a line to type, and its purpose */
};

struct cmd {
	const char *name;     /* a single word, or two: "cache ls" */
	const char *operands; /* as help shows them, in the words of words.def */
	int least, most;      /* number of operands; most -1: any number */
	uint64_t options;     /* beyond OPTS_GLOBAL */
	const char *summary;  /* a single line; NULL: not part of the interface, never shown */
	const char *detail;   /* paragraphs for `help NAME`; may be NULL */
	/* Returns the exit code, or -1 with err set. */
	int (*run)(const struct args *args, struct err **err);
	/* Exit codes beyond EXITS_OF_EVERY_COMMAND; a 0 ends the list. */
	enum exit_code exits[10];
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
/* Reads a whole number from 0; EXIT_USAGE names the option. */
int args_number(const struct args *args, enum opt_id id, int64_t fallback, int64_t *ret,
		struct err **err);

/* All commands in the order of the help. Only main() uses it and hands it down: it is above all
 * that it names. */
extern const struct cmd cmd_table[];
/* A function for each row; cmd_<family>.c. */
int cmd_init(const struct args *args, struct err **err);
int cmd_validate(const struct args *args, struct err **err);
int cmd_plan(const struct args *args, struct err **err);
int cmd_run(const struct args *args, struct err **err);
int cmd_attach(const struct args *args, struct err **err);
int cmd_resume(const struct args *args, struct err **err);
int cmd_stop(const struct args *args, struct err **err);
int cmd_status(const struct args *args, struct err **err);
int cmd_rm(const struct args *args, struct err **err);
int cmd_prune(const struct args *args, struct err **err); /* list --prune */
int cmd_list(const struct args *args, struct err **err);
int cmd_events(const struct args *args, struct err **err);
int cmd_logs(const struct args *args, struct err **err);
int cmd_cache_ls(const struct args *args, struct err **err);
int cmd_cache_verify(const struct args *args, struct err **err);
int cmd_cache_why(const struct args *args, struct err **err);
int cmd_cache_pull(const struct args *args, struct err **err);
int cmd_cache_push(const struct args *args, struct err **err);
int cmd_cache_gc(const struct args *args, struct err **err);
int cmd_schema(const struct args *args, struct err **err);
int cmd_version(const struct args *args, struct err **err);
int cmd_help(const struct args *args, struct err **err);
int cmd_completion(const struct args *args, struct err **err);
/* For the completion scripts, and for the build of the manual. */
int cmd_complete(const struct args *args, struct err **err);
int cmd_manual(const struct args *args, struct err **err);

#endif
