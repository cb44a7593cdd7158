/*
 * Content of help and the manual, as pages of doc.h, all of it from the tables: commands,
 * options, words, exit codes, environment variables, fields.
 */
#ifndef STK_CMD_MANUAL_H
#define STK_CMD_MANUAL_H

#include "cmd/cmd.h"
#include "cmd/doc.h"

/* A help topic that is neither a command nor a field. */
struct topic {
	const char *name, *summary;
	void (*write)(struct doc *doc);
	void (*write_json)(void); /* prints each row of its table as a line; NULL: no table */
};
extern const struct topic topics[]; /* the row after the last has no name */
const struct topic *topic_find(const char *name);

/* Pages on the commands of a table: on all, on a family, on one. */
void manual_overview(struct doc *doc, const struct cmd *table);
void manual_family(struct doc *doc, const struct cmd *table, const char *word); /* "cache" */
void manual_command(struct doc *doc, const struct cmd *cmd);
/* Adds the field with this path; returns false if not found. */
bool manual_field(struct doc *doc, const char *path);

/* Parts of the above, also for the pages of man(1). */
void manual_options(struct doc *doc, uint64_t options);
void manual_exit_codes(struct doc *doc);
void manual_variables(struct doc *doc, unsigned uses);

#endif
