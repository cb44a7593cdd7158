/*
 * The agent's report: report.json, on which verdicts rest, and the same as a
 * line on stdout for whoever reads the log. The durable one always comes first: the
 * object where the workspace is a directory, else a file in the node's folder, which is
 * brought to the workspace by the courier.
 */
#ifndef STK_NODE_REPORT_H
#define STK_NODE_REPORT_H

#include "jobs/base/err.h"
#include "jobs/base/json.h"
#include "jobs/base/proc.h"
#include "jobs/node/relay.h"
#include "jobs/node/task.h"
#include "jobs/store/store.h"

struct report {
	json_t *body; /* callers put members of order.h's report here */
	char *key;
	char *path;    /* of the file, if it is one */
	char *reserve; /* a file whose space is given up when the disk is full */
	const struct task *task;
	struct store *store;
	struct relay *relay;
};

/* Say who we are; nothing is written yet but the reserve. Task, store and relay
 * stay the caller's and must outlive the report. */
void report_init(struct report *report, const struct task *task, struct store *store,
		 struct relay *relay);
void report_release(struct report *report);

/* Is the program of this agent the one that the order names? */
void report_build(struct report *report, const char *program);

/* The identity of a process as member `name`. */
void report_process(struct report *report, const char *name, const struct proc_id *id);
/* The agent's own trouble as member "error". `class` is one of the failure
 * classes by name, or NULL: derived from the error. */
void report_error(struct report *report, const struct err *why, const char *class);

/* Of a start that is not the first: which it is, and what it goes on from. */
void report_resumed(const struct report *report);

/* Write it with this state (REPORT_*). */
int report_write(struct report *report, const char *state, struct err **err);

/* Bring the file to the workspace, as it is now: 0, -1; 1: not there, where another job of the
 * same attempt, which the service has started as well, has the claim and reports. */
int report_bring(const struct task *task, struct store *store, struct err **err);

#endif
