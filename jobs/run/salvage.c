/* Setting aside the damaged part of a run's journal: see salvage.h. */
#include "jobs/run/salvage.h"

#include <stdlib.h>

#include "jobs/run/journal/journal.h"
#include "jobs/run/journal/lease.h"

/* Facts that the readable rest tells. */
struct salvage_rest {
	int64_t good;
	struct utc at; /* time of the newest good event */
	char *stop;    /* reason of a request to stop, "" if it has none; NULL: none */
	char *end;     /* how the run had ended; NULL: not known */
	bool ended;
	enum outcome outcome;
	enum failure_class class;
	int64_t exit_code;
};

static void rest_release(struct salvage_rest *rest)
{
	free(rest->stop);
	free(rest->end);
}

static void note_end(struct salvage_rest *rest, const struct event *ev)
{
	rest->ended = true;
	rest->outcome = ev->state;
	rest->exit_code = ev->exit_code;
	rest->class = EVENT_HAS(ev, class) ? ev->class : CLASS_NONE;
	free(rest->end);
	rest->end =
		mem_format("%s (as journalled behind the damage)",
			   EVENT_HAS(ev, reason) && ev->reason[0] ? ev->reason : "it had ended");
}

/* The first event behind the good ones is damaged or missing, so an end is not believed there. */
static int note_rest(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	struct salvage_rest *rest = arg;
	int64_t seq = ev ? ev->seq : 0;

	(void)row;
	(void)err;
	if (!ev)
		return 0;
	if (seq <= rest->good) {
		if (ev->at.ms > rest->at.ms)
			rest->at = ev->at;
		return 0;
	}
	if (ev->kind == EV_REQUEST_STOP || ev->kind == EV_REQUEST_DRAIN) {
		free(rest->stop);
		rest->stop = mem_copy(EVENT_HAS(ev, reason) ? ev->reason : "");
	}
	if (ev->kind == EV_RUN_ENDED && seq > rest->good + 1)
		note_end(rest, ev);
	return 0;
}

static int put_aside(struct journal *journal, const struct driver_options *options, int64_t good,
		     const struct err *damage, struct err **err)
{
	AUTO(rest_release) struct salvage_rest rest = { .good = good };
	struct event ev = { .kind = EV_JOURNAL_SALVAGED, .at = clock_utc_now() };

	if (journal_salvage(journal, options->run, note_rest, &rest, err) < 0)
		return -1;
	if (ev.at.ms < rest.at.ms)
		ev.at = rest.at;
	EVENT_SET_STR(&ev, reason, damage->message);
	if (rest.ended) {
		EVENT_SET(&ev, state, rest.outcome);
		EVENT_SET(&ev, exit_code, rest.exit_code);
		EVENT_SET(&ev, class, rest.class);
		EVENT_SET_STR(&ev, evidence, rest.end);
	} else {
		EVENT_SET_STR(&ev, requested, rest.stop);
	}
	if (journal_set_aside(journal, options->run, good, &ev, err) < 0)
		return -1;
	if (options->on_event)
		options->on_event(options->arg, &ev, journal_appended(journal));
	return 1;
}

#define LOOKS_MAX 5

/* Looks for the damage until two looks in a row agree on where it begins: a read that fails once
 * (SQLite takes EIO for a damaged page) must not have good events set aside. */
static int find_damage(struct journal *journal, const char *run, int64_t *ret_good,
		       struct err **ret_damage, struct err **err)
{
	int64_t before = -1;
	int found = 1;

	for (int looks = 0; looks < LOOKS_MAX; looks++) {
		err_freep(ret_damage);
		found = journal_find_damage(journal, run, ret_good, ret_damage, err);
		if (found <= 0 || *ret_good == before)
			return found;
		before = *ret_good;
	}
	return err_set(err, EXIT_REFUSED, "the journal of run %s reads otherwise each time: %s",
		       run, (*ret_damage)->message);
}

int salvage_run(struct journal *journal, const struct driver_options *options, struct err **err)
{
	AUTO(lease_freep) struct lease *lease = NULL;
	AUTO(err_freep) struct err *damage = NULL;
	int64_t good = 0;
	int found;

	if (lease_take(journal, options->run, options->lease, options->on_wait, options->arg,
		       &lease, err) < 0)
		return -1;
	found = find_damage(journal, options->run, &good, &damage, err);
	if (found <= 0)
		return found;
	/* Reading may have taken long. */
	if (lease_keep(lease, err) < 0)
		return -1;
	return put_aside(journal, options, good, damage, err);
}
