/* The table of schedulers: see kind.h. */
#include "cmd/schedule/kind.h"

#include <string.h>

static const struct schedule_kind *const rows[] = { &kind_systemd_row, &kind_cron_row,
						    &kind_eventbridge_row };

const struct schedule_kind *kind_find(const char *name)
{
	for (size_t i = 0; name && i < STK_LENGTH(rows); i++)
		if (strcmp(rows[i]->name, name) == 0)
			return rows[i];
	return NULL;
}
