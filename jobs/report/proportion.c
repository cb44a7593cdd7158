/* Shares of a count: see proportion.h. */
#include "jobs/report/proportion.h"

#include <math.h>

#define Z_95 1.959963984540054 /* two-sided 95 % of the normal distribution */

void proportion_wilson(int64_t hits, int64_t count, double *ret_low, double *ret_high)
{
	double n = (double)count, p = (double)hits / n, square = Z_95 * Z_95;
	double middle = (p + square / (2 * n)) / (1 + square / n);
	double half = Z_95 * sqrt(p * (1 - p) / n + square / (4 * n * n)) / (1 + square / n);

	/* At the ends the formula gives 0 and 1 but for rounding. */
	*ret_low = hits == 0 ? 0 : middle - half;
	*ret_high = hits == count ? 1 : middle + half;
}

double proportion_tail(int64_t hits, int64_t count, double share)
{
	double sum = 0, n = (double)count;

	if (hits <= 0 || share >= 1)
		return 1;
	if (hits > count || share <= 0)
		return 0;
	for (int64_t k = hits; k <= count; k++)
		sum += exp(lgamma(n + 1) - lgamma((double)k + 1) - lgamma(n - (double)k + 1) +
			   (double)k * log(share) + (n - (double)k) * log1p(-share));
	return sum < 1 ? sum : 1;
}
