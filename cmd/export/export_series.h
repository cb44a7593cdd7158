/*
 * The readings of a run that count, in the forms of other programs.
 *
 * cmd/export: what `export` writes: the metrics of a run, and the workflow of a spec. The table of
 * its kinds is in cmd_export.c.
 */
#ifndef STK_CMD_EXPORT_EXPORT_SERIES_H
#define STK_CMD_EXPORT_EXPORT_SERIES_H

#include "cmd/args/args.h"

enum series_form { SERIES_TENSORBOARD, SERIES_CSV, SERIES_JSONL };

/* Writes the readings of the run that is the first operand (@last if there is none) to `dest`;
 * NULL: stdout, or TensorBoard's own default. `to` is the word of the form. */
int export_series(const struct args *args, enum series_form form, const char *to, const char *dest,
		  struct err **err);

#endif
