/* The topics of help that are neither commands nor fields. */
#ifndef STK_CMD_HELP_TOPICS_H
#define STK_CMD_HELP_TOPICS_H

#include "cmd/help/doc.h"

struct topic {
	const char *name, *summary;
	void (*write)(struct doc *doc);
	void (*write_json)(void); /* prints each row of its table as a line; NULL: no table */
};
extern const struct topic topics[]; /* the row after the last has no name */
const struct topic *topic_find(const char *name);

/* topic_failures.c: the classes of failures, the user's own rows, and the table. */
void topic_failures_write(struct doc *doc);
void topic_failures_json(void);
/* topic_json.c: lines that commands print with --json, and events. */
void topic_json_write(struct doc *doc);
void topic_json_json(void);

#endif
