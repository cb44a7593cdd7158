/*
 * What help and the manual say, as pages of doc.h, all of it from the tables:
 * commands, options, words, exit codes, environment variables, fields.
 */
#ifndef STK_CMD_MANUAL_H
#define STK_CMD_MANUAL_H

#include "cmd/cmd.h"
#include "cmd/doc.h"

/* What is neither a command nor a field and has help all the same. */
struct topic {
	const char *name, *summary;
	void (*write)(struct doc *doc);
	void (*write_json)(void); /* a line a row of its table; NULL: it has none */
};
extern const struct topic topics[]; /* the one behind the last has no name */
const struct topic *topic_find(const char *name);

void manual_overview(struct doc *doc);
void manual_family(struct doc *doc, const char *word); /* "cache" */
void manual_command(struct doc *doc, const struct cmd *cmd);
/* The field with this path; false: there is none. */
bool manual_field(struct doc *doc, const char *path);

/* Its parts, for the pages of man(1) too. */
void manual_options(struct doc *doc, uint64_t options);
void manual_exit_codes(struct doc *doc);
void manual_variables(struct doc *doc, unsigned uses);

#endif
