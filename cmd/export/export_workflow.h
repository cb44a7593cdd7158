/* The workflow of a spec as a definition for an orchestrator: jobs/run/export. */
#ifndef STK_CMD_EXPORT_EXPORT_WORKFLOW_H
#define STK_CMD_EXPORT_EXPORT_WORKFLOW_H

#include "cmd/args/args.h"

enum workflow_kind { WORKFLOW_PIPELINE, WORKFLOW_MACHINE, WORKFLOW_AIRFLOW };

/* Writes the workflow of the spec that is the first operand (./stoker.yaml if there is none) to
 * `dest`; NULL: stdout. `to` is the word of the kind. */
int export_workflow(const struct args *args, enum workflow_kind kind, const char *to,
		    const char *dest, struct err **err);

#endif
