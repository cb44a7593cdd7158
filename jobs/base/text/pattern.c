/* Globs with double stars, without backtracking that explodes. See pattern.h. */
#include "jobs/base/text/pattern.h"

#include <ctype.h>
#include <string.h>

struct text {
	const char *at, *end;
};

static const struct {
	const char *name;
	int (*is)(int c);
} classes[] = {
	{ "alnum", isalnum }, { "alpha", isalpha }, { "blank", isblank }, { "cntrl", iscntrl },
	{ "digit", isdigit }, { "graph", isgraph }, { "lower", islower }, { "print", isprint },
	{ "punct", ispunct }, { "space", isspace }, { "upper", isupper }, { "xdigit", isxdigit },
};

/* Matches "[:name:]" at p->at and moves behind it. Returns 1 if the class holds c, 0 if not, -1 if
 * there is no such class. */
static int match_class(struct text *p, unsigned char c)
{
	const char *name = p->at + 2;
	const char *end = memchr(name, ':', (size_t)(p->end - name));

	if (!end || end + 1 >= p->end || end[1] != ']')
		return -1;
	for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
		size_t len = strlen(classes[i].name);

		if ((size_t)(end - name) != len || memcmp(name, classes[i].name, len) != 0)
			continue;
		p->at = end + 2;
		return classes[i].is(c) != 0;
	}
	return -1;
}

/* Takes a character, perhaps escaped; false at the end of the pattern. */
static bool take_char(struct text *p, unsigned char *ret)
{
	if (p->at < p->end && *p->at == '\\')
		p->at++;
	if (p->at >= p->end)
		return false;
	*ret = (unsigned char)*p->at++;
	return true;
}

/* Matches the set after '[' at p->at and moves behind its ']'. A set without end matches
 * nothing. */
static bool match_set(struct text *p, unsigned char c)
{
	bool negated = false, hit = false, first = true;

	if (p->at < p->end && (*p->at == '!' || *p->at == '^')) {
		negated = true;
		p->at++;
	}
	for (; p->at < p->end && (*p->at != ']' || first); first = false) {
		unsigned char low, high;

		if (p->end - p->at > 2 && p->at[0] == '[' && p->at[1] == ':') {
			int in_class = match_class(p, c);

			if (in_class < 0)
				return false;
			hit = hit || in_class;
			continue;
		}
		if (!take_char(p, &low))
			return false;
		high = low;
		if (p->end - p->at > 1 && p->at[0] == '-' && p->at[1] != ']') {
			p->at++;
			if (!take_char(p, &high))
				return false;
		}
		hit = hit || (low <= c && c <= high);
	}
	if (p->at >= p->end)
		return false;
	p->at++;
	return hit != negated;
}

/* Matches one byte against the element at p->at (not a star) and moves behind it. */
static bool match_one(struct text *p, unsigned char c)
{
	unsigned char want;

	if (*p->at == '?') {
		p->at++;
		return true;
	}
	if (*p->at == '[') {
		p->at++;
		return match_set(p, c);
	}
	return take_char(p, &want) && want == c;
}

bool pattern_match_part(const char *pattern, size_t pattern_len, const char *name, size_t name_len)
{
	struct text p = { pattern, pattern + pattern_len };
	const char *at = name, *end = name + name_len;
	const char *star = NULL, *star_at = NULL; /* behind the last star; end of what it matches */

	while (at < end || p.at < p.end) {
		if (p.at < p.end && *p.at == '*') {
			star = ++p.at;
			star_at = at;
			continue;
		}
		if (p.at < p.end && at < end && match_one(&p, (unsigned char)*at)) {
			at++;
			continue;
		}
		if (!star || star_at >= end)
			return false;
		p.at = star;
		at = ++star_at;
	}
	return true;
}

/* Takes the part of a path at *at and moves *at behind it and its slash; false at the end. */
static bool next_part(const char **at, struct text *ret)
{
	if (**at == '\0')
		return false;
	ret->at = *at;
	ret->end = strchrnul(*at, '/');
	*at = *ret->end ? ret->end + 1 : ret->end;
	return true;
}

static bool is_double_star(const struct text *part)
{
	return part->end - part->at == 2 && part->at[0] == '*' && part->at[1] == '*';
}

static bool part_matches(const struct text *p, const struct text *s)
{
	return pattern_match_part(p->at, (size_t)(p->end - p->at), s->at, (size_t)(s->end - s->at));
}

bool pattern_match(const char *pattern, const char *path, bool or_above)
{
	const char *p = pattern, *s = path;
	const char *star = NULL, *star_s = NULL;

	for (;;) {
		const char *p_next = p, *s_next = s;
		struct text p_part, s_part;

		if (!next_part(&p_next, &p_part)) {
			if (*s == '\0' || or_above)
				return true;
		} else if (is_double_star(&p_part)) {
			if (*p_next == '\0')
				return *s != '\0';
			star = p = p_next;
			star_s = s;
			continue;
		} else if (next_part(&s_next, &s_part) && part_matches(&p_part, &s_part)) {
			p = p_next;
			s = s_next;
			continue;
		}
		if (!star || !next_part(&star_s, &s_part))
			return false;
		p = star;
		s = star_s;
	}
}

bool pattern_reaches(const char *pattern, const char *path)
{
	struct text p_part, s_part;

	while (next_part(&path, &s_part)) {
		if (!next_part(&pattern, &p_part) || is_double_star(&p_part))
			return true;
		if (!part_matches(&p_part, &s_part))
			return false;
	}
	return true;
}
