/*
 * Finding the model folder that a command means, and its entries as lines.
 *
 * cmd/lineage: promoted models on the command line.
 */
#ifndef STK_CMD_LINEAGE_MODEL_OF_H
#define STK_CMD_LINEAGE_MODEL_OF_H

#include "cmd/args/args.h"
#include "jobs/model/model.h"
#include "jobs/run/journal/journal.h"

/* Opens the model folder that `text` means: a directory or URL of one (with a slash or a colon in
 * it), else a run (its promote.url; @last), else the name of a spec (that of its newest run).
 * `ret_run`: the run, "" for a folder. For a folder no state is read. */
int model_of_find(const struct args *args, const char *text, struct model **ret,
		  char ret_run[JOURNAL_RUN_MAX], struct err **err);

/* An entry as JSON: a new reference; `current`: it is the newest one, `removed`: its model files
 * are deleted. */
json_t *model_of_line(const struct model *model, const struct model_entry *entry, bool current,
		      bool removed);
/* The same for people, on stdout. */
void model_of_print(const json_t *line);

#endif
