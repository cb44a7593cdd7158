/*
 * A service that runs jobs on machines of its own, as AWS Batch and SageMaker do: the world's far
 * engine. It stands in the driver's table in place of the row `batch` (engine_find() is wrapped),
 * and keeps what engine.h promises no better than those services:
 *
 * - a submit may be accepted although its answer is lost, be shown in listings only a while later,
 *   or be made twice by one call (SubmitJob has no idempotency token);
 * - a job waits in the queue, for hours where there is no capacity, or fails for want of it;
 * - each node is a fresh machine with a disk of its own and its own clock; it starts stoker-node
 * with the order's URL;
 * - the service may take a machine away (Spot), start the same job again by itself, end it at
 *   somebody else's request, say late that it ended, and say nothing for hours;
 * - to stop is SIGTERM, and SIGKILL 30 s later;
 * - the log comes late, in whole lines.
 */
#ifndef STK_TESTS_WORLD_CLOUD_H
#define STK_TESTS_WORLD_CLOUD_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/base/sb.h"

struct machine;
struct process;

/* Of the next submits, as the schedule draws them. */
struct cloud_habits {
	int64_t queue_ns;             /* until a machine is there, about */
	int64_t boot_ns;              /* until its container runs */
	int64_t shown_late_ns;        /* until find() and describe() know the job */
	int64_t end_late_ns;          /* until describe() says that it ended */
	int64_t log_ns;               /* that a request for a log takes longer than others */
	bool doubled;                 /* one call makes two jobs */
	bool no_capacity;             /* it fails for want of machines */
	bool other_compiler;          /* its machines have another version than the heads */
	bool restarts;                /* the service starts it again when it fails, up to twice */
	int64_t taken_after_ns;       /* of its running, a machine is taken away; 0: never */
	int64_t no_capacity_until_ns; /* jobs wait in the queue until then */
};
extern void (*cloud_habits)(struct cloud_habits *ret);

struct cloud_job {
	char name[128], prefix[256];
	int nodes;
	int64_t submitted_ns, shown_ns;
	int64_t start_ns;     /* when its machines are there */
	int64_t began_ns;     /* its agents run; 0: not yet */
	int64_t ended_ns;     /* none of them runs; 0: not yet */
	int64_t end_shown_ns; /* describe() says so from then on */
	int restart;
	int restarts_left;
	bool stop_asked, taken_down, spot;
	int64_t kill_ns; /* SIGKILL follows; 0: no stop */
	int exit, exit_node;
	struct cloud_habits habits;
	char **env;
	struct machine *machines[8];
	struct process *agents[8];
	struct sb logs[8];      /* as the service has them: what was printed half a second ago */
	size_t collected[8];    /* bytes of the machine's log that are in it */
	struct cloud_job *next; /* older */
};
extern struct cloud_job *cloud_jobs; /* newest first */

/* When there was more of a log than its reader wanted at once, the last time. */
int64_t cloud_log_left_ns(void);
/* The workspace of its jobs, an s3:// URL; the machine from which machines get stoker-node. */
void cloud_reset(const char *workspace, struct machine *programs);
/* A machine of a running job is taken away, or the job ended by somebody else. */
void cloud_take_machine(struct cloud_job *job, int node);
void cloud_take_down(struct cloud_job *job);

#endif
