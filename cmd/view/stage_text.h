/* What follows a training as text, from the JSON of a run's state: candidate, evaluation, gate,
 * inference, promoted version. */
#ifndef STK_CMD_VIEW_STAGE_TEXT_H
#define STK_CMD_VIEW_STAGE_TEXT_H

#include "jobs/base/text/js.h"

/* Prints nothing of a run that has none of it. */
void stage_text_print(const json_t *status);

#endif
