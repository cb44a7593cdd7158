/*
 * Health check of the nodes, before it is made: what a plan says of it, and what an order asks of
 * the agents (jobs/store/order.h). attempt/health_record.c records the result.
 *
 * The plan's "health" (absent: no check): {"device": whether devices are checked, "ops":
 * [collective…] (empty: none), "size": bytes, "timeout_ms"}.
 */
#ifndef STK_RUN_PLAN_HEALTH_H
#define STK_RUN_PLAN_HEALTH_H

#include "jobs/base/text/js.h"
#include "jobs/flow/event.h"
#include "jobs/spec/spec.h"
#include "jobs/store/order.h"

/* Returns the plan's "health" of a spec as a new object; NULL if nothing is checked. */
json_t *health_plan(const struct spec *spec);
/* Returns the longest check of all nodes in ms, as far as the plan knows; 0 if there is no
 * check. */
int64_t health_plan_ms(const json_t *plan);
/* Returns, for people, what is checked and within which limits; NULL if nothing. The caller frees
 * it. */
char *health_plan_words(const json_t *plan);

/* Sets the members "health", "instance" and "devices" of an order. */
void health_order(struct order *order, const json_t *plan, enum phase phase);

#endif
