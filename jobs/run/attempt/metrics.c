/* Numbers from a log: see metrics.h. */
#include "jobs/run/attempt/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/series/metric_reader.h"
#include "jobs/store/order.h"

/* The number of a metric in the newest row. */
struct metric_value {
	bool in_row;
	double value;
};

struct metrics {
	struct metric_reader *reader;
	struct metric_reading *readings; /* room for those of a line */
	struct metric_value *values;     /* in the order of the reader */
	struct step_progress progress;
	bool has_row;
	int64_t row_step; /* -1: not known */
	/* Samples at the first and the newest step with such a reading. */
	size_t samples; /* index of the metric; SIZE_MAX: none */
	struct metric_reading counted, newest;
};

int metrics_new(const json_t *specs, struct metrics **ret, struct err **err)
{
	AUTO(metrics_freep) struct metrics *metrics = mem_zero(1, sizeof *metrics);
	size_t count;

	metrics->row_step = -1;
	if (metric_reader_new(specs, &metrics->reader, err) < 0)
		return -1;
	count = metric_reader_count(metrics->reader);
	metrics->samples = SIZE_MAX;
	metrics->counted.step = -1;
	for (size_t i = 0; i < count; i++)
		if (strcmp(metric_reader_name(metrics->reader, i), METRIC_SAMPLES) == 0)
			metrics->samples = i;
	metrics->readings = mem_zero(count, sizeof *metrics->readings);
	metrics->values = mem_zero(count, sizeof *metrics->values);
	*ret = TAKE(metrics);
	return 0;
}

void metrics_freep(struct metrics **metrics)
{
	if (!*metrics)
		return;
	metric_reader_freep(&(*metrics)->reader);
	free((*metrics)->readings);
	free((*metrics)->values);
	free(*metrics);
	*metrics = NULL;
}

static void begin_row(struct metrics *metrics, int64_t step)
{
	for (size_t i = 0; i < metric_reader_count(metrics->reader); i++)
		metrics->values[i].in_row = false;
	metrics->row_step = step;
	metrics->has_row = false;
}

/* Only a larger step is progress, because logs replay. */
static void note_step(struct metrics *metrics, int64_t step)
{
	int64_t of = metric_reader_last_step(metrics->reader);

	if (!metrics->progress.known || step > metrics->progress.step)
		metrics->progress.step = step;
	metrics->progress.known = true;
	if (of > 0)
		metrics->progress.of = of;
}

static void count_samples(struct metrics *metrics, const struct metric_reading *reading)
{
	if (reading->step < 0 || !(reading->value >= 0) || isinf(reading->value))
		return;
	/* A log that goes back to an earlier step counts anew. */
	if (metrics->counted.step < 0 || reading->step < metrics->newest.step)
		metrics->counted = *reading;
	metrics->newest = *reading;
}

double metrics_samples_per_step(const struct metrics *metrics)
{
	int64_t steps = metrics->newest.step - metrics->counted.step;
	double samples = metrics->newest.value - metrics->counted.value;

	return metrics->counted.step >= 0 && steps > 0 && samples > 0 ? samples / (double)steps : 0;
}

const char *metrics_unit(const struct metrics *metrics)
{
	size_t step = metric_reader_step(metrics->reader);
	const char *name =
		step == SIZE_MAX ? METRIC_STEP : metric_reader_name(metrics->reader, step);

	return strcmp(name, METRIC_EPOCH) == 0 ? METRIC_EPOCH : NULL;
}

size_t metrics_line(struct metrics *metrics, int64_t *current, const char *line, size_t len)
{
	int64_t before = *current;
	size_t count = metric_reader_line(metrics->reader, current, line, len, metrics->readings);

	/* If a log goes back to an earlier step, a new row begins, and its numbers are news. */
	if (*current < before)
		begin_row(metrics, -1);
	for (size_t i = 0; i < count; i++) {
		const struct metric_reading *reading = &metrics->readings[i];

		if (reading->metric == metric_reader_step(metrics->reader)) {
			note_step(metrics, reading->step);
			continue;
		}
		if (reading->metric == metrics->samples)
			count_samples(metrics, reading);
		if (*current > metrics->row_step)
			begin_row(metrics, *current);
		if (*current < metrics->row_step)
			continue; /* the node lags behind */
		metrics->values[reading->metric] = (struct metric_value){ true, reading->value };
		metrics->has_row = true;
	}
	return count;
}

const struct metric_reading *metrics_readings(const struct metrics *metrics)
{
	return metrics->readings;
}

const char *metrics_given_up(struct metrics *metrics)
{
	return metric_reader_given_up(metrics->reader);
}

const char *metrics_doubted(struct metrics *metrics, const char **ret_text)
{
	return metric_reader_doubted(metrics->reader, ret_text);
}

json_t *metrics_row(const struct metrics *metrics, int64_t *ret_step)
{
	json_t *row;

	*ret_step = metrics->row_step;
	if (!metrics->has_row)
		return NULL;
	row = json_object();
	for (size_t i = 0; i < metric_reader_count(metrics->reader); i++) {
		const char *name = metric_reader_name(metrics->reader, i);

		if (i == metric_reader_step(metrics->reader) && metrics->row_step >= 0)
			js_put(row, name, json_integer(metrics->row_step));
		else if (metrics->values[i].in_row)
			js_put(row, name, js_number(metrics->values[i].value));
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
	if (metrics->counted.step >= 0)
		js_put(kept, "samples",
		       json_pack("[I, f, I, f]", (json_int_t)metrics->counted.step,
				 metrics->counted.value, (json_int_t)metrics->newest.step,
				 metrics->newest.value));
	return kept;
}

static void restore_samples(struct metrics *metrics, const json_t *kept)
{
	struct metric_reading *readings[] = { &metrics->counted, &metrics->newest };

	for (size_t i = 0; i < STK_LENGTH(readings) && json_array_size(kept) == 4; i++) {
		readings[i]->step = json_integer_value(json_array_get(kept, 2 * i));
		readings[i]->value = json_number_value(json_array_get(kept, 2 * i + 1));
	}
}

void metrics_restore(struct metrics *metrics, const json_t *kept)
{
	const json_t *row = json_object_get(kept, "row");

	for (size_t i = 0; i < metric_reader_count(metrics->reader); i++) {
		const json_t *value = json_object_get(row, metric_reader_name(metrics->reader, i));
		const char *text = json_string_value(value);

		metrics->values[i] = (struct metric_value){
			value && i != metric_reader_step(metrics->reader),
			text ? strtod(text, NULL) : json_number_value(value),
		};
		metrics->has_row |= metrics->values[i].in_row;
	}
	restore_samples(metrics, json_object_get(kept, "samples"));
	metrics->row_step = js_int(kept, "row_step", -1);
	if (json_object_get(kept, "step"))
		metrics->progress = (struct step_progress){ true, js_int(kept, "step", 0),
							    js_int(kept, "of", 0) };
}

struct step_progress metrics_progress(const struct metrics *metrics)
{
	return metrics->progress;
}
