/* How sure a share of a count is. */
#ifndef STK_REPORT_PROPORTION_H
#define STK_REPORT_PROPORTION_H

#include <stdint.h>

/* The interval of Wilson at 95 % for `hits` of `count`, which is not 0. */
void proportion_wilson(int64_t hits, int64_t count, double *ret_low, double *ret_high);
/* The probability of at least `hits` of `count` where each has the probability `share`. */
double proportion_tail(int64_t hits, int64_t count, double share);

#endif
