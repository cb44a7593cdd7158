/* Places within a scalar: see place.h. */
#include "jobs/spec/derive/place.h"

#include <string.h>

/* Number of characters in so many bytes of UTF-8. */
static int characters(const char *text, size_t len)
{
	int count = 0;

	for (size_t i = 0; i < len; i++)
		count += ((unsigned char)text[i] & 0xc0) != 0x80;
	return count;
}

/* Returns the begin of a line of the file; NULL if it has fewer. */
static const char *line_of(const struct spec *spec, int line)
{
	const char *at = spec->text, *end = spec->text + spec->len;

	for (int i = 1; i < line && at; i++) {
		at = memchr(at, '\n', (size_t)(end - at));
		at = at ? at + 1 : NULL;
	}
	return at;
}

/* The expression is a block: its line N is N lines below its sign, indented by blanks. */
static struct mark in_block(const struct spec *spec, const struct node *node, size_t offset)
{
	const char *text = node->text, *line, *next;
	struct mark at = node->at;
	size_t len, indent;

	at.line++;
	while ((next = memchr(text, '\n', offset))) {
		offset -= (size_t)(next + 1 - text);
		text = next + 1;
		at.line++;
	}
	line = line_of(spec, at.line);
	len = strcspn(text, "\n");
	indent = line ? strspn(line, " ") : 0;
	indent -= indent < strspn(text, " ") ? indent : strspn(text, " ");
	if (!line || strncmp(line + indent, text, len) != 0)
		return node->at;
	at.column = (int)indent + 1 + characters(text, offset);
	return at;
}

struct mark place_in_scalar(const struct spec *spec, const struct node *node, size_t offset)
{
	struct mark at = node->at;
	const char *line = at.set || at.line < 1 ? NULL : line_of(spec, at.line);
	size_t len = strlen(node->text);

	if (!line || strcmp(node->text, node->written) != 0)
		return at;
	for (int i = 1; i < at.column && *line; i++)
		do
			line++;
		while (((unsigned char)*line & 0xc0) == 0x80);
	if (*line == '|')
		return in_block(spec, node, offset);
	if (node->quoted && (*line == '"' || *line == '\'')) {
		line++;
		at.column++;
	}
	if (strncmp(line, node->text, len) != 0)
		return node->at;
	at.column += characters(node->text, offset);
	return at;
}
