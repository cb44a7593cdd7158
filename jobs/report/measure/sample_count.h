/*
 * The samples of a step, by the metric `samples`, which counts those of the training so far: over
 * all steps between its readings, attempt by attempt. Of several nodes the first that tells any
 * counts for all. A count that goes back begins anew, as it does with an attempt.
 */
#ifndef STK_REPORT_MEASURE_SAMPLE_COUNT_H
#define STK_REPORT_MEASURE_SAMPLE_COUNT_H

#include <stdbool.h>
#include <stdint.h>

struct sample_count {
	double steps, samples; /* counted so far */
	/* while readings are added */
	int64_t attempt, last_step;
	double last;
	int node;
	bool any;
};

/* Adds a reading in the order of the log; one before the first step counts nothing. */
void sample_count_add(struct sample_count *count, int64_t attempt, int node, int64_t step,
		      double samples);
/* Returns the samples of a step; NAN: not known. */
double sample_count_per_step(const struct sample_count *count);

#endif
