/* Functions that read a reply: see http.h. */
#include <string.h>
#include <strings.h>

#include "aws/http/http.h"

void http_reply_release(struct http_reply *reply)
{
	sb_release(&reply->body);
	sb_release(&reply->headers);
}

bool http_header(const struct http_reply *reply, const char *name, struct sb *ret)
{
	const char *at = reply->headers.text, *end;
	size_t name_len = strlen(name), len;

	for (; (end = strchr(at, '\n')) != NULL; at = end + 1) {
		if (strncasecmp(at, name, name_len) != 0 || at[name_len] != ':')
			continue;
		at += name_len + 1;
		at += strspn(at, " \t");
		len = at < end ? (size_t)(end - at) : 0;
		while (len && (at[len - 1] == ' ' || at[len - 1] == '\t'))
			len--;
		sb_add(ret, at, len);
		return true;
	}
	return false;
}
