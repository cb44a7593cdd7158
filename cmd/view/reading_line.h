/* A reading of a metric as a line of JSON, and what is lost of a log. */
#ifndef STK_CMD_VIEW_READING_LINE_H
#define STK_CMD_VIEW_READING_LINE_H

#include "jobs/run/attempt/run_series.h"

/* Returns a new object, to be printed with all digits of its value. */
json_t *reading_line_json(const char *run, const struct run_reading *reading);

/* The same of a place where lines of the log are lost; and in words, for a sentence. */
json_t *reading_line_loss_json(const char *run, const struct run_series_loss *loss);
void reading_line_add_loss(struct sb *out, const struct run_series_loss *loss);

#endif
