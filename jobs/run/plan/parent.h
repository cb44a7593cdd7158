/*
 * The models that a run is given: the parent, which its training begins from, and the baseline,
 * which its evaluation compares the candidate with. They are fixed before run.created, and
 * journalled in its `inputs`:
 *
 *   "parent", "baseline": {"url": absolute path or URL, "kind", "digest": of its pin in the
 * workspace (jobs/checkpoint/pin.h), "generation": of the promoted version that it is (absent:
 *              none)}; absent: there is none
 *   "pointer": {"generation", "digest": of its entry} of the version that is promoted (absent:
 *              nothing was promoted, or nothing of it is needed)
 *
 * None is in the plan or in a graph key. The parent is that of `parent.from`; `auto` is the
 * promoted version in a turn of a retraining ("promotes" in the inputs), and none else. While
 * nothing is promoted, `parent.first` stands for it, as parent and as baseline. Each attempt of
 * phase 1 and of the training gets the parent with its order; the agents bring it to their nodes
 * and prove that it is what was pinned.
 */
#ifndef STK_RUN_PLAN_PARENT_H
#define STK_RUN_PLAN_PARENT_H

#include "jobs/base/err.h"
#include "jobs/store/order.h"
#include "jobs/store/store.h"

/* Adds the members above to the inputs of a new run, as far as they are not there. A "pointer" that
 * is there says which version is the promoted one. EXIT_REFUSED: a model is not there, damaged, or
 * of another world size. */
int parent_add(const json_t *plan, struct store *workspace, json_t *inputs, struct err **err);

/* Sets a model of an order from such an object; nothing if it is NULL. */
void parent_order(struct order_model *ret, const json_t *given);

#endif
