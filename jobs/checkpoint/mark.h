/* What the files about marks share. */
#ifndef STK_CHECKPOINT_MARK_H
#define STK_CHECKPOINT_MARK_H

#include "jobs/checkpoint/checkpoint.h"

/* Append {"url","why"}; NULL takes nothing. */
void mark_reject(json_t *rejected, const char *url, const char *why);

/* For qsort: highest step, then highest attempt. */
int mark_newest_first(const void *a, const void *b);

#endif
