/* The requests of a plan as they are shown: made, printed, and put into a line of JSON. */
#ifndef STK_CMD_VIEW_PLAN_REQUESTS_H
#define STK_CMD_VIEW_PLAN_REQUESTS_H

#include "jobs/base/err.h"
#include "jobs/base/text/js.h"

/* All owned; zeroed: none. */
struct plan_requests {
	json_t *requests;     /* as order_planned() and sends_of_order() make them */
	json_t *difference;   /* between the two phases; NULL: a single phase */
	json_t *placeholders; /* as placeholders_of_requests() */
};

int plan_requests_make(const json_t *plan, struct plan_requests *ret, struct err **err);
void plan_requests_release(struct plan_requests *requests); /* for AUTO() */
void plan_requests_print(const json_t *plan, const struct plan_requests *requests);
void plan_requests_put(const struct plan_requests *requests, json_t *line);

#endif
