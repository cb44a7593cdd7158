/* Data collected about a run, shared by the files that collect it and the one that shows it. */
#ifndef STK_REPORT_STATUS_INTERNAL_H
#define STK_REPORT_STATUS_INTERNAL_H

#include "jobs/flow/ledger.h"
#include "jobs/report/halt.h"
#include "jobs/report/run_tally.h"
#include "jobs/report/status.h"

struct status {
	json_t *root;     /* the fields that events set directly */
	json_t *attempts; /* array, newest last */
	/* text: the failing operation that the driver retries; NULL: nothing fails */
	char *tries;
	char *waits;      /* text: the other run that this one waits for; NULL: none */
	json_t *rejected; /* rejected by the newest choice of a checkpoint; NULL: none */
	json_t *jit;      /* the last jit.compiled of each training attempt, newest last */
	bool begun, ended, left, stop_requested;
	enum phase phase;
	struct utc until;      /* end of a backoff; ms 0: none */
	struct utc ends;       /* forecast end of the training; ms 0: not known */
	double price_per_hour; /* all nodes; 0: unknown */
	struct ledger ledger;
	struct halt halt;
	struct run_tally tally;
};

/* Returns the named member object, created if absent; an instant as text. */
json_t *status_section(struct status *status, const char *key);
json_t *status_utc(struct utc at);
/* Copies those of the fields that the event has, under their own names. The list of ids
 * (enum event_field_id) ends with EVF_COUNT. */
void status_put(json_t *object, const struct event *ev, ...);
/* The same for one field, under `key`. */
void status_put_as(json_t *object, const struct event *ev, enum event_field_id id, const char *key);

/* Defined in status_cache.c: events of the cache, compile.progress, jit.compiled and jit.exceeded;
 * the end of the wait for another run. */
void status_on_cache(struct status *status, const struct event *ev);
void status_on_graphs(struct status *status, const struct event *ev);
void status_on_jit(struct status *status, const struct event *ev);
void status_on_jit_exceeded(struct status *status, const struct event *ev);
void status_end_cache_wait(struct status *status);

#endif
