/* How an attempt ended: evidence from the engine, the agents and the logs. */
#include <string.h>

#include "jobs/base/text/text.h"
#include "jobs/cache/verdict/cache_verdict.h"
#include "jobs/flow/failure.h"
#include "jobs/run/attempt/outputs.h"
#include "jobs/run/attempt/toolkit_monitor.h"
#include "jobs/run/attempt/watch_internal.h"
#include "jobs/store/order.h"

#define BOOLEANS_MAX ((size_t)400) /* bytes of names in a cure */

#define NODE_LINES (CAUSE_LINES + LAST_LINES) /* lines judged per node */

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

/* Collects what every node said, in `ret` and `lines` (NODE_LINES per node), and when and by which
 * signal each ended. A signal is no cause if the agent stopped its node. */
static int last_words(struct attempt_watch *watch, struct failure_log *ret,
		      struct failure_line *lines, struct err **err)
{
	for (int node = 0; node < watch->nodes; node++) {
		json_auto_t *report = NULL;
		size_t survived, count = telling_lines(&watch->logs[node], lines, &survived);

		if (attempt_report(watch, node, &report, err) < 0)
			return -1;
		ret[node] = (struct failure_log){
			.node = node, .lines = lines, .count = count, .survived = survived
		};
		ret[node].ended_ms = js_int(report, "ended", 0);
		if (!js_str(report, "stopped"))
			ret[node].signal = (int)js_int(report, "signal", 0);
		lines += NODE_LINES;
	}
	return 0;
}

/* True if the driver wanted the end: on request, at a limit, or because the attempt did not go on
 * from its checkpoint. */
static bool is_ours(const struct attempt_watch *watch)
{
	const struct flow *flow = &watch->driver->flow;

	return flow->stop_requested || flow->mismatch || flow->limit != LIMIT_NONE;
}

static void blame_hang(struct failure_verdict *ret, const char *evidence, const char *hint)
{
	ret->class = CLASS_TIMEOUT_HANG;
	snprintf(ret->evidence, sizeof ret->evidence, "%s", evidence);
	ret->proof = strlen(ret->evidence);
	snprintf(ret->hint, sizeof ret->hint, "%s", hint);
}

/* Verdict on a command that made no progress any more, in the agent's words. */
static void blame_stall(struct failure_verdict *ret, const json_t *stall)
{
	AUTO(auto_free) char *silent = text_format_duration(js_int(stall, "silent_ms", 0));
	AUTO(auto_free) char *limit = text_format_duration(js_int(stall, "limit_ms", 0));
	const char *doing = js_str(stall, "doing");
	AUTO(auto_free)
	char *words = mem_format("no progress for %s (limit %s), last seen at: %s", silent, limit,
				 doing ? doing : "?");

	blame_hang(ret, words,
		   "if that was no hang, raise limits.stall, or print the step more often");
}

/* A command that was stopped at a time limit may have waited for a cache lock that nobody holds any
 * more: then that is the evidence and the cure. */
static void blame_lock(const struct attempt_watch *watch, struct failure_verdict *ret)
{
	AUTO(err_freep) struct err *ignored = NULL; /* the wait only adds an explanation */
	struct verify_request request = {
		.kind = watch->driver->kind,
		.store = watch->driver->cache,
		.book = watch->book,
	};
	AUTO(auto_free) char *words = NULL;
	AUTO(auto_free) char *hint = NULL;
	size_t len = strlen(ret->evidence);

	if (!request.store || cache_find_wait(&request, &words, &hint, &ignored) < 0 || !words)
		return;
	snprintf(ret->evidence + len, sizeof ret->evidence - len, "; %s", words);
	snprintf(ret->hint, sizeof ret->hint, "%s", hint);
}

/* The machine was taken away, or somebody stopped the agent by hand: the engine may know which. */
static void blame_stranger(const struct engine_status *status, struct failure_verdict *ret)
{
	struct failure_evidence engine = { .engine_reason = status->reason };
	struct failure_verdict said;

	failure_judge(&engine, &said);
	if (said.class == CLASS_SPOT || said.class == CLASS_STOPPED ||
	    said.class == CLASS_TIMEOUT_HANG) {
		*ret = said;
		return;
	}
	ret->class = CLASS_UNKNOWN;
	ret->rule = "told-to-stop";
	snprintf(ret->evidence, sizeof ret->evidence,
		 "its node agent was told to stop, by none of ours; the command then ended with 0");
	ret->proof = strlen(ret->evidence);
}

/* Somebody else asked the service for the end: a stop, whatever agents and logs say. */
static void blame_nobody(const struct engine_status *status, struct failure_verdict *ret)
{
	struct failure_evidence engine = { .engine_reason = status->reason };

	failure_judge(&engine, ret);
	ret->class = CLASS_STOPPED;
	ret->hint[0] = '\0';
}

/* True if all nodes were drained because a worker process of an agent stayed dead. */
static bool is_for_worker(const struct attempt_watch *watch, const json_t *report)
{
	return watch->worker && !is_ours(watch) && order_report_was_drained(report);
}

static void blame_worker(const struct attempt_watch *watch, struct failure_verdict *ret)
{
	const char *hint = js_str(watch->worker, "hint");

	ret->class = CLASS_HARDWARE_NODE;
	ret->rule = "worker-lost";
	ret->node = watch->worker_node;
	snprintf(ret->evidence, sizeof ret->evidence, "%s", js_str(watch->worker, "why"));
	ret->proof = strlen(ret->evidence);
	snprintf(ret->hint, sizeof ret->hint, "%s", hint ? hint : "");
}

/* True if the command was drained after its last step: it is as complete as without the drain. */
static bool had_finished(const struct attempt_watch *watch, const json_t *report)
{
	int64_t of =
		js_int(js_path(watch->driver->plan, "steps"), flow_phase_names[watch->phase], 0);
	struct step_progress progress = metrics_progress(watch->metrics);

	return watch->phase == PHASE_TRAIN && order_report_was_drained(report) && of > 0 &&
	       progress.known && progress.step >= of;
}

/* Without a known cure, points to the log of the node if there is one. */
static void hint_at_log(const struct attempt_watch *watch, struct failure_verdict *ret)
{
	if (ret->hint[0] || watch->unread || ret->node < 0 || ret->node >= watch->nodes ||
	    watch->logs[ret->node].lines == 0)
		return;
	if (watch->nodes > 1)
		snprintf(ret->hint, sizeof ret->hint,
			 "'stoker logs %s --phase %s --attempt %lld --node %d' shows all that it "
			 "said",
			 watch->driver->run, flow_phase_names[watch->phase],
			 (long long)watch->attempt, ret->node);
	else
		snprintf(ret->hint, sizeof ret->hint,
			 "'stoker logs %s --phase %s --attempt %lld' shows all that it said",
			 watch->driver->run, flow_phase_names[watch->phase],
			 (long long)watch->attempt);
}

/* Adds why a log could not be read, and the hint that cures it. */
static void tell_unread(const struct attempt_watch *watch, struct failure_verdict *ret)
{
	size_t len = strlen(ret->evidence);

	if (!watch->unread)
		return;
	snprintf(ret->evidence + len, sizeof ret->evidence - len, "%sits log could not be read: %s",
		 len > 0 ? "; " : "", watch->unread->message);
	if (!ret->hint[0] && watch->unread->hint)
		snprintf(ret->hint, sizeof ret->hint, "%s", watch->unread->hint);
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

/* Judges what ended the attempt, from the engine, the agents and the logs. An end that the driver
 * itself asked for needs no other cause. */
static int judge_end(struct attempt_watch *watch, const struct engine_status *status,
		     const json_t *report, struct failure_verdict *ret, struct err **err)
{
	const json_t *trouble = json_object_get(report, "error");
	const char *class = js_str(trouble, "class");
	int agent_class = class ? flow_name_find(flow_class_names, CLASS_COUNT, class) : -1;
	size_t nodes = (size_t)watch->nodes;
	AUTO(auto_free) struct failure_line *lines = mem_zero(nodes * NODE_LINES, sizeof *lines);
	AUTO(auto_free) struct failure_log *logs = mem_zero(nodes, sizeof *logs);
	AUTO(sb_release) struct sb booleans = SB_INIT_MAX(BOOLEANS_MAX);
	struct failure_evidence evidence = {
		.phase = watch->phase,
		.node = status->node,
		.exit_known = status->exit_known,
		.exit = status->exit,
		.signal = (int)js_int(report, "signal", 0),
		.engine_reason = status->reason,
		.agent_class = agent_class > 0 ? (enum failure_class)agent_class : CLASS_NONE,
		.agent_message = js_str(trouble, "message"),
		.agent_hint = js_str(trouble, "hint"),
		.agent_mount = js_str(report, "mount"),
		.out_of_memory = json_is_true(json_object_get(report, "oom")),
		.logs = logs,
		.log_count = nodes,
		.own = own_rows_get(watch->own),
	};

	if (last_words(watch, logs, lines, err) < 0)
		return -1;
	add_booleans(watch->driver->plan, &booleans);
	evidence.booleans = booleans.text;
	failure_judge(&evidence, ret);
	/* A drained command has not finished while steps are left, whatever its exit code. */
	if (ret->class == CLASS_NONE && (!js_str(report, "stopped") || had_finished(watch, report)))
		return 0;
	hint_at_log(watch, ret);
	if (status->taken_down && !is_ours(watch)) {
		blame_nobody(status, ret);
	} else if (js_is(report, "stopped", STOPPED_TIMEOUT)) {
		blame_hang(ret, "it ran longer than compile.timeout allows",
			   "raise compile.timeout, or lower compile.max_steps");
	} else if (js_is(report, "stopped", STOPPED_STALL)) {
		blame_stall(ret, json_object_get(report, "stall"));
	} else if (is_for_worker(watch, report)) {
		blame_worker(watch, ret);
	} else if (is_ours(watch) || js_is(report, "stopped", STOPPED_DRAIN)) {
		ret->class = CLASS_STOPPED;
		ret->hint[0] = '\0';
	} else if (ret->class == CLASS_NONE) {
		blame_stranger(status, ret);
	}
	if (ret->class == CLASS_TIMEOUT_HANG)
		blame_lock(watch, ret);
	failure_sign(ret);
	return 0;
}

/* True if the command was not started because it would have used another compiler. */
static bool was_refused(const struct attempt_watch *watch, const struct failure_verdict *verdict,
			const json_t *report)
{
	return watch->phase == PHASE_TRAIN && verdict->class == CLASS_COMPILE &&
	       js_int(report, "started", 0) == 0 && js_path(report, "compiler.pair");
}

/* Number of graphs on which the compiler failed in phase 1; 0 if the script failed first: then the
 * script is the cause. */
static int64_t failed_graphs(const struct attempt_watch *watch)
{
	struct graph_tally_front_end said;
	struct graph_tally_counts counts;

	if (watch->phase != PHASE_PRECOMPILE)
		return 0;
	graph_tally_front_end(watch->book, &said);
	graph_tally_counts(watch->book, &counts);
	return said.script_failed ? 0 : counts.compile_failed;
}

int attempt_end_record(struct attempt_watch *watch, const struct engine_status *status,
		       struct err **err)
{
	AUTO(err_freep) struct err *unknown = NULL;
	json_auto_t *report = NULL, *outputs = NULL;
	struct failure_verdict verdict;
	struct event ev;

	/* Outputs are no evidence of how the attempt ended: an error only leaves them out. */
	if (outputs_gather(watch, &outputs, &unknown) < 0)
		outputs = NULL;
	if (attempt_report(watch, status->node, &report, err) < 0 ||
	    judge_end(watch, status, report, &verdict, err) < 0)
		return -1;
	tell_unread(watch, &verdict);
	attempt_event(watch, EV_ATTEMPT_ENDED, &ev);
	EVENT_SET_STR(&ev, job, watch->job);
	EVENT_SET(&ev, node,
		  verdict.class == CLASS_HARDWARE_NODE && is_for_worker(watch, report)
			  ? watch->worker_node
			  : status->node);
	if (watch->nodes > 1)
		EVENT_SET(&ev, nodes, watch->nodes);
	EVENT_SET(&ev, class, verdict.class);
	if (status->exit_known)
		EVENT_SET(&ev, exit, status->exit);
	if (js_int(report, "signal", 0) > 0)
		EVENT_SET(&ev, signal, js_int(report, "signal", 0));
	if (js_int(report, "started", 0) > 0)
		EVENT_SET(&ev, started, js_int(report, "started", 0));
	if (js_int(report, "ended", status->last_seen.ms) > 0)
		EVENT_SET(&ev, finished, js_int(report, "ended", status->last_seen.ms));
	EVENT_SET_STR(&ev, stopped, js_str(report, "stopped"));
	EVENT_SET_STR(&ev, mount, js_str(report, "mount"));
	if (js_is(report, "stopped", STOPPED_STALL))
		EVENT_SET(&ev, hang, js_int(json_object_get(report, "stall"), "silent_ms", 0));
	if (verdict.class != CLASS_NONE)
		EVENT_SET_STR(&ev, signature, verdict.signature);
	if (verdict.class != CLASS_NONE || watch->unread) {
		EVENT_SET_STR(&ev, evidence, verdict.evidence[0] ? verdict.evidence : NULL);
		EVENT_SET_STR(&ev, hint, verdict.hint[0] ? verdict.hint : NULL);
	}
	if (verdict.class != CLASS_NONE && failed_graphs(watch) > 0)
		EVENT_SET(&ev, failed, failed_graphs(watch));
	if (was_refused(watch, &verdict, report)) {
		const json_t *compiler = json_object_get(report, "compiler");

		EVENT_SET(&ev, changed, json_object_get(compiler, "changed"));
		EVENT_SET_STR(&ev, signature, js_str(compiler, "pair"));
	}
	if (outputs)
		EVENT_SET(&ev, outputs, outputs);
	EVENT_SET(&ev, by_driver, is_ours(watch));
	attempt_cost_ended(watch->driver, status, &ev);
	if (driver_record(watch->driver, &ev, err) < 0)
		return -1;
	outputs_tell(watch, outputs);
	return 0;
}
