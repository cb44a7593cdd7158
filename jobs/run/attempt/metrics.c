/* Numbers from a log: see metrics.h. */
#include "jobs/run/attempt/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/text/regex.h"
#include "jobs/store/order.h"

/* A pattern that took too long this often will do so again. */
#define GIVEN_UP_MAX 3

struct metric {
	char *name;
	struct regex *regex; /* NULL: given up */
	bool given_up;       /* given up, and not told yet */
	bool is_step;
	bool in_row;
	double value; /* value in the newest row */
};

struct metrics {
	struct metric *list;
	size_t count;
	struct step_progress progress;
	bool has_row;
	int64_t row_step; /* -1: not known */
};

int metrics_new(const json_t *specs, struct metrics **ret, struct err **err)
{
	AUTO(metrics_freep) struct metrics *metrics = mem_zero(1, sizeof *metrics);

	metrics->row_step = -1;
	metrics->count = json_array_size(specs);
	metrics->list = mem_zero(metrics->count, sizeof *metrics->list);
	for (size_t i = 0; i < metrics->count; i++) {
		const json_t *spec = json_array_get(specs, i);
		struct metric *metric = &metrics->list[i];

		metric->name = mem_copy(js_str(spec, "name"));
		metric->is_step = strcmp(metric->name, METRIC_STEP) == 0;
		if (regex_compile(js_str(spec, "regex"), &metric->regex, err) < 0)
			return err_wrap(err, "metric '%s'", metric->name);
	}
	*ret = TAKE(metrics);
	return 0;
}

void metrics_freep(struct metrics **metrics)
{
	struct metrics *m = *metrics;

	if (!m)
		return;
	for (size_t i = 0; m->list && i < m->count; i++) {
		free(m->list[i].name);
		regex_freep(&m->list[i].regex);
	}
	free(m->list);
	free(m);
	*metrics = NULL;
}

/* Reads the metric's number from the line; false if the line has none. */
static bool read_number(struct metric *metric, const char *line, size_t len, double *ret)
{
	if (!metric->regex)
		return false;
	if (regex_number(metric->regex, line, len, ret))
		return true;
	if (regex_given_up(metric->regex) >= GIVEN_UP_MAX) {
		regex_freep(&metric->regex);
		metric->given_up = true;
	}
	return false;
}

static void begin_row(struct metrics *metrics, int64_t step)
{
	for (size_t i = 0; i < metrics->count; i++)
		metrics->list[i].in_row = false;
	metrics->row_step = step;
	metrics->has_row = false;
}

/* Only a larger step is progress, because logs replay. If a log goes back to an earlier step, a new
 * row begins, and its numbers are news. */
static void update_step(struct metrics *metrics, int64_t *current, double value)
{
	int64_t step;

	if (!(value >= 0 && value < 9e15))
		return;
	step = (int64_t)value;
	if (step < *current)
		begin_row(metrics, -1);
	*current = step;
	if (!metrics->progress.known || step > metrics->progress.step)
		metrics->progress = (struct step_progress){ true, step, metrics->progress.of };
}

/* Reads the number of the last step, if the pattern has a group for it. */
static void update_last(struct metrics *metrics, const struct metric *metric, const char *line,
			size_t len)
{
	struct regex_span spans[REGEX_GROUPS_MAX + 1] = { 0 };
	AUTO(auto_free) char *text = NULL;
	int64_t of;

	if (regex_groups(metric->regex) < 2 || !regex_find(metric->regex, line, len, 0, spans) ||
	    !spans[2].set)
		return;
	text = mem_copy_n(line + spans[2].from, spans[2].to - spans[2].from);
	of = strtoll(text, NULL, 10);
	if (of > 0)
		metrics->progress.of = of;
}

static bool find_step(struct metrics *metrics, int64_t *current, const char *line, size_t len)
{
	bool found = false;
	double value;

	for (size_t i = 0; i < metrics->count; i++)
		if (metrics->list[i].is_step && read_number(&metrics->list[i], line, len, &value)) {
			update_step(metrics, current, value);
			update_last(metrics, &metrics->list[i], line, len);
			found = true;
		}
	return found;
}

bool metrics_line(struct metrics *metrics, int64_t *current, const char *line, size_t len)
{
	bool found = find_step(metrics, current, line, len);

	for (size_t i = 0; i < metrics->count; i++) {
		struct metric *metric = &metrics->list[i];
		double value;

		if (metric->is_step || !read_number(metric, line, len, &value))
			continue;
		found = true;
		if (*current > metrics->row_step)
			begin_row(metrics, *current);
		if (*current < metrics->row_step)
			continue; /* the node lags behind */
		metric->value = value;
		metric->in_row = metrics->has_row = true;
	}
	return found;
}

const char *metrics_given_up(struct metrics *metrics)
{
	for (size_t i = 0; i < metrics->count; i++)
		if (metrics->list[i].given_up) {
			metrics->list[i].given_up = false;
			return metrics->list[i].name;
		}
	return NULL;
}

static json_t *number_json(double value)
{
	if (isnan(value))
		return json_string("nan");
	if (isinf(value))
		return json_string(value > 0 ? "inf" : "-inf");
	if (value == floor(value) && fabs(value) < 9e15)
		return json_integer((json_int_t)value);
	return json_real(value);
}

json_t *metrics_row(const struct metrics *metrics, int64_t *ret_step)
{
	json_t *row;

	*ret_step = metrics->row_step;
	if (!metrics->has_row)
		return NULL;
	row = json_object();
	for (size_t i = 0; i < metrics->count; i++) {
		const struct metric *metric = &metrics->list[i];

		if (metric->is_step && metrics->row_step >= 0)
			js_put(row, metric->name, json_integer(metrics->row_step));
		else if (metric->in_row)
			js_put(row, metric->name, number_json(metric->value));
	}
	return row;
}

json_t *metrics_keep(const struct metrics *metrics)
{
	int64_t row_step;
	json_t *row = metrics_row(metrics, &row_step);
	json_t *kept = json_pack("{s:I}", "row_step", (json_int_t)row_step);

	js_put(kept, "row", row);
	if (metrics->progress.known)
		js_put(kept, "step", json_integer(metrics->progress.step));
	if (metrics->progress.of > 0)
		js_put(kept, "of", json_integer(metrics->progress.of));
	return kept;
}

void metrics_restore(struct metrics *metrics, const json_t *kept)
{
	const json_t *row = json_object_get(kept, "row");

	for (size_t i = 0; i < metrics->count; i++) {
		struct metric *metric = &metrics->list[i];
		const json_t *value = json_object_get(row, metric->name);
		const char *text = json_string_value(value);

		metric->in_row = value && !metric->is_step;
		metric->value = text ? strtod(text, NULL) : json_number_value(value);
		metrics->has_row |= metric->in_row;
	}
	metrics->row_step = js_int(kept, "row_step", -1);
	if (json_object_get(kept, "step"))
		metrics->progress = (struct step_progress){ true, js_int(kept, "step", 0),
							    js_int(kept, "of", 0) };
}

struct step_progress metrics_progress(const struct metrics *metrics)
{
	return metrics->progress;
}
