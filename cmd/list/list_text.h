/* The table of `list`: see table.h. */
#ifndef STK_CMD_LIST_LIST_TEXT_H
#define STK_CMD_LIST_LIST_TEXT_H

#include "cmd/list/run_list.h"
#include "cmd/view/table.h"

struct list_text_options {
	bool terminal;      /* ages and local times; else RFC 3339 */
	bool sizes, live;   /* columns for what was asked for */
	const json_t *diff; /* as of run_list_differ(); NULL: not asked for */
	struct utc now;
};

/* Makes the table of rows. */
void list_text_make(const struct listed *rows, size_t count,
		    const struct list_text_options *options, struct table *ret);

#endif
