/* Shared by the commands that take a spec: loading it and reporting its problems. */
#ifndef STK_CMD_ARGS_SPEC_ARGS_H
#define STK_CMD_ARGS_SPEC_ARGS_H

#include "cmd/args/args.h"
#include "jobs/run/plan/plan.h"
#include "jobs/spec/spec.h"

/* Loads the spec with the command line's --use and --set. Prints its problems (JSON objects or
 * annotations on stdout, or lines on stderr), and unsupported features as warnings. Returns 0;
 * EXIT_SPEC if the spec has errors; -1 with err set if it could not be read. */
int spec_from_args(const struct args *args, const char *path, struct spec **ret, struct err **err);

/* Checks the spec alone and with each of its profiles, or as --use says, and prints the same.
 * Returns the same; *ret_ways is that of spec_check(), a new reference whatever is returned. */
int spec_args_check(const struct args *args, const char *path, json_t **ret_ways, struct err **err);

/* Prints for a program that a field is missing unless a profile is chosen: the spec is valid. */
void spec_args_incomplete(const char *path, const char *field, const char *profiles);

/* Loads the first operand for a command that makes something of it without running it: warnings,
 * also of features that this version lacks, go to stderr, and with --json nowhere. Problems of the
 * spec give an exit code as below. */
int spec_args_load(const struct args *args, struct spec **ret, struct err **err);

/* Prints that the spec could not be read, as one problem among others. */
void spec_args_unreadable(const struct args *args, const char *path, const struct err *err);

/* Loads as spec_from_args(), without warnings if --json prints something else, then refuses
 * features this version lacks (EXIT_REFUSED, by name and place), then makes the plan for this
 * journal. Problems of the spec give an exit code; with --json, err, for the line after them. */
int spec_args_plan(const struct args *args, const struct journal *journal, struct spec **ret_spec,
		   struct plan **ret, struct err **err);
/* The same without looking at the source: plan_make_bare(). */
int spec_args_plan_bare(const struct args *args, const struct journal *journal,
			struct spec **ret_spec, struct plan **ret, struct err **err);
/* The same for the spec at `path`. */
int spec_args_plan_of(const struct args *args, const char *path, const struct journal *journal,
		      struct spec **ret_spec, struct plan **ret, struct err **err);

#endif
