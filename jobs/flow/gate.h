/*
 * The gate: whether a candidate may take the place of the promoted model. Pure, as the rest of the
 * flow: values go in with events, a verdict comes out; nothing is read, allocated or printed.
 *
 *     gate_init(&gate, &policy)
 *     gate_set_baseline(&gate, there)               by the inputs of run.created
 *     gate_measure(&gate, role, repeat, metric, value)
 *                                                   for each value of each evaluate.measured
 *     gate_set_parity(&gate, entry, &parity)        for each entry of form max_gap
 *     gate_judge(&gate, &verdict)                   once all tasks of EVALUATE are done
 *
 * All of them depend on their arguments alone, and values may come in any order and more than once
 * (the first one counts): every driver that reads the journal comes to the same verdict.
 * jobs/run/judge.h does this with the events of a journal, and makes the gate.judged of it.
 *
 * How values come in. An evaluate.measured of a task says role ("candidate" or "baseline"), repeat
 * (from 1, as STOKER_REPEAT) and its values; a metric that the task did not report is left out, and
 * is missing. JSON has neither NaN nor infinity: what stands for them must come in as a double that
 * is not finite, and not be left out or be 0.
 *
 * Parity (`against: run:ID`) compares the whole series of two runs. Their points are no events:
 * whoever reads them gives them to gate_parity_add(), which keeps the largest gap and nothing else.
 * Both series come merged, in the order of steps, and a step that an attempt made again comes after
 * the first time it was made: the later value counts, as in a comparison of runs. Points of phase 1
 * are passed over.
 *
 * Which numbers pass:
 * - A limit with a percent sign is a share of the magnitude of the baseline's mean; else it is in
 *   the metric's own unit. A share of 0 says nothing, so a baseline of 0 does not pass.
 * - A drop (fall for max, rise for min) of up to max_drop passes. A gap passes if it is less than
 *   max_gap, at every step. at_least and at_most are met by their own number.
 * - Numbers that differ by at most 10^-12 of the larger magnitude are equal: that is the noise of
 *   arithmetic on decimal fractions, and far beyond what an evaluation can tell apart.
 * - With two and more repeats, the drops of the pairs (candidate and baseline of one repeat) are a
 *   sample. The upper end of the one-sided interval of Student's t around their mean must pass, not
 *   the mean. at_least and at_most judge the mean of the candidate's repeats.
 * - A value that is missing, NaN or infinite, in any repeat, never passes.
 * - Where there is no baseline at all (the first model), entries against it say so, and pass if the
 *   candidate's own values are numbers.
 */
#ifndef STK_FLOW_GATE_H
#define STK_FLOW_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "jobs/flow/event.h"

#define GATE_ENTRIES_MAX 16  /* gate, with the short form in evaluate */
#define GATE_REPEATS_MAX 50  /* evaluate.repeat */
#define GATE_METRIC_MAX  256 /* bytes of a metric's name, with its end */
#define GATE_RUN_MAX     65  /* bytes of a run's id, with its end */

/* The four forms of an entry. */
enum gate_form { GATE_MAX_DROP, GATE_MAX_GAP, GATE_AT_LEAST, GATE_AT_MOST, GATE_FORM_COUNT };

enum gate_role { GATE_CANDIDATE, GATE_BASELINE, GATE_ROLE_COUNT };

/* The reason why an entry passes, or not. */
enum gate_reason {
	GATE_PASSED,
	GATE_NO_BASELINE,   /* no model to compare with: passes */
	GATE_BEYOND,        /* the limit is exceeded, or met by a gap */
	GATE_MISSING,       /* a value or a point is missing */
	GATE_NOT_FINITE,    /* a value is NaN or infinite */
	GATE_BASELINE_ZERO, /* a share of 0 is no limit */
	GATE_REASON_COUNT
};

extern const char *const gate_form_names[GATE_FORM_COUNT]; /* "max_drop" … as in the spec */
extern const char *const gate_role_names[GATE_ROLE_COUNT];
extern const char *const gate_reason_names[GATE_REASON_COUNT];

/* An entry of the plan. */
struct gate_entry {
	enum gate_form form;
	char metric[GATE_METRIC_MAX];
	char run[GATE_RUN_MAX]; /* max_gap: the run to compare with; else empty */
	bool lower_is_better;   /* direction: min */
	bool relative;          /* `limit` is a share: 0.001 for 0.1% */
	double limit;
	double confidence; /* max_drop with repeats: 0.95 */
};

struct gate_policy {
	struct gate_entry entries[GATE_ENTRIES_MAX];
	int count;   /* 0: the run has no gate */
	int repeats; /* evaluate.repeat, from 1 */
};

/* Outcome of the comparison of two series. */
struct gate_parity {
	int64_t points;         /* steps that both runs have */
	int64_t missing;        /* steps that only one has */
	int64_t missing_step;   /* the first of them, if there is one */
	enum gate_role lacking; /* the run without it; BASELINE is the other run */
	int64_t invalid;        /* steps at which a value is NaN or infinite */
	int64_t invalid_step;   /* the first of them */
	/* The largest gap, a share of the other run's magnitude where the limit is one: its step
	 * and both values. The first of equal ones. */
	int64_t step;
	double candidate, baseline;
};

/* State of a comparison of two series, step by step. */
struct gate_parity_reader {
	struct gate_parity parity;
	bool relative, begun;
	bool there[GATE_ROLE_COUNT]; /* at `step` */
	int64_t step;
	double value[GATE_ROLE_COUNT];
	double largest;
};

struct gate {
	struct gate_policy policy;
	bool baseline; /* a model to compare with is there */
	/* Values by entry, role and repeat, and a bit for each that has come. */
	double values[GATE_ENTRIES_MAX][GATE_ROLE_COUNT][GATE_REPEATS_MAX];
	uint64_t there[GATE_ENTRIES_MAX][GATE_ROLE_COUNT];
	struct gate_parity parity[GATE_ENTRIES_MAX];
	bool compared[GATE_ENTRIES_MAX]; /* `parity` is known */
};

/* Verdict on one entry. Numbers that are not known are NaN. */
struct gate_result {
	enum gate_reason reason;
	bool passed;
	double candidate, baseline; /* means over the repeats; of a parity at `step` */
	double drop;                /* by which the candidate is worse; of a parity the gap */
	double upper;               /* upper end of its interval; `drop` without one */
	double limit;               /* the entry's, in the metric's unit */
	double bound;               /* max_drop: the candidate's limit: 0.95734 */
	int repeats;                /* pairs, or values, that were judged */
	int missing;                /* values that have not come */
	struct gate_parity parity;  /* of a parity */
};

struct gate_verdict {
	bool passed; /* all entries do; false for a gate without entries */
	int count;
	struct gate_result results[GATE_ENTRIES_MAX]; /* in the order of the plan */
};

/* `gate` has no values, and no baseline, after this. */
void gate_init(struct gate *gate, const struct gate_policy *policy);

void gate_set_baseline(struct gate *gate, bool there);

/* Takes a value of a task. A metric that no entry reads, and a repeat that the plan does not have,
 * are passed over. */
void gate_measure(struct gate *gate, enum gate_role role, int64_t repeat, const char *metric,
		  double value);

/* Takes the comparison for an entry of form max_gap, by its index. */
void gate_set_parity(struct gate *gate, int64_t entry, const struct gate_parity *parity);

void gate_judge(const struct gate *gate, struct gate_verdict *ret);

/* Returns the lowest (direction max) or highest value with which a candidate meets an entry of form
 * max_drop, for one value of the baseline: 0.95734 for 0.9583 and 0.1%. NaN if the entry cannot be
 * met, because it is relative and the baseline is 0. */
double gate_bound(const struct gate_entry *entry, double baseline);

/* Compare two series: see above. A step that is less than the one before is an order that the
 * caller must not make; it is counted as missing, so that it never passes. */
void gate_parity_begin(struct gate_parity_reader *reader, const struct gate_entry *entry);
void gate_parity_add(struct gate_parity_reader *reader, enum phase phase, enum gate_role role,
		     int64_t step, double value);
void gate_parity_end(struct gate_parity_reader *reader, struct gate_parity *ret);

#endif
