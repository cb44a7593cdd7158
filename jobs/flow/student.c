/* Student's t: see student.h. */
#include "jobs/flow/student.h"

#include <math.h>

#define TERMS_MAX 500
#define TINY      1e-300

/* The continued fraction of the incomplete beta function, by Lentz's method (Abramowitz and Stegun,
 * 26.5.8). */
static double beta_fraction(double x, double a, double b)
{
	double c = 1, d = 1 - (a + b) * x / (a + 1), value;

	d = 1 / (fabs(d) < TINY ? TINY : d);
	value = d;
	for (int m = 1; m <= TERMS_MAX; m++) {
		const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		const double steps[] = { even, odd };
		double factor = 1;

		for (int i = 0; i < 2; i++) {
			d = 1 + steps[i] * d;
			d = 1 / (fabs(d) < TINY ? TINY : d);
			c = 1 + steps[i] / c;
			c = fabs(c) < TINY ? TINY : c;
			factor = d * c;
			value *= factor;
		}
		if (fabs(factor - 1) < 1e-15)
			break;
	}
	return value;
}

/* The regularised incomplete beta function. */
static double beta_share(double x, double a, double b)
{
	double front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	return x < (a + 1) / (a + b + 2) ? front * beta_fraction(x, a, b) / a
					 : 1 - front * beta_fraction(1 - x, b, a) / b;
}

/* The share of the distribution above t >= 0. */
static double share_above(double t, double freedom)
{
	return beta_share(freedom / (freedom + t * t), freedom / 2, 0.5) / 2;
}

double student_quantile(double p, double freedom)
{
	double above = p > 0.5 ? 1 - p : p, low = 0, high = 1;

	while (share_above(high, freedom) > above && high < 1e150)
		high *= 2;
	for (int i = 0; i < 200 && high - low > 1e-12 * high; i++) {
		double middle = (low + high) / 2;

		if (share_above(middle, freedom) > above)
			low = middle;
		else
			high = middle;
	}
	return p > 0.5 ? (low + high) / 2 : -(low + high) / 2;
}
