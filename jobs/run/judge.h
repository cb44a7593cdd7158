/*
 * The verdict of the gate over a run: the entries of its plan, and what its journal says was
 * measured. jobs/flow/gate.h says what passes.
 *
 *     judge_open(plan, has_baseline, &judge)
 *     judge_measure(judge, role, repeat, metrics)    for each evaluate.measured of the journal
 *     judge_compare(judge, journal, run, &err)       reads the series that entries compare
 *     judge_verdict(judge, &passed, &gates, &reason) → gate.judged
 */
#ifndef STK_RUN_JUDGE_H
#define STK_RUN_JUDGE_H

#include "jobs/base/text/js.h"
#include "jobs/flow/gate.h"
#include "jobs/run/journal/journal.h"

struct judge;

/* Checks the gate before a run begins: EXIT_REFUSED if it compares with a run that the journal does
 * not have, so that no machine works for a verdict that can only be no. */
int judge_check(const json_t *plan, struct journal *journal, struct err **err);

/* `plan` is borrowed as long as the judge lives. `has_baseline`: a model to compare with was among
 * the inputs of the run. */
void judge_open(const json_t *plan, bool has_baseline, struct judge **ret);
void judge_freep(struct judge **judge); /* for AUTO() */

/* Takes what a task told: a name → number, or the text nan, inf or -inf. What is neither is no
 * number, and never passes. `role` is "candidate" or "baseline". */
void judge_measure(struct judge *judge, const char *role, int64_t repeat, const json_t *metrics);

/* Compares the series of `run` with those of the runs that the plan names (against: run:ID), as far
 * as their readings have come. A run that is not there, or has no such metric, is part of the
 * verdict, which is then no. An error is one of reading: it may be tried again. */
int judge_compare(struct judge *judge, struct journal *journal, const char *run, struct err **err);

/* Judges all entries. *ret_gates: an array, for each entry the object gate_entry of
 * jobs/report/printed/parts_retrain.def; *ret_reason: the entries that do not pass in words, with
 * the hold-out; of a gate that passes all of them. The caller releases both. */
void judge_verdict(const struct judge *judge, bool *ret_passed, json_t **ret_gates,
		   char **ret_reason);

/* Says of each entry of a plan's gate what it allows, as far as that is known before anything is
 * measured: "accuracy may fall by 0.1% of the baseline", or with the promoted model's value, if
 * `baseline` (name → number; may be NULL) has it: "accuracy may fall from 0.9583 to 0.95734". A new
 * array of texts; empty: no gate. */
json_t *judge_outlook(const json_t *plan, const json_t *baseline);

#endif
