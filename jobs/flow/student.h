/* Student's t distribution, for intervals around means of few values: the gate's, and those of a
 * comparison of runs. */
#ifndef STK_FLOW_STUDENT_H
#define STK_FLOW_STUDENT_H

/* Returns the value below which the share `p` of the distribution lies, 0 < p < 1; `freedom` > 0 is
 * the number of degrees of freedom. Right to about 1e-9. */
double student_quantile(double p, double freedom);

#endif
