/* The notifications that are due: see notify_queue.h. */
#include "jobs/run/notify_queue.h"

#include <stdlib.h>
#include <string.h>

#include "jobs/run/driver_internal.h"
#include "jobs/run/journal/event_json.h"

/* The spec's words for notify[].when, and the event of each. */
static const struct {
	const char *name;
	enum event_kind on;
	enum outcome outcome; /* for run.ended */
	const char *verb;
} occasions[] = {
	{ "started", EV_RUN_CREATED, OUTCOME_SUCCEEDED, "has started" },
	{ "at_risk", EV_RUN_AT_RISK, OUTCOME_SUCCEEDED, "is at risk" },
	{ "at_risk", EV_CHECKPOINT_REJECTED, OUTCOME_SUCCEEDED,
	  "is at risk: its checkpoints are passed over for the second time" },
	{ "succeeded", EV_RUN_ENDED, OUTCOME_SUCCEEDED, "has succeeded" },
	{ "failed", EV_RUN_ENDED, OUTCOME_FAILED, "has failed" },
	{ "stopped", EV_RUN_ENDED, OUTCOME_STOPPED, "was stopped" },
	{ "promoted", EV_PROMOTE_DONE, OUTCOME_SUCCEEDED, "has promoted its model" },
	{ "gate", EV_RUN_ENDED, OUTCOME_REFUSED, "failed at a gate" },
};

static int occasion_of(const struct event *ev)
{
	for (size_t i = 0; i < STK_LENGTH(occasions); i++)
		if (occasions[i].on == ev->kind &&
		    (ev->kind != EV_RUN_ENDED || occasions[i].outcome == ev->state))
			return (int)i;
	return -1;
}

bool notify_queue_asks(const json_t *rule, const char *occasion)
{
	const json_t *when = json_object_get(rule, "when"), *word;
	size_t i;

	json_array_foreach (when, i, word)
		if (strcmp(json_string_value(word), occasion) == 0)
			return true;
	return false;
}

/* "run 7f… of digits has failed: no space on '/ckpt'; free some, then resume" */
static char *sentence(const struct driver *driver, int occasion, const struct event *ev)
{
	struct sb text = SB_INIT;

	sb_addf(&text, "run %s of %s %s", driver->run, js_str(driver->plan, "name"),
		occasions[occasion].verb);
	if (ev->kind == EV_RUN_AT_RISK)
		sb_addf(&text, ": limits.%s", flow_limit_names[ev->limit]);
	if (EVENT_HAS(ev, reason))
		sb_addf(&text, ": %s", ev->reason);
	if (EVENT_HAS(ev, hint))
		sb_addf(&text, "; %s", ev->hint);
	return sb_take(&text);
}

static char *body_of(const struct driver *driver, int occasion, const struct event *ev, size_t rule)
{
	AUTO(auto_free) char *id = mem_format("%s-%lld-%zu", driver->run, (long long)ev->seq, rule);
	AUTO(auto_free) char *text = sentence(driver, occasion, ev);
	json_auto_t *body = event_encode(driver->run, ev);

	json_object_del(body, "plan");
	js_put_str(body, "id", id);
	js_put_str(body, "occasion", occasions[occasion].name);
	js_put_str(body, "name", js_str(driver->plan, "name"));
	js_put_str(body, "text", text);
	return js_line(body);
}

static void add_message(struct driver *driver, int occasion, const struct event *ev, size_t rule)
{
	struct notify_message *message = mem_zero(1, sizeof *message), **last;

	message->driver = driver;
	message->about = ev->seq;
	message->rule = (int64_t)rule;
	message->occasion = occasions[occasion].name;
	message->body = body_of(driver, occasion, ev, rule);
	message->words_fd = -1;
	if (!driver->notify)
		driver->notify = mem_zero(1, sizeof *driver->notify);
	for (last = &driver->notify->first; *last; last = &(*last)->next)
		;
	*last = message;
}

static void drop_message(struct driver *driver, const struct event *ev)
{
	struct notify_message **at = driver->notify ? &driver->notify->first : NULL, *gone;

	while (at && *at && ((*at)->about != ev->about || (*at)->rule != ev->rule))
		at = &(*at)->next;
	if (!at || !*at)
		return;
	gone = *at;
	*at = gone->next;
	free(gone->body);
	free(gone->failure);
	free(gone);
}

void notify_queue_apply(struct driver *driver, const struct event *ev)
{
	const json_t *rules = json_object_get(driver->plan, "notify"), *rule;
	int occasion = occasion_of(ev);
	size_t i;

	if (ev->kind == EV_NOTIFY_SENT || ev->kind == EV_NOTIFY_FAILED)
		drop_message(driver, ev);
	/* A single one may be an accident. */
	if (occasion < 0 || (ev->kind == EV_CHECKPOINT_REJECTED && driver->facts.passed_count != 2))
		return;
	json_array_foreach (rules, i, rule)
		if (notify_queue_asks(rule, occasions[occasion].name))
			add_message(driver, occasion, ev, i);
}

bool notify_queue_pending(const struct driver *driver)
{
	return driver->notify && driver->notify->first;
}
