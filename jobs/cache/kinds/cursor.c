/* Moving through a piece of log: see cursor.h. */
#include "jobs/cache/kinds/cursor.h"

#include <string.h>

#include "jobs/base/text/text.h"

bool cursor_accept(struct cursor *in, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(in->end - in->at) < len || memcmp(in->at, word, len) != 0)
		return false;
	in->at += len;
	return true;
}

bool cursor_accept_until(struct cursor *in, const char *stop, size_t max,
			 struct compile_kind_words *ret)
{
	size_t stop_len = strlen(stop), left = (size_t)(in->end - in->at);
	const char *found;

	if (left > max + stop_len)
		left = max + stop_len;
	found = memmem(in->at, left, stop, stop_len);
	if (!found)
		return false;
	left = (size_t)(found - in->at);
	if (memchr(in->at, '\n', left) || memchr(in->at, '\r', left))
		return false;
	*ret = (struct compile_kind_words){ in->at, left };
	in->at = found + stop_len;
	return true;
}

bool cursor_accept_number(struct cursor *in, double *ret)
{
	size_t len = 0;

	if (in->at < in->end && *in->at >= '0' && *in->at <= '9')
		len = text_float(in->at, (size_t)(in->end - in->at), ret);
	if (len == 0 || len > 32)
		return false;
	in->at += len;
	return true;
}

struct compile_kind_words cursor_line_ahead(const struct cursor *in, size_t max)
{
	size_t left = (size_t)(in->end - in->at);
	const char *stop;

	if (left > max)
		left = max;
	stop = memchr(in->at, '\n', left);
	return (struct compile_kind_words){ in->at, stop ? (size_t)(stop - in->at) : left };
}

struct compile_kind_words cursor_accept_why(struct cursor *in)
{
	struct compile_kind_words why = cursor_line_ahead(in, WHY_MAX);

	why.len = strnlen(why.text, why.len);
	while (why.len > 0 && strchr(" \r\t", why.text[why.len - 1]))
		why.len--;
	in->at += why.len;
	return why;
}
