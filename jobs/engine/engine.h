/*
 * What the workflow may ask of any engine, whatever executes the attempts.
 *
 * One engine is one row in registry.c and one file. An engine knows attempts
 * by their job name (stk-<run>-<phase>-<attempt>); a repeated submit of a name
 * finds the job and does not start a second one. Calls return at once or after
 * a bounded time; none of them retries or sleeps. Status comes from describe,
 * which may be called as often as the driver likes, and `wake` says when it is
 * worth calling early.
 */
#ifndef STK_ENGINE_ENGINE_H
#define STK_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "jobs/base/clock.h"
#include "jobs/base/err.h"
#include "jobs/base/json.h"
#include "jobs/base/sb.h"
#include "jobs/store/store.h"

/* What an engine is opened on; both outlive it. */
struct engine_where {
	const char *workspace; /* as store_open() takes it */
	/* The run's plan (jobs/run/plan.h); what the spec says to this engine is beneath "spec",
	 * every default resolved. NULL: none, for an engine that asks it nothing. */
	const json_t *plan;
};

/* One attempt, as an engine needs it. All strings are borrowed for the call. */
struct engine_job {
	const char *name; /* stk-<run>-<phase>-<attempt> */
	const char *run, *phase;
	int64_t attempt;
	int nodes;
	const char *prefix; /* key prefix of the attempt in the workspace, ends with '/' */
	/* Key prefix of the agent directory in the workspace; NULL: it takes no part. */
	const char *agent_key;
	/* Key of an archive of the same, agents/<digest>.<its SHA-256>.tar.gz; NULL unless the
	 * plan's containers fetch it (arrival.h). */
	const char *agent_archive;
	char *const *env; /* NAME=VALUE; holds secrets: never written down by an engine */
	/* What the agents are told (jobs/store/order.h), for a job in which there are none; NULL:
	 * not known here. */
	const json_t *order;
};

enum engine_state {
	ENGINE_QUEUED,
	ENGINE_STARTING,
	ENGINE_RUNNING,
	ENGINE_STOPPING,
	ENGINE_ENDED,  /* on evidence: nothing of it runs any more */
	ENGINE_UNSEEN, /* cannot be seen; unknown is not ended */
};

struct engine_status {
	enum engine_state state;
	bool exit_known;
	int exit;         /* as a shell gives it: 128 + n for signal n; of the first node to fail */
	int node;         /* that node's rank, 0 if all ended well */
	char reason[256]; /* the engine's own words, may be empty */
	struct utc started; /* ms 0: not known */
	/* ENDED without a report: the last sign of life, by the clock of that machine; ms
	 * 0: not known. */
	struct utc last_seen;
	/* ENDED without a report, and seen on its machine that nothing of it runs: what
	 * it wrote it has written. */
	bool silent;
	/* From when to when each node had its machine, by the service's clock; ms 0: not known
	 * (then the claim and the end that was seen say it). */
	struct utc held, released;
	/* What the service bills of each node, on the average; 0: it does not say (yet). */
	int64_t billable_ms;
};

/* One of many that are watched through one handle. */
struct engine_name {
	const char *name, *prefix;
};

struct engine; /* an opened engine; each begins with its ops */

struct engine_ops {
	const char *name; /* as the spec spells it */
	/* Each node of an attempt is a machine of its own: they share the workspace, and no
	 * folder. */
	bool machines_apart;
	/* A node that the service tells to end (SIGTERM) is gone that many ms later, whatever it
	 * does; 0: it ends as it likes. */
	int64_t stop_ms;
	int (*open)(const struct engine_where *where, struct engine **ret, struct err **err);
	void (*close)(struct engine *engine);
	/* Is everything there that submitting needs? Changes nothing. */
	int (*check)(struct engine *engine, struct err **err);
	/* What submitting this job sends, in order, each as it goes out: {"operation", "body"}, a
	 * new array; made by the functions that submit uses. Asks nobody and needs no
	 * credentials. What only a run knows stands in the job as "<id>" and the like. NULL for an
	 * engine that sends nothing. */
	int (*requests)(struct engine *engine, const struct engine_job *job, json_t **ret,
			struct err **err);
	/* 0: the engine has it; err, if it is set all the same, is a warning. -1: it definitely
	 * does not (err->code says why; EXIT_UNREACHABLE: the same may be sent again later).
	 * 1: unknown; err is set all the same and says what happened. */
	int (*submit)(struct engine *engine, const struct engine_job *job, struct err **err);
	/* 1: there is (or was) a job of that name, 0: certainly never, -1: unknown. */
	int (*find)(struct engine *engine, const char *name, const char *prefix, struct err **err);
	int (*describe)(struct engine *engine, const char *name, const char *prefix,
			struct engine_status *ret, struct err **err);
	/* How many of them go at once, by the engine's word alone: what agents have reported is not
	 * asked for, so that of an end only the engine's exit and words are known. As few requests
	 * as the service allows, in step with its limits, and none for what was seen a moment ago:
	 * describe() goes on from there. `ret[i]` is of jobs[i]; with -1 as far as it was seen.
	 * NULL: describe() each. */
	int (*survey)(struct engine *engine, const struct engine_name *jobs, size_t count,
		      struct engine_status *ret, struct err **err);
	/* Ask it to end: SIGTERM, after `grace_ms` SIGKILL. Gone already is fine. */
	int (*stop)(struct engine *engine, const char *name, const char *prefix, int64_t grace_ms,
		    struct err **err);
	/* Append log bytes of a node from `*offset` on, at most `max`, and move the
	 * offset. 0 bytes: nothing new (a log that is not there yet is empty). */
	int (*logs)(struct engine *engine, const char *name, const char *prefix, int node,
		    uint64_t *offset, size_t max, struct sb *ret, struct err **err);
	/* The report of a node's agent, from where it is nearest, as it was a moment ago: 1 and a
	 * new reference, 0 there is none, -1. NULL where nothing is nearer than the workspace. */
	int (*report)(struct engine *engine, const char *name, const char *prefix, int node,
		      json_t **ret, struct err **err);
	/* Of an attempt that has ended: give back what is kept of it for a next one and that none
	 * has taken over. 1 and for how many seconds of each node it was kept and is billed, 0
	 * nothing was, -1. EXIT_BUSY: whether anything is kept shows in a moment, ask again.
	 * Where it was refused `ret_seconds` is for how long it will be kept all the same, 0 if
	 * nobody has seen that it is. NULL where nothing ever is. */
	int (*release)(struct engine *engine, const char *name, const char *prefix,
		       int64_t *ret_seconds, struct err **err);
	/* Process ids whose end makes describe worth calling, at most `max`; the
	 * count. NULL where there is none. */
	int (*wake)(struct engine *engine, const char *name, const char *prefix, pid_t *ret,
		    int max);
};

struct engine {
	const struct engine_ops *ops;
};

/* NULL if this version has no engine of that name. */
const struct engine_ops *engine_find(const char *name);
/* Names of all engines of this version, in order; NULL-terminated. */
extern const char *const engine_names[];

#endif
