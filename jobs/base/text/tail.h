/*
 * Splits a log into lines: bytes in as they come, whole lines out. Carriage returns end a line too,
 * so progress bars that redraw themselves are read; "\r\n" ends one line, not two. Of a line longer
 * than TAIL_LINE_MAX only the beginning is handed out; `lost` then says how much was dropped.
 */
#ifndef STK_BASE_TEXT_TAIL_H
#define STK_BASE_TEXT_TAIL_H

#include <stdint.h>

#include "jobs/base/sb.h"

#define TAIL_LINE_MAX ((size_t)16 << 10)

struct tail {
	uint64_t offset;  /* offset in the log of the next byte to fetch */
	struct sb line;   /* the unfinished line */
	uint64_t line_at; /* offset of the line that is handed out or unfinished */
	bool dropping;    /* the rest of the line is dropped: it was too long */
	uint64_t lost;    /* bytes dropped from the line that is handed out */
	bool returned;    /* the newest line ended with a carriage return */
};

typedef void (*tail_fn)(void *arg, const char *line, size_t len);

void tail_init(struct tail *tail);
void tail_release(struct tail *tail);

/* Takes the bytes from `offset` on. Moving `offset` is up to the caller. */
void tail_feed(struct tail *tail, const char *bytes, size_t len, tail_fn fn, void *arg);
/* Goes on from this offset, in the middle of a line; the rest of that line is dropped. */
void tail_skip(struct tail *tail, uint64_t offset);
/* Hands out the last line at the end of the log if it has no newline. */
void tail_end(struct tail *tail, tail_fn fn, void *arg);

#endif
