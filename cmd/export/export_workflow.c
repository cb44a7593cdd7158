/* The workflow of a spec for an orchestrator: see export_workflow.h. */
#include "cmd/export/export_workflow.h"

#include <stdlib.h>
#include <string.h>

#include "aws/credentials/settings.h"
#include "cmd/args/spec_args.h"
#include "cmd/screen/out.h"
#include "jobs/base/fs/fs.h"
#include "jobs/run/export/export.h"
#include "jobs/spec/fields/names.h"

/* ---- variables that the steps need ---- */

/* The values may be secrets, so none is written. */
static void warn_of_variables(const struct spec *spec)
{
	json_t *variables = (json_t *)(uintptr_t)spec_variables(spec), *ignored;
	AUTO(sb_release) struct sb names = SB_INIT;
	const char *name;

	json_object_foreach (variables, name, ignored)
		sb_addf(&names, "%s%s", names.len > 0 ? ", " : "", name);
	if (names.len > 0)
		out_warning("the spec expands %s: each step needs %s in its environment",
			    names.text, json_object_size(variables) == 1 ? "it" : "them");
}

/* ---- the definition ---- */

/* A definition is read by people before it is pasted. Nothing in it can steer a terminal: what is
 * not ASCII is written as \uXXXX. */
static char *pretty(const json_t *definition)
{
	AUTO(auto_free) char *text = json_dumps(definition, JSON_INDENT(2) | JSON_ENSURE_ASCII);

	return mem_format("%s\n", text);
}

static int make(const struct export_job *job, enum workflow_kind kind, char **ret, struct err **err)
{
	json_auto_t *definition = NULL;
	AUTO(auto_free) char *folder = NULL;

	switch (kind) {
	case WORKFLOW_PIPELINE:
		if (export_pipeline(job, &definition, err) < 0)
			return -1;
		break;
	case WORKFLOW_MACHINE:
		if (export_machine(job, &definition, err) < 0)
			return -1;
		break;
	case WORKFLOW_AIRFLOW:
		folder = fs_absolute(".");
		*ret = export_airflow(job, folder);
		return 0;
	}
	*ret = pretty(definition);
	return 0;
}

static int write_to(const char *dest, const char *text, struct err **err)
{
	if (dest)
		return fs_write_atomic(dest, text, strlen(text), 0644, err);
	out_finished(text);
	return 0;
}

static void tell(const struct export_job *job, const char *to, const char *dest)
{
	json_auto_t *row = json_object(), *phases = export_phases(job->spec);

	if (!dest)
		return;
	js_put_str(row, "to", to);
	js_put_str(row, "path", dest);
	js_put(row, "steps", json_incref(phases));
	if (out_is_json())
		out_json(row);
	out_line("%s", dest);
}

/* ---- checks ---- */

static int check_sets(const struct args *args, struct err **err)
{
	for (char *const *set = args->sets; set && *set; set++) {
		AUTO(auto_free) char *field = mem_copy_n(*set, strcspn(*set, "="));
		const char *dot = strrchr(field, '.');

		if (!names_secret(dot ? dot + 1 : field))
			continue;
		err_set(err, EXIT_USAGE,
			"--set %s: its value would be written into the definition, and its name "
			"looks secret",
			field);
		return err_hint(err, "name its source in the section 'secrets' of the spec");
	}
	return 0;
}

static int check(const struct args *args, const char *dest, struct err **err)
{
	if (strcmp(args->operands[0], "-") == 0) {
		err_set(err, EXIT_USAGE, "the steps cannot read a spec from here");
		return err_hint(err, "name the file of the spec, as the driver finds it");
	}
	if (!dest && out_is_json()) {
		err_set(err, EXIT_USAGE, "with --json no definition goes to stdout");
		return err_hint(err, "name a file with --output, or omit --json");
	}
	return check_sets(args, err);
}

int export_workflow(const struct args *args, enum workflow_kind kind, const char *to,
		    const char *dest, struct err **err)
{
	AUTO(spec_freep) struct spec *spec = NULL;
	AUTO(err_freep) struct err *no_region = NULL;
	AUTO(auto_free) char *text = NULL;
	struct export_job job = { .path = args->operands[0],
				  .uses = args->uses,
				  .sets = args->sets };
	int code;

	if (check(args, dest, err) < 0)
		return -1;
	code = spec_args_load(args, &spec, err);
	if (code != 0)
		return code;
	job.spec = spec;
	job.state = args->value[OPT_STATE] ? args->value[OPT_STATE] : getenv("STOKER_STATE");
	job.region = kind == WORKFLOW_AIRFLOW ? aws_region_option() : aws_region(&no_region);
	if (make(&job, kind, &text, err) < 0 || write_to(dest, text, err) < 0)
		return -1;
	warn_of_variables(spec);
	tell(&job, to, dest);
	return EXIT_DONE;
}
