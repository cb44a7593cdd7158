/* Sources of secrets: see secret.h. */
#include "jobs/run/plan/secret.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "aws/credentials/secret.h"
#include "aws/credentials/secrets.h"
#include "jobs/base/fs/fs.h"
#include "jobs/base/text/dotenv.h"
#include "jobs/base/text/text.h"

#define SECRET_MAX ((size_t)64 << 10)

static int from_environment(const char *name, const char *variable, char **ret, struct err **err)
{
	const char *value = getenv(variable);

	if (!value) {
		err_set(err, EXIT_REFUSED, "secret '%s': the variable '%s' is not set", name,
			variable);
		return err_hint(err, "export %s before you start stoker", variable);
	}
	*ret = mem_copy(value);
	return 0;
}

struct wanted {
	const char *name;
	char *value; /* secret; NULL: not found */
};

static void take_wanted(void *arg, const char *name, const char *value, int line)
{
	struct wanted *wanted = arg;

	(void)line;
	if (strcmp(name, wanted->name) != 0)
		return;
	secret_freep(&wanted->value);
	wanted->value = mem_copy(value);
}

/* Reads a variable of an env_file beside the spec file. */
static int from_env_file(const json_t *plan, const char *name, const char *file, char **ret,
			 struct err **err)
{
	AUTO(auto_free) char *folder = fs_dirname(js_str(plan, "spec_file"));
	AUTO(auto_free) char *path = fs_join(folder, file);
	AUTO(secret_freep) char *text = NULL;
	struct wanted wanted = { name, NULL };
	struct dotenv_fault fault;

	if (secret_read(path, SECRET_MAX, &text, err) < 0)
		return err_wrap(err, "variable '%s' of env_file", name);
	if (!text) {
		err_set(err, EXIT_REFUSED, "variable '%s' of env_file: cannot read '%s': %s", name,
			path, strerror(ENOENT));
		return err_hint(err, "put the file back, with %s in it", name);
	}
	if (dotenv_read(text, take_wanted, &wanted, &fault) < 0) {
		secret_freep(&wanted.value);
		err_set(err, EXIT_REFUSED, "%s", fault.why);
		err_at(err, path, fault.line, 1);
		return err_hint(err, "%s", fault.hint);
	}
	if (!wanted.value) {
		err_set(err, EXIT_REFUSED, "variable '%s' is no more in '%s'", name, path);
		return err_hint(err, "write %s= there again, or begin another run", name);
	}
	*ret = wanted.value;
	return 0;
}

/* Reads a file beside the spec file; newlines at its end are not part of the secret. */
static int from_file(const json_t *plan, const char *name, const char *file, char **ret,
		     struct err **err)
{
	AUTO(auto_free) char *folder = fs_dirname(js_str(plan, "spec_file"));
	AUTO(auto_free) char *path = fs_join(folder, file);
	AUTO(secret_freep) char *text = NULL;
	struct stat st;
	size_t len;

	if (secret_read(path, SECRET_MAX, &text, err) < 0) {
		if (!(*err)->hint)
			err_hint(err, "correct secrets.%s, or write the secret there", name);
		return err_wrap(err, "secret '%s'", name);
	}
	if (!text) {
		err_set(err, EXIT_REFUSED, "secret '%s': cannot read '%s': %s", name, path,
			stat(path, &st) < 0 ? "no such file" : "not a regular file");
		return err_hint(err, "correct secrets.%s, or write the secret there", name);
	}
	for (len = strlen(text); len > 0 && text[len - 1] == '\n';)
		text[--len] = '\0';
	*ret = TAKE(text);
	return 0;
}

int secret_value(const json_t *plan, const char *name, const char *from, char **ret,
		 struct err **err)
{
	if (text_starts(from, "env:"))
		return from_environment(name, from + strlen("env:"), ret, err);
	if (text_starts(from, "file:"))
		return from_file(plan, name, from + strlen("file:"), ret, err);
	if (text_starts(from, "env_file:"))
		return from_env_file(plan, name, from + strlen("env_file:"), ret, err);
	if (!aws_secret_is(from))
		return err_set(err, EXIT_REFUSED, "secret '%s': unknown source", name);
	if (aws_secret_read(from, SECRET_MAX, ret, err) < 0)
		return err_wrap(err, "secret '%s' ('%s')", name, from);
	return 0;
}
