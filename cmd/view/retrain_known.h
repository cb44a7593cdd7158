/* What a plan can know of the promoted model: the values by which it was judged. */
#ifndef STK_CMD_VIEW_RETRAIN_KNOWN_H
#define STK_CMD_VIEW_RETRAIN_KNOWN_H

#include "jobs/base/text/js.h"

/* Returns the promoted model's metrics, name → number, as its own turn measured them: the means of
 * its repeats. A new reference; NULL if the plan's gate compares with no model, if none is promoted
 * or was measured, and if that cannot be found out now: then *ret_why is set. The gate measures the
 * model again. */
json_t *retrain_known(const json_t *plan, struct err **ret_why);

#endif
