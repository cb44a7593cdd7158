/*
 * C1. Heard: a stop request, SIGTERM or SIGINT is acted on within 5 s (15 s on far state), whatever
 * the log, backlog, number of checkpoints or size of the cache.
 *
 * A request in the journal is acted on when the driver tells the job to save, asks the engine to
 * stop or to find it, or ends the run; a signal when the driver has ended, or where it stops the
 * run (habits.h) has requested that. A driver that takes over opens the workspace first, by which a
 * job is told and stopped: a refusal of that shows that it has heard.
 */
#include <signal.h>
#include <string.h>

#include "jobs/store/order.h"
#include "tests/world/clocks_rules.h"
#include "tests/world/clocks_time.h"
#include "tests/world/faults.h"
#include "tests/world/habits.h"
#include "tests/world/play.h"
#include "tests/world/rules.h"
#include "tests/world/sqlite.h"

#define SIGNALLED_MAX 32

static struct {
	bool open;
	struct stretch since; /* a driver has it */
} request;
static struct signalled {
	struct stretch since;
	bool stops; /* the run is to be stopped by it */
} signalled[SIGNALLED_MAX];
static size_t signalled_count;

static void reset(void)
{
	memset(&request, 0, sizeof request);
	signalled_count = 0;
}

static int64_t heard_ns(void)
{
	return figure_ns(playing->setting.state == STATE_BUCKET ? C1_HEARD_FAR : C1_HEARD);
}

static void on_event(const struct story *story, int64_t index)
{
	const struct event *ev = &story->events[index].event;

	switch (ev->kind) {
	case EV_REQUEST_STOP:
	case EV_REQUEST_DRAIN:
		if (story->shadow.recompile) /* it has been told to save and end */
			return;
		for (int64_t i = 0; i < index; i++)
			if (story->events[i].event.kind == EV_REQUEST_STOP ||
			    story->events[i].event.kind == EV_REQUEST_DRAIN ||
			    story->events[i].event.kind == EV_LIMIT_REACHED ||
			    story->events[i].event.kind == EV_RUN_ENDED)
				return; /* nothing more is to be done */
		request.open = true;
		stretch_begin(&request.since, seen_driver());
		break;
	case EV_DRIVER_TOOK_OVER:
		stretch_begin(&request.since, seen_driver());
		break;
	case EV_CHORE_FAILED: /* the job could not be told to save: C4 goes on from there */
	case EV_ATTEMPT_ENDED:
	case EV_RUN_ENDED:
		request.open = false;
		break;
	default:
		break;
	}
}

static void on_engine(const struct story *story, const struct engine_word *word)
{
	(void)story;
	if (word->who == request.since.who &&
	    (word->what == WORD_STOP || word->what == WORD_FIND || word->what == WORD_SUBMIT))
		request.open = false;
}

static void on_call(const struct process *who, enum call_id id, const char *about)
{
	(void)id;
	if (request.open && who == request.since.who && strstr(about, DRAIN_FILE))
		request.open = false;
}

/* The driver waits before the next try. */
static void try_again(const struct process *who)
{
	stretch_begin(&request.since, who);
	request.since.from_ns += figure_ns(C1_AGAIN);
}

/* A request that cannot be read, or what follows from it cannot be journalled. */
static void on_journal(const struct process *who, enum journal_word word)
{
	if (word != JOURNAL_REFUSED)
		return;
	if (who == request.since.who)
		try_again(who);
	for (size_t i = 0; i < signalled_count; i++)
		if (signalled[i].stops && signalled[i].since.who == who) {
			stretch_begin(&signalled[i].since, who);
			signalled[i].since.from_ns += figure_ns(C1_AGAIN);
		}
}

static void on_refusal(const struct refusal *refusal)
{
	if (request.open && refusal->who == request.since.who &&
	    strstr(refusal->about, "/stoker-probe-"))
		try_again(refusal->who);
}

static void on_signal(const struct process *to, int signo)
{
	if ((signo != SIGTERM && signo != SIGINT) || fault_target_of(to) != TARGET_DRIVER ||
	    signalled_count == SIGNALLED_MAX)
		return;
	for (size_t i = 0; i < signalled_count; i++)
		if (signalled[i].since.who == to)
			return;
	signalled[signalled_count].stops = signo == SIGINT && habits_stop_on_interrupt();
	stretch_begin(&signalled[signalled_count++].since, to);
}

static bool is_obeyed(const struct signalled *signal, const struct story *story)
{
	return signal->since.who->state != PROCESS_ALIVE ||
	       (signal->stops &&
		(story->shadow.stop_requested || story->shadow.state >= FLOW_ENDING));
}

static void on_second(const struct story *story)
{
	/* Without a job there is only an end to journal, and SQLite tries again by itself while
	 * another program writes. */
	if (request.open && !flow_may_have_job(&story->shadow) && sqlite_is_held())
		stretch_begin(&request.since, request.since.who);
	if (request.open && request.since.who == seen_driver() &&
	    stretch_ns(&request.since) > heard_ns())
		rule_breaks("C1", "a stop was requested %.1f s ago and nothing is done",
			    (double)stretch_ns(&request.since) / 1e9);
	for (size_t i = 0; i < signalled_count; i++) {
		/* SQLite tries again by itself while another program writes. */
		if (signalled[i].stops && sqlite_is_held())
			stretch_begin(&signalled[i].since, signalled[i].since.who);
		if (!is_obeyed(&signalled[i], story) &&
		    stretch_ns(&signalled[i].since) > heard_ns())
			rule_breaks("C1", "a driver had a signal %.1f s ago and goes on",
				    (double)stretch_ns(&signalled[i].since) / 1e9);
	}
}

const struct clock_rule clock_heard = {
	.reset = reset,
	.on_event = on_event,
	.on_second = on_second,
	.on_engine = on_engine,
	.on_journal = on_journal,
	.on_signal = on_signal,
	.on_call = on_call,
	.on_refusal = on_refusal,
};
