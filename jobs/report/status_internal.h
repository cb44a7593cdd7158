/* Data collected about a run, shared by the files that collect it and the one that shows it. */
#ifndef STK_REPORT_STATUS_INTERNAL_H
#define STK_REPORT_STATUS_INTERNAL_H

#include "jobs/flow/ledger.h"
#include "jobs/flow/phase.h"
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
	bool begun, ended, left, paused, stop_requested;
	enum phase phase;
	enum phase cache_of;   /* stage whose cache is looked at, filled and proved */
	struct utc until;      /* end of a backoff; ms 0: none */
	struct utc ends;       /* forecast end of the training; ms 0: not known */
	double price_per_hour; /* all nodes of the training; 0: unknown */
	struct status_machines {
		int64_t nodes;
		double per_hour; /* USD, of all of them; 0: unknown */
		/* The ledger's, as far as jobs of the phase held them. */
		int64_t held_ms[BIN_COUNT], kept_ms, billed_ms;
	} machines[PHASE_COUNT]; /* a stage's phase 1 has the machines of the stage */
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
/* Returns "cache" or "graphs" of whom they are now: of the run for its training, else of a stage.
 */
json_t *status_cache_section(struct status *status, const char *key);
/* From now on cache and phase 1 are those of the stage that an event names; none: the training. */
void status_name_stage(struct status *status, const struct event *ev);

/* Defined in status_cost.c: machines and prices of the plan; adds an event to the ledger. NULL:
 * without a price; no stage held machines of its own. */
void status_cost_begin(struct status *status, const json_t *plan);
void status_cost_add(struct status *status, const struct event *ev);
json_t *status_cost_json(const struct status *status, struct utc now,
			 const struct ledger_view *view);
json_t *status_stages_tally(const struct status *status, const struct ledger_view *view);
/* Milliseconds by bin, zeros left out. */
json_t *status_bins_json(const int64_t ms[BIN_COUNT]);

/* Defined in status_stages.c: events of what follows the training; how many tasks an attempt has.
 */
void status_on_stage(struct status *status, const struct event *ev);
void status_on_tasks(struct status *status, const struct event *ev);

#endif
