/* A log as lines: see tail.h. */
#include "jobs/run/tail.h"

#include <string.h>

void tail_init(struct tail *tail)
{
	*tail = (struct tail){ .line = SB_INIT_MAX(TAIL_LINE_MAX) };
}

void tail_release(struct tail *tail)
{
	sb_release(&tail->line);
}

/* Offset of the next line end, `len` if there is none. */
static size_t line_end(const char *bytes, size_t len)
{
	const char *newline = memchr(bytes, '\n', len);
	size_t end = newline ? (size_t)(newline - bytes) : len;
	const char *redraw = memchr(bytes, '\r', end);

	return redraw ? (size_t)(redraw - bytes) : end;
}

/* A line is whole; `end` is the byte after it. */
static void hand_out(struct tail *tail, const char *line, size_t len, char end, tail_fn fn,
		     void *arg)
{
	/* Of "\r\n" the second, and a bar that redraws nothing, are no lines. */
	if (len > 0 || (end == '\n' && !tail->returned))
		fn(arg, line, len);
	tail->returned = end == '\r';
}

static void clear_line(struct tail *tail)
{
	sb_clear(&tail->line);
	tail->dropping = false;
	tail->lost = 0;
}

void tail_feed(struct tail *tail, const char *bytes, size_t len, tail_fn fn, void *arg)
{
	while (len > 0) {
		size_t end = line_end(bytes, len);

		/* A whole line in hand needs no copy. */
		if (tail->line.len == 0 && !tail->dropping && end < len && end <= TAIL_LINE_MAX) {
			hand_out(tail, bytes, end, bytes[end], fn, arg);
		} else {
			size_t before = tail->line.len;

			if (!tail->dropping)
				sb_add(&tail->line, bytes, end);
			tail->lost += end - (tail->line.len - before);
			tail->dropping = tail->line.truncated;
			if (end == len)
				return;
			hand_out(tail, tail->line.text, tail->line.len, bytes[end], fn, arg);
			clear_line(tail);
		}
		bytes += end + 1;
		len -= end + 1;
	}
}

void tail_end(struct tail *tail, tail_fn fn, void *arg)
{
	if (tail->line.len > 0)
		fn(arg, tail->line.text, tail->line.len);
	clear_line(tail);
}
