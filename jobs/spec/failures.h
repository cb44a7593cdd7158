/*
 * The user's own rows of the failure table: those of the spec's `failures`, then those of
 * $XDG_CONFIG_HOME/stoker/failures.yaml (by default ~/.config/stoker/failures.yaml), which has
 * the same form: `failures: [{regex, class, hint}…]`.
 *
 * The plan carries all of them, so every driver of a run judges by the rows that its creator had.
 */
#ifndef STK_SPEC_FAILURES_H
#define STK_SPEC_FAILURES_H

#include "jobs/base/text/js.h"
#include "jobs/spec/spec.h"

/* Reads the user's file behind the rows of the spec (NULL: none); its problems are reported with
 * its name, and the rows of a file with errors are left out. Returns a new array of
 * {"regex","class","hint"}. */
json_t *failures_load(const json_t *of_spec, spec_getenv_fn *getenv_fn,
		      struct problems *ret_problems);

#endif
