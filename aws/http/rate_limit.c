/* Rate limit of requests: see rate_limit.h. The method is known as the generic cell rate
 * algorithm. */
#include "aws/http/rate_limit.h"

int64_t rate_limit_place(struct rate_limit *limit, const struct rate_limit_rate *rate,
			 int64_t now_ms)
{
	double step, now = (double)now_ms, wait;

	if (rate->a_second <= 0)
		return 0;
	step = 1000 / rate->a_second;
	if (limit->next_ms < now)
		limit->next_ms = now;
	wait = limit->next_ms - now - step * (rate->burst - 1);
	limit->next_ms += step;
	/* Rounded up, without a library that the agent would have to download for it. */
	return wait > 0 ? (int64_t)wait + ((double)(int64_t)wait < wait) : 0;
}
