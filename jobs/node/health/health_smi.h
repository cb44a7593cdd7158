/*
 * Parser of what nvidia-smi prints with --format=csv: pure, and without trust in the text. Columns
 * are found by their names, for drivers of any age: what an older one does not know it refuses to
 * print at all, by the name of the field, and what a GPU does not have it prints as "[N/A]",
 * "[Not Supported]" and the like. A GPU that has left the bus, or that must be reset, may keep its
 * row, with that in the place of each figure.
 *
 * Sources: nvidia-smi --help-query-gpu, --help-query-compute-apps and --help-query-remapped-rows.
 */
#ifndef STK_NODE_HEALTH_HEALTH_SMI_H
#define STK_NODE_HEALTH_HEALTH_SMI_H

#include <stdbool.h>
#include <stddef.h>

#include "jobs/base/err.h"
#include "jobs/base/text/js.h"

/* Returns the rows below the heading that has this column: a new array of {column: text}, without
 * units. The last column has the rest of its line, as names of programs have commas in them. Lines
 * that are no rows are passed over; *ret_aside: the last of them, owned, NULL if there is none, or
 * if the pointer is NULL. NULL with an error if there is no such heading. */
json_t *health_smi_parse(const char *text, size_t len, const char *column, char **ret_aside,
			 struct err **err);

/* Returns the field that the driver does not know, by its message, NULL if that is not its message;
 * the caller frees it. */
char *health_smi_unknown(const char *text, size_t len);

/* Returns what a cell says of a GPU that is broken, without its brackets: a constant, NULL if it
 * does not say so. */
const char *health_smi_broken(const char *cell);

/* Reads a count, or a Yes or No as 1 or 0. Returns false for any other text, and for NULL. */
bool health_smi_count(const char *text, int64_t *ret);

#endif
