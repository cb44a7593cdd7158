/*
 * After a salvage: finds out what the lost events were about, before anything is submitted.
 *
 * An attempt that was submitted has its order in the workspace, under a name that is known, and so
 * has its job on the engine. Only the newest attempt can be under way, because an attempt that the
 * engine has not reported ended is never replaced. It is journalled again as intended, from its
 * order; then the engine is asked for its job as after any submission of unknown outcome. The cost
 * of an attempt before it, and its failure, are not found out again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/run/driver_internal.h"
#include "jobs/store/order.h"

struct settle_attempt {
	enum phase phase;
	int64_t attempt; /* 0: none */
	bool over;       /* the engine says that nothing of it runs */
	struct utc ordered;
	struct order order; /* all zero if it cannot be read */
};

struct settle {
	struct driver *driver;
	struct settle_attempt newest[PHASE_COUNT]; /* newest of each phase that is not journalled */
	const struct settle_attempt *last;         /* the one that may be under way; NULL: none */
};

static void settle_release(struct settle *settle)
{
	for (int phase = 0; phase < PHASE_COUNT; phase++)
		order_release(&settle->newest[phase].order);
}

/* Notes a folder of an attempt, such as "train-3". */
static int note_folder(void *arg, const char *name, struct err **err)
{
	struct settle *settle = arg;

	(void)err;
	for (int phase = 0; phase < PHASE_COUNT; phase++) {
		size_t len = strlen(flow_phase_names[phase]);
		struct settle_attempt *newest = &settle->newest[phase];
		int64_t number;

		if (strncmp(name, flow_phase_names[phase], len) != 0 || name[len] != '-')
			continue;
		number = strtoll(name + len + 1, NULL, 10);
		if (number <= settle->driver->flow.attempts[phase] || number <= newest->attempt)
			continue;
		newest->phase = (enum phase)phase;
		newest->attempt = number;
	}
	return 0;
}

/* An order that is absent or cannot be read leaves the names, which are known without it. */
static int read_order(struct settle *settle, struct settle_attempt *found, struct err **err)
{
	struct driver *driver = settle->driver;
	AUTO(auto_free)
	char *prefix = order_attempt_prefix(driver->run, found->phase, found->attempt);
	AUTO(auto_free) char *key = mem_format("%s%s", prefix, ORDER_FILE);
	AUTO(sb_release) struct sb text = SB_INIT_MAX(ORDER_MAX);
	AUTO(err_freep) struct err *unread = NULL;
	struct store_object object;
	json_auto_t *json = NULL;
	int there = store_stat(driver->workspace, key, &object, err);

	if (there <= 0)
		return there;
	found->ordered = object.modified;
	if (store_get(driver->workspace, key, ORDER_MAX, &text, NULL, err) < 0)
		return -1;
	if (js_parse(text.text ? text.text : "", text.len, key, &json, &unread) == 0)
		(void)!message_decode(order_message, json, &found->order, &unread);
	return 0;
}

/* Asks the engine of a stage whether anything of an attempt runs. -1: it does not say. */
static int look_at(struct driver *driver, enum phase stage, enum phase phase, int64_t attempt,
		   bool *ret_over, struct err **err)
{
	AUTO(auto_free) char *prefix = order_attempt_prefix(driver->run, phase, attempt);
	AUTO(auto_free) char *job = order_job_name(driver->run, phase, attempt);
	struct engine_status status = { .state = ENGINE_UNKNOWN };
	int found;

	*ret_over = false;
	if (job_engine_enter(driver, stage, err) < 0)
		return -1;
	found = driver->engine->ops->find(driver->engine, job, prefix, err);
	*ret_over = found == 0;
	if (found <= 0)
		return found;
	if (driver->engine->ops->describe(driver->engine, job, prefix, &status, err) < 0)
		return -1;
	*ret_over = status.state == ENGINE_ENDED;
	if (status.state == ENGINE_UNKNOWN)
		return err_set(err, EXIT_UNREACHABLE,
			       "the engine does not say whether job %s runs%s%s", job,
			       status.reason[0] ? ": " : "", status.reason);
	return 0;
}

/* The same of whichever engine has it: phase 1 has that of the stage that it compiles for. */
static int look(struct driver *driver, enum phase phase, int64_t attempt, bool *ret_over,
		struct err **err)
{
	const struct flow_policy *policy = &driver->flow.policy;

	if (!flow_phases[phase].is_trial)
		return look_at(driver, phase, phase, attempt, ret_over, err);
	*ret_over = true;
	for (enum phase stage = PHASE_TRAIN; stage < PHASE_COUNT && *ret_over; stage++)
		if ((stage == PHASE_TRAIN || flow_needs_cache(policy, stage)) &&
		    look_at(driver, stage, phase, attempt, ret_over, err) < 0)
			return -1;
	return 0;
}

/* An attempt that another one has replaced runs all the same: it is ended, and waited for. */
static int end_replaced(struct driver *driver, enum phase phase, int64_t attempt, struct err **err)
{
	AUTO(auto_free) char *job = order_job_name(driver->run, phase, attempt);

	if (driver_keep(driver, err) < 0 || driver_stop_job(driver, phase, attempt, job, err) < 0)
		return -1;
	return err_set(err, EXIT_UNREACHABLE,
		       "job %s runs although a later attempt was begun; it was told to end", job);
}

/* Chooses the attempt that may be under way: the one that runs, else the one ordered last. */
static int choose_last(struct settle *settle, struct err **err)
{
	for (int phase = 0; phase < PHASE_COUNT; phase++) {
		struct settle_attempt *found = &settle->newest[phase];
		const struct settle_attempt *last = settle->last;

		if (found->attempt == 0)
			continue;
		if (read_order(settle, found, err) < 0 ||
		    look(settle->driver, found->phase, found->attempt, &found->over, err) < 0)
			return -1;
		if (!last || (last->over && !found->over) ||
		    (last->over == found->over && found->ordered.ms >= last->ordered.ms))
			settle->last = found;
	}
	return 0;
}

/* All attempts before the last one have ended, or are told to. */
static int end_others(struct settle *settle, struct err **err)
{
	struct driver *driver = settle->driver;
	const struct flow *flow = &driver->flow;
	bool over;

	if (!settle->last)
		return 0;
	for (int phase = 0; phase < PHASE_COUNT; phase++) {
		const struct settle_attempt *found = &settle->newest[phase];
		bool open = flow_attempt_is_open(flow) && (int)flow->phase == phase;
		int64_t first = open ? flow->attempt : flow->attempts[phase] + 1;
		int64_t last = found->attempt > 0 || !open ? found->attempt : flow->attempt;

		for (int64_t attempt = first; attempt <= last; attempt++) {
			if (found == settle->last && attempt == found->attempt)
				continue;
			if (look(driver, (enum phase)phase, attempt, &over, err) < 0)
				return -1;
			if (!over)
				return end_replaced(driver, (enum phase)phase, attempt, err);
		}
	}
	return 0;
}

static int record_intent(struct driver *driver, const struct settle_attempt *found,
			 struct err **err)
{
	AUTO(auto_free) char *job = order_job_name(driver->run, found->phase, found->attempt);
	const struct order *order = &found->order;
	char nonce[FLOW_ID_MAX];
	struct event ev = { .kind = EV_ATTEMPT_INTENDED };
	int stage = order->stage ? flow_name_find(flow_phase_names, PHASE_COUNT, order->stage) : -1;

	flow_nonce(&driver->flow, found->phase, found->attempt, nonce);
	EVENT_SET(&ev, phase, found->phase);
	EVENT_SET(&ev, attempt, found->attempt);
	EVENT_SET_STR(&ev, job, order->job ? order->job : job);
	EVENT_SET_STR(&ev, nonce, order->nonce ? order->nonce : nonce);
	EVENT_SET(&ev, nodes,
		  flow_nodes(&driver->flow.policy, stage >= 0 ? (enum phase)stage : found->phase));
	if (stage >= 0)
		EVENT_SET(&ev, stage, (enum phase)stage);
	if (order->resume_from && order->has_resume_step) {
		EVENT_SET_STR(&ev, resumed_from, order->resume_from);
		EVENT_SET(&ev, step, order->resume_step);
	}
	if (order->has_compile && order->compile.has_workers)
		EVENT_SET(&ev, workers, order->compile.workers);
	if (order->has_compile)
		EVENT_SET_STR(&ev, graph_key, order->compile.lock);
	return driver_record(driver, &ev, err);
}

/* The stop that was requested in the damaged part. */
static int record_stop(struct driver *driver, struct err **err)
{
	struct event ev = { .kind = EV_REQUEST_STOP };

	if (!driver->facts.stop_lost || driver->flow.stop_requested ||
	    driver->flow.state == FLOW_ENDING)
		return 0;
	EVENT_SET_STR(&ev, reason,
		      driver->facts.lost_stop[0] ? driver->facts.lost_stop
						 : "requested before the journal was damaged");
	return driver_record(driver, &ev, err);
}

static int record_settled(struct driver *driver, const struct settle *settle, struct err **err)
{
	struct event ev = { .kind = EV_JOURNAL_SETTLED };
	AUTO(auto_free) char *words = NULL;

	if (settle->last)
		words = mem_format(
			"the workspace has an order of %s %lld, which the journal lacked; "
			"on the engine it %s",
			flow_phase_names[settle->last->phase], (long long)settle->last->attempt,
			settle->last->over ? "has ended or never was" : "is under way");
	EVENT_SET_STR(&ev, reason,
		      words ? words : "the workspace has no attempt that the journal lacks");
	return driver_record(driver, &ev, err);
}

int settle_run(struct driver *driver, struct err **err)
{
	AUTO(settle_release) struct settle settle = { .driver = driver };
	AUTO(auto_free) char *prefix = mem_format("runs/%s/", driver->run);
	const struct settle_attempt *last;

	if (store_folders(driver->workspace, prefix, note_folder, &settle, err) < 0 ||
	    choose_last(&settle, err) < 0 || end_others(&settle, err) < 0)
		return err_wrap(err, "cannot find out yet what is under way");
	last = settle.last;
	/* The run has ended or is about to, and so has its last attempt. */
	if (last && last->over && driver->flow.state == FLOW_ENDING)
		last = NULL;
	for (int phase = 0; last && phase < PHASE_COUNT; phase++)
		if (settle.newest[phase].attempt > 0 && &settle.newest[phase] != last &&
		    record_intent(driver, &settle.newest[phase], err) < 0)
			return -1;
	if (last && record_intent(driver, last, err) < 0)
		return -1;
	return record_stop(driver, err) < 0 ? -1 : record_settled(driver, &settle, err);
}
