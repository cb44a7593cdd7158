/*
 * Attempts that did not end by themselves: who stopped them, or refused them,
 * outweighs how their command ended then. See failure.h.
 */
#include <string.h>

#include "jobs/flow/failure_internal.h"

/* Ends from outside, in the order in which they are believed. */
enum ending {
	ENDING_OWN,        /* none: the class of the command stands */
	ENDING_TAKEN_DOWN, /* somebody else asked the engine for it */
	ENDING_TIMEOUT,
	ENDING_STALL,
	ENDING_WORKER,          /* drained because a worker process of an agent stayed dead */
	ENDING_REQUESTED,       /* the driver wanted it */
	ENDING_EXTERNAL_SIGNAL, /* the agent was told to stop, and the command ended well */
	ENDING_COUNT
};

static const struct ending_row {
	enum failure_class class;
	/* NULL: as of the command; WORKER and STALL have words in the evidence */
	const char *rule, *evidence, *hint;
} ending_rows[ENDING_COUNT] = {
	[ENDING_TAKEN_DOWN] = { CLASS_STOPPED, NULL, NULL, "" },
	[ENDING_TIMEOUT] = { CLASS_TIMEOUT_HANG, NULL, "compile.timeout is exceeded",
			     "raise compile.timeout, or lower compile.max_steps" },
	[ENDING_STALL] = { CLASS_TIMEOUT_HANG, NULL, "",
			   "raise limits.stall, or print the step more often, if the command did "
			   "not hang" },
	[ENDING_WORKER] = { CLASS_HARDWARE_NODE, "worker-lost", "", "" },
	[ENDING_REQUESTED] = { CLASS_STOPPED, NULL, NULL, "" },
	[ENDING_EXTERNAL_SIGNAL] = { CLASS_UNKNOWN, "told-to-stop",
				     "the node agent got a stop signal that is not from stoker; "
				     "the command then ended with 0",
				     NULL },
};

/* Refusals that no words of the engine explain. */
static const enum failure_class refusal_rows[] = {
	[FAILURE_REFUSED_INVALID] = CLASS_USER_CONFIG,
	[FAILURE_REFUSED_DENIED] = CLASS_QUOTA_PERMISSION,
};

static bool was_drained(const struct failure_evidence *e)
{
	return e->stopped == FAILURE_STOPPED_DRAIN || e->stopped == FAILURE_STOPPED_WORKER;
}

static enum ending ending_find(const struct failure_evidence *e, enum failure_class own)
{
	if (e->taken_down && !e->requested)
		return ENDING_TAKEN_DOWN;
	if (e->stopped == FAILURE_STOPPED_TIMEOUT)
		return ENDING_TIMEOUT;
	if (e->stopped == FAILURE_STOPPED_STALL)
		return ENDING_STALL;
	if (e->worker && !e->requested && was_drained(e))
		return ENDING_WORKER;
	if (e->requested || e->stopped == FAILURE_STOPPED_DRAIN)
		return ENDING_REQUESTED;
	return own == CLASS_NONE ? ENDING_EXTERNAL_SIGNAL : ENDING_OWN;
}

static void set_text(char *text, size_t size, const char *words)
{
	struct fixed_string string;

	failure_text_start(&string, text, size);
	failure_text_adds(&string, words ? words : "");
}

static void add_text(char *text, size_t size, const char *words)
{
	size_t len = strlen(text);
	struct fixed_string string = { text, size, len };

	if (len > 0)
		failure_text_adds(&string, "; ");
	failure_text_adds(&string, words);
}

static void decide_by_row(enum ending ending, const struct failure_evidence *e,
			  struct failure_classification *ret)
{
	const struct ending_row *row = &ending_rows[ending];
	const char *evidence = row->evidence, *hint = row->hint;

	if (ending == ENDING_STALL)
		evidence = e->stall;
	if (ending == ENDING_WORKER) {
		evidence = e->worker;
		hint = e->worker_hint ? e->worker_hint : "";
		ret->node = ret->end_node = e->worker_node;
	}
	ret->class = row->class;
	if (row->rule)
		ret->rule = row->rule;
	if (row->evidence) {
		set_text(ret->evidence, sizeof ret->evidence, evidence);
		ret->decisive_bytes = strlen(ret->evidence);
	}
	if (hint)
		set_text(ret->hint, sizeof ret->hint, hint);
}

/* True if the engine's words alone say how it ended: machines may have been taken away. */
static bool engine_explains(const struct failure_classification *by_engine)
{
	return by_engine->class == CLASS_SPOT || by_engine->class == CLASS_STOPPED ||
	       by_engine->class == CLASS_TIMEOUT_HANG;
}

/* The hint points at the log if no cure is known. */
static void point_at_log(const struct failure_evidence *e, struct failure_classification *ret)
{
	for (size_t i = 0; i < e->log_count && !ret->hint[0]; i++)
		if (e->logs[i].node == ret->node && e->logs[i].show)
			set_text(ret->hint, sizeof ret->hint, e->logs[i].show);
}

static void classify_ending(const struct failure_evidence *e, struct failure_classification *ret)
{
	const struct failure_evidence engine = { .node = e->node,
						 .engine_reason = e->engine_reason };
	enum ending ending = ending_find(e, ret->class);
	struct failure_classification by_engine = { .class = CLASS_NONE };

	point_at_log(e, ret);
	if (ending == ENDING_TAKEN_DOWN || ending == ENDING_EXTERNAL_SIGNAL)
		failure_classify_command(&engine, &by_engine);
	if (ending == ENDING_TAKEN_DOWN)
		*ret = by_engine;
	if (ending == ENDING_EXTERNAL_SIGNAL && engine_explains(&by_engine))
		*ret = by_engine;
	else if (ending != ENDING_OWN)
		decide_by_row(ending, e, ret);
	if (ret->class == CLASS_TIMEOUT_HANG && e->wait) {
		add_text(ret->evidence, sizeof ret->evidence, e->wait);
		set_text(ret->hint, sizeof ret->hint, e->wait_hint);
	}
	failure_sign(ret);
}

/* A service that is busy or has no machines may accept later; any other refusal is definite. Words
 * that match no row are no reason to ask again. */
static void classify_refusal(const struct failure_evidence *e, struct failure_classification *ret)
{
	if (ret->class == CLASS_CAPACITY || ret->class == CLASS_SPOT)
		return;
	if (ret->class != CLASS_TRANSIENT_INFRA)
		ret->class = refusal_rows[e->refused];
	set_text(ret->hint, sizeof ret->hint, e->refusal_hint);
	failure_sign(ret);
}

/* An unread log is told even of a success: its numbers and graphs are missing. */
static void add_unread_log(const struct failure_evidence *e, struct failure_classification *ret)
{
	if (!e->unread)
		return;
	add_text(ret->evidence, sizeof ret->evidence, "cannot read the log: ");
	set_text(ret->evidence + strlen(ret->evidence),
		 sizeof ret->evidence - strlen(ret->evidence), e->unread);
	if (!ret->hint[0])
		set_text(ret->hint, sizeof ret->hint, e->unread_hint);
}

void failure_classify(const struct failure_evidence *e, struct failure_classification *ret)
{
	bool complete = e->stopped == FAILURE_NOT_STOPPED || (e->finished && was_drained(e));

	failure_classify_command(e, ret);
	if (e->refused != FAILURE_NOT_REFUSED)
		classify_refusal(e, ret);
	else if (ret->class != CLASS_NONE || !complete)
		classify_ending(e, ret);
	add_unread_log(e, ret);
}
