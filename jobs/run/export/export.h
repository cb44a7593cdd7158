/*
 * The workflow of a retraining, for an orchestrator that exists already.
 *
 * Every step is one command, which differs in nothing but its phase and may be repeated:
 *
 *   stoker --state URL [--region REGION] retrain SPEC [--set …] --id ID --until PHASE
 *
 * The id comes from the execution's own name or its scheduled time, so each step, each repeat of it
 * and each redrive carry on the same run. The orchestrator decides nothing but what follows from
 * the exit code: 0 goes on; 5 ends the execution, which has not failed; 8 (an early end of the
 * driver's own job) and 75 repeat the step; any other code fails. A turn without new data is 0 in
 * each step.
 *
 * The driver runs in `driver.image`, whose working directory has the spec and its source as this
 * folder has them. Nothing of the spec's content is in what is made here, so no secret is.
 *
 * run/export: definitions for orchestrators, made from a spec alone. Nothing here does I/O.
 */
#ifndef STK_RUN_EXPORT_EXPORT_H
#define STK_RUN_EXPORT_EXPORT_H

#include "jobs/base/text/js.h"
#include "jobs/spec/spec.h"

/* All members are borrowed. */
struct export_job {
	const struct spec *spec;
	const char *path;   /* of the spec, as the steps name it */
	char *const *uses;  /* profiles for --use, NULL-terminated; NULL: none */
	char *const *sets;  /* the same of overrides for --set */
	const char *state;  /* for --state; NULL: that of the machine where a step runs */
	const char *region; /* for --region; NULL: that of the machine where a step runs */
};

/* Returns the phases of a retraining by the spec, in order, as --until names them: "precompile" and
 * "verify" if graphs are compiled ahead, "train", "evaluate", "gate" and "infer" if the spec has
 * them, "promote". A new array of strings. */
json_t *export_phases(const struct spec *spec);

/* Returns the words of the command of a step; `outcome` NULL: without --outcome. A new array of
 * strings. */
json_t *export_command(const struct export_job *job, const char *id, const char *phase,
		       const char *outcome);

/* Returns a text that may begin a run id: the spec's name, in what ids may consist of, at most
 * `max` bytes. The caller frees it. */
char *export_id_prefix(const struct spec *spec, size_t max);

/* A state machine in the Amazon States Language: each step is a job of AWS Batch, in the queue
 * `driver.job_queue`. The job definition is looked up by the name that its content gives it, and
 * registered by the execution if it is not there. EXIT_SPEC (with the field) or EXIT_REFUSED if the
 * spec cannot be driven from there. */
int export_machine(const struct export_job *job, json_t **ret, struct err **err);

/* A definition of a SageMaker pipeline: each step is a processing job on `driver.instance`. A job
 * that ends with another exit code than 0 would fail the whole execution, so the command is started
 * by a shell that repeats it for 8 and 75 and leaves its outcome in a property file, whose exit
 * code conditions read. What a condition chooses is never a condition: the service takes none
 * there. Errors as above. */
int export_pipeline(const struct export_job *job, json_t **ret, struct err **err);

/* The text of an Airflow DAG in Python, to paste and to adapt; `folder`: from which the steps
 * see the spec on the workers. The caller frees it. */
char *export_airflow(const struct export_job *job, const char *folder);

#endif
