/*
 * The state of a run, folded from its events: what `status`, `list` and the
 * summary after `run` show. One JSON object in the shape that programs rely on
 * (fields may be added, never renamed; absent means not known yet):
 *
 *   run, name, engine, state, phase, waiting_for, driver, cache, jit, progress,
 *   metrics, attempts, checkpoint, ledger (seconds by bin and their total),
 *   throughput (of the newest training attempt that has one, as of each attempt: see
 *   jobs/run/pace.h), at_risk (limits that will be reached before the end), untold
 *   (whom notify names and could not be told), cost (below), exit_code, and beyond those: created,
 *   ended, reason, evidence, hint, graphs (named, hits and compiled by phase),
 *   cache.waits_for (run, host and since: another run that precompiles the same graphs
 *   now), mode (compile.mode; absent where nothing is compiled).
 *
 * `cost`, in USD, is absent without a price. `accrued`: the machines, for as long as the run's
 * jobs held them by the ledger, and kept them from one to the next; `bins` has it by the ledger's
 * bins, and `kept` the rest, so that they add up. `billable`: of the attempts that ended, as the
 * service bills them, where it told (an attempt of which it did not: as accrued), and kept.
 * `estimated`: what the run will have cost at its end, by its present pace, where the time left
 * is known; once it has ended, what it did cost, by the best that is known. `per_hour`: of all
 * nodes.
 *
 * `jit` is of all training attempts together: distinct graphs; the seconds of every
 * compilation, also of a graph that had to be compiled twice; and what these cost on
 * all nodes, which wait for it (absent without a price). A wait for somebody else who
 * compiles a graph is no compilation.
 */
#ifndef STK_REPORT_STATUS_H
#define STK_REPORT_STATUS_H

#include "jobs/base/json.h"
#include "jobs/flow/event.h"

struct status;

struct status *status_new(const char *run);
void status_freep(struct status **status);

/* Take in the next event, in order of seq. */
void status_add(struct status *status, const struct event *ev);

/* The state after the events so far; `now` closes what is still open. A new
 * reference. `with_attempts` false leaves the attempts out, as a list wants. */
json_t *status_json(const struct status *status, struct utc now, bool with_attempts);

#endif
