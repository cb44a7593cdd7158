/* Numbers from a log: see metrics.h. */
#include "jobs/run/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/base/regex.h"
#include "jobs/run/pace.h"

struct metric {
	char *name;
	struct regex *regex;
	bool seen;
	double value;
};

struct metrics {
	struct metric *list;
	size_t count;
	bool step_seen;
	int64_t first_step, last_step;
	struct mono first_at, last_at;
	int64_t attempt_step; /* the first one of all */
	struct pace *pace;
};

int metrics_new(const json_t *specs, struct metrics **ret, struct err **err)
{
	AUTO(metrics_freep) struct metrics *metrics = mem_zero(1, sizeof *metrics);

	metrics->pace = pace_new();
	metrics->count = json_array_size(specs);
	metrics->list = mem_zero(metrics->count, sizeof *metrics->list);
	for (size_t i = 0; i < metrics->count; i++) {
		const json_t *spec = json_array_get(specs, i);

		metrics->list[i].name = mem_copy(js_str(spec, "name"));
		if (regex_compile(js_str(spec, "regex"), &metrics->list[i].regex, err) < 0)
			return err_wrap(err, "metric '%s'", metrics->list[i].name);
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
	pace_freep(&m->pace);
	free(m);
	*metrics = NULL;
}

/* Only a larger step is progress: logs replay, restarts begin again. */
static void note_step(struct metrics *metrics, double value, struct mono now)
{
	int64_t step;

	if (!(value >= 0 && value < 9e15))
		return;
	step = (int64_t)value;
	if (!metrics->step_seen) {
		metrics->step_seen = true;
		metrics->first_step = metrics->last_step = metrics->attempt_step = step;
		metrics->first_at = metrics->last_at = now;
	} else if (step > metrics->last_step) {
		metrics->last_step = step;
		metrics->last_at = now;
	}
}

bool metrics_line(struct metrics *metrics, const char *line, size_t len, struct mono now)
{
	bool found = false;

	for (size_t i = 0; i < metrics->count; i++) {
		struct metric *metric = &metrics->list[i];
		double value;

		if (!regex_number(metric->regex, line, len, &value))
			continue;
		metric->seen = found = true;
		metric->value = value;
		if (strcmp(metric->name, "step") == 0)
			note_step(metrics, value, now);
	}
	return found;
}

void metrics_begin_rate(struct metrics *metrics, struct mono now)
{
	metrics->first_step = metrics->last_step;
	metrics->first_at = metrics->last_at = now;
	pace_begin(metrics->pace, metrics->step_seen ? metrics->attempt_step : -1);
}

void metrics_looked(struct metrics *metrics, struct mono now)
{
	if (metrics->step_seen)
		pace_look(metrics->pace, metrics->last_step, now);
}

json_t *metrics_throughput(const struct metrics *metrics)
{
	return pace_json(metrics->pace);
}

json_t *metrics_json(const struct metrics *metrics)
{
	json_t *object = json_object();

	for (size_t i = 0; i < metrics->count; i++) {
		const struct metric *metric = &metrics->list[i];
		double value = metric->value;

		if (!metric->seen)
			continue;
		if (isnan(value))
			js_put_str(object, metric->name, "nan");
		else if (isinf(value))
			js_put_str(object, metric->name, value > 0 ? "inf" : "-inf");
		else if (value == floor(value) && fabs(value) < 9e15)
			js_put(object, metric->name, json_integer((json_int_t)value));
		else
			js_put(object, metric->name, json_real(value));
	}
	return object;
}

struct step_progress metrics_progress(const struct metrics *metrics)
{
	struct step_progress progress = { metrics->step_seen, metrics->last_step, 0 };
	int64_t ms = metrics->last_at.ms - metrics->first_at.ms;

	if (metrics->last_step > metrics->first_step && ms > 0)
		progress.rate =
			(double)(metrics->last_step - metrics->first_step) * 1000 / (double)ms;
	return progress;
}
