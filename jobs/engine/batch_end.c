/* How a job of AWS Batch ended, and which are ended by us: see batch.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text.h"
#include "jobs/engine/batch_inside.h"
#include "jobs/engine/reports.h"
#include "jobs/store/order.h"

#define NODE_WORDS BATCH_OURS "node %d failed"
#define WORDS_MAX  200

/* ---- ending it ---------------------------------------------------------------------------- */

/* Ask AWS Batch to end it; gone already is fine. */
static int terminate(struct batch *batch, struct batch_job *job, const char *reason,
		     struct err **err)
{
	json_auto_t *body = NULL;

	if (job->stopped.ms > 0 && mono_now().ms - job->stopped.ms < STOP_AGAIN_MS)
		return 0;
	body = json_pack("{s:s, s:s}", "jobId", job->id, "reason", reason);
	if (batch_ask(batch, AWS_TERMINATE_JOB, body, NULL, err) < 0) {
		if (!strstr((*err)->message, "does not exist"))
			return -1;
		err_freep(err);
	}
	job->stopped = mono_now();
	job->changed = mono_now();
	job->asked.ms = 0; /* it is soon another */
	return 0;
}

int batch_stop(struct engine *engine, const char *name, const char *prefix, int64_t grace_ms,
	       struct err **err)
{
	struct batch *batch = (struct batch *)engine;
	struct batch_job *job = batch_job_of(batch, prefix);
	int there;

	(void)grace_ms; /* AWS Batch has its own: 30 seconds */
	if (job->said.state == ENGINE_ENDED)
		return 0;
	there = batch_identify(batch, job, name, err);
	return there > 0 ? terminate(batch, job, BATCH_OURS "stop", err) : there;
}

/* A node that saves and leaves when told to has not failed, and who is not the holder of the
 * claim leaves as well. */
static int has_left(struct batch *batch, struct batch_job *job, int node, struct err **err)
{
	json_auto_t *report = NULL;

	if (reports_get(batch->far, job->prefix, node, &report, err) < 0)
		return -1;
	return js_is(report, "stopped", STOPPED_DRAIN) || js_is(report, "state", REPORT_NOT_MINE);
}

/* 1 it is the one, and the job is stopped for it; 0 it left as it should, -1. */
static int stop_for_node(struct batch *batch, struct batch_job *job, int node, struct err **err)
{
	AUTO(sb_release) struct sb words = SB_INIT_MAX(WORDS_MAX);
	int left = has_left(batch, job, node, err);

	if (left != 0)
		return left < 0 ? -1 : 0;
	sb_addf(&words, NODE_WORDS ": ", node);
	batch_end_words(json_array_get(job->nodes, (size_t)node), &words);
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

	if (failed == 0 || job->stopped.ms > 0)
		return 0;
	if (failed != job->failed)
		far_forget(batch->far, job->prefix);
	json_array_foreach (job->nodes, i, node) {
		stopped = js_is(node, "status", "FAILED") ? stop_for_node(batch, job, (int)i, err)
							  : 0;
		if (stopped != 0)
			return stopped < 0 ? -1 : 0;
	}
	job->failed = failed;
	return 0;
}

/* Before it has a machine, in words that are known: what is said of it afterwards is left over
 * from then. */
static bool is_waiting(const char *status)
{
	return status && (strcmp(status, "SUBMITTED") == 0 || strcmp(status, "PENDING") == 0 ||
			  strcmp(status, "RUNNABLE") == 0);
}

int batch_stop_lost(struct batch *batch, struct batch_job *job, struct err **err)
{
	if (batch_never_runs(job->said.reason) && is_waiting(job->said.status)) {
		AUTO(auto_free) char *words = mem_format(BATCH_OURS "%s", job->said.reason);

		return terminate(batch, job, words, err);
	}
	return stop_for_nodes(batch, job, err);
}

/* ---- how it ended --------------------------------------------------------------------------- */

static const json_t *node_of(const struct batch_job *job, int node)
{
	const json_t *child = job->nodes ? json_array_get(job->nodes, (size_t)node) : job->job;

	return json_is_object(child) ? child : job->job;
}

static bool ours(const struct batch_job *job)
{
	return job->said.reason && text_starts(job->said.reason, BATCH_OURS);
}

/* Somebody else ended it. */
static bool taken_down(const struct batch_job *job)
{
	return (js_bool(job->job, "isTerminated", false) ||
		js_bool(job->job, "isCancelled", false)) &&
	       !ours(job);
}

/* The node for which we ended it; -1: none. */
static int blamed(const struct batch_job *job, int nodes)
{
	const char *reason = job->said.reason;
	int node = -1;

	if (reason && text_starts(reason, BATCH_OURS "node "))
		node = (int)strtol(reason + strlen(BATCH_OURS "node "), NULL, 10);
	return node < nodes ? node : -1;
}

/* A node without a last report, for whom the others were stopped, if there is one: -1: how it
 * ended the reports say. */
static int silent_node(struct batch *batch, struct batch_job *job, int nodes,
		       const struct reports *reports, int *ret, struct err **err)
{
	*ret = -1;
	if (reports->final == nodes)
		return 0;
	if (reports->node >= 0) {
		json_auto_t *report = NULL;

		if (reports_get(batch->far, job->prefix, reports->node, &report, err) < 0)
			return -1;
		if (!js_str(report, "stopped") && js_int(report, "exit", 0) != 0)
			return 0;
	}
	for (int i = nodes - 1; i >= 0; i--) {
		json_auto_t *report = NULL;

		if (reports_get(batch->far, job->prefix, i, &report, err) < 0)
			return -1;
		/* The main one ends the job, so of several it is the likeliest. */
		if (!report_is_final(report))
			*ret = i;
	}
	return 0;
}

static void say(struct engine_status *ret, const struct sb *words)
{
	snprintf(ret->reason, sizeof ret->reason, "%s", words->text);
}

/* Nothing of it runs: a container ends as a whole, and with its machine. */
static int tell_silent(struct batch *batch, struct batch_job *job, int node,
		       struct engine_status *ret, struct err **err)
{
	const json_t *child = node_of(job, node), *code;
	AUTO(sb_release) struct sb words = SB_INIT;
	json_auto_t *report = NULL;

	if (reports_get(batch->far, job->prefix, node, &report, err) < 0)
		return -1;
	code = json_object_get(batch_container(child), "exitCode");
	ret->node = node;
	ret->silent = true;
	ret->last_seen.ms = js_int(child, "stoppedAt", js_int(job->job, "stoppedAt", 0));
	/* Of what we ended ourselves the reason is the one that we gave. */
	batch_end_words(ours(job) ? job->job : child, &words);
	if (report)
		sb_addf(&words, "; the agent of node %d died without a report", node);
	else if (json_is_integer(code) && json_integer_value(code) == 0)
		sb_adds(&words, "; the container ended well without an agent: its ENTRYPOINT does "
				"not run the command that it is given");
	if (json_is_integer(code))
		sb_addf(&words, " (exit %lld)", (long long)json_integer_value(code));
	if (!report && json_is_integer(code) && json_integer_value(code) != 0) {
		ret->exit_known = true;
		ret->exit = (int)json_integer_value(code);
	}
	say(ret, &words);
	return 0;
}

/* Who was told to stop does not know why. */
static int tell_reported(struct batch *batch, struct batch_job *job, const struct reports *reports,
			 struct engine_status *ret, struct err **err)
{
	AUTO(sb_release) struct sb words = SB_INIT;
	json_auto_t *report = NULL;

	ret->exit_known = true;
	ret->exit = reports->exit;
	ret->node = reports->node < 0 ? 0 : reports->node;
	if (reports_get(batch->far, job->prefix, ret->node, &report, err) < 0)
		return -1;
	if (job->job && (taken_down(job) || js_is(report, "stopped", STOPPED_SIGNAL)))
		batch_end_words(job->job, &words);
	else
		sb_adds(&words, reports->reason);
	say(ret, &words);
	return 0;
}

int batch_tell_end(struct batch *batch, struct batch_job *job, struct engine_status *ret,
		   struct err **err)
{
	int nodes = batch_nodes(batch), node = blamed(job, nodes);
	struct reports reports;

	if (!job->read)
		far_forget(batch->far, job->prefix);
	if (reports_look(batch->far, job->prefix, nodes, &reports, err) < 0)
		return -1;
	job->read = true;
	ret->state = ENGINE_ENDED;
	ret->started = reports.started;
	if (node >= 0) {
		json_auto_t *report = NULL;

		if (reports_get(batch->far, job->prefix, node, &report, err) < 0)
			return -1;
		if (report_is_final(report))
			node = -1;
	} else if (silent_node(batch, job, nodes, &reports, &node, err) < 0) {
		return -1;
	}
	if (node >= 0)
		return tell_silent(batch, job, node, ret, err);
	return tell_reported(batch, job, &reports, ret, err);
}
