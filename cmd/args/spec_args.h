/* Shared by the commands that take a spec: loading it and reporting its problems. */
#ifndef STK_CMD_ARGS_SPEC_ARGS_H
#define STK_CMD_ARGS_SPEC_ARGS_H

#include "cmd/args/args.h"
#include "jobs/run/plan/plan.h"
#include "jobs/spec/spec.h"

/* Loads the spec with the command line's --set. Prints its problems (JSON objects or
 * annotations on stdout, or lines on stderr), and unsupported features as warnings. Returns 0;
 * EXIT_SPEC if the spec has errors; -1 with err set if it could not be read. */
int spec_from_args(const struct args *args, const char *path, struct spec **ret, struct err **err);

/* Prints that the spec could not be read, as one problem among others. */
void spec_args_unreadable(const struct args *args, const char *path, const struct err *err);

/* Loads as spec_from_args(), without warnings if --json prints something else, then refuses
 * features this version lacks (EXIT_REFUSED, by name and place), then makes the plan for this
 * journal. Problems of the spec give an exit code; with --json, err, for the line after them. */
int spec_args_plan(const struct args *args, const struct journal *journal, struct spec **ret_spec,
		   struct plan **ret, struct err **err);
/* The same for the spec at `path`. */
int spec_args_plan_of(const struct args *args, const char *path, const struct journal *journal,
		      struct spec **ret_spec, struct plan **ret, struct err **err);

#endif
