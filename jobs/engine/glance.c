/* Members of JSON objects as they stand in the text: see glance.h. */
#include "jobs/engine/glance.h"

#include <string.h>

#define DEPTH_MAX 64

static const char *skip_space(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t'))
		at++;
	return at;
}

/* Behind the string that begins at its quote; NULL: it does not end. */
static const char *skip_string(const char *at, const char *end)
{
	for (at++; at < end; at++) {
		at = memchr(at, '"', (size_t)(end - at));
		if (!at)
			return NULL;
		if (at[-1] != '\\')
			return at + 1;
		/* An even number of them escape each other: the first one is behind a quote. */
		const char *before = at - 1;

		while (*before == '\\')
			before--;
		if ((at - before) % 2 == 1)
			return at + 1;
	}
	return NULL;
}

static const bool is_mark[256] = {
	['"'] = true, ['{'] = true, ['['] = true, ['}'] = true, [']'] = true,
};

/* Behind an object or a list that begins here; NULL: it does not end. */
static const char *skip_nested(const char *at, const char *end)
{
	int depth = 0;

	while (at < end) {
		if (!is_mark[(unsigned char)*at]) {
			at++;
			continue;
		}
		if (*at == '"') {
			at = skip_string(at, end);
			if (!at)
				return NULL;
			continue;
		}
		if (*at == '{' || *at == '[')
			depth++;
		else if ((*at == '}' || *at == ']') && --depth == 0)
			return at + 1;
		if (depth > DEPTH_MAX)
			return NULL;
		at++;
	}
	return NULL;
}

/* Behind a value; NULL: it does not end. */
static const char *skip_value(const char *at, const char *end)
{
	if (at == end)
		return NULL;
	if (*at == '"')
		return skip_string(at, end);
	if (*at == '{' || *at == '[')
		return skip_nested(at, end);
	while (at < end && *at != ',' && *at != '}' && *at != ']')
		at++;
	return at < end ? at : NULL;
}

struct member {
	struct glance name, value;
};

/* Where the value of the member begins that begins here, or behind the comma here; NULL: the
 * object has no more. */
static const char *next_name(const char *at, const char *end, struct glance *ret)
{
	const char *begin;

	at = skip_space(at, end);
	if (at < end && *at == ',')
		at = skip_space(at + 1, end);
	if (at == end || *at != '"')
		return NULL;
	begin = at + 1;
	at = skip_string(at, end);
	if (!at)
		return NULL;
	*ret = (struct glance){ begin, (size_t)(at - 1 - begin) };
	at = skip_space(at, end);
	if (at == end || *at != ':')
		return NULL;
	return skip_space(at + 1, end);
}

/* Behind the member that begins here. */
static const char *next_member(const char *at, const char *end, struct member *ret)
{
	const char *begin = next_name(at, end, &ret->name);

	at = begin ? skip_value(begin, end) : NULL;
	if (!at)
		return NULL;
	ret->value = (struct glance){ begin, (size_t)(at - begin) };
	if (*begin == '"')
		ret->value = (struct glance){ begin + 1, (size_t)(at - begin - 2) };
	return at;
}

bool glance_is(struct glance value, const char *word)
{
	return value.text && value.len == strlen(word) && memcmp(value.text, word, value.len) == 0;
}

bool glance_list(const char *text, size_t len, const char *name, struct glance_list *ret)
{
	const char *end = text + len, *at = skip_space(text, end);
	struct glance found;

	if (at == end || *at != '{')
		return false;
	for (at++; at && (at = next_name(at, end, &found)); at = skip_value(at, end))
		if (glance_is(found, name) && at < end && *at == '[') {
			*ret = (struct glance_list){ at + 1, end };
			return true;
		}
	return false;
}

/* Where it would begin. */
static const char *next_object(const struct glance_list *list)
{
	const char *at = skip_space(list->at, list->end);

	return at < list->end && *at == ',' ? skip_space(at + 1, list->end) : at;
}

bool glance_same(struct glance_list *list, struct glance object)
{
	const char *at = next_object(list);

	/* A whole object is never the beginning of a longer one: its length is enough. */
	if (object.len == 0 || (size_t)(list->end - at) < object.len ||
	    memcmp(at, object.text, object.len) != 0)
		return false;
	list->at = at + object.len;
	return true;
}

bool glance_next(struct glance_list *list, const char *name, struct glance *ret_object,
		 struct glance *ret)
{
	const char *at = next_object(list), *begin = at;
	struct member member;

	if (at >= list->end || *at != '{')
		return false;
	*ret = (struct glance){ 0 };
	at++;
	for (const char *next; (next = next_member(at, list->end, &member)); at = next)
		if (glance_is(member.name, name))
			*ret = member.value;
	at = skip_space(at, list->end);
	if (at >= list->end || *at != '}')
		return false;
	*ret_object = (struct glance){ begin, (size_t)(at + 1 - begin) };
	list->at = at + 1;
	return true;
}
