/*
 * How an attempt ended: gathers the evidence of the engine, the agents and the logs, and records
 * what the flow makes of it (failure.h). Nothing here changes the verdict.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/cache/verdict/cache_verdict.h"
#include "jobs/flow/failure.h"
#include "jobs/run/attempt/missed_right.h"
#include "jobs/run/attempt/outputs.h"
#include "jobs/run/attempt/unpassed.h"
#include "jobs/run/attempt/versions.h"
#include "jobs/run/attempt/watch_internal.h"
#include "jobs/store/order.h"

#define BOOLEANS_MAX ((size_t)400)              /* bytes of names in a cure */
#define NODE_LINES   (CAUSE_LINES + LAST_LINES) /* lines looked at per node */

/* Evidence with the memory that it borrows from. */
struct end_evidence {
	struct failure_evidence e;
	struct failure_line *lines; /* NODE_LINES per node */
	struct failure_log *logs;   /* one per node */
	size_t nodes;
	char **shows; /* hints of the logs; NULL: none */
	char *stall;
	struct sb booleans;
	char *wait, *wait_hint;
	json_t *hosts; /* names of the machines, by rank; "": not known */
};

static void end_evidence_release(struct end_evidence *evidence)
{
	for (size_t i = 0; i < evidence->nodes; i++)
		free(evidence->shows[i]);
	free(evidence->shows);
	free(evidence->lines);
	free(evidence->logs);
	free(evidence->stall);
	sb_release(&evidence->booleans);
	free(evidence->wait);
	free(evidence->wait_hint);
	json_decref(evidence->hosts);
}

/* Collects the lines with which a node's log first went wrong, then its newest, oldest first. The
 * first `ret_survived` are known to be no cause; if there are any, only the newest lines are
 * kept. */
static size_t telling_lines(const struct node_log *log, struct failure_line *ret,
			    size_t *ret_survived)
{
	size_t survived = first_cause_survived(log->watch->cause, (size_t)log->node);
	size_t last = log->lines < LAST_LINES ? log->lines : LAST_LINES;
	size_t first = log->lines - last;
	size_t count = first_cause_get(log->watch->cause, (size_t)log->node, first, ret);

	*ret_survived = 0;
	for (size_t i = first; i < log->lines; i++) {
		size_t slot = i % LAST_LINES;

		if (i < survived)
			*ret_survived = count + 1;

		ret[count++] = (struct failure_line){ log->last[slot], log->last_len[slot] };
	}
	return count;
}

/* Lists the plan's hyperparameters that are true or false, "a, b". */
static void add_booleans(const json_t *plan, struct sb *names)
{
	const char *name;
	json_t *value;

	json_object_foreach (js_path(plan, "spec.hyperparameters"), name, value)
		if (json_is_boolean(value))
			sb_addf(names, "%s%s", names->len > 0 ? ", " : "", name);
}

/* Returns the hint that shows the whole log of a node; NULL if there is nothing to show. The caller
 * frees it. */
static char *show_words(const struct attempt_watch *watch, int node)
{
	const char *run = watch->driver->run, *phase = flow_phase_names[watch->phase];

	if (watch->unread || watch->logs[node].lines == 0)
		return NULL;
	if (watch->nodes > 1)
		return mem_format("'stoker logs %s --phase %s --attempt %lld --node %d' shows all "
				  "of its output",
				  run, phase, (long long)watch->attempt, node);
	return mem_format("'stoker logs %s --phase %s --attempt %lld' shows all of its output", run,
			  phase, (long long)watch->attempt);
}

/* Collects what every node said, and when and by which signal each ended. A signal is no cause if
 * the agent stopped its node. */
static int gather_logs(struct attempt_watch *watch, struct end_evidence *ret, struct err **err)
{
	struct failure_line *lines;

	ret->nodes = (size_t)watch->nodes;
	ret->lines = lines = mem_zero(ret->nodes * NODE_LINES, sizeof *lines);
	ret->logs = mem_zero(ret->nodes, sizeof *ret->logs);
	ret->shows = mem_zero(ret->nodes, sizeof *ret->shows);
	ret->hosts = json_array();
	for (int node = 0; node < watch->nodes; node++) {
		AUTO(node_report_release) struct node_report report = { 0 };
		size_t survived, count = telling_lines(&watch->logs[node], lines, &survived);
		struct failure_log *log = &ret->logs[node];

		if (attempt_report(watch, node, &report, err) < 0)
			return -1;
		json_array_append_new(ret->hosts, json_string(report.host ? report.host : ""));
		ret->shows[node] = show_words(watch, node);
		*log = (struct failure_log){ .node = node,
					     .lines = lines,
					     .count = count,
					     .survived = survived,
					     .show = ret->shows[node] };
		log->ended_ms = report.ended;
		if (!report.stopped)
			log->signal = (int)report.signal;
		lines += NODE_LINES;
	}
	ret->e.logs = ret->logs;
	ret->e.log_count = ret->nodes;
	return 0;
}

/* Returns why the agents stopped the command, as the flow calls it. */
static enum failure_stopped stopped_of(const struct node_report *report)
{
	static const struct {
		const char *word;
		enum failure_stopped stopped;
	} words[] = {
		{ STOPPED_TIMEOUT, FAILURE_STOPPED_TIMEOUT },
		{ STOPPED_STALL, FAILURE_STOPPED_STALL },
		{ STOPPED_DRAIN, FAILURE_STOPPED_DRAIN },
		{ STOPPED_WORKER, FAILURE_STOPPED_WORKER },
	};

	if (!report->stopped)
		return FAILURE_NOT_STOPPED;
	for (size_t i = 0; i < STK_LENGTH(words); i++)
		if (node_report_was_stopped(report, words[i].word))
			return words[i].stopped;
	return FAILURE_STOPPED_OTHER;
}

/* The silence of a command that made no progress any more, in the agent's words. */
static char *stall_words(const struct node_report_stall *stall)
{
	AUTO(auto_free) char *silent = text_format_duration(stall->silent_ms);
	AUTO(auto_free) char *limit = text_format_duration(stall->limit_ms);

	return mem_format("no progress for %s (limit %s), last seen at: %s", silent, limit,
			  stall->doing ? stall->doing : "?");
}

/* True if the training has made its last step. */
static bool has_finished(const struct attempt_watch *watch)
{
	int64_t of =
		js_int(js_path(watch->driver->plan, "steps"), flow_phase_names[watch->phase], 0);
	struct step_progress progress = metrics_progress(watch->metrics);

	return flow_phases[watch->phase].reads_steps && of > 0 && progress.known &&
	       progress.step >= of;
}

/* Adds who stopped the command, and why. */
static void gather_stop(const struct attempt_watch *watch, const struct engine_status *status,
			const struct node_report *report, struct end_evidence *ret)
{
	struct failure_evidence *e = &ret->e;

	e->stopped = stopped_of(report);
	if (e->stopped == FAILURE_STOPPED_STALL)
		e->stall = ret->stall = stall_words(&report->stall);
	e->finished = has_finished(watch);
	e->requested = watch->driver->flow.stop_requested;
	e->taken_down = status->taken_down;
	if (!watch->worker)
		return;
	e->worker = js_str(watch->worker, "why");
	e->worker_hint = js_str(watch->worker, "hint");
	e->worker_node = watch->worker_node;
}

static int gather_evidence(struct attempt_watch *watch, const struct engine_status *status,
			   const struct node_report *report, struct end_evidence *ret,
			   struct err **err)
{
	const char *class = report->error.class;
	int agent_class = class ? flow_name_find(flow_class_names, CLASS_COUNT, class) : -1;

	ret->e = (struct failure_evidence){
		.phase = watch->phase,
		.node = status->node,
		.exit_known = status->exit_known,
		.exit = status->exit,
		.signal = (int)report->signal,
		.engine_reason = status->reason,
		.agent_class = agent_class > 0 ? (enum failure_class)agent_class : CLASS_NONE,
		.agent_message = report->error.message,
		.agent_hint = report->error.hint,
		.agent_mount = report->mount,
		.out_of_memory = report->oom,
		.own = own_rows_get(watch->own),
		.unread = watch->unread ? watch->unread->message : NULL,
		.unread_hint = watch->unread ? watch->unread->hint : NULL,
	};
	add_booleans(watch->driver->plan, &ret->booleans);
	ret->e.booleans = ret->booleans.text;
	gather_stop(watch, status, report, ret);
	return gather_logs(watch, ret, err);
}

/* A command that was stopped at a time limit may have waited for a cache lock that nobody holds any
 * more. True if it has. */
static bool gather_wait(const struct attempt_watch *watch, struct end_evidence *ret)
{
	AUTO(err_freep) struct err *ignored = NULL; /* the wait only adds an explanation */
	const struct verify_request request = {
		.kind = watch->driver->kind,
		.store = watch->driver->cache,
		.tally = watch->tally,
	};

	if (!request.store || cache_find_wait(&request, &ret->wait, &ret->wait_hint, &ignored) < 0)
		return false;
	ret->e.wait = ret->wait;
	ret->e.wait_hint = ret->wait_hint;
	return ret->wait != NULL;
}

/* True if the name of a machine is known. */
static bool names_any(const json_t *hosts)
{
	const json_t *host;
	size_t i;

	json_array_foreach (hosts, i, host)
		if (json_string_length(host) > 0)
			return true;
	return false;
}

/* Has the flow classify what ended the attempt. The cache is asked only about a hang. `ret_hosts`
 * is a new reference, or NULL if no machine is known. */
static int classify_end(struct attempt_watch *watch, const struct engine_status *status,
			const struct node_report *report, struct failure_classification *ret,
			json_t **ret_hosts, struct err **err)
{
	AUTO(end_evidence_release)
	struct end_evidence evidence = { .booleans = SB_INIT_MAX(BOOLEANS_MAX) };

	if (gather_evidence(watch, status, report, &evidence, err) < 0)
		return -1;
	failure_classify(&evidence.e, ret);
	if (ret->class == CLASS_TIMEOUT_HANG && gather_wait(watch, &evidence))
		failure_classify(&evidence.e, ret);
	*ret_hosts = names_any(evidence.hosts) ? TAKE(evidence.hosts) : NULL;
	return 0;
}

/* True if the command was not started because it would have used another compiler. */
static bool was_refused(const struct attempt_watch *watch,
			const struct failure_classification *classification,
			const struct node_report *report)
{
	return !flow_phases[watch->phase].is_trial && classification->class == CLASS_COMPILE &&
	       report->started == 0 && report->compiler.pair;
}

/* Number of graphs on which the compiler failed in phase 1; 0 if the script failed first: then the
 * script is the cause. */
static int64_t failed_graphs(const struct attempt_watch *watch)
{
	struct graph_tally_front_end front_end;
	struct graph_tally_counts counts;

	if (!flow_phases[watch->phase].is_trial)
		return 0;
	graph_tally_front_end(watch->tally, &front_end);
	graph_tally_counts(watch->tally, &counts);
	return front_end.script_failed ? 0 : counts.compile_failed;
}

/* A command that ended well and left tasks undone has not done what it was asked for. */
static void classify_tasks(const struct attempt_watch *watch, struct failure_classification *ret)
{
	const struct flow *flow = &watch->driver->flow;
	int64_t tasks = flow->policy.stages[watch->phase].tasks;

	if (!flow_phases[watch->phase].has_tasks || ret->class != CLASS_NONE ||
	    watch->tasks_unseen || flow->tasks_done >= tasks)
		return;
	ret->class = CLASS_UNKNOWN;
	ret->rule = "tasks-missing";
	snprintf(ret->evidence, sizeof ret->evidence,
		 "the command ended well, and %lld of %lld tasks have no result",
		 (long long)(tasks - flow->tasks_done), (long long)tasks);
	snprintf(ret->signature, sizeof ret->signature, "unknown/tasks-missing/%016llx",
		 (unsigned long long)flow->tasks_done);
}

/* Returns when a benchmark saved, as its node 0 tells it: a new array. */
static int gather_saves(struct attempt_watch *watch, json_t **ret, struct err **err)
{
	AUTO(node_report_release) struct node_report report = { 0 };
	char from[UTC_TEXT], to[UTC_TEXT];
	const json_t *save;
	size_t i;

	*ret = json_array();
	if (!json_is_true(json_object_get(watch->driver->plan, "benchmark")))
		return 0;
	if (attempt_report(watch, 0, &report, err) < 0)
		return -1;
	json_array_foreach (report.checkpoint.saves, i, save) {
		struct utc begin = { json_integer_value(json_array_get(save, 0)) };
		struct utc end = { json_integer_value(json_array_get(save, 1)) };

		json_array_append_new(*ret,
				      json_pack("{s:s, s:s}", "from", clock_utc_format(begin, from),
						"to", clock_utc_format(end, to)));
	}
	return 0;
}

/* Returns a cure that this machine and the plan tell of, and not the evidence; NULL: none. */
static char *find_cure(const struct attempt_watch *watch,
		       const struct failure_classification *classification)
{
	const json_t *plan = watch->driver->plan;
	char *ret = unpassed_hint(plan, watch->phase, classification);

	return ret ? ret : missed_right_hint(plan, classification);
}

int attempt_end_record(struct attempt_watch *watch, const struct engine_status *status,
		       struct err **err)
{
	AUTO(err_freep) struct err *unknown = NULL;
	AUTO(node_report_release) struct node_report report = { 0 };
	AUTO(tasks_failed_release) struct tasks_failed failed = { 0 };
	json_auto_t *outputs = NULL, *hosts = NULL, *saves = NULL;
	AUTO(auto_free) char *found = NULL;
	struct failure_classification classification;
	struct event ev;
	int64_t ended_ms;

	/* Outputs are no evidence of how the attempt ended: an error only leaves them out. */
	if (outputs_gather(watch, &outputs, &unknown) < 0)
		outputs = NULL;
	if (attempt_report(watch, status->node, &report, err) < 0 ||
	    classify_end(watch, status, &report, &classification, &hosts, err) < 0)
		return -1;
	classify_tasks(watch, &classification);
	if (versions_record(watch, err) < 0 || gather_saves(watch, &saves, err) < 0)
		return -1;
	ended_ms = report.has_ended ? report.ended : status->last_seen.ms;
	attempt_event(watch, EV_ATTEMPT_ENDED, &ev);
	EVENT_SET_STR(&ev, job, watch->job);
	EVENT_SET(&ev, node, classification.end_node);
	if (watch->nodes > 1)
		EVENT_SET(&ev, nodes, watch->nodes);
	EVENT_SET(&ev, class, classification.class);
	if (status->exit_known)
		EVENT_SET(&ev, exit, status->exit);
	if (report.signal > 0)
		EVENT_SET(&ev, signal, report.signal);
	if (report.started > 0)
		EVENT_SET(&ev, started, report.started);
	if (ended_ms > 0)
		EVENT_SET(&ev, finished, ended_ms);
	EVENT_SET_STR(&ev, stopped, report.stopped);
	EVENT_SET_STR(&ev, mount, report.mount);
	if (node_report_was_stopped(&report, STOPPED_STALL))
		EVENT_SET(&ev, hang, report.stall.silent_ms);
	if (classification.class != CLASS_NONE)
		EVENT_SET_STR(&ev, signature, classification.signature);
	if (classification.node != classification.end_node)
		EVENT_SET(&ev, cause_node, classification.node);
	found = find_cure(watch, &classification);
	if (classification.class != CLASS_NONE || watch->unread) {
		EVENT_SET_STR(&ev, evidence,
			      classification.evidence[0] ? classification.evidence : NULL);
		EVENT_SET_STR(&ev, hint, classification.hint[0] ? classification.hint : NULL);
		if (found)
			EVENT_SET_STR(&ev, hint, found);
	}
	failed.node = classification.node;
	if (tasks_put_failed(watch, &failed, &ev, err) < 0)
		return -1;
	if (classification.class != CLASS_NONE && failed_graphs(watch) > 0)
		EVENT_SET(&ev, failed, failed_graphs(watch));
	if (was_refused(watch, &classification, &report)) {
		EVENT_SET(&ev, changed, report.compiler.changed);
		EVENT_SET_STR(&ev, signature, report.compiler.pair);
	}
	if (outputs)
		EVENT_SET(&ev, outputs, outputs);
	if (json_array_size(saves) > 0)
		EVENT_SET(&ev, saves, saves);
	if (hosts)
		EVENT_SET(&ev, hosts, hosts);
	EVENT_SET(&ev, by_driver, watch->driver->flow.stop_requested);
	attempt_cost_ended(watch->driver, status, &ev);
	if (driver_record(watch->driver, &ev, err) < 0)
		return -1;
	outputs_record(watch, outputs);
	return 0;
}
