/* How a job of AWS Batch ended, and which jobs the engine ends: see batch.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/engine/batch/batch_internal.h"
#include "jobs/engine/reports.h"
#include "jobs/store/order.h"

#define NODE_WORDS BATCH_OURS "node %d failed"
#define WORDS_MAX  200

/* If the service says that a node was ended from outside, it soon says the same of its job. */
#define FOLLOWS_MS 60000
#define MAIN_NODE  0 /* as in batch_definition.c */

/* ---- ending a job ----------------------------------------------------------------------- */

/* Asks AWS Batch to end the job; gone already is fine. */
static int terminate(struct batch *batch, struct batch_job *job, const char *reason,
		     struct err **err)
{
	json_auto_t *body = NULL;

	if (job->stopped.ms > 0 && clock_mono_now().ms - job->stopped.ms < STOP_AGAIN_MS)
		return 0;
	body = json_pack("{s:s, s:s}", "jobId", job->id, "reason", reason);
	if (batch_call(batch, AWS_TERMINATE_JOB, body, NULL, err) < 0) {
		if (!strstr((*err)->message, "does not exist"))
			return -1;
		err_freep(err);
	}
	job->stopped = clock_mono_now();
	job->changed = clock_mono_now();
	job->asked.ms = 0; /* status is about to change */
	return 0;
}

int batch_stop(struct engine *engine, const char *name, const char *prefix, int64_t grace_ms,
	       struct err **err)
{
	struct batch *batch = (struct batch *)engine;
	struct batch_job *job = batch_job_of(batch, prefix);
	int there;

	(void)grace_ms; /* AWS Batch has its own grace: 30 seconds */
	if (job->summary.state == ENGINE_ENDED)
		return 0;
	there = batch_identify(batch, job, name, err);
	return there > 0 ? terminate(batch, job, BATCH_OURS "stop", err) : there;
}

/* A node that saves and leaves when told to has not failed, nor has a node that leaves because
 * another job holds the claim. */
static int has_left(struct batch *batch, struct batch_job *job, int node, struct err **err)
{
	AUTO(node_report_release) struct node_report report = { 0 };

	if (reports_get(batch->cache, job->prefix, node, &report, err) < 0)
		return -1;
	return node_report_was_drained(&report) || node_report_is(&report, REPORT_NOT_MINE);
}

/* True for a node that was ended from outside, or the main node: AWS Batch ends the others with it.
 * The job is likely to be reported as ended soon. */
static bool follows(struct batch_job *job, int node, const json_t *child)
{
	if (node != MAIN_NODE && !batch_taken_down(child))
		return false;
	if (job->node_down.ms == 0)
		job->node_down = clock_mono_now();
	return clock_mono_now().ms - job->node_down.ms < FOLLOWS_MS;
}

/* Asks whether the job has ended, or was told to end, since it was described: 1, 0, -1. `job` keeps
 * its description, and is described again soon. */
static int ended_since(struct batch *batch, struct batch_job *job, struct err **err)
{
	json_auto_t *list = json_array();
	const json_t *now;

	if (batch_describe_nodes(batch, job, -1, 0, list, err) < 0)
		return -1;
	now = batch_pick(list, job->id);
	if (!now || (!batch_was_ended(now) && batch_summary_of(now).state != ENGINE_ENDED))
		return 0;
	job->asked.ms = 0;
	return 1;
}

/* 1 this node's failure stops the job, by stoker or by the service; 0 it left as it should, -1. */
static int stop_for_node(struct batch *batch, struct batch_job *job, int node, struct err **err)
{
	AUTO(sb_release) struct sb words = SB_INIT_MAX(WORDS_MAX);
	const json_t *child = json_array_get(job->nodes, (size_t)node);
	int left = has_left(batch, job, node, err), ended;

	if (left != 0)
		return left < 0 ? -1 : 0;
	if (follows(job, node, child))
		return node == MAIN_NODE;
	/* The job's description is as old as that of its first nodes, and older than that of the
	 * others. */
	ended = ended_since(batch, job, err);
	if (ended != 0)
		return ended;
	/* For a node that was ended from outside, the words apply to the job. */
	if (batch_taken_down(child))
		sb_adds(&words, BATCH_OURS);
	else
		sb_addf(&words, NODE_WORDS ": ", node);
	batch_end_words(child, &words);
	return terminate(batch, job, words.text, err) < 0 ? -1 : 1;
}

static size_t count_failed(const struct batch_job *job)
{
	size_t count = 0, i;
	json_t *node;

	json_array_foreach (job->nodes, i, node)
		count += js_is(node, "status", "FAILED");
	return count;
}

static int stop_for_nodes(struct batch *batch, struct batch_job *job, struct err **err)
{
	size_t failed = count_failed(job), i;
	json_t *node;
	int stopped;

	if (failed == 0 || batch_is_stopping(job))
		return 0;
	if (failed != job->failed)
		workspace_cache_forget(batch->cache, job->prefix);
	json_array_foreach (job->nodes, i, node) {
		stopped = js_is(node, "status", "FAILED") ? stop_for_node(batch, job, (int)i, err)
							  : 0;
		if (stopped != 0)
			return stopped < 0 ? -1 : 0;
	}
	job->failed = failed;
	return 0;
}

/* True if the job has no machine yet, by a known status: afterwards the same statusReason is left
 * over from then. */
static bool is_waiting(const char *status)
{
	return status && (strcmp(status, "SUBMITTED") == 0 || strcmp(status, "PENDING") == 0 ||
			  strcmp(status, "RUNNABLE") == 0);
}

bool batch_is_stopping(const struct batch_job *job)
{
	/* CancelJob does nothing to a job that has a machine already. */
	return job->stopped.ms > 0 || js_bool(job->job, "isTerminated", false) ||
	       (js_bool(job->job, "isCancelled", false) && is_waiting(job->summary.status));
}

int batch_stop_lost(struct batch *batch, struct batch_job *job, struct err **err)
{
	if (batch_was_ended(job->job))
		return 0;
	if (batch_never_runs(job->summary.reason) && is_waiting(job->summary.status)) {
		AUTO(auto_free) char *words = mem_format(BATCH_OURS "%s", job->summary.reason);

		return terminate(batch, job, words, err);
	}
	return stop_for_nodes(batch, job, err);
}

/* ---- reason of an end ----------------------------------------------------------------------- */

static const json_t *node_of(const struct batch_job *job, int node)
{
	const json_t *child = job->nodes ? json_array_get(job->nodes, (size_t)node) : job->job;

	return json_is_object(child) ? child : job->job;
}

/* Returns the node for which stoker ended the job; -1: none. */
static int ended_for_node(const struct batch_job *job, int nodes)
{
	const char *reason = job->summary.reason;
	int node = -1;

	if (reason && text_starts(reason, BATCH_OURS "node "))
		node = (int)strtol(reason + strlen(BATCH_OURS "node "), NULL, 10);
	return node < nodes ? node : -1;
}

/* Finds a node without a final report that made the others stop; -1 if the reports tell how the job
 * ended. */
static int silent_node(struct batch *batch, struct batch_job *job, int nodes,
		       const struct reports *reports, int *ret, struct err **err)
{
	*ret = -1;
	if (reports->final == nodes)
		return 0;
	if (reports->node >= 0) {
		AUTO(node_report_release) struct node_report report = { 0 };

		if (reports_get(batch->cache, job->prefix, reports->node, &report, err) < 0)
			return -1;
		if (!report.stopped && report.exit != 0)
			return 0;
	}
	for (int i = nodes - 1; i >= 0; i--) {
		AUTO(node_report_release) struct node_report report = { 0 };

		if (reports_get(batch->cache, job->prefix, i, &report, err) < 0)
			return -1;
		/* The main node ends the job, so of several it is the likeliest. */
		if (!node_report_is_final(&report))
			*ret = i;
	}
	return 0;
}

static void set_reason(struct engine_status *ret, const struct sb *words)
{
	snprintf(ret->reason, sizeof ret->reason, "%s", words->text);
}

/* Describes a node without a final report. None of its processes runs: a container ends as a whole,
 * and with its machine. */
static int set_silent_end(struct batch *batch, struct batch_job *job, int node,
			  struct engine_status *ret, struct err **err)
{
	const json_t *child = node_of(job, node), *code;
	AUTO(sb_release) struct sb words = SB_INIT;
	AUTO(node_report_release) struct node_report report = { 0 };
	int there = reports_get(batch->cache, job->prefix, node, &report, err);

	if (there < 0)
		return -1;
	code = json_object_get(batch_container(child), "exitCode");
	ret->node = node;
	ret->silent = true;
	ret->last_seen.ms = js_int(child, "stoppedAt", js_int(job->job, "stoppedAt", 0));
	/* A job that was ended as a whole has the reason that was given for it. */
	if (batch_was_ended(job->job) || batch_is_ours(job->summary.reason) ||
	    !js_str(child, "statusReason"))
		batch_end_words(job->job, &words);
	else
		batch_node_words(child, &words);
	if (there)
		sb_addf(&words, "; the agent of node %d died without a report", node);
	else if (json_is_integer(code) && json_integer_value(code) == 0)
		sb_adds(&words, "; the container ended with 0 without an agent: the ENTRYPOINT of "
				"the image does not run the given command");
	if (json_is_integer(code))
		sb_addf(&words, " (exit %lld)", (long long)json_integer_value(code));
	if (!there && json_is_integer(code) && json_integer_value(code) != 0) {
		ret->exit_known = true;
		ret->exit = (int)json_integer_value(code);
	}
	set_reason(ret, &words);
	return 0;
}

/* Describes the end by the reports. A command that was told to stop does not know why: the job's
 * words say it. */
static int set_reported_end(struct batch *batch, struct batch_job *job,
			    const struct reports *reports, struct engine_status *ret,
			    struct err **err)
{
	AUTO(sb_release) struct sb words = SB_INIT;
	AUTO(node_report_release) struct node_report report = { 0 };

	ret->exit_known = true;
	ret->exit = reports->exit;
	ret->node = reports->node < 0 ? 0 : reports->node;
	if (reports_get(batch->cache, job->prefix, ret->node, &report, err) < 0)
		return -1;
	if (job->job && (ret->taken_down || node_report_was_stopped(&report, STOPPED_SIGNAL)))
		batch_end_words(job->job, &words);
	else
		sb_adds(&words, reports->reason);
	set_reason(ret, &words);
	return 0;
}

int batch_end_status(struct batch *batch, struct batch_job *job, struct engine_status *ret,
		     struct err **err)
{
	int nodes = batch_nodes(batch), node = ended_for_node(job, nodes);
	struct reports reports;

	if (!job->read)
		workspace_cache_forget(batch->cache, job->prefix);
	if (reports_read(batch->cache, job->prefix, nodes, &reports, err) < 0)
		return -1;
	job->read = true;
	ret->state = ENGINE_ENDED;
	ret->started = reports.started;
	ret->taken_down = batch_taken_down(job->job);
	if (node >= 0) {
		AUTO(node_report_release) struct node_report report = { 0 };

		if (reports_get(batch->cache, job->prefix, node, &report, err) < 0)
			return -1;
		if (node_report_is_final(&report))
			node = -1;
	} else if (silent_node(batch, job, nodes, &reports, &node, err) < 0) {
		return -1;
	}
	if (node >= 0)
		return set_silent_end(batch, job, node, ret, err);
	return set_reported_end(batch, job, &reports, ret, err);
}
