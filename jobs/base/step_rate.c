/* Speed of steps: see step_rate.h. */
#include "jobs/base/step_rate.h"

#include <stdlib.h>

#include "jobs/base/text/js.h"

#define TOGETHER_MS 5 /* lines written at one moment may be read one after the other */
#define SET_BACK_MS                                                                                \
	10000           /* a time earlier than the last by less is out of order: it is the last    \
			 */
#define POINT_MS   5000 /* between two points of the window, at least */
#define SLICE_MS   5000
#define SLICES_MAX 6

/* ---- the window --------------------------------------------------------------------------- */

static void window_begin(struct step_rate_window *window, struct step_rate_point sample)
{
	window->any = true;
	window->first_step = sample.step;
	window->first = window->last = sample;
}

/* Completes the last sample, which is complete because another one has come at `next_ms`. The speed
 * of the first steps says nothing about the later ones, so these have no points. */
static void window_complete_last(struct step_rate_window *window, int64_t next_ms)
{
	int64_t ms = window->last.ms, before_ms;

	if (!window->warmed && window->last.step - window->first_step >= STEP_RATE_WARM_STEPS) {
		window->warmed = true;
		window->warm = window->last;
	}
	if (!window->warmed)
		return;
	before_ms = window->point_count == 0
			    ? ms - POINT_MS
			    : window->points[(window->point_count - 1) % STEP_RATE_POINTS].ms;
	/* The two ends of a pause are points. */
	if (ms - before_ms >= POINT_MS || next_ms - ms >= POINT_MS)
		window->points[window->point_count++ % STEP_RATE_POINTS] = window->last;
}

/* Returns the time by a clock that is never set back. */
static int64_t window_time(struct step_rate_window *window, int64_t ms)
{
	ms = ms > INT64_MAX - window->shift_ms ? INT64_MAX : ms + window->shift_ms;
	if (window->any && window->last.ms - ms > SET_BACK_MS) {
		window->shift_ms += window->last.ms - ms;
		ms = window->last.ms;
	}
	return ms;
}

enum step_rate_sample step_rate_window_add(struct step_rate_window *window, int64_t step,
					   int64_t ms)
{
	struct step_rate_point sample = { step, ms };

	if (!window->any) {
		window_begin(window, sample);
		return SAMPLE_FIRST;
	}
	if (step <= window->last.step)
		return SAMPLE_KNOWN;
	sample.ms = window_time(window, ms);
	if (sample.ms - window->last.ms < TOGETHER_MS) {
		if (window->first.ms == window->last.ms)
			window->first.step = step;
		window->last.step = step;
		return SAMPLE_JOINED;
	}
	window_complete_last(window, sample.ms);
	window->last = sample;
	return SAMPLE_LATER;
}

static size_t window_oldest(const struct step_rate_window *window)
{
	return window->point_count > STEP_RATE_POINTS ? window->point_count - STEP_RATE_POINTS : 0;
}

/* Returns the oldest sample of the newest STEP_RATE_WINDOW_MS. If all samples but the last are
 * older, it is the one before; if there are only first steps, it is the first. */
static struct step_rate_point window_from(const struct step_rate_window *window)
{
	struct step_rate_point from = window->first;

	for (size_t i = window_oldest(window); i < window->point_count; i++) {
		from = window->points[i % STEP_RATE_POINTS];
		if (window->last.ms - from.ms <= STEP_RATE_WINDOW_MS)
			break;
	}
	return from;
}

static struct step_rate window_since(const struct step_rate_window *window,
				     struct step_rate_point from)
{
	return step_rate_of((double)(window->last.step - from.step),
			    (double)(window->last.ms - from.ms));
}

static struct step_rate window_recent(const struct step_rate_window *window)
{
	return window_since(window, window_from(window));
}

static struct step_rate window_overall(const struct step_rate_window *window)
{
	return window->warmed ? window_since(window, window->warm) : (struct step_rate){ 0 };
}

/* Returns the step at a time between two samples, as if steps were even between them. */
static double window_step_at(const struct step_rate_window *window, struct step_rate_point from,
			     double ms)
{
	for (size_t i = window_oldest(window); i <= window->point_count; i++) {
		struct step_rate_point to = i < window->point_count
						    ? window->points[i % STEP_RATE_POINTS]
						    : window->last;

		if (to.ms > from.ms && ms <= (double)to.ms)
			return (double)from.step + (double)(to.step - from.step) *
							   (ms - (double)from.ms) /
							   (double)(to.ms - from.ms);
		if (to.ms > from.ms)
			from = to;
	}
	return (double)window->last.step;
}

void step_rate_window_bounds(const struct step_rate_window *window, struct step_rate recent,
			     struct step_rate *ret_slow, struct step_rate *ret_fast)
{
	struct step_rate_point from = window_from(window);
	double span = (double)(window->last.ms - from.ms);
	size_t slices = (size_t)(span / SLICE_MS);

	*ret_slow = *ret_fast = recent;
	if (slices > SLICES_MAX)
		slices = SLICES_MAX;
	for (size_t i = 0; i < slices; i++) {
		double begin = (double)from.ms + span * (double)i / (double)slices;
		double end = (double)from.ms + span * (double)(i + 1) / (double)slices;
		struct step_rate rate = step_rate_of(window_step_at(window, from, end) -
							     window_step_at(window, from, begin),
						     end - begin);

		if (step_rate_is_faster(rate, *ret_fast))
			*ret_fast = rate;
		if (step_rate_is_faster(*ret_slow, rate))
			*ret_slow = rate;
	}
}

/* ---- the meter ---------------------------------------------------------------------------- */

/* Classes from 1 microsecond to more than 11 days a step. */
#define LEAST_MS 1e-3
#define GROWTH   1.02
#define CLASSES  1400

#define PAUSE_MS    10000
#define PAUSE_SHARE 8
#define FIRST_MS    60000 /* pause limit while no time between two arrivals is known */
#define SINGLES_MIN 20    /* fewest single steps for which quantiles mean anything */

struct step_rate_dated {
	int64_t step;
	struct utc at;
};

struct step_rate_stretch {
	struct step_rate_dated first, last;
};

struct step_rate_meter {
	struct step_rate_window window;
	struct step_rate_dated last; /* the last arrival */
	struct utc first_at;
	int64_t since_before_ms;   /* between the last two arrivals; 0: only one so far */
	int64_t since_before;      /* number of steps in that time */
	int64_t singles;           /* steps that arrived alone */
	int64_t in_class[CLASSES]; /* counts of the single steps by class */
	struct step_rate_dated recent[STEP_RATE_RECENT_MAX]; /* a ring */
	size_t recent_count;
	struct step_rate_stretch stretches[STEP_RATE_STRETCHES_MAX]; /* a ring */
	size_t stretch_count;
	int64_t shortest_ms; /* between two arrivals; 0: not known */
};

struct step_rate_meter *step_rate_meter_new(void)
{
	return mem_zero(1, sizeof(struct step_rate_meter));
}

void step_rate_meter_freep(struct step_rate_meter **meter)
{
	free(*meter);
	*meter = NULL;
}

/* Multiplied out: logarithms would need one more library (libm) in each container. */
static int class_of(double step_ms)
{
	int class = 0;

	for (double end = LEAST_MS * GROWTH; end <= step_ms && class < CLASSES - 1; end *= GROWTH)
		class ++;
	return class;
}

static double class_middle(int class)
{
	double begin = LEAST_MS;

	while (class -- > 0)
		begin *= GROWTH;
	return begin * (1 + GROWTH) / 2;
}

static int64_t meter_pause_ms(const struct step_rate_meter *meter)
{
	int64_t ms = meter->shortest_ms * PAUSE_SHARE;

	if (meter->shortest_ms == 0)
		return FIRST_MS;
	return ms > PAUSE_MS ? ms : PAUSE_MS;
}

static struct step_rate_stretch *meter_stretch(struct step_rate_meter *meter)
{
	return &meter->stretches[(meter->stretch_count - 1) % STEP_RATE_STRETCHES_MAX];
}

static void meter_begin_stretch(struct step_rate_meter *meter)
{
	meter->stretch_count++;
	*meter_stretch(meter) = (struct step_rate_stretch){ meter->last, meter->last };
}

static void meter_begin(struct step_rate_meter *meter)
{
	meter->first_at = meter->last.at;
	meter_begin_stretch(meter);
	meter->recent[meter->recent_count++ % STEP_RATE_RECENT_MAX] = meter->last;
}

static void meter_join(struct step_rate_meter *meter, int64_t step)
{
	if (meter->since_before_ms > 0)
		meter->since_before += step - meter->last.step;
	meter->last.step = step;
	meter_stretch(meter)->last = meter->last;
	meter->recent[(meter->recent_count - 1) % STEP_RATE_RECENT_MAX] = meter->last;
}

/* `ms` since the sample before. */
static void meter_go_on(struct step_rate_meter *meter, struct step_rate_dated sample, int64_t ms)
{
	/* A machine that slept has two clocks that differ; its sleep parts two stretches. */
	int64_t dated_ms = sample.at.ms - meter->last.at.ms;
	bool pauses = (ms > dated_ms ? ms : dated_ms) > meter_pause_ms(meter);

	if (meter->shortest_ms == 0 || ms < meter->shortest_ms)
		meter->shortest_ms = ms;
	meter->since_before_ms = ms;
	meter->since_before = sample.step - meter->last.step;
	meter->last = sample;
	if (pauses)
		meter_begin_stretch(meter);
	meter_stretch(meter)->last = sample;
	meter->recent[meter->recent_count++ % STEP_RATE_RECENT_MAX] = sample;
}

void step_rate_meter_step(struct step_rate_meter *meter, int64_t step, int64_t ms, struct utc at)
{
	const struct step_rate_dated sample = { step, at };
	struct step_rate_window *window = &meter->window;
	int64_t before_ms = window->last.ms;
	bool warmed = window->warmed;

	switch (step_rate_window_add(window, step, ms)) {
	case SAMPLE_FIRST:
		meter->last = sample;
		meter_begin(meter);
		break;
	case SAMPLE_JOINED:
		meter_join(meter, step);
		break;
	case SAMPLE_LATER:
		/* The sample before is complete. */
		if (warmed && meter->since_before == 1) {
			meter->singles++;
			meter->in_class[class_of((double)meter->since_before_ms)]++;
		}
		meter_go_on(meter, sample, window->last.ms - before_ms);
		break;
	case SAMPLE_KNOWN:
		break;
	}
}

/* ---- rates as JSON ------------------------------------------------------------------------ */

/* The quantile of the single step times, in seconds. */
static double meter_quantile(const struct step_rate_meter *meter, double share)
{
	double target = share * (double)meter->singles;
	int64_t seen = 0;
	int class = 0;

	for (; class < CLASSES - 1; class ++) {
		seen += meter->in_class[class];
		if ((double)seen >= target)
			break;
	}
	return class_middle(class) / 1000;
}

static json_t *throughput_json(const struct step_rate_meter *meter)
{
	struct step_rate rate = window_overall(&meter->window);
	int64_t steps = (int64_t)rate.steps;
	json_t *json;

	if (steps <= 0)
		return NULL;
	json = json_pack("{s:f, s:I}", "mean", step_rate_per_second(rate), "n", (json_int_t)steps);
	if (meter->singles >= SINGLES_MIN && meter->singles >= steps / 2)
		js_put(json, "step_seconds",
		       json_pack("{s:f, s:f, s:f, s:I}", "p50", meter_quantile(meter, 0.50), "p90",
				 meter_quantile(meter, 0.90), "p95", meter_quantile(meter, 0.95),
				 "n", (json_int_t)meter->singles));
	return json;
}

static json_t *recent_json(const struct step_rate_meter *meter)
{
	size_t count = meter->recent_count;
	size_t kept = count < STEP_RATE_RECENT_MAX ? count : STEP_RATE_RECENT_MAX;
	json_t *list = json_array();

	for (size_t i = count - kept; i < count; i++) {
		const struct step_rate_dated *sample = &meter->recent[i % STEP_RATE_RECENT_MAX];

		json_array_append_new(list, json_pack("[I, I]", (json_int_t)sample->step,
						      (json_int_t)sample->at.ms));
	}
	return list;
}

static json_t *stretches_json(const struct step_rate_meter *meter)
{
	size_t count = meter->stretch_count;
	size_t kept = count < STEP_RATE_STRETCHES_MAX ? count : STEP_RATE_STRETCHES_MAX;
	json_t *list = json_array();

	for (size_t i = count - kept; i < count; i++) {
		const struct step_rate_stretch *stretch =
			&meter->stretches[i % STEP_RATE_STRETCHES_MAX];

		json_array_append_new(list,
				      json_pack("[I, I, I, I]", (json_int_t)stretch->first.at.ms,
						(json_int_t)stretch->last.at.ms,
						(json_int_t)stretch->first.step,
						(json_int_t)stretch->last.step));
	}
	return list;
}

json_t *step_rate_meter_json(const struct step_rate_meter *meter)
{
	struct step_rate recent = window_recent(&meter->window);
	json_t *json;

	if (!meter->window.any)
		return NULL;
	json = json_pack("{s:i, s:I, s:I, s:I, s:I}", "v", 1, "first_step",
			 (json_int_t)meter->window.first_step, "first_at",
			 (json_int_t)meter->first_at.ms, "step", (json_int_t)meter->last.step, "at",
			 (json_int_t)meter->last.at.ms);
	if (step_rate_is_known(recent))
		js_put(json, "rate", json_real(step_rate_per_second(recent)));
	js_put(json, "throughput", throughput_json(meter));
	js_put(json, "recent", recent_json(meter));
	js_put(json, "stretches", stretches_json(meter));
	return json;
}

int64_t step_rate_arrived_ms(const json_t *measured, int64_t step)
{
	const json_t *sample;
	size_t i;

	json_array_foreach (json_object_get(measured, "recent"), i, sample)
		if (json_integer_value(json_array_get(sample, 0)) >= step)
			/* Arrivals before the oldest kept one are unknown. */
			return i > 0 || json_integer_value(json_array_get(sample, 0)) == step
				       ? json_integer_value(json_array_get(sample, 1))
				       : 0;
	return 0;
}
