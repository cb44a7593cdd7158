/* What the spec must have for a driver in a container: see export_internal.h. */
#include "jobs/run/export/export_internal.h"

#include <string.h>

#include "jobs/base/text/text.h"

const char *export_text(const struct spec *spec, const char *path)
{
	const json_t *value = js_path(spec_root(spec), path);
	const char *text = json_is_string(value) ? json_string_value(value) : NULL;

	return text && strcmp(text, "none") != 0 ? text : NULL;
}

int export_need(const struct spec *spec, const char *path, const char *example, const char **ret,
		struct err **err)
{
	*ret = export_text(spec, path);
	if (*ret)
		return 0;
	err_set(err, EXIT_SPEC, "'%s' is not set, and the steps need it", path);
	err_field(err, path);
	err_at(err, spec_file(spec), 0, 0);
	return err_hint(err, "add it to the spec, such as %s: %s", path, example);
}

static int refuse_engine(const char *engine, struct err **err)
{
	err_set(err, EXIT_REFUSED,
		"engine '%s': its jobs are processes of the driver's machine, which here is a "
		"container that ends with each step",
		engine);
	return err_hint(err, "use engine batch or sagemaker, or export to airflow");
}

int export_check_away(const struct export_job *job, struct err **err)
{
	const char *engine = spec_str(job->spec, SPEC_ENGINE);
	const char *workspace = spec_str(job->spec, SPEC_WORKSPACE);

	if (strcmp(engine, "batch") != 0 && strcmp(engine, "sagemaker") != 0)
		return refuse_engine(engine, err);
	if (!job->state || !text_starts(job->state, "s3://")) {
		err_set(err, EXIT_REFUSED,
			"the state of the runs is on this machine, and each step runs on another");
		return err_hint(err, "name a prefix of a bucket with --state s3://BUCKET/PREFIX");
	}
	if (!workspace || !text_starts(workspace, "s3://")) {
		err_set(err, EXIT_REFUSED,
			"'workspace' is not on S3, and each step runs on "
			"another machine");
		err_field(err, "workspace");
		return err_hint(err, "set workspace to a prefix of a bucket");
	}
	return 0;
}
