/* The verdict of the gate over a run: see judge.h. */
#include "jobs/run/judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/sb.h"
#include "jobs/base/text/text.h"
#include "jobs/run/parity.h"
#include "jobs/spec/spec.h"

struct judge {
	const json_t *plan;
	struct gate gate;
	char *why[GATE_ENTRIES_MAX]; /* a series that cannot be compared: why; else NULL */
};

/* --- the plan's entries --- */

/* Returns the member of an entry that says its form, and enters the form. */
static const char *form_of(const json_t *row, enum gate_form *ret)
{
	for (int form = 0; form < GATE_FORM_COUNT; form++) {
		if (!json_object_get(row, gate_form_names[form]))
			continue;
		*ret = (enum gate_form)form;
		return gate_form_names[form];
	}
	return NULL;
}

/* Returns false for what is no entry. */
static bool entry_of(const json_t *row, struct gate_entry *ret)
{
	const char *metric = js_str(row, "metric"), *against = js_str(row, "against"), *member;
	const char *confidence = js_str(row, "confidence"), *text;
	bool share;

	*ret = (struct gate_entry){ .lower_is_better = js_is(row, "direction", "min") };
	member = form_of(row, &ret->form);
	if (!metric || !member || strlen(metric) >= sizeof ret->metric)
		return false;
	snprintf(ret->metric, sizeof ret->metric, "%s", metric);
	if (against && text_starts(against, "run:"))
		snprintf(ret->run, sizeof ret->run, "%s", against + strlen("run:"));
	if (!confidence || !spec_margin(confidence, &ret->confidence, &share))
		ret->confidence = 0.95;
	text = js_str(row, member);
	if (text)
		return spec_margin(text, &ret->limit, &ret->relative);
	ret->limit = js_real(row, member, 0);
	return true;
}

static void policy_of(const json_t *plan, struct gate_policy *ret)
{
	const json_t *row;
	size_t i;

	memset(ret, 0, sizeof *ret);
	ret->repeats = (int)js_int(json_object_get(plan, "evaluate"), "repeat", 1);
	json_array_foreach (json_object_get(plan, "gate"), i, row)
		if (ret->count < GATE_ENTRIES_MAX && entry_of(row, &ret->entries[ret->count]))
			ret->count++;
}

void judge_open(const json_t *plan, bool has_baseline, struct judge **ret)
{
	struct judge *judge = mem_zero(1, sizeof *judge);
	struct gate_policy policy;

	policy_of(plan, &policy);
	judge->plan = plan;
	gate_init(&judge->gate, &policy);
	gate_set_baseline(&judge->gate, has_baseline);
	*ret = judge;
}

void judge_freep(struct judge **judge)
{
	for (size_t i = 0; *judge && i < STK_LENGTH((*judge)->why); i++)
		free((*judge)->why[i]);
	free(*judge);
	*judge = NULL;
}

/* --- measured numbers --- */

static double number_of(const json_t *value)
{
	double number;
	const char *text = json_string_value(value);

	if (json_is_number(value))
		return json_number_value(value);
	if (text && text_float(text, strlen(text), &number) == strlen(text) && !isfinite(number))
		return number;
	return (double)NAN;
}

void judge_measure(struct judge *judge, const char *role, int64_t repeat, const json_t *metrics)
{
	enum gate_role which =
		strcmp(role, gate_role_names[GATE_BASELINE]) == 0 ? GATE_BASELINE : GATE_CANDIDATE;
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)metrics, name, value)
		gate_measure(&judge->gate, which, repeat, name, number_of(value));
}

int judge_compare(struct judge *judge, struct journal *journal, const char *run, struct err **err)
{
	for (int i = 0; i < judge->gate.policy.count; i++) {
		const struct gate_entry *entry = &judge->gate.policy.entries[i];
		struct gate_parity parity;
		int found;

		if (entry->form != GATE_MAX_GAP || judge->why[i])
			continue;
		found = parity_read(journal, run, entry, &parity, &judge->why[i], err);
		if (found < 0)
			return -1;
		if (found > 0)
			gate_set_parity(&judge->gate, i, &parity);
	}
	return 0;
}

/* --- verdict in words --- */

/* Adds a number; `digits` 0: as many as it has. */
static void add_number(struct sb *text, double value, int digits)
{
	char number[TEXT_NUMBER];

	if (digits > 0 && isfinite(value))
		sb_addf(text, "%.*g", digits, value);
	else
		sb_adds(text, text_number(value, number));
}

/* Adds "max_drop 0.1%": the entry's limit as the spec has it. */
static void add_limit(struct sb *text, const json_t *row)
{
	enum gate_form form;
	const char *member = form_of(row, &form);
	const json_t *value = member ? json_object_get(row, member) : NULL;

	sb_addf(text, "%s ", member ? member : "");
	if (json_is_string(value))
		sb_adds(text, json_string_value(value));
	else
		add_number(text, json_number_value(value), 0);
}

/* Adds "accuracy is 0.31, the baseline's 0.9583"; `pairs`: there is a baseline to drop from. */
static void add_values(struct sb *text, const struct gate_entry *entry,
		       const struct gate_result *result, bool pairs)
{
	/* A mean has digits that no value had. */
	int digits = result->repeats > 1 ? 12 : 0;

	sb_addf(text, "%s is ", entry->metric);
	add_number(text, result->candidate, digits);
	if (result->repeats > 1)
		sb_addf(text, " on average of %d", result->repeats);
	if (!pairs)
		return;
	sb_adds(text, ", the baseline's ");
	add_number(text, result->baseline, digits);
}

static void add_drop(struct sb *text, const struct gate_entry *entry,
		     const struct gate_result *result)
{
	const char *side = entry->lower_is_better ? "most" : "least";
	double reached = result->upper - result->drop;

	add_values(text, entry, result, true);
	if (result->repeats > 1) {
		sb_addf(text, "; with %g%% confidence it is at %s ", entry->confidence * 100, side);
		add_number(text,
			   entry->lower_is_better ? result->candidate + reached
						  : result->candidate - reached,
			   12);
	}
	sb_addf(text, "; it must be at %s ", side);
	add_number(text, result->bound, 12);
}

static void add_parity(struct sb *text, const struct judge *judge, int index,
		       const struct gate_result *result)
{
	const struct gate_entry *entry = &judge->gate.policy.entries[index];
	const struct gate_parity *parity = &result->parity;

	sb_addf(text, "%s against run %s: ", entry->metric, entry->run);
	if (judge->why[index])
		sb_adds(text, judge->why[index]);
	else if (parity->points == 0)
		sb_adds(text, "no step has a value in both runs");
	else if (parity->missing > 0)
		sb_addf(text, "step %lld is missing in %s%s", (long long)parity->missing_step,
			parity->lacking == GATE_BASELINE ? "run " : "this run",
			parity->lacking == GATE_BASELINE ? entry->run : "");
	else if (parity->invalid > 0)
		sb_addf(text, "a value of step %lld is no number", (long long)parity->invalid_step);
	if (isnan(result->drop))
		return;
	if (text->len > 0 && text->text[text->len - 1] != ' ')
		sb_adds(text, "; ");
	sb_adds(text, "the largest gap is ");
	add_number(text, result->drop, 12);
	sb_addf(text, " at step %lld (", (long long)parity->step);
	add_number(text, result->candidate, 0);
	sb_adds(text, " and ");
	add_number(text, result->baseline, 0);
	sb_adds(text, ")");
	if (isnan(result->limit))
		return;
	sb_adds(text, ", and must be less than ");
	add_number(text, result->limit, 12);
}

static char *words_of(const struct judge *judge, int index, const json_t *row,
		      const struct gate_result *result)
{
	const struct gate_entry *entry = &judge->gate.policy.entries[index];
	bool pairs = entry->form == GATE_MAX_DROP && judge->gate.baseline;
	int values = result->repeats * (pairs ? 2 : 1);
	struct sb text = SB_INIT;

	if (entry->form == GATE_MAX_GAP) {
		add_parity(&text, judge, index, result);
	} else if (result->reason == GATE_MISSING) {
		sb_addf(&text, "%s: %d of %d value%s missing", entry->metric, result->missing,
			values, values == 1 ? " is" : "s are");
	} else if (result->reason == GATE_NOT_FINITE) {
		add_values(&text, entry, result, pairs);
		sb_adds(&text, ", which is no number to judge by");
	} else if (result->reason == GATE_NO_BASELINE) {
		add_values(&text, entry, result, pairs);
		sb_adds(&text, "; there is no baseline to compare with");
	} else if (result->reason == GATE_BASELINE_ZERO) {
		add_values(&text, entry, result, pairs);
		sb_adds(&text, ", of which a share says nothing");
	} else if (entry->form == GATE_MAX_DROP) {
		add_drop(&text, entry, result);
	} else {
		add_values(&text, entry, result, pairs);
		sb_addf(&text, "; it must be at %s ",
			entry->form == GATE_AT_LEAST ? "least" : "most");
		add_number(&text, entry->limit, 0);
	}
	if (entry->form == GATE_MAX_DROP || entry->form == GATE_MAX_GAP) {
		sb_adds(&text, " (");
		add_limit(&text, row);
		sb_adds(&text, ")");
	}
	return sb_take(&text);
}

/* --- verdict as JSON --- */

static void put_value(json_t *to, const char *name, double value, bool there)
{
	if (there)
		js_put(to, name, js_number(value));
}

static void put_parity(json_t *to, const struct gate_result *result)
{
	const struct gate_parity *parity = &result->parity;

	js_put(to, "points", json_integer(parity->points));
	if (!isnan(result->drop))
		js_put(to, "step", json_integer(parity->step));
	if (parity->missing > 0) {
		js_put(to, "missing", json_integer(parity->missing));
		js_put(to, "missing_step", json_integer(parity->missing_step));
		js_put_str(to, "missing_in", gate_role_names[parity->lacking]);
	}
}

static json_t *entry_json(const struct judge *judge, int index, const json_t *row,
			  const struct gate_result *result)
{
	const struct gate_entry *entry = &judge->gate.policy.entries[index];
	const char *hold_out = js_str(json_object_get(judge->plan, "evaluate"), "data");
	AUTO(sb_release) struct sb limit = SB_INIT;
	AUTO(auto_free) char *words = words_of(judge, index, row, result);
	bool parity = entry->form == GATE_MAX_GAP, measured = result->missing == 0;
	bool pairs = entry->form == GATE_MAX_DROP && judge->gate.baseline;
	json_t *to = json_object();

	add_limit(&limit, row);
	js_put_str(to, "metric", entry->metric);
	js_put_str(to, "limit", limit.text);
	js_put(to, "against", json_incref(json_object_get(row, "against")));
	js_put(to, "passed", json_boolean(result->passed));
	js_put_str(to, "verdict", gate_reason_names[result->reason]);
	put_value(to, "candidate", result->candidate, parity ? !isnan(result->drop) : measured);
	put_value(to, "baseline", result->baseline,
		  parity ? !isnan(result->drop) : measured && pairs);
	js_put(to, parity ? "gap" : "drop", json_real(result->drop));
	if (result->repeats > 1 && pairs)
		js_put(to, "upper", json_real(result->upper));
	js_put(to, "margin", json_real(pairs || parity ? result->limit : (double)NAN));
	js_put(to, "bound", json_real(parity || pairs ? result->bound : entry->limit));
	if (parity) {
		put_parity(to, result);
	} else {
		js_put(to, "repeats", json_integer(result->repeats));
		if (result->missing > 0)
			js_put(to, "missing", json_integer(result->missing));
		js_put_str(to, "hold_out", hold_out);
	}
	js_put_str(to, "reason", words);
	return to;
}

/* Joins the sentences of the entries that pass, or of those that do not. */
static char *reason_of(const json_t *plan, const json_t *gates, bool passed)
{
	const char *hold_out = js_str(json_object_get(plan, "evaluate"), "data");
	struct sb text = SB_INIT;
	const json_t *row;
	size_t i;

	json_array_foreach (gates, i, row)
		if (json_is_true(json_object_get(row, "passed")) == passed)
			sb_addf(&text, "%s%s", text.len > 0 ? "; " : "", js_str(row, "reason"));
	if (text.len == 0)
		sb_adds(&text, "the plan has no gate");
	else if (hold_out)
		sb_addf(&text, "; hold-out: %s", hold_out);
	return sb_take(&text);
}

void judge_verdict(const struct judge *judge, bool *ret_passed, json_t **ret_gates,
		   char **ret_reason)
{
	struct gate_verdict verdict;
	json_t *gates = json_array();
	const json_t *row;
	size_t i;
	int entry = 0;

	gate_judge(&judge->gate, &verdict);
	json_array_foreach (json_object_get(judge->plan, "gate"), i, row) {
		struct gate_entry ignored;

		if (entry >= verdict.count || !entry_of(row, &ignored))
			continue;
		json_array_append_new(gates,
				      entry_json(judge, entry, row, &verdict.results[entry]));
		entry++;
	}
	*ret_passed = verdict.passed;
	*ret_gates = gates;
	*ret_reason = reason_of(judge->plan, gates, verdict.passed);
}

/* --- checks before anything is measured --- */

static int note_event(void *arg, const struct event *ev, json_t *row, struct err **err)
{
	(void)ev;
	(void)row;
	(void)err;
	*(bool *)arg = true;
	return 1;
}

int judge_check(const json_t *plan, struct journal *journal, struct err **err)
{
	const json_t *row;
	size_t i;

	json_array_foreach (json_object_get(plan, "gate"), i, row) {
		struct gate_entry entry;
		bool there = false;

		if (!entry_of(row, &entry) || entry.form != GATE_MAX_GAP)
			continue;
		if (journal_read(journal, entry.run, 1, note_event, &there, err) < 0)
			return -1;
		if (there)
			continue;
		err_set(err, EXIT_REFUSED, "the gate compares %s with run %s, which is not there",
			entry.metric, entry.run);
		return err_hint(err, "'stoker list' shows the runs; --state names another state "
				     "directory");
	}
	return 0;
}

static char *outlook_of(const struct gate_entry *entry, const json_t *row, const json_t *baseline)
{
	const json_t *value = json_object_get(baseline, entry->metric);
	const char *verb = entry->lower_is_better ? "rise" : "fall";
	double from = json_number_value(value);
	struct sb text = SB_INIT;

	sb_addf(&text, "%s ", entry->metric);
	switch (entry->form) {
	case GATE_MAX_DROP:
		if (entry->limit == 0) {
			sb_addf(&text, "may not %s", verb);
			if (json_is_number(value)) {
				sb_addf(&text, " %s ", entry->lower_is_better ? "above" : "below");
				add_number(&text, from, 12);
			}
			break;
		}
		if (json_is_number(value) && !isnan(gate_bound(entry, from))) {
			sb_addf(&text, "may %s from ", verb);
			add_number(&text, from, 12);
			sb_adds(&text, " to ");
			add_number(&text, gate_bound(entry, from), 5);
			break;
		}
		sb_addf(&text, "may %s by ", verb);
		sb_adds(&text, js_str(row, "max_drop"));
		sb_adds(&text, entry->relative ? " of the baseline's value"
					       : " from the baseline's value");
		break;
	case GATE_MAX_GAP:
		sb_addf(&text, "must stay within less than %s of run %s at every step",
			js_str(row, "max_gap"), entry->run);
		break;
	case GATE_AT_LEAST:
	case GATE_AT_MOST:
		sb_addf(&text, "must be at %s ", entry->form == GATE_AT_LEAST ? "least" : "most");
		add_number(&text, entry->limit, 0);
		break;
	case GATE_FORM_COUNT:
		break;
	}
	return sb_take(&text);
}

json_t *judge_outlook(const json_t *plan, const json_t *baseline)
{
	json_t *lines = json_array();
	const json_t *row;
	size_t i;

	json_array_foreach (json_object_get(plan, "gate"), i, row) {
		AUTO(auto_free) char *line = NULL;
		struct gate_entry entry;

		if (!entry_of(row, &entry))
			continue;
		line = outlook_of(&entry, row, baseline);
		json_array_append_new(lines, js_text(line, strlen(line)));
	}
	return lines;
}
