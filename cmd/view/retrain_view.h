/* What a plan says of retraining, as text and as JSON. */
#ifndef STK_CMD_VIEW_RETRAIN_VIEW_H
#define STK_CMD_VIEW_RETRAIN_VIEW_H

#include "jobs/base/err.h"
#include "jobs/base/text/js.h"

/* Looks at the cache of each stage with compile: aot: a new object of stage → {"cache": as
 * plan_cache_json(), "precompile": command of its phase 1 (absent: the cache is warm)}. What cannot
 * be reached is not known; a local folder that cannot be read is an error. */
int retrain_view_caches(const json_t *plan, json_t **ret, struct err **err);

/* Prints them all, as 'cache why' does. */
void retrain_view_print_caches(const json_t *caches);

/* Prints a line each for data, parent, evaluation, gate, inference and promotion; nothing for a
 * plan without them. `baseline` (name → number; may be NULL): what is known of the promoted model;
 * `caches`: as above. */
void retrain_view_print(const json_t *plan, const json_t *baseline, const json_t *caches);

/* Puts the same into the line of JSON of `plan`. */
void retrain_view_put(const json_t *plan, const json_t *baseline, const json_t *caches,
		      json_t *result);

#endif
