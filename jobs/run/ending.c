/* How an attempt ended: evidence from the engine, the agents and the logs. */
#include <string.h>

#include "jobs/base/text.h"
#include "jobs/cache/verdict.h"
#include "jobs/flow/failure.h"
#include "jobs/run/outside.h"
#include "jobs/run/watch_inside.h"
#include "jobs/store/order.h"

int watch_report(struct attempt_watch *watch, int node, json_t **ret, struct err **err)
{
	struct engine *engine = watch->driver->engine;

	if (watch->outside)
		return outside_report(watch, node, ret, err);
	if (engine->ops->report)
		return engine->ops->report(engine, watch->job, watch->prefix, node, ret, err);
	return report_read(watch->driver, watch->prefix, node, ret, err);
}

int report_read(const struct driver *driver, const char *prefix, int node, json_t **ret,
		struct err **err)
{
	AUTO(auto_free) char *key = mem_format("%snode-%d/%s", prefix, node, REPORT_FILE);
	AUTO(sb_release) struct sb text = SB_INIT;
	int found = store_get(driver->workspace, key, REPORT_MAX, &text, NULL, err);

	*ret = NULL;
	if (found <= 0)
		return found;
	return js_parse(text.text, text.len, "an agent's report", ret, err);
}

/* The newest lines of a node's log, oldest first. */
static size_t last_lines(const struct node_log *log, struct failure_line *ret)
{
	size_t count = log->lines < LAST_LINES ? log->lines : LAST_LINES;

	for (size_t i = 0; i < count; i++) {
		size_t slot = (log->lines - count + i) % LAST_LINES;

		ret[i] = (struct failure_line){ log->last[slot], log->last_len[slot] };
	}
	return count;
}

/* The newest lines of every node, in `ret` and `lines` (LAST_LINES a node), and
 * when and by which signal each ended. The signal of a node that its agent
 * stopped is no cause. */
static int last_words(struct attempt_watch *watch, struct failure_log *ret,
		      struct failure_line *lines, struct err **err)
{
	for (int node = 0; node < watch->nodes; node++) {
		json_auto_t *report = NULL;
		size_t count = last_lines(&watch->logs[node], lines);

		if (watch_report(watch, node, &report, err) < 0)
			return -1;
		ret[node] = (struct failure_log){ .node = node, .lines = lines, .count = count };
		ret[node].ended_ms = js_int(report, "ended", 0);
		if (!js_str(report, "stopped"))
			ret[node].signal = (int)js_int(report, "signal", 0);
		lines += LAST_LINES;
	}
	return 0;
}

/* We wanted it to end: on request, at a limit, or because it did not go on from
 * its checkpoint. */
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

/* The agent's words for a command that made no progress any more. */
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

/* A command that was stopped for its time may have waited for a lock that nobody holds
 * any more: that is the cure then. */
static int blame_lock(const struct attempt_watch *watch, struct failure_verdict *ret,
		      struct err **err)
{
	struct verify_request request = {
		.kind = watch->driver->kind,
		.store = watch->driver->cache,
		.book = watch->book,
	};
	AUTO(auto_free) char *words = NULL;
	AUTO(auto_free) char *hint = NULL;
	size_t len = strlen(ret->evidence);

	if (!request.store || cache_find_wait(&request, &words, &hint, err) < 0)
		return request.store ? -1 : 0;
	if (!words)
		return 0;
	snprintf(ret->evidence + len, sizeof ret->evidence - len, "; %s", words);
	snprintf(ret->hint, sizeof ret->hint, "%s", hint);
	return 0;
}

/* A machine that is taken away, or somebody at its keyboard: the engine may know which. */
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

/* It was told to save and leave, but had made its last step: it is as done as it would have
 * been unasked. */
static bool had_finished(const struct attempt_watch *watch, const json_t *report)
{
	int64_t of = js_int(js_path(watch->driver->plan, "steps"), phase_names[watch->phase], 0);
	struct step_progress progress = metrics_progress(watch->metrics);

	return watch->phase == PHASE_TRAIN && js_is(report, "stopped", STOPPED_DRAIN) && of > 0 &&
	       progress.known && progress.step >= of;
}

/* Where no cure is known. */
static void hint_at_log(const struct attempt_watch *watch, struct failure_verdict *ret)
{
	if (ret->hint[0] || watch->unread)
		return;
	if (watch->nodes > 1)
		snprintf(ret->hint, sizeof ret->hint,
			 "'stoker logs %s --node %d' shows all that it said", watch->driver->run,
			 ret->node);
	else
		snprintf(ret->hint, sizeof ret->hint, "'stoker logs %s' shows all that it said",
			 watch->driver->run);
}

/* What could not be looked at for a cause, and what cures that. */
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

/* What ended the attempt, from the engine, the agent and the log. What we
 * ourselves ended needs no search for a cause. */
static int judge_end(struct attempt_watch *watch, const struct engine_status *status,
		     const json_t *report, struct failure_verdict *ret, struct err **err)
{
	const json_t *trouble = json_object_get(report, "error");
	const char *class = js_str(trouble, "class");
	int agent_class = class ? name_find(class_names, CLASS_COUNT, class) : -1;
	size_t nodes = (size_t)watch->nodes;
	AUTO(auto_free) struct failure_line *lines = mem_zero(nodes * LAST_LINES, sizeof *lines);
	AUTO(auto_free) struct failure_log *logs = mem_zero(nodes, sizeof *logs);
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
	};

	if (last_words(watch, logs, lines, err) < 0)
		return -1;
	failure_judge(&evidence, ret);
	/* Who saves and leaves when told to has not finished, whatever the exit, while
	 * steps are left. */
	if (ret->class == CLASS_NONE && (!js_str(report, "stopped") || had_finished(watch, report)))
		return 0;
	hint_at_log(watch, ret);
	if (js_is(report, "stopped", STOPPED_TIMEOUT)) {
		blame_hang(ret, "it ran longer than compile.timeout allows",
			   "raise compile.timeout, or lower compile.max_steps");
	} else if (js_is(report, "stopped", STOPPED_STALL)) {
		blame_stall(ret, json_object_get(report, "stall"));
	} else if (is_ours(watch) || js_is(report, "stopped", STOPPED_DRAIN)) {
		ret->class = CLASS_STOPPED;
		ret->hint[0] = '\0';
	} else if (ret->class == CLASS_NONE) {
		blame_stranger(status, ret);
	}
	if (ret->class == CLASS_TIMEOUT_HANG && blame_lock(watch, ret, err) < 0)
		return -1;
	failure_sign(ret);
	return 0;
}

/* Its command was not begun, because it would have met another compiler. */
static bool was_refused(const struct attempt_watch *watch, const struct failure_verdict *verdict,
			const json_t *report)
{
	return watch->phase == PHASE_TRAIN && verdict->class == CLASS_COMPILE &&
	       js_int(report, "started", 0) == 0 && js_path(report, "compiler.pair");
}

/* Graphs on which the compiler failed in phase 1; 0 also where the script broke off first:
 * then that is what ended it. */
static int64_t failed_graphs(const struct attempt_watch *watch)
{
	struct book_front_end said;
	struct book_counts counts;

	if (watch->phase != PHASE_PRECOMPILE)
		return 0;
	book_front_end(watch->book, &said);
	book_counts(watch->book, &counts);
	return said.script_failed ? 0 : counts.compile_failed;
}

int record_end(struct attempt_watch *watch, const struct engine_status *status, struct err **err)
{
	json_auto_t *report = NULL;
	struct failure_verdict verdict;
	struct event ev;

	if (watch_report(watch, status->node, &report, err) < 0 ||
	    judge_end(watch, status, report, &verdict, err) < 0)
		return -1;
	tell_unread(watch, &verdict);
	watch_event(watch, EV_ATTEMPT_ENDED, &ev);
	EVENT_SET_STR(&ev, job, watch->job);
	EVENT_SET(&ev, node, status->node);
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
	EVENT_SET(&ev, by_driver, is_ours(watch));
	if (bill_ended(watch->driver, status, &ev, err) < 0)
		return -1;
	return driver_record(watch->driver, &ev, err);
}
