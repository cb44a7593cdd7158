/*
 * What precompiling saves, from recorded runs: a start that compiles as it trains
 * ("cold JIT", compile.mode jit) beside one that compiles first ("precompile plus
 * warm start", compile.mode aot). Folded from events alone.
 *
 * A run is a measurement of its mode if nothing but the mode decides what it took:
 *   - it succeeded, each of its phases in one attempt, under one driver (who comes
 *     later sees the first step late);
 *   - jit: training compiled graphs and found none in the cache;
 *   - aot: phase 1 ran, compiled every graph it named and found none in the cache.
 * Two of them are compared if they have one graph key (hence one source, one shape,
 * one compiler, one world size; neither the mode nor the place of the cache is part
 * of it), one name, one engine and, on the engine local, one host.
 *
 * What is compared is what is paid: node-seconds, that is, over all attempts, its nodes
 * times the seconds from its claim on (by the clock of node 0), and their cost where
 * resources.price is known. Waiting in a queue and the verification hold no nodes;
 * `seconds` has the verification, and no queue. Two figures, each of a run as a whole:
 *   start  until training shows its first step, and for what it compiles after that (of
 *          the first 100 graphs): all that compiling costs, and nothing of the steps.
 *          Left out where the two runs showed different steps first.
 *   end    until the last command is over, steps included: where they are most of the
 *          time, what other programs took from the machine decides more than the mode.
 *          Left out where the two runs trained a different number of steps.
 */
#ifndef STK_REPORT_MODES_H
#define STK_REPORT_MODES_H

#include "jobs/base/json.h"
#include "jobs/flow/event.h"

enum mode { MODE_JIT, MODE_AOT, MODE_COUNT };
extern const char *const mode_names[MODE_COUNT]; /* as compile.mode spells them */

struct mode_run;

struct mode_run *mode_run_new(const char *run);
void mode_run_freep(struct mode_run **run);

/* Take in the next event, in order of seq. */
void mode_run_add(struct mode_run *run, const struct event *ev);

/* After run.created alone: might it be one of this key and name (and so worth the
 * rest of its events)? */
bool mode_run_may_be(const struct mode_run *run, const char *name, const char *graph_key);

/* True, and which, if the run is a measurement. */
bool mode_run_measures(const struct mode_run *run, enum mode *ret);

/* May these two measurements be compared? */
bool mode_runs_match(const struct mode_run *jit, const struct mode_run *aot);

/* {"jit": {"run","graphs","nodes","start":FIGURE,"end":FIGURE}, "aot": {the same
 * and "precompile":FIGURE,"verify_seconds","late_graphs": that phase 1 missed and the
 * training compiled, absent: none; then it was no warm start}, "ratio": {"start","end"}, "pays",
 * "judged_by": "start"|"end"}, a new reference. FIGURE is {"step","seconds",
 * "node_seconds","cost"}, a start also has "late_seconds". A ratio is jit through aot,
 * above 1 where precompiling saves; "pays" judges by that of the start, or where there
 * is none by that to the end, and is absent if they differ by less than MODES_ALIKE.
 * Either may be NULL: then there is only the other one. */
#define MODES_ALIKE 0.02
json_t *modes_json(const struct mode_run *jit, const struct mode_run *aot);

#endif
