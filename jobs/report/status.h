/*
 * The state of a run, folded from its events, as shown by `status`, `list` and the summary after
 * `run`. One JSON object; jobs/report/printed/lines.def and parts.def beside it have its keys.
 *
 * `cost`, in USD, is absent without a price. `accrued`: the machines, for as long as the run's jobs
 * held them by the ledger, and for the time they were kept between jobs; `bins` splits it by the
 * ledger's bins, and `kept` is the rest, so that they add up. `billable`: for attempts that ended,
 * the time that the service bills, if it reported that (else as in `accrued`), and kept.
 * `estimated`: the cost of the run at its end, by its present pace, if the time left is known;
 * after its end, its actual cost, by the best known figures. `per_hour`: price of all nodes.
 *
 * `jit` covers all training attempts together: distinct graphs; the seconds of every compilation,
 * including a graph that had to be compiled twice; and the cost of those seconds on all nodes,
 * which wait for it (absent without a price). Waiting while another process compiles a graph does
 * not count as a compilation.
 */
#ifndef STK_REPORT_STATUS_H
#define STK_REPORT_STATUS_H

#include "jobs/base/sb.h"
#include "jobs/base/text/js.h"
#include "jobs/flow/event.h"

struct status;

struct status *status_new(const char *run);
void status_freep(struct status **status);

/* Adds the next event, in order of seq. */
void status_add(struct status *status, const struct event *ev);

/* Notes a step that is in no event yet. */
void status_progress_update(struct status *status, struct utc at, int64_t step);

/* Marks the run as without a driver, though its events do not say so: the driver was killed. */
void status_undriven(struct status *status);

/* Appends the state as bytes to `ret`, for status_from_kept() in this very program; nothing if it
 * has no build id. */
void status_keep(const struct status *status, struct sb *ret);
/* Returns the state; NULL if another program kept the bytes. They must be those that were kept. */
struct status *status_from_kept(const void *bytes, size_t len);

/* Returns the state after the events so far, a new reference; `now` closes open intervals. With
 * `with_attempts` false the attempts are left out, as for a list. */
json_t *status_json(const struct status *status, struct utc now, bool with_attempts);

/* Returns what the run adds to the statistics of all runs (stats.h), a new reference. */
json_t *status_tally(const struct status *status, struct utc now);

#endif
