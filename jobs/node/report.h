/*
 * The agent's report: report.json, on which verdicts rest, and the same as a line on stdout for
 * readers of the log. The durable one always comes first: the uploader writes the object
 * (report_put) before that line if the workspace is a directory, else a file in the node's folder
 * is written (report_keep), which the uploader uploads (report_bring).
 */
#ifndef STK_NODE_REPORT_H
#define STK_NODE_REPORT_H

#include "jobs/base/err.h"
#include "jobs/base/process/proc.h"
#include "jobs/base/text/js.h"
#include "jobs/node/setup/agent_config.h"
#include "jobs/node/upload/output_relay.h"
#include "jobs/store/node_report.h"
#include "jobs/store/store.h"

struct report {
	struct node_report said; /* callers set members here */
	char *path;              /* report file in the node's folder; NULL: the object is written */
	char *reserve;           /* file that gives up its space when the disk is full */
	const struct agent_config *config;
	struct output_relay *relay;
};

/* Fills in the agent's identity; nothing is written yet but the reserve. Task and relay stay
 * the caller's and must outlive the report. */
void report_init(struct report *report, const struct agent_config *config,
		 struct output_relay *relay);
void report_release(struct report *report);

/* Records whether this agent's program is the one that the order names. */
void report_build(struct report *report, const char *program);

/* Sets the identity of a process: of `agent` or `command`. */
void report_process(struct node_report_process *process, const struct proc_id *id);
/* Sets the agent's own failure as member "error". `class` is one of the failure classes by name, or
 * NULL: derived from the error. */
void report_error(struct report *report, const struct err *why, const char *class);

/* Sets the checkpoint that a start that is not the first goes on from. */
void report_resumed(struct report *report);

/* Returns the report with this state (REPORT_*) as text. The caller frees it. */
char *report_compose(struct report *report, const char *state);
/* Writes it to the report's file. */
int report_keep(const struct report *report, const char *text, struct err **err);
/* Writes it to stdout, as a line. */
void report_say(const struct report *report, const char *text);

/* Writes the text as the report of this node. */
int report_put(const struct agent_config *config, struct store *store, const char *text,
	       struct err **err);

/* True if the file is the last report of a job with the claim. */
bool report_is_last(const struct agent_config *config);
/* Uploads the file, as it is now. Returns 0, -1 with an error, or 1 if another job of the same
 * attempt, which the service has started as well, has the claim and reports. */
int report_bring(const struct agent_config *config, struct store *store, struct err **err);

/* Says something on stderr that is no part of the report, and hurts nothing. */
void report_complain(const char *fmt, ...) STK_PRINTF(1, 2);

#endif
