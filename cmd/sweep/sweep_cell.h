/*
 * A cell of a sweep as a spec and a plan of its own.
 *
 * cmd/sweep: the cells of a sweep planned, started as runs, and awaited. A cell is an ordinary run:
 * what drives it is what drives every run.
 */
#ifndef STK_CMD_SWEEP_SWEEP_CELL_H
#define STK_CMD_SWEEP_SWEEP_CELL_H

#include "jobs/run/plan/plan.h"
#include "jobs/spec/spec.h"

/* Loads the spec with the overrides of a cell, and makes its plan. EXIT_SPEC with the first
 * problem; EXIT_REFUSED if this version lacks what it needs; the errors of plan_make(). */
int sweep_cell_plan(const struct spec *spec, const json_t *sets, const struct journal *journal,
		    struct plan **ret, struct err **err);

/* Loads every cell, so that nothing begins while one is wrong. EXIT_SPEC names the cell. */
int sweep_cell_check(const struct spec *spec, const json_t *sweep, struct err **err);

#endif
