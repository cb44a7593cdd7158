/* Words of a command line: see words.h. */
#include "aws/words.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/sb.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* One word from `text` on, appended; where it ends, or NULL. */
static const char *one_word(const char *text, struct sb *ret)
{
	char quote = '\0';

	for (; *text && (quote || !is_blank(*text)); text++) {
		if (quote && *text == quote) {
			quote = '\0';
		} else if (!quote && (*text == '\'' || *text == '"')) {
			quote = *text;
		} else if (*text == '\\' && quote != '\'') {
			/* Between double quotes it protects only these two. */
			if (quote && text[1] != '"' && text[1] != '\\')
				sb_addc(ret, '\\');
			text++;
			if (!*text)
				return NULL;
			sb_addc(ret, *text);
		} else {
			sb_addc(ret, *text);
		}
	}
	return quote ? NULL : text;
}

char **shell_words(const char *text, size_t *ret_count)
{
	AUTO(auto_strv) char **words = mem_zero(1, sizeof *words);
	size_t count = 0;

	for (;;) {
		AUTO(sb_release) struct sb word = SB_INIT;

		while (is_blank(*text))
			text++;
		if (!*text)
			break;
		text = one_word(text, &word);
		if (!text)
			return NULL;
		words = mem_grow(words, count + 2, sizeof *words);
		words[count++] = sb_take(&word);
		words[count] = NULL;
	}
	*ret_count = count;
	return TAKE(words);
}
