/* What retries, time and money come to, by the journal alone: see budgets.c. */
#ifndef STK_TESTS_WORLD_BUDGETS_H
#define STK_TESTS_WORLD_BUDGETS_H

#include "tests/world/story.h"

void budgets_reset(void);
void rule5(const struct story *story);
void rule8(const struct story *story);
/* An attempt that ended because its compiler is not the lock's. */
bool budget_is_refused(const struct story *story, const struct event *ev);
/* What a limit.reached says, by the events before it. */
bool budget_limit_is_true(const struct story *story, const struct event *ev);
/* How long before the deadline a training is to be told to save, as the run stands. */
int64_t budget_lead_ms(const struct story *story);
/* Which steps a choice before event `seq` may trust: a recorded fall back gives up the newest one
 * known then, until there is one beyond it. */
int64_t budget_trusted_below(const struct story *story, int64_t seq);

#endif
