/* The caller's home: ~/ in paths, as in a shell, and the folder of the caller's own files. */
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/spec/resolved.h"

/* Schemes that may stand in front of a path. */
static const char *const schemes[] = { "dir:", "file:" };

static const char *behind_scheme(const char *text)
{
	for (size_t i = 0; i < STK_LENGTH(schemes); i++)
		if (text_starts(text, schemes[i]))
			return text + strlen(schemes[i]);
	return text;
}

char *home_config_file(spec_getenv_fn *getenv_fn, const char *name)
{
	const char *base = getenv_fn("XDG_CONFIG_HOME"), *home = getenv_fn("HOME");

	if (base && base[0] == '/')
		return mem_format("%s/stoker/%s", base, name);
	return home && home[0] == '/' ? mem_format("%s/.config/stoker/%s", home, name) : NULL;
}

char *home_expand(struct binder *binder, const struct node *node, const char *field)
{
	const char *path = behind_scheme(node->text), *home;
	size_t name = path[0] == '~' ? strcspn(path + 1, "/") : 0;

	if (path[0] != '~')
		return mem_copy(node->text);
	if (name > 0) {
		problem_hint(problem_error(&binder->reporter, node->at, field,
					   "the home of another user, in '%s', does not expand",
					   field),
			     "write the path out; ~/ is your own home, ./~ a folder of that name");
		return NULL;
	}
	home = binder->getenv_fn ? binder->getenv_fn("HOME") : NULL;
	if (!home || home[0] != '/') {
		problem_hint(problem_error(&binder->reporter, node->at, field,
					   "~/ in '%s' stands for HOME, which is not set", field),
			     "set HOME to an absolute path, or write the path out");
		return NULL;
	}
	return mem_format("%.*s%s%s", (int)(path - node->text), node->text, home, path + 1);
}
