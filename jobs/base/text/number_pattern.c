/* Patterns of numbers: see number_pattern.h. */
#include "jobs/base/text/number_pattern.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/base/auto.h"
#include "jobs/base/sb.h"
#include "jobs/base/text/pattern_text.h"
#include "jobs/base/text/regex.h"

/* Returns the begin of the inside of the group at `at` ('('); NULL if it does not capture. */
static const char *capturing(const char *at)
{
	bool named = strncmp(at, "(?<", 3) == 0 && at[3] && !strchr("=!", at[3]);
	const char *open;

	if (!named && strncmp(at, "(?P<", 4) != 0)
		return at[1] != '?' && at[1] != '*' ? at + 1 : NULL;
	open = strchr(at, '>');
	return open ? open + 1 : NULL;
}

/* Finds the inside of the first capturing group. False if there is none, or none for sure. */
static bool find_group(const char *pattern, size_t *ret_from, size_t *ret_to)
{
	const char *start = NULL;
	int depth = 0, inside = 0;

	if (pattern_text_is_special(pattern))
		return false;
	for (const char *at = pattern; *at;) {
		if (*at == '[') {
			at = pattern_text_skip_class(at);
			continue;
		}
		if (*at == '(') {
			depth++;
			if (!start && (start = capturing(at))) {
				inside = depth;
				at = start;
				continue;
			}
		} else if (*at == ')') {
			if (start && depth == inside) {
				*ret_from = (size_t)(start - pattern);
				*ret_to = (size_t)(at - pattern);
				return true;
			}
			depth--;
		}
		at += at[0] == '\\' && at[1] ? 2 : 1;
	}
	return false;
}

/* Returns how much of the text's begin the group finds by itself; 0: nothing. */
static size_t found_by(const char *group, size_t len, const char *text)
{
	AUTO(auto_free) char *anchored = mem_format("^(?:%.*s)", (int)len, group);
	AUTO(regex_freep) struct regex *regex = NULL;
	AUTO(err_freep) struct err *err = NULL;
	struct regex_span spans[REGEX_GROUPS_MAX + 1];

	if (regex_compile(anchored, &regex, &err) < 0 ||
	    !regex_find(regex, text, strlen(text), 0, spans))
		return 0;
	return spans[0].to;
}

/* A sign counts only where no word, and no other number, goes before it. */
#define SIGN "(?:(?<![\\w.)\\]])[-+])?"
#define WORD "(?<!\\w)(?i:nan|inf(?:inity)?)\\b"

char *number_pattern_whole(const char *pattern)
{
	AUTO(auto_free) char *whole = NULL;
	AUTO(regex_freep) struct regex *regex = NULL;
	AUTO(err_freep) struct err *err = NULL;
	size_t from, to;

	if (!find_group(pattern, &from, &to) || found_by(pattern + from, to - from, "6.25") == 0)
		return NULL;
	whole = mem_format("%.*s" SIGN "(?:" WORD "|(?:%.*s))%s", (int)from, pattern,
			   (int)(to - from), pattern + from, pattern + to);
	return regex_compile(whole, &regex, &err) < 0 ? NULL : TAKE(whole);
}

char *number_pattern_cuts(const char *pattern)
{
	static const char sample[] = "6.25e-05";
	AUTO(sb_release) struct sb words = SB_INIT_MAX(200);
	size_t from, to, found;

	if (!find_group(pattern, &from, &to))
		return NULL;
	found = found_by(pattern + from, to - from, sample);
	if (found < strlen("6.25") || found == strlen(sample))
		return NULL;
	sb_addf(&words, "cuts %s to %.*s", sample, (int)found, sample);
	if (found_by(pattern + from, to - from, "-0.1") == 0)
		sb_adds(&words, " and loses -0.1 and nan");
	return mem_copy(words.text);
}
