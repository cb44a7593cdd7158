/* Calls the families of lints in turn: see lint.h. */
#include "jobs/spec/lint/lint.h"

void lint_check(struct binder *binder)
{
	lint_text(binder);
	lint_flags(binder);
	lint_phases(binder);
	lint_services(binder);
	lint_metrics(binder);
	lint_loggers(binder);
	lint_command(binder);
	lint_variables(binder);
}
