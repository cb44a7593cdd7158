/* Lines of comma-separated values, as RFC 4180 has them. */
#ifndef STK_CMD_VIEW_CSV_H
#define STK_CMD_VIEW_CSV_H

#include "jobs/base/sb.h"

/* Appends a field, behind a comma unless it is the first of its line; in quotes if it would not be
 * one field otherwise. */
void csv_add(struct sb *line, bool first, const char *text);

#endif
