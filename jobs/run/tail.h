/*
 * A log as lines: bytes in as they come, whole lines out. Carriage returns end
 * a line too, so progress bars that redraw themselves are read; "\r\n" ends one
 * line, not two. A line longer than TAIL_LINE_MAX is handed out cut, at its
 * beginning; `lost` says then how much was dropped.
 */
#ifndef STK_RUN_TAIL_H
#define STK_RUN_TAIL_H

#include <stdint.h>

#include "jobs/base/sb.h"

#define TAIL_LINE_MAX ((size_t)16 << 10)

struct tail {
	uint64_t offset; /* of the next byte to fetch from the log */
	struct sb line;  /* the unfinished one */
	bool dropping;   /* the rest of a line that was too long */
	uint64_t lost;   /* bytes dropped from the line that is handed out */
	bool returned;   /* the newest line ended with a carriage return */
};

typedef void (*tail_fn)(void *arg, const char *line, size_t len);

void tail_init(struct tail *tail);
void tail_release(struct tail *tail);

void tail_feed(struct tail *tail, const char *bytes, size_t len, tail_fn fn, void *arg);
/* The log has ended: hand out what has no newline. */
void tail_end(struct tail *tail, tail_fn fn, void *arg);

#endif
