/*
 * The runs of a journal, sorted by when they began: an id may be a name that the user chose, so ids
 * do not sort by age.
 */
#ifndef STK_RUN_JOURNAL_BEGUN_H
#define STK_RUN_JOURNAL_BEGUN_H

#include "jobs/run/journal/journal.h"

struct begun_run {
	char run[JOURNAL_RUN_MAX];
	char at[UTC_TEXT]; /* "" if not known; sorts as the oldest */
};

struct begun {
	struct begun_run *list;
	size_t count;
};
void begun_release(struct begun *begun);

/* Adds a run; `body` is the text of its first event as stored, or NULL. An invalid run id and a run
 * that is already in the list are left out. */
void begun_add(struct begun *begun, const char *run, const char *body, size_t len);

/* Calls `fn` for each run, oldest first; as journal_runs(). */
int begun_hand_out(struct begun *begun, journal_run_fn fn, void *arg, struct err **err);

#endif
