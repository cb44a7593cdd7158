/* Words of a command line: see shell_words.h. */
#include "jobs/base/text/shell_words.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/sb.h"

static bool is_in(const char *set, char c)
{
	return c && strchr(set, c);
}

/* Appends the word at `text` to `ret`; returns its end. */
static const char *one_word(const char *text, const char *ends, struct sb *ret, bool *ret_whole)
{
	char quote = '\0';

	for (; *text && (quote || !is_in(ends, *text)); text++) {
		if (quote && *text == quote) {
			quote = '\0';
		} else if (!quote && (*text == '\'' || *text == '"')) {
			quote = *text;
		} else if (*text == '\\' && quote != '\'') {
			/* Between double quotes a backslash protects only " and \. */
			if (quote && text[1] != '"' && text[1] != '\\')
				sb_addc(ret, '\\');
			*ret_whole = *ret_whole && text[1];
			if (!*++text)
				return text;
			sb_addc(ret, *text);
		} else {
			sb_addc(ret, *text);
		}
	}
	*ret_whole = *ret_whole && !quote;
	return text;
}

static char **split(const char *text, const char *operators, size_t *ret_count, bool *ret_whole)
{
	AUTO(auto_free) char *ends = mem_format(" \t\r\n%s", operators);
	char **words = mem_zero(1, sizeof *words);

	*ret_count = 0;
	*ret_whole = true;
	for (text += strspn(text, ends); *text; text += strspn(text, ends)) {
		struct sb word = SB_INIT;

		text = one_word(text, ends, &word, ret_whole);
		words = mem_grow(words, *ret_count + 2, sizeof *words);
		words[(*ret_count)++] = sb_take(&word);
		words[*ret_count] = NULL;
	}
	return words;
}

char **shell_words(const char *text, size_t *ret_count)
{
	bool whole;
	AUTO(auto_strv) char **words = split(text, "", ret_count, &whole);

	return whole ? TAKE(words) : NULL;
}

char **shell_words_seen(const char *text, const char *operators)
{
	size_t count;
	bool whole;

	return split(text, operators, &count, &whole);
}
