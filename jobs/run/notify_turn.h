/*
 * Notifications about a turn of a schedule that made no run: there was nothing new, or it was
 * skipped. No journal holds them, so they are sent at once, and their outcome is the caller's to
 * tell; those about runs are notify.h's.
 */
#ifndef STK_RUN_NOTIFY_TURN_H
#define STK_RUN_NOTIFY_TURN_H

#include "jobs/base/text/js.h"

/* All is borrowed. */
struct notify_turn {
	const json_t *rules;   /* the spec's `notify`, or the plan's; NULL: none */
	const char *spec_file; /* commands run beside it */
	const char *name;      /* of the spec */
	const char *occasion;  /* "nothing_new" | "skipped" */
	const char *id;        /* the same whenever the turn is told again, such as "NAME-DUE" */
	const char *text;      /* a sentence for people */
	const json_t *facts;   /* members of the message besides these; NULL: none */
};

/* Sends it to every rule that asks for the occasion, each up to three times, for NOTIFY_TIMEOUT_MS
 * each; waits for that. Returns -1 with the first failure, after the other rules had theirs. The
 * turn is over either way. */
int notify_turn_send(const struct notify_turn *turn, struct err **err);

#endif
