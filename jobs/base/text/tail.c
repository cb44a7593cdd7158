/* A log as lines: see tail.h. */
#include "jobs/base/text/tail.h"

#include <string.h>

void tail_init(struct tail *tail)
{
	*tail = (struct tail){ .line = SB_INIT_MAX(TAIL_LINE_MAX) };
}

void tail_release(struct tail *tail)
{
	sb_release(&tail->line);
}

/* Finds line ends one after the other. The next newline is remembered while carriage returns before
 * it are found, so each byte is looked at twice at most. */
struct ends {
	const char *newline; /* the next one, or the end of the bytes */
	const char *stop;
};

static const char *find_end(struct ends *ends, const char *at)
{
	const char *found;

	if (!ends->newline || ends->newline < at) {
		found = memchr(at, '\n', (size_t)(ends->stop - at));
		ends->newline = found ? found : ends->stop;
	}
	found = memchr(at, '\r', (size_t)(ends->newline - at));
	return found ? found : ends->newline;
}

/* Hands out a whole line; `end` is the byte after it. */
static void pass_line(struct tail *tail, const char *line, size_t len, char end, tail_fn fn,
		      void *arg)
{
	/* The "\n" of a "\r\n", and an empty redraw of a progress bar, are no lines. */
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

/* Adds part of a line that does not end here, or is not in one piece. */
static void add_part(struct tail *tail, const char *bytes, size_t len)
{
	size_t before = tail->line.len;

	if (!tail->dropping)
		sb_add(&tail->line, bytes, len);
	tail->lost += len - (tail->line.len - before);
	tail->dropping |= tail->line.truncated;
}

void tail_feed(struct tail *tail, const char *bytes, size_t len, tail_fn fn, void *arg)
{
	const char *at = bytes;
	struct ends ends = { NULL, bytes + len };

	while (at < ends.stop) {
		const char *end = find_end(&ends, at);
		size_t size = (size_t)(end - at);

		if (tail->line.len == 0 && !tail->dropping)
			tail->line_at = tail->offset + (uint64_t)(at - bytes);
		if (end == ends.stop) {
			add_part(tail, at, size);
			return;
		}
		/* A whole line in one piece needs no copy. */
		if (tail->line.len == 0 && !tail->dropping && size <= TAIL_LINE_MAX) {
			pass_line(tail, at, size, *end, fn, arg);
		} else {
			add_part(tail, at, size);
			pass_line(tail, tail->line.text, tail->line.len, *end, fn, arg);
			clear_line(tail);
		}
		at = end + 1;
	}
}

void tail_skip(struct tail *tail, uint64_t offset)
{
	clear_line(tail);
	tail->dropping = true;
	tail->offset = offset;
}

void tail_end(struct tail *tail, tail_fn fn, void *arg)
{
	if (tail->line.len > 0)
		fn(arg, tail->line.text, tail->line.len);
	clear_line(tail);
}
