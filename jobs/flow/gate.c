/* The verdict of the gate: see gate.h. */
#include "jobs/flow/gate.h"

#include <math.h>
#include <string.h>

#include "jobs/flow/student.h"

/* Share of a magnitude below which two numbers are equal: 12 digits. */
#define SAME 1e-12

const char *const gate_form_names[GATE_FORM_COUNT] = { "max_drop", "max_gap", "at_least",
						       "at_most" };
const char *const gate_role_names[GATE_ROLE_COUNT] = { "candidate", "baseline" };
const char *const gate_reason_names[GATE_REASON_COUNT] = {
	"passed", "no_baseline", "beyond", "missing", "not_finite", "baseline_zero"
};

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* Returns the largest difference that is none, between these two. */
static double noise_of(double a, double b)
{
	return SAME * larger(fabs(a), fabs(b));
}

/* Returns the entry's limit in the unit of the metric; NaN: a share of 0 is none. */
static double margin_of(const struct gate_entry *entry, double baseline)
{
	if (!entry->relative)
		return entry->limit;
	return baseline == 0 ? (double)NAN : entry->limit * fabs(baseline);
}

double gate_bound(const struct gate_entry *entry, double baseline)
{
	double margin = margin_of(entry, baseline);

	return entry->lower_is_better ? baseline + margin : baseline - margin;
}

void gate_init(struct gate *gate, const struct gate_policy *policy)
{
	memset(gate, 0, sizeof *gate);
	gate->policy = *policy;
}

void gate_set_baseline(struct gate *gate, bool there)
{
	gate->baseline = there;
}

void gate_measure(struct gate *gate, enum gate_role role, int64_t repeat, const char *metric,
		  double value)
{
	uint64_t bit;

	if (repeat < 1 || repeat > gate->policy.repeats || repeat > GATE_REPEATS_MAX)
		return;
	bit = UINT64_C(1) << (repeat - 1);
	for (int i = 0; i < gate->policy.count; i++) {
		if (strcmp(gate->policy.entries[i].metric, metric) != 0 ||
		    (gate->there[i][role] & bit) != 0)
			continue;
		gate->there[i][role] |= bit;
		gate->values[i][role][repeat - 1] = value;
	}
}

void gate_set_parity(struct gate *gate, int64_t entry, const struct gate_parity *parity)
{
	if (entry < 0 || entry >= gate->policy.count || gate->compared[entry])
		return;
	gate->parity[entry] = *parity;
	gate->compared[entry] = true;
}

/* --- one entry --- */

struct entry_view {
	const struct gate *gate;
	const struct gate_entry *entry;
	int index;
};

/* Returns how many values of a role have not come. */
static int missing_of(const struct entry_view *view, enum gate_role role)
{
	int missing = 0;

	for (int i = 0; i < view->gate->policy.repeats; i++)
		missing += (view->gate->there[view->index][role] >> i & 1) == 0;
	return missing;
}

/* Returns the mean of a role's values; what is no number makes it none. */
static double mean_of(const struct entry_view *view, enum gate_role role)
{
	const double *values = view->gate->values[view->index][role];
	double sum = 0;

	for (int i = 0; i < view->gate->policy.repeats; i++)
		sum += values[i];
	return sum / view->gate->policy.repeats;
}

/* Returns by how much the upper end of the interval lies above the mean drop; 0 for one pair. */
static double half_interval(const struct entry_view *view, double mean_drop)
{
	const double *candidate = view->gate->values[view->index][GATE_CANDIDATE];
	const double *baseline = view->gate->values[view->index][GATE_BASELINE];
	const int count = view->gate->policy.repeats;
	double squares = 0;

	if (count < 2)
		return 0;
	for (int i = 0; i < count; i++) {
		double drop = view->entry->lower_is_better ? candidate[i] - baseline[i]
							   : baseline[i] - candidate[i];

		squares += (drop - mean_drop) * (drop - mean_drop);
	}
	return student_quantile(view->entry->confidence, count - 1) *
	       sqrt(squares / (count - 1) / count);
}

static void judge_drop(const struct entry_view *view, struct gate_result *ret)
{
	double reached, half, excess;

	ret->drop = view->entry->lower_is_better ? ret->candidate - ret->baseline
						 : ret->baseline - ret->candidate;
	half = half_interval(view, ret->drop);
	ret->upper = ret->drop + half;
	ret->limit = margin_of(view->entry, ret->baseline);
	ret->bound = gate_bound(view->entry, ret->baseline);
	if (isnan(ret->limit)) {
		ret->reason = GATE_BASELINE_ZERO;
		return;
	}
	reached = view->entry->lower_is_better ? ret->candidate + half : ret->candidate - half;
	excess = view->entry->lower_is_better ? reached - ret->bound : ret->bound - reached;
	/* Sums of large numbers overflow. */
	if (!isfinite(excess))
		ret->reason = GATE_NOT_FINITE;
	else if (excess <= noise_of(reached, ret->bound))
		ret->reason = GATE_PASSED;
}

static void judge_number(const struct entry_view *view, struct gate_result *ret)
{
	double excess = view->entry->form == GATE_AT_LEAST ? view->entry->limit - ret->candidate
							   : ret->candidate - view->entry->limit;

	ret->limit = view->entry->limit;
	if (excess <= noise_of(ret->candidate, view->entry->limit))
		ret->reason = GATE_PASSED;
}

static void judge_parity(const struct entry_view *view, struct gate_result *ret)
{
	const struct gate_parity *parity = &ret->parity;

	*ret = (struct gate_result){ .reason = GATE_BEYOND,
				     .candidate = (double)NAN,
				     .baseline = (double)NAN,
				     .drop = (double)NAN,
				     .upper = (double)NAN,
				     .limit = (double)NAN,
				     .bound = (double)NAN,
				     .parity = view->gate->parity[view->index] };
	if (!view->gate->compared[view->index] || parity->points == 0) {
		ret->reason = GATE_MISSING;
		return;
	}
	if (parity->points > parity->invalid) {
		ret->candidate = parity->candidate;
		ret->baseline = parity->baseline;
		ret->drop = ret->upper = fabs(parity->candidate - parity->baseline);
		ret->limit = margin_of(view->entry, parity->baseline);
	}
	if (parity->missing > 0)
		ret->reason = GATE_MISSING;
	else if (parity->invalid > 0)
		ret->reason = GATE_NOT_FINITE;
	else if (isnan(ret->limit))
		ret->reason = GATE_BASELINE_ZERO;
	else if (ret->limit - ret->drop > noise_of(ret->candidate, ret->baseline))
		ret->reason = GATE_PASSED;
}

static void judge_values(const struct entry_view *view, struct gate_result *ret)
{
	bool pairs = view->entry->form == GATE_MAX_DROP && view->gate->baseline;

	ret->repeats = view->gate->policy.repeats;
	ret->missing = missing_of(view, GATE_CANDIDATE);
	if (ret->missing == 0)
		ret->candidate = mean_of(view, GATE_CANDIDATE);
	if (pairs) {
		int missing = missing_of(view, GATE_BASELINE);

		if (missing == 0)
			ret->baseline = mean_of(view, GATE_BASELINE);
		ret->missing += missing;
	}
	if (ret->missing > 0)
		ret->reason = GATE_MISSING;
	else if (!isfinite(ret->candidate) || (pairs && !isfinite(ret->baseline)))
		ret->reason = GATE_NOT_FINITE;
	else if (pairs)
		judge_drop(view, ret);
	else if (view->entry->form == GATE_MAX_DROP)
		ret->reason = GATE_NO_BASELINE;
	else
		judge_number(view, ret);
}

void gate_judge(const struct gate *gate, struct gate_verdict *ret)
{
	memset(ret, 0, sizeof *ret);
	ret->count = gate->policy.count;
	ret->passed = ret->count > 0;
	for (int i = 0; i < ret->count; i++) {
		struct entry_view view = { gate, &gate->policy.entries[i], i };
		struct gate_result *result = &ret->results[i];

		result->reason = GATE_BEYOND;
		result->candidate = result->baseline = (double)NAN;
		result->drop = result->upper = result->limit = result->bound = (double)NAN;
		if (view.entry->form == GATE_MAX_GAP)
			judge_parity(&view, result);
		else
			judge_values(&view, result);
		result->passed =
			result->reason == GATE_PASSED || result->reason == GATE_NO_BASELINE;
		ret->passed = ret->passed && result->passed;
	}
}

/* --- two series --- */

void gate_parity_begin(struct gate_parity_reader *reader, const struct gate_entry *entry)
{
	memset(reader, 0, sizeof *reader);
	reader->relative = entry->relative;
	reader->largest = -1;
}

static void count_missing(struct gate_parity *parity, int64_t step, enum gate_role lacking)
{
	if (parity->missing++ > 0)
		return;
	parity->missing_step = step;
	parity->lacking = lacking;
}

/* Compares a step that both runs have: is the gap there the largest? */
static void compare_step(struct gate_parity_reader *reader)
{
	struct gate_parity *parity = &reader->parity;
	double candidate = reader->value[GATE_CANDIDATE], baseline = reader->value[GATE_BASELINE];
	double gap = fabs(candidate - baseline);

	parity->points++;
	if (!isfinite(candidate) || !isfinite(baseline)) {
		if (parity->invalid++ == 0)
			parity->invalid_step = reader->step;
		return;
	}
	if (reader->relative)
		gap = baseline == 0 ? (double)INFINITY : gap / fabs(baseline);
	if (!(gap > reader->largest))
		return;
	reader->largest = gap;
	parity->step = reader->step;
	parity->candidate = candidate;
	parity->baseline = baseline;
}

static void close_step(struct gate_parity_reader *reader)
{
	if (!reader->begun)
		return;
	if (reader->there[GATE_CANDIDATE] && reader->there[GATE_BASELINE])
		compare_step(reader);
	else
		count_missing(&reader->parity, reader->step,
			      reader->there[GATE_CANDIDATE] ? GATE_BASELINE : GATE_CANDIDATE);
	reader->there[GATE_CANDIDATE] = reader->there[GATE_BASELINE] = false;
}

void gate_parity_add(struct gate_parity_reader *reader, enum phase phase, enum gate_role role,
		     int64_t step, double value)
{
	if (phase != PHASE_TRAIN)
		return;
	if (reader->begun && step < reader->step) {
		count_missing(&reader->parity, step, role);
		return;
	}
	if (!reader->begun || step > reader->step) {
		close_step(reader);
		reader->begun = true;
		reader->step = step;
	}
	reader->there[role] = true;
	reader->value[role] = value;
}

void gate_parity_end(struct gate_parity_reader *reader, struct gate_parity *ret)
{
	close_step(reader);
	reader->begun = false;
	*ret = reader->parity;
}
