/* Words of a line for a shell: see line.h. */
#include "jobs/spec/machines/line.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/auto.h"
#include "jobs/base/sb.h"

#define BLANKS    " \t\r"
#define OPERATORS ";&|()\n"

/* Copies what a quote protects; returns the place behind its end. */
static const char *quoted(const char *at, struct sb *word)
{
	char quote = *at++;

	while (*at && *at != quote) {
		if (quote == '"' && at[0] == '\\' && at[1] && strchr("\"\\$`", at[1]))
			at++;
		sb_addc(word, *at++);
	}
	return *at ? at + 1 : at;
}

/* Copies a substitution, $(…) or `…`; returns the place behind its end. */
static const char *substituted(const char *at, struct sb *word)
{
	const char *end = at + 1;
	size_t depth = 0;

	if (*at == '`') {
		end += strcspn(end, "`");
	} else {
		for (; *end; end++) {
			depth += *end == '(';
			if (*end == ')' && --depth == 0)
				break;
		}
	}
	end += *end != '\0';
	sb_add(word, at, (size_t)(end - at));
	return end;
}

static const char *read_word(const char *at, struct sb *word)
{
	while (*at && !strchr(BLANKS OPERATORS, *at)) {
		if (*at == '\'' || *at == '"') {
			at = quoted(at, word);
		} else if (*at == '`' || (at[0] == '$' && at[1] == '(')) {
			at = substituted(at, word);
		} else if (at[0] == '\\' && at[1]) {
			if (at[1] != '\n')
				sb_addc(word, at[1]);
			at += 2;
		} else {
			sb_addc(word, *at++);
		}
	}
	return at;
}

static void put_word(struct split_line *ret, char *text, struct line_span span)
{
	ret->words = mem_grow(ret->words, ret->count + 2, sizeof *ret->words);
	ret->spans = mem_grow(ret->spans, ret->count + 1, sizeof *ret->spans);
	ret->words[ret->count] = text;
	ret->spans[ret->count++] = span;
	ret->words[ret->count] = NULL;
}

void line_split(const char *text, struct split_line *ret)
{
	const char *at = text;
	size_t command = 0;

	for (;;) {
		struct sb word = SB_INIT;
		const char *from;

		at += strspn(at, BLANKS);
		if (!*at)
			return;
		if (at[0] == '\\' && at[1] == '\n') {
			at += 2;
			continue;
		}
		if (strchr(OPERATORS, *at)) {
			command++;
			at++;
			continue;
		}
		if (*at == '#') {
			at += strcspn(at, "\n");
			continue;
		}
		from = at;
		at = read_word(at, &word);
		put_word(ret, sb_take(&word),
			 (struct line_span){ (size_t)(from - text), (size_t)(at - text), command });
	}
}

void line_release(struct split_line *line)
{
	for (size_t i = 0; i < line->count; i++)
		free(line->words[i]);
	free(line->words);
	free(line->spans);
	*line = (struct split_line){ 0 };
}
