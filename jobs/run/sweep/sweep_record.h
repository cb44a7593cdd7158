/*
 * A sweep as it is kept in the state, beside its runs: which cells it has, and which runs are
 * theirs. The state of a run is in its own journal alone.
 *
 *   {"v": 1, "sweep": the id, "created": UTC, "name", "spec_file",
 *    "base": digest of the plan without a sweep, "source": that of its source,
 *    "kind", "repeat", "parallel", "on_best", "cost", "deadline_ms": as spec_sweep() has them,
 *    "cells": [{"name", "own": overrides by the spec,
 *               "sets": those of its runs (absent: they depend on cells that have not ended),
 *               "runs": ids, one a repeat,
 *               "why": why none could be started (absent: nothing is known against it)}…]}
 *
 * It is the object sweeps/ID.json of the journal's store, or the file of that name beside a journal
 * on a local disk. A sweep may be driven by several processes: each run begins once all the same,
 * because its id is taken then.
 */
#ifndef STK_RUN_SWEEP_SWEEP_RECORD_H
#define STK_RUN_SWEEP_SWEEP_RECORD_H

#include "jobs/base/text/js.h"
#include "jobs/run/journal/journal.h"

/* Makes the record of a new sweep, a new reference. `plan` is that of the spec, `digest` its
 * identity. EXIT_USAGE if the id is too long for the ids of its runs. */
int sweep_record_make(const char *id, const json_t *sweep, const json_t *plan, const char *digest,
		      json_t **ret, struct err **err);

/* Takes repeats and limits of the spec into the record of a sweep that goes on. EXIT_SPEC if its
 * cells are others, or the plan is. */
int sweep_record_go_on(json_t *record, const json_t *sweep, const char *digest, struct err **err);

/* Returns 1 with the record; 0 if there is no sweep of that id, or it is no id; -1. */
int sweep_record_read(struct journal *journal, const char *id, json_t **ret, struct err **err);

/* Writes the record, in the place of an earlier one. */
int sweep_record_write(struct journal *journal, const json_t *record, struct err **err);

/* Notes that the sweep is stopped, in sweeps/ID.stop.json beside the record, which its processes
 * write as they go on: {"v": 1, "sweep", "at": UTC, "reason"}. Nothing of it begins any more. */
int sweep_record_stop(struct journal *journal, const char *id, const char *reason,
		      struct err **err);
/* Returns 1 if it is stopped, 0, -1. With 1, *ret_reason, unless ret_reason is NULL, is the reason
 * for its runs, which the caller frees. */
int sweep_record_is_stopped(struct journal *journal, const char *id, char **ret_reason,
			    struct err **err);

/* Returns the limit of the sweep that is reached now that its runs have cost so much, as the spec
 * calls it; NULL: none is. Nothing of it begins any more, unless the spec is given another. */
const char *sweep_record_limit(const json_t *record, double cost);

/* Forgets the sweep; its runs stay. */
int sweep_record_remove(struct journal *journal, const char *id, struct err **err);
/* Takes back the stop of an earlier sweep of this id, which is forgotten. */
int sweep_record_clear(struct journal *journal, const char *id, struct err **err);

#endif
