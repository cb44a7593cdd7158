/*
 * The check-up of the nodes, on the driver's side: what a plan says of it, what an order
 * asks of the agents (jobs/store/order.h), and what became of it.
 *
 * The plan's "health" (absent: none): {"device": are devices looked at, "ops": [collective…]
 * (empty: none), "size": bytes, "timeout_ms"}.
 */
#ifndef STK_RUN_HEALTH_H
#define STK_RUN_HEALTH_H

#include "jobs/base/json.h"
#include "jobs/flow/event.h"
#include "jobs/spec/spec.h"

struct attempt_watch;

/* Of a spec: a new object, or NULL: nothing is checked. */
json_t *plan_health(const struct spec *spec);
/* The longest check-up of all nodes, as far as the plan knows; 0: there is none. */
int64_t plan_health_ms(const json_t *plan);
/* For people: what is checked, and within which limits. NULL: nothing; yours to free. */
char *plan_health_words(const json_t *plan);

/* The members "health", "instance" and "devices" of an order. */
void order_health(json_t *order, const json_t *plan, enum phase phase);

/* Once it is known how the nodes are: health.checked, once an attempt. */
int health_record(struct attempt_watch *watch, struct err **err);

#endif
