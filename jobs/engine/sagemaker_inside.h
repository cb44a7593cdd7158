/* Shared by the files of the SageMaker engine and by nothing else. */
#ifndef STK_ENGINE_SAGEMAKER_INSIDE_H
#define STK_ENGINE_SAGEMAKER_INSIDE_H

#include "aws/aws.h"
#include "aws/logs.h"
#include "jobs/base/json.h"
#include "jobs/engine/far.h"
#include "jobs/engine/reports.h"
#include "jobs/engine/sagemaker.h"

/* Between two questions for a job: the longer nothing changes, the longer. */
#define SAGEMAKER_QUICK_MS 1000
#define SAGEMAKER_SLOW_MS  10000
/* After which the service tells of what it took. */
#define SAGEMAKER_SHOWN_MS 5000
/* For so long what was said last stands for what nobody answers: its logs are read on, and
 * limits are kept. */
#define SAGEMAKER_STALE_MS 120000
/* Between two wishes to stop one. */
#define SAGEMAKER_STOP_MS 30000
/* How long the end of a job without a report is held back for its log, which CloudWatch
 * shows some seconds later. */
#define SAGEMAKER_LOG_MS 15000

/* For so long after a job's end it is asked what becomes of machines that may be kept. */
#define SAGEMAKER_POOL_MS 30000

#define SAGEMAKER_NAME_MAX 63 /* TrainingJobName */
#define SAGEMAKER_LOGS     "/aws/sagemaker/TrainingJobs"

/* What is known of a job. */
struct training {
	char *name;
	json_t *said;      /* the newest reply of DescribeTrainingJob; NULL: none yet */
	struct mono heard; /* when it was said */
	struct mono asked, changed, stopped, ended; /* ms 0: never */
	struct mono missing, missed; /* since when it is not found, and the last time */
	struct far_sign sign;        /* of one that is not */
	bool stop_missed;            /* nor is it to be stopped */
	/* Of a submit whose outcome is not known, or of the first look for it that found nothing;
	 * ms 0: none. */
	struct mono uncertain;
	char why[256];          /* it cannot be seen: why; "" otherwise */
	struct cloud_log *logs; /* by rank; NULL: not needed yet */
	int log_count;
	struct host_log *hosts; /* launcher: toolkit; by rank, as far as they were read */
	int host_count;
	bool reports_read; /* since it has ended */
	bool closing;      /* the end was told: what its log has is all there */
};

struct sagemaker {
	struct engine engine;
	json_t *plan;
	bool toolkit;        /* launcher: toolkit */
	struct store *store; /* the workspace */
	struct far *far;
	struct aws *aws;   /* opened when first needed */
	struct logs *logs; /* the same */
	struct training **jobs;
	size_t job_count;
	bool ours;         /* its account is the one that the plan names */
	struct mono whose; /* when that was asked for; ms 0: never */
	size_t last;       /* that was asked for: mostly the next one follows */
};

/* ---- sagemaker.c ---- */

/* One request with this body; what aws_perform() says. */
int sagemaker_call(struct sagemaker *sagemaker, enum aws_operation operation, const json_t *body,
		   struct aws_reply *ret, struct err **err);
struct training *sagemaker_job_of(struct sagemaker *sagemaker, const char *name);
int sagemaker_nodes(const struct sagemaker *sagemaker);
int64_t sagemaker_time_ms(const json_t *said, const char *member); /* 0: not said */
/* The newest that the service says of it. */
void sagemaker_note(struct training *job, json_t *said);
/* The same of a reply of DescribeTrainingJob, whatever it says. */
void sagemaker_take_reply(struct training *job, struct aws_reply *reply);
bool sagemaker_is_due(const struct training *job); /* nothing fresh is known of it */

/* ---- sagemaker_missing.c ---- */

/* Of a job that is not found: unknown is not ended, unless all of its agents have told their
 * ends, or nothing else is left that it can be. */
int sagemaker_tell_missing(struct sagemaker *sagemaker, struct training *job, const char *prefix,
			   struct engine_status *ret, struct err **err);

/* ---- sagemaker_many.c ---- */

int sagemaker_survey(struct engine *engine, const struct engine_name *jobs, size_t count,
		     struct engine_status *ret, struct err **err);

/* ---- sagemaker_request.c: what is sent; asks nobody ---- */

/* The body of CreateTrainingJob, a new object. EXIT_SPEC: the service would refuse it. */
int sagemaker_request(const struct sagemaker *sagemaker, const struct engine_job *job, json_t **ret,
		      struct err **err);
/* Is the job that was described the one of this request? By name alone it may be another
 * workspace's. */
bool sagemaker_is_same(const json_t *request, const json_t *described);

/* ---- sagemaker_describe.c: what a reply of DescribeTrainingJob means ---- */

/* The whole of it, from the reply and from what the agents said; pure. `agents` are to report,
 * one a node; 0: nobody does, or nobody was asked. */
void sagemaker_status(const json_t *said, const struct reports *reports, int agents,
		      struct engine_status *ret);
bool sagemaker_is_over(const json_t *said);
/* Do machines of it wait for a next job? Could they, or is how long they were kept known for
 * good? That, as far as the service says; it does so once they are used or gone. */
bool sagemaker_is_kept(const json_t *said);
bool sagemaker_may_be_kept(const json_t *said);
int64_t sagemaker_kept_ms(const json_t *said);
/* N of "exit code: N" or "ExitCode N" in a FailureReason; -1: it names none. */
int sagemaker_exit(const char *reason);

/* ---- sagemaker_logs.c: streams of CloudWatch, where no agent brings a log ---- */

void sagemaker_logs_release(struct training *job);
/* What engine.h says of logs. */
int sagemaker_cloud_logs(struct sagemaker *sagemaker, struct training *job, int node,
			 uint64_t *offset, size_t max, struct sb *ret, struct err **err);
/* Is there anything of this node yet? */
bool sagemaker_has_cloud_logs(struct sagemaker *sagemaker, struct training *job, int node);

/* ---- sagemaker_toolkit_watch.c: launcher: toolkit, where no agent tells ---- */

void toolkit_logs_release(struct training *job);
/* What engine.h says of logs. */
int toolkit_logs(struct sagemaker *sagemaker, struct training *job, int node, uint64_t *offset,
		 size_t max, struct sb *ret, struct err **err);
/* Of a job that was described. ENDED is held back until the toolkit's last line of each host
 * is read, for SAGEMAKER_LOG_MS at most. */
void toolkit_status(const struct sagemaker *sagemaker, struct training *job,
		    struct engine_status *ret);
/* As engine.h says of report: state and times that SageMaker tells. "claimed" is when its
 * command began: that nobody else has the job's name is all there is to it. */
int toolkit_report(const struct training *job, int node, json_t **ret);

#endif
