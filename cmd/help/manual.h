/*
 * Content of help and the manual, as pages of doc.h, all of it from the tables: commands,
 * options, words, exit codes, environment variables, fields.
 *
 * cmd/help: pages of help and of man(1), and the topics beside commands and fields. Texts come from
 * tables wherever there is one. Pages are built here and printed by their command; only the rows of
 * a topic's table are printed as JSON from here.
 */
#ifndef STK_CMD_HELP_MANUAL_H
#define STK_CMD_HELP_MANUAL_H

#include "cmd/args/args.h"
#include "cmd/help/doc.h"

/* Pages on the commands of a table: on all, on a family, on one. */
void manual_overview(struct doc *doc, const struct cmd *table);
void manual_family(struct doc *doc, const struct cmd *table, const char *word); /* "cache" */
void manual_command(struct doc *doc, const struct cmd *cmd);
/* Adds the field with this path; returns false if not found. */
bool manual_field(struct doc *doc, const char *path);

/* Parts of the above, also for the pages of man(1). */
void manual_options(struct doc *doc, opt_set options);
void manual_exit_codes(struct doc *doc);
void manual_variables(struct doc *doc, unsigned uses);

#endif
