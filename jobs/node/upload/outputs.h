/*
 * Upload of what the command leaves in STOKER_OUTPUT_DIR to the workspace.
 *
 * If the workspace is a directory, the folder lies there, and nothing is copied. Else a helper
 * (helper.h) uploads all of it beneath agent_config_outputs_key(), once the command and all that
 * descends from it are gone and the checkpointer has done its last pass: checkpoints go first. The
 * upload takes place however the attempt ends: well, by failure, drained, or by a signal, and then
 * as far as the time goes (agent_config_outputs_ms). There is none if another attempt has the
 * claim, and none in precompile.
 *
 * - Files are uploaded as they are. A link is never followed; a link to something else in the
 *   folder is left out in silence, as its target is uploaded itself. A folder without files is
 *   not uploaded.
 * - A name that no object can have (control bytes, no UTF-8) is uploaded with those bytes as
 *   %XX, and then '%' as %25.
 * - An entry that cannot be read, or is neither file nor folder nor such a link, is reported,
 *   and is no failure. An entry that the workspace does not take is a failure, as with
 *   checkpoints: a service that is away is tried again for 10 minutes.
 *
 * The report has the member "outputs" then (order.h).
 */
#ifndef STK_NODE_UPLOAD_OUTPUTS_H
#define STK_NODE_UPLOAD_OUTPUTS_H

#include <stdbool.h>

#include "jobs/base/clock.h"
#include "jobs/base/text/js.h"
#include "jobs/node/helper.h"
#include "jobs/node/news.h"
#include "jobs/node/setup/agent_config.h"
#include "jobs/store/node_report.h"

struct agent;

struct outputs {
	struct helper helper;
	struct news news;
	int starts;
	bool over; /* nothing more is uploaded */
	struct watch *timer;
	json_t *said;       /* newest message of the helper; NULL: none */
	const char *cut;    /* why the helper was ended; NULL: it was not */
	struct mono end_at; /* deadline after a signal; ms 0: no signal */
	struct mono shown;  /* when the report last said that the upload is under way */
	struct err *lost;   /* why outputs were not taken; NULL: they were */
	char *lost_class;
};

/* Called when the command is over: uploads the outputs, if that is still to be done. Returns true
 * if the upload is under way; SIGCHLD shows its end. */
bool outputs_bring(struct agent *agent);
/* To be called once the helper is reaped. */
void outputs_gone(struct agent *agent);
/* Ends the upload: the claim has passed on, and the outputs are another attempt's to write. */
void outputs_kill(struct agent *agent);
/* Called after a signal: the time is short. */
void outputs_signalled(struct agent *agent);
/* Records in the report what became of the outputs. */
void outputs_report(struct agent *agent);
void outputs_release(struct outputs *outputs); /* kills a helper; { 0 } is fine */

/* True if a report says that its node still uploads. */
bool outputs_under_way(const struct node_report *report);

/* Does the whole upload (outputs_work.c), in the helper. Sends lines of kind "moving" as long as
 * bytes move, and at the end one "done": "files", "bytes", "renamed" that are there, "left" that
 * are not, the first of them as "names": [{"name","why"}…]; and "why", "hint", "class" if the
 * workspace did not take them. */
int outputs_work(const struct agent_config *config, int news_fd);

#endif
