/* `stoker help failures`: the classes of failures, the user's own rows, and the table. */
#ifndef STK_CMD_HELP_TOPIC_FAILURES_H
#define STK_CMD_HELP_TOPIC_FAILURES_H

#include "cmd/help/doc.h"

void topic_failures_write(struct doc *doc);
void topic_failures_json(void);

#endif
