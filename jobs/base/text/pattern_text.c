/* Regular expressions as text: see pattern_text.h. */
#include "jobs/base/text/pattern_text.h"

#include <ctype.h>
#include <string.h>

const char *pattern_text_skip_class(const char *text)
{
	text++;
	text += *text == '^';
	text += *text == ']'; /* as the first character, ']' stands for itself */
	while (*text && *text != ']')
		text += text[0] == '\\' && text[1] ? 2 : 1;
	return *text ? text + 1 : text;
}

bool pattern_text_is_special(const char *pattern)
{
	const char *option = pattern;

	if (strstr(pattern, "\\Q") || strstr(pattern, "(?#"))
		return true;
	/* (?x), also beside other options. */
	while ((option = strstr(option, "(?"))) {
		option += 2;
		while (isalpha((unsigned char)*option) || *option == '^' || *option == '-')
			if (*option++ == 'x')
				return true;
	}
	return false;
}

/* True if the pattern has alternatives that are in no group. */
static bool has_alternatives(const char *pattern)
{
	int depth = 0;

	for (const char *at = pattern; *at;) {
		if (*at == '[') {
			at = pattern_text_skip_class(at);
			continue;
		}
		if (*at == '|' && depth == 0)
			return true;
		depth += (*at == '(') - (*at == ')');
		at += at[0] == '\\' && at[1] ? 2 : 1;
	}
	return false;
}

size_t pattern_text_prefix(const char *pattern, char ret[PATTERN_TEXT_PREFIX])
{
	const char *at = pattern;
	size_t len = 0;

	if (pattern_text_is_special(pattern) || has_alternatives(pattern))
		return 0;
	while (*at == '^' || strncmp(at, "\\b", 2) == 0)
		at += *at == '^' ? 1 : 2;
	for (; *at && len < PATTERN_TEXT_PREFIX; at++) {
		if (*at == '\\' && at[1] && !isalnum((unsigned char)at[1]))
			at++;
		else if (strchr("\\^$.[|()?*+{", *at))
			break;
		ret[len++] = *at;
	}
	/* The last one may be absent. */
	if (len > 0 && *at && strchr("?*{", *at))
		len--;
	return len;
}
