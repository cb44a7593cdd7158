/* .gitignore, as git reads it. See ignore.h. */
#include "jobs/source/ignore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jobs/base/fs/fs.h"
#include "jobs/base/sb.h"
#include "jobs/base/text/pattern.h"

#define IGNORE_BYTES_MAX ((size_t)1 << 20)

struct ignore_rule {
	const char *pattern; /* without "!", without slashes at the ends */
	bool negated;        /* "!": takes an exclusion back */
	bool folders;        /* "/" at the end: folders only */
	bool name_only;      /* no other slash: matches at any depth, by name */
};

/* Cuts spaces at the end, unless a backslash keeps them. */
static void trim_spaces(char *line)
{
	char *spaces = NULL;

	for (char *p = line; *p; p++) {
		if (*p == ' ') {
			if (!spaces)
				spaces = p;
			continue;
		}
		spaces = NULL;
		if (*p == '\\' && !*++p)
			return;
	}
	if (spaces)
		*spaces = '\0';
}

static void add_rule(struct ignore *ignore, char *line)
{
	struct ignore_rule rule = { 0 };
	size_t len = strlen(line);

	if (len > 0 && line[len - 1] == '\r')
		line[--len] = '\0';
	if (line[0] == '#')
		return;
	trim_spaces(line);
	if (line[0] == '!') {
		rule.negated = true;
		line++;
	}
	len = strlen(line);
	if (len > 0 && line[len - 1] == '/') {
		rule.folders = true;
		line[--len] = '\0';
	}
	if (len == 0)
		return;
	rule.name_only = strchr(line, '/') == NULL;
	rule.pattern = line[0] == '/' ? line + 1 : line;
	ignore->rules = mem_grow(ignore->rules, ignore->count + 1, sizeof *ignore->rules);
	ignore->rules[ignore->count++] = rule;
}

void ignore_parse(struct ignore *ret, const struct ignore *outer, size_t base, const char *text,
		  size_t len)
{
	static const char mark[] = "\xef\xbb\xbf"; /* UTF-8 byte order mark */
	char *line, *next;

	*ret = (struct ignore){ .outer = outer, .base = base };
	if (len >= 3 && memcmp(text, mark, 3) == 0) {
		text += 3;
		len -= 3;
	}
	ret->text = mem_copy_n(text, len);
	for (line = ret->text; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		add_rule(ret, line);
	}
}

int ignore_load(struct ignore *ret, const struct ignore *outer, size_t base, int dir,
		const char *name, const char *what, struct err **err)
{
	AUTO(auto_close) int fd = -1;
	AUTO(sb_release) struct sb text = SB_INIT_MAX(IGNORE_BYTES_MAX);
	struct stat st;
	char buffer[4096];
	ssize_t got;

	*ret = (struct ignore){ .outer = outer, .base = base };
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ELOOP || errno == ENOTDIR))
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return fs_error(err, errno, "cannot read '%s'", what);
	if (!S_ISREG(st.st_mode))
		return 0;
	while ((got = read(fd, buffer, sizeof buffer)) > 0)
		sb_add(&text, buffer, (size_t)got);
	if (got < 0)
		return fs_error(err, errno, "cannot read '%s'", what);
	if (text.truncated)
		return err_set(err, EXIT_REFUSED, "cannot use '%s': larger than %zu bytes", what,
			       IGNORE_BYTES_MAX);
	ignore_parse(ret, outer, base, text.text, text.len);
	return 0;
}

void ignore_release(struct ignore *ignore)
{
	free(ignore->rules);
	free(ignore->text);
	*ignore = (struct ignore){ 0 };
}

static bool rule_matches(const struct ignore_rule *rule, const char *path, bool is_folder)
{
	const char *name = fs_basename(path);

	if (rule->folders && !is_folder)
		return false;
	if (rule->name_only)
		return pattern_match_part(rule->pattern, strlen(rule->pattern), name, strlen(name));
	return pattern_match(rule->pattern, path, false);
}

bool ignore_check(const struct ignore *chain, const char *path, bool is_folder)
{
	for (; chain; chain = chain->outer)
		for (size_t i = chain->count; i-- > 0;)
			if (rule_matches(&chain->rules[i], path + chain->base, is_folder))
				return !chain->rules[i].negated;
	return false;
}
