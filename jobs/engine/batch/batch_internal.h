/*
 * Private to the AWS Batch engine.
 *
 * engine/batch: AWS Batch: definitions, submissions, descriptions, logs, and the meaning of a job's
 * end there. Code that all engines share is in jobs/engine.
 */
#ifndef STK_ENGINE_BATCH_BATCH_INTERNAL_H
#define STK_ENGINE_BATCH_BATCH_INTERNAL_H

#include "aws/aws.h"
#include "aws/logs/logs.h"
#include "jobs/engine/batch/batch.h"
#include "jobs/engine/workspace_cache.h"

#define QUICK_MS        500   /* between two requests for a job that has just changed */
#define BUSY_MS         2000  /* for a job that changed lately */
#define QUIET_MS        10000 /* for a job unchanged for QUIET_AFTER_MS */
#define QUIET_AFTER_MS  60000
#define LISTED_MS       5000   /* after which ListJobs includes a submitted job */
#define STALE_MS        120000 /* how long the last state stands for a job that cannot be seen */
#define STATUS_MS       1000   /* between two reads of the agents' reports */
#define STOP_AGAIN_MS   60000  /* between two requests to end the same job */
#define REGISTERED_MS   60000  /* how long a definition counts as ACTIVE after it was seen */
#define BATCH_ID_MAX    128
#define BATCH_NODES_MAX 1000 /* default limit of nodes of one job */

/* Prefix of the reasons with which stoker ends a job; they come back as its statusReason. */
#define BATCH_OURS "stoker: "

#define BATCH_MAIN "main" /* name of the job's container if there are several */

/* Tag that marks a job as this run's: the nonce in its order. People choose the names, and a queue
 * is shared. */
#define BATCH_NONCE_TAG "stoker:nonce"

#define BATCH_IDS_MAX 100 /* in one DescribeJobs */

/* CloudWatch's log of one node, from its beginning. */
struct batch_stream {
	int node;
	struct logs_cursor *cursor;
	struct sb text;
	struct mono at; /* when it was last read to its end; ms 0: never */
};

/* Most used fields of a job in DescribeJobs. */
struct batch_summary {
	enum engine_state state;     /* by its status alone; ENGINE_UNKNOWN: no job */
	const char *status, *reason; /* borrowed from the job; NULL: absent */
};

/* State of an attempt. */
struct batch_job {
	char *prefix;
	char id[BATCH_ID_MAX]; /* "": not known */
	/* Time of a submit with unknown outcome, or of the first search that found nothing; ms 0:
	 * none. */
	struct mono uncertain;
	struct mono asked;     /* the last DescribeJobs; ms 0: none */
	struct mono seen;      /* the last one that returned the job */
	struct mono changed;   /* when its status last changed */
	struct mono stopped;   /* the last TerminateJob of this process */
	struct mono node_down; /* when a node ended from outside was first seen; ms 0: none */
	json_t *job;           /* as last seen; NULL: never */
	/* fields of `job`, looked up once: with many jobs they are read often */
	struct batch_summary summary;
	json_t *nodes; /* jobs of the nodes by rank, null if unknown; NULL: single-node */
	bool read;     /* ended, and the reports were read after that */
	/* another run's job of this name was not over at the last listing */
	bool name_in_use;
	/* after its end, another job of the same attempt was searched for */
	bool followed;
	size_t failed; /* number of failed nodes when the reports were read last */
	struct workspace_cache_sign sign; /* for a job that the service does not know */
	struct engine_status last_status; /* last result of describe, valid for STATUS_MS */
	struct mono last_status_at;       /* ms 0: none */
	struct batch_stream *streams;
	size_t stream_count;
};

struct batch {
	struct engine engine;
	const json_t *plan; /* borrowed */
	struct store *store;
	struct workspace_cache *cache;
	struct aws *aws;   /* NULL: not needed yet */
	struct logs *logs; /* NULL: not needed yet */
	bool throttled;    /* the last failed request was refused for its rate */
	char *registered;  /* name of a definition that was ACTIVE a moment ago; NULL: none */
	struct mono registered_at;
	struct batch_job **jobs;
	size_t last; /* index of the last job looked up: usually the next one follows */
	size_t count;
};

/* ---- batch_reply.c: replies of DescribeJobs; pure -------------------------------------- */

struct batch_summary batch_summary_of(const json_t *job);
/* Returns the container that ran the agent, from a job or node of DescribeJobs; NULL: none. */
const json_t *batch_container(const json_t *job);
/* Returns the job with that id; NULL: unknown to the service. */
json_t *batch_pick(const json_t *list, const char *id);

/* ---- batch_core.c: the services below all others ---------------------------------------- */

char *batch_key(const char *prefix, const char *name); /* the caller frees it */
int batch_nodes(const struct batch *batch);
/* Returns a text of the spec; NULL if absent. Borrowed. */
const char *batch_spec_text(const json_t *plan, const char *path);
/* Sends a request: 0 with the reply's body (may be NULL), -1. */
int batch_call(struct batch *batch, enum aws_operation operation, const json_t *body, json_t **ret,
	       struct err **err);
/* Describes the nodes from `from` up to but not including `to`, -1 being the job itself; at most
 * BATCH_IDS_MAX. Appends those that the service knows to the array `ret`. */
int batch_describe_nodes(struct batch *batch, const struct batch_job *job, int from, int to,
			 json_t *ret, struct err **err);
/* Sets the last known description, NULL: none. Takes over the reference. Only this function may set
 * `job->job`, as `said` borrows from it. */
void batch_set_description(struct batch_job *job, json_t *description);
/* Returns the attempt with this prefix, new if there was none. */
struct batch_job *batch_job_of(struct batch *batch, const char *prefix);
void batch_streams_release(struct batch_job *job);

/* ---- batch_definition.c: bodies of requests ---------------------------------------- */

/* Builds the body of RegisterJobDefinition, including its name: a new object. EXIT_SPEC with the
 * field that AWS Batch cannot provide. */
int batch_definition(const json_t *plan, int nodes, json_t **ret, struct err **err);
/* Builds the body of SubmitJob with this definition; `env` {name: value} goes into every node. */
json_t *batch_submission(const json_t *plan, const struct engine_job *job, const json_t *definition,
			 const json_t *env);

/* ---- batch_submit.c ------------------------------------------------------------------ */

int batch_requests(struct engine *engine, const struct engine_job *job, json_t **ret,
		   struct err **err);
int batch_submit(struct engine *engine, const struct engine_job *job, struct err **err);
int batch_find(struct engine *engine, const char *name, const char *prefix, struct err **err);

/* ---- batch_which.c -------------------------------------------------------------------- */

void batch_keep_id(struct batch_job *job, const char *id);
/* Writes the id to the workspace. */
void batch_record_write(struct batch *batch, const struct batch_job *job, const char *name);
/* Finds the job's id: 1 it is in `job->id`, 0 the service has no job of this attempt
 * (job->name_in_use: but one of that name), -1. */
int batch_identify(struct batch *batch, struct batch_job *job, const char *name, struct err **err);
/* Checks whether an ended job was only a duplicate of its attempt, by a submit with a lost reply,
 * that did not get the claim. 1: the other job is in `job->id` now, and has to be described; 0 no,
 * -1. */
int batch_follow(struct batch *batch, struct batch_job *job, const char *name, struct err **err);

/* ---- batch_describe.c ---------------------------------------------------------------- */

int batch_describe(struct engine *engine, const char *name, const char *prefix,
		   struct engine_status *ret, struct err **err);
int batch_beside(struct engine *engine, const char *name, const char *prefix, int node,
		 const char *file, json_t **ret, struct err **err);
int batch_report(struct engine *engine, const char *name, const char *prefix, int node,
		 struct node_report *ret, struct err **err);

/* ---- batch_end.c ------------------------------------------------------------------------ */

int batch_stop(struct engine *engine, const char *name, const char *prefix, int64_t grace_ms,
	       struct err **err);
/* Describes how the attempt ended: state ENDED, exit, node and words. The job is over, or the
 * service has forgotten it and all agents have reported (`job->job` NULL). */
int batch_end_status(struct batch *batch, struct batch_job *job, struct engine_status *ret,
		     struct err **err);
/* Stops a job that cannot succeed any more: a node has failed, or the queue can never run it.
 * Leaves jobs alone that are being ended already. */
int batch_stop_lost(struct batch *batch, struct batch_job *job, struct err **err);
/* True if the job is about to end by request. */
bool batch_is_stopping(const struct batch_job *job);

/* ---- batch_words.c ------------------------------------------------------------------- */

/* Writes why a job waits, from the service's statusReason (NULL: absent) and the time that it has
 * waited; nothing if there is nothing to report. */
void batch_wait_words(const char *status, const char *reason, int64_t waited_ms, struct sb *ret);
/* True if the job will never run. */
bool batch_never_runs(const char *reason);
/* Writes the service's words on the end of a job or node, including its origin. */
void batch_end_words(const json_t *job, struct sb *ret);
/* Does the same without the origin: a node ends with its job, which has that. */
void batch_node_words(const json_t *node, struct sb *ret);
/* True if stoker gave the reason (NULL: no). */
bool batch_is_ours(const char *reason);
/* True if, by the service, TerminateJob or CancelJob was called for it, perhaps by stoker. While
 * the job still runs there may be no reason. */
bool batch_was_ended(const json_t *job);
/* True if it was ended so from outside stoker: it is not to be started again. */
bool batch_taken_down(const json_t *job);

/* ---- batch_logs.c -------------------------------------------------------------------- */

int batch_logs(struct engine *engine, const char *name, const char *prefix, int node,
	       uint64_t *offset, size_t max, struct sb *ret, struct err **err);
int batch_log_size(struct engine *engine, const char *name, const char *prefix, int node,
		   uint64_t *ret, struct err **err);
struct utc batch_log_written(struct engine *engine, const char *name, const char *prefix, int node,
			     uint64_t offset);

#endif
