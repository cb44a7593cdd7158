/*
 * Interface of all engines; an engine executes attempts for the workflow.
 *
 * One engine is one row in registry.c and one folder. An engine knows attempts by their job name
 * (stk-<run>-<phase>-<attempt>); a repeated submit of a name finds the job and does not start a
 * second one. Calls return at once or after a bounded time; none of them retries or sleeps. Status
 * comes from describe, which may be called as often as the driver likes, and `wake` says when it is
 * worth calling early.
 */
#ifndef STK_ENGINE_ENGINE_H
#define STK_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "jobs/base/clock.h"
#include "jobs/base/err.h"
#include "jobs/base/sb.h"
#include "jobs/base/text/js.h"
#include "jobs/store/node_report.h"
#include "jobs/store/store.h"

/* Arguments of `open`; both outlive the engine. */
struct engine_where {
	const char *workspace; /* as store_open() takes it */
	/* The run's plan (jobs/run/plan/plan.h); the settings of the spec for this engine are
	 * beneath "spec", with every default resolved. NULL: none, for an engine that does not read
	 * it. */
	const json_t *plan;
};

/* Description of one attempt. All strings are borrowed for the call. */
struct engine_job {
	const char *name; /* stk-<run>-<phase>-<attempt> */
	const char *run, *phase;
	int64_t attempt;
	int nodes;
	const char *prefix; /* key prefix of the attempt in the workspace, ends with '/' */
	/* Key prefix of the agent directory in the workspace; NULL: the engine does not use it. */
	const char *agent_key;
	/* Key of an archive of that directory, agents/<digest>.<its SHA-256>.tar.gz; NULL unless
	 * the plan's containers fetch it (agent_delivery.h). */
	const char *agent_archive;
	char *const *env; /* NAME=VALUE; holds secrets: an engine never stores it */
	/* The agents' order (jobs/store/order.h), for a job that runs no agents; NULL: not known
	 * here. */
	const json_t *order;
};

enum engine_state {
	ENGINE_QUEUED,
	ENGINE_STARTING,
	ENGINE_RUNNING,
	ENGINE_STOPPING,
	ENGINE_ENDED,   /* proved: no process of the attempt runs any more */
	ENGINE_UNKNOWN, /* cannot be seen; unknown is not ended */
};

struct engine_status {
	enum engine_state state;
	bool exit_known;
	/* exit code of the first node to fail, as a shell gives it: 128 + n for signal n */
	int exit;
	int node;         /* rank of that node, 0 if all ended well */
	char reason[256]; /* the engine's own words, may be empty */
	char hint[1024];  /* UNKNOWN: what to do about it, may be empty */
	/* ENDED, and the service says that someone outside stoker asked for it: not a failure, and
	 * the job is not started again. */
	bool taken_down;
	struct utc started; /* ms 0: not known */
	/* ENDED without a report: the last sign of life, by the clock of that machine; ms 0: not
	 * known. */
	struct utc last_seen;
	/* ENDED without a report, and its machine shows that none of its processes runs: its output
	 * is complete. */
	bool silent;
	/* Start and end of the time for which each node held its machine, by the service's clock;
	 * ms 0: not known (then the claim and the observed end are used). */
	struct utc held, released;
	/* Billed time per node, on the average; 0: the service does not say (yet). */
	int64_t billable_ms;
};

/* an opened engine, for any number of attempts; each implementation begins with this */
struct engine;

/* Placeholders in requests that are shown: for a region that is not set, and for values that depend
 * on the digest to which an image's tag leads (image_plan_marked()). */
#define ENGINE_NO_REGION "<region>"
#define ENGINE_NO_DIGEST "<image-digest>"
#define ENGINE_NO_HASH   "<definition-hash>"
#define ENGINE_NO_KEY    "<graph-key>"

struct engine_ops {
	const char *name; /* as the spec spells it */
	/* Each node of an attempt is a machine of its own: nodes share the workspace, but no
	 * folder. */
	bool machines_apart;
	/* Time in ms after which a node that the service tells to end (SIGTERM) is gone in any
	 * case; 0: no limit. */
	int64_t stop_ms;
	/* True if jobs run in containers of the plan's image, which holds compiler and framework:
	 * its digest stands for both. False: they are installed on this machine. */
	bool in_image;
	int (*open)(const struct engine_where *where, struct engine **ret, struct err **err);
	void (*close)(struct engine *engine);
	/* Checks that everything that submit needs is present. Changes nothing. */
	int (*check)(struct engine *engine, struct err **err);
	/* The requests that submitting this job sends, in order, each in its final form:
	 * {"operation", "body"}, a new array; made by the functions that submit uses. Sends nothing
	 * and needs no credentials. Values that only a run knows are placeholders, which are rows
	 * of jobs/run/attempt/placeholders.def. NULL for an engine that sends nothing. */
	int (*requests)(struct engine *engine, const struct engine_job *job, json_t **ret,
			struct err **err);
	/* The command line of a phase as its machines run it, with words that only they know as
	 * "<rank>" and the like: a new array. Sends nothing. The function is NULL for an engine
	 * that runs the plan's command unchanged; it returns NULL for a plan of which that is
	 * true. */
	json_t *(*command)(const json_t *plan, const char *phase);
	/* 0: the engine has the job; err, if set all the same, is a warning. -1: this call had no
	 * effect (err->code says why; EXIT_UNREACHABLE: the same call may be sent again later;
	 * EXIT_BUSY: again in a moment, the service is asked too fast). 1: unknown; err is set and
	 * says what happened. */
	int (*submit)(struct engine *engine, const struct engine_job *job, struct err **err);
	/* 1: a job of that name exists or existed, 0: certainly never, -1: unknown. */
	int (*find)(struct engine *engine, const char *name, const char *prefix, struct err **err);
	int (*describe)(struct engine *engine, const char *name, const char *prefix,
			struct engine_status *ret, struct err **err);
	/* Asks the job to end: SIGTERM, after `grace_ms` SIGKILL. 0 also if it is gone already. */
	int (*stop)(struct engine *engine, const char *name, const char *prefix, int64_t grace_ms,
		    struct err **err);
	/* Command by which a person ends the job without stoker; the job's name is appended. NULL:
	 * end the processes that `wake` returns. */
	const char *by_hand;
	/* Process of this node's command on this machine: 1, 0 none runs here now, -1. NULL:
	 * commands run elsewhere, and `by_shell` says how a person gets a shell beside them. */
	int (*process)(struct engine *engine, const char *name, const char *prefix, int node,
		       pid_t *ret, struct err **err);
	const char *by_shell;
	/* Appends log bytes of a node from `*offset` on, at most `max`, and advances the offset. 0
	 * bytes: nothing new (a log that does not exist yet is empty). */
	int (*logs)(struct engine *engine, const char *name, const char *prefix, int node,
		    uint64_t *offset, size_t max, struct sb *ret, struct err **err);
	/* Size of a node's log now, if it is available more cheaply than by reading: 1, 0 not
	 * known, -1. */
	int (*log_size)(struct engine *engine, const char *name, const char *prefix, int node,
			uint64_t *ret, struct err **err);
	/* Functions for logs that are a service's events, which cannot be found again by an offset.
	 * log_place returns the place for another process to continue behind the bytes that logs()
	 * has returned, a new reference (NULL: an offset is enough); log_go_on is that process's
	 * first call for this log. It may then receive some of the newest lines twice. Both are
	 * set, or neither. */
	json_t *(*log_place)(struct engine *engine, const char *name, const char *prefix, int node);
	void (*log_go_on)(struct engine *engine, const char *name, const char *prefix, int node,
			  uint64_t offset, const json_t *place);
	/* Time when the line at this offset was written, UTC, by the service; for lines of the
	 * latest logs() call. ms 0: not known. NULL if no service records it. */
	struct utc (*log_time)(struct engine *engine, const char *name, const char *prefix,
			       int node, uint64_t offset);
	/* Identity of the line at this offset, the same for whoever reads the log; likewise for
	 * lines of the latest logs() call. 0: not known. NULL if no service gives its lines one.
	 * All of log_place, log_time, log_id and log_lacks_end are set, or log_id is not. */
	uint64_t (*log_id)(struct engine *engine, const char *name, const char *prefix, int node,
			   uint64_t offset);
	/* True if the end of the log must have been there, and has not come: the service has lost
	 * it. For an attempt that describe() calls ended, and a log that is read to its end. NULL
	 * if no log can lack its end. */
	bool (*log_lacks_end)(struct engine *engine, const char *name, int node);
	/* The line's time for people, to a second or two, and for any line. ms 0: not known. */
	struct utc (*log_written)(struct engine *engine, const char *name, const char *prefix,
				  int node, uint64_t offset);
	/* Report of a node's agent, from the nearest copy, as of a moment ago: 1, 0 absent, -1.
	 * `ret` is all zeros at first; the caller releases it. NULL if nothing is nearer than the
	 * workspace. */
	int (*report)(struct engine *engine, const char *name, const char *prefix, int node,
		      struct node_report *ret, struct err **err);
	/* Another JSON object that an agent keeps beside its report: 1 and a new reference, 0, -1.
	 * NULL for an engine without agents; an engine that has none for this job returns 0. */
	int (*beside)(struct engine *engine, const char *name, const char *prefix, int node,
		      const char *file, json_t **ret, struct err **err);
	/* Gives back the machines that are kept, after the end of an attempt, for a next attempt
	 * that has not taken them over. 1 and the seconds for which each node was kept and is
	 * billed, 0 if nothing was kept, -1. EXIT_BUSY: not known yet if anything is kept, ask
	 * again in a moment. If the request was refused, `ret_seconds` is the time for which
	 * they stay kept, 0 if it is not known that they are. NULL for an engine that never
	 * keeps any. */
	int (*release)(struct engine *engine, const char *name, const char *prefix,
		       int64_t *ret_seconds, struct err **err);
	/* Writes at most `max` process ids; describe is worth calling when one of them ends.
	 * Returns the count. NULL if there are none. */
	int (*wake)(struct engine *engine, const char *name, const char *prefix, pid_t *ret,
		    int max);
};

struct engine {
	const struct engine_ops *ops;
};

/* Returns the image of a plan's jobs: pinned to its digest if that is known, else as in the spec.
 * Borrowed. */
const char *engine_image(const json_t *plan);

/* Returns NULL if this version has no engine of that name. */
const struct engine_ops *engine_find(const char *name);
#endif
