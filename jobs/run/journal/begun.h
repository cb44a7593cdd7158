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
	char *head; /* of its summary, if that ends with the newest event; NULL: none. Owned */
};

struct begun {
	struct begun_run *list;
	size_t count;
};
void begun_release(struct begun *begun);

/* Adds a run; `body` is the text of its first event as stored, or NULL. An invalid run id and a run
 * that is already in the list are left out. */
void begun_add(struct begun *begun, const char *run, const char *body, size_t len);

/* The time of a first event, by its text (NULL: none); "" if it has none. */
void begun_time_of(const char *body, size_t len, char ret[UTC_TEXT]);
/* Adds a run whose time is known ("" if not) and that is not in the list. `head` is copied. */
void begun_add_at(struct begun *begun, const char *run, const char *at, const char *head);
/* True if the run is there; the list must be sorted by ids. */
bool begun_has(const struct begun *begun, const char *run);

/* Calls `fn` for each run, oldest first; as journal_each(). */
int begun_hand_out(struct begun *begun, journal_run_fn fn, void *arg, struct err **err);

#endif
