/* Arrivals of steps: see pace.h. */
#include "jobs/base/pace.h"

#include <stdlib.h>

/* Classes from 1 microsecond to more than 11 days a step. */
#define LEAST_MS 1e-3
#define GROWTH   1.02
#define CLASSES  1400

#define TOGETHER_MS 5    /* lines written at one moment may be read one after the other */
#define SAMPLE_MS   5000 /* between two samples of the window, at least */
#define SAMPLES_MAX 64
#define PAUSE_MS    10000
#define PAUSE_SHARE 8
#define FIRST_MS    60000 /* pause limit while no time between two arrivals is known */
#define SINGLES_MIN 20    /* fewest single steps for which quantiles mean anything */

/* Steps that came at one moment: `step` is the last of them. */
struct agent_delivery {
	int64_t step;
	struct mono now;
	struct utc at;
};

struct pace_stretch {
	struct agent_delivery first, last;
};

struct pace {
	bool any, warmed;
	int64_t first_step;
	struct agent_delivery first, last; /* last: takes in the steps that come with it */
	struct agent_delivery warm;        /* throughput counts the steps after this one */
	int64_t since_before_ms;           /* between the last two arrivals; 0: only one so far */
	int64_t since_before;              /* number of steps in that time */
	int64_t singles;                   /* steps that arrived alone */
	int64_t in_class[CLASSES];         /* counts of the single steps by class */
	struct agent_delivery samples[SAMPLES_MAX]; /* ring of samples within the window */
	size_t sample_count;
	struct agent_delivery recent[PACE_RECENT_MAX]; /* a ring */
	size_t recent_count;
	struct pace_stretch stretches[PACE_STRETCHES_MAX]; /* a ring */
	size_t stretch_count;
	int64_t shortest_ms; /* between two arrivals; 0: not known */
};

struct pace *pace_new(void)
{
	return mem_zero(1, sizeof(struct pace));
}

void pace_freep(struct pace **pace)
{
	free(*pace);
	*pace = NULL;
}

/* Multiplied out: logarithms would need one more library (libm) in each container. */
static int class_of(double step_ms)
{
	int class = 0;

	for (double end = LEAST_MS * GROWTH; end <= step_ms && class < CLASSES - 1; end *= GROWTH)
		class ++;
	return class;
}

static double middle_of(int class)
{
	double begin = LEAST_MS;

	while (class -- > 0)
		begin *= GROWTH;
	return begin * (1 + GROWTH) / 2;
}

/* Counts the last arrival, which is complete because another one has come. */
static void count(struct pace *pace)
{
	if (pace->warmed && pace->since_before == 1 && pace->since_before_ms > 0) {
		pace->singles++;
		pace->in_class[class_of((double)pace->since_before_ms)]++;
	}
	if (!pace->warmed && pace->last.step - pace->first_step >= PACE_WARM_STEPS) {
		pace->warmed = true;
		pace->warm = pace->last;
	}
}

static int64_t pause_ms(const struct pace *pace)
{
	int64_t ms = pace->shortest_ms * PAUSE_SHARE;

	if (pace->shortest_ms == 0)
		return FIRST_MS;
	return ms > PAUSE_MS ? ms : PAUSE_MS;
}

static struct pace_stretch *newest_stretch(struct pace *pace)
{
	return &pace->stretches[(pace->stretch_count - 1) % PACE_STRETCHES_MAX];
}

static void begin_stretch(struct pace *pace, const struct agent_delivery *arrival)
{
	pace->stretch_count++;
	*newest_stretch(pace) = (struct pace_stretch){ *arrival, *arrival };
}

static void note_recent(struct pace *pace)
{
	pace->recent[pace->recent_count++ % PACE_RECENT_MAX] = pace->last;
}

static void note_sample(struct pace *pace)
{
	const struct agent_delivery *newest =
		&pace->samples[(pace->sample_count - 1) % SAMPLES_MAX];

	if (pace->sample_count == 0 || pace->last.now.ms - newest->now.ms >= SAMPLE_MS)
		pace->samples[pace->sample_count++ % SAMPLES_MAX] = pace->last;
}

static void begin(struct pace *pace, const struct agent_delivery *arrival)
{
	pace->any = true;
	pace->first_step = arrival->step;
	pace->first = pace->last = *arrival;
	begin_stretch(pace, arrival);
	note_recent(pace);
}

static void go_on(struct pace *pace, const struct agent_delivery *arrival)
{
	int64_t ms = arrival->now.ms - pace->last.now.ms;

	count(pace);
	/* The speed of the first steps says nothing about the later ones. */
	if (pace->warmed)
		note_sample(pace);
	if (ms > pause_ms(pace))
		begin_stretch(pace, arrival);
	if (pace->shortest_ms == 0 || ms < pace->shortest_ms)
		pace->shortest_ms = ms;
	pace->since_before_ms = ms;
	pace->since_before = arrival->step - pace->last.step;
	pace->last = *arrival;
	newest_stretch(pace)->last = *arrival;
	note_recent(pace);
}

/* Adds a step that arrived together with the one before. */
static void add_to_last(struct pace *pace, int64_t step)
{
	if (pace->since_before_ms == 0)
		pace->first.step = step;
	else
		pace->since_before += step - pace->last.step;
	pace->last.step = step;
	newest_stretch(pace)->last = pace->last;
	pace->recent[(pace->recent_count - 1) % PACE_RECENT_MAX] = pace->last;
}

void pace_step(struct pace *pace, int64_t step, struct mono now, struct utc at)
{
	const struct agent_delivery arrival = { step, now, at };

	if (!pace->any)
		begin(pace, &arrival);
	else if (step > pace->last.step && now.ms - pace->last.now.ms < TOGETHER_MS)
		add_to_last(pace, step);
	else if (step > pace->last.step)
		go_on(pace, &arrival);
}

/* ---- as JSON ---------------------------------------------------------------------------- */

/* Measured from the oldest arrival of the window to the newest; if there are only warm-up steps,
 * from the first of them. 0 if unknown. */
static double rate_of(const struct pace *pace)
{
	const struct agent_delivery *from = &pace->first;
	size_t kept = pace->sample_count < SAMPLES_MAX ? pace->sample_count : SAMPLES_MAX;
	int64_t ms;

	for (size_t i = pace->sample_count - kept; i < pace->sample_count; i++) {
		from = &pace->samples[i % SAMPLES_MAX];
		if (pace->last.now.ms - from->now.ms <= PACE_WINDOW_MS &&
		    pace->last.step > from->step)
			break;
	}
	ms = pace->last.now.ms - from->now.ms;
	return ms > 0 ? (double)(pace->last.step - from->step) * 1000 / (double)ms : 0;
}

/* The quantile of the single step times, in seconds. */
static double quantile(const struct pace *pace, double share)
{
	double wanted = share * (double)pace->singles;
	int64_t seen = 0;
	int class = 0;

	for (; class < CLASSES - 1; class ++) {
		seen += pace->in_class[class];
		if ((double)seen >= wanted)
			break;
	}
	return middle_of(class) / 1000;
}

static json_t *throughput_json(const struct pace *pace)
{
	int64_t steps = pace->last.step - pace->warm.step;
	int64_t ms = pace->last.now.ms - pace->warm.now.ms;
	json_t *json;

	if (!pace->warmed || steps <= 0 || ms <= 0)
		return NULL;
	json = json_pack("{s:f, s:I}", "mean", (double)steps * 1000 / (double)ms, "n",
			 (json_int_t)steps);
	if (pace->singles >= SINGLES_MIN && pace->singles >= steps / 2)
		js_put(json, "step_seconds",
		       json_pack("{s:f, s:f, s:f, s:I}", "p50", quantile(pace, 0.50), "p90",
				 quantile(pace, 0.90), "p95", quantile(pace, 0.95), "n",
				 (json_int_t)pace->singles));
	return json;
}

static json_t *recent_json(const struct pace *pace)
{
	size_t kept = pace->recent_count < PACE_RECENT_MAX ? pace->recent_count : PACE_RECENT_MAX;
	json_t *list = json_array();

	for (size_t i = pace->recent_count - kept; i < pace->recent_count; i++) {
		const struct agent_delivery *arrival = &pace->recent[i % PACE_RECENT_MAX];

		json_array_append_new(list, json_pack("[I, I]", (json_int_t)arrival->step,
						      (json_int_t)arrival->at.ms));
	}
	return list;
}

static json_t *stretches_json(const struct pace *pace)
{
	size_t kept =
		pace->stretch_count < PACE_STRETCHES_MAX ? pace->stretch_count : PACE_STRETCHES_MAX;
	json_t *list = json_array();

	for (size_t i = pace->stretch_count - kept; i < pace->stretch_count; i++) {
		const struct pace_stretch *stretch = &pace->stretches[i % PACE_STRETCHES_MAX];

		json_array_append_new(list,
				      json_pack("[I, I, I, I]", (json_int_t)stretch->first.at.ms,
						(json_int_t)stretch->last.at.ms,
						(json_int_t)stretch->first.step,
						(json_int_t)stretch->last.step));
	}
	return list;
}

json_t *pace_json(const struct pace *pace)
{
	double rate;
	json_t *json;

	if (!pace->any)
		return NULL;
	rate = rate_of(pace);
	json = json_pack("{s:i, s:I, s:I, s:I, s:I}", "v", 1, "first_step",
			 (json_int_t)pace->first_step, "first_at", (json_int_t)pace->first.at.ms,
			 "step", (json_int_t)pace->last.step, "at", (json_int_t)pace->last.at.ms);
	if (rate > 0)
		js_put(json, "rate", json_real(rate));
	js_put(json, "throughput", throughput_json(pace));
	js_put(json, "recent", recent_json(pace));
	js_put(json, "stretches", stretches_json(pace));
	return json;
}

int64_t pace_at(const json_t *pace, int64_t step)
{
	const json_t *arrival;
	size_t i;

	json_array_foreach (json_object_get(pace, "recent"), i, arrival)
		if (json_integer_value(json_array_get(arrival, 0)) >= step)
			/* Arrivals before the oldest kept one are unknown. */
			return i > 0 || json_integer_value(json_array_get(arrival, 0)) == step
				       ? json_integer_value(json_array_get(arrival, 1))
				       : 0;
	return 0;
}
