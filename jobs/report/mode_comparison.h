/*
 * The saving by precompiling, from recorded runs: compares a start that compiles as it trains
 * ("cold JIT", compile.mode jit) with one that compiles first ("precompile plus warm start",
 * compile.mode aot). Folded from events alone.
 *
 * A run measures its mode if nothing but the mode decides how long it took:
 *   - it succeeded, each of its phases in one attempt, under one driver (a driver that takes over
 *     sees the first step late);
 *   - jit: training compiled graphs and found none in the cache;
 *   - aot: phase 1 ran, compiled every graph it named and found none in the cache.
 * Two runs are compared if they have one graph key (hence one source, one shape, one compiler, one
 * world size; neither the mode nor the place of the cache is part of it), one name, one engine and,
 * on the engine local, one host.
 *
 * The figures compared are those that are paid for: node-seconds, that is, over all attempts, nodes
 * times the seconds from the claim on (by the clock of node 0), and their cost if resources.price
 * is known. Waiting in a queue and the verification hold no nodes; `seconds` includes the
 * verification, but no queue. Two figures, each of a run as a whole:
 *   start  until training shows its first step, plus the time for graphs compiled after that (of
 *          the first 100 graphs): the whole cost of compiling, and none of the steps. Left out if
 *          the two runs showed different first steps.
 *   end    until the last command is over, steps included: if they are most of the time, the load
 *          from other programs on the machine decides more than the mode. Left out if the two runs
 *          trained a different number of steps.
 */
#ifndef STK_REPORT_MODE_COMPARISON_H
#define STK_REPORT_MODE_COMPARISON_H

#include "jobs/base/text/js.h"
#include "jobs/flow/event.h"

enum mode { MODE_JIT, MODE_AOT, MODE_COUNT };

struct mode_run;

struct mode_run *mode_run_new(const char *run);
void mode_run_freep(struct mode_run **run);

/* Adds the next event, in order of seq. */
void mode_run_add(struct mode_run *run, const struct event *ev);

/* True if the run, after run.created alone, may have this name and key, so that the rest of its
 * events are worth reading. */
bool mode_run_may_be(const struct mode_run *run, const char *name, const char *graph_key);

/* True, with the mode in `*ret`, if the run is a measurement. */
bool mode_run_measures(const struct mode_run *run, enum mode *ret);

/* True if these two measurements may be compared. */
bool mode_runs_match(const struct mode_run *jit, const struct mode_run *aot);

/* Returns a new reference: {"jit": {"run","graphs","nodes","start":FIGURE,"end":FIGURE}, "aot":
 * {the same and "precompile":FIGURE,"verify_seconds","late_graphs": graphs that phase 1 missed and
 * the training compiled, absent if none; otherwise the start was not warm}, "ratio":
 * {"start","end"}, "pays", "judged_by": "start"|"end"}. FIGURE is {"step","seconds",
 * "node_seconds","cost"}; a start also has "late_seconds". A ratio is jit divided by aot, above 1
 * if precompiling saves. "pays" goes by the ratio of the start, or if that is absent by the ratio
 * of the end; it is absent if the two differ by less than MODE_COMPARISON_TOLERANCE. Either
 * argument may be NULL: then the result has only the other run. */
#define MODE_COMPARISON_TOLERANCE 0.02
json_t *mode_comparison_json(const struct mode_run *jit, const struct mode_run *aot);

#endif
