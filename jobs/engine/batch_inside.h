/* Shared by the files of the AWS Batch engine and by nothing else. */
#ifndef STK_ENGINE_BATCH_INSIDE_H
#define STK_ENGINE_BATCH_INSIDE_H

#include "aws/aws.h"
#include "aws/logs.h"
#include "jobs/engine/batch.h"
#include "jobs/engine/far.h"

#define QUICK_MS        500   /* between two looks at a job whose state has just changed */
#define BUSY_MS         2000  /* changed lately */
#define QUIET_MS        10000 /* has been the same for QUIET_AFTER_MS */
#define QUIET_AFTER_MS  60000
#define LISTED_MS       5000   /* after which ListJobs has what was submitted */
#define STALE_MS        120000 /* how long what was seen last stands for what cannot be seen */
#define TOLD_MS         1000   /* between two looks at the agents' reports */
#define STOP_AGAIN_MS   60000  /* between two requests to end the same job */
#define REGISTERED_MS   60000  /* how long a definition that was seen is taken to be there */
#define BATCH_ID_MAX    128
#define BATCH_NODES_MAX 1000 /* default limit of nodes of one job */

/* How the reasons begin with which we end a job; they come back as its statusReason. */
#define BATCH_OURS "stoker: "

#define BATCH_MAIN "main" /* the container of the job, where there are several */

/* The tag by which a job is known as this run's: the nonce that its order has. Names are chosen
 * by people, and a queue is shared. */
#define BATCH_NONCE_TAG "stoker:nonce"

#define BATCH_IDS_MAX 100 /* in one DescribeJobs */

/* The text of a job that CloudWatch has of one node, from its beginning. */
struct batch_stream {
	int node;
	struct logs_cursor *cursor;
	struct sb text;
	struct mono at; /* when there was last no more of it; ms 0: never */
};

/* What a job of DescribeJobs says that most is decided by. */
struct batch_said {
	enum engine_state state;     /* by its status alone; UNSEEN: there is no job */
	const char *status, *reason; /* borrowed of it; NULL: it has none */
};

/* What is known of an attempt. */
struct batch_job {
	char *prefix;
	char id[BATCH_ID_MAX]; /* "": not known */
	/* Of a submit whose outcome is not known, or of the first look that found nothing; ms 0:
	 * none. */
	struct mono uncertain;
	struct mono asked;      /* the last DescribeJobs; ms 0: none */
	struct mono seen;       /* the last one that brought the job */
	struct mono changed;    /* its status was another before */
	struct mono stopped;    /* the last TerminateJob */
	json_t *job;            /* as last seen; NULL: never */
	struct batch_said said; /* by `job`, looked up once: many are looked over often */
	char *text; /* that `job` was read of, where it was one of many; NULL: it was not */
	size_t text_len;
	json_t *nodes;        /* the children by rank, null where unknown; NULL: single-node */
	bool read;            /* ended, and the reports were read since */
	bool alien;           /* another run's job of this name was not over when it was listed */
	bool followed;        /* its end was looked at for another job of the same attempt */
	size_t failed;        /* nodes that had failed when the reports were read last */
	struct far_sign sign; /* of one that the service does not know */
	struct engine_status told; /* the last answer of describe, good for TOLD_MS */
	struct mono told_at;       /* ms 0: none, or something new was seen since */
	struct batch_stream *streams;
	size_t stream_count;
};

struct batch {
	struct engine engine;
	const json_t *plan; /* borrowed */
	struct store *store;
	struct far *far;
	struct aws *aws;   /* NULL: not needed yet */
	struct logs *logs; /* likewise */
	char *registered;  /* name of a definition that was ACTIVE a moment ago; NULL: none */
	struct mono registered_at;
	struct batch_job **jobs;
	size_t last; /* that was asked for: mostly the next one follows */
	size_t count;
};

/* ---- batch_definition.c: what is sent -------------------------------------------- */

/* The body of RegisterJobDefinition, name and all: a new object. EXIT_SPEC with the field
 * that cannot be had on AWS Batch. */
int batch_definition(const json_t *plan, int nodes, json_t **ret, struct err **err);
/* The body of SubmitJob of this definition; `env` {name: value} goes into every node. */
json_t *batch_submission(const json_t *plan, const struct engine_job *job, const json_t *definition,
			 const json_t *env);

/* ---- batch.c ----------------------------------------------------------------------- */

/* Ask: 0 with the reply's body (may be NULL), -1. */
int batch_ask(struct batch *batch, enum aws_operation operation, const json_t *body, json_t **ret,
	      struct err **err);
struct batch_job *batch_job_of(struct batch *batch, const char *prefix);
char *batch_key(const char *prefix, const char *name); /* yours to free */
int batch_nodes(const struct batch *batch);
/* What the spec says, as text; NULL: nothing. Borrowed. */
const char *batch_says(const json_t *plan, const char *path);

/* ---- batch_submit.c ------------------------------------------------------------------ */

int batch_requests(struct engine *engine, const struct engine_job *job, json_t **ret,
		   struct err **err);
int batch_submit(struct engine *engine, const struct engine_job *job, struct err **err);
int batch_find(struct engine *engine, const char *name, const char *prefix, struct err **err);

/* ---- batch_which.c -------------------------------------------------------------------- */

void batch_keep_id(struct batch_job *job, const char *id);
/* Put the id down in the workspace. */
void batch_note(struct batch *batch, const struct batch_job *job, const char *name);
/* The id in `job->id`: 1 there is one, 0 the service has no job of this attempt (job->alien:
 * but one of that name), -1. */
int batch_identify(struct batch *batch, struct batch_job *job, const char *name, struct err **err);
/* The job has ended: was it only the second one of its attempt, by a submit of which nobody
 * heard, and did not get the claim? 1: the other is in `job->id` now, and has to be described; 0
 * no, -1. */
int batch_follow(struct batch *batch, struct batch_job *job, const char *name, struct err **err);

/* ---- batch_describe.c ---------------------------------------------------------------- */

int batch_describe(struct engine *engine, const char *name, const char *prefix,
		   struct engine_status *ret, struct err **err);
int batch_stop(struct engine *engine, const char *name, const char *prefix, int64_t grace_ms,
	       struct err **err);
int batch_report(struct engine *engine, const char *name, const char *prefix, int node,
		 json_t **ret, struct err **err);
/* The container that ran the agent, of a job or node as DescribeJobs tells it; NULL: none. */
const json_t *batch_container(const json_t *job);
struct batch_said batch_said_of(const json_t *job);
/* What is known of it from now on, NULL: nothing. The reference is the job's. Nobody else sets
 * `job->job`: `said` and `text` are of it. */
void batch_know(struct batch_job *job, json_t *known);
/* Of these jobs the one with that id; NULL: unknown to the service. */
json_t *batch_pick(const json_t *list, const char *id);

/* Of a reply of DescribeJobs, what it says of the job, and with nodes > 1 of its nodes. */
void batch_take_in(struct batch_job *job, const json_t *list, int nodes);
bool batch_is_due(const struct batch_job *job); /* nothing fresh is known of it */
/* By the service's word alone. */
void batch_state(const struct batch_job *job, struct engine_status *ret);

/* ---- batch_many.c ---------------------------------------------------------------------- */

int batch_survey(struct engine *engine, const struct engine_name *jobs, size_t count,
		 struct engine_status *ret, struct err **err);

/* ---- batch_end.c ------------------------------------------------------------------------ */

/* How the attempt ended: state ENDED, exit, node and words. The job is over, or the service has
 * forgotten it and all agents have reported (`job->job` NULL). */
int batch_tell_end(struct batch *batch, struct batch_job *job, struct engine_status *ret,
		   struct err **err);
/* Stop what cannot succeed any more: a node has failed, or the queue can never run it. */
int batch_stop_lost(struct batch *batch, struct batch_job *job, struct err **err);

/* ---- batch_words.c ------------------------------------------------------------------- */

/* Why a job waits, in words, from the service's statusReason (NULL: it gives none) and how
 * long it has waited; nothing where there is nothing to tell. */
void batch_wait_words(const char *status, const char *reason, int64_t waited_ms, struct sb *ret);
/* Will waiting never help? */
bool batch_never_runs(const char *reason);
/* The service's words on how a job or node ended. */
void batch_end_words(const json_t *job, struct sb *ret);

/* ---- batch_logs.c -------------------------------------------------------------------- */

int batch_logs(struct engine *engine, const char *name, const char *prefix, int node,
	       uint64_t *offset, size_t max, struct sb *ret, struct err **err);
void batch_streams_release(struct batch_job *job);

#endif
