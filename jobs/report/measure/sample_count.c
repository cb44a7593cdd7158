/* Samples of a step: see sample_count.h. */
#include "jobs/report/measure/sample_count.h"

#include <math.h>

void sample_count_add(struct sample_count *count, int64_t attempt, int node, int64_t step,
		      double samples)
{
	if (step < 0 || !(samples >= 0) || isinf(samples) || (count->any && node != count->node))
		return;
	if (count->any && attempt == count->attempt && step >= count->last_step &&
	    samples >= count->last) {
		count->steps += (double)(step - count->last_step);
		count->samples += samples - count->last;
	}
	count->any = true;
	count->node = node;
	count->attempt = attempt;
	count->last_step = step;
	count->last = samples;
}

double sample_count_per_step(const struct sample_count *count)
{
	return count->steps > 0 && count->samples > 0 ? count->samples / count->steps : NAN;
}
