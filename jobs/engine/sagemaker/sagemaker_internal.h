/*
 * Private to the SageMaker engine.
 *
 * engine/sagemaker: SageMaker training jobs, with the agent or with the framework toolkit. Code
 * that all engines share is in jobs/engine.
 */
#ifndef STK_ENGINE_SAGEMAKER_SAGEMAKER_INTERNAL_H
#define STK_ENGINE_SAGEMAKER_SAGEMAKER_INTERNAL_H

#include "aws/aws.h"
#include "aws/logs/logs.h"
#include "jobs/base/text/js.h"
#include "jobs/engine/reports.h"
#include "jobs/engine/sagemaker/sagemaker.h"
#include "jobs/engine/workspace_cache.h"

/* Time between two requests for a job: the longer nothing changes, the longer. */
#define SAGEMAKER_QUICK_MS 1000
#define SAGEMAKER_SLOW_MS  10000
/* Time after which the service shows a job that it accepted. */
#define SAGEMAKER_SHOWN_MS 5000
/* Time for which the last state stands while the service cannot be reached: logs are read on, and
 * limits are kept. */
#define SAGEMAKER_STALE_MS 120000
/* Time between two requests to stop a job. */
#define SAGEMAKER_STOP_MS 30000
/* The time for which the end of a job without a report is held back for its log, which CloudWatch
 * shows some seconds later. */
#define SAGEMAKER_LOG_MS 15000

/* Time after a job's end for which the service is asked about machines that may be kept. */
#define SAGEMAKER_POOL_MS 30000

#define SAGEMAKER_NAME_MAX 63 /* TrainingJobName */

/* State of a training job. */
struct training {
	char *name;
	json_t *description; /* the newest reply of DescribeTrainingJob; NULL: none yet */
	struct mono heard;   /* when that reply came */
	struct mono asked, changed, stopped, ended; /* ms 0: never */
	struct mono missing, missed;      /* since when the job is not found, and the last time */
	struct workspace_cache_sign sign; /* for a job that is not found */
	bool stop_missed;                 /* the stop request did not find it either */
	/* Time of a submit with unknown outcome, or of the first search that found nothing; ms 0:
	 * none. */
	struct mono uncertain;
	char why[256];          /* reason why the job cannot be seen; "" otherwise */
	char hint[1024];        /* the remedy */
	struct cloud_log *logs; /* by rank; NULL: not needed yet */
	int log_count;
	struct host_log *hosts; /* launcher: toolkit; by rank, up to the highest one read */
	int host_count;
	bool reports_read; /* the reports were read after its end */
	bool closing;      /* the end was reported: its log is complete */
};

struct sagemaker {
	struct engine engine;
	json_t *plan;
	bool toolkit;        /* launcher: toolkit */
	struct store *store; /* the workspace */
	struct workspace_cache *cache;
	struct aws *aws;   /* opened when first needed */
	struct logs *logs; /* opened when first needed */
	struct training **jobs;
	size_t job_count;
	bool ours;         /* the account in use is the one that the plan names */
	struct mono whose; /* when the account was last checked; ms 0: never */
	size_t last;       /* index of the last job looked up: usually the next one follows */
};

/* ---- sagemaker_core.c: the services below all others ---- */

int sagemaker_nodes(const struct sagemaker *sagemaker);
/* Sends one request with this body; returns as aws_perform(). */
int sagemaker_call(struct sagemaker *sagemaker, enum aws_operation operation, const json_t *body,
		   struct aws_reply *ret, struct err **err);
/* Does the same with a body that holds the name of a training job alone. */
int sagemaker_call_by_name(struct sagemaker *sagemaker, enum aws_operation operation,
			   const char *name, struct aws_reply *ret, struct err **err);
/* Returns the training job of this name, new if there was none. */
struct training *sagemaker_job_of(struct sagemaker *sagemaker, const char *name);

/* ---- sagemaker_missing.c ---- */

/* Describes a job that is not found: unknown is not ended, unless all of its agents have reported
 * their ends, or no other explanation is left. */
int sagemaker_missing_status(struct sagemaker *sagemaker, struct training *job, const char *prefix,
			     struct engine_status *ret, struct err **err);

/* ---- sagemaker_request.c: bodies of requests; sends nothing ---- */

/* Builds the body of CreateTrainingJob in this region, a new object. EXIT_SPEC: the service would
 * refuse it. */
int sagemaker_request(const struct sagemaker *sagemaker, const struct engine_job *job,
		      const char *region, json_t **ret, struct err **err);
/* True if the described job is the one of this request. By name alone it may be another
 * workspace's. */
bool sagemaker_is_same(const json_t *request, const json_t *described);

/* ---- sagemaker_describe.c: replies of DescribeTrainingJob ---- */

/* Computes the whole status from the reply and the agents' reports; pure. `agents` is the number of
 * agents that should report, one per node; 0: none do, or they were not asked. */
void sagemaker_status(const json_t *description, const struct reports *reports, int agents,
		      struct engine_status *ret);
bool sagemaker_is_over(const json_t *description);
int64_t sagemaker_time_ms(const json_t *description, const char *member); /* 0: absent */
/* Warm pool of an ended job: sagemaker_is_kept() is true if machines wait for a next job,
 * sagemaker_may_be_kept() if they do or still may. sagemaker_kept_ms() is the time for which they
 * were kept, which the service reports once they are used or gone; else 0. */
bool sagemaker_is_kept(const json_t *description);
bool sagemaker_may_be_kept(const json_t *description);
int64_t sagemaker_kept_ms(const json_t *description);
/* ---- sagemaker_logs.c: streams of CloudWatch, if no agent uploads a log ---- */

void sagemaker_logs_release(struct training *job);
/* Implements `logs` of engine.h. */
int sagemaker_cloud_logs(struct sagemaker *sagemaker, struct training *job, int node,
			 uint64_t *offset, size_t max, struct sb *ret, struct err **err);
/* True if there is a log of this node yet. */
bool sagemaker_has_cloud_logs(struct sagemaker *sagemaker, struct training *job, int node);

/* ---- sagemaker_toolkit_watch.c: launcher: toolkit, without agents ---- */

void sagemaker_toolkit_logs_release(struct training *job);
/* Implement log_time, log_written, log_id, log_lacks_end, log_place, log_go_on and logs of
 * engine.h. */
struct utc sagemaker_toolkit_time(struct training *job, int node, uint64_t offset);
uint64_t sagemaker_toolkit_id(struct training *job, int node, uint64_t offset);
bool sagemaker_toolkit_lacks_end(const struct training *job, int node);
json_t *sagemaker_toolkit_place(struct training *job, int node);
void sagemaker_toolkit_go_on(struct training *job, int node, uint64_t offset, const json_t *place);
int sagemaker_toolkit_logs(struct sagemaker *sagemaker, struct training *job, int node,
			   uint64_t *offset, size_t max, struct sb *ret, struct err **err);
/* Computes the status of a described job. ENDED is held back until the toolkit's last line of each
 * host is read, for SAGEMAKER_LOG_MS at most. */
void sagemaker_toolkit_status(const struct sagemaker *sagemaker, struct training *job,
			      struct engine_status *ret);
/* Implements `report` of engine.h: state and times from SageMaker. "claimed" is when the command
 * began: the unique name of the job takes the place of a claim. */
int sagemaker_toolkit_report(const struct training *job, int node, struct node_report *ret);

/* Implement the functions of these names in engine.h. */
int sagemaker_log_size(struct engine *engine, const char *name, const char *prefix, int node,
		       uint64_t *ret, struct err **err);
struct utc sagemaker_log_time(struct engine *engine, const char *name, const char *prefix, int node,
			      uint64_t offset);
struct utc sagemaker_log_written(struct engine *engine, const char *name, const char *prefix,
				 int node, uint64_t offset);
uint64_t sagemaker_log_id(struct engine *engine, const char *name, const char *prefix, int node,
			  uint64_t offset);
bool sagemaker_log_lacks_end(struct engine *engine, const char *name, int node);
json_t *sagemaker_log_place(struct engine *engine, const char *name, const char *prefix, int node);
void sagemaker_log_go_on(struct engine *engine, const char *name, const char *prefix, int node,
			 uint64_t offset, const json_t *place);
int sagemaker_report(struct engine *engine, const char *name, const char *prefix, int node,
		     struct node_report *ret, struct err **err);
int sagemaker_beside(struct engine *engine, const char *name, const char *prefix, int node,
		     const char *file, json_t **ret, struct err **err);

#endif
