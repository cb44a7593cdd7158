/* A reading of a metric as a line of JSON. */
#ifndef STK_CMD_VIEW_READING_LINE_H
#define STK_CMD_VIEW_READING_LINE_H

#include "jobs/run/attempt/run_series.h"

/* Returns a new object, to be printed with all digits of its value. */
json_t *reading_line_json(const char *run, const struct run_reading *reading);

#endif
