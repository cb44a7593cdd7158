/*
 * The variables of a job: which a spec may set, by which of its fields, on which engine, and that
 * no two of them set one.
 */
#include "jobs/base/text/text.h"
#include "jobs/spec/fields/names.h"
#include "jobs/spec/resolved.h"

#define NAMES_SHOWN 3 /* number of names in a warning */

static void check_variables(struct binder *binder, enum spec_field map)
{
	const struct node *node = access_node_of_field(binder->spec, map);

	for (size_t i = 0; node && i < node->count; i++) {
		const struct entry *entry = &node->entries[i];
		const struct reserved_name *row = entry->key ? names_reserved(entry->key) : NULL;
		AUTO(auto_free) char *field = NULL;

		if (!row)
			continue;
		field = mem_format("%s.%s", field_table[map].path, entry->key);
		problem_hint(problem_error(&binder->reporter, entry->at, field,
					   "variable '%.80s' %s", entry->key, row->why),
			     "%s", row->hint);
	}
}

/* A service runs the job, and stoker does not pass it the value of a secret: anyone allowed to
 * describe the job could read it. */
static void must_be_kept_by_aws(struct binder *binder, const struct entry *entry)
{
	const struct node *from = entry->value;
	AUTO(auto_free) char *field = NULL;

	if (!access_on_aws(binder->spec) || !entry->key || from->kind != NODE_SCALAR ||
	    !(text_starts(from->text, "env:") || text_starts(from->text, "file:")))
		return;
	field = mem_format("secrets.%s", entry->key);
	problem_hint(problem_error(&binder->reporter, from->at, field,
				   "'%.80s' is a local secret, which engine '%s' cannot read",
				   entry->key, spec_str(binder->spec, SPEC_ENGINE)),
		     "keep the secret in AWS as secretsmanager:NAME or ssm:NAME, and let the role "
		     "of the job read it");
}

static void check_secrets(struct binder *binder)
{
	const struct node *secrets = access_node_of_field(binder->spec, SPEC_SECRETS);
	const json_t *env = spec_get(binder->spec, SPEC_ENV);

	for (size_t i = 0; secrets && i < secrets->count; i++) {
		const struct entry *entry = &secrets->entries[i];
		AUTO(auto_free) char *field = NULL;

		must_be_kept_by_aws(binder, entry);
		if (!entry->key || !json_object_get(env, entry->key))
			continue;
		field = mem_format("secrets.%s", entry->key);
		problem_hint(problem_error(&binder->reporter, entry->at, field,
					   "'%.80s' is in 'env' and in 'secrets'", entry->key),
			     "keep the variable in 'secrets' only");
	}
}

/* Returns the other field that sets a variable; NULL if none does. */
static const char *set_in(const struct spec *spec, const char *name)
{
	if (json_object_get(spec_get(spec, SPEC_ENV), name))
		return "env";
	return json_object_get(spec_get(spec, SPEC_SECRETS), name) ? "secrets" : NULL;
}

/* No service may get the values: they would stand in a job's definition, which others can read.
 * Returns true on AWS. */
static bool refuse_on_aws(struct binder *binder, enum spec_field field, const char *what)
{
	const struct spec *spec = binder->spec;

	if (!access_on_aws(spec))
		return false;
	if (json_array_size(spec_get(spec, field)) == 0)
		return true;
	problem_hint(
		spec_error(binder, field, NULL, "'%s' is for local and slurm: %s engine '%s'",
			   field_table[field].path, what, spec_str(spec, SPEC_ENGINE)),
		"keep secrets in AWS, as secrets: {NAME: secretsmanager:…}, and write the other "
		"variables in 'env'; NAME: ${NAME} takes a value from your shell");
	return true;
}

static void check_file_name(struct binder *binder, const char *name)
{
	const struct spec *spec = binder->spec;
	const struct reserved_name *reserved = names_reserved(name);
	const char *other = set_in(spec, name);

	if (reserved)
		problem_hint(
			env_file_error(binder, name, "variable '%.80s' %s", name, reserved->why),
			"%s", reserved->hint);
	else if (other)
		problem_hint(env_file_error(binder, name, "'%.80s' is in 'env_file' and in '%s'",
					    name, other),
			     "keep the variable in one of the two");
	else if (!spec_says(spec, SPEC_COMPILE_KIND, "none") && names_steering(name))
		problem_hint(env_file_error(binder, name,
					    "variable '%.80s' steers a compiler, and an env_file "
					    "is no part of the graph key",
					    name),
			     "write the variable in 'env' of the spec");
}

/* Warns of variables that nothing is known about: they may decide about graphs. */
static void warn_of_unkeyed(struct binder *binder)
{
	AUTO(sb_release) struct sb names = SB_INIT;
	const struct spec *spec = binder->spec;
	size_t count = 0;
	const char *name;
	json_t *row;

	json_object_foreach (spec->env_files, name, row)
		if (!names_neutral(name) && !names_secret(name) && ++count <= NAMES_SHOWN)
			sb_addf(&names, "%s'%.80s'", names.len > 0 ? ", " : "", name);
	if (count > NAMES_SHOWN)
		sb_addf(&names, " and %zu more", count - NAMES_SHOWN);
	if (count > 0 && !spec_says(spec, SPEC_COMPILE_KIND, "none"))
		problem_hint(spec_lint(binder, SPEC_ENV_FILE, NULL,
				       "of 'env_file', %s: no part of the graph key", names.text),
			     "write what decides about graphs in 'env'");
}

static void check_env_file(struct binder *binder)
{
	const char *name;
	json_t *row;

	if (refuse_on_aws(binder, SPEC_ENV_FILE, "values that nobody sees cannot reach a job of"))
		return;
	json_object_foreach (binder->spec->env_files, name, row)
		check_file_name(binder, name);
	warn_of_unkeyed(binder);
}

static void check_passed_name(struct binder *binder, const char *name, size_t index)
{
	const struct spec *spec = binder->spec;
	const struct reserved_name *reserved = names_reserved(name);
	AUTO(auto_free) char *member = mem_format("[%zu]", index);
	const char *other = set_in(spec, name);

	if (!other && json_object_get(spec->env_files, name))
		other = "env_file";
	if (reserved)
		problem_hint(spec_error(binder, SPEC_PASS_ENV, member, "variable '%.80s' %s", name,
					reserved->why),
			     "%s", reserved->hint);
	else if (other)
		problem_hint(spec_error(binder, SPEC_PASS_ENV, member,
					"'%.80s' is in 'pass_env' and in '%s'", name, other),
			     "keep the variable in one of the two");
}

static void check_pass_env(struct binder *binder)
{
	const json_t *names = spec_get(binder->spec, SPEC_PASS_ENV), *name;
	size_t i;

	if (refuse_on_aws(binder, SPEC_PASS_ENV, "nothing of your shell reaches a job of"))
		return;
	json_array_foreach (names, i, name)
		check_passed_name(binder, json_string_value(name), i);
}

void rules_environment(struct binder *binder)
{
	check_variables(binder, SPEC_ENV);
	check_variables(binder, SPEC_SECRETS);
	check_variables(binder, SPEC_COMPILE_OVERRIDES_ENV);
	check_variables(binder, SPEC_EVALUATE_ENV);
	check_variables(binder, SPEC_EVALUATE_OVERRIDES_ENV);
	check_variables(binder, SPEC_INFER_ENV);
	check_variables(binder, SPEC_INFER_OVERRIDES_ENV);
	check_secrets(binder);
	check_env_file(binder);
	check_pass_env(binder);
}
