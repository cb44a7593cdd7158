/*
 * The variables of pass_env: values of the shell that creates a run. They are kept with its plan
 * and count for the graph key, so that a shell that resumes the run does not change what it
 * computes; but what looks secret is kept nowhere, and is taken from the shell of each driver.
 */
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/base/variable.h"
#include "jobs/spec/fields/names.h"
#include "jobs/spec/resolved.h"

bool pass_env_is_secret(const char *name, const char *value)
{
	return names_secret(name) || text_has_login(value);
}

static void check_one(struct binder *binder, const char *name, size_t index)
{
	const struct variable_row *row = variable_find(name);
	AUTO(auto_free) char *member = mem_format("[%zu]", index);
	const char *value = binder->getenv_fn(name);

	js_put(binder->spec->variables, name, json_true());
	if (row && row->uses & VAR_PASSED)
		problem_hint(spec_lint(binder, SPEC_PASS_ENV, member,
				       "'%s' is passed anyway, and is no part of the graph key",
				       name),
			     "remove it from pass_env");
	else if (!value)
		problem_hint(spec_lint(binder, SPEC_PASS_ENV, member,
				       "'%s' is not set in this shell: the job will not have it",
				       name),
			     "export %s, or remove it from pass_env", name);
	else if (!text_is_utf8(value, strlen(value)))
		problem_hint(spec_error(binder, SPEC_PASS_ENV, member,
					"the value of '%s' is not UTF-8", name),
			     "set it within the command: [env, %s=…, python3, …]", name);
	else
		js_put_str(binder->spec->passed, name, value);
}

void pass_env_load(struct binder *binder)
{
	const json_t *names = spec_get(binder->spec, SPEC_PASS_ENV), *name;
	size_t i;

	binder->spec->passed = json_object();
	if (access_on_aws(binder->spec))
		return; /* refused as a whole */
	json_array_foreach (names, i, name)
		check_one(binder, json_string_value(name), i);
}
