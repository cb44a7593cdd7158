/*
 * Says what held a training up, from what its nodes did (jobs/base/usage.h), by the table in
 * usage_rules.def.
 *
 * Only the middle of a training is judged: not what was before the first step and the
 * USAGE_WARM samples after it (where the log tells no steps: the first minute), of each start of
 * the command, and not its last sample. Of a node with fewer than USAGE_LEAST samples that are left
 * nothing is said.
 */
#ifndef STK_REPORT_MEASURE_USAGE_RULES_H
#define STK_REPORT_MEASURE_USAGE_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "jobs/base/text/js.h"

#define USAGE_WARM  3
#define USAGE_LEAST 6

/* Thresholds, in %; of the swap in MiB/s. */
#define USAGE_IDLE      10
#define USAGE_WORKS     50
#define USAGE_WAITS     30
#define USAGE_LOADS     40
#define USAGE_SATURATED 90
#define USAGE_BUSY      60
#define USAGE_SWAPS     1
#define USAGE_ROOMY     50

#define USAGE_TEXT_OF(number) #number
#define USAGE_TEXT(number)    USAGE_TEXT_OF(number)

enum usage_rule {
#define USAGE_RULE(id, name, share, looks, means) USAGE_RULE_##id,
#include "jobs/report/measure/usage_rules.def"
#undef USAGE_RULE
	USAGE_RULES
};

struct usage_rules_row {
	const char *name;
	double share; /* in % */
	const char *looks, *means;
};
extern const struct usage_rules_row usage_rules_table[USAGE_RULES];

struct usage_rules; /* a run that is judged */

/* `has_steps`: the log tells steps. */
struct usage_rules *usage_rules_new(bool has_steps);
void usage_rules_freep(struct usage_rules **rules); /* for AUTO() */

struct usage_point {
	int64_t attempt;
	size_t start; /* number of the command's start in the attempt */
	int node;
	size_t figure;
	int64_t step; /* -1: before the first */
	int64_t at_ms;
	double value;
};
/* Adds the next figure: those of an attempt's node by rising time. */
void usage_rules_add(struct usage_rules *rules, const struct usage_point *point);

/* Returns what is found, a new array of {"rule", "node", "figure", "threshold", "share", "means"},
 * texts but for the node and the share (in % of the judged time); NULL if nothing can be said.
 * `*ret_seconds` is the time that was judged, of all nodes. To be called once, at the end. */
json_t *usage_rules_findings(struct usage_rules *rules, double *ret_seconds);

#endif
