/* What the commands that take a spec share: load it, say what is wrong with it. */
#ifndef STK_CMD_SPEC_ARGS_H
#define STK_CMD_SPEC_ARGS_H

#include "cmd/cmd.h"
#include "jobs/run/plan.h"
#include "jobs/spec/spec.h"

/* Load the spec with the command line's --set. Its problems are printed (JSON
 * objects on stdout, or lines on stderr). 0; EXIT_SPEC if there were errors in
 * it; -1 with err set if it could not be read. `with_lints` false leaves the
 * warnings out. */
int spec_from_args(const struct args *args, const char *path, bool with_lints, struct spec **ret,
		   struct err **err);

/* The same, then refuse what this version cannot do (EXIT_REFUSED, by name and
 * place), then make the plan for this journal. */
int plan_from_args(const struct args *args, const struct journal *journal, struct spec **ret_spec,
		   struct plan **ret, struct err **err);

#endif
