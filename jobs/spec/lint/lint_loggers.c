/* Loggers that cannot resume a run which they did not make. */
#include <string.h>

#include "jobs/spec/lint/lint.h"

#define MLFLOW_ID "MLFLOW_RUN_ID"

static bool is_given(const struct binder *binder, const char *variable)
{
	return json_object_get(spec_get(binder->spec, SPEC_ENV), variable) ||
	       json_object_get(spec_get(binder->spec, SPEC_SECRETS), variable) ||
	       js_str(binder->spec->passed, variable);
}

/* mlflow.start_run() asks the server for the run of this id, and fails if there is none; a server
 * makes the ids of new runs itself (mlflow/tracking/fluent.py). */
void lint_loggers(struct binder *binder)
{
	const json_t *loggers = spec_get(binder->spec, SPEC_LOGGERS), *logger;
	size_t i;

	json_array_foreach (loggers, i, logger) {
		AUTO(auto_free) char *field = NULL;

		if (strcmp(json_string_value(logger), "mlflow") != 0 || is_given(binder, MLFLOW_ID))
			continue;
		field = mem_format("%s[%zu]", field_table[SPEC_LOGGERS].path, i);
		problem_hint(
			problem_lint(&binder->reporter,
				     access_mark_of_field(binder->spec, SPEC_LOGGERS), field,
				     "MLflow's start_run() resumes only runs that exist, and none "
				     "has the id of a run of stoker"),
			"make a run in MLflow, and write its id into env." MLFLOW_ID);
	}
}
