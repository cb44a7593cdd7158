/*
 * The step times of a run, from the times at which its log told the steps.
 *
 * Left out are the first STEP_TIMES_WARM steps of each attempt, and of each start of its command
 * that the service makes itself, in which graphs are compiled and caches are filled, and the time
 * between two told steps if a graph was compiled in it. Evaluation and saving are in, but the
 * saving of a benchmark, of which it is known when it was. Several nodes
 * tell the same steps: those of the first one that tells any are measured. Lines that come within
 * STEP_TIMES_JOIN_MS are one sample, because a log that is written in bursts has a right mean and
 * no single step times.
 *
 * Where there are no steps, epochs stand for them (`epochs`); then the first of each is left out.
 */
#ifndef STK_REPORT_MEASURE_STEP_TIMES_H
#define STK_REPORT_MEASURE_STEP_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STEP_TIMES_WARM    10
#define STEP_TIMES_JOIN_MS 5
#define STEP_TIMES_RULE                                                                            \
	"step times: without the first 10 steps of each attempt, and without the time between "    \
	"two "                                                                                     \
	"told steps in which a graph was compiled"

/* The rule that is added for benchmarks. */
#define STEP_TIMES_BENCHMARK_RULE                                                                  \
	"benchmarks: step times are also without the time between two told steps in which the "    \
	"command saved, and no checkpoint is uploaded before it is over"

#define STEP_TIMES_EPOCHS_RULE                                                                     \
	"epochs are measured as steps are, because the log has no metric 'step': without the "     \
	"first of each attempt, and without those in which a graph was compiled"

/* Steps that took the same time each, as far as is known. Logs tell times in milliseconds, so of
 * many spans few differ: those of the same time are joined now and then, and memory is bounded. */
struct step_span {
	int64_t attempt, step; /* the last of them; of spans that were joined, of any of these */
	double seconds;        /* of one step */
	double steps;
};

struct step_times {
	struct step_span *spans; /* owned */
	size_t count;
	size_t join_at;          /* so many spans are joined before another one is added */
	struct step_span newest; /* as it was added; `added` is how many were */
	uint64_t added;
	double steps, seconds; /* of all spans */
	struct step_late {
		int64_t attempt, after_step;
	} * late; /* owned */
	size_t late_count;
	struct step_save {
		int64_t attempt, from_ms, to_ms;
	} * saves; /* owned */
	size_t save_count;
	bool epochs; /* set by the caller */
	/* while steps are added */
	int64_t attempt, first, last, last_ms;
	size_t start;
	int node;
	bool any, inexact;
};

void step_times_release(struct step_times *times); /* for AUTO(); { 0 } is fine */

/* A graph was compiled after this step: to be called before steps are added. */
void step_times_add_late(struct step_times *times, int64_t attempt, int64_t after_step);
/* To be called before a step is added, with the number of the command's start in the attempt: the
 * time until the command was started again is no step time. */
void step_times_start(struct step_times *times, int64_t attempt, size_t start, int node);
/* Adds a step as the log told it, in its order; `inexact`: its time is not known well. */
void step_times_add(struct step_times *times, int64_t attempt, int node, int64_t step, int64_t ms,
		    bool inexact);

/* The command saved in this time: to be called before steps are added, in the order of attempts
 * and times. */
void step_times_add_save(struct step_times *times, int64_t attempt, int64_t from_ms, int64_t to_ms);
/* True if a figure that the log tells at this step counts: the step lies behind the first ones of
 * the attempt, which has told a step, and no graph was compiled in it. */
bool step_times_counts(const struct step_times *times, int64_t attempt, int64_t step);
/* Adds a step by the seconds that the log tells itself. */
void step_times_add_told(struct step_times *times, int64_t attempt, int64_t step, double seconds);

/* Seconds a step; NAN if no step is measured. */
double step_times_mean(const struct step_times *times);
/* The time that the share `q` of the steps does not exceed. Sorts the spans by it. */
double step_times_quantile(struct step_times *times, double q);

#endif
